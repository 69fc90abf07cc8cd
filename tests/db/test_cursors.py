from __future__ import annotations

import base64
import string
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from db.cursors import CursorSigner, MalformedCursor

SIGNER = CursorSigner(b"a secret of the tests")
ALPHABET = string.ascii_letters + string.digits + "-_"

moments = st.datetimes(timezones=st.just(UTC))
values = st.lists(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.text()
    | moments,
    max_size=5,
)


def is_refused(cursor: str, name: str = "list", signer: CursorSigner = SIGNER) -> bool:
    """Whether the cursor is refused as it must be; any other exception is a failure."""
    try:
        signer.read(name, cursor)
    except MalformedCursor:
        return True
    return False


@given(values)
@example([datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)])
@example([datetime(2026, 2, 28, 12, 30, 15, 1, UTC), "日本語 😀 עברית \u2028 \0", 2**63 - 1, None])
def test_what_was_put_in_comes_out(given_values: list[Any]) -> None:
    read = SIGNER.read("list", SIGNER.write("list", given_values))
    assert read == given_values
    assert [type(each) for each in read] == [type(each) for each in given_values]


@given(values)
def test_a_cursor_is_safe_in_an_address_and_always_the_same(given_values: list[Any]) -> None:
    cursor = SIGNER.write("list", given_values)
    assert set(cursor) <= set(ALPHABET)
    assert SIGNER.write("list", given_values) == cursor


def test_a_moment_keeps_its_microseconds_and_comes_back_in_utc() -> None:
    moment = datetime(2026, 7, 1, 9, 0, 0, 123457, timezone(timedelta(hours=5, minutes=30)))
    (read,) = SIGNER.read("list", SIGNER.write("list", [moment]))
    assert read == moment
    assert read.tzinfo is UTC
    assert read.microsecond == 123457


@given(st.text())
@example("")
@example("=")
@example("-5")
@example("99999999999999999999")
@example("YXJyYXljb25uZWN0aW9uOjA=")  # arrayconnection:0
@example("\ud83d")
@example("ä")
def test_made_up_text_is_refused(text: str) -> None:
    assert is_refused(text)


@given(st.binary(max_size=200))
@example(b"[]")
@example(b"\0" * 12)
@example(b"\0" * 12 + b"[null]")
@example(b"\0" * 12 + b'{"t": 1}')
def test_well_formed_base64_of_junk_is_refused(content: bytes) -> None:
    assert is_refused(base64.urlsafe_b64encode(content).rstrip(b"=").decode())
    assert is_refused(base64.urlsafe_b64encode(content).decode())


@given(values, st.data())
def test_a_shortened_cursor_is_refused(given_values: list[Any], data: st.DataObject) -> None:
    cursor = SIGNER.write("list", given_values)
    length = data.draw(st.integers(min_value=0, max_value=len(cursor) - 1))
    assert is_refused(cursor[:length])
    assert is_refused(cursor[-length:] if length else "")


@given(values, st.data())
def test_a_cursor_with_one_other_character_is_refused(
    given_values: list[Any], data: st.DataObject
) -> None:
    cursor = SIGNER.write("list", given_values)
    place = data.draw(st.integers(min_value=0, max_value=len(cursor) - 1))
    character = data.draw(st.sampled_from(ALPHABET) | st.characters())
    assume(character != cursor[place])
    assert is_refused(cursor[:place] + character + cursor[place + 1 :])


@given(values)
def test_the_last_bits_count_too(given_values: list[Any]) -> None:
    # Where the last character carries fewer than six bits, a lax decoder drops the rest.
    cursor = SIGNER.write("list", given_values)
    assert [each for each in ALPHABET if not is_refused(cursor[:-1] + each)] == [cursor[-1]]


@given(values, st.data())
def test_added_characters_are_refused(given_values: list[Any], data: st.DataObject) -> None:
    # base64 decoders skip what is not in their alphabet, and what stands behind the padding.
    cursor = SIGNER.write("list", given_values)
    place = data.draw(st.integers(min_value=0, max_value=len(cursor)))
    added = data.draw(
        st.text(min_size=1, max_size=4) | st.sampled_from(["=", "==", "\n", " ", "+"])
    )
    assert is_refused(cursor[:place] + added + cursor[place:])


@given(values, st.data())
def test_one_flipped_bit_is_refused(given_values: list[Any], data: st.DataObject) -> None:
    cursor = SIGNER.write("list", given_values)
    content = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    bit = data.draw(st.integers(min_value=0, max_value=len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    assert is_refused(base64.urlsafe_b64encode(content).rstrip(b"=").decode())


@given(values, st.text(max_size=10), st.text(max_size=10))
def test_a_cursor_of_another_list_is_refused(
    given_values: list[Any], name: str, other: str
) -> None:
    assume(name != other)
    assert is_refused(SIGNER.write(name, given_values), other)


@given(values, st.binary(max_size=40))
def test_a_cursor_of_another_secret_is_refused(given_values: list[Any], secret: bytes) -> None:
    assert is_refused(CursorSigner(secret).write("list", given_values))


def test_a_refusal_tells_nothing() -> None:
    with pytest.raises(MalformedCursor) as caught:
        SIGNER.read("list", "AAAA")
    assert caught.value.args == ()
