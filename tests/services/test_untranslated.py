"""What is not said in a language yet, and saying much of it at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from db.engine import Database
from db.enums import EntityKind, EntryKind, InjectionMode, ThreadStatus, TranslationTarget
from db.paging import BadPageRequest, PageRequest
from db.reading import Reading, Writing
from db.tables import (
    Branch,
    Chapter,
    CharacterRelationship,
    Delta,
    Happening,
    Lore,
    StoryEntry,
    Thread,
    Translation,
)
from services import deltas, translations
from services.access import Viewer, find_row
from services.errors import Conflict, DomainError
from services.translations import Coverage, Imported, UntranslatedText, Wording
from services.translations.missing import MISSES
from tests.architecture.world import WatchedConnection
from tests.conftest import People
from tests.factories import append_entry, make_branch, plant_entity
from tests.services.deltas.ledgers import rows_of, state_of

PAGE = PageRequest(first=200)
AUTO = {"injection_mode": InjectionMode.AUTO}


@dataclass(frozen=True)
class Told:
    """A branch with rows of every kind, by names."""

    branch: Branch
    ids: Mapping[str, str]


async def tell(writing: Writing, viewer: Viewer) -> Told:
    """Every kind of row that has texts, with texts that are empty, listed, or no texts at all."""
    branch = await make_branch(writing, viewer)
    ids = {}
    for kind, name, state in [
        (
            EntityKind.CHARACTER,
            "Mira",
            {
                "visual": {"hair": "grey", "eyes": ""},
                "traits": ["wary", "", "kind"],
                "drives": ["oil"],
                "voice": "low",
                "stackables": {"gold": 3},
            },
        ),
        (EntityKind.CHARACTER, "Odo", {}),
        (EntityKind.LOCATION, "Quay", {"condition": "wet"}),
        (EntityKind.ITEM, "Lamp", {"condition": ""}),
        (EntityKind.FACTION, "Guild", {"standing": "proud", "agenda": ["more lamps", "less fog"]}),
    ]:
        ids[name] = (await plant_entity(writing, branch.id, kind, name, **state))["id"]
    one, other = sorted((ids["Mira"], ids["Odo"]))
    async with deltas.acting(writing, viewer, branch.id) as action:
        entry = await append_entry(action, 2, content="Fog.")
        ends = {"start_entry_id": entry["id"], "end_entry_id": entry["id"]}
        for name, table, values in [
            ("lore", Lore, {"title": "Oil", "body": "Taxed.", "tags": ["law"], **AUTO}),
            ("thread", Thread, {"title": "Who?", "status": ThreadStatus.PENDING, **AUTO}),
            ("happening", Happening, {"title": "Fire", "temporal": "long ago"}),
            ("tie", CharacterRelationship, {"a_id": one, "b_id": other, "kind": "friend"}),
            ("chapter", Chapter, {"sequence_number": 1, "title": "One", "theme": "fog", **ends}),
        ]:
            ids[name] = (await action.create(table, values))["id"]
    await deltas.plant_rows(
        writing,
        branch.id,
        StoryEntry,
        [{"position": 3, "kind": EntryKind.SYSTEM, "content": "Failed.", "metadata": {}}],
    )
    opening, *_ = await rows_of(writing, StoryEntry, branch.id)
    return Told(branch, {**ids, "entry": entry["id"], "opening": opening.row_id})


TEXTS: dict[str, list[tuple[str, str, str]]] = {
    "entity": [
        ("Mira", "drives.0", "oil"),
        ("Mira", "name", "Mira"),
        ("Mira", "traits.0", "wary"),
        ("Mira", "traits.2", "kind"),
        ("Mira", "visual.hair", "grey"),
        ("Mira", "voice", "low"),
        ("Odo", "name", "Odo"),
        ("Guild", "agenda.0", "more lamps"),
        ("Guild", "agenda.1", "less fog"),
        ("Guild", "name", "Guild"),
        ("Guild", "standing", "proud"),
        ("Lamp", "name", "Lamp"),
        ("Quay", "condition", "wet"),
        ("Quay", "name", "Quay"),
    ],
    "lore": [("lore", "body", "Taxed."), ("lore", "title", "Oil")],
    "thread": [("thread", "title", "Who?")],
    "happening": [("happening", "temporal", "long ago"), ("happening", "title", "Fire")],
    "story_entry": [("opening", "content", "It begins."), ("entry", "content", "Fog.")],
    "character_relationship": [("tie", "kind", "friend")],
    "chapter": [("chapter", "theme", "fog"), ("chapter", "title", "One")],
}


def named(told: Told, found: Sequence[UntranslatedText]) -> dict[str, set[tuple[str, str, str]]]:
    """Texts by kinds, with names for ids."""
    names = {row_id: name for name, row_id in told.ids.items()}
    texts: dict[str, set[tuple[str, str, str]]] = {}
    for each in found:
        assert each.branch_id == told.branch.id
        texts.setdefault(str(each.target_kind), set()).add(
            (names[each.target_id], each.field, each.text)
        )
    return texts


async def missing(
    reading: Reading, viewer: Viewer, branch: Branch, page: PageRequest = PAGE, **asked: Any
) -> list[UntranslatedText]:
    (found,) = await translations.untranslated_of_branches(
        reading, viewer, [branch.id], page, asked.pop("language", "fr"), **asked
    )
    nodes: list[UntranslatedText] = found.nodes
    return nodes


async def importing(
    writing: Writing, viewer: Viewer, branch: Branch, *wordings: Wording, **given: Any
) -> Imported:
    asked = {"language": "fr", **given}
    return await translations.import_translations(
        writing, viewer, branch.id, asked.pop("language"), wordings, **asked
    )


async def test_every_text_of_a_branch_is_missing_until_it_is_said(
    database: Database, people: People
) -> None:
    """Rules V8, V9."""
    async with database.writing() as writing:
        told = await tell(writing, people.owner)
        other = await make_branch(writing, people.owner)
    async with database.writing() as writing:
        found = await missing(writing, people.owner, told.branch)
        assert named(told, found) == {kind: set(texts) for kind, texts in TEXTS.items()}
        for each in found:
            row: Any = await find_row(
                writing,
                people.owner,
                translations.TARGETS[each.target_kind],
                f"{each.branch_id}:{each.target_id}",
            )
            read = partial(getattr, row)
            said = translations.source_text(each.target_kind, read, each.field, "field")
            assert said == each.text
        lore = told.ids["lore"]
        done = await importing(writing, people.owner, told.branch, Wording(lore, "title", "Huile"))
        assert (done.created, done.updated) == (1, 0)
        left = named(told, await missing(writing, people.owner, told.branch))
        assert left["lore"] == {("lore", "body", "Taxed.")}
        german = named(told, await missing(writing, people.owner, told.branch, language="de"))
        assert german["lore"] == set(TEXTS["lore"])
        kinds = [TranslationTarget.LORE, TranslationTarget.CHAPTER]
        some = named(told, await missing(writing, people.owner, told.branch, kinds=kinds))
        assert some == {"lore": {("lore", "body", "Taxed.")}, "chapter": set(TEXTS["chapter"])}
        assert await missing(writing, people.owner, told.branch, kinds=[]) == []
        covered, bare, hidden = await translations.coverage_of_branches(
            writing, people.owner, [told.branch.id, other.id, "br_none"], "fr"
        )
    assert covered == [
        Coverage(kind, len(TEXTS[kind]), 1 if kind == "lore" else 0) for kind in TranslationTarget
    ]
    assert covered[1].missing == 1
    assert bare == [Coverage(k, 1 if k == "story_entry" else 0, 0) for k in TranslationTarget]
    assert hidden == [Coverage(kind, 0, 0) for kind in TranslationTarget]


async def test_nobody_else_is_told_what_is_missing(database: Database, people: People) -> None:
    """Rules V8, V9."""
    async with database.writing() as writing:
        told = await tell(writing, people.owner)
        for viewer in (people.stranger, people.anonymous):
            assert await missing(writing, viewer, told.branch) == []
            (covered,) = await translations.coverage_of_branches(
                writing, viewer, [told.branch.id], "fr"
            )
            assert {each.total for each in covered} == {0}
            (count,) = await MISSES.counts(
                writing, [told.branch.id], language="fr", kinds=None, **viewer.parameters
            )
            assert count == 0
        for language in ("french", "", "FR"):
            with pytest.raises(DomainError) as refusal:
                await missing(writing, people.owner, told.branch, language=language)
            assert (refusal.value.code, refusal.value.path) == ("LANGUAGE_INVALID", ("language",))


@pytest.mark.parametrize("size", [1, 3, 200])
async def test_pages_of_what_is_missing_are_the_whole_list(
    database: Database, people: People, size: int
) -> None:
    """Rule V8."""
    async with database.writing() as writing:
        told = await tell(writing, people.owner)
        whole = await missing(writing, people.owner, told.branch)
        assert [str(each.target_kind) for each in whole] == [
            kind for kind, texts in TEXTS.items() for _ in texts
        ]
        for is_backward in (False, True):
            walked: list[UntranslatedText] = []
            cursor = None
            while True:
                request = (
                    PageRequest(last=size, before=cursor)
                    if is_backward
                    else PageRequest(first=size, after=cursor)
                )
                (page,) = await translations.untranslated_of_branches(
                    writing, people.owner, [told.branch.id], request, "fr"
                )
                walked = [*page.nodes, *walked] if is_backward else [*walked, *page.nodes]
                info = page.page_info
                if not (info.has_previous_page if is_backward else info.has_next_page):
                    break
                cursor = info.start_cursor if is_backward else info.end_cursor
            assert walked == whole
        (count,) = await MISSES.counts(
            writing, [told.branch.id], language="fr", kinds=None, **people.owner.parameters
        )
        assert count == len(whole)
        with pytest.raises(BadPageRequest):
            await missing(writing, people.owner, told.branch, PageRequest(first=201))


async def test_an_import_says_everything_in_one_action(database: Database, people: People) -> None:
    """Rules V5, V10."""
    async with database.writing() as writing:
        told = await tell(writing, people.owner)
        earlier = await importing(
            writing,
            people.owner,
            told.branch,
            Wording(told.ids["lore"], "title", "Huile?"),
            Wording(told.ids["Mira"], "name", "Mira"),
        )
        before = await state_of(writing, told.branch.id)
        everything = await missing(writing, people.owner, told.branch)
        done = await importing(
            writing,
            people.owner,
            told.branch,
            # As it was, otherwise, and new; by either name, by either spelling of a field.
            Wording(told.ids["Mira"], "name", "Mira"),
            Wording(f"{told.branch.id}:{told.ids['lore']}", "title", "Huile"),
            *(
                Wording(
                    each.target_id,
                    f"state.{each.field}" if "." in each.field else each.field,
                    f"({each.text})",
                )
                for each in everything
            ),
            expected_head=earlier.branch.head,
        )
        assert (done.created, done.updated) == (len(everything), 1)
        assert done.branch.head == earlier.branch.head + len(everything) + 1
        assert await missing(writing, people.owner, told.branch) == []
        log = (await rows_of(writing, Delta, told.branch.id))[-len(everything) - 1 :]
        assert len({each.action_id for each in log}) == 1
        # The one entry of the log anchors its own wording; what was planted has no anchor.
        assert [each.entry_id for each in log if each.entry_id] == [told.ids["entry"]]
        rows = await rows_of(writing, Translation, told.branch.id)
        assert {(e.target_id, e.field, e.text) for e in rows} == {
            (told.ids["Mira"], "name", "Mira"),
            (told.ids["lore"], "title", "Huile"),
            *((each.target_id, each.field, f"({each.text})") for each in everything),
        }
        again = await importing(
            writing, people.owner, told.branch, Wording(told.ids["lore"], "title", "Huile")
        )
        assert (again.created, again.updated, again.branch.head) == (0, 0, done.branch.head)
        await deltas.undo_branch(writing, people.owner, told.branch.id)
        assert await state_of(writing, told.branch.id) == before


async def test_an_import_with_a_fault_says_nothing_and_tells_all_faults(
    database: Database, people: People
) -> None:
    """Rule V10."""
    async with database.writing() as writing:
        told = await tell(writing, people.owner)
        other = await make_branch(writing, people.owner)
        before = await state_of(writing, told.branch.id)
    lore = told.ids["lore"]
    wordings = [
        Wording(lore, "title", "Huile"),
        Wording(lore, "colour", "x"),
        Wording(f"{other.id}:{lore}", "title", "x"),
        Wording("", "title", "x"),
        Wording(told.branch.id, "title", "x"),
        Wording(told.ids["Lamp"], "condition", "x"),
        Wording(lore, "body", " "),
        Wording(lore, "title", "Encore"),
    ]
    with pytest.raises(DomainError) as refusal:
        async with database.writing() as writing:
            await importing(writing, people.owner, told.branch, *wordings)
    assert [(each.code, each.path[2:]) for each in (refusal.value, *refusal.value.others)] == [
        ("FIELD_NOT_TRANSLATABLE", (1, "field")),
        ("NOT_FOUND", (2, "targetId")),
        ("NOT_FOUND", (3, "targetId")),
        ("NOT_FOUND", (4, "targetId")),
        ("NOTHING_TO_TRANSLATE", (5, "field")),
        ("TEXT_EMPTY", (6, "text")),
        ("DUPLICATE", (7, "field")),
    ]
    good = Wording(lore, "title", "Huile")
    many = [Wording("", "title", "x")] * translations.MAX_IMPORTED
    for viewer, branch, given, asked, code, path in [
        (people.owner, told.branch, [good], {"language": "x"}, "LANGUAGE_INVALID", "language"),
        (people.owner, told.branch, [good], {"expected_head": 0}, "CONFLICT", "expectedHead"),
        (people.owner, told.branch, [*many, good], {}, "LIMIT_REACHED", "translations"),
        (people.stranger, told.branch, [good], {}, "NOT_FOUND", "branchId"),
        (people.anonymous, told.branch, [good], {}, "NOT_FOUND", "branchId"),
    ]:
        with pytest.raises(DomainError) as refusal:
            async with database.writing() as writing:
                await importing(writing, viewer, branch, *given, **asked)
        assert (refusal.value.code, refusal.value.path) == (code, ("input", path))
        assert isinstance(refusal.value, Conflict) is (code == "CONFLICT")
    with pytest.raises(DomainError) as refusal:
        async with database.writing() as writing:
            await importing(writing, people.owner, told.branch, *many)
    assert len(refusal.value.others) == 49
    async with database.reading() as reading:
        assert await state_of(reading, told.branch.id) == before


async def test_an_import_takes_the_same_statements_however_long_it_is(
    database: Database, people: People
) -> None:
    """Rule V10."""
    taken = []
    for count in (1, 10, 100):
        async with database.writing() as writing:
            branch = await make_branch(writing, people.owner)
            rows = await deltas.plant_rows(
                writing,
                branch.id,
                Lore,
                [{"title": f"{number}", "body": "So.", **AUTO} for number in range(count)],
            )
            seen: list[str] = []
            watched = Writing(WatchedConnection(writing._connection, seen), writing.cursors)
            titles = [Wording(each["id"], "title", "Titre") for each in rows]
            bodies = [Wording(each["id"], "body", "Ainsi.") for each in rows]
            await importing(watched, people.owner, branch, *titles)
            other_titles = [Wording(each["id"], "title", "Autre") for each in rows]
            done = await importing(watched, people.owner, branch, *other_titles, *bodies)
            assert (done.created, done.updated) == (count, count)
            taken.append(len(seen))
    assert len(set(taken)) == 1
