"""Reading of character cards: real files of other programs, and hostile ones made here."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cards import Card, CardWarning, read_card
from services.errors import Invalid
from tests.conftest import shared

PICTURE_NOT_KEPT = CardWarning(
    "PICTURE_NOT_KEPT", "Only the card was read; the picture itself is not kept.", ""
)
MINIMAL_FIELDS: dict[str, Any] = {
    "name": "Mira",
    "description": "",
    "personality": "",
    "scenario": "",
    "first_mes": "",
    "mes_example": "",
    "creator_notes": "",
    "system_prompt": "",
    "post_history_instructions": "",
    "creator": "",
    "character_version": "",
    "alternate_greetings": [],
    "group_only_greetings": [],
    "tags": [],
    "extensions": {},
}


def real(name: str) -> bytes:
    return shared("data", "cards", name).read_bytes()


def chunk(kind: bytes, body: bytes) -> bytes:
    crc = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc)


def png(*chunks: bytes) -> bytes:
    """A PNG of one grey pixel with the chunks between its picture and its end."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    picture = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + header + picture + b"".join(chunks) + chunk(b"IEND", b"")


def text_chunk(keyword: bytes, text: bytes) -> bytes:
    return chunk(b"tEXt", keyword + b"\0" + text)


def encoded(card: Any) -> bytes:
    return base64.b64encode(json.dumps(card).encode())


def v2(**data: Any) -> dict[str, Any]:
    return {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Mira", **data}}


def v3(**data: Any) -> dict[str, Any]:
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": {"name": "Mira", **data}}


def read(card: Any) -> Card:
    return read_card(json.dumps(card).encode())


def found(card: Card) -> list[tuple[str, str]]:
    return [(warning.code, warning.path) for warning in card.warnings]


def refused(content: bytes) -> str:
    with pytest.raises(Invalid) as caught:
        read_card(content)
    assert caught.value.path == ("input", "file")
    assert caught.value.message
    return caught.value.code


# Real files


def test_a_real_v2_card_in_a_chara_chunk() -> None:
    card = read_card(real("coding-sensei.v2.png"))

    assert (card.container, card.spec) == ("png_text", "v2")
    assert card.fields == {
        "name": "Coding Sensei",
        "description": (
            "[Coding Sensei = assists {{user}} with coding-related questions, "
            "and provides example codes within markdown codeblocks.]"
        ),
        "personality": "",
        "scenario": "",
        "first_mes": (
            '"Hello world!" \r\n\r\nIn JavaScript that looks like:\r\n\r\n```js\r\n'
            'function HelloWorld() {\r\n    console.log("Hello World!");\r\n}\r\n'
            "HelloWorld();\r\n```"
        ),
        "mes_example": "",
        "creator_notes": (
            "Coding assistance. Can be used for any code language, not just JavaScript. "
        ),
        "system_prompt": "",
        "post_history_instructions": "",
        "creator": "RossAscends",
        "character_version": "v1.010102",
        "alternate_greetings": [],
        "group_only_greetings": [],
        "tags": ["coding", "utility", "assistant"],
        "extensions": {
            "talkativeness": "0.5",
            "fav": False,
            "world": "",
            "depth_prompt": {"prompt": "", "depth": 4, "role": "system"},
        },
    }
    assert card.source["chat"] == "Coding Sensei - 2023-7-20 @02h 00m 51s 34ms"
    assert card.source["data"]["creator"] == "RossAscends"
    assert card.warnings == (PICTURE_NOT_KEPT,)


def test_a_real_chara_chunk_that_says_v3() -> None:
    card = read_card(real("amy.v3-in-chara.png"))

    assert (card.container, card.spec) == ("png_text", "v3")
    assert card.fields["name"] == "Amy"
    assert card.fields["tags"] == [
        *("female", "redhead", "savvy", "sassy", "smart-assy", "helpful", "AI", "assistant")
    ]
    assert card.fields["extensions"]["talkativeness"] == "1"
    assert card.fields["extensions"]["depth_prompt"]["depth"] == 0
    assert card.fields["first_mes"].startswith("*As {{user}} logs in, Amy appears, ready")
    assert card.source["spec"] == "chara_card_v3"
    assert found(card) == [("PICTURE_NOT_KEPT", ""), ("CHUNK_IGNORED", "")]


def test_of_two_real_chunks_that_differ_ccv3_is_read() -> None:
    card = read_card(real("two-chunks.png"))

    assert (card.container, card.spec) == ("png_text", "v3")
    assert card.fields["nickname"] == "TestChar"
    assert card.fields["extensions"] == {}
    assert card.fields["assets"] == [
        {"type": "icon", "uri": "embeded://assets/main.png", "name": "main", "ext": "png"}
    ]
    assert card.fields["alternate_greetings"] == ["Greetings!", "Hey there!"]
    assert card.warnings == (
        PICTURE_NOT_KEPT,
        CardWarning(
            "CHUNK_IGNORED",
            "Another card, in a chara chunk, was ignored: a ccv3 chunk comes first.",
            "",
        ),
    )


@pytest.mark.parametrize(
    ("name", "spec"),
    [("minimal-v2.json", "v2"), ("minimal-v3.json", "v3"), ("with-lorebook-v3.json", "v3")],
)
def test_a_clean_real_json_card_is_taken_as_it_is(name: str, spec: str) -> None:
    content = real(name)
    card = read_card(content)

    assert (card.container, card.spec, card.warnings) == ("json", spec, ())
    assert card.source == json.loads(content)
    assert card.fields == {"group_only_greetings": [], **card.source["data"]}


def test_values_of_the_real_json_cards() -> None:
    minimal = read_card(real("minimal-v3.json")).fields
    assert minimal["nickname"] == "TestBot"
    assert minimal["group_only_greetings"] == ["Hey everyone! Group test mode engaged."]
    assert minimal["creator_notes_multilingual"]["ja"] == "日本語テストノート"
    assert minimal["source"] == ["https://example.com/test-character"]

    book = read_card(real("with-lorebook-v3.json")).fields["character_book"]
    assert [entry["keys"] for entry in book["entries"]] == [
        ["test entry", "lore test"],
        ["another entry"],
    ]


def test_real_files_that_are_not_cards_we_read() -> None:
    assert refused(real("invalid-missing-name.json")) == "CARD_NAME_MISSING"
    assert refused(real("lorebook-text-uid.json")) == "NOT_A_CARD"
    assert refused(real("two-assets.charx")) == "UNSUPPORTED_CARD_CONTAINER"


# Containers


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04rest", "a zip archive (CharX)"),
        (b"\xff\xd8\xff\xe0rest", "a JPEG picture"),
        (b"RIFF\0\0\0\0WEBP", "a RIFF file (such as WebP)"),
        (b"GIF89a", "a GIF picture"),
        (b"name: Mira", "of an unknown kind"),
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
        f"The file is {kind}. Accepted are a PNG picture with a character card inside and a JSON "
        "file with a V1, V2 or V3 card."
    )


@pytest.mark.parametrize("keyword", [b"chara", b"Chara", b"CCV3", b"cCv3"])
def test_the_keyword_is_compared_without_case(keyword: bytes) -> None:
    """Rule K2."""
    card = read_card(png(text_chunk(keyword, encoded(v2()))))

    assert (card.container, card.spec) == ("png_text", "v2")
    assert card.fields == MINIMAL_FIELDS
    assert card.source == v2()
    assert card.warnings == (PICTURE_NOT_KEPT,)


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
        assert found(card) == [("PICTURE_NOT_KEPT", ""), ("CHUNK_IGNORED", "")]


def test_of_equal_chunks_the_first_is_taken() -> None:
    card = read_card(png(*(text_chunk(b"chara", encoded(v2(name=name))) for name in "AB")))
    assert card.fields["name"] == "A"
    assert found(card) == [("PICTURE_NOT_KEPT", ""), ("CHUNK_IGNORED", "")]


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
    assert found(card) == [("PICTURE_NOT_KEPT", ""), ("CHUNK_UNREADABLE", "")]
    assert card.warnings[1].message.startswith("A ccv3 chunk was passed over: ")
    assert reason in card.warnings[1].message


def test_only_a_few_unreadable_chunks_are_tried() -> None:
    bad, good = text_chunk(b"chara", b"e30="), text_chunk(b"chara", encoded(v2()))
    assert read_card(png(*[bad] * 7, good)).fields["name"] == "Mira"
    assert refused(png(*[bad] * 8, good)) == "CARD_NAME_MISSING"


def test_keywords_of_other_writers_are_the_last_choice() -> None:
    card = read_card(png(text_chunk(b"Character", encoded(v2()))))
    assert found(card) == [("PICTURE_NOT_KEPT", ""), ("UNUSUAL_KEYWORD", "")]
    assert refused(png(text_chunk(b"character", b"a drawing of Mira"))) == "NO_CARD"


def test_a_png_without_a_card() -> None:
    assert refused(png()) == "NO_CARD"
    assert refused(png(text_chunk(b"Title", encoded(v2())))) == "NO_CARD"
    assert refused(png(chunk(b"ccv3", encoded(v2())))) == "NO_CARD"


def test_bytes_and_assets_that_are_not_kept_are_told() -> None:
    """Rule K7."""
    asset = text_chunk(b"chara-ext-asset_:0", b"AAAA")
    card = read_card(png(asset, text_chunk(b"chara", encoded(v2()))) + b"PK tail")
    assert found(card) == [
        ("PICTURE_NOT_KEPT", ""),
        ("TRAILING_BYTES", ""),
        ("ASSETS_NOT_KEPT", ""),
    ]
    assert card.warnings[1].message == "7 bytes after the PNG were ignored."


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


# Payloads


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
    assert found(card) == [("PICTURE_NOT_KEPT", ""), ("BASE64_MENDED", "")]


def test_blanks_around_base64_are_not_worth_a_warning() -> None:
    card = read_card(png(text_chunk(b"chara", b"\n" + PLAIN + b"\r\n\0")))
    assert found(card) == [("PICTURE_NOT_KEPT", "")]


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
    assert found(card) == [("PICTURE_NOT_KEPT", ""), ("NOT_BASE64", "")]


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


# Limits: the largest that is taken, and one more


def test_file_bytes() -> None:
    content = json.dumps(v2()).encode()
    full = content + b" " * (16 * 1024 * 1024 - len(content))
    assert read_card(full).fields == MINIMAL_FIELDS
    assert refused(full + b" ") == "CARD_FILE_TOO_LARGE"


def test_inflated_bytes() -> None:
    content = json.dumps(v2()).encode()
    full = content + b" " * (8 * 1024 * 1024 - len(content))
    for kind, head in ((b"zTXt", b"ccv3\0\0"), (b"iTXt", b"ccv3\0\1\0\0\0")):
        assert read_card(png(chunk(kind, head + zlib.compress(full)))).fields == MINIMAL_FIELDS
        too_large = png(chunk(kind, head + zlib.compress(full + b" ")))
        assert refused(too_large) == "CARD_CHUNK_TOO_LARGE"
    # A limit is final: a readable chunk beside it does not help.
    bomb = chunk(b"zTXt", b"ccv3\0\0" + zlib.compress(full + b" "))
    beside = text_chunk(b"chara", encoded(v2()))
    assert refused(png(bomb, beside)) == "CARD_CHUNK_TOO_LARGE"


def test_a_bomb_is_stopped_while_inflating(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    make = zlib.decompressobj

    class Watched:
        def __init__(self) -> None:
            self._inflater = make()

        def decompress(self, data: bytes, max_length: int = 0) -> bytes:
            nonlocal largest
            text = self._inflater.decompress(data, max_length)
            largest = max(largest, len(text))
            return text

    bomb = zlib.compress(b" " * (64 * 1024 * 1024))
    monkeypatch.setattr(zlib, "decompressobj", Watched)
    assert refused(png(chunk(b"zTXt", b"ccv3\0\0" + bomb))) == "CARD_CHUNK_TOO_LARGE"
    assert largest == 8 * 1024 * 1024 + 1


def test_png_chunks() -> None:
    card = text_chunk(b"chara", encoded(v2()))
    filler = chunk(b"tIME", b"")
    most = png(card, *[filler] * (10_000 - 4))
    assert read_card(most).fields == MINIMAL_FIELDS
    assert refused(png(card, *[filler] * (10_000 - 3))) == "CARD_TOO_MANY_CHUNKS"


def nested(levels: int) -> bytes:
    """A card whose deepest list is `levels` deep, the root object being the first level."""
    return b'{"name": "Mira", "x": %s%s}' % (b"[" * (levels - 1), b"]" * (levels - 1))


def test_json_depth() -> None:
    assert read_card(nested(64)).fields == MINIMAL_FIELDS
    assert refused(nested(65)) == "CARD_TOO_DEEP"
    assert refused(nested(200_000)) == "CARD_TOO_DEEP"
    assert refused(b'{"name": "Mira", "x": ' + b'{"a":' * 64 + b"1" + b"}" * 65) == "CARD_TOO_DEEP"


def test_text_length() -> None:
    assert len(read(v2(description="é" * 1_000_000)).fields["description"]) == 1_000_000
    assert refused(json.dumps(v2(description="é" * 1_000_001)).encode()) == "CARD_TEXT_TOO_LONG"
    assert refused(json.dumps(v2(**{"k" * 1_000_001: 1})).encode()) == "CARD_TEXT_TOO_LONG"


def test_list_length() -> None:
    assert len(read(v2(tags=["t"] * 10_000)).fields["tags"]) == 10_000
    assert refused(json.dumps(v2(tags=["t"] * 10_001)).encode()) == "CARD_LIST_TOO_LONG"
    members = {str(number): number for number in range(10_001)}
    assert refused(json.dumps(v2(extensions=members)).encode()) == "CARD_LIST_TOO_LONG"


def test_nested_values() -> None:
    rows: list[Any] = [[[]] * 9_999] * 49
    assert read(v2(extensions={"x": rows})).spec == "v2"
    assert refused(json.dumps(v2(x=[*rows, *rows])).encode()) == "CARD_TOO_MANY_VALUES"


def test_greetings() -> None:
    most = v2(alternate_greetings=["hi"] * 300, group_only_greetings=["all"] * 200)
    assert len(read(most).fields["alternate_greetings"]) == 300
    most["data"]["group_only_greetings"].append("one more")
    assert refused(json.dumps(most).encode()) == "CARD_TOO_MANY_GREETINGS"


# Shapes


def test_a_v1_card() -> None:
    source = {
        "name": "Mira",
        "description": "A pilot.",
        "personality": "calm",
        "scenario": "A port.",
        "first_mes": "Hello.",
        "mes_example": "<START>",
        "tags": ["sea"],
        "avatar": "none",
        "create_date": "2023-4-8 @14h 12m 43s 738ms",
        "talkativeness": "0.5",
        "fav": True,
    }
    card = read(source)
    assert (card.spec, card.source, card.warnings) == ("v1", source, ())
    assert card.fields == {
        **MINIMAL_FIELDS,
        **{key: source[key] for key in ("description", "personality", "scenario", "first_mes")},
        "mes_example": "<START>",
        "tags": ["sea"],
        "extensions": {"talkativeness": "0.5", "fav": True},
    }


def test_the_pygmalion_shape() -> None:
    card = read(
        {
            "char_name": "Mira",
            "char_persona": "A pilot.",
            "char_greeting": "Hello.",
            "example_dialogue": "<START>",
            "world_scenario": "A port.",
            "scenario": "",
        }
    )
    assert card.spec == "v1"
    assert card.fields == {
        **MINIMAL_FIELDS,
        "description": "A pilot.",
        "first_mes": "Hello.",
        "mes_example": "<START>",
        "scenario": "A port.",
    }
    assert found(card) == [
        ("FIELD_RENAMED", "char_name"),
        ("FIELD_RENAMED", "char_persona"),
        ("FIELD_RENAMED", "char_greeting"),
        ("FIELD_RENAMED", "example_dialogue"),
        ("FIELD_RENAMED", "world_scenario"),
    ]


def test_v1_names_win_over_older_names() -> None:
    card = read({"name": "Mira", "char_name": "Other", "greeting": "Hi.", "first_mes": "Hello."})
    assert card.fields == {**MINIMAL_FIELDS, "first_mes": "Hello."}
    assert card.warnings == ()


def test_unknown_keys_survive_and_share_nothing_with_the_source() -> None:
    """Rule K4."""
    source = v3(avatar=None, x={"deep": [1, 2.0, "3"]}, extensions={"chub": {"id": 1}})
    source["root_key"] = True
    card = read(source)
    assert card.source == source
    assert card.fields == {**MINIMAL_FIELDS, **source["data"]}
    assert card.warnings == ()
    card.fields["extensions"]["chub"]["id"] = 2
    assert card.source == source


def test_data_wins_over_the_root_and_the_root_fills_what_is_missing() -> None:
    source = v2(description="inner", scenario=None, personality="")
    source |= {
        "name": "Mira",
        "description": "outer",
        "scenario": "A port.",
        "personality": "calm",
        "creatorcomment": "notes",
        "tags": ["sea"],
        "first_mes": "",
    }
    card = read(source)
    assert card.fields == {
        **MINIMAL_FIELDS,
        "description": "inner",
        "scenario": "A port.",
        "creator_notes": "notes",
        "tags": ["sea"],
    }
    assert found(card) == [
        ("ROOT_DIFFERS", "data.description"),
        ("ROOT_DIFFERS", "data.personality"),
        ("FILLED_FROM_ROOT", "data.scenario"),
        ("FILLED_FROM_ROOT", "data.creator_notes"),
        ("FILLED_FROM_ROOT", "data.tags"),
    ]


@pytest.mark.parametrize("data", [None, "text", []])
def test_a_card_that_says_v2_and_keeps_its_fields_at_the_root(data: Any) -> None:
    card = read({"spec": "chara_card_v2", "spec_version": "2.0", "name": "Mira", "data": data})
    assert (card.spec, card.fields) == ("v1", MINIMAL_FIELDS)
    assert found(card) == [("DATA_MISSING", "data")]


@pytest.mark.parametrize(
    ("root", "data", "spec", "warnings"),
    [
        ({"spec": "chara_card_v2", "spec_version": 2.0}, {}, "v2", ["SPEC_VERSION_UNUSUAL"]),
        ({"spec": "chara_card_v3", "spec_version": 3}, {}, "v3", ["SPEC_VERSION_UNUSUAL"]),
        ({"spec": "chara_card_v3", "spec_version": "2.0"}, {}, "v3", ["SPEC_VERSION_UNUSUAL"]),
        ({"spec": "chara_card_v2", "spec_version": "chara_card_v2"}, {}, "v2", None),
        ({"spec": "chara_card_v3", "spec_version": {}}, {}, "v3", ["SPEC_VERSION_UNUSUAL"]),
        ({"spec": "chara_card_v2"}, {}, "v2", ["SPEC_VERSION_UNUSUAL"]),
        ({"spec": "chara_card_v3", "spec_version": "4.1"}, {}, "v3", ["SPEC_VERSION_NEWER"]),
        ({"spec": "chara_card_v2", "spec_version": "2.0"}, {"nickname": "M"}, "v2", []),
        ({"spec": "Chara_Card_V3 ", "spec_version": "3.0"}, {}, "v3", []),
        ({"spec": "other", "spec_version": "3.0"}, {}, "v3", ["SPEC_UNKNOWN"]),
        ({"spec": 2, "spec_version": "2.0"}, {}, "v2", ["SPEC_UNKNOWN"]),
        ({"spec_version": "2.0"}, {}, "v2", ["SPEC_MISSING"]),
        ({"spec_version": "3.0"}, {"assets": []}, "v3", ["SPEC_MISSING"]),
        ({}, {"group_only_greetings": []}, "v3", ["SPEC_MISSING", "SPEC_VERSION_UNUSUAL"]),
    ],
)
def test_no_version_refuses_a_card(
    root: dict[str, Any], data: dict[str, Any], spec: str, warnings: list[str] | None
) -> None:
    """Rule K5."""
    card = read({**root, "data": {"name": "Mira", **data}})
    assert (card.spec, card.fields) == (spec, {**MINIMAL_FIELDS, **data})
    expected = ["SPEC_VERSION_UNUSUAL"] if warnings is None else warnings
    assert [warning.code for warning in card.warnings] == expected


@pytest.mark.parametrize("name", [None, "", " \t", "\0", "\u200b", [], {"first": "Mira"}])
def test_a_card_without_a_usable_name(name: Any) -> None:
    """Rule K5."""
    assert refused(json.dumps(v2(name=name)).encode()) == "CARD_NAME_MISSING"
    assert refused(json.dumps({"name": name, "first_mes": "Hi"}).encode()) == "CARD_NAME_MISSING"


@pytest.mark.parametrize("name", ["Gloria, PA", "A/B: C?", " Mira ", "未来", "😀"])
def test_a_name_is_kept_as_it_is(name: str) -> None:
    assert read(v2(name=name)).fields["name"] == name


@pytest.mark.parametrize(
    "book",
    [
        {"spec": "lorebook_v3", "data": {"name": "Mira", "entries": []}},
        {"name": "World", "description": "x", "entries": {}},
    ],
)
def test_a_lorebook_is_not_a_card(book: dict[str, Any]) -> None:
    assert refused(json.dumps(book).encode()) == "NOT_A_CARD"


# Single values


@pytest.mark.parametrize(
    ("key", "value", "mended", "warnings"),
    [
        ("personality", None, "", [("NULL_VALUE", "data.personality")]),
        ("character_version", 1.5, "1.5", [("TYPE_MENDED", "data.character_version")]),
        ("creator", True, "true", [("TYPE_MENDED", "data.creator")]),
        ("scenario", ["a"], "", [("VALUE_DROPPED", "data.scenario")]),
        ("tags", "sea, pilot,, calm ", ["sea", "pilot", "calm"], [("TYPE_MENDED", "data.tags")]),
        ("tags", None, [], [("NULL_VALUE", "data.tags")]),
        ("tags", {}, [], [("VALUE_DROPPED", "data.tags")]),
        ("tags", ["sea", 5], ["sea", "5"], [("TYPE_MENDED", "data.tags.1")]),
        (
            "alternate_greetings",
            "Hello, you.",
            ["Hello, you."],
            [("TYPE_MENDED", "data.alternate_greetings")],
        ),
        ("alternate_greetings", "", [], [("TYPE_MENDED", "data.alternate_greetings")]),
        (
            "alternate_greetings",
            ["", "Hi", None, {}],
            ["Hi"],
            [
                ("ITEM_DROPPED", "data.alternate_greetings.0"),
                ("ITEM_DROPPED", "data.alternate_greetings.2"),
                ("VALUE_DROPPED", "data.alternate_greetings.3"),
            ],
        ),
        ("extensions", None, {}, [("NULL_VALUE", "data.extensions")]),
        ("extensions", "x", {}, [("VALUE_DROPPED", "data.extensions")]),
        ("nickname", 7, "7", [("TYPE_MENDED", "data.nickname")]),
        ("source", "https://a.b", ["https://a.b"], [("TYPE_MENDED", "data.source")]),
        ("assets", [{"x": 1}, "y"], [{"x": 1}], [("VALUE_DROPPED", "data.assets.1")]),
        ("creation_date", 1_700_000_000, 1_700_000_000, []),
        ("creation_date", 0, 0, []),
        ("creation_date", "1700000000", 1_700_000_000, [("DATE_MENDED", "data.creation_date")]),
        (
            "modification_date",
            1_700_000_000_123,
            1_700_000_000,
            [("DATE_MENDED", "data.modification_date")],
        ),
        (
            "creation_date",
            "2023-11-14T22:13:20Z",
            1_700_000_000,
            [("DATE_MENDED", "data.creation_date")],
        ),
        (
            "creation_date",
            "2023-11-14 22:13:20",
            1_700_000_000,
            [("DATE_MENDED", "data.creation_date")],
        ),
        (
            "character_book",
            {"entries": {"0": {"key": ["sea"]}}},
            {"entries": {"0": {"key": ["sea"]}}},
            [("BOOK_ENTRIES_ARE_A_MAP", "data.character_book.entries")],
        ),
        ("character_book", {"entries": [{"id": None}]}, {"entries": [{"id": None}]}, []),
    ],
)
def test_a_value_of_the_wrong_spelling_is_mended(
    key: str, value: Any, mended: Any, warnings: list[tuple[str, str]]
) -> None:
    card = read(v2(**{key: value}))
    assert card.fields == {**MINIMAL_FIELDS, key: mended}
    assert type(card.fields[key]) is type(mended)
    assert card.source == v2(**{key: value})
    assert found(card) == warnings


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("character_book", None, "NULL_VALUE"),
        ("character_book", [], "VALUE_DROPPED"),
        ("nickname", None, "NULL_VALUE"),
        ("assets", None, "NULL_VALUE"),
        ("assets", "none", "VALUE_DROPPED"),
        ("creator_notes_multilingual", "en", "VALUE_DROPPED"),
        ("creation_date", "2023-4-8 @14h 12m 43s 738ms", "VALUE_DROPPED"),
        ("creation_date", -62_135_596_800, "VALUE_DROPPED"),
        ("creation_date", True, "VALUE_DROPPED"),
        ("creation_date", "nan", "VALUE_DROPPED"),
        ("creation_date", 10**18, "VALUE_DROPPED"),
    ],
)
def test_an_optional_field_that_cannot_be_used_is_left_out(key: str, value: Any, code: str) -> None:
    card = read(v3(**{key: value}))
    assert card.fields == MINIMAL_FIELDS
    assert card.source == v3(**{key: value})
    assert found(card) == [(code, f"data.{key}")]


def test_paths_of_a_v1_card_begin_at_its_root() -> None:
    assert found(read({"name": "Mira", "tags": "sea"})) == [("TYPE_MENDED", "tags")]


# Whatever comes in


REFUSALS = {
    *("UNSUPPORTED_CARD_CONTAINER", "BROKEN_PNG", "NO_CARD", "BROKEN_CARD", "NOT_A_CARD"),
    *("ENCRYPTED_CARD", "CARD_NAME_MISSING", "CARD_CHUNK_TOO_LARGE", "CARD_TOO_DEEP"),
}


def card_or_refusal(content: bytes) -> Card | Invalid:
    try:
        return read_card(content)
    except Invalid as error:
        return error


def assert_card_or_refusal(content: bytes) -> None:
    card = card_or_refusal(content)
    if isinstance(card, Invalid):
        assert card.path == ("input", "file")
        assert card.code in REFUSALS
        return
    assert card.container in ("png_text", "json")
    assert card.spec in ("v1", "v2", "v3")
    assert card.fields["name"]
    assert card.fields.keys() >= MINIMAL_FIELDS.keys()
    for part in (card.fields, card.source, [[w.code, w.message, w.path] for w in card.warnings]):
        # What orjson writes without an escaped NUL, the database stores.
        assert b"\\u0000" not in orjson.dumps(part).replace(b"\\\\", b"")
    for key, empty in MINIMAL_FIELDS.items():
        assert type(card.fields[key]) is type(empty)


FULL_CARD = v3(
    description="A pilot. \0 \ud83d 😀",
    tags=["sea"],
    alternate_greetings=["Hi"],
    creation_date=1_700_000_000,
    character_book={"entries": [{"keys": ["sea"], "content": "salt"}], "extensions": {}},
)
FULL_JSON = json.dumps(FULL_CARD).encode()
WHOLE_FILES = (
    FULL_JSON,
    json.dumps({"char_name": "Mira", "char_persona": "A pilot."}).encode(),
    png(
        text_chunk(b"chara", encoded(v2())), chunk(b"zTXt", b"ccv3\0\0" + zlib.compress(FULL_JSON))
    ),
)


@st.composite
def mutations(draw: st.DrawFn, content: bytes) -> bytes:
    """The content after a few cuts, flipped bytes and doubled pieces."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(changed)))
        end = min(len(changed), start + draw(st.integers(0, 40)))
        match draw(st.sampled_from(("cut", "flip", "double", "truncate"))):
            case "cut":
                del changed[start:end]
            case "flip" if start < len(changed):
                changed[start] ^= draw(st.integers(1, 255))
            case "double":
                changed[start:start] = changed[start:end]
            case "truncate":
                del changed[start:]
    return bytes(changed)


@given(st.sampled_from(WHOLE_FILES).flatmap(mutations))
def test_a_mutated_file_gives_a_card_or_a_refusal(content: bytes) -> None:
    assert_card_or_refusal(content)


@given(
    st.sampled_from((b"tEXt", b"zTXt", b"iTXt")),
    st.sampled_from(
        (
            b"ccv3\0" + encoded(FULL_CARD),
            b"ccv3\0" + FULL_JSON,
            b"ccv3\0\0" + zlib.compress(FULL_JSON),
            b"ccv3\0\1\0en\0\0" + zlib.compress(encoded(FULL_CARD)),
        )
    ).flatmap(mutations),
)
def test_a_mutated_chunk_with_a_true_checksum_gives_a_card_or_a_refusal(
    kind: bytes, body: bytes
) -> None:
    assert_card_or_refusal(png(chunk(kind, body)))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["\0", "\ud800", "chara_card_v3", "3.0", "a,b", "2024-01-01"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["entries", "a", "a\0", "\ud800"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *MINIMAL_FIELDS,
        *("nickname", "source", "assets", "creation_date", "modification_date", "character_book"),
        *("creator_notes_multilingual", "char_name", "greeting", "creatorcomment", "x", "x\0"),
    ]
)
MEMBERS = st.dictionaries(KEYS, JSON_VALUES, max_size=8)


@given(
    MEMBERS,
    st.none() | MEMBERS,
    st.dictionaries(st.sampled_from(["spec", "spec_version"]), JSON_VALUES),
    st.booleans(),
)
def test_any_json_in_any_field_gives_a_card_or_a_refusal(
    root: dict[str, Any], data: dict[str, Any] | None, spec: dict[str, Any], is_named: bool
) -> None:
    source: dict[str, Any] = {**root, **spec}
    if data is not None:
        source["data"] = {**data, "name": "Mira"} if is_named else data
    elif is_named:
        source["name"] = "Mira"
    assert_card_or_refusal(json.dumps(source).encode())
