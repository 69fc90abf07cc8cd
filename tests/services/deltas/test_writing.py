"""The writer: every change is logged with what undoes it, under the branch's lock."""

from __future__ import annotations

import pytest

from db.engine import Database
from db.enums import EntityKind
from db.tables import CharacterRelationship, Delta, RedoStep, StoryEntity
from services import deltas
from services.errors import Conflict
from tests.conftest import People
from tests.factories import append_entry, entity_values, make_branch, plant_entity
from tests.services.deltas.ledgers import rows_of


async def test_an_action_logs_each_change_with_what_undoes_it(
    database: Database, people: People
) -> None:
    """Rules L1, L3."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        async with deltas.acting(writing, people.owner, branch.id) as action:
            entry = await append_entry(action, 2)
            made = await action.create(
                StoryEntity, entity_values(EntityKind.CHARACTER, "Mira"), prefix="char"
            )
            state = {**made["state"], "stackables": {"gold": 3}, "voice": "low"}
            changed = await action.update(
                StoryEntity, made, {"state": state, "name": "Mira", "tags": ["a"]}
            )
            assert changed["state"]["stackables"] == {"gold": 3}
    async with database.reading() as reading:
        log = await rows_of(reading, Delta, branch.id)
    assert [(each.log_position, each.target_table, each.op) for each in log] == [
        (1, "story_entries", "create"),
        (2, "entities", "create"),
        (3, "entities", "update"),
    ]
    assert {each.action_id for each in log} == {action.id}
    assert [each.entry_id for each in log] == [entry["id"], None, None]
    payload = log[2].undo_payload
    assert payload == {
        "state": {"stackables": None, "voice": None},
        "tags": [],
        "updated_at": None,
    }


async def test_who_has_seen_another_head_is_told_the_head(
    database: Database, people: People
) -> None:
    """Rule L7."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        async with deltas.acting(writing, people.owner, branch.id, expected_head=0) as action:
            await append_entry(action, 2)
        with pytest.raises(Conflict) as refusal:
            async with deltas.acting(writing, people.owner, branch.id, expected_head=0):
                pass
    assert refusal.value.details == {"head": 1}
    assert refusal.value.path == ("input", "expectedHead")


async def test_a_row_takes_those_that_name_it_along(database: Database, people: People) -> None:
    """Rule L6."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        pair = [
            await plant_entity(writing, branch.id, EntityKind.CHARACTER, name)
            for name in ("A", "B")
        ]
        first, second = sorted(each["id"] for each in pair)
        async with deltas.acting(writing, people.owner, branch.id) as action:
            tie = await action.create(
                CharacterRelationship, {"a_id": first, "b_id": second, "kind": "rival"}
            )
            await action.delete(StoryEntity, pair[0])
    async with database.reading() as reading:
        log = await rows_of(reading, Delta, branch.id)
        assert await rows_of(reading, CharacterRelationship, branch.id) == []
        assert await rows_of(reading, RedoStep, branch.id) == []
    payload = log[-1].undo_payload
    assert payload is not None
    assert payload["$children"] == {"character_relationships": [tie]}
    assert payload["name"] == "A"
