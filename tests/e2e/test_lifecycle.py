"""A server from its start to its stop, and what its clients see of both."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from websockets import InvalidStatus

from tests.clusters import Cluster
from tests.conftest import ROOT, ServerProcess, serving
from tests.e2e.callers import (
    PATIENCE,
    READS,
    RUN_EVENTS,
    Caller,
    Json,
    command,
    dialled,
    event_of,
    numbers_of,
    text_of,
)
from tests.e2e.ledgers import Ledger
from tests.figures import read_figures, series
from tests.scripted_provider import Script, scripted_provider

# A stop, however much is going on, takes no longer.
STOP_SECONDS = 10.0
SLOW = "Tell me everything. [demo: rate=100 length=4000]"
WEB_PAGES = ROOT / "explorer" / "dist" / "index.html"


@dataclass
class Watched:
    """What a subscriber saw: events, then the errors that ended the stream, if any."""

    events: list[Json] = field(default_factory=list)
    errors: list[Json] = field(default_factory=list)
    has_some: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, result: Json) -> None:
        """Note one result."""
        if result.get("errors"):
            self.errors += result["errors"]
            return
        self.events.append(event_of(result))
        if text_of(self.events):
            self.has_some.set()

    def assert_ended_well(self) -> None:
        """A stop is told as the run's end, or as an error that says: come back."""
        assert numbers_of(self.events) == list(range(1, len(self.events) + 1))
        if self.errors:
            (error,) = self.errors
            assert error["extensions"] == {"code": "SERVER_STOPPING", "retryable": True}
        else:
            assert self.events[-1]["__typename"] == "RunFinished"
            assert self.events[-1]["status"] == "FAILED"
            assert self.events[-1]["error"]["code"] == "SERVER_STOPPED"


async def watch_socket(caller: Caller, run: str, watched: Watched) -> None:
    async with caller.socket() as connection:
        operation = await connection.start(RUN_EVENTS, {"run": run})
        async for result in operation:
            watched.take(result)
        watched.errors += operation.errors


async def watch_stream(caller: Caller, run: str, watched: Watched) -> None:
    async with caller.stream(variables={"run": run}) as results:
        async for result in results:
            watched.take(result)


@pytest.fixture(scope="module")
async def stopped_folder() -> AsyncIterator[Path]:
    """A data folder whose server was started once and stopped."""
    folder = Path(tempfile.mkdtemp(prefix="mg"))  # short: socket paths have about 100 bytes
    began = time.monotonic()
    async with serving(MIRRORGRAPH_DATA_DIR=str(folder)):
        print(f"first start: {time.monotonic() - began:.2f} s")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def folder(stopped_folder: Path) -> Iterator[Path]:
    """A data folder of the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="mg"))
    # A copy that keeps the files' owner: the database refuses to run as root.
    subprocess.run(["cp", "-a", f"{stopped_folder}/.", folder], check=True)
    yield folder
    shutil.rmtree(folder)


async def test_a_start_prints_the_address_on_which_the_server_answers(
    caller: Caller, server: ServerProcess
) -> None:
    (line,) = [each for each in server.output.splitlines() if " at " in each]
    assert re.fullmatch(r"Mirrorgraph is ready at http://127\.0\.0\.1:\d+", line)
    assert (await caller.ask("{ viewer { user { name } } }"))["viewer"]["user"]["name"] == "local"


async def test_a_second_start_finds_what_the_first_one_stored(
    folder: Path, session: aiohttp.ClientSession
) -> None:
    async with serving(MIRRORGRAPH_DATA_DIR=str(folder)) as server:
        tree = await Caller(server, session).create_tree(topic="Kept")
    assert not folder.joinpath("postgres", "postmaster.pid").exists()
    began = time.monotonic()
    async with serving(MIRRORGRAPH_DATA_DIR=str(folder)) as server:
        print(f"second start: {time.monotonic() - began:.2f} s")
        assert (await Caller(server, session).read("Tree", tree))["topic"] == "Kept"
        # The demo character is made once, not at every start.
        found = await Caller(server, session).ask(
            "{ characters(first: 20) { nodes { name } totalCount } }"
        )
    assert found["characters"] == {
        "nodes": [{"name": "Ilse Marrow"}, {"name": "Ada"}],
        "totalCount": 2,
    }


WRONG_SETTINGS: dict[str, tuple[dict[str, str], str]] = {
    "a port that is none": (
        {"MIRRORGRAPH_PORT": "front door"},
        "mirrorgraph: MIRRORGRAPH_PORT: input should be a valid integer, "
        "unable to parse string as an integer\n",
    ),
    "local mode for everybody": (
        {"MIRRORGRAPH_HOST": "0.0.0.0"},
        "mirrorgraph: MIRRORGRAPH_AUTH=local serves loopback only, but MIRRORGRAPH_HOST is "
        "'0.0.0.0': set MIRRORGRAPH_HOST=127.0.0.1 or MIRRORGRAPH_AUTH=token\n",
    ),
}


@pytest.mark.parametrize("name", WRONG_SETTINGS)
async def test_a_wrong_setting_stops_the_start_with_one_line(name: str) -> None:
    environment, complaint = WRONG_SETTINGS[name]
    assert await command("serve", **environment) == (1, "", complaint)


async def test_an_unreachable_database_stops_the_start_with_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    dsn = f"postgresql://user:secret@127.0.0.1:{port}/db"
    status, printed, complaint = await command("serve", DATABASE_URL=dsn)
    assert (status, printed) == (1, "")
    assert complaint.startswith("mirrorgraph: The database does not answer")
    assert complaint.count("\n") == 1
    assert "secret" not in complaint


async def test_a_port_that_is_taken_stops_the_start_with_one_line(dsn: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, printed, complaint = await command("serve", DATABASE_URL=dsn, MIRRORGRAPH_PORT=port)
    assert (status, printed) == (1, "")
    last = complaint.splitlines()[-1]
    assert last.startswith("mirrorgraph: ")
    assert port in last
    assert "Traceback" not in complaint


async def test_a_second_server_on_a_data_folder_is_refused_and_the_first_serves_on(
    folder: Path, session: aiohttp.ClientSession
) -> None:
    async with serving(MIRRORGRAPH_DATA_DIR=str(folder)) as server:
        assert await command("serve", MIRRORGRAPH_DATA_DIR=str(folder)) == (
            1,
            "",
            f"mirrorgraph: Another Mirrorgraph (process {server.process.pid}) serves {folder}: "
            "stop it, or give this one its own folder with MIRRORGRAPH_DATA_DIR.\n",
        )
        # Other commands use the running database.
        status, printed, complaint = await command("user", "Zoe", MIRRORGRAPH_DATA_DIR=str(folder))
        assert (status, complaint) == (0, "")
        assert re.fullmatch(r"user  user_\w{26} \(Zoe\)\ntoken mg_[\w-]{43}\n", printed)
        assert await Caller(server, session).ask("{ viewer { roles } }") == {
            "viewer": {"roles": []}
        }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_idle_server_stops_at_once_and_without_complaint(
    folder: Path, number: signal.Signals
) -> None:
    async with serving(MIRRORGRAPH_DATA_DIR=str(folder)) as server:
        async with asyncio.timeout(STOP_SECONDS):
            await server.stop(number)
    assert "Traceback" not in server.output, server.output
    assert "error" not in server.output
    assert not folder.joinpath("postgres", "postmaster.pid").exists()


async def test_a_stop_keeps_what_was_streamed_and_the_next_server_goes_on(
    folder: Path, session: aiohttp.ClientSession
) -> None:
    """Rule R13."""
    environment = {"MIRRORGRAPH_DATA_DIR": str(folder), "MIRRORGRAPH_CONCURRENT_RUNS": "1"}
    by_socket, by_stream = Watched(), Watched()
    async with serving(**environment) as server:
        caller = Caller(server, session)
        cut = await caller.begin(SLOW)
        watchers = [
            asyncio.create_task(watch_socket(caller, cut.run, by_socket)),
            asyncio.create_task(watch_stream(caller, cut.run, by_stream)),
        ]
        async with asyncio.timeout(PATIENCE):
            await by_socket.has_some.wait()
            await by_stream.has_some.wait()
        waiting = await caller.begin("And then?", await caller.create_tree())
        assert (await caller.read("Run", waiting.run))["status"] == "QUEUED"
        async with asyncio.timeout(STOP_SECONDS):
            await server.stop()
            await asyncio.gather(*watchers)
    assert "Traceback" not in server.output, server.output
    assert not folder.joinpath("postgres", "postmaster.pid").exists()
    for watched in (by_socket, by_stream):
        watched.assert_ended_well()

    async with serving(**environment) as server:
        caller = Caller(server, session)
        run = await caller.read("Run", cut.run)
        whole = await caller.follow(cut.run)
        assert run["status"] == "FAILED"
        assert run["error"] == {
            "code": "SERVER_STOPPED",
            "message": "The server was stopped. The text so far is in the answer; ask again.",
        }
        assert run["node"]["status"] == "PARTIAL"
        assert run["node"]["content"] == text_of(whole) != ""
        assert run["node"]["reasoning"] == text_of(whole, "REASONING")
        for watched in (by_socket, by_stream):
            # Whoever was sent away early comes back for the rest: nothing is missed or seen twice.
            last = watched.events[-1]["seq"]
            assert [*watched.events, *await caller.follow(cut.run, last)] == whole
        events = await caller.follow(waiting.run)
        assert events[-1]["status"] == "SUCCEEDED"
        # The talk goes on behind the cut answer.
        adopted = await caller.change("NodeAdopt", node=run["node"]["id"])
        assert adopted["errors"] == []
        more = await caller.begin("Go on.", cut.tree, run["node"]["id"])
        assert (await caller.follow(more.run))[-1]["status"] == "SUCCEEDED"


async def test_a_stop_hangs_up_on_a_provider_that_is_silent(
    dsn: str, session: aiohttp.ClientSession
) -> None:
    script = Script(words=("So", " far"), fault="hang", after=2)
    async with scripted_provider(script) as provider:
        environment = {
            "DATABASE_URL": dsn,
            "MIRRORGRAPH_PROVIDER": "openai",
            "OPENAI_BASE_URL": provider.openai_base_url,
        }
        watched = Watched()
        async with serving(**environment) as server:
            caller = Caller(server, session)
            begun = await caller.begin("Well?")
            watching = asyncio.create_task(watch_socket(caller, begun.run, watched))
            async with asyncio.timeout(PATIENCE):
                await watched.has_some.wait()
            async with asyncio.timeout(STOP_SECONDS):
                await server.stop()
                await watching
                await provider.requests[0].disconnected.wait()
        watched.assert_ended_well()
        (node,) = await Ledger(dsn).rows(
            "SELECT status, content FROM tree_nodes WHERE parent_node_id = $1", begun.question
        )
        assert node["status"] == "partial"
        assert "So far".startswith(node["content"])
        assert node["content"].startswith(text_of(watched.events))


async def test_a_server_that_stops_takes_no_new_work(
    dsn: str, session: aiohttp.ClientSession
) -> None:
    """A subscriber who reads nothing holds the stop up for some seconds, in which others ask."""
    async with serving(DATABASE_URL=dsn) as server:
        caller = Caller(server, session)
        begun = await caller.begin("Tell me everything. [demo: rate=0 length=10000]")
        assert (await caller.follow(begun.run))[-1]["status"] == "SUCCEEDED"
        # More than the buffers between the two take, so that the stream waits for its reader.
        padding = " ".join(f"a{number}: at" for number in range(45))
        padded = f"subscription ($run: ID!) {{ runEvents(runId: $run) {{ seq {padding} }} }}"
        body = json.dumps({"query": padded, "variables": {"run": begun.run}}).encode()
        host, port = server.address.removeprefix("http://").split(":")
        request = (
            f"POST /graphql HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader.connect((host, int(port)))
            reader.sendall(request + body)
            await _comes_to_a_stop(caller)
            stopping = asyncio.create_task(server.stop())
            refused = await _first_refusal(caller)
            assert (refused.status, refused.codes) == (503, ["SERVER_STOPPING"])
            ready = await caller.request("GET", "/readyz")
            assert (ready.status, ready.body) == (503, "not ready\n")
            with pytest.raises(InvalidStatus) as refused_socket:
                await dialled(server)
            assert refused_socket.value.response.status_code == 503
            assert b'"SERVER_STOPPING"' in refused_socket.value.response.body
            async with asyncio.timeout(STOP_SECONDS * 2):
                await stopping
    assert "Traceback" not in server.output, server.output
    # Neither the refused handshake nor the reader who was cut is a mistake of the server's.
    assert "error" not in server.output, server.output


async def _comes_to_a_stop(caller: Caller) -> None:
    """Wait until the buffers are full: events are sent no more, though there are some left."""
    sent = series("mirrorgraph_operation_seconds_count", kind="subscription")
    earlier = 0.0
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await caller.request("GET", "/metrics")
            now = read_figures(answer.body)[sent]
            if earlier == now > 0:
                return
            earlier = now
            # Long beside what an event takes, even on a busy machine.
            await asyncio.sleep(0.5)


async def _first_refusal(caller: Caller) -> Any:
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await caller.post("{ viewer { roles } }")
            if answer.status != 200:
                return answer


async def test_a_running_run_is_cancelled_and_its_text_is_kept(caller: Caller) -> None:
    """Rule R10."""
    begun = await caller.begin(SLOW)
    watched = Watched()
    watching = asyncio.create_task(watch_socket(caller, begun.run, watched))
    async with asyncio.timeout(PATIENCE):
        await watched.has_some.wait()
        payload = await caller.change("RunCancel", run=begun.run)
        await watching
    assert payload["errors"] == []
    assert payload["run"]["id"] == begun.run
    assert watched.errors == []
    last = watched.events[-1]
    assert (last["status"], last["error"]) == ("CANCELLED", None)
    assert last["node"]["status"] == "PARTIAL"
    assert last["node"]["content"] == text_of(watched.events)
    run = await caller.read("Run", begun.run)
    assert (run["status"], run["lastSeq"]) == ("CANCELLED", last["seq"])
    # It stays as it is, and what else was asked is not touched.
    assert (await caller.change("RunCancel", run=begun.run))["run"]["status"] == "CANCELLED"
    assert await caller.follow(begun.run) == watched.events
    again = await caller.change("AnswerRegenerate", question=begun.question)
    assert again["errors"] == []
    await caller.change("RunCancel", run=again["run"]["id"])
    assert (await caller.follow(again["run"]["id"]))[-1]["status"] == "CANCELLED"


async def test_a_queued_run_is_cancelled_at_once(dsn: str, session: aiohttp.ClientSession) -> None:
    async with serving(DATABASE_URL=dsn, MIRRORGRAPH_CONCURRENT_RUNS="1") as server:
        caller = Caller(server, session)
        busy = await caller.begin(SLOW)
        await _has_started(caller, busy.run)
        queued = await caller.begin("And then?")
        watched = Watched()
        watching = asyncio.create_task(watch_socket(caller, queued.run, watched))
        payload = await caller.change("RunCancel", run=queued.run)
        assert payload == {"run": {"id": queued.run, "status": "CANCELLED"}, "errors": []}
        async with asyncio.timeout(PATIENCE):
            await watching
        assert await caller.follow(queued.run) == watched.events
        (event,) = watched.events
        assert event == {
            "__typename": "RunFinished",
            "seq": 1,
            "at": event["at"],
            "status": "CANCELLED",
            "error": None,
            "node": None,
        }
        await caller.change("RunCancel", run=busy.run)
        assert (await caller.follow(busy.run))[-1]["status"] == "CANCELLED"
        assert (await caller.read("Run", queued.run))["startedAt"] is None


async def _has_started(caller: Caller, run: str) -> None:
    async with asyncio.timeout(PATIENCE), caller.stream(variables={"run": run}) as results:
        assert event_of(await anext(results))["__typename"] == "RunStarted"


async def test_health_readiness_and_schema(caller: Caller) -> None:
    for path, text in (("/healthz", "alive\n"), ("/readyz", "ready\n")):
        answer = await caller.request("GET", path)
        assert (answer.status, answer.body) == (200, text)
    sdl = await caller.request("GET", "/schema.graphql")
    assert sdl.status == 200
    assert sdl.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert sdl.body == ROOT.joinpath("schema", "schema.graphql").read_text(encoding="utf-8")


@pytest.mark.skipif(not WEB_PAGES.is_file(), reason="needs the web pages (make web)")
@pytest.mark.parametrize("path", ["/", "/graphiql"])
async def test_a_web_page_and_all_that_it_loads_come_from_this_server(
    caller: Caller, path: str
) -> None:
    page = await caller.request("GET", path)
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.headers["Cache-Control"] == "no-cache"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    links = re.findall(r'(?:src|href)="(/assets-web/[^"]+)"', page.body)
    assert links
    assert "http" not in "".join(re.findall(r'(?:src|href)="([^"]+)"', page.body))
    for link in links:
        async with caller.session.get(caller.server.address + link) as asset:
            assert asset.status == 200
            assert asset.headers["Cache-Control"] == "public, max-age=31536000, immutable"
            assert await asset.read() != b""
    for outside in ("/assets-web/../index.html", "/assets-web/%2e%2e/%2e%2e/package.json", "/x"):
        assert (await caller.request("GET", outside)).status == 404


async def test_without_its_web_pages_the_server_serves_the_api(
    dsn: str, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with serving(DATABASE_URL=dsn, MIRRORGRAPH_WEB_DIR=str(tmp_path)) as server:
        caller = Caller(server, session)
        page = await caller.request("GET", "/")
        assert page.status == 200
        assert "Its web pages were not built" in page.body
        assert (await caller.request("GET", "/graphiql")).status == 404
        assert await caller.ask("{ viewer { roles } }") == {"viewer": {"roles": []}}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", ""])
async def test_local_mode_refuses_another_host_name(
    caller: Caller, ledger: Ledger, host: str
) -> None:
    """A page that lets its own name lead to this machine must not act as the user."""
    before = await ledger.fingerprint()
    mutation = 'mutation { embryoCreate(input: {identity: {name: "X"}}) { embryo { id } } }'
    refused = await caller.post(mutation, headers={"Host": host})
    assert (refused.status, refused.body) == (400, "Invalid host header")
    assert await ledger.fingerprint() == before
    for name in ("127.0.0.1", "localhost", "LOCALHOST:1"):
        assert (await caller.post("{ viewer { roles } }", headers={"Host": name})).status == 200


@pytest.mark.parametrize(("host", "shown"), [("::1", "[::1]"), ("127.0.0.2", "127.0.0.2")])
async def test_local_mode_serves_other_names_of_this_machine(
    dsn: str, session: aiohttp.ClientSession, host: str, shown: str
) -> None:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, 0), family=family).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    async with serving(DATABASE_URL=dsn, MIRRORGRAPH_HOST=host) as server:
        assert server.address.startswith(f"http://{shown}:")
        data = await Caller(server, session).ask("{ viewer { roles } }")
        assert data == {"viewer": {"roles": []}}


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://127.0.0.1:1", "http://localhost.evil.example", "null"],
)
async def test_a_socket_from_another_origin_is_refused(server: ServerProcess, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with dialled(server, origin=origin):
            pass
    assert refused.value.response.status_code == 403


async def test_a_socket_from_another_host_name_is_refused(server: ServerProcess) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    with pytest.raises(InvalidStatus) as refused:
        async with dialled("ws://evil.example/graphql", host=host, port=int(port)):
            pass
    assert refused.value.response.status_code == 400


async def test_a_socket_from_the_own_origin_is_taken(server: ServerProcess) -> None:
    async with dialled(server, origin=server.address) as connection:
        await connection.send('{"type": "connection_init"}')
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}


async def test_origins_that_the_settings_name_may_open_sockets_and_read_answers(
    dsn: str, session: aiohttp.ClientSession
) -> None:
    origin = "https://front.example"
    async with serving(DATABASE_URL=dsn, MIRRORGRAPH_ALLOWED_ORIGINS=origin) as server:
        caller = Caller(server, session)
        async with dialled(server, origin=origin) as connection:
            await connection.send('{"type": "connection_init"}')
            assert json.loads(await connection.recv()) == {"type": "connection_ack"}
        answer = await caller.post("{ viewer { roles } }", headers={"Origin": origin})
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        asked = {
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,idempotency-key,graphql-preflight",
        }
        preflight = await caller.request("OPTIONS", headers=asked)
        assert (preflight.status, preflight.headers["Access-Control-Allow-Origin"]) == (200, origin)
        asked["Origin"] = "https://evil.example"
        refused = await caller.request("OPTIONS", headers=asked)
        assert refused.status == 400
        assert "Access-Control-Allow-Origin" not in refused.headers


LISTENERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND (query ILIKE 'LISTEN %' OR query = 'SELECT 1')
"""


async def _listeners(ledger: Ledger) -> set[int]:
    return {row["pid"] for row in await ledger.rows(LISTENERS)}


async def test_streams_end_when_announcements_are_lost_and_miss_nothing_when_resumed(
    cluster: Cluster, dsn: str, session: aiohttp.ClientSession
) -> None:
    """Rules R11, T11, T12.

    One server works, the other passes on what it hears, until it hears nothing.
    """
    ledger = Ledger(dsn)
    words = tuple(f"{number} " for number in range(40))
    script = Script(words=words, fault="hang", after=20)
    async with contextlib.AsyncExitStack() as stack:
        provider = await stack.enter_async_context(scripted_provider(script))
        working = await stack.enter_async_context(
            serving(
                DATABASE_URL=dsn,
                MIRRORGRAPH_PROVIDER="openai",
                OPENAI_BASE_URL=provider.openai_base_url,
            )
        )
        before = await _listeners(ledger)
        # Another provider's server leaves the run alone.
        passing = await stack.enter_async_context(serving(DATABASE_URL=dsn))
        (listener,) = await _listeners(ledger) - before
        caller = Caller(passing, session)
        begun = await Caller(working, session).begin("Count, please.")
        watched = Watched()
        async with asyncio.timeout(PATIENCE), caller.socket() as connection:
            operation = await connection.start(RUN_EVENTS, {"run": begun.run})
            while len(watched.events) < 4 + 20:
                watched.take(await anext(operation))
            assert await ledger.value("SELECT pg_terminate_backend($1)", listener)
            async for result in operation:
                watched.take(result)
            assert watched.errors == []
            assert [error["extensions"] for error in operation.errors] == [
                {"code": "STREAM_INTERRUPTED", "retryable": True}
            ]
            # The end is announced while nobody hears it.
            resumed = await connection.start(
                RUN_EVENTS, {"run": begun.run, "after": watched.events[-1]["seq"]}
            )
            provider.resume()
            rest = [event_of(result) async for result in resumed]
        events = [*watched.events, *rest]
        assert numbers_of(events) == list(range(1, len(events) + 1))
        assert text_of(events) == "".join(words)
        assert events[-1]["status"] == "SUCCEEDED"
        assert await Caller(working, session).follow(begun.run) == events
        # It hears again.
        async with asyncio.timeout(PATIENCE):
            while (await caller.request("GET", "/readyz")).status != 200:
                pass
        other = await Caller(working, session).begin("Once more.")
        async with (
            asyncio.timeout(PATIENCE),
            caller.stream(variables={"run": other.run}) as results,
        ):
            seen = 0
            while seen < 4 + 20:
                seen = event_of(await anext(results))["seq"]
            provider.resume()
            *_, last = [event_of(result) async for result in results]
        assert last["status"] == "SUCCEEDED"


async def test_a_run_can_be_cancelled_from_another_server(
    dsn: str, session: aiohttp.ClientSession
) -> None:
    async with (
        serving(DATABASE_URL=dsn) as working,
        serving(DATABASE_URL=dsn, MIRRORGRAPH_PROVIDER="openai") as other,
    ):
        begun = await Caller(working, session).begin(SLOW)
        await _has_started(Caller(other, session), begun.run)
        payload = await Caller(other, session).change("RunCancel", run=begun.run)
        assert payload["errors"] == []
        events = await Caller(other, session).follow(begun.run)
        assert events[-1]["status"] == "CANCELLED"
        assert events == await Caller(working, session).follow(begun.run)
        assert (await Caller(other, session).ask(READS, {"id": begun.run}, "Run"))["run"][
            "status"
        ] == "CANCELLED"
