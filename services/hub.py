"""Wakes whoever waits for something to change: in this process at once, in others by NOTIFY.

A message is a topic and nothing else: whoever wakes reads again what it may see. A subscription is
one flag, so a slow reader costs nothing and delays nobody.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from db.reading import Writing
from services.errors import Unavailable

# The one NOTIFY channel of all servers on a database; the payload is the topic.
CHANNEL = "mirrorgraph"


async def announce(writing: Writing, topic: str) -> None:
    """Wake the topic's subscribers on every server once the transaction commits.

    NOTIFY takes a global lock at commit, so: once per batch, never per token.
    """
    await writing.notify(CHANNEL, topic)


@dataclass(eq=False, slots=True)
class Subscription:
    """One waiter for a topic. `close` is a plain call: it also works while being cancelled."""

    topic: str
    _hub: Hub
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _interruption: Unavailable | None = None

    async def wait(self) -> None:
        """Return when the topic was published since the last return.

        Raises Unavailable when the hub can no longer promise to wake: the stream must end.
        """
        await self._woken.wait()
        self._woken.clear()
        if self._interruption is not None:
            raise self._interruption

    def wake(self) -> None:
        """Let `wait` return."""
        self._woken.set()

    def interrupt(self, interruption: Unavailable) -> None:
        """Let `wait` raise."""
        self._interruption = interruption
        self._woken.set()

    def close(self) -> None:
        """Stop listening; harmless when closed already."""
        self._hub.forget(self)


class Hub:
    """All subscriptions of this process."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._closing: Unavailable | None = None
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    def subscribe(self, topic: str) -> Subscription:
        """Begin to listen; wakes are kept from now on."""
        subscription = Subscription(topic, self)
        if self._closing is not None:
            subscription.interrupt(self._closing)
        self._subscriptions.setdefault(topic, set()).add(subscription)
        self._is_quiet.clear()
        return subscription

    def publish(self, topic: str) -> None:
        """Wake the topic's subscribers in this process."""
        for subscription in self._subscriptions.get(topic, ()):
            subscription.wake()

    def publish_all(self) -> None:
        """Wake every subscriber: something may have been announced while nobody could hear it."""
        for subscriptions in self._subscriptions.values():
            for subscription in subscriptions:
                subscription.wake()

    def interrupt(self, code: str, message: str) -> None:
        """End every open subscription with a retryable error."""
        interruption = Unavailable(message, code)
        for subscriptions in self._subscriptions.values():
            for subscription in subscriptions:
                subscription.interrupt(interruption)

    def close(self, code: str, message: str) -> None:
        """End every subscription, and each that is yet to come."""
        self._closing = Unavailable(message, code)
        self.interrupt(code, message)

    def forget(self, subscription: Subscription) -> None:
        """Drop a subscription."""
        subscriptions = self._subscriptions.get(subscription.topic)
        if subscriptions is not None:
            subscriptions.discard(subscription)
            if not subscriptions:
                del self._subscriptions[subscription.topic]
        if not self._subscriptions:
            self._is_quiet.set()

    async def wait_until_quiet(self) -> None:
        """Return when no subscription is open."""
        await self._is_quiet.wait()

    @property
    def open_subscriptions(self) -> int:
        """How many are open."""
        return sum(len(each) for each in self._subscriptions.values())
