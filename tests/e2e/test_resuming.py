"""A client that was cut off, and comes back for what happened meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.callers import PATIENCE, RUN_EVENTS, Caller, event_of, numbers_of
from tests.schema.wire.leaving import ByEvents, ByOneStream, ByParts, BySocket, Client

LONG_RUN = "Tell me everything. [demo: rate=400 length=300]"
# How much is seen before the client is cut off, and how much more happens at the least.
SEEN, MISSED = 20, 50


@pytest.mark.parametrize("transport", [ByEvents, ByParts, ByOneStream, BySocket])
async def test_a_client_that_was_away_gets_exactly_what_it_missed(
    caller: Caller, transport: type[Client]
) -> None:
    """Rule T7. It is cut off in the middle of the run, and comes back before the end."""
    begun = await caller.begin(LONG_RUN)
    # Sees everything while it happens.
    watcher = asyncio.create_task(caller.follow(begun.run))
    client = transport(caller.server.address)
    await client.begin(RUN_EVENTS, {"run": begun.run})
    while (await client.heard_number()) < SEEN:
        pass
    last = await client.heard_number()
    await client.abort()
    async with asyncio.timeout(PATIENCE), caller.stream(variables={"run": begun.run}) as results:
        while event_of(await anext(results))["seq"] < last + MISSED:
            pass
    async with caller.socket() as socket:
        rest = await socket.follow(begun.run, last)
        assert rest == await caller.follow(begun.run, last)
    whole = await watcher
    assert numbers_of(whole) == list(range(1, len(whole) + 1))
    assert rest == whole[last:]
    assert len(rest) > MISSED
    await client.gone()
