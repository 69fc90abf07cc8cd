"""Translations: what can be said in other languages, what is stored, and with what it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from db.engine import Database
from db.enums import EntityKind, EntryKind, TranslationTarget
from db.reading import Reading, Writing
from db.tables import Branch, Delta, Happening, Lore, StoryEntity, StoryEntry, Translation
from services import deltas, translations
from services.access import Viewer
from services.errors import Conflict, DomainError, Invalid
from services.shapes import EMPTY_STATES
from tests.conftest import People
from tests.factories import append_entry, make_branch, plant_entity
from tests.services.deltas.ledgers import rows_of, state_of

CHARACTER: dict[str, Any] = {
    "kind": EntityKind.CHARACTER,
    "name": "Mira",
    "retired_reason": None,
    "keywords": ["the lamplighter"],
    "state": {
        **EMPTY_STATES[EntityKind.CHARACTER],
        "visual": {"hair": "grey"},
        "traits": ["wary", "kind"],
        "voice": "low",
    },
}
FACTION = {"kind": EntityKind.FACTION, "name": "Guild", "state": {"agenda": ["more lamps"]}}
PLACE = {
    "kind": EntityKind.LOCATION,
    "name": "Quay",
    "state": {"parent_location_id": None, "condition": "wet"},
}
TIE = {"kind": "rival", "inverse_kind": None}
ENTRY = {"kind": EntryKind.AI_REPLY, "content": "It goes on.", "metadata": {}}


@pytest.mark.parametrize(
    ("kind", "row", "field", "text"),
    [
        (TranslationTarget.ENTITY, CHARACTER, "name", "Mira"),
        (TranslationTarget.ENTITY, CHARACTER, "retired_reason", None),
        (TranslationTarget.ENTITY, CHARACTER, "retiredReason", None),
        (TranslationTarget.ENTITY, CHARACTER, "visual.hair", "grey"),
        (TranslationTarget.ENTITY, CHARACTER, "state.visual.hair", "grey"),
        (TranslationTarget.ENTITY, CHARACTER, "visual.eyes", None),
        (TranslationTarget.ENTITY, CHARACTER, "traits.1", "kind"),
        (TranslationTarget.ENTITY, CHARACTER, "traits.2", None),
        (TranslationTarget.ENTITY, CHARACTER, "drives.0", None),
        (TranslationTarget.ENTITY, CHARACTER, "voice", "low"),
        (TranslationTarget.ENTITY, PLACE, "condition", "wet"),
        (TranslationTarget.ENTITY, FACTION, "agenda.0", "more lamps"),
        (TranslationTarget.ENTITY, FACTION, "standing", None),
        (TranslationTarget.ENTITY, {**FACTION, "state": {}}, "agenda.0", None),
        (TranslationTarget.STORY_ENTRY, ENTRY, "content", "It goes on."),
        (TranslationTarget.CHARACTER_RELATIONSHIP, TIE, "kind", "rival"),
        (TranslationTarget.CHARACTER_RELATIONSHIP, TIE, "inverseKind", None),
        (TranslationTarget.CHAPTER, {"theme": "fog"}, "theme", "fog"),
        (TranslationTarget.LORE, {"body": "Taxed."}, "body", "Taxed."),
        (TranslationTarget.THREAD, {"category": None}, "category", None),
        (TranslationTarget.HAPPENING, {"temporal": "next solstice"}, "temporal", "next solstice"),
    ],
)
def test_a_field_is_found_in_its_row(
    kind: TranslationTarget, row: Mapping[str, Any], field: str, text: str | None
) -> None:
    """Rule V1."""
    assert translations.source_text(kind, row.__getitem__, field, "field") == text


@pytest.mark.parametrize(
    ("kind", "row", "field"),
    [
        (TranslationTarget.ENTITY, CHARACTER, "keywords.0"),
        (TranslationTarget.ENTITY, CHARACTER, "condition"),
        (TranslationTarget.ENTITY, CHARACTER, "state.name"),
        (TranslationTarget.ENTITY, CHARACTER, "state"),
        (TranslationTarget.ENTITY, CHARACTER, "faction_id"),
        (TranslationTarget.ENTITY, CHARACTER, "visual"),
        (TranslationTarget.ENTITY, CHARACTER, "visual.shoes"),
        (TranslationTarget.ENTITY, CHARACTER, "traits"),
        (TranslationTarget.ENTITY, CHARACTER, "traits.x"),
        (TranslationTarget.ENTITY, CHARACTER, "traits.01"),
        (TranslationTarget.ENTITY, CHARACTER, "traits.-1"),
        (TranslationTarget.ENTITY, CHARACTER, "traits.*"),
        (TranslationTarget.ENTITY, CHARACTER, "traits.0.1"),
        (TranslationTarget.ENTITY, PLACE, "voice"),
        (TranslationTarget.ENTITY, PLACE, "stackables.gold"),
        (TranslationTarget.STORY_ENTRY, ENTRY, "metadata"),
        (TranslationTarget.STORY_ENTRY, ENTRY, "kind"),
        (TranslationTarget.THREAD, {}, "icon"),
        (TranslationTarget.LORE, {}, "title.0"),
        (TranslationTarget.LORE, {}, "state.title"),
        (TranslationTarget.LORE, {}, ""),
    ],
)
def test_what_is_no_text_for_people_is_refused(
    kind: TranslationTarget, row: Mapping[str, Any], field: str
) -> None:
    """Rule V1."""
    with pytest.raises(Invalid) as refusal:
        translations.source_text(kind, row.__getitem__, field, "field")
    assert (refusal.value.code, refusal.value.path) == ("FIELD_NOT_TRANSLATABLE", ("field",))


async def saying(
    writing: Writing, viewer: Viewer, branch: Branch, row_id: str, **given: Any
) -> Translation:
    asked = {"field": "name", "language": "fr", "text": "Dit autrement", **given}
    said, _ = await translations.set_translation(
        writing, viewer, target_id=f"{branch.id}:{row_id}", **asked
    )
    return said


async def log_of(reading: Reading, branch: Branch) -> list[tuple[str, str, str | None]]:
    log = await rows_of(reading, Delta, branch.id)
    return [(each.target_table, each.op, each.entry_id) for each in log]


async def test_a_field_is_said_once_in_a_language(database: Database, people: People) -> None:
    """Rule V4."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        mira = await plant_entity(
            writing, branch.id, EntityKind.CHARACTER, "Mira", visual={"hair": "grey"}
        )
        first = await saying(writing, people.owner, branch, mira["id"], text="Myra")
        again = await saying(writing, people.owner, branch, mira["id"], text="Mirah")
        await saying(writing, people.owner, branch, mira["id"], text="Mirah")
        await saying(writing, people.owner, branch, mira["id"], language="de", text="Mira V.")
        await saying(
            writing, people.owner, branch, mira["id"], field="state.visual.hair", text="gris"
        )
    async with database.reading() as reading:
        rows = await rows_of(reading, Translation, branch.id)
        assert [(each.target_kind, each.field, each.language, each.text) for each in rows] == [
            ("entity", "name", "fr", "Mirah"),
            ("entity", "name", "de", "Mira V."),
            ("entity", "visual.hair", "fr", "gris"),
        ]
        assert {each.target_id for each in rows} == {mira["id"]}
        assert (first.id, first.text, again.text) == (again.id, "Myra", "Mirah")
        assert await log_of(reading, branch) == [
            ("translations", "create", None),
            ("translations", "update", None),
            ("translations", "create", None),
            ("translations", "create", None),
        ]


async def test_a_translation_goes_by_what_it_says_in_another_language(
    database: Database, people: People
) -> None:
    """Rule V5: anchored to the entry to which the newest change of its target is."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        async with deltas.acting(writing, people.owner, branch.id) as action:
            entry = await append_entry(action, 2)
            happening = await action.create(Happening, {"title": "Fire"}, anchor=entry["id"])
        await saying(writing, people.owner, branch, entry["id"], field="content")
        said = await saying(writing, people.owner, branch, happening["id"], field="title")
        async with deltas.acting(writing, people.owner, branch.id) as action:
            await action.update(Happening, happening, {"title": "A great fire"})
        await saying(writing, people.owner, branch, happening["id"], field="title", language="de")
        await saying(writing, people.owner, branch, happening["id"], field="title", text="Encore")
        await translations.delete_translation(writing, people.owner, said.id)
    async with database.reading() as reading:
        assert await log_of(reading, branch) == [
            ("story_entries", "create", entry["id"]),
            ("happenings", "create", entry["id"]),
            ("translations", "create", entry["id"]),
            ("translations", "create", entry["id"]),
            ("happenings", "update", None),
            ("translations", "create", None),
            ("translations", "update", None),
            ("translations", "delete", None),
        ]


async def test_a_translation_goes_with_its_row(database: Database, people: People) -> None:
    """Rule V6."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        rows = [
            await plant_entity(writing, branch.id, EntityKind.ITEM, name)
            for name in ("Lamp", "Key")
        ]
        for each in rows:
            await saying(writing, people.owner, branch, each["id"])
        async with deltas.acting(writing, people.owner, branch.id) as action:
            await action.delete(StoryEntity, rows[0])
    async with database.reading() as reading:
        left = await rows_of(reading, Translation, branch.id)
        assert [each.target_id for each in left] == [rows[1]["id"]]


async def test_who_has_seen_another_head_translates_nothing(
    database: Database, people: People
) -> None:
    """Rule V4."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        item = await plant_entity(writing, branch.id, EntityKind.ITEM, "Lamp")
        said = await saying(writing, people.owner, branch, item["id"], expected_head=0)
        with pytest.raises(Conflict) as refusal:
            await saying(writing, people.owner, branch, item["id"], text="Non", expected_head=0)
        assert refusal.value.details == {"head": 1}
        with pytest.raises(Conflict):
            await translations.delete_translation(writing, people.owner, said.id, 0)
        deleted_id, after = await translations.delete_translation(writing, people.owner, said.id, 1)
        assert (deleted_id, after.head) == (said.id, 2)


REFUSALS: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "no such field": ({"field": "colour"}, "FIELD_NOT_TRANSLATABLE", ("input", "field")),
    "nothing there": ({"field": "retired_reason"}, "NOTHING_TO_TRANSLATE", ("input", "field")),
    "empty there": ({"field": "description"}, "NOTHING_TO_TRANSLATE", ("input", "field")),
    "not in the list": ({"field": "traits.0"}, "NOTHING_TO_TRANSLATE", ("input", "field")),
    "a word": ({"language": "french"}, "LANGUAGE_INVALID", ("input", "language")),
    "a region": ({"language": "fr-CA"}, "LANGUAGE_INVALID", ("input", "language")),
    "capitals": ({"language": "FR"}, "LANGUAGE_INVALID", ("input", "language")),
    "no language": ({"language": ""}, "LANGUAGE_INVALID", ("input", "language")),
    "no text": ({"text": " "}, "TEXT_EMPTY", ("input", "text")),
    "too much text": ({"text": "x" * 1_000_001}, "TEXT_TOO_LONG", ("input", "text")),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_what_says_nothing_is_refused(database: Database, people: People, name: str) -> None:
    """Rules V1, V4."""
    given, code, path = REFUSALS[name]
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        mira = await plant_entity(writing, branch.id, EntityKind.CHARACTER, "Mira")
    with pytest.raises(DomainError) as refusal:
        async with database.writing() as writing:
            await saying(writing, people.owner, branch, mira["id"], **given)
    assert (refusal.value.code, refusal.value.path) == (code, path)
    async with database.reading() as reading:
        assert await rows_of(reading, Translation, branch.id) == []
        assert await rows_of(reading, Delta, branch.id) == []


async def test_what_is_not_there_cannot_be_translated(database: Database, people: People) -> None:
    """Rule V4."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        mira = await plant_entity(writing, branch.id, EntityKind.CHARACTER, "Mira")
        said = await saying(writing, people.owner, branch, mira["id"])
        (notice,) = await deltas.plant_rows(
            writing,
            branch.id,
            StoryEntry,
            [{"position": 2, "kind": EntryKind.SYSTEM, "content": "Failed.", "metadata": {}}],
        )
        with pytest.raises(Invalid) as refusal:
            await saying(writing, people.owner, branch, notice["id"], field="content")
        assert refusal.value.code == "NOTHING_TO_TRANSLATE"
        before = await state_of(writing, branch.id)
        gone = "lore_01900000-0000-7000-8000-000000000000"
        targets = ["", "x", mira["id"], branch.id, said.id, f"{branch.id}:{gone}"]
        for viewer, target in [
            *[(people.owner, each) for each in targets],
            (people.stranger, f"{branch.id}:{mira['id']}"),
            (people.anonymous, f"{branch.id}:{mira['id']}"),
        ]:
            with pytest.raises(DomainError) as caught:
                await translations.set_translation(
                    writing, viewer, target_id=target, field="name", language="fr", text="Non"
                )
            assert (caught.value.code, caught.value.path) == ("NOT_FOUND", ("input", "targetId"))
        for viewer, each in [(people.stranger, said.id), (people.owner, f"{branch.id}:{gone}")]:
            with pytest.raises(DomainError) as caught:
                await translations.delete_translation(writing, viewer, each)
            assert caught.value.path == ("input", "translationId")
        assert await state_of(writing, branch.id) == before


def test_every_kind_of_target_has_fields_and_a_table() -> None:
    """Rule V1."""
    assert set(translations.FIELDS) == set(translations.TARGETS) == set(TranslationTarget)
    assert set(translations.STATE_FIELDS) == set(EntityKind)
    assert translations.TARGETS[TranslationTarget.LORE] is Lore
