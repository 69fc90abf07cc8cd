"""Rules of the log that need a scenario of their own."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.enums import EntityKind
from db.reading import param, statement
from db.tables import Branch, CharacterRelationship, Embedding, EraFlip, StoryEntity, metadata
from services import deltas
from services.deltas.closing import close
from services.deltas.embedding import content_hash
from services.deltas.forking import COPIED, NOT_COPIED, SEPARATELY
from services.deltas.reversing import compute
from services.errors import Conflict
from tests.services.deltas.desks import PERIODIC, Desk, desk

__all__ = ["desk"]


@statement(Branch)
def _set_status() -> Any:
    return (
        update(Branch)
        .where(col(Branch.id) == param("branch_id"))
        .values(classifier_status=param("status", JSONB()))
    )


def test_every_table_of_a_branch_is_copied_or_left_out_on_purpose() -> None:
    """Rule L22."""
    of_branches = {
        table.name for table in metadata.sorted_tables if "branch_id" in table.primary_key.columns
    }
    assert of_branches == {*COPIED, *SEPARATELY, *NOT_COPIED}


async def test_the_background_reads_again_what_was_taken_back(desk: Desk) -> None:
    """Rules L9, L23."""
    status = {"state": "failed", "processedThrough": 4, "lastError": "x", "retryCount": 3}
    second, third = await desk.turn(2), await desk.turn(3)
    await desk.writing.run(_set_status(), branch_id=desk.branch_id, status=status)
    fork = await deltas.fork_branch(
        desk.writing, desk.people.owner, desk.branch_id, second["id"], "Fork"
    )
    assert fork.branch.classifier_status == {"state": "idle", "processedThrough": 2}
    await desk.undo()
    assert (await desk.branch()).classifier_status == {**status, "processedThrough": 2}
    await desk.redo()
    assert (await desk.branch()).classifier_status["processedThrough"] == 2
    assert third["position"] == 3


async def test_what_would_come_back_to_a_taken_place_is_refused(desk: Desk) -> None:
    """Rule L20."""
    second = await desk.turn(2)
    async with desk.act() as action:
        era = await action.create(EraFlip, {"at_worldtime": 5, "era_name": "Old"})
    await desk.turn(3)
    async with desk.act() as action:
        await action.delete(EraFlip, era)
    # Somebody says of a kept entry what takes the place of the deleted row.
    async with desk.act() as action:
        await action.create(EraFlip, {"at_worldtime": 5, "era_name": "New"}, anchor=second["id"])
    before = await desk.state()
    with pytest.raises(Conflict) as refusal:
        async with desk.writing._connection.transaction():
            await desk.back_to(second["id"])
    assert refusal.value.code == "REVERSAL_BLOCKED"
    assert await desk.state() == before


async def test_what_stands_on_a_deletion_is_not_taken_from_under_it(desk: Desk) -> None:
    """Rule L20."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    async with desk.act(PERIODIC) as action:
        sword = await action.create(
            StoryEntity,
            {
                "kind": "item",
                "name": "Sword",
                "status": "active",
                "injection_mode": "auto",
                "state": {"at_location_id": None},
            },
            prefix="item",
            anchor=second["id"],
        )
    holding = {**mira["state"], "inventory": [sword["id"]]}
    await desk.edit(StoryEntity, mira["id"], state=holding)
    async with desk.act() as action:
        row = await action.require(StoryEntity, mira["id"])
        await action.update(StoryEntity, row, {"state": {**holding, "inventory": []}})
        await action.delete(StoryEntity, await action.require(StoryEntity, sword["id"]))
    before = await desk.state()
    facts = [each for each in await desk.log() if each.source == PERIODIC]
    closed = await close(desk.writing, desk.branch_id, facts)
    with pytest.raises(Conflict) as refusal:
        await compute(desk.writing, closed)
    assert refusal.value.code == "REVERSAL_BLOCKED"
    assert await desk.state() == before


async def test_a_row_that_comes_back_is_stale_unless_its_text_is_embedded(desk: Desk) -> None:
    """Rule L25."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    await desk.writing.insert(
        Embedding,
        row_id="evec_1",
        branch_id=desk.branch_id,
        target_kind="entity",
        target_id=mira["id"],
        field="composite",
        model_id="test",
        dim=3,
        source_hash=content_hash(deltas.logged_of(StoryEntity).name, mira),
    )

    async def is_stale() -> bool:
        return bool((await desk.state())["entities"][mira["id"]]["embedding_stale"])

    await desk.edit(StoryEntity, mira["id"], description="Lights lamps.")
    assert await is_stale()
    await desk.undo()
    assert not await is_stale()
    await desk.redo()
    assert await is_stale()
    await desk.edit(StoryEntity, mira["id"], description="")
    assert not await is_stale()


async def test_a_relationship_without_any_view_goes(desk: Desk) -> None:
    """Rule L16."""
    first, second = sorted(
        [(await desk.plant(EntityKind.CHARACTER, name))["id"] for name in ("A", "B")]
    )
    entry = await desk.turn(2)
    async with desk.act() as action:
        tie = await action.create(
            CharacterRelationship, {"a_id": first, "b_id": second, "kind": "rival"}
        )
    await desk.edit(
        CharacterRelationship, tie["id"], PERIODIC, anchor=entry["id"], inverse_kind="friend"
    )
    await desk.edit(CharacterRelationship, tie["id"], kind=None)
    async with desk.act() as action:
        await deltas.invalidate_facts(action, [entry["id"]], 1)
    assert (await desk.state())["character_relationships"] == {}
    assert tie["id"] not in {each.target_id for each in await desk.log()}
