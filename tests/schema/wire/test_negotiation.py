"""How Accept headers are read."""

from __future__ import annotations

import pytest

from schema.wire.negotiation import EVENT_STREAM, JSON, MULTIPART, RESPONSE_JSON, accepted

PARTS = f"{MULTIPART};subscriptionSpec=1.0"


@pytest.mark.parametrize(
    ("header", "types"),
    [
        # Without a wish, the type that every client reads.
        (None, (JSON,)),
        ("", (JSON,)),
        ("  ", (JSON,)),
        # Named types, in the order of mention.
        (JSON, (JSON,)),
        (RESPONSE_JSON, (RESPONSE_JSON,)),
        (f"{RESPONSE_JSON}, {JSON}", (RESPONSE_JSON, JSON)),
        (f"{JSON},{RESPONSE_JSON}", (JSON, RESPONSE_JSON)),
        (f" {JSON.upper()} ", (JSON,)),
        (f"{JSON};charset=utf-8", (JSON,)),
        (f"{JSON}, {JSON}", (JSON,)),
        ("text/html", ("text/html",)),
        # By quality.
        (f"{JSON};q=0.5, {RESPONSE_JSON};q=0.7", (RESPONSE_JSON, JSON)),
        (f"{JSON};q=0.5, {RESPONSE_JSON}", (RESPONSE_JSON, JSON)),
        (f"{JSON} ; q=0.5 , {RESPONSE_JSON} ; q=1.0", (RESPONSE_JSON, JSON)),
        (f"{JSON};Q=0.1, {RESPONSE_JSON};q=0.2", (RESPONSE_JSON, JSON)),
        (f"{JSON};charset=utf-8;q=0.1, {RESPONSE_JSON};q=0.2", (RESPONSE_JSON, JSON)),
        (f"{JSON};q=0.500, {RESPONSE_JSON};q=0.5", (JSON, RESPONSE_JSON)),
        # Not wanted, or not understood.
        (f"{JSON};q=0, {RESPONSE_JSON}", (RESPONSE_JSON,)),
        (f"{JSON};q=0.0", ()),
        (f"{JSON};q=x, {RESPONSE_JSON};q=nan", ()),
        (f"{JSON};q=-1", ()),
        # Wildcards.
        ("*/*", (JSON, RESPONSE_JSON)),
        ("application/*", (JSON, RESPONSE_JSON)),
        ("text/*", (EVENT_STREAM,)),
        ("*/*;q=0", ()),
        (f"{RESPONSE_JSON}, */*", (RESPONSE_JSON, JSON)),
        (f"*/*, {RESPONSE_JSON}", (JSON, RESPONSE_JSON)),
        (f"*/*;q=0.1, {RESPONSE_JSON}", (RESPONSE_JSON, JSON)),
        (f"text/html, {RESPONSE_JSON};q=0.9, */*;q=0.8", ("text/html", RESPONSE_JSON, JSON)),
        # A type's own name goes before a wildcard.
        (f"{JSON};q=0, */*", (RESPONSE_JSON,)),
        (f"*/*, {JSON};q=0", (RESPONSE_JSON,)),
        (f"{JSON};q=0.1, */*;q=0.9", (RESPONSE_JSON, JSON)),
        (f"{JSON};q=0, {RESPONSE_JSON};q=0, */*", ()),
        (f"{EVENT_STREAM};q=0, text/*", ()),
        # Parts, of the one specification that is spoken.
        (MULTIPART, ()),
        (PARTS, (MULTIPART,)),
        (f'{MULTIPART}; boundary="-"; subscriptionSpec="1.0"', (MULTIPART,)),
        (f"{MULTIPART};subscriptionSpec=2.0", ()),
        (f"{MULTIPART};deferSpec=20220824, {JSON}", (JSON,)),
        (f"{PARTS}, {RESPONSE_JSON}, {JSON}", (MULTIPART, RESPONSE_JSON, JSON)),
        (f"{MULTIPART};q=0, {PARTS}, {JSON}", (MULTIPART, JSON)),
        (f"{MULTIPART};deferSpec=20220824, {PARTS}, {JSON}", (MULTIPART, JSON)),
        # Nonsense.
        (",,;,", ("",)),
        (f"x, {JSON}", ("x", JSON)),
    ],
)
def test_types_in_the_order_in_which_they_are_wanted(
    header: str | None, types: tuple[str, ...]
) -> None:
    assert accepted(header).types == types


@pytest.mark.parametrize(
    ("header", "single", "stream"),
    [
        (None, JSON, None),
        ("*/*", JSON, None),
        (RESPONSE_JSON, RESPONSE_JSON, None),
        ("text/html", None, None),
        (EVENT_STREAM, EVENT_STREAM, EVENT_STREAM),
        (PARTS, None, MULTIPART),
        (f"{JSON}, {EVENT_STREAM}", JSON, EVENT_STREAM),
        (f"{EVENT_STREAM}, {JSON}", EVENT_STREAM, EVENT_STREAM),
        (f"{EVENT_STREAM};q=0.1, {JSON}", JSON, EVENT_STREAM),
        (f"{PARTS}, {RESPONSE_JSON}, {JSON};q=0.9", RESPONSE_JSON, MULTIPART),
        (f"{JSON}, {EVENT_STREAM}, {PARTS}", JSON, EVENT_STREAM),
        (f"{JSON}, {PARTS}, {EVENT_STREAM}", JSON, MULTIPART),
        (f"text/html, {RESPONSE_JSON}", RESPONSE_JSON, None),
    ],
)
def test_how_one_response_and_how_many_are_sent(
    header: str | None, single: str | None, stream: str | None
) -> None:
    accept = accepted(header)
    assert (accept.single(), accept.stream()) == (single, stream)
