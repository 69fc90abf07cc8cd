"""What the server writes of the operations that it carries out, and what it never writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest

from tests.clusters import Cluster
from tests.conftest import ServerProcess, serving
from tests.e2e.callers import PATIENCE, Answer, Caller, Json, command
from tests.e2e.ledgers import Ledger

# Stands in variables and documents; no line may hold it.
PRIVATE = "MarkerOfWhatIsPrivate"
STREAM = {"Accept": "text/event-stream"}
PARTS = {"Accept": "multipart/mixed;subscriptionSpec=1.0, application/json"}

READ = f'query Read($id: ID!) {{ node(id: $id) {{ id }} other: node(id: "{PRIVATE}") {{ id }} }}'
CHANGE = """
mutation Change($identity: EmbryoIdentityInput!) {
  embryoCreate(input: { identity: $identity }) { embryo { id } errors { code } }
}
"""
FOLLOW = "subscription Follow($run: ID!) { runEvents(runId: $run) { seq } }"
BROKEN = "query Broken { embryos(first: 1) { nodes { id } } }"
# Those of the requests below that come to no operation.
UNEXECUTED = ("syntax", "unknown")


@dataclass
class Logged:
    """A server that has stopped since, and what it answered."""

    token: str
    answers: dict[str, Answer] = field(default_factory=dict)
    output: str = ""

    @property
    def lines(self) -> list[Json]:
        """What was written to standard error, each line read as JSON."""
        return [json.loads(line) for line in self.output.splitlines() if " ready at " not in line]

    @property
    def operations(self) -> list[Json]:
        return [line for line in self.lines if line["event"] == "operation"]

    def request_id(self, name: str) -> str:
        return self.answers[name].headers["x-request-id"]


async def ask_everything(
    server: ServerProcess, session: aiohttp.ClientSession, token: str
) -> Logged:
    """Operations of all kinds and endings, by every transport."""
    logged = Logged(token)
    caller = Caller(server, session, token)

    async def post(name: str, query: str, headers: dict[str, str], **variables: object) -> None:
        logged.answers[name] = await caller.post(query, variables, headers=headers)

    await post("read", READ, {}, id=PRIVATE)
    await post("change", CHANGE, {}, identity={"name": PRIVATE, "description": PRIVATE})
    await post("sse", FOLLOW, STREAM, run=PRIVATE)
    await post("parts", FOLLOW, PARTS, run=PRIVATE)
    await post("refused", CHANGE, {}, identity={"name": {PRIVATE: PRIVATE}})
    await post("syntax", f"{{ {PRIVATE} !", {})
    await post("unknown", f"{{ {PRIVATE} }}", {})
    batch = [
        {"query": READ, "variables": {"id": PRIVATE}},
        {"query": "{"},
        {"query": "{ viewer { roles } }"},
    ]
    logged.answers["batch"] = await caller.request("POST", json=batch)
    async with caller.socket() as client:
        await client.ask("query OverSocket { viewer { user { name } } }")
    stranger = caller.as_(PRIVATE)
    assert (await stranger.post(READ, {"id": PRIVATE})).status == 401
    return logged


@pytest.fixture(scope="module")
async def logs(
    cluster: Cluster, session: aiohttp.ClientSession
) -> AsyncIterator[dict[str, Logged]]:
    """The same was asked of two servers of one database, which log at different levels."""
    dsn = await cluster.new_database()
    status, printed, _ = await command("user", "ada", DATABASE_URL=dsn)
    assert status == 0
    token = printed.split()[-1]
    settings = {
        "DATABASE_URL": dsn,
        "MIRRORGRAPH_AUTH": "token",
        "MIRRORGRAPH_LOG_FORMAT": "json",
    }
    async with (
        serving(**settings, MIRRORGRAPH_LOG_LEVEL="debug") as talkative,
        serving(**settings, MIRRORGRAPH_LOG_LEVEL="info") as usual,
    ):
        servers = {"debug": talkative, "info": usual}
        logs = {
            level: await ask_everything(server, session, token) for level, server in servers.items()
        }
        await Ledger(dsn).run("ALTER TABLE embryo_drafts RENAME TO elsewhere")
        for level, server in servers.items():
            broken = await Caller(server, session, token).post(BROKEN)
            logs[level].answers["broken"] = broken
    for level, server in servers.items():
        logs[level].output = server.output
    yield logs
    await cluster.drop(dsn)


def test_at_debug_each_operation_is_one_line_of_json(logs: dict[str, Logged]) -> None:
    logged = logs["debug"]
    operations = logged.operations
    for line in operations:
        assert line.pop("document").startswith("sha256:")
        assert 0 <= line.pop("seconds") < PATIENCE
        assert line.pop("timestamp").endswith("Z")
        assert (line.pop("event"), line.pop("level")) == ("operation", "debug")
    # The socket's operation has an id that nobody is told of, since it went well.
    assert operations[-2].pop("request_id")
    ids = {name: logged.request_id(name) for name in logged.answers if name not in UNEXECUTED}
    batched = ids["batch"].split(", ")
    assert operations == [
        {"kind": "query", "name": "Read", "outcome": "partial", "request_id": ids["read"]},
        {"kind": "mutation", "name": "Change", "outcome": "ok", "request_id": ids["change"]},
        {"kind": "subscription", "name": "Follow", "outcome": "failed", "request_id": ids["sse"]},
        {"kind": "subscription", "name": "Follow", "outcome": "failed", "request_id": ids["parts"]},
        {"kind": "mutation", "name": "Change", "outcome": "refused", "request_id": ids["refused"]},
        {"kind": "query", "name": "Read", "outcome": "partial", "request_id": batched[0]},
        {"kind": "query", "name": None, "outcome": "ok", "request_id": batched[1]},
        {"kind": "query", "name": "OverSocket", "outcome": "ok"},
        {"kind": "query", "name": "Broken", "outcome": "failed", "request_id": ids["broken"]},
    ]


def test_at_info_no_operation_is_a_line(logs: dict[str, Logged]) -> None:
    events = [line["event"] for line in logs["info"].lines]
    assert events == ["ready", "an operation failed"]


@pytest.mark.parametrize("level", ["debug", "info"])
def test_a_masked_error_is_in_the_log_under_the_id_that_its_client_got(
    logs: dict[str, Logged], level: str
) -> None:
    logged = logs[level]
    (error,) = logged.answers["broken"].body["errors"]
    assert error["extensions"] == {
        "code": "INTERNAL",
        "requestId": logged.request_id("broken"),
    }
    (line,) = [each for each in logged.lines if each["level"] == "error"]
    assert line["request_id"] == logged.request_id("broken")
    assert line["path"] == ["embryos"]
    assert "UndefinedTableError" in line["exception"]


@pytest.mark.parametrize("level", ["debug", "info"])
def test_nothing_that_is_written_holds_a_token_a_variable_or_a_document(
    logs: dict[str, Logged], level: str
) -> None:
    logged = logs[level]
    for private in (PRIVATE, logged.token, "Bearer", "query Read", "embryoCreate"):
        assert private not in logged.output, private


def test_every_answer_that_was_executed_names_its_request(logs: dict[str, Logged]) -> None:
    answers = logs["debug"].answers
    ids = [
        each
        for name, answer in answers.items()
        for each in answer.headers.get("x-request-id", "").split(", ")
        if name not in UNEXECUTED
    ]
    assert all(len(each) == 32 for each in ids)
    assert len(set(ids)) == len(ids)
    assert not [name for name in UNEXECUTED if "x-request-id" in answers[name].headers]
