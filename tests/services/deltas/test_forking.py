"""Forks: what they have, what they leave, and that neither side ever reaches the other."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import AssetKind, EntityKind
from db.tables import (
    Asset,
    BranchEvent,
    Chapter,
    Embedding,
    EntryAsset,
    EraFlip,
    RedoStep,
    StoryEntity,
    StoryEntry,
)
from services import deltas
from services.access import require_row
from services.deltas.logged import STALE
from services.errors import Conflict, DomainError, Invalid, NotFound
from tests.factories import entity_values
from tests.services.deltas.desks import PERIODIC, Desk, desk
from tests.services.deltas.ledgers import rows_of
from tests.services.deltas.worlds import columns_of, embed_row

__all__ = ["desk"]


async def opening(desk: Desk) -> str:
    return next(
        row_id
        for row_id, row in (await desk.state())["story_entries"].items()
        if row["kind"] == "opening"
    )


async def tell(desk: Desk, turns: int) -> list[dict[str, Any]]:
    """Turns, each with something that it does to the world, and late facts about them."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    entries = []
    for position in range(2, 2 + turns):
        entries.append(await desk.turn(position))
        await desk.edit(StoryEntity, mira["id"], description=f"After {position}.")
        if position > 2:
            await desk.fact(entries[-2]["id"], f"Of {position - 1}", mira["id"])
    return entries


async def test_a_fork_at_the_last_entry_has_everything_and_its_own_log(desk: Desk) -> None:
    """Rules L21, L22."""
    entries = await tell(desk, 3)
    await desk.edit(StoryEntry, entries[0]["id"], anchor=entries[0]["id"], content="Reworded.")
    await desk.undo()
    before, log = await desk.state(), await desk.log()
    fork = await deltas.fork_branch(
        desk.writing, desk.people.owner, desk.branch_id, entries[-1]["id"], "Fork"
    )
    branch = fork.branch
    assert await desk.state(branch.id) == before
    assert columns_of(await desk.log(branch.id)) == columns_of(log)
    assert (branch.head, branch.parent_branch_id) == (len(log), desk.branch_id)
    assert (branch.fork_entry_id, branch.name) == (entries[-1]["id"], "Fork")
    for table in (RedoStep, BranchEvent):
        assert await rows_of(desk.writing, table, branch.id) == []
    counts = {name: len(rows) for name, rows in before.items()}
    counts |= {"embeddings": 0, "deltas": len(log)}
    assert {each.table: each.rows for each in fork.copied} == counts


async def test_undone_down_to_the_first_entry_a_fork_is_the_parent_rolled_back_to_it(
    desk: Desk,
) -> None:
    """Rules L8, L21."""
    entries = await tell(desk, 4)
    fork_id = await desk.fork(entries[2]["id"])
    fork = Desk(desk.writing, desk.people, fork_id)
    while (await fork.undo()).reversed:
        pass
    await desk.back_to(await opening(desk))
    assert await fork.state() == await desk.state()
    assert (await fork.log(), await desk.log()) == ([], [])


async def test_neither_side_of_a_fork_reaches_the_other(desk: Desk) -> None:
    """Rule L21."""
    entries = await tell(desk, 3)
    fork_id = await desk.fork(entries[1]["id"])
    fork = Desk(desk.writing, desk.people, fork_id)
    sides = (desk, fork)
    for doing, other in (sides, sides[::-1]):
        seen, log = await other.state(), await other.log()
        tail = max(
            (await doing.state())["story_entries"].values(), key=lambda row: int(row["position"])
        )
        await doing.turn(tail["position"] + 1)
        await doing.fact(tail["id"], "Of one side", None)
        for way in (doing.undo, doing.undo, doing.redo, doing.redo):
            await way()
        async with doing.act() as action:
            row = await action.require(StoryEntry, entries[0]["id"])
            await action.delete(StoryEntry, row, anchor=row["id"])
        await doing.back_to(await opening(doing))
        assert await other.state() == seen
        assert await other.log() == log


async def test_a_fork_within_a_chapter_that_was_closed_later_never_saw_that(desk: Desk) -> None:
    """Rule L21."""
    entries = await tell(desk, 4)
    async with desk.act() as action:
        chapter = await action.create(
            Chapter,
            {
                "sequence_number": 1,
                "title": "One",
                "start_entry_id": await opening(desk),
                "end_entry_id": entries[2]["id"],
            },
        )
        for entry in entries[:3]:
            row = await action.require(StoryEntry, entry["id"])
            await action.update(StoryEntry, row, {"chapter_id": chapter["id"]})
    fork_id = await desk.fork(entries[1]["id"])
    state = await desk.state(fork_id)
    assert state["chapters"] == {}
    assert {row["chapter_id"] for row in state["story_entries"].values()} == {None}
    assert len(state["story_entries"]) == 3


async def test_what_is_embedded_is_copied_and_follows_the_text(desk: Desk) -> None:
    """Rules L22, L25."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    odo = await desk.plant(EntityKind.CHARACTER, "Odo")
    second = await desk.turn(2)
    table = deltas.logged_of(StoryEntity).name

    async def embed(*ids: str) -> None:
        rows = await deltas.all_images(desk.writing, desk.branch_id, table)
        for each in ids:
            await embed_row(desk.writing, desk.branch_id, table, rows[each])

    async def stale(branch_id: str) -> dict[str, bool]:
        rows = (await desk.state(branch_id))["entities"]
        return {row["name"]: row[STALE] for row in rows.values()}

    await embed(mira["id"])
    third = await desk.turn(3)
    async with desk.act(PERIODIC) as action:
        values = entity_values(EntityKind.CHARACTER, "Ines")
        ines = await action.create(StoryEntity, values, prefix="char", anchor=third["id"])
    await desk.edit(StoryEntity, mira["id"], description="Lights lamps.")
    await desk.edit(StoryEntity, odo["id"], description="Owes money.")
    await embed(odo["id"], ines["id"])
    fork_id = await desk.fork(second["id"])
    # Mira has the text that was embedded, Odo has not; of Ines nothing is left.
    assert await stale(fork_id) == {"Mira": False, "Odo": True}
    assert await stale(desk.branch_id) == {"Mira": True, "Odo": False, "Ines": False}
    targets = {each.target_id for each in await rows_of(desk.writing, Embedding, fork_id)}
    assert targets == {mira["id"], odo["id"]}
    await desk.back_to(second["id"])
    assert await stale(desk.branch_id) == {"Mira": False, "Odo": True}
    targets = {each.target_id for each in await rows_of(desk.writing, Embedding, desk.branch_id)}
    assert targets == {mira["id"], odo["id"]}


async def test_a_fork_that_shows_a_file_again_keeps_it(desk: Desk) -> None:
    """Rule L22."""
    second = await desk.turn(2)
    asset = await desk.writing.insert(
        Asset,
        owner_user_id=desk.people.owner.signed_in_id,
        kind=AssetKind.IMAGE,
        mime_type="image/png",
        file_path="none",
        size_bytes=1,
        content_hash="none",
    )

    async def is_given_up() -> bool:
        row = await require_row(desk.writing, desk.people.owner, Asset, asset.id)
        return row.pending_delete_at is not None

    async with desk.act() as action:
        values = {"entry_id": second["id"], "asset_id": asset.id, "role": "background"}
        link = await action.create(EntryAsset, values, anchor=second["id"])
    await desk.turn(3)
    async with desk.act() as action:
        # An action about the world, so that it does not stay with the entry.
        await action.delete(EntryAsset, link)
    assert await is_given_up()
    fork_id = await desk.fork(second["id"])
    assert list((await desk.state(fork_id))["entry_assets"]) == [link["id"]]
    assert not await is_given_up()


async def test_what_cannot_be_forked_is_refused_and_makes_nothing(desk: Desk) -> None:
    """Rule L20."""
    second = await desk.turn(2)
    async with desk.act() as action:
        era = await action.create(EraFlip, {"at_worldtime": 5, "era_name": "Old"})
    third = await desk.turn(3)
    async with desk.act() as action:
        await action.delete(EraFlip, era)
    async with desk.act(PERIODIC) as action:
        await action.create(EraFlip, {"at_worldtime": 5, "era_name": "New"}, anchor=second["id"])
    meta = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0}
    row = {"position": 4, "kind": "system", "content": "It failed.", "metadata": meta}
    (notice,) = await deltas.plant_rows(desk.writing, desk.branch_id, StoryEntry, [row])
    owner, stranger = desk.people.owner, desk.people.stranger
    for viewer, entry_id, name, expected in (
        (owner, second["id"], "Fork", (Conflict, "REVERSAL_BLOCKED")),
        (owner, notice["id"], "Fork", (Invalid, "NOT_IN_THE_STORY")),
        (owner, "entry_01900000-0000-7000-8000-000000000000", "Fork", (NotFound, "NOT_FOUND")),
        (owner, second["id"], "", (Invalid, "TEXT_EMPTY")),
        (stranger, second["id"], "Fork", (NotFound, "NOT_FOUND")),
    ):
        with pytest.raises(DomainError) as refusal:
            async with desk.writing._connection.transaction():
                await deltas.fork_branch(desk.writing, viewer, desk.branch_id, entry_id, name)
        assert (type(refusal.value), refusal.value.code) == expected
    count = await desk.writing._connection.fetchval("SELECT count(*) FROM branches")
    assert count == 1
    # At the last entry nothing has to come back.
    assert await desk.state(await desk.fork(third["id"]))
