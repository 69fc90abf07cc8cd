"""From the text of a card to its object."""

from __future__ import annotations

import base64
import json

import pytest

from services.cards import CardWarning, read_card
from tests.services.cards.making import (
    MINIMAL_FIELDS,
    encoded,
    found,
    png,
    read,
    refused,
    text_chunk,
    v2,
)

PLAIN = encoded(v2(description="ÿ?>ÿ?>~~~ 😀 what"))


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.rstrip(b"="),
        PLAIN.replace(b"+", b"-").replace(b"/", b"_").rstrip(b"="),
        b"\r\n".join(PLAIN[at : at + 76] for at in range(0, len(PLAIN), 76)),
        b"!" + PLAIN[:9] + b"\xff*" + PLAIN[9:],
        PLAIN[:-4].rstrip(b"=") + b" " + PLAIN[-4:],
    ],
    ids=["no padding", "url-safe", "line breaks", "stray characters", "blank"],
)
def test_base64_is_read_leniently_with_a_warning(text: bytes) -> None:
    """Rule K3."""
    assert PLAIN.endswith(b"=")
    card = read_card(png(text_chunk(b"chara", text)))
    assert card.fields["description"] == "ÿ?>ÿ?>~~~ 😀 what"
    assert found(card) == [("BASE64_MENDED", "")]


def test_blanks_around_base64_are_not_worth_a_warning() -> None:
    card = read_card(png(text_chunk(b"chara", b"\n" + PLAIN + b"\r\n\0")))
    assert found(card) == []


def test_base64_url_safe_letters_stand_for_their_own() -> None:
    payload = json.dumps(v2(description="??>>~~ÿÿ"), ensure_ascii=False).encode()
    text = base64.urlsafe_b64encode(payload)
    assert b"-" in text or b"_" in text
    card = read_card(png(text_chunk(b"chara", text)))
    assert card.fields["description"] == "??>>~~ÿÿ"


def test_plain_json_in_a_chunk() -> None:
    """Rule K3."""
    card = read_card(png(text_chunk(b"chara", b"\xef\xbb\xbf " + json.dumps(v2()).encode())))
    assert card.fields == MINIMAL_FIELDS
    assert found(card) == [("NOT_BASE64", "")]


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\r\n\t ", b"\xef\xbb\xbf\n"])
def test_a_json_file_may_begin_with_a_byte_order_mark_or_blanks(before: bytes) -> None:
    card = read_card(before + json.dumps(v2()).encode() + b"\n")
    assert (card.container, card.fields, card.warnings) == ("json", MINIMAL_FIELDS, ())


def test_an_encrypted_card() -> None:
    assert refused(b"rcc||rccv1||abc") == "ENCRYPTED_CARD"
    assert refused(png(text_chunk(b"ccv3", b"rcc||rccv1||abc"))) == "ENCRYPTED_CARD"
    hidden = base64.b64encode(b"rcc||rccv1||abc")
    assert refused(png(text_chunk(b"chara", hidden))) == "ENCRYPTED_CARD"


def test_json_that_is_broken_or_no_object() -> None:
    assert refused(b'{"name": "Mira"') == "BROKEN_CARD"
    assert refused(b'{"name": "Mira"} {}') == "BROKEN_CARD"
    assert refused(png(text_chunk(b"chara", b"%%%"))) == "BROKEN_CARD"
    assert refused(b'[{"name": "Mira"}]') == "NOT_A_CARD"


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    card = read_card(b'{"name": "Jos\xe9"}')
    assert card.fields["name"] == card.source["name"] == "Jos\ufffd"
    assert found(card) == [("INVALID_UTF8", "")]


def test_of_a_duplicate_key_the_last_value_is_taken() -> None:
    card = read_card(b'{"name": "A", "name": "B", "x\\u0000": 1, "x\\u0000": 2}')
    assert card.fields["name"] == "B"
    assert found(card) == [("DUPLICATE_KEY", ""), ("NUL_REMOVED", "x")]
    assert card.warnings[0].message == '"name" is given twice; the last one was taken.'


def test_raw_line_breaks_inside_a_string_are_read() -> None:
    assert read_card(b'{"name": "Mira", "scenario": "a\nb"}').fields["scenario"] == "a\nb"


def test_nul_and_lone_surrogates_are_mended_everywhere() -> None:
    """Rule K6."""
    card = read_card(
        rb'{"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Mi\u0000ra",'
        rb' "description": "\ud83d half, \ud83d\ude00 whole",'
        rb' "tags": ["a", "b\udc00"], "extensions": {"k\u0000": {"\ud800": "\u0000"}}}}'
    )
    mended = {
        "name": "Mira",
        "description": "\ufffd half, 😀 whole",
        "tags": ["a", "b\ufffd"],
        "extensions": {"k": {"\ufffd": ""}},
    }
    assert card.source["data"] == mended
    assert card.fields == {**MINIMAL_FIELDS, **mended}
    assert found(card) == [
        ("NUL_REMOVED", "data.name"),
        ("SURROGATE_REPLACED", "data.description"),
        ("SURROGATE_REPLACED", "data.tags.1"),
        ("NUL_REMOVED", "data.extensions.k"),
        ("SURROGATE_REPLACED", "data.extensions.k.\ufffd"),
        ("NUL_REMOVED", "data.extensions.k.\ufffd"),
    ]


def test_keys_that_become_alike_both_keep_their_value() -> None:
    card = read_card(rb'{"name": "Mira", "a\u0000": 1, "a": 2, "\u0000a": 3}')
    assert card.source == {"name": "Mira", "a\ufffd1": 1, "a": 2, "a\ufffd2": 3}


def test_numbers_that_do_not_fit_are_mended() -> None:
    largest, smallest = 2**64 - 1, -(2**63)
    card = read_card(
        b'{"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Mira", "x": '
        b"[NaN, Infinity, -Infinity, 1e999, %d, %d, %d, %d, %s, %s, 1.50]}}"
        % (largest, largest + 1, smallest, smallest - 1, b"9" * 310, b"-" + b"9" * 5000)
    )
    values = [None, None, None, None, largest, 2.0**64, smallest, -(2.0**63), None, None, 1.5]
    assert card.fields["x"] == card.source["data"]["x"] == values
    assert found(card) == [
        *(("NUMBER_NOT_FINITE", f"data.x.{index}") for index in range(4)),
        ("NUMBER_ROUNDED", "data.x.5"),
        ("NUMBER_ROUNDED", "data.x.7"),
        ("NUMBER_NOT_FINITE", "data.x.8"),
        ("NUMBER_NOT_FINITE", "data.x.9"),
    ]


def test_warnings_beyond_a_hundred_are_counted() -> None:
    card = read(v2(tags=[None] * 250))
    assert len(card.warnings) == 101
    assert card.warnings[99] == CardWarning(
        "ITEM_DROPPED", "The item is empty; it was left out.", "data.tags.99"
    )
    assert card.warnings[100] == CardWarning(
        "MORE_WARNINGS", "150 further warnings are not listed.", ""
    )
