"""Outward forms: their anchor, candidates, and what is official."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import CharacterStatus, FormKind, FormStatus
from db.paging import PageRequest
from db.reading import Writing
from db.tables import Character, Form
from db.tables.characters import VariableFeature
from services import characters
from services.access import Viewer, find_row
from services.characters.forms import MAX_DESCRIPTION, MAX_POINTS
from services.errors import Conflict, DomainError, Invalid, LimitReached, NotFound
from services.text import MAX_LINE, MAX_REFERENCE
from tests.conftest import People
from tests.factories import make_character
from tests.trees import fetch, refused, run_sql, until_somebody_waits

ANCHOR: dict[str, Any] = {
    "stable_traits": ["a scar over the left eye", "tall"],
    "permissions": ["armour"],
    "taboos": ["a beard"],
    "variable_range": [VariableFeature("hair", "black to silver"), VariableFeature("age", "30-50")],
    "expected_version": None,
}
FORM: dict[str, Any] = {
    "kind": FormKind.PRIMARY,
    "name": "The guard",
    "description": "Grey cloak, steady eyes.",
    "asset_ref": "assets/guard.png",
}
ACTS: dict[str, Callable[[Writing, Viewer, str], Awaitable[Form]]] = {
    "settle": characters.settle_form,
    "reject": characters.reject_form,
    "retire": characters.retire_form,
}


@pytest.fixture
async def character(database: Database, people: People) -> Character:
    async with database.writing() as writing:
        return await make_character(writing, people.owner)


async def proposed(database: Database, viewer: Viewer, character: Character, **values: Any) -> Form:
    async with database.writing() as writing:
        return await characters.propose_form(writing, viewer, character.id, **{**FORM, **values})


async def act(database: Database, viewer: Viewer, name: str, form: Form) -> Form:
    async with database.writing() as writing:
        return await ACTS[name](writing, viewer, form.id)


async def form_in(
    database: Database, viewer: Viewer, character: Character, status: FormStatus
) -> Form:
    """A form that has come into a state as users bring it there."""
    form = await proposed(database, viewer, character)
    for name in {
        "confirmed": ["settle"],
        "rejected": ["reject"],
        "retired": ["settle", "retire"],
    }.get(status, []):
        form = await act(database, viewer, name, form)
    assert form.status == status
    return form


async def form_now(database: Database, viewer: Viewer, form: Form) -> Form:
    async with database.reading() as reading:
        found = await find_row(reading, viewer, Form, form.id)
    assert found is not None
    return found


async def acts_on(database: Database, form: Form) -> list[str]:
    sql = "SELECT action FROM audit_events WHERE subject_id = $1 ORDER BY created_at, id"
    return [action for (action,) in await fetch(database, sql, form.id)]


async def primary_of(database: Database, viewer: Viewer, character: Character) -> str | None:
    async with database.reading() as reading:
        found = await characters.primary_forms_of_characters(reading, viewer, [character.id])
    return found[character.id].id if found else None


async def test_what_is_proposed_is_a_candidate_and_counts_for_nothing(
    database: Database, people: People, character: Character
) -> None:
    """Rule F2."""
    form = await proposed(database, people.owner, character)
    assert (form.kind, form.status, form.version) == ("primary", "candidate", 1)
    assert (form.name, form.description) == (FORM["name"], FORM["description"])
    assert form.asset_ref == FORM["asset_ref"]
    assert (form.settled_at, form.settled_by_user_id) == (None, None)
    assert await primary_of(database, people.owner, character) is None
    assert await acts_on(database, form) == ["form_proposed"]


# What becomes of a form in each state by each act: its next state, or the refusal.
TRANSITIONS = {
    ("candidate", "settle"): "confirmed",
    ("candidate", "reject"): "rejected",
    ("candidate", "retire"): "FORM_NOT_CONFIRMED",
    ("confirmed", "settle"): "FORM_NOT_CANDIDATE",
    ("confirmed", "reject"): "FORM_NOT_CANDIDATE",
    ("confirmed", "retire"): "retired",
    ("rejected", "settle"): "FORM_NOT_CANDIDATE",
    ("rejected", "reject"): "FORM_NOT_CANDIDATE",
    ("rejected", "retire"): "FORM_NOT_CONFIRMED",
    ("retired", "settle"): "FORM_NOT_CANDIDATE",
    ("retired", "reject"): "FORM_NOT_CANDIDATE",
    ("retired", "retire"): "FORM_NOT_CONFIRMED",
}


@pytest.mark.parametrize(("status", "name"), TRANSITIONS)
async def test_a_form_moves_only_from_candidate_to_confirmed_and_on(
    database: Database, people: People, character: Character, status: str, name: str
) -> None:
    """Rules F2, F3."""
    expected = TRANSITIONS[status, name]
    form = await form_in(database, people.owner, character, FormStatus(status))
    if expected.isupper():
        await refused(
            database,
            Conflict,
            expected,
            ("input", "formId"),
            lambda writing: ACTS[name](writing, people.owner, form.id),
        )
        return
    moved = await act(database, people.owner, name, form)
    assert (moved.status, moved.version) == (expected, form.version + 1)
    assert await form_now(database, people.owner, form) == moved
    last = {"confirmed": "form_settled", "rejected": "form_rejected", "retired": "form_retired"}
    assert (await acts_on(database, form))[-1] == last[expected]


def test_the_table_of_transitions_is_whole() -> None:
    assert set(TRANSITIONS) == {(status.value, name) for status in FormStatus for name in ACTS}


async def test_settling_a_primary_form_retires_the_one_before(
    database: Database, people: People, character: Character
) -> None:
    """Rule F3."""
    variant = await proposed(database, people.owner, character, kind=FormKind.VARIANT)
    variant = await act(database, people.owner, "settle", variant)
    first = await form_in(database, people.owner, character, FormStatus.CONFIRMED)
    assert first.settled_by_user_id == people.owner.user_id
    assert first.settled_at is not None
    assert first.settled_at >= first.created_at
    second = await form_in(database, people.owner, character, FormStatus.CONFIRMED)
    assert await primary_of(database, people.owner, character) == second.id
    before = await form_now(database, people.owner, first)
    assert (before.status, before.settled_at) == ("retired", first.settled_at)
    assert await acts_on(database, first) == ["form_proposed", "form_settled", "form_retired"]
    assert await form_now(database, people.owner, variant) == variant
    assert variant.status == "confirmed"


async def test_a_character_without_an_official_form_has_no_primary_one(
    database: Database, people: People, character: Character
) -> None:
    form = await form_in(database, people.owner, character, FormStatus.CONFIRMED)
    await act(database, people.owner, "retire", form)
    assert await primary_of(database, people.owner, character) is None


async def test_two_official_primary_forms_are_refused_by_the_database(
    database: Database, people: People, character: Character
) -> None:
    """Rule F3."""
    await form_in(database, people.owner, character, FormStatus.CONFIRMED)
    other = await proposed(database, people.owner, character)
    with pytest.raises(asyncpg.UniqueViolationError, match="uq_forms_primary"):
        await run_sql(database, "UPDATE forms SET status = 'confirmed' WHERE id = $1", other.id)


async def in_the_middle_of(
    database: Database, first: Callable[[Writing], Awaitable[Any]], second: Awaitable[Any]
) -> Any:
    """Do the first, begin the second while the first is not committed; what the second gives."""
    async with database.writing() as writing:
        await first(writing)
        task = asyncio.ensure_future(second)
        await until_somebody_waits(database)
    (result,) = await asyncio.gather(task, return_exceptions=True)
    return result


async def test_of_two_forms_settled_at_once_the_later_one_stands(
    database: Database, people: People, character: Character
) -> None:
    """Rule F3. Each server has its own transaction; the character is held between them."""
    old = await form_in(database, people.owner, character, FormStatus.CONFIRMED)
    one, two = [await proposed(database, people.owner, character) for _ in range(2)]
    result = await in_the_middle_of(
        database,
        lambda writing: characters.settle_form(writing, people.owner, one.id),
        act(database, people.owner, "settle", two),
    )
    assert result.status == "confirmed"
    states = [(await form_now(database, people.owner, each)).status for each in (old, one, two)]
    assert states == ["retired", "retired", "confirmed"]


@pytest.mark.parametrize("other", ["settle", "reject"])
async def test_a_candidate_is_decided_once_however_many_try(
    database: Database, people: People, character: Character, other: str
) -> None:
    """Rule F2."""
    form = await proposed(database, people.owner, character)
    result = await in_the_middle_of(
        database,
        lambda writing: characters.settle_form(writing, people.owner, form.id),
        act(database, people.owner, other, form),
    )
    assert isinstance(result, Conflict)
    assert result.code == "FORM_NOT_CANDIDATE"
    assert (await form_now(database, people.owner, form)).version == 2


async def test_a_character_that_dies_meanwhile_gets_no_official_form(
    database: Database, people: People, character: Character
) -> None:
    """Rule F5."""
    form = await proposed(database, people.owner, character)

    async def die(writing: Writing) -> None:
        await writing._connection.execute("UPDATE characters SET status = 'deceased'")

    result = await in_the_middle_of(database, die, act(database, people.owner, "settle", form))
    assert isinstance(result, Conflict)
    assert result.code == "CHARACTER_READ_ONLY"
    assert (await form_now(database, people.owner, form)).status == "candidate"


Work = Callable[[Writing, Viewer], Awaitable[Any]]


async def works(
    database: Database, people: People, character: Character
) -> dict[str, tuple[str, Work]]:
    """Everything that changes forms, with the field that names what it changes."""
    candidate = await form_in(database, people.owner, character, FormStatus.CANDIDATE)
    official = await form_in(database, people.owner, character, FormStatus.CONFIRMED)
    return {
        "set anchor": (
            "characterId",
            lambda writing, viewer: characters.set_anchor(writing, viewer, character.id, **ANCHOR),
        ),
        "propose": (
            "characterId",
            lambda writing, viewer: characters.propose_form(writing, viewer, character.id, **FORM),
        ),
        "settle": (
            "formId",
            lambda writing, viewer: characters.settle_form(writing, viewer, candidate.id),
        ),
        "reject": (
            "formId",
            lambda writing, viewer: characters.reject_form(writing, viewer, candidate.id),
        ),
        "retire": (
            "formId",
            lambda writing, viewer: characters.retire_form(writing, viewer, official.id),
        ),
    }


@pytest.mark.parametrize("status", [each for each in CharacterStatus if each != "active"])
async def test_the_forms_of_a_character_that_does_not_live_can_only_be_read(
    database: Database, people: People, character: Character, status: CharacterStatus
) -> None:
    """Rule F5."""
    every = await works(database, people, character)
    await run_sql(database, "UPDATE characters SET status = $1", status)
    for field, work in every.values():
        await refused(
            database,
            Conflict,
            "CHARACTER_READ_ONLY",
            ("input", field),
            lambda writing, work=work: work(writing, people.owner),
        )


async def test_forms_are_their_custodians_alone(
    database: Database, people: People, character: Character
) -> None:
    """Rules C3, F2."""
    every = await works(database, people, character)
    async with database.writing() as writing:
        await characters.set_anchor(writing, people.owner, character.id, **ANCHOR)
    for viewer in (people.stranger, people.anonymous):
        for field, work in every.values():
            await refused(
                database,
                NotFound,
                "NOT_FOUND",
                ("input", field),
                lambda writing, work=work, viewer=viewer: work(writing, viewer),
            )
        async with database.reading() as reading:
            (page,) = await characters.FORMS_OF_CHARACTERS.pages(
                reading, [character.id], PageRequest(), form_status=None, **viewer.parameters
            )
            assert page.nodes == []
            assert await characters.anchors_of_characters(reading, viewer, [character.id]) == {}
            assert (
                await characters.primary_forms_of_characters(reading, viewer, [character.id]) == {}
            )


async def test_forms_are_listed_newest_first_all_or_those_in_one_state(
    database: Database, people: People, character: Character
) -> None:
    made = [await form_in(database, people.owner, character, each) for each in FormStatus]
    states = {form.id: str((await form_now(database, people.owner, form)).status) for form in made}
    newest_first = [form.id for form in reversed(made)]
    listed = characters.FORMS_OF_CHARACTERS
    for status in (None, *FormStatus):
        expected = [each for each in newest_first if status in (None, states[each])]
        values = {"form_status": status, **people.owner.parameters}
        async with database.reading() as reading:
            (page,) = await listed.pages(reading, [character.id], PageRequest(first=3), **values)
            assert [each.id for each in page.nodes] == expected[:3]
            assert await listed.counts(reading, [character.id], **values) == [len(expected)]


BAD_FORMS = [
    ({"name": " "}, Invalid, "TEXT_EMPTY", ("input", "name")),
    ({"name": "x" * (MAX_LINE + 1)}, Invalid, "TEXT_TOO_LONG", ("input", "name")),
    ({"description": "\n"}, Invalid, "TEXT_EMPTY", ("input", "description")),
    (
        {"description": "x" * (MAX_DESCRIPTION + 1)},
        Invalid,
        "TEXT_TOO_LONG",
        ("input", "description"),
    ),
    ({"asset_ref": ""}, Invalid, "TEXT_EMPTY", ("input", "assetRef")),
    ({"asset_ref": "x" * (MAX_REFERENCE + 1)}, Invalid, "TEXT_TOO_LONG", ("input", "assetRef")),
]


@pytest.mark.parametrize(("values", "kind", "code", "path"), BAD_FORMS)
async def test_a_form_with_a_bad_text_is_refused_with_its_field(
    database: Database,
    people: People,
    character: Character,
    values: dict[str, Any],
    kind: type[DomainError],
    code: str,
    path: tuple[str, ...],
) -> None:
    await refused(
        database,
        kind,
        code,
        path,
        lambda writing: characters.propose_form(
            writing, people.owner, character.id, **{**FORM, **values}
        ),
    )


async def test_texts_as_long_as_allowed_are_taken_and_a_picture_can_be_left_out(
    database: Database, people: People, character: Character
) -> None:
    values = {"name": "x" * MAX_LINE, "description": "x" * MAX_DESCRIPTION}
    form = await proposed(database, people.owner, character, **values, asset_ref=None)
    assert {"name": form.name, "description": form.description} == values
    assert form.asset_ref is None


async def test_an_anchor_is_set_and_then_replaced_as_a_whole(
    database: Database, people: People, character: Character
) -> None:
    """Rule F1."""
    async with database.writing() as writing:
        anchor = await characters.set_anchor(writing, people.owner, character.id, **ANCHOR)
    assert anchor.stable_traits == ANCHOR["stable_traits"]
    assert (anchor.permissions, anchor.taboos) == (ANCHOR["permissions"], ANCHOR["taboos"])
    assert anchor.variable_range == sorted(ANCHOR["variable_range"], key=lambda it: it.feature)
    assert (anchor.version, anchor.updated_at) == (1, None)
    emptied: dict[str, Any] = {key: [] for key in ANCHOR}
    async with database.writing() as writing:
        later = await characters.set_anchor(
            writing, people.owner, character.id, **{**emptied, "expected_version": 1}
        )
        found = await characters.anchors_of_characters(writing, people.owner, [character.id])
    assert found == {character.id: later}
    assert (later.id, later.version) == (anchor.id, 2)
    assert later.updated_at is not None
    lists = (later.stable_traits, later.permissions, later.taboos, later.variable_range)
    assert lists == ([], [], [], [])
    assert await fetch(
        database,
        "SELECT action, arguments_json->'version' FROM audit_events WHERE subject_id = $1"
        " ORDER BY created_at",
        anchor.id,
    ) == [("form_anchor_set", 1), ("form_anchor_set", 2)]


@pytest.mark.parametrize(("is_there", "expected"), [(False, 1), (True, 0), (True, 2)])
async def test_an_anchor_that_was_changed_meanwhile_is_not_overwritten(
    database: Database, people: People, character: Character, is_there: bool, expected: int
) -> None:
    """Rule F1."""
    if is_there:
        async with database.writing() as writing:
            await characters.set_anchor(writing, people.owner, character.id, **ANCHOR)
    await refused(
        database,
        Conflict,
        "CONFLICT",
        ("input", "expectedVersion"),
        lambda writing: characters.set_anchor(
            writing, people.owner, character.id, **{**ANCHOR, "expected_version": expected}
        ),
    )


async def test_of_two_anchors_set_at_once_with_the_same_version_one_is_refused(
    database: Database, people: People, character: Character
) -> None:
    """Rule F1."""
    async with database.writing() as writing:
        await characters.set_anchor(writing, people.owner, character.id, **ANCHOR)
    values = {**ANCHOR, "expected_version": 1}

    async def again() -> None:
        async with database.writing() as writing:
            await characters.set_anchor(writing, people.owner, character.id, **values)

    result = await in_the_middle_of(
        database,
        lambda writing: characters.set_anchor(writing, people.owner, character.id, **values),
        again(),
    )
    assert isinstance(result, Conflict)
    assert (result.code, result.path) == ("CONFLICT", ("input", "expectedVersion"))


MANY = [str(index) for index in range(MAX_POINTS + 1)]
BAD_ANCHORS = [
    ({"stable_traits": ["tall", " "]}, Invalid, "TEXT_EMPTY", ("stableTraits", 1)),
    ({"permissions": ["x" * (MAX_LINE + 1)]}, Invalid, "TEXT_TOO_LONG", ("permissions", 0)),
    ({"taboos": [""]}, Invalid, "TEXT_EMPTY", ("taboos", 0)),
    (
        {"variable_range": [VariableFeature("hair", "any"), VariableFeature("", "any")]},
        Invalid,
        "TEXT_EMPTY",
        ("variableRange", 1, "feature"),
    ),
    (
        {"variable_range": [VariableFeature("hair", "x" * (MAX_LINE + 1))]},
        Invalid,
        "TEXT_TOO_LONG",
        ("variableRange", 0, "range"),
    ),
    (
        {"variable_range": [VariableFeature("hair", "any"), VariableFeature("hair", "none")]},
        Invalid,
        "FEATURE_TWICE",
        ("variableRange", 1, "feature"),
    ),
    ({"stable_traits": MANY}, LimitReached, "LIMIT_REACHED", ("stableTraits",)),
    ({"permissions": MANY}, LimitReached, "LIMIT_REACHED", ("permissions",)),
    ({"taboos": MANY}, LimitReached, "LIMIT_REACHED", ("taboos",)),
    (
        {"variable_range": [VariableFeature(each, "any") for each in MANY]},
        LimitReached,
        "LIMIT_REACHED",
        ("variableRange",),
    ),
]


@pytest.mark.parametrize(("values", "kind", "code", "path"), BAD_ANCHORS)
async def test_an_anchor_with_a_bad_point_is_refused_with_its_place(
    database: Database,
    people: People,
    character: Character,
    values: dict[str, Any],
    kind: type[DomainError],
    code: str,
    path: tuple[str | int, ...],
) -> None:
    """Rule F1."""
    await refused(
        database,
        kind,
        code,
        ("input", *path),
        lambda writing: characters.set_anchor(
            writing, people.owner, character.id, **{**ANCHOR, **values}
        ),
    )


STEPS = st.lists(
    st.tuples(st.sampled_from(["primary", "variant", *ACTS]), st.integers(0, 10_000)), max_size=25
)


@given(steps=STEPS)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_whatever_is_done_one_primary_form_is_official_and_none_comes_back(
    database: Database, people: People, steps: list[tuple[str, int]]
) -> None:
    """Rules F2, F3. Compared with a plain model: kinds and states by id."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
        model: dict[str, list[str]] = {}
        for name, place in steps:
            if name not in ACTS:
                form = await characters.propose_form(
                    writing, people.owner, character.id, **{**FORM, "kind": FormKind(name)}
                )
                model[form.id] = [name, "candidate"]
            elif model:
                on = list(model)[place % len(model)]
                expected = TRANSITIONS[model[on][1], name]
                if expected.isupper():
                    with pytest.raises(Conflict) as caught:
                        await ACTS[name](writing, people.owner, on)
                    assert caught.value.code == expected
                    continue
                await ACTS[name](writing, people.owner, on)
                if (model[on][0], expected) == ("primary", "confirmed"):
                    for each in model.values():
                        if each == ["primary", "confirmed"]:
                            each[1] = "retired"
                model[on][1] = expected
        rows = await writing._connection.fetch(
            "SELECT id, kind, status FROM forms WHERE character_id = $1", character.id
        )
        primary = await characters.primary_forms_of_characters(
            writing, people.owner, [character.id]
        )
    assert {row["id"]: [row["kind"], row["status"]] for row in rows} == model
    official = [each for each, state in model.items() if state == ["primary", "confirmed"]]
    assert [each.id for each in primary.values()] == official
    assert len(official) <= 1
