"""Which media types a client reads, in the order in which it wants them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

RESPONSE_JSON = "application/graphql-response+json"
JSON = "application/json"
EVENT_STREAM = "text/event-stream"
MULTIPART = "multipart/mixed"

# What is chosen among types that a wildcard leaves open.
_PREFERRED = (JSON, RESPONSE_JSON)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a client reads, most wanted first."""

    types: tuple[str, ...]

    def single(self) -> str | None:
        """How to send one response; None when the client reads none of the ways."""
        return next((each for each in self.types if each in _SINGLE), None)

    def stream(self) -> str | None:
        """How to send many; None when the client reads single responses alone."""
        return next((each for each in self.types if each in _STREAMS), None)


_STREAMS = {EVENT_STREAM, MULTIPART}
# A client that reads subscriptions in parts takes single responses as JSON.
_SINGLE = {RESPONSE_JSON, JSON, EVENT_STREAM}


@functools.lru_cache(maxsize=256)
def accepted(header: str | None) -> Accepted:
    """Read an Accept header: by quality, then by the order of mention. Without one, JSON."""
    if header is None or not header.strip():
        return Accepted((JSON,))
    ranges = []
    for part in header.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        ranges.append((_quality(parameters), name, _meant(name, parameters)))
    # What a type's own name says of it goes before what a wildcard does.
    named = {name for _, name, _ in ranges}
    wanted = [
        (quality, each)
        for quality, name, meant in ranges
        for each in meant
        if quality > 0 and (each == name or each not in named)
    ]
    # Sorting is stable: among equals the first mentioned stays first.
    wanted.sort(key=lambda each: each[0], reverse=True)
    return Accepted(tuple(dict.fromkeys(each for _, each in wanted)))


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _meant(name: str, parameters: list[str]) -> tuple[str, ...]:
    if name in {"*/*", "application/*"}:
        return _PREFERRED
    if name == "text/*":
        return (EVENT_STREAM,)
    if name == MULTIPART:
        # Other specifications of multipart responses, such as deferred parts, are not spoken.
        spoken = any(each.replace('"', "") == "subscriptionspec=1.0" for each in parameters)
        return (MULTIPART,) if spoken else ()
    return (name,)
