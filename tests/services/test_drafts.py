"""Drafts until they are activated or given up: identity, checklist, status."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import EmbryoStatus, ExportFormat, Origin
from db.reading import Writing
from db.tables import EmbryoDraft, RehearsalTurn
from services import characters, transfers
from services.access import Viewer, find_row, require_row
from services.cards import CardFile
from services.characters.fields import changed_identity
from services.errors import Conflict, DomainError, Invalid, LimitReached, NotFound
from services.exports import store_export
from tests.conftest import People
from tests.e2e.ledgers import Ledger
from tests.factories import ALL_POINTS
from tests.trees import refused, run_sql

IDENTITY = {
    "name": "Rook",
    "description": "Guards the bridge.",
    "creator_notes": "A field that nobody writes here.",
    "extensions": {"depth_prompt": {"prompt": "toll"}},
    "forbidden_zone": ["Leaving the bridge."],
}
TURN = RehearsalTurn("Who are you?", "Rook.", "model-1", datetime(2026, 5, 1, tzinfo=UTC))


async def a_draft(database: Database, viewer: Viewer, **identity: Any) -> EmbryoDraft:
    async with database.writing() as writing:
        return await characters.create_embryo(
            writing, viewer, Origin.ORIGINAL, {**IDENTITY, **identity}
        )


async def an_imported_draft(database: Database, viewer: Viewer) -> EmbryoDraft:
    """A draft with a lorebook and a file, as an import makes it."""
    book = {"entries": [{"keys": ["toll"], "content": "Three coins.", "extensions": {}}]}
    data = {"name": "Rook", "description": "", "character_book": book}
    text = json.dumps({"spec": "chara_card_v3", "spec_version": "3.0", "data": data})
    picture = CardFile("assets/icon/images/main.png", "image/png", b"a picture")
    read = transfers.read_card(text.encode())
    with_picture = replace(read, card=replace(read.card, files=(picture,)))
    async with database.writing() as writing:
        _, embryo = await transfers.import_card(
            writing, viewer, with_picture, file_name="rook.json"
        )
    return embryo


async def read(database: Database, viewer: Viewer, id: str) -> EmbryoDraft:
    async with database.reading() as reading:
        return await require_row(reading, viewer, EmbryoDraft, id)


async def update(database: Database, viewer: Viewer, id: str, **changes: Any) -> EmbryoDraft:
    async with database.writing() as writing:
        return await characters.update_embryo(writing, viewer, id, **changes)


async def issue(database: Database, viewer: Viewer, id: str) -> None:
    async with database.writing() as writing:
        await characters.activate_embryo(writing, viewer, id, ALL_POINTS)


def confirmed(embryo: EmbryoDraft) -> set[str]:
    return {point.key for point in embryo.checklist if point.is_confirmed}


async def test_an_update_sets_clears_and_keeps_fields(database: Database, people: People) -> None:
    """Rule C4."""
    embryo = await a_draft(database, people.owner, nickname="R")
    changes = {"description": "Guards nothing.", "nickname": None, "first_mes": "Halt."}
    changed = await update(database, people.owner, embryo.id, identity=changes)
    assert changed.provisional_identity == {
        "name": "Rook",
        "description": "Guards nothing.",
        "first_mes": "Halt.",
        "creator_notes": "A field that nobody writes here.",
        "extensions": {"depth_prompt": {"prompt": "toll"}},
        "forbidden_zone": ["Leaving the bridge."],
    }
    assert (changed.version, changed.status) == (2, EmbryoStatus.DRAFT)
    assert changed.updated_at is not None
    assert await read(database, people.owner, embryo.id) == changed


@pytest.mark.parametrize("nothing", [{}, {"identity": {"name": "Rook", "nickname": ""}}])
async def test_an_update_that_changes_nothing_is_no_change(
    database: Database, people: People, nothing: dict[str, Any]
) -> None:
    embryo = await a_draft(database, people.owner)
    before = await Ledger(database.dsn).fingerprint()
    assert await update(database, people.owner, embryo.id, **nothing) == embryo
    assert await Ledger(database.dsn).fingerprint() == before


async def test_an_empty_field_of_a_card_is_as_good_as_none(
    database: Database, people: People
) -> None:
    """Rule C4."""
    embryo = await an_imported_draft(database, people.owner)
    assert embryo.provisional_identity["description"] == ""
    nothing = {"description": None, "forbidden_zone": []}
    assert await update(database, people.owner, embryo.id, identity=nothing) == embryo


async def test_an_update_is_noted_without_its_text(database: Database, people: People) -> None:
    embryo = await a_draft(database, people.owner)
    changes = {"scenario": "A secret.", "forbidden_zone": []}
    await update(
        database, people.owner, embryo.id, identity=changes, confirmed=["custody", "identity"]
    )
    (act,) = await Ledger(database.dsn).rows(
        "SELECT subject_id, arguments_json::jsonb AS told FROM audit_events "
        "WHERE action = 'embryo_updated'"
    )
    assert act["subject_id"] == embryo.id
    assert "secret" not in act["told"]
    assert '"fields": ["forbidden_zone", "scenario"]' in act["told"]
    assert '"confirmed": ["custody", "identity"]' in act["told"]


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        ({"name": None}, "TEXT_EMPTY", ("name",)),
        ({"name": " \n"}, "TEXT_EMPTY", ("name",)),
        ({"name": "x" * 501}, "TEXT_TOO_LONG", ("name",)),
        ({"nickname": "x" * 501}, "TEXT_TOO_LONG", ("nickname",)),
        ({"description": "x" * 1_000_001}, "TEXT_TOO_LONG", ("description",)),
        ({"first_mes": "a\0"}, "INVALID_TEXT", ("firstMessage",)),
        ({"mes_example": "\ud800"}, "INVALID_TEXT", ("exampleMessages",)),
        ({"system_prompt": "a\0"}, "INVALID_TEXT", ("systemPrompt",)),
        ({"post_history_instructions": "a\0"}, "INVALID_TEXT", ("postHistoryInstructions",)),
        ({"forbidden_zone": ["Lies.", " "]}, "TEXT_EMPTY", ("forbiddenZone", 1)),
        ({"forbidden_zone": ["Lies.", "a\0"]}, "INVALID_TEXT", ("forbiddenZone", 1)),
    ],
)
async def test_text_is_checked_field_by_field(
    database: Database,
    people: People,
    changes: dict[str, Any],
    code: str,
    path: tuple[str | int, ...],
) -> None:
    embryo = await a_draft(database, people.owner)
    await refused(
        database,
        Invalid,
        code,
        ("input", "identity", *path),
        lambda writing: characters.update_embryo(
            writing, people.owner, embryo.id, identity=changes
        ),
    )


FIELDS = st.sampled_from(["nickname", "description", "scenario", "forbidden_zone", "tags"])
VALUES = st.one_of(st.none(), st.sampled_from(["", " ", "a", "b"]))


@st.composite
def changes_of_fields(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(st.sets(FIELDS.filter(lambda key: key != "tags")))
    zone = st.one_of(st.none(), st.lists(st.sampled_from(["a", "b"])))
    return {key: draw(zone if key == "forbidden_zone" else VALUES) for key in keys}


@given(changes=changes_of_fields(), more=changes_of_fields())
def test_changes_of_an_identity_are_an_algebra(changes: Any, more: Any) -> None:
    """Doing it twice is doing it once, the later wins, and what is not named stays."""
    begun = {"name": "Rook", "nickname": "R", "tags": ["guard"], "forbidden_zone": ["a"]}
    once = changed_identity(begun, changes)
    assert changed_identity(once, changes) == once
    assert changed_identity(once, more) == changed_identity(begun, {**changes, **more})
    assert {key: once[key] for key in begun if key not in changes} == {
        key: value for key, value in begun.items() if key not in changes
    }
    assert all(once.values())


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"description": "Another."}, {"boundaries", "custody"}),
        ({"name": "Knight"}, {"boundaries", "custody"}),
        ({"forbidden_zone": None}, {"identity", "custody"}),
        ({"forbidden_zone": ["Lies."], "nickname": "R"}, {"custody"}),
        ({"description": "Guards the bridge."}, {"identity", "boundaries", "custody"}),
    ],
)
async def test_a_changed_identity_takes_back_what_was_confirmed_of_it(
    database: Database, people: People, changes: dict[str, Any], left: set[str]
) -> None:
    """Rule C5."""
    embryo = await a_draft(database, people.owner)
    ready = await update(database, people.owner, embryo.id, confirmed=ALL_POINTS)
    assert (ready.status, confirmed(ready)) == (EmbryoStatus.READY, set(ALL_POINTS))
    changed = await update(database, people.owner, embryo.id, identity=changes)
    assert confirmed(changed) == left
    is_ready = left == set(ALL_POINTS)
    assert changed.status == (EmbryoStatus.READY if is_ready else EmbryoStatus.DRAFT)


async def test_what_is_confirmed_with_a_change_is_confirmed_of_what_it_changes(
    database: Database, people: People
) -> None:
    """Rule C5."""
    embryo = await a_draft(database, people.owner)
    changed = await update(
        database,
        people.owner,
        embryo.id,
        identity={"description": "Another."},
        confirmed=["identity"],
    )
    assert confirmed(changed) == {"identity"}
    changed = await update(database, people.owner, embryo.id, confirmed=[])
    assert confirmed(changed) == set()


async def test_an_update_is_refused_and_changes_nothing(database: Database, people: People) -> None:
    """Rule C4."""
    embryo = await a_draft(database, people.owner)
    new = {"description": "Another."}
    cases: list[tuple[type[DomainError], str, tuple[str, ...], Viewer, dict[str, Any]]] = [
        (NotFound, "NOT_FOUND", ("input", "embryoId"), people.stranger, {"identity": new}),
        (NotFound, "NOT_FOUND", ("input", "embryoId"), people.anonymous, {"identity": new}),
        (
            Conflict,
            "CONFLICT",
            ("input", "expectedVersion"),
            people.owner,
            {"identity": new, "expected_version": 2},
        ),
        (
            Invalid,
            "UNKNOWN_CHECKLIST_KEY",
            ("input", "confirmed"),
            people.owner,
            {"identity": new, "confirmed": ["identity", "soul"]},
        ),
    ]
    for kind, code, path, viewer, changes in cases:

        async def work(writing: Writing, viewer: Viewer = viewer, given: Any = changes) -> None:
            await characters.update_embryo(writing, viewer, embryo.id, **given)

        await refused(database, kind, code, path, work)


async def test_of_two_updates_of_one_version_the_second_is_told_the_present_one(
    database: Database, people: People
) -> None:
    """Rule C4."""
    embryo = await a_draft(database, people.owner)

    async def change(name: str) -> str:
        changes = {"identity": {"name": name}, "expected_version": embryo.version}
        return (await update(database, people.owner, embryo.id, **changes)).provisional_identity[
            "name"
        ]

    results = await asyncio.gather(change("One"), change("Two"), return_exceptions=True)
    (won,) = [each for each in results if isinstance(each, str)]
    (lost,) = [each for each in results if isinstance(each, Conflict)]
    assert (lost.code, lost.path) == ("CONFLICT", ("input", "expectedVersion"))
    assert "version 2, not 1" in lost.message
    found = await read(database, people.owner, embryo.id)
    assert (found.provisional_identity["name"], found.version) == (won, 2)


CHANGES_OF_A_DRAFT: dict[str, Callable[[Writing, Viewer, str], Awaitable[Any]]] = {
    "update": lambda writing, viewer, draft: characters.update_embryo(
        writing, viewer, draft, identity={"name": "Late"}
    ),
    "abandon": characters.abandon_embryo,
    "clear": characters.clear_rehearsal,
    "activate": lambda writing, viewer, draft: characters.activate_embryo(
        writing, viewer, draft, ALL_POINTS
    ),
}


@pytest.mark.parametrize("change", CHANGES_OF_A_DRAFT)
async def test_a_draft_that_was_issued_stays_as_it_is(
    database: Database, people: People, change: str
) -> None:
    """Rules C4, C7."""
    embryo = await a_draft(database, people.owner)
    await issue(database, people.owner, embryo.id)
    work = CHANGES_OF_A_DRAFT[change]
    await refused(
        database,
        Conflict,
        "ALREADY_ACTIVATED",
        ("input", "embryoId"),
        lambda writing: work(writing, people.owner, embryo.id),
    )


@pytest.mark.parametrize("change", CHANGES_OF_A_DRAFT)
async def test_a_stranger_finds_no_draft_to_change(
    database: Database, people: People, change: str
) -> None:
    """Rule C3."""
    embryo = await a_draft(database, people.owner)
    work = CHANGES_OF_A_DRAFT[change]
    for viewer in (people.stranger, people.anonymous):

        async def try_it(writing: Writing, viewer: Viewer = viewer) -> None:
            await work(writing, viewer, embryo.id)

        await refused(database, NotFound, "NOT_FOUND", ("input", "embryoId"), try_it)


@pytest.mark.parametrize(
    ("before", "given"), [(ALL_POINTS, []), (["identity", "custody"], ["boundaries"])]
)
async def test_points_confirmed_before_need_no_second_word(
    database: Database, people: People, before: list[str], given: list[str]
) -> None:
    """Rule C6."""
    embryo = await a_draft(database, people.owner)
    await update(database, people.owner, embryo.id, confirmed=before)
    async with database.writing() as writing:
        character = await characters.activate_embryo(writing, people.owner, embryo.id, given)
    issued = await read(database, people.owner, embryo.id)
    assert (issued.status, confirmed(issued)) == (EmbryoStatus.ISSUED, set(ALL_POINTS))
    assert character.embryo_draft_id == embryo.id


async def test_a_point_that_was_taken_back_must_be_confirmed_again(
    database: Database, people: People
) -> None:
    """Rule C6."""
    embryo = await a_draft(database, people.owner)
    await update(database, people.owner, embryo.id, confirmed=ALL_POINTS)
    await update(database, people.owner, embryo.id, identity={"personality": "Mild."})
    await refused(
        database,
        Invalid,
        "CONFIRMATION_REQUIRED",
        ("input", "confirmed"),
        lambda writing: characters.activate_embryo(writing, people.owner, embryo.id, []),
    )


@pytest.mark.parametrize(
    "place",
    [
        "INSERT ON characters",
        "INSERT ON custodianships",
        "INSERT ON runtime_seats",
        "INSERT ON identity_records",
        "INSERT ON identity_record_versions",
        "INSERT ON identity_packages",
        "UPDATE ON lorebooks",
        "UPDATE ON embryo_drafts",
        "INSERT ON audit_events",
    ],
)
async def test_an_activation_that_fails_anywhere_leaves_nothing(
    database: Database, people: People, place: str
) -> None:
    """Rule C1."""
    embryo = await an_imported_draft(database, people.owner)
    await run_sql(
        database,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the test says no'; END $$",
    )
    await run_sql(
        database, f"CREATE TRIGGER fails BEFORE {place} FOR EACH ROW EXECUTE FUNCTION fail()"
    )
    before = await Ledger(database.dsn).fingerprint()
    with pytest.raises(asyncpg.RaiseError, match="the test says no"):
        await issue(database, people.owner, embryo.id)
    assert await Ledger(database.dsn).fingerprint() == before
    table = place.rpartition(" ")[2]
    await run_sql(database, f"DROP TRIGGER fails ON {table}")
    await issue(database, people.owner, embryo.id)
    issued = {
        name
        for name, digest in (await Ledger(database.dsn).fingerprint()).items()
        if digest != before[name]
    }
    assert issued == {
        "audit_events",
        "characters",
        "custodianships",
        "embryo_drafts",
        "identity_packages",
        "identity_record_versions",
        "identity_records",
        "lorebooks",
        "runtime_seats",
    }


async def test_an_abandoned_draft_is_gone_and_the_act_is_noted_without_text(
    database: Database, people: People
) -> None:
    """Rule C7."""
    kept = await a_draft(database, people.owner, name="Kept")
    before = await Ledger(database.dsn).fingerprint()
    embryo = await an_imported_draft(database, people.owner)
    async with database.writing() as writing:
        await characters.add_rehearsal_turn(writing, people.owner, embryo.id, TURN)
        kind = ExportFormat.CARD_V3_JSON
        await store_export(writing, people.owner, embryo.id, kind, "a", "text/plain", b"Rook")
    grown = await Ledger(database.dsn).fingerprint()
    assert {name for name in grown if grown[name] != before[name]} == {
        "audit_events",
        "embryo_drafts",
        "export_files",
        "exports",
        "import_files",
        "import_items",
        "import_jobs",
        "lorebook_entries",
        "lorebooks",
    }
    async with database.writing() as writing:
        assert await characters.abandon_embryo(writing, people.owner, embryo.id) == embryo.id
    after = await Ledger(database.dsn).fingerprint()
    # Of the import its bare record stays.
    assert {name for name in after if after[name] != before[name]} == {
        "audit_events",
        "import_jobs",
    }
    acts = await Ledger(database.dsn).rows(
        "SELECT action, arguments_json::text AS told FROM audit_events WHERE subject_id = $1 "
        "ORDER BY created_at",
        embryo.id,
    )
    assert [each["action"] for each in acts] == ["card_imported", "export_made", "embryo_abandoned"]
    assert acts[-1]["told"] == "{}"
    async with database.reading() as reading:
        assert await find_row(reading, people.owner, EmbryoDraft, embryo.id) is None
    assert await read(database, people.owner, kept.id) == kept
    await refused(
        database,
        NotFound,
        "NOT_FOUND",
        ("input", "embryoId"),
        lambda writing: characters.abandon_embryo(writing, people.owner, embryo.id),
    )


async def test_of_an_activation_and_an_abandoning_at_once_one_wins(
    database: Database, people: People
) -> None:
    """Rules C1, C7."""
    embryo = await a_draft(database, people.owner)

    async def abandon() -> None:
        async with database.writing() as writing:
            await characters.abandon_embryo(writing, people.owner, embryo.id)

    results = await asyncio.gather(
        issue(database, people.owner, embryo.id), abandon(), return_exceptions=True
    )
    issued = await Ledger(database.dsn).value("SELECT count(*) FROM characters")
    left = await Ledger(database.dsn).value("SELECT count(*) FROM embryo_drafts")
    if results[0] is None:
        assert isinstance(results[1], Conflict)
        assert (results[1].code, issued, left) == ("ALREADY_ACTIVATED", 1, 1)
    else:
        assert isinstance(results[0], NotFound)
        assert (results[1], issued, left) == (None, 0, 0)


async def test_trial_talk_is_kept_up_to_a_bound_and_can_be_cleared(
    database: Database, people: People
) -> None:
    """Rule C10."""
    embryo = await a_draft(database, people.owner)
    async with database.writing() as writing:
        for _ in range(characters.MAX_REHEARSAL):
            kept = await characters.add_rehearsal_turn(writing, people.owner, embryo.id, TURN)
    assert kept.rehearsal == [TURN] * 50
    assert (kept.status, kept.version) == (EmbryoStatus.REHEARSING, 51)
    await refused(
        database,
        LimitReached,
        "REHEARSAL_FULL",
        ("embryoId",),
        lambda writing: characters.add_rehearsal_turn(writing, people.owner, embryo.id, TURN),
    )
    async with database.writing() as writing:
        cleared = await characters.clear_rehearsal(writing, people.owner, embryo.id)
        again = await characters.clear_rehearsal(writing, people.owner, embryo.id)
    assert (cleared.rehearsal, cleared.status) == ([], EmbryoStatus.DRAFT)
    assert again == cleared


STEPS = st.one_of(
    st.tuples(st.just("update"), st.sampled_from(["description", "forbidden_zone"])),
    st.tuples(st.just("confirm"), st.sets(st.sampled_from(ALL_POINTS))),
    st.sampled_from([("rehearse", None), ("clear", None), ("activate", None), ("abandon", None)]),
)
NUMBERS = itertools.count()


async def _do(writing: Writing, viewer: Viewer, id: str, step: str, what: Any) -> None:
    if step == "update":
        number = str(next(NUMBERS))
        value = [number] if what == "forbidden_zone" else number
        await characters.update_embryo(writing, viewer, id, identity={what: value})
    elif step == "confirm":
        await characters.update_embryo(writing, viewer, id, confirmed=sorted(what))
    elif step == "rehearse":
        await characters.add_rehearsal_turn(writing, viewer, id, TURN)
    elif step == "clear":
        await characters.clear_rehearsal(writing, viewer, id)
    elif step == "activate":
        await characters.activate_embryo(writing, viewer, id, [])
    else:
        await characters.abandon_embryo(writing, viewer, id)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEPS, max_size=12))
async def test_any_sequence_of_acts_keeps_the_rule_of_the_status(
    database: Database, people: People, steps: list[tuple[str, Any]]
) -> None:
    """Rule C8, against a model of a few lines."""
    viewer = people.owner
    every_point = set(ALL_POINTS)
    async with database.writing() as writing:
        embryo = await characters.create_embryo(writing, viewer, Origin.ORIGINAL, IDENTITY)
        points, turns, end = set[str](), 0, ""
        for step, what in steps:
            refusal = None
            try:
                await _do(writing, viewer, embryo.id, step, what)
            except DomainError as error:
                refusal = error.code
            if end:
                assert refusal == ("ALREADY_ACTIVATED" if end == "activate" else "NOT_FOUND")
            elif step == "activate" and points != every_point:
                assert refusal == "CONFIRMATION_REQUIRED"
            else:
                assert refusal is None
                if step == "update":
                    points -= {"boundaries" if what == "forbidden_zone" else "identity"}
                elif step == "confirm":
                    points = set(what)
                elif step in {"rehearse", "clear"}:
                    turns = turns + 1 if step == "rehearse" else 0
                else:
                    end = step
            found = await find_row(writing, viewer, EmbryoDraft, embryo.id)
            assert (found is None) is (end == "abandon")
            if found is not None:
                assert (confirmed(found), len(found.rehearsal)) == (points, turns)
                assert found.status == (
                    EmbryoStatus.ISSUED
                    if end
                    else EmbryoStatus.READY
                    if points == every_point
                    else EmbryoStatus.REHEARSING
                    if turns
                    else EmbryoStatus.DRAFT
                )
