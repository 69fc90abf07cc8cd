"""V1, V2, V3 and what other programs write, brought into one form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.services.cards.making import MINIMAL_FIELDS, found, read, refused, v2, v3


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


def test_the_shape_of_text_generation_webui() -> None:
    card = read({"name": "Mira", "context": "A pilot.", "greeting": "Hello.", "char_name": ""})
    assert card.fields == {**MINIMAL_FIELDS, "description": "A pilot.", "first_mes": "Hello."}
    assert found(card) == [("FIELD_RENAMED", "context"), ("FIELD_RENAMED", "greeting")]


AGNAI: dict[str, Any] = {
    "kind": "character",
    "name": "Mira",
    "description": "Made for a test.",
    "persona": {
        "kind": "boostyle",
        "attributes": {"species": ["human", "pilot"], "text": ["She sails."], "empty": [], "x": 5},
    },
    "greeting": "Hello.",
    "scenario": "A port.",
    "sampleChat": "<START>",
    "systemPrompt": "Be calm.",
    "alternateGreetings": ["Hi."],
    "characterVersion": "2",
    "tags": ["sea"],
}


def test_the_shape_of_agnai() -> None:
    card = read(AGNAI)
    assert (card.spec, card.source) == ("v1", AGNAI)
    assert card.fields == {
        **MINIMAL_FIELDS,
        "description": "species: human, pilot\nShe sails.",
        "creator_notes": "Made for a test.",
        "first_mes": "Hello.",
        "scenario": "A port.",
        "mes_example": "<START>",
        "system_prompt": "Be calm.",
        "alternate_greetings": ["Hi."],
        "character_version": "2",
        "tags": ["sea"],
    }
    assert found(card) == [
        ("FIELD_RENAMED", key)
        for key in [
            *("description", "persona", "systemPrompt", "alternateGreetings", "characterVersion"),
            *("greeting", "sampleChat"),
        ]
    ]


@pytest.mark.parametrize(
    ("persona", "description"),
    [
        ({"kind": "text", "attributes": {"text": ["A pilot."]}}, "A pilot."),
        ({"attributes": {"text": "A pilot."}}, "A pilot."),
        ({"attributes": {}}, "Made for a test."),
        ({"attributes": []}, "Made for a test."),
        ("A pilot.", "Made for a test."),
        (None, "Made for a test."),
    ],
)
def test_personas_of_agnai(persona: Any, description: str) -> None:
    assert read({**AGNAI, "persona": persona}).fields["description"] == description
