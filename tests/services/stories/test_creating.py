"""A story is made at once, with all that it begins with, and nothing of that can be undone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from db.engine import Database
from db.enums import EntityKind, EntityStatus, Narration, StoryMode
from db.paging import FIRST_PAGE
from db.tables import AppSettings, Branch, Delta, EraFlip
from services import calendars, stories
from services.access import require_row
from services.errors import DomainError, Forbidden, Invalid, LimitReached, NotFound
from services.shapes import (
    DEFAULT_SUGGESTION_CATEGORIES,
    default_settings,
    loaded_settings,
    stored_settings,
)
from services.stories import NewLore, NewMember, NewOpening
from tests.conftest import People
from tests.services.deltas.ledgers import rows_of, state_of
from tests.services.stories.stories import CAST, EARTH_ORIGIN, definition, lamplighter, plain

EMPTY_CHARACTER = {
    "visual": {},
    "traits": [],
    "drives": [],
    "current_location_id": None,
    "equipped_items": [],
    "inventory": [],
    "faction_id": None,
    "lastSeenAt": None,
}


async def test_a_story_begins_with_its_cast_its_lore_and_its_opening_and_no_log(
    database: Database, people: People
) -> None:
    """Rules B1, B2, B3, B6."""
    async with database.writing() as writing:
        story, keys = await stories.create_story(
            writing, people.owner, lamplighter(era_name="The Gaslight Years")
        )
    branch_id = story.current_branch_id
    assert branch_id is not None
    own = {each.key: each.id.partition(":")[2] for each in keys}
    assert [each.key for each in keys] == [*(each.key for each in CAST), "oil"]
    assert {each.id.partition(":")[0] for each in keys} == {branch_id}
    assert {key: each.partition("_")[0] for key, each in own.items()} == {
        "quay": "loc",
        "office": "loc",
        "mira": "char",
        "odo": "char",
        "guild": "fact",
        "ledger": "item",
        "oil": "lore",
    }
    async with database.reading() as reading:
        branch = await require_row(reading, people.owner, Branch, branch_id)
        state = await state_of(reading, branch_id)
        assert await rows_of(reading, Delta, branch_id) == []
    assert (branch.name, branch.story_id, branch.head, branch.parent_branch_id) == (
        "Main",
        story.id,
        0,
        None,
    )
    found = {row["name"]: row for row in state["entities"].values()}
    assert {name: row["state"] for name, row in found.items()} == {
        "Quay Street": {"parent_location_id": None},
        "The Tally Office": {"parent_location_id": own["quay"]},
        "Mira Voss": {
            **EMPTY_CHARACTER,
            "traits": ["patient"],
            "visual": {"eyes": "grey"},
            "stackables": {"wick": 3},
            "current_location_id": own["quay"],
            "faction_id": own["guild"],
        },
        "Odo Tann": EMPTY_CHARACTER,
        "The Wick Guild": {},
        "The Night Ledger": {"at_location_id": own["office"]},
    }
    mira = found["Mira Voss"]
    assert (mira["description"], mira["keywords"], mira["tags"], mira["priority"]) == (
        "A lamplighter.",
        ["the lamplighter"],
        ["lead"],
        80,
    )
    assert [found[name]["status"] for name in ("Mira Voss", "Odo Tann")] == ["active", "staged"]
    (lore,) = state["lore"].values()
    assert (lore["title"], lore["body"], lore["category"], lore["keywords"]) == (
        "Whale oil",
        "Oil is taxed by the lamp.",
        "economy",
        ["oil", "tax"],
    )
    (entry,) = state["story_entries"].values()
    assert (entry["position"], entry["kind"], entry["content"]) == (
        1,
        "opening",
        "The seventh lamp will not light.",
    )
    assert entry["metadata"] == {
        "sceneEntities": [own["mira"], own["ledger"]],
        "currentLocationId": own["quay"],
        "worldTime": 0,
    }
    (flip,) = state["branch_era_flips"].values()
    assert (flip["at_worldtime"], flip["era_name"]) == (0, "The Gaslight Years")
    assert story.status == "active"
    assert story.definition_json == {
        "mode": "adventure",
        "leadEntityId": own["mira"],
        "narration": "second",
        "genre": {"label": "Gaslamp mystery", "promptBody": "Fog and brass."},
        "tone": {"label": "Wry", "promptBody": ""},
        "setting": "A harbour city.",
        "calendarSystemId": "earth-gregorian",
        "worldTimeOrigin": EARTH_ORIGIN,
    }


async def test_settings_are_what_the_owner_has_set_up_and_else_the_servers(
    database: Database, people: People
) -> None:
    """Rules B7, B8."""
    own_palette = [{**DEFAULT_SUGGESTION_CATEGORIES[StoryMode.CREATIVE][0], "label": "Mine"}]
    async with database.writing() as writing:
        before, _ = await stories.create_story(writing, people.owner, lamplighter())
        await writing.insert(
            AppSettings,
            id=people.owner.user_id,
            default_story_settings={
                "suggestionCount": 5,
                "keywordRetrieval": {"mode": "inject"},
                "composerWrapPov": "third",
            },
            default_suggestion_categories={"creative": own_palette},
            embedding_model_id="minilm",
            default_calendar_id="stardate",
        )
        adventure, _ = await stories.create_story(writing, people.owner, lamplighter())
        creative, _ = await stories.create_story(
            writing, people.owner, plain(definition=_of_no_calendar())
        )
    server = stored_settings(default_settings(StoryMode.ADVENTURE))
    assert before.settings == server
    assert (server["composerWrapPov"], server["classifierCadence"]) == ("first", 5)
    assert adventure.settings == {
        **server,
        "suggestionCount": 5,
        "keywordRetrieval": {**server["keywordRetrieval"], "mode": "inject"},
        "composerWrapPov": "third",
        "embedding_model_id": "minilm",
    }
    assert creative.settings["suggestionCategories"] == own_palette
    assert creative.definition_json["calendarSystemId"] == "stardate"
    assert creative.definition_json["worldTimeOrigin"] == {"count": 41_000}


def _of_no_calendar() -> Any:
    return replace(plain().definition, calendar_system_id=None)


def test_a_story_of_an_earlier_server_reads_with_defaults() -> None:
    """Rule B8."""
    stored = {"translation": {"targetLanguage": "de"}, "suggestionCount": 1}
    read = loaded_settings(stored, StoryMode.CREATIVE)
    server = default_settings(StoryMode.CREATIVE)
    assert read == {
        **server,
        "suggestionCount": 1,
        "translation": {**server["translation"], "targetLanguage": "de"},
    }
    assert stored == {"translation": {"targetLanguage": "de"}, "suggestionCount": 1}


async def test_a_draft_may_lack_its_lead_and_its_opening(
    database: Database, people: People
) -> None:
    """Rule B9."""
    async with database.writing() as writing:
        story, keys = await stories.create_story(
            writing,
            people.owner,
            lamplighter(is_draft=True, definition=definition(lead_key=None), cast=(), opening=None),
        )
    assert (story.status, [each.key for each in keys]) == ("draft", ["oil"])


async def test_a_calendar_without_eras_keeps_the_name_of_its_beginning(
    database: Database, people: People
) -> None:
    """Rule B3."""
    async with database.writing() as writing:
        story, _ = await stories.create_story(writing, people.owner, plain(era_name="Dawn"))
    async with database.reading() as reading:
        (flip,) = await rows_of(reading, EraFlip, str(story.current_branch_id))
    assert flip.era_name == "Dawn"


LONG = "n" * 501
RETIRED = NewMember("ruin", EntityKind.LOCATION, "Ruin", status=EntityStatus.RETIRED)
CASES: list[tuple[str, dict[str, Any], type[DomainError], str, tuple[Any, ...]]] = [
    ("no title", {"title": " "}, Invalid, "TEXT_EMPTY", ("title",)),
    ("a long title", {"title": LONG}, Invalid, "TEXT_TOO_LONG", ("title",)),
    ("a long tag", {"tags": ("a", LONG)}, Invalid, "TEXT_TOO_LONG", ("tags", 1)),
    ("many tags", {"tags": ("a",) * 51}, LimitReached, "LIMIT_REACHED", ("tags",)),
    ("a colour", {"accent_color": "blue"}, Invalid, "COLOR_INVALID", ("accentColor",)),
    ("no opening", {"opening": None}, Invalid, "OPENING_REQUIRED", ("opening",)),
    (
        "an empty opening",
        {"opening": NewOpening("")},
        Invalid,
        "TEXT_EMPTY",
        ("opening", "content"),
    ),
    (
        "a scene with nobody",
        {"opening": NewOpening("x", ("mira", "who"))},
        Invalid,
        "KEY_UNKNOWN",
        ("opening", "sceneKeys", 1),
    ),
    (
        "a scene with a place",
        {"opening": NewOpening("x", ("quay",))},
        Invalid,
        "WRONG_KIND",
        ("opening", "sceneKeys", 0),
    ),
    (
        "a scene with somebody staged",
        {"opening": NewOpening("x", ("odo",))},
        Invalid,
        "NOT_ACTIVE",
        ("opening", "sceneKeys", 0),
    ),
    (
        "a scene in a person",
        {"opening": NewOpening("x", (), "mira")},
        Invalid,
        "WRONG_KIND",
        ("opening", "locationKey"),
    ),
    (
        "a crowded scene",
        {"opening": NewOpening("x", ("mira",) * 201)},
        LimitReached,
        "LIMIT_REACHED",
        ("opening", "sceneKeys"),
    ),
    (
        "a blank model",
        {"opening": NewOpening("x", model="")},
        Invalid,
        "TEXT_EMPTY",
        ("opening", "model"),
    ),
    ("a blank era", {"era_name": ""}, Invalid, "TEXT_EMPTY", ("eraName",)),
    (
        "a key twice",
        {"cast": (*CAST, NewMember("mira", EntityKind.ITEM, "x"))},
        Invalid,
        "KEY_TAKEN",
        ("cast", 6, "key"),
    ),
    (
        "a key of the cast in the lore",
        {"lore": (NewLore("mira", "x", "y"),)},
        Invalid,
        "KEY_TAKEN",
        ("lore", 0, "key"),
    ),
    (
        "a blank key",
        {"cast": (NewMember("", EntityKind.ITEM, "x"),)},
        Invalid,
        "TEXT_EMPTY",
        ("cast", 0, "key"),
    ),
    (
        "lore without a text",
        {"lore": (NewLore("l", "x", ""),)},
        Invalid,
        "TEXT_EMPTY",
        ("lore", 0, "body"),
    ),
    (
        "lore of a blank category",
        {"lore": (NewLore("l", "x", "y", ""),)},
        Invalid,
        "TEXT_EMPTY",
        ("lore", 0, "category"),
    ),
    (
        "much lore",
        {"lore": tuple(NewLore(str(n), "x", "y") for n in range(1_001))},
        LimitReached,
        "LIMIT_REACHED",
        ("lore",),
    ),
    (
        "a crowd",
        {"cast": tuple(NewMember(str(n), EntityKind.ITEM, "x") for n in range(501))},
        LimitReached,
        "LIMIT_REACHED",
        ("cast",),
    ),
    *(
        (
            f"a member with {name} {value!r}",
            {"cast": (*CAST, replace(CAST[index], key="new", **{name: value}))},
            kind,
            code,
            ("cast", 6, *where),
        )
        for index, name, value, kind, code, where in (
            (1, "parent_key", "who", Invalid, "KEY_UNKNOWN", ("parentKey",)),
            (1, "parent_key", "mira", Invalid, "WRONG_KIND", ("parentKey",)),
            (2, "parent_key", "quay", Invalid, "WRONG_KIND", ("parentKey",)),
            (2, "location_key", "guild", Invalid, "WRONG_KIND", ("locationKey",)),
            (2, "faction_key", "quay", Invalid, "WRONG_KIND", ("factionKey",)),
            (4, "location_key", "quay", Invalid, "WRONG_KIND", ("locationKey",)),
            (2, "name", "", Invalid, "TEXT_EMPTY", ("name",)),
            (2, "priority", 101, Invalid, "OUT_OF_RANGE", ("priority",)),
            (2, "keywords", ("",), Invalid, "TEXT_EMPTY", ("keywords", 0)),
            (2, "state", {"mood": "low"}, Invalid, "INVALID_SHAPE", ("state", "mood")),
            (2, "state", {"traits": [1]}, Invalid, "INVALID_SHAPE", ("state", "traits", 0)),
            (2, "state", [], Invalid, "INVALID_SHAPE", ("state",)),
            (
                2,
                "state",
                {"current_location_id": "x"},
                Invalid,
                "INVALID_SHAPE",
                ("state", "current_location_id"),
            ),
            (2, "state", {"inventory": []}, Invalid, "INVALID_SHAPE", ("state", "inventory")),
        )
    ),
    (
        "a place within itself",
        {
            "cast": (
                replace(CAST[0], parent_key="attic"),
                *CAST[1:],
                NewMember("attic", EntityKind.LOCATION, "x", parent_key="office"),
            )
        },
        Invalid,
        "PARENT_CYCLE",
        ("cast", 0, "parentKey"),
    ),
    (
        "somebody in a retired place",
        {"cast": (*CAST, RETIRED, NewMember("x", EntityKind.ITEM, "x", location_key="ruin"))},
        Forbidden,
        "RETIRED_PLACE",
        ("cast", 7, "locationKey"),
    ),
    (
        "a place in a retired place",
        {"cast": (*CAST, RETIRED, NewMember("x", EntityKind.LOCATION, "x", parent_key="ruin"))},
        Forbidden,
        "RETIRED_PARENT",
        ("cast", 7, "parentKey"),
    ),
    (
        "a quantity with two names",
        {
            "cast": (
                *CAST,
                NewMember(
                    "x", EntityKind.CHARACTER, "x", state={"stackables": {"Gold": 1, "gold": 2}}
                ),
            )
        },
        Invalid,
        "KEY_TWICE",
        ("cast", 6, "state", "stackables", "gold"),
    ),
    *(
        (f"a definition with {changes}", {"definition": definition(**changes)}, kind, code, where)
        for changes, kind, code, where in (
            ({"lead_key": None}, Invalid, "LEAD_REQUIRED", ("definition", "leadKey")),
            (
                {"lead_key": None, "mode": StoryMode.CREATIVE, "narration": Narration.FIRST},
                Invalid,
                "LEAD_REQUIRED",
                ("definition", "leadKey"),
            ),
            ({"lead_key": "who"}, Invalid, "KEY_UNKNOWN", ("definition", "leadKey")),
            ({"lead_key": "quay"}, Invalid, "WRONG_KIND", ("definition", "leadKey")),
            (
                {"calendar_system_id": None},
                Invalid,
                "CALENDAR_REQUIRED",
                ("definition", "calendarSystemId"),
            ),
            (
                {"calendar_system_id": "cal_1"},
                NotFound,
                "NOT_FOUND",
                ("definition", "calendarSystemId"),
            ),
            (
                {"world_time_origin": {**EARTH_ORIGIN, "month": 13}},
                Invalid,
                "DATE_INVALID",
                ("definition", "worldTimeOrigin", "month"),
            ),
            (
                {"world_time_origin": {"year": 1872}},
                Invalid,
                "DATE_INVALID",
                ("definition", "worldTimeOrigin", "month"),
            ),
            (
                {"world_time_origin": {**EARTH_ORIGIN, "count": 1}},
                Invalid,
                "DATE_INVALID",
                ("definition", "worldTimeOrigin", "count"),
            ),
            ({"setting": "s" * 50_001}, Invalid, "TEXT_TOO_LONG", ("definition", "setting")),
        )
    ),
]


async def test_each_story_that_cannot_be_is_refused_with_the_field_at_fault(
    database: Database, people: People
) -> None:
    """Rules B1, B2, B3, B4, B5."""
    for name, changes, kind, code, where in CASES:
        async with database.writing() as writing:
            with pytest.raises(kind) as refusal:
                await stories.create_story(writing, people.owner, lamplighter(**changes))
        assert (refusal.value.code, refusal.value.path) == (code, ("input", *where)), name
    async with database.reading() as reading:
        page = await stories.list_stories(reading, people.owner, FIRST_PAGE)
    assert page.nodes == []


async def test_a_story_counts_by_no_calendar_of_somebody_else(
    database: Database, people: People
) -> None:
    """Rule B5."""
    async with database.writing() as writing:
        other = await calendars.clone_calendar(writing, people.stranger, "stardate")
    async with database.writing() as writing:
        with pytest.raises(NotFound) as refusal:
            await stories.create_story(
                writing,
                people.owner,
                lamplighter(definition=definition(calendar_system_id=other.id)),
            )
    assert refusal.value.path == ("input", "definition", "calendarSystemId")


async def test_nobody_has_no_stories(database: Database, people: People) -> None:
    async with database.writing() as writing:
        with pytest.raises(Forbidden) as refusal:
            await stories.create_story(writing, people.anonymous, lamplighter())
    assert refusal.value.code == "NOT_SIGNED_IN"
