"""Which file is what, and which of several chunks is read."""

from __future__ import annotations

import struct
import zlib

import pytest

from services.cards import read_card
from services.errors import Invalid
from tests.services.cards.making import (
    MINIMAL_FIELDS,
    chunk,
    encoded,
    found,
    png,
    refused,
    text_chunk,
    v2,
    v3,
)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\xff\xd8\xff\xe0rest", "a JPEG picture"),
        (b"RIFF\0\0\0\0WEBP", "a RIFF file (such as WebP)"),
        (b"GIF89a", "a GIF picture"),
        (b"Rar!\x1a\x07\1\0", "a RAR archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"\nname: Mira\ncontext: A pilot.", "a YAML file"),
        (b"A pilot.", "of an unknown kind"),
        (b"", "of an unknown kind"),
    ],
)
def test_another_container_is_refused_with_what_is_accepted(content: bytes, kind: str) -> None:
    """Rule K1."""
    with pytest.raises(Invalid) as caught:
        read_card(content)
    assert caught.value.code == "UNSUPPORTED_CARD_CONTAINER"
    assert caught.value.path == ("input", "file")
    assert caught.value.message == (
        f"The file is {kind}. Accepted are a PNG picture with a character card inside, a CharX "
        "archive and a JSON file, with a V1, V2 or V3 card."
    )


@pytest.mark.parametrize("keyword", [b"chara", b"Chara", b"CCV3", b"cCv3"])
def test_the_keyword_is_compared_without_case(keyword: bytes) -> None:
    """Rule K2."""
    card = read_card(png(text_chunk(keyword, encoded(v2()))))

    assert (card.container, card.spec) == ("png_text", "v2")
    assert card.fields == MINIMAL_FIELDS
    assert card.source == v2()
    assert card.warnings == ()


COMPRESSED = zlib.compress(encoded(v3(description="é 😀")))


@pytest.mark.parametrize(
    "carrier",
    [
        chunk(b"zTXt", b"ccv3\0\0" + COMPRESSED),
        chunk(b"iTXt", b"ccv3\0\0\0en\0translated\0" + encoded(v3(description="é 😀"))),
        chunk(b"iTXt", b"ccv3\0\1\0\0\0" + COMPRESSED),
    ],
    ids=["zTXt", "iTXt", "iTXt compressed"],
)
def test_compressed_and_international_text_chunks_are_read(carrier: bytes) -> None:
    card = read_card(png(carrier))

    assert card.spec == "v3"
    assert card.fields == {**MINIMAL_FIELDS, "description": "é 😀"}


def test_ccv3_is_preferred_wherever_it_stands() -> None:
    """Rule K2."""
    old = text_chunk(b"chara", encoded(v2(name="Old")))
    new = text_chunk(b"ccv3", encoded(v3(name="New")))
    for content in (png(old, new), png(new, old)):
        card = read_card(content)
        assert (card.spec, card.fields["name"]) == ("v3", "New")
        assert found(card) == [("CHUNK_IGNORED", "")]


def test_of_equal_chunks_the_first_is_taken() -> None:
    card = read_card(png(*(text_chunk(b"chara", encoded(v2(name=name))) for name in "AB")))
    assert card.fields["name"] == "A"
    assert found(card) == [("CHUNK_IGNORED", "")]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (text_chunk(b"ccv3", b"bm90IGpzb24="), "not readable JSON"),
        (text_chunk(b"ccv3", b"rcc||rccv1||abc"), "encrypted"),
        (text_chunk(b"ccv3", encoded([1])), "not an object"),
        (text_chunk(b"ccv3", encoded(v3(name=""))), "no name"),
        (chunk(b"zTXt", b"ccv3\0\0" + COMPRESSED[:-9]), "cut off"),
        (chunk(b"zTXt", b"ccv3\0\0damaged"), "damaged"),
        (chunk(b"zTXt", b"ccv3\0\7" + COMPRESSED), "a method PNG does not know"),
    ],
)
def test_an_unreadable_chunk_is_passed_over_and_told(bad: bytes, reason: str) -> None:
    card = read_card(png(bad, text_chunk(b"chara", encoded(v2()))))
    assert card.fields == MINIMAL_FIELDS
    assert found(card) == [("CHUNK_UNREADABLE", "")]
    assert card.warnings[0].message.startswith("A ccv3 chunk was passed over: ")
    assert reason in card.warnings[0].message


def test_only_a_few_unreadable_chunks_are_tried() -> None:
    bad, good = text_chunk(b"chara", b"e30="), text_chunk(b"chara", encoded(v2()))
    assert read_card(png(*[bad] * 7, good)).fields["name"] == "Mira"
    assert refused(png(*[bad] * 8, good)) == "CARD_NAME_MISSING"


def test_keywords_of_other_writers_are_the_last_choice() -> None:
    card = read_card(png(text_chunk(b"Character", encoded(v2()))))
    assert found(card) == [("UNUSUAL_KEYWORD", "")]
    assert refused(png(text_chunk(b"character", b"a drawing of Mira"))) == "NO_CARD"


def test_a_png_without_a_card() -> None:
    assert refused(png()) == "NO_CARD"
    assert refused(png(text_chunk(b"Title", encoded(v2())))) == "NO_CARD"
    assert refused(png(chunk(b"ccv3", encoded(v2())))) == "NO_CARD"


def test_bytes_after_the_png_are_told() -> None:
    card = read_card(png(text_chunk(b"chara", encoded(v2()))) + b"PK tail")
    assert [(each.code, each.message) for each in card.warnings] == [
        ("TRAILING_BYTES", "7 bytes after the PNG were ignored.")
    ]


def test_a_broken_png() -> None:
    """Rule K2."""
    good = png(text_chunk(b"chara", encoded(v2())))
    beyond_the_file = good[:33] + struct.pack(">I", 0xFFFFFFFF) + good[37:]
    wrong_crc = bytearray(good)
    wrong_crc[-20] ^= 1
    assert refused(beyond_the_file) == "BROKEN_PNG"
    assert refused(bytes(wrong_crc)) == "BROKEN_PNG"
    assert refused(good[:-12]) == "BROKEN_PNG"  # no IEND
    assert refused(good[:-1]) == "BROKEN_PNG"
    assert refused(good[:8]) == "BROKEN_PNG"
