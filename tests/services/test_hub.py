from __future__ import annotations

import asyncio

import pytest

from db.engine import Database
from db.listening import Listener
from services.errors import Unavailable
from services.hub import CHANNEL, Hub, announce


async def test_a_wake_is_kept_until_it_is_waited_for() -> None:
    hub = Hub()
    subscription = hub.subscribe("a")
    hub.publish("a")
    hub.publish("a")
    async with asyncio.timeout(1):
        await subscription.wait()
    waiting = asyncio.create_task(subscription.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    hub.publish("b")
    await asyncio.sleep(0)
    assert not waiting.done()
    hub.publish("a")
    await waiting


async def test_closing_forgets_the_subscription_at_once_and_twice_is_harmless() -> None:
    hub = Hub()
    subscriptions = [hub.subscribe("a"), hub.subscribe("a"), hub.subscribe("b")]
    assert hub.open_subscriptions == 3
    for subscription in subscriptions:
        subscription.close()
        subscription.close()
    assert hub.open_subscriptions == 0
    async with asyncio.timeout(1):
        await hub.wait_until_quiet()


async def test_an_interruption_ends_what_is_open_and_not_what_comes_later() -> None:
    hub = Hub()
    early = hub.subscribe("a")
    hub.interrupt("STREAM_INTERRUPTED", "Come back.")
    with pytest.raises(Unavailable) as caught:
        await early.wait()
    assert (caught.value.code, caught.value.is_retryable) == ("STREAM_INTERRUPTED", True)
    late = hub.subscribe("a")
    hub.publish("a")
    async with asyncio.timeout(1):
        await late.wait()


async def test_a_closed_hub_ends_what_comes_later_too() -> None:
    hub = Hub()
    hub.close("SERVER_STOPPING", "Come back.")
    with pytest.raises(Unavailable) as caught:
        await hub.subscribe("a").wait()
    assert caught.value.code == "SERVER_STOPPING"


async def test_announcements_are_heard_in_another_process_after_the_commit_alone(
    database: Database,
) -> None:
    hub = Hub()
    listener = Listener(database.dsn, CHANNEL, hub.publish, lambda: None)
    await listener.start()
    try:
        subscription = hub.subscribe("topic")
        heard = asyncio.create_task(subscription.wait())
        async with database.writing() as writing:
            await announce(writing, "topic")
            async with database.writing() as other:
                # A whole transaction of somebody else passes, and nothing is heard.
                await announce(other, "another topic")
            assert not heard.done()
        async with asyncio.timeout(5):
            await heard
    finally:
        await listener.close()
