"""Real files of other programs."""

from __future__ import annotations

import hashlib
import json

import pytest

from services.cards import CardWarning, read_card
from tests.services.cards.making import found, real, refused


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


PICTURE, SENSEI, AMY = "b229100f6c06fedb", "3d9ecd20d0af8992", "692ce44fa858c17d"


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
    assert card.warnings == ()


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
    assert found(card) == [("CHUNK_IGNORED", "")]


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


def test_a_real_charx_with_a_picture_that_is_not_listed() -> None:
    """Rule K7."""
    card = read_card(real("two-assets.charx"))

    assert (card.container, card.spec, card.warnings) == ("charx", "v3", ())
    assert card.fields == {**card.source["data"], "extensions": {}}
    assert card.fields["assets"] == [
        {"type": "icon", "uri": "embeded://assets/main.png", "name": "main", "ext": "png"}
    ]
    assert [(file.path, file.media_type, digest(file.content)) for file in card.files] == [
        ("assets/main.png", "image/png", PICTURE),
        ("assets/emotions/happy.png", "image/png", PICTURE),
    ]


@pytest.mark.parametrize(
    ("name", "path", "picture"),
    [
        ("coding-sensei.v2.png", "assets/icon/images/main.png", SENSEI),
        ("amy.v3-in-chara.png", "assets/icon/images/main.png", AMY),
        ("two-chunks.png", "assets/main.png", PICTURE),
    ],
)
def test_the_picture_of_a_real_png_stays_without_the_card(
    name: str, path: str, picture: str
) -> None:
    """Rule K7. The icon of a card that once was a CharX keeps the path it had there."""
    card = read_card(real(name))
    assert [(file.path, file.media_type) for file in card.files] == [(path, "image/png")]
    assert digest(card.files[0].content) == picture
    assert refused(card.files[0].content) == "NO_CARD"


def test_real_files_that_are_not_cards() -> None:
    assert refused(real("invalid-missing-name.json")) == "CARD_NAME_MISSING"
    assert refused(real("lorebook-text-uid.json")) == "NOT_A_CARD"
