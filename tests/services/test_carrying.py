"""One row of a branch made like it is in another: all of it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import DeltaSource, EntityKind
from db.tables import (
    CharacterRelationship,
    EraFlip,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    Lore,
    StoryEntity,
    Thread,
    Translation,
)
from services.carrying import Carried, carry_row
from services.errors import DomainError
from tests.conftest import People
from tests.factories import append_entry, entity_values, make_branch
from tests.services.deltas.desks import Desk, desk
from tests.services.diffs import differences, plain, short

__all__ = ["desk"]

AUTO = {"injection_mode": "auto"}


class Pair:
    """A branch and its fork, in which things are done that are then carried into the branch."""

    def __init__(self, desk: Desk, fork_id: str, ids: dict[str, str]) -> None:
        self.desk, self.fork_id, self.ids = desk, fork_id, ids

    def there(self) -> Any:
        return self.desk.act(branch_id=self.fork_id)

    async def carry(self, row_id: str, **options: Any) -> Carried:
        return await carry_row(
            self.desk.writing,
            self.desk.people.owner,
            self.fork_id,
            self.desk.branch_id,
            row_id,
            **options,
        )

    async def refusal(self, row_id: str) -> tuple[str, tuple[str | int, ...]]:
        """Why a row cannot be carried; nothing has changed."""
        before = await self.desk.state(), len(await self.desk.log())
        with pytest.raises(DomainError) as refused:
            await self.carry(row_id)
        assert (await self.desk.state(), len(await self.desk.log())) == before
        return refused.value.code, refused.value.path

    async def left(self) -> list[tuple[str, str, str]]:
        """What still differs, seen from the branch."""
        return short(await differences(self.desk, self.desk.branch_id, self.fork_id))


@pytest.fixture
async def pair(desk: Desk) -> Pair:
    mira = await desk.plant(EntityKind.CHARACTER, "Mira", visual={"hair": "red"}, voice="low")
    odo = await desk.plant(EntityKind.CHARACTER, "Odo")
    quay = await desk.plant(EntityKind.LOCATION, "Quay")
    book = await desk.plant(EntityKind.ITEM, "Ledger")
    entry = await desk.turn(2)
    ids = {"mira": mira["id"], "odo": odo["id"], "quay": quay["id"], "book": book["id"]}
    first, second = sorted((ids["mira"], ids["odo"]))
    ids |= {"first": first, "second": second, "entry": entry["id"]}
    return Pair(desk, await desk.fork(entry["id"]), ids)


async def test_a_changed_entity_is_made_like_it_is_there(pair: Pair) -> None:
    """Rule H14."""
    async with pair.there() as action:
        row = await action.require(StoryEntity, pair.ids["mira"])
        state = {
            **row["state"],
            "visual": {"eyes": "green"},
            "stackables": {"gold": 2},
            "current_location_id": pair.ids["quay"],
            "inventory": [pair.ids["book"]],
        }
        del state["voice"]
        changes = {"name": "Mira Voss", "status": "retired", "retired_reason": "Gone."}
        await action.update(StoryEntity, row, {**changes, "state": state})
    done = await pair.carry(pair.ids["mira"])
    assert (done.kind, done.row.name, done.row.state) == ("changed", "Mira Voss", state)
    assert done.row.branch_id == done.branch.id == pair.desk.branch_id
    assert await pair.left() == []
    log = await pair.desk.log()
    assert done.branch.head == log[-1].log_position
    assert [(each.op, each.source, each.entry_id) for each in log[1:]] == [
        ("update", DeltaSource.USER_EDIT, None)
    ]
    await pair.desk.undo()
    assert [each[:3] for each in await pair.left()] == [("entities", "changed", "Mira Voss")]
    again = await pair.carry(pair.ids["mira"])
    assert again.kind == "changed"
    idle = await pair.carry(pair.ids["mira"])
    assert (idle.kind, idle.branch.head) == (None, again.branch.head)


async def test_an_item_is_with_one_holder_after_it_was_carried(pair: Pair) -> None:
    """Rule H15: entities follow their own rules, in the same step."""
    mira = await pair.desk.state()
    state = {**mira["entities"][pair.ids["odo"]]["state"], "inventory": [pair.ids["book"]]}
    await pair.desk.edit(StoryEntity, pair.ids["odo"], state=state)
    async with pair.there() as action:
        row = await action.require(StoryEntity, pair.ids["mira"])
        its = {**row["state"], "equipped_items": [pair.ids["book"]]}
        await action.update(StoryEntity, row, {"state": its})
    await pair.carry(pair.ids["mira"])
    assert await pair.left() == []
    assert len({each.action_id for each in (await pair.desk.log())[2:]}) == 1


async def test_rows_come_with_their_ids_and_go(pair: Pair) -> None:
    """Rule H14."""
    made = {}
    async with pair.there() as action:
        for kind, prefix in ((EntityKind.CHARACTER, "char"), (EntityKind.FACTION, "fact")):
            row = await action.create(
                StoryEntity, entity_values(kind, f"New {kind}"), prefix=prefix
            )
            made[str(kind)] = row["id"]
        row = await action.create(
            Lore, {"title": "Oil", "body": "It is so.", "tags": ["a"], **AUTO}
        )
        made["lore"] = row["id"]
        row = await action.create(Thread, {"title": "Who?", "status": "active", **AUTO})
        made["thread"] = row["id"]
        row = await action.create(EraFlip, {"at_worldtime": 60, "era_name": "After"})
        made["era"] = row["id"]
        first, second = pair.ids["first"], pair.ids["second"]
        row = await action.create(
            CharacterRelationship, {"a_id": first, "b_id": second, "kind": "rival"}
        )
        made["tie"] = row["id"]
        row = await action.create(
            Translation,
            {
                "target_kind": "entity",
                "target_id": pair.ids["mira"],
                "field": "name",
                "language": "de",
                "translated_text": "M.",
            },
        )
        made["translation"] = row["id"]
    for count, row_id in enumerate(made.values(), start=1):
        done = await pair.carry(row_id)
        assert (done.kind, done.row.row_id) == ("added", row_id)
        assert len(await pair.left()) == len(made) - count
    async with pair.there() as action:
        for table, key in (
            (Lore, "lore"),
            (CharacterRelationship, "tie"),
            (StoryEntity, "faction"),
        ):
            await action.delete(table, await action.require(table, made[key]))
    for key in ("lore", "tie", "faction"):
        done = await pair.carry(f"{pair.desk.branch_id}:{made[key]}")
        assert (done.kind, done.row) == ("removed", None)
    assert await pair.left() == []


async def test_an_entry_that_is_not_there_is_left_out(pair: Pair) -> None:
    """Rule H16."""
    async with pair.there() as action:
        entry = await append_entry(action, 3)
        told = await action.create(
            Happening, {"title": "It burns", "occurred_at_entry_id": entry["id"]}
        )
        known = await action.create(
            HappeningAwareness,
            {
                "happening_id": told["id"],
                "character_id": pair.ids["odo"],
                "learned_at_entry_id": pair.ids["entry"],
            },
        )
    assert (await pair.carry(told["id"])).row.occurred_at_entry_id is None
    assert (await pair.carry(known["id"])).row.learned_at_entry_id == pair.ids["entry"]
    found = plain(await differences(pair.desk, pair.desk.branch_id, pair.fork_id))
    assert found[1:] == [
        ("happenings", "changed", "It burns", [("occurredAtEntryId", None, entry["id"])])
    ]


async def test_a_link_needs_its_ends(pair: Pair) -> None:
    """Rule H16."""
    async with pair.there() as action:
        told = await action.create(Happening, {"title": "It burns"})
        part = await action.create(
            HappeningInvolvement, {"happening_id": told["id"], "entity_id": pair.ids["mira"]}
        )
        lore = await action.create(Lore, {"title": "Oil", "body": "So.", **AUTO})
        said = await action.create(
            Translation,
            {
                "target_kind": "lore",
                "target_id": lore["id"],
                "field": "title",
                "language": "de",
                "translated_text": "Öl",
            },
        )
        place = await action.create(
            StoryEntity, entity_values(EntityKind.LOCATION, "Attic"), prefix="loc"
        )
        row = await action.require(StoryEntity, pair.ids["mira"])
        state = {**row["state"], "current_location_id": place["id"]}
        await action.update(StoryEntity, row, {"state": state})
    for row_id in (part["id"], said["id"], pair.ids["mira"]):
        assert await pair.refusal(row_id) == ("END_MISSING", ("input", "rowId"))
    for row_id in (told["id"], part["id"], lore["id"], said["id"]):
        await pair.carry(row_id)
    assert [each[0] for each in await pair.left()] == ["entities", "entities"]


async def test_there_are_no_two_rows_for_one_thing(pair: Pair) -> None:
    """Rule H16."""
    tie = {"a_id": pair.ids["first"], "b_id": pair.ids["second"]}
    async with pair.desk.act() as action:
        await action.create(CharacterRelationship, {**tie, "kind": "friend"})
        await action.create(EraFlip, {"at_worldtime": 60, "era_name": "Before"})
    async with pair.there() as action:
        other = await action.create(CharacterRelationship, {**tie, "kind": "rival"})
        era = await action.create(EraFlip, {"at_worldtime": 60, "era_name": "After"})
    for row_id in (other["id"], era["id"]):
        assert await pair.refusal(row_id) == ("ALREADY_THERE", ("input", "rowId"))


async def test_what_everybody_knows_is_nobodys_knowledge(pair: Pair) -> None:
    """Rule H16."""
    async with pair.there() as action:
        told = await action.create(Happening, {"title": "It burns"})
        known = await action.create(
            HappeningAwareness, {"happening_id": told["id"], "character_id": pair.ids["odo"]}
        )
    await pair.carry(told["id"])
    await pair.carry(known["id"])
    await pair.desk.edit(Happening, told["id"], title="It burned")
    async with pair.there() as action:
        await action.delete(
            HappeningAwareness, await action.require(HappeningAwareness, known["id"])
        )
        await action.update(Happening, told, {"common_knowledge": True})
    await pair.carry(told["id"])
    assert await pair.left() == []
    await pair.desk.edit(Happening, told["id"], title="It burns no more")
    async with pair.there() as action:
        row = await action.require(Happening, told["id"])
        await action.update(Happening, row, {"common_knowledge": False})
        again = await action.create(
            HappeningAwareness, {"happening_id": told["id"], "character_id": pair.ids["odo"]}
        )
    assert await pair.refusal(again["id"]) == ("COMMON_KNOWLEDGE", ("input", "rowId"))


async def test_the_text_of_a_story_and_what_is_nowhere_are_not_carried(pair: Pair) -> None:
    """Rule H14."""
    async with pair.there() as action:
        entry = await append_entry(action, 3)
    other = ("NOT_FOUND", ("input", "rowId"))
    assert await pair.refusal(entry["id"]) == ("NOT_CARRIED", ("input", "rowId"))
    gone = "lore_01a22e94-2a09-77a6-b2e9-0cf5ae3a7eb9"
    for row_id in (gone, "nonsense", "run_01a22e94-2a09-77a6-b2e9-0cf5ae3a7eb9", ""):
        assert await pair.refusal(row_id) == other
    elsewhere = f"br_01a22e94-2a09-77a6-b2e9-0cf5ae3a7eb9:{pair.ids['mira']}"
    assert await pair.refusal(elsewhere) == other


async def test_the_lead_is_not_carried_away(pair: Pair) -> None:
    """Rule H15."""
    async with pair.there() as action:
        await action.delete(StoryEntity, await action.require(StoryEntity, pair.ids["mira"]))
    await pair.desk.writing._connection.execute(
        "UPDATE stories SET definition = definition || "
        "jsonb_build_object('leadEntityId', $1::text)",
        pair.ids["mira"],
    )
    assert await pair.refusal(pair.ids["mira"]) == ("LEAD_STAYS", ("input", "rowId"))


async def test_only_between_ones_own_branches_of_one_story(pair: Pair, people: People) -> None:
    writing, owner = pair.desk.writing, people.owner
    other = await make_branch(writing, owner)
    row_id, here, there = pair.ids["mira"], pair.desk.branch_id, pair.fork_id
    for viewer, sides, expected in (
        (owner, (other.id, here), ("NOT_OF_ONE_STORY", "toBranchId")),
        (owner, ("br_none", here), ("NOT_FOUND", "fromBranchId")),
        (owner, (there, "br_none"), ("NOT_FOUND", "toBranchId")),
        (people.stranger, (there, here), ("NOT_FOUND", "fromBranchId")),
        (people.anonymous, (there, here), ("NOT_FOUND", "fromBranchId")),
    ):
        with pytest.raises(DomainError) as refused:
            await carry_row(writing, viewer, *sides, row_id)
        assert (refused.value.code, refused.value.path) == (expected[0], ("input", expected[1]))


async def test_who_has_seen_another_head_carries_nothing(pair: Pair) -> None:
    async with pair.there() as action:
        lore = await action.create(Lore, {"title": "Oil", "body": "So.", **AUTO})
    with pytest.raises(DomainError) as refused:
        await pair.carry(lore["id"], expected_head=7)
    assert (refused.value.code, refused.value.details) == ("CONFLICT", {"head": 1})
    assert (await pair.carry(lore["id"], expected_head=1)).branch.head == 2
