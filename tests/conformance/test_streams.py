"""The clients graphql-sse, in both of its modes, and graphql-ws."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.callers import Json, node_lines
from tests.schema.wire.serving import Wire
from tests.schema.wire.talking import figure, until

MENDABLE = {
    "message": "Mend this.",
    "locations": [{"line": 1, "column": 9}],
    "path": ["refused"],
    "extensions": {"code": "MEND_THIS", "argument": "argument"},
}
INVALID = {
    "message": "Cannot query field 'xyz' on type 'Query'.",
    "locations": [{"line": 1, "column": 3}],
    "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"},
}
# By client: the kind of its connections, and what it makes of a document that is not valid.
CLIENTS = {
    "graphql-sse": ("sse", {"errors": [INVALID]}),
    # The answer to the POST says so, not the stream, as with the reference server.
    "graphql-sse, single connection": ("sse", {"status": 422}),
    "graphql-ws": ("websocket", {"thrown": [INVALID]}),
}


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_gets_results_and_errors_and_can_break_off(wire: Wire, client: str) -> None:
    """Rules T2, T16, T43."""
    probe = wire.probe
    cleaned = probe.cleaned
    transport, invalid = CLIENTS[client]
    steps: dict[str, list[Json]] = {}
    while_gated = 0.0
    async for line in node_lines("streams.mjs", url=wire.url, socketUrl=wire.socket_url, by=client):
        steps[line["step"]] = line["results"]
        if line["step"] == "early break":
            # Three have come to their end: count, breaking, and the count that was broken off.
            await until(lambda: probe.cleaned == cleaned + 3)
            assert probe.live == 1
            while_gated = figure(wire, "connections", transport=transport)
            probe.gate.release()
    first, broken = steps.pop("broken source")
    assert first == {"data": {"breaking": 0}}
    errors = broken.get("thrown") or broken["errors"]
    assert [each["extensions"]["code"] for each in errors] == ["INTERNAL"]
    assert steps == {
        "query": [{"data": {"hello": "hello world"}}],
        "mutation": [{"data": {"set": 7}}],
        "subscription": [{"data": {"count": number}} for number in (1, 2, 3)],
        "field error": [{"data": {"hello": "hello world", "refused": None}, "errors": [MENDABLE]}],
        "invalid": [invalid],
        "early break": [{"data": {"count": 1}}, {"data": {"count": 2}}],
        "gated": [{"data": {"gated": {"number": 0}}}],
    }
    assert while_gated == 1
    await until(lambda: probe.live == 0 and not figure(wire, "connections", transport=transport))


class Outage:
    """Passes TCP on to a server, and can be away for a while."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()
        self.port = 0

    async def begin(self) -> None:
        """Listen; on the same port as before if there was one."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def end(self) -> None:
        """Break all connections off and take no more."""
        assert self._server is not None
        self._server.close()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connect(reader, writer))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, far_writer))
                group.create_task(self._pass(far_reader, writer))
        finally:
            writer.transport.abort()
            far_writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()


async def test_twenty_operations_come_back_each_once_after_every_outage(wire: Wire) -> None:
    """Rule T6."""
    count, rounds = 20, 3
    probe = wire.probe
    opened = probe.opened
    outage = Outage(int(wire.address.rpartition(":")[2]))
    await outage.begin()
    seen: list[int] = []
    refusals: list[Json] = []

    async def read() -> None:
        async for line in node_lines(
            "reconnect.mjs",
            socketUrl=f"ws://127.0.0.1:{outage.port}/graphql",
            query="subscription { gated { number } }",
            count=count,
            results=rounds,
        ):
            if "refused" in line:
                refusals.append(line)
            else:
                assert line["result"] == {"data": {"gated": {"number": 0}}}
                seen.append(line["index"])

    async def be_away() -> None:
        await outage.end()
        await until(lambda: probe.live == 0)
        so_far = len(refusals)
        await until(lambda: len(refusals) >= so_far + 3)
        await outage.begin()

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        for turn in range(rounds):
            if turn:
                await be_away()
            await until(lambda: probe.live == count)
            seen.clear()
            for _ in range(count):
                probe.gate.release()
            await until(lambda: len(seen) == count)
            assert sorted(seen) == list(range(count))
    assert probe.opened == opened + count * rounds
    await until(lambda: probe.live == 0)
    await outage.end()
