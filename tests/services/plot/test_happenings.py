"""Happenings: when, who took part, who knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import EntityKind
from db.reading import Writing
from db.tables import (
    Branch,
    Delta,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    StoryEntity,
)
from services import deltas, plot
from services.access import Viewer
from services.errors import DomainError, LimitReached
from services.plot import happenings
from tests.conftest import People
from tests.factories import append_entry, make_branch, plant_entity
from tests.services.deltas.ledgers import rows_of, state_of

NOWHERE = "entry_01900000-0000-7000-8000-000000000000"


@dataclass
class Scene:
    """A branch with an entry, two characters, a place, and a happening of which one knows."""

    branch: Branch
    entry: str
    mira: str
    odo: str
    quay: str
    fire: Happening
    common: Happening


async def make_scene(writing: Writing, viewer: Viewer) -> Scene:
    branch = await make_branch(writing, viewer)
    mira, odo = [
        await plant_entity(writing, branch.id, EntityKind.CHARACTER, name)
        for name in ("Mira", "Odo")
    ]
    quay = await plant_entity(writing, branch.id, EntityKind.LOCATION, "Quay")
    async with deltas.acting(writing, viewer, branch.id) as action:
        entry = await append_entry(action, 2)
    fire, _ = await plot.create_happening(
        writing,
        viewer,
        branch.id,
        {"title": "Fire", "occurred_at_entry_id": entry["id"]},
        [plot.Involvement(quay["id"], "site")],
        [plot.Awareness(mira["id"], "saw it", entry["id"], 0.5)],
    )
    common, _ = await plot.create_happening(
        writing, viewer, branch.id, {"title": "The king is dead", "common_knowledge": True}
    )
    return Scene(branch, entry["id"], mira["id"], odo["id"], quay["id"], fire, common)


async def test_a_happening_comes_with_who_took_part_and_who_knows(
    database: Database, people: People
) -> None:
    """Rules Q1, Q5."""
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
    async with database.reading() as reading:
        log = await rows_of(reading, Delta, scene.branch.id)
        (part,) = await rows_of(reading, HappeningInvolvement, scene.branch.id)
        (known,) = await rows_of(reading, HappeningAwareness, scene.branch.id)
    first = log[1].action_id
    assert [(each.target_table, each.op, each.entry_id) for each in log[1:4]] == [
        ("happenings", "create", None),
        ("happening_involvements", "create", None),
        ("happening_awareness", "create", None),
    ]
    assert [each.action_id == first for each in log] == [False, True, True, True, False]
    assert (scene.fire.occurred_at_entry_id, scene.fire.temporal) == (scene.entry, None)
    assert (scene.fire.description, scene.fire.common_knowledge) == ("", False)
    assert (part.happening_id, part.entity_id, part.role) == (
        scene.fire.row_id,
        scene.quay,
        "site",
    )
    assert (known.happening_id, known.character_id, known.learned_at_entry_id) == (
        scene.fire.row_id,
        scene.mira,
        scene.entry,
    )
    assert (known.source, known.decay_resistance, known.retrieval_count) == ("saw it", 0.5, 0)


async def test_a_happening_has_an_entry_or_a_time_in_words(
    database: Database, people: People
) -> None:
    """Rule Q4."""
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
        moved, _ = await plot.update_happening(
            writing,
            people.owner,
            scene.fire.id,
            {"temporal": "next solstice", "occurred_at_entry_id": None},
        )
        assert (moved.temporal, moved.occurred_at_entry_id) == ("next solstice", None)
        back, _ = await plot.update_happening(
            writing,
            people.owner,
            scene.fire.id,
            {"temporal": " ", "occurred_at_entry_id": f"{scene.branch.id}:{scene.entry}"},
        )
        assert (back.temporal, back.occurred_at_entry_id) == (None, scene.entry)
        neither, _ = await plot.create_happening(
            writing,
            people.owner,
            scene.branch.id,
            {"title": "Fog", "temporal": "", "occurred_at_entry_id": ""},
        )
        assert (neither.temporal, neither.occurred_at_entry_id) == (None, None)


async def test_what_becomes_common_knowledge_is_known_by_nobody_in_particular(
    database: Database, people: People
) -> None:
    """Rule Q8."""
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
        await plot.set_awareness(writing, people.owner, scene.fire.id, scene.odo, {})
        changes = {"common_knowledge": True, "title": "The great fire"}
        fire, after = await plot.update_happening(writing, people.owner, scene.fire.id, changes)
        assert (fire.title, fire.common_knowledge) == ("The great fire", True)
        assert await rows_of(writing, HappeningAwareness, scene.branch.id) == []
        assert len(await rows_of(writing, HappeningInvolvement, scene.branch.id)) == 1
        log = await rows_of(writing, Delta, scene.branch.id)
        assert [(each.target_table, each.op) for each in log[-3:]] == [
            ("happenings", "update"),
            ("happening_awareness", "delete"),
            ("happening_awareness", "delete"),
        ]
        assert {each.action_id for each in log[-3:]} == {log[-1].action_id}
        assert after.head == log[-1].log_position
        await plot.update_happening(
            writing, people.owner, scene.fire.id, {"common_knowledge": False}
        )
        known, _ = await plot.set_awareness(writing, people.owner, scene.fire.id, scene.odo, {})
        assert known.character_id == scene.odo


async def test_who_takes_part_is_noted_once_and_may_be_of_any_kind(
    database: Database, people: People
) -> None:
    """Rule Q6."""
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
        first, _ = await plot.set_involvement(
            writing, people.owner, scene.fire.id, scene.mira, {"role": "witness"}
        )
        kept, _ = await plot.set_involvement(writing, people.owner, scene.fire.id, scene.mira, {})
        assert kept == first
        none, _ = await plot.set_involvement(
            writing,
            people.owner,
            scene.fire.id,
            f"{scene.branch.id}:{scene.mira}",
            {"role": None},
        )
        assert (none.id, none.role) == (first.id, None)
        rows = await rows_of(writing, HappeningInvolvement, scene.branch.id)
        assert [each.entity_id for each in rows] == [scene.quay, scene.mira]
        deleted_id, _ = await plot.delete_row(
            writing, people.owner, HappeningInvolvement, first.id, "involvementId"
        )
        assert deleted_id == first.id
        rows = await rows_of(writing, HappeningInvolvement, scene.branch.id)
        assert [each.entity_id for each in rows] == [scene.quay]


async def test_what_is_known_is_changed_in_place(database: Database, people: People) -> None:
    """Rule Q7."""
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
        known, _ = await plot.set_awareness(
            writing, people.owner, scene.fire.id, scene.mira, {"source": "told by Odo"}
        )
        assert (known.source, known.learned_at_entry_id, known.decay_resistance) == (
            "told by Odo",
            scene.entry,
            0.5,
        )
        changes = {"source": "", "learned_at_entry_id": None, "decay_resistance": 1.0}
        known, _ = await plot.set_awareness(
            writing, people.owner, scene.fire.id, scene.mira, changes
        )
        assert (known.source, known.learned_at_entry_id, known.decay_resistance) == (None, None, 1)
        assert len(await rows_of(writing, HappeningAwareness, scene.branch.id)) == 1


async def test_a_happening_takes_along_who_took_part_and_who_knows(
    database: Database, people: People
) -> None:
    """Rule Q10."""
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
        other, _ = await plot.create_happening(
            writing,
            people.owner,
            scene.branch.id,
            {"title": "Rain"},
            [plot.Involvement(scene.mira)],
            [plot.Awareness(scene.odo)],
        )
        await plot.delete_row(writing, people.owner, Happening, scene.fire.id, "happeningId")
        for table in (HappeningInvolvement, HappeningAwareness):
            (left,) = await rows_of(writing, table, scene.branch.id)
            assert left.happening_id == other.row_id
        async with deltas.acting(writing, people.owner, scene.branch.id) as action:
            await action.delete(StoryEntity, await action.require(StoryEntity, scene.mira))
        assert await rows_of(writing, HappeningInvolvement, scene.branch.id) == []
        assert len(await rows_of(writing, HappeningAwareness, scene.branch.id)) == 1


Work = Callable[[Writing, Viewer, Scene], Awaitable[Any]]


def creating(
    values: dict[str, Any], involved: list[str] | None = None, aware: list[Any] | None = None
) -> Work:
    """A new happening, with entities by the names that the scene has for them."""

    def work(writing: Writing, viewer: Viewer, scene: Scene) -> Awaitable[Any]:
        return plot.create_happening(
            writing,
            viewer,
            scene.branch.id,
            {"title": "New", **values},
            [plot.Involvement(getattr(scene, name, name)) for name in involved or ()],
            [
                plot.Awareness(getattr(scene, name, name), None, *rest)
                for name, *rest in aware or ()
            ],
        )

    return work


def knowing(who: str, what: str = "fire", **changes: Any) -> Work:
    return lambda writing, viewer, scene: plot.set_awareness(
        writing, viewer, getattr(scene, what).id, getattr(scene, who, who), changes
    )


REFUSALS: dict[str, tuple[Work, str, tuple[str | int, ...]]] = {
    "no title": (creating({"title": ""}), "TEXT_EMPTY", ("input", "title")),
    "two times": (
        lambda w, v, s: plot.create_happening(
            w, v, s.branch.id, {"title": "x", "temporal": "x", "occurred_at_entry_id": s.entry}
        ),
        "ONE_TIME_ANCHOR",
        ("input", "temporal"),
    ),
    "a time in words beside an entry": (
        lambda w, v, s: plot.update_happening(w, v, s.fire.id, {"temporal": "then"}),
        "ONE_TIME_ANCHOR",
        ("input", "temporal"),
    ),
    "no such entry": (
        creating({"occurred_at_entry_id": NOWHERE}),
        "NOT_FOUND",
        ("input", "occurredAtEntryId"),
    ),
    "nobody takes part": (
        creating({}, ["mira", NOWHERE]),
        "NOT_FOUND",
        ("input", "involvements", 1, "entityId"),
    ),
    "one who takes part twice": (
        creating({}, ["mira", "quay", "mira"]),
        "DUPLICATE",
        ("input", "involvements", 2, "entityId"),
    ),
    "one who knows twice": (
        creating({}, [], [["mira"], ["mira"]]),
        "DUPLICATE",
        ("input", "awareness", 1, "characterId"),
    ),
    "a place that knows": (
        creating({}, [], [["mira"], ["quay"]]),
        "NOT_A_CHARACTER",
        ("input", "awareness", 1, "characterId"),
    ),
    "learned nowhere": (
        creating({}, [], [["mira", NOWHERE]]),
        "NOT_FOUND",
        ("input", "awareness", 0, "learnedAtEntryId"),
    ),
    "too firm": (
        creating({}, [], [["mira", None, 1.5]]),
        "OUT_OF_RANGE",
        ("input", "awareness", 0, "decayResistance"),
    ),
    "known by one and all": (
        creating({"common_knowledge": True}, [], [["mira"]]),
        "COMMON_KNOWLEDGE",
        ("input", "awareness"),
    ),
    "too many who take part": (
        creating({}, ["mira"] * 201),
        "LIMIT_REACHED",
        ("input", "involvements"),
    ),
    "too many who know": (
        creating({}, [], [["mira"]] * 201),
        "LIMIT_REACHED",
        ("input", "awareness"),
    ),
    "a place comes to know": (knowing("quay"), "NOT_A_CHARACTER", ("input", "characterId")),
    "nobody comes to know": (knowing(NOWHERE), "NOT_FOUND", ("input", "characterId")),
    "one comes to know what all know": (
        knowing("odo", "common"),
        "COMMON_KNOWLEDGE",
        ("input", "happeningId"),
    ),
    "known less than not at all": (
        knowing("odo", decay_resistance=-0.1),
        "OUT_OF_RANGE",
        ("input", "decayResistance"),
    ),
    "known since no entry": (
        knowing("mira", learned_at_entry_id=NOWHERE),
        "NOT_FOUND",
        ("input", "learnedAtEntryId"),
    ),
    "known by a long story": (
        knowing("odo", source="x" * 501),
        "TEXT_TOO_LONG",
        ("input", "source"),
    ),
    "another head": (
        lambda w, v, s: plot.set_involvement(w, v, s.fire.id, s.mira, {}, 1),
        "CONFLICT",
        ("input", "expectedHead"),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_what_breaks_a_rule_is_refused(database: Database, people: People, name: str) -> None:
    """Rules Q4, Q5, Q6, Q7, Q8, Q9."""
    work, code, path = REFUSALS[name]
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
        before = await state_of(writing, scene.branch.id)
    with pytest.raises(DomainError) as refusal:
        async with database.writing() as writing:
            await work(writing, people.owner, scene)
    assert (refusal.value.code, refusal.value.path) == (code, path)
    async with database.reading() as reading:
        assert await state_of(reading, scene.branch.id) == before


async def test_happenings_of_others_are_not_there(database: Database, people: People) -> None:
    """Rule Q1."""
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
        (part,) = await rows_of(writing, HappeningInvolvement, scene.branch.id)
        (known,) = await rows_of(writing, HappeningAwareness, scene.branch.id)
        before = await state_of(writing, scene.branch.id)
        for viewer in (people.stranger, people.anonymous):
            works: list[Awaitable[Any]] = [
                plot.create_happening(writing, viewer, scene.branch.id, {"title": "Mine"}),
                plot.update_happening(writing, viewer, scene.fire.id, {"title": "Mine"}),
                plot.delete_row(writing, viewer, Happening, scene.fire.id, "happeningId"),
                plot.set_involvement(writing, viewer, scene.fire.id, scene.odo, {}),
                plot.set_awareness(writing, viewer, scene.fire.id, scene.odo, {}),
                plot.delete_row(writing, viewer, HappeningInvolvement, part.id, "involvementId"),
                plot.delete_row(writing, viewer, HappeningAwareness, known.id, "awarenessId"),
            ]
            for work in works:
                with pytest.raises(DomainError) as refusal:
                    await work
                assert refusal.value.code == "NOT_FOUND"
        assert await state_of(writing, scene.branch.id) == before


async def test_a_happening_has_room_for_so_many(
    database: Database, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule Q9."""
    monkeypatch.setattr(happenings, "MAX_TIES", 1)
    async with database.writing() as writing:
        scene = await make_scene(writing, people.owner)
        for work in (plot.set_involvement, plot.set_awareness):
            with pytest.raises(LimitReached) as refusal:
                await work(writing, people.owner, scene.fire.id, scene.odo, {})
            assert refusal.value.path == ("input", "happeningId")
        await plot.set_awareness(writing, people.owner, scene.fire.id, scene.mira, {})


KNOWING = st.tuples(
    st.integers(0, 2),
    st.integers(0, 1),
    st.one_of(
        st.none(),
        st.fixed_dictionaries(
            {},
            optional={
                "source": st.sampled_from([None, "", "saw it", "was told"]),
                "decay_resistance": st.sampled_from([0.0, 0.25, 1.0]),
            },
        ),
    ),
)


@given(steps=st.lists(KNOWING, max_size=12))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_a_character_and_a_happening_never_have_two_rows(
    database: Database, people: People, steps: list[tuple[int, int, dict[str, Any] | None]]
) -> None:
    """Rule Q7: whatever is set and deleted, the row of a pair says what was set last of each."""
    expected: dict[tuple[str, str], tuple[str | None, float]] = {}
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        characters = [
            (await plant_entity(writing, branch.id, EntityKind.CHARACTER, str(number)))["id"]
            for number in range(3)
        ]
        things = [
            (await plot.create_happening(writing, people.owner, branch.id, {"title": title}))[0]
            for title in ("One", "Two")
        ]
        ids: dict[tuple[str, str], str] = {}
        for who, what, changes in steps:
            character, happening = characters[who], things[what]
            pair = (character, happening.row_id)
            if changes is None:
                if pair in expected:
                    await plot.delete_row(
                        writing, people.owner, HappeningAwareness, ids.pop(pair), "awarenessId"
                    )
                    del expected[pair]
                continue
            row, _ = await plot.set_awareness(
                writing, people.owner, happening.id, character, changes
            )
            assert ids.setdefault(pair, row.id) == row.id
            source, resistance = expected.get(pair, (None, 0.0))
            expected[pair] = (
                changes.get("source", source) or None,
                changes.get("decay_resistance", resistance),
            )
        rows = await rows_of(writing, HappeningAwareness, branch.id)
    found = {
        (each.character_id, each.happening_id): (each.source, each.decay_resistance)
        for each in rows
    }
    assert (len(rows), found) == (len(expected), expected)
