"""Token mode: how long a sign-in lasts on what stays open, and who may read the figures."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from websockets import ConnectionClosed

from db.engine import Database, open_database
from db.enums import RoleName
from services import accounts
from tests.e2e.callers import PATIENCE, RUN_EVENTS, Caller, Json, command, dialled, event_of

# Longer than any test here: an event every fifth of a second.
LONG = "Tell me everything. [demo: rate=5 length=4000]"
SIGNED_OUT = {
    "message": "Your sign-in has ended: sign in again.",
    "extensions": {"code": "UNAUTHENTICATED"},
}
VIEWER = "{ viewer { user { name } roles } }"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_AUTH": "token"}


@pytest.fixture(scope="module")
async def database(caller: Caller, server_dsn: str) -> AsyncIterator[Database]:
    """The database of the server that runs."""
    database = await open_database(server_dsn, pool_size=2, statement_timeout=10)
    yield database
    await database.close()


SignUp = Callable[..., Any]


@pytest.fixture(scope="module")
def sign_up(database: Database, caller: Caller) -> SignUp:
    """A caller of that name, with a new token."""

    async def sign_up(
        name: str, role: RoleName | None = None, expires_at: datetime | None = None
    ) -> Caller:
        async with database.writing() as writing:
            user = await accounts.ensure_user(writing, name)
            if role is not None:
                await accounts.grant_role(writing, user.id, role)
            return caller.as_(await accounts.issue_token(writing, user.id, expires_at))

    return sign_up


class Open:
    """Everything of a caller that stays open, following one run: what ended each of them."""

    def __init__(self, caller: Caller, run: str) -> None:
        self._caller = caller
        self._asked = {"query": RUN_EVENTS, "variables": {"run": run}}
        self._begun = [asyncio.Event() for _ in range(4)]
        self._tasks = [
            asyncio.create_task(each(begun))
            for each, begun in zip(
                (self._socket, self._events, self._shared_events, self._parts),
                self._begun,
                strict=True,
            )
        ]

    async def has_begun(self) -> None:
        """Wait until each has seen an event."""
        begun = asyncio.gather(*(each.wait() for each in self._begun))
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({begun, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            assert begun.done(), await asyncio.gather(*self._tasks)

    async def ends(self) -> list[Any]:
        """How each of them ended, once all have."""
        async with asyncio.timeout(PATIENCE):
            return await asyncio.gather(*self._tasks)

    @property
    def is_open(self) -> bool:
        return not any(each.done() for each in self._tasks)

    async def close(self) -> None:
        for each in self._tasks:
            each.cancel()
        await asyncio.wait(self._tasks)

    async def _socket(self, begun: asyncio.Event) -> tuple[int | None, str | None]:
        async with dialled(self._caller.server) as connection:
            init = {"type": "connection_init", "payload": self._caller.headers}
            subscribe = {"type": "subscribe", "id": "1", "payload": self._asked}
            await connection.send(json.dumps(init))
            await connection.send(json.dumps(subscribe))
            with contextlib.suppress(ConnectionClosed):
                async for frame in connection:
                    if json.loads(frame)["type"] == "next":
                        begun.set()
        return connection.close_code, connection.close_reason

    async def _events(self, begun: asyncio.Event) -> Json:
        """The last result; that `complete` follows is looked at where streams are read."""
        last: Json = {}
        async with self._caller.stream(**self._asked) as results:
            async for result in results:
                last = result
                begun.set()
        return last

    async def _shared_events(self, begun: asyncio.Event) -> list[tuple[str, Any]]:
        """The last two events of single connection mode."""
        reserved = await self._caller.request("PUT")
        token = {"X-GraphQL-Event-Stream-Token": reserved.body}
        address, session = self._caller.server.url, self._caller.session
        accept = {"Accept": "text/event-stream", **token}
        events = []
        async with session.get(address, headers=accept) as response:
            asked = {**self._asked, "extensions": {"operationId": "one"}}
            taken = await self._caller.request("POST", headers=token, json=asked)
            assert taken.status == 202
            name = ""
            async for line in response.content:
                kind, _, text = line.decode().rstrip("\n").partition(": ")
                if kind == "event":
                    name = text
                elif kind == "data":
                    events.append((name, json.loads(text)))
                    begun.set()
        return events[-2:]

    async def _parts(self, begun: asyncio.Event) -> Json:
        """The last part."""
        accept = {"Accept": "multipart/mixed;subscriptionSpec=1.0", **self._caller.headers}
        address = self._caller.server.url
        last: Json = {}
        async with self._caller.session.post(address, json=self._asked, headers=accept) as response:
            reader = aiohttp.MultipartReader.from_response(response)
            while (part := await reader.next()) is not None:
                assert isinstance(part, aiohttp.BodyPartReader)
                last = json.loads(await part.read())
                begun.set()
        return last


ENDS = [
    (4403, "UNAUTHENTICATED"),
    {"errors": [SIGNED_OUT]},
    [
        ("next", {"id": "one", "payload": {"errors": [SIGNED_OUT]}}),
        ("complete", {"id": "one"}),
    ],
    {"payload": None, "errors": [SIGNED_OUT]},
]


async def test_tokens_taken_back_end_all_that_is_open_and_nothing_of_others(
    sign_up: SignUp, server_dsn: str
) -> None:
    ada, bea = await sign_up("Ada"), await sign_up("Bea")
    runs = [(await each.begin(LONG)).run for each in (ada, bea)]
    hers, others = Open(ada, runs[0]), Open(bea, runs[1])
    try:
        await asyncio.gather(hers.has_begun(), others.has_begun())
        status, printed, _ = await command("user", "ada", "--revoke", DATABASE_URL=server_dsn)
        assert (status, printed.splitlines()[1]) == (0, "revoked 1 tokens")
        assert await hers.ends() == ENDS
        refused = await ada.post(VIEWER)
        assert (refused.status, refused.codes) == (401, ["UNAUTHENTICATED"])
        assert others.is_open
        async with bea.stream(variables={"run": runs[1]}) as results:
            assert event_of(await anext(results))["seq"] == 1
    finally:
        await others.close()
    # Whoever hangs up or is signed out leaves the run as it is.
    again = await sign_up("Ada")
    assert (await again.change("RunCancel", run=runs[0]))["errors"] == []
    assert (await bea.change("RunCancel", run=runs[1]))["errors"] == []


async def test_a_token_that_expires_ends_all_that_is_open_when_its_time_comes(
    sign_up: SignUp,
) -> None:
    lasting = await sign_up("Cleo")
    run = (await lasting.begin(LONG)).run
    expires_at = datetime.now(UTC) + timedelta(seconds=3)
    expiring, going_on = Open(await sign_up("Cleo", None, expires_at), run), Open(lasting, run)
    try:
        await asyncio.gather(expiring.has_begun(), going_on.has_begun())
        assert await expiring.ends() == ENDS
        assert datetime.now(UTC) >= expires_at
        # The same user's other token is as good as ever.
        assert going_on.is_open
    finally:
        await going_on.close()
    assert (await lasting.change("RunCancel", run=run))["errors"] == []


async def test_a_role_that_is_given_holds_on_an_open_socket_as_well(
    sign_up: SignUp, database: Database
) -> None:
    dora = await sign_up("Dora")
    async with dora.socket() as socket:
        assert (await socket.ask(VIEWER))["viewer"] == {"user": {"name": "Dora"}, "roles": []}
        async with database.writing() as writing:
            user = await accounts.ensure_user(writing, "Dora")
            await accounts.grant_role(writing, user.id, RoleName.AUDITOR)
        async with asyncio.timeout(PATIENCE):
            while (await socket.ask(VIEWER))["viewer"]["roles"] != ["AUDITOR"]:
                pass


@pytest.mark.parametrize("role", [RoleName.AUDITOR, RoleName.ADMINISTRATOR])
async def test_the_figures_are_for_those_who_run_the_server(
    sign_up: SignUp, role: RoleName
) -> None:
    operator = await sign_up(f"Operator {role.value}", role)
    figures = await operator.request("GET", "/metrics")
    assert figures.status == 200
    assert figures.headers["Content-Type"].startswith("text/plain; version=")
    assert "mirrorgraph_running_operations" in figures.body


async def test_the_figures_are_for_nobody_else(sign_up: SignUp, caller: Caller) -> None:
    for nobody in (caller, caller.as_("mg_wrong")):
        refused = await nobody.request("GET", "/metrics")
        assert (refused.status, refused.codes) == (401, ["UNAUTHENTICATED"])
        assert refused.headers["WWW-Authenticate"] == "Bearer"
    member = await sign_up("Member")
    refused = await member.request("GET", "/metrics")
    assert (refused.status, refused.codes) == (403, ["FORBIDDEN"])
