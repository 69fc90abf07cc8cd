"""Texts in other languages, in one batch for rows of all kinds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from strawberry import Some

from db.engine import Database
from db.enums import EntityKind
from db.tables import Branch, Lore, StoryEntity, StoryEntry, Thread
from resolvers import translations as resolve
from resolvers.context import Context
from schema.branch_rows import AsOfInput
from services import deltas, past, plot, translations
from services.access import Viewer, rows_by_ids
from services.errors import Invalid
from tests.architecture.world import WatchedDatabase
from tests.conftest import People
from tests.factories import append_entry, make_branch, plant_entity

TABLES = [StoryEntity, StoryEntity, StoryEntry, Lore, Thread]


def watched(database: Database, viewer: Viewer, seen: list[str]) -> Context:
    engine: Any = SimpleNamespace(database=WatchedDatabase(database, seen))
    return Context(engine, viewer)


async def rows_to_translate(database: Database, viewer: Viewer) -> tuple[Branch, list[Any]]:
    """A character, an item, an entry, lore and a thread, all said in French but for the thread."""
    async with database.writing() as writing:
        branch = await make_branch(writing, viewer)
        mira = await plant_entity(
            writing, branch.id, EntityKind.CHARACTER, "Mira", traits=["wary", "kind"]
        )
        lamp = await plant_entity(writing, branch.id, EntityKind.ITEM, "Lamp")
        async with deltas.acting(writing, viewer, branch.id) as action:
            entry = await append_entry(action, 2, content="Fog.")
        made = {"title": "Oil", "body": "Taxed.", "injection_mode": "auto"}
        lore, _ = await plot.create_lore(writing, viewer, branch.id, made)
        made = {"title": "Who burns?", "status": "pending", "injection_mode": "auto"}
        thread, _ = await plot.create_thread(writing, viewer, branch.id, made)
        ids = [f"{branch.id}:{each['id']}" for each in (mira, lamp, entry)] + [lore.id, thread.id]
        for row_id, field, text in [
            (ids[0], "name", "Myra"),
            (ids[0], "traits.1", "bonne"),
            (ids[1], "name", "Lampe"),
            (ids[2], "content", "Brume."),
            (ids[3], "title", "Huile"),
            (ids[3], "body", "Taxée."),
        ]:
            await translations.set_translation(
                writing, viewer, target_id=row_id, field=field, language="fr", text=text
            )
    async with database.reading() as reading:
        rows = [
            (await rows_by_ids(reading, viewer, cast("Any", table), [each]))[0]
            for table, each in zip(TABLES, ids, strict=True)
        ]
    return branch, rows


async def test_rows_of_all_kinds_take_one_statement(database: Database, people: People) -> None:
    """Rules V2, V3."""
    _, rows = await rows_to_translate(database, people.owner)
    seen: list[str] = []
    context = watched(database, people.owner, seen)
    texts = [
        await context.batcher.load_many(
            resolve.translations_of_rows, some, {"field": field, "language": "fr"}
        )
        for field, some in [
            ("name", rows[:2]),
            ("content", [rows[2]]),
            ("title", rows[3:]),
        ]
    ]
    assert texts == [["Myra", "Lampe"], ["Brume."], ["Huile", "Who burns?"]]
    assert len(seen) == 3
    # What was found of a row serves all its fields.
    more = [
        await context.batcher.load(
            resolve.translations_of_rows, row, {"field": field, "language": "fr"}
        )
        for row, field in [(rows[0], "traits.1"), (rows[0], "traits.0"), (rows[3], "body")]
    ]
    assert more == ["bonne", "wary", "Taxée."]
    assert len(seen) == 3
    together = await resolve.translations_of_rows(
        watched(database, people.owner, seen), rows, field="title", language="fr"
    )
    assert together[3:] == ["Huile", "Who burns?"]
    assert len(seen) == 4


async def test_what_is_no_text_of_a_row_is_an_error_of_that_row(
    database: Database, people: People
) -> None:
    """Rule V1."""
    _, rows = await rows_to_translate(database, people.owner)
    for language in (None, "fr"):
        found = await resolve.translations_of_rows(
            watched(database, people.owner, []), rows, field="traits.0", language=language
        )
        assert found[0] == "wary"
        assert [type(each) for each in found[1:]] == [Invalid] * 4
        assert {each.code for each in found[1:] if isinstance(each, Invalid)} == {
            "FIELD_NOT_TRANSLATABLE"
        }


async def test_without_a_language_the_source_shows_and_nothing_is_asked(
    database: Database, people: People
) -> None:
    """Rule V2."""
    _, rows = await rows_to_translate(database, people.owner)
    seen: list[str] = []
    context = watched(database, people.owner, seen)
    found = await resolve.translations_of_rows(context, rows[:2], field="name")
    assert (found, seen) == (["Mira", "Lamp"], [])
    found = await resolve.translations_of_rows(context, rows[:2], field="name", language="xx")
    assert found == ["Mira", "Lamp"]


async def test_what_has_no_text_any_more_has_none_in_any_language(
    database: Database, people: People
) -> None:
    """Rule V2."""
    branch, rows = await rows_to_translate(database, people.owner)
    async with database.writing() as writing:
        async with deltas.acting_on(
            writing, people.owner, StoryEntity, rows[0].id, "input", "entityId"
        ) as (action, before):
            state = {**before["state"], "traits": ["wary"]}
            await action.update(StoryEntity, before, {"state": state})
        (mira,) = await rows_by_ids(writing, people.owner, StoryEntity, [rows[0].id])
    assert mira is not None
    assert mira.branch_id == branch.id
    found = await resolve.translations_of_rows(
        watched(database, people.owner, []), [mira], field="traits.1", language="fr"
    )
    assert found == [None]


async def test_a_row_of_the_past_shows_what_was_said_then(
    database: Database, people: People
) -> None:
    """Rules V3, V7."""
    branch, rows = await rows_to_translate(database, people.owner)
    lore = rows[3]
    said = {"target_id": lore.id, "field": "title", "language": "fr"}
    async with database.writing() as writing:
        _, branch = await translations.set_translation(
            writing, people.owner, text="Pétrole", **said
        )
        _, last = await plot.update_lore(writing, people.owner, lore.id, {"title": "Petrol"})
    before = branch.head - 1
    shown = []
    for position in (before, branch.head, last.head):
        async with database.reading() as reading:
            moment = await past.resolve_moment(
                reading, people.owner, branch.id, past.AsOf(log_position=position)
            )
            (then,) = (await past.rows_at(reading, people.owner, moment, Lore)).values()
        for row in (then, lore):
            shown += await resolve.translations_of_rows(
                watched(database, people.owner, []), [row], field="title", language="fr"
            )
        shown += await resolve.translations_of_rows(
            watched(database, people.owner, []), [then], field="title"
        )
    assert shown == [
        *("Huile", "Pétrole", "Oil"),
        *("Pétrole", "Pétrole", "Oil"),
        *("Pétrole", "Pétrole", "Petrol"),
    ]
    asked = AsOfInput(entry_id=None, log_position=Some(before), at=None)
    (page,) = await resolve.translations_of_branches(
        watched(database, people.owner, []), [branch], as_of=asked, language="fr"
    )
    assert [each.text for each in page.nodes][-2:] == ["Huile", "Taxée."]


async def test_a_translation_leads_to_what_it_translates(
    database: Database, people: People
) -> None:
    """Rule V7."""
    branch, rows = await rows_to_translate(database, people.owner)
    seen: list[str] = []
    context = watched(database, people.owner, seen)
    ((page,), (french,), (german,)) = [
        await resolve.translations_of_branches(context, [branch], language=language)
        for language in (None, "fr", "de")
    ]
    assert [each.text for each in page.nodes] == [
        "Myra",
        "bonne",
        "Lampe",
        "Brume.",
        "Huile",
        "Taxée.",
    ]
    assert (french.nodes, german.nodes) == (page.nodes, [])
    seen.clear()
    found = await resolve.targets_of_translations(context, page.nodes)
    assert [each.id for each in found] == [rows[at].id for at in (0, 0, 1, 2, 3, 3)]
    # One for each kind of row.
    assert len(seen) == 3
