"""How the end of a sign-in is heard of, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from db.engine import Database
from db.settings import Settings
from resolvers.context import Engine
from schema.signing_in import SignedIn
from services import accounts
from services.access import Viewer
from services.hub import Hub

PATIENCE = 10.0


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture
def hub() -> Hub:
    """Hears what tests publish, and nothing of the database."""
    return Hub()


@pytest.fixture
async def signed_in(database: Database, hub: Hub) -> SignedIn:
    async with database.writing() as writing:
        user = await accounts.ensure_user(writing, "Ada")
        token = await accounts.issue_token(writing, user.id)
    nobody_works: Any = None
    engine = Engine(Settings(), database, hub, nobody_works, nobody_works, nobody_works)
    return SignedIn(engine, Viewer(user.id), lambda: None, token)


async def revoke(database: Database, signed_in: SignedIn) -> None:
    async with database.writing() as writing:
        assert await accounts.revoke_tokens(writing, signed_in.identity) == 1


async def test_a_change_is_listened_for_before_the_sign_in_is_looked_up(
    database: Database, hub: Hub, signed_in: SignedIn
) -> None:
    """One that falls in between would be missed for ever."""
    async with database.writing() as writing:
        # Whoever looks up a sign-in now waits.
        await writing._connection.execute("LOCK TABLE login_sessions IN ACCESS EXCLUSIVE MODE")
        ending = asyncio.create_task(signed_in.signed_out())
        await until(lambda: hub.open_subscriptions == 1)
    await revoke(database, signed_in)
    hub.publish(accounts.sign_in_topic(signed_in.identity))
    async with asyncio.timeout(PATIENCE):
        await ending
    assert hub.open_subscriptions == 0


async def test_a_sign_in_is_looked_up_again_when_announcements_were_lost(
    database: Database, hub: Hub, signed_in: SignedIn
) -> None:
    ending = asyncio.create_task(signed_in.signed_out())
    await until(lambda: hub.open_subscriptions == 1)
    await revoke(database, signed_in)
    hub.interrupt("STREAM_INTERRUPTED", "Events can no longer be heard here.")
    async with asyncio.timeout(PATIENCE):
        await ending
    assert hub.open_subscriptions == 0


async def test_a_server_that_stops_waits_for_no_sign_in(hub: Hub, signed_in: SignedIn) -> None:
    ending = asyncio.create_task(signed_in.signed_out())
    await until(lambda: hub.open_subscriptions == 1)
    hub.close("SERVER_STOPPING", "The server is stopping.")
    async with asyncio.timeout(PATIENCE):
        await hub.wait_until_quiet()
    ending.cancel()
    await asyncio.wait([ending])
    assert ending.cancelled()
