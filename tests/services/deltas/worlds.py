"""Branches to which anything is done at random, and what must be so of them whatever was done.

What each change has made is kept beside the log, so that a branch can be told anew from nothing:
that shares no way with the services, which go back from the present.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from bench.ledger import Rows, take
from db.enums import AssetKind, DeltaOp, DeltaSource, EntityKind, EntryKind, LoggedTable
from db.ids import new_id
from db.reading import Writing
from db.tables import (
    Asset,
    Branch,
    Chapter,
    CharacterRelationship,
    Delta,
    Embedding,
    EntryAsset,
    EraFlip,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    Lore,
    StoryEntity,
    StoryEntry,
    Thread,
    Translation,
)
from services import deltas, past
from services.access import Viewer, require_row
from services.deltas import LOGGED, Image
from services.deltas.closing import held_rows
from services.deltas.embedding import content_hash
from services.deltas.logged import STALE
from services.deltas.reversing import restored
from services.deltas.writing import payload_between
from services.errors import Conflict
from services.past import AsOf
from services.scenes import head_turn, narrative_tail
from tests.factories import PREFIXES, entity_values, make_branch, plant_entity
from tests.services.deltas.ledgers import rows_of, state_of

# A change as it was made: its table, what was done, the row, and what makes it again.
Made = tuple[LoggedTable, DeltaOp, str, Any]
State = dict[str, dict[str, Any]]
# The columns of each delta, but its branch.
Log = list[tuple[Any, ...]]
MACHINES = (
    DeltaSource.PIGGYBACK_TAGGED_BLOCK,
    DeltaSource.PER_TURN_CLASSIFIER,
    DeltaSource.LORE_AGENT,
)
PERIODIC = DeltaSource.PERIODIC_CLASSIFIER
DONE = "done"
REFUSALS = {"REVERSAL_BLOCKED", "UNDO_BLOCKED"}


class Hand:
    """One action that keeps what it makes."""

    def __init__(self, world: World, action: deltas.Action) -> None:
        self.world, self.action = world, action

    def _keep(self, table: LoggedTable, op: DeltaOp, row_id: str, forward: Any) -> None:
        self.world.made[self.action.deltas[-1]["row_id"]] = (table, op, row_id, forward)

    async def create(self, table: Any, values: dict[str, Any], **options: Any) -> Image:
        row = await self.action.create(table, values, **options)
        self.world.order.setdefault(row["id"], len(self.world.order))
        self._keep(deltas.logged_of(table).name, DeltaOp.CREATE, row["id"], dict(row))
        return row

    async def update(self, table: Any, row: Image, **options: Any) -> Image:
        changes = options.pop("changes")
        after = await self.action.update(table, row, changes, **options)
        if after is not row:
            logged = deltas.logged_of(table)
            self._keep(logged.name, DeltaOp.UPDATE, row["id"], payload_between(logged, after, row))
        return after

    async def delete(self, table: Any, row: Image, **options: Any) -> None:
        await self.action.delete(table, row, **options)
        self._keep(deltas.logged_of(table).name, DeltaOp.DELETE, row["id"], None)


class World:
    """One branch, and what was done to it."""

    def __init__(self, writing: Writing, viewer: Viewer, branch_id: str, seed: int = 0) -> None:
        self.writing, self.viewer, self.branch_id = writing, viewer, branch_id
        self.draw = random.Random(seed)
        self.made: dict[str, Made] = {}
        self.planted: State = {}
        # Which row came before which; ids that were made at once do not tell.
        self.order: dict[str, int] = {}
        self.assets: list[str] = []
        # Every head that was seen, with what the branch and its log were then.
        self.heads: dict[int, tuple[State, Log]] = {}

    @classmethod
    async def begin(cls, writing: Writing, viewer: Viewer, seed: int = 0) -> World:
        """A branch with its opening, two characters, a place, and something to know."""
        branch = await make_branch(writing, viewer)
        world = cls(writing, viewer, branch.id, seed)
        for kind, name in (
            (EntityKind.CHARACTER, "Mira"),
            (EntityKind.CHARACTER, "Odo"),
            (EntityKind.LOCATION, "Pier"),
        ):
            row = await plant_entity(writing, branch.id, kind, name)
            world.order[row["id"]] = len(world.order)
        await deltas.plant_rows(
            writing, branch.id, Lore, [{"title": "Oil", "body": "Burns.", "injection_mode": "auto"}]
        )
        for number in range(2):
            asset = await writing.insert(
                Asset,
                owner_user_id=viewer.signed_in_id,
                kind=AssetKind.IMAGE,
                mime_type="image/png",
                file_path="none",
                size_bytes=1,
                content_hash=f"{branch.id}{number}",
            )
            await writing._connection.execute(
                "UPDATE assets SET pending_delete_at = now() WHERE id = $1", asset.id
            )
            world.assets.append(asset.id)
        world.planted = await world.state()
        return world

    # Looking

    async def state(self, branch_id: str | None = None) -> State:
        """All logged tables, without what follows from other things."""
        found = await state_of(self.writing, branch_id or self.branch_id)
        return {
            name: {row_id: bare(row) for row_id, row in rows.items()}
            for name, rows in found.items()
        }

    async def log(self, branch_id: str | None = None) -> list[Any]:
        return await rows_of(self.writing, Delta, branch_id or self.branch_id)

    async def branch(self, branch_id: str | None = None) -> Branch:
        return await require_row(self.writing, self.viewer, Branch, branch_id or self.branch_id)

    async def rows(self, table: Any) -> list[Image]:
        """The rows of a table in the order in which they were made."""
        found = await deltas.all_images(self.writing, self.branch_id, deltas.logged_of(table).name)
        return sorted(found.values(), key=lambda row: self.order.get(row["id"], -1))

    async def entries(self) -> list[Image]:
        rows = [row for row in await self.rows(StoryEntry) if row["kind"] != EntryKind.SYSTEM]
        return sorted(rows, key=lambda row: row["position"])

    async def as_of(self, as_of: AsOf, branch_id: str | None = None) -> State:
        moment = await past.resolve_moment(
            self.writing, self.viewer, branch_id or self.branch_id, as_of
        )
        return {
            str(table): {
                row_id: bare(row)
                for row_id, row in (await past.images_at(self.writing, moment, table)).items()
            }
            for table in LOGGED
        }

    async def fork(self, entry_id: str, branch_id: str | None = None) -> str:
        made = await deltas.fork_branch(
            self.writing, self.viewer, branch_id or self.branch_id, entry_id, "Fork"
        )
        return made.branch.id

    # Doing

    @asynccontextmanager
    async def act(self, source: DeltaSource) -> AsyncIterator[Hand]:
        async with deltas.acting(
            self.writing, self.viewer, self.branch_id, source=source
        ) as action:
            yield Hand(self, action)

    async def pick(self, table: Any, **wanted: Any) -> Image | None:
        rows = [
            row
            for row in await self.rows(table)
            if all(row[column] == value for column, value in wanted.items())
        ]
        return self.draw.choice(rows) if rows else None

    async def step(self, name: str, seed: int) -> str:
        """Do something; how that ended."""
        self.draw.seed(seed)
        return await attempt(self.writing, STEPS[name](self))

    async def turn(self) -> None:
        """A turn: at times with what the user did, at times with what a machine concludes."""
        tail = await narrative_tail(self.writing, self.branch_id)
        assert tail is not None
        is_told = self.draw.random() < 0.6
        source = self.draw.choice(MACHINES[:2]) if is_told else DeltaSource.USER_EDIT
        await self._drop_notice()
        async with self.act(source) as hand:
            position = tail.position + 1
            entry_id = new_id("story_entries")
            if is_told and self.draw.random() < 0.5:
                await self._entry(hand, new_id("story_entries"), position, EntryKind.USER_ACTION)
                position += 1
            if is_told and self.draw.random() < 0.3:
                await self._remember(hand, entry_id)
            kind = EntryKind.AI_REPLY if is_told else EntryKind.USER_ACTION
            await self._entry(hand, entry_id, position, kind)
            for _ in range(self.draw.randrange(3) if is_told else 0):
                await self._write(hand, entry_id)

    async def _entry(self, hand: Hand, entry_id: str, position: int, kind: EntryKind) -> None:
        meta = {"sceneEntities": [], "currentLocationId": None, "worldTime": position}
        values = {
            "id": entry_id,
            "position": position,
            "kind": kind,
            "content": f"Number {position}.",
            "metadata": meta,
        }
        await hand.create(StoryEntry, values, anchor=entry_id)

    async def edit(self) -> None:
        """What the user does to the world."""
        async with self.act(DeltaSource.USER_EDIT) as hand:
            for _ in range(self.draw.choice((1, 1, 2))):
                await self._write(hand, None)

    async def fact(self) -> None:
        """What the background says, sooner or later, of an entry."""
        entry = self.draw.choice(await self.entries())
        async with self.act(PERIODIC) as hand:
            for _ in range(self.draw.choice((1, 2, 3))):
                await self._write(hand, entry["id"])

    async def say(self) -> None:
        """What the background says of the end of the story, and people may contradict."""
        entry = (await self.entries())[-1]
        async with self.act(PERIODIC) as hand:
            for _ in range(self.draw.choice((1, 2))):
                await self._contend(hand, entry["id"])

    async def answer(self) -> None:
        """What people say to that."""
        async with self.act(DeltaSource.USER_EDIT) as hand:
            await self._contend(hand, None)

    async def agent(self) -> None:
        """What a machine does to the world by itself."""
        async with self.act(DeltaSource.LORE_AGENT) as hand:
            for _ in range(self.draw.choice((1, 2))):
                await self._write(hand, None)

    async def correct(self) -> None:
        """A correction of an entry, which stays with it."""
        entry = self.draw.choice(await self.entries())
        async with self.act(DeltaSource.USER_EDIT) as hand:
            meta = {**entry["metadata"], "worldTime": self.draw.randrange(1_000)}
            if self.draw.random() < 0.5:
                meta["summary"] = f"Sum {self.draw.randrange(9)}"
            await hand.update(StoryEntry, entry, changes={"metadata": meta}, anchor=entry["id"])

    async def reword(self) -> None:
        """Another text; within the head turn with what follows from that."""
        entries = await self.entries()
        entry = entries[-1] if self.draw.random() < 0.6 else self.draw.choice(entries[-3:])
        turn = [each.row_id for each in await head_turn(self.writing, self.branch_id)]
        changes = {"content": f"Said otherwise {self.draw.random()}."}
        if entry["content"] == changes["content"]:
            return
        async with self.act(DeltaSource.USER_EDIT) as hand:
            if entry["id"] not in turn:
                await hand.update(StoryEntry, entry, changes=changes, anchor=entry["id"])
                return
            scope = {
                "entryIds": turn[turn.index(entry["id"]) :],
                "processedThrough": entry["position"] - 1,
            }
            notes = {deltas.INVALIDATION: scope}
            await hand.update(StoryEntry, entry, changes=changes, anchor=entry["id"], notes=notes)
            await deltas.invalidate_facts(hand.action, scope["entryIds"], scope["processedThrough"])

    async def close(self) -> None:
        """The closing of a chapter."""
        is_open = [row for row in await self.entries() if row["chapter_id"] is None]
        if not is_open:
            return
        taken = is_open[: self.draw.randint(1, len(is_open))]
        async with self.act(DeltaSource.CHAPTER_CLOSE) as hand:
            chapter = await hand.create(
                Chapter,
                {
                    "sequence_number": len(await self.rows(Chapter)) + 1,
                    "title": "A chapter",
                    "start_entry_id": taken[0]["id"],
                    "end_entry_id": taken[-1]["id"],
                },
            )
            for entry in taken:
                await hand.update(StoryEntry, entry, changes={"chapter_id": chapter["id"]})
            if self.draw.random() < 0.5:
                await self._write(hand, None)

    async def drop(self) -> None:
        """An entry goes."""
        entries = [row for row in await self.entries() if row["kind"] != EntryKind.OPENING]
        if entries:
            entry = self.draw.choice(entries[-2:])
            await self._drop_notice()
            async with self.act(DeltaSource.USER_EDIT) as hand:
                await hand.delete(StoryEntry, entry, anchor=entry["id"])

    async def show(self) -> None:
        """An entry shows a file, or shows it no longer."""
        async with self.act(DeltaSource.USER_EDIT) as hand:
            link = await self.pick(EntryAsset)
            if link is not None and self.draw.random() < 0.4:
                await hand.delete(EntryAsset, link, anchor=link["entry_id"])
                return
            entry = self.draw.choice(await self.entries())
            values = {
                "entry_id": entry["id"],
                "asset_id": self.draw.choice(self.assets),
                "role": "background",
            }
            await hand.create(EntryAsset, values, anchor=entry["id"])

    async def notice(self) -> None:
        """A notice at the end of the story."""
        await self._drop_notice()
        tail = await narrative_tail(self.writing, self.branch_id)
        assert tail is not None
        meta = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0}
        row = {
            "position": tail.position + 1,
            "kind": EntryKind.SYSTEM,
            "content": "It failed.",
            "metadata": meta,
        }
        await deltas.plant_rows(self.writing, self.branch_id, StoryEntry, [row])

    async def _drop_notice(self) -> None:
        ids = [row["id"] for row in await self.rows(StoryEntry) if row["kind"] == EntryKind.SYSTEM]
        await deltas.uproot_rows(self.writing, self.branch_id, StoryEntry, ids)

    async def embed(self) -> None:
        """What an embedder does: every text that is still to be embedded is."""
        for logged in LOGGED.values():
            for row in await self.rows(logged.table) if logged.embedded else ():
                if row[STALE] and self.draw.random() < 0.7:
                    await embed_row(self.writing, self.branch_id, logged.name, row)

    async def undo(self) -> deltas.Outcome:
        return await deltas.undo_branch(self.writing, self.viewer, self.branch_id)

    async def redo(self) -> deltas.Outcome:
        return await deltas.redo_branch(self.writing, self.viewer, self.branch_id)

    async def rollback(self) -> None:
        entry = self.draw.choice((await self.entries())[-4:])
        await deltas.roll_back_branch(self.writing, self.viewer, self.branch_id, entry["id"])

    # What is written in the world

    async def _write(self, hand: Hand, anchor: str | None) -> None:
        await self.draw.choice(WRITES)(self, hand, anchor)

    async def _contend(self, hand: Hand, anchor: str | None) -> None:
        await self.draw.choice(CONTENDED)(self, hand, anchor)

    async def _new_entity(self, hand: Hand, anchor: str | None) -> None:
        kind = self.draw.choice((EntityKind.CHARACTER, EntityKind.CHARACTER, EntityKind.ITEM))
        await hand.create(
            StoryEntity,
            entity_values(kind, f"Somebody {self.draw.randrange(99)}"),
            anchor=anchor,
            prefix=PREFIXES[kind],
        )

    async def _change_entity(self, hand: Hand, anchor: str | None) -> None:
        row = await self.pick(StoryEntity, kind="character")
        if row is None:
            return
        number = self.draw.randrange(99)
        state = dict(row["state"])
        part = self.draw.randrange(6)
        if part == 0:
            state["visual"] = {**state["visual"], self.draw.choice(("hair", "eyes")): f"{number}"}
        elif part == 1:
            # People and machines never write the same part: who does is judged by other tests.
            key = "coins" if hand.action.source == DeltaSource.USER_EDIT else "oil"
            state["stackables"] = {**state.get("stackables", {}), key: number}
        elif part == 2:
            state["lastSeenAt"] = self.draw.choice(
                (None, {"entryId": "entry_x", "locationId": None, "worldTime": number})
            )
        changes = {
            3: {"name": f"Name {number}"},
            4: {"status": self.draw.choice(("active", "staged", "retired"))},
            5: {"tags": [f"{number}"], "description": f"Said {number}"},
        }.get(part, {"state": state})
        await hand.update(StoryEntity, row, changes=changes, anchor=anchor)

    async def _lore(self, hand: Hand, anchor: str | None) -> None:
        row = await self.pick(Lore)
        if row is None or self.draw.random() < 0.5:
            values = {"title": "It is so", "body": "So.", "injection_mode": "auto"}
            await hand.create(Lore, values, anchor=anchor)
        else:
            body = f"So {self.draw.randrange(9)}"
            await hand.update(Lore, row, changes={"body": body}, anchor=anchor)

    async def _thread(self, hand: Hand, anchor: str | None) -> None:
        row = await self.pick(Thread)
        if row is None or self.draw.random() < 0.5:
            values = {"title": "A strand", "status": "active", "injection_mode": "auto"}
            await hand.create(Thread, values, anchor=anchor)
        else:
            status = self.draw.choice(("resolved", "failed", "active"))
            await hand.update(Thread, row, changes={"status": status}, anchor=anchor)

    async def _happening(self, hand: Hand, anchor: str | None) -> None:
        row = await self.pick(Happening)
        if row is None or self.draw.random() < 0.6:
            row = await hand.create(
                Happening, {"title": f"Once {self.draw.randrange(9)}"}, anchor=anchor
            )
            await self._link(hand, anchor, row)
        else:
            title = f"Then {self.draw.randrange(9)}"
            await hand.update(Happening, row, changes={"title": title}, anchor=anchor)

    async def _link(self, hand: Hand, anchor: str | None, row: Image | None = None) -> None:
        happening = row or await self.pick(Happening)
        who = await self.pick(StoryEntity, kind="character")
        if happening is None or who is None:
            return
        known = await self.pick(
            HappeningAwareness, happening_id=happening["id"], character_id=who["id"]
        )
        if known is None and self.draw.random() < 0.6:
            values = {"happening_id": happening["id"], "character_id": who["id"]}
            await hand.create(HappeningAwareness, values, anchor=anchor)
        else:
            values = {"happening_id": happening["id"], "entity_id": who["id"], "role": "actor"}
            await hand.create(HappeningInvolvement, values, anchor=anchor)

    async def _remember(self, hand: Hand, anchor: str | None) -> None:
        row = await self.pick(HappeningAwareness)
        if row is not None:
            changes = {"retrieval_count": row["retrieval_count"] + 1}
            await hand.update(HappeningAwareness, row, changes=changes, anchor=anchor)

    async def _tie(self, hand: Hand, anchor: str | None) -> None:
        people = [row for row in await self.rows(StoryEntity) if row["kind"] == "character"]
        if len(people) < 2:
            return
        if self.draw.random() < 0.7:
            people = people[:2]
        one, other = (row["id"] for row in self.draw.sample(people, 2))
        first, second = sorted((one, other))
        view, back = ("kind", "inverse_kind") if one == first else ("inverse_kind", "kind")
        said = f"friend {self.draw.randrange(9)}"
        row = await self.pick(CharacterRelationship, a_id=first, b_id=second)
        if row is None:
            values = {"a_id": first, "b_id": second, view: said}
            await hand.create(CharacterRelationship, values, anchor=anchor)
            return
        if row[back] is not None and self.draw.random() < 0.3:
            await hand.update(CharacterRelationship, row, changes={view: None}, anchor=anchor)
        else:
            await hand.update(CharacterRelationship, row, changes={view: said}, anchor=anchor)

    async def _translate(self, hand: Hand, _anchor: str | None) -> None:
        logged = self.draw.choice([each for each in LOGGED.values() if each.target_kind])
        target = await self.pick(logged.table)
        if target is None or target.get("kind") == EntryKind.SYSTEM:
            return
        anchor = await deltas.newest_anchor(hand.action, target["id"])
        key = {
            "target_kind": logged.target_kind,
            "target_id": target["id"],
            "field": "text",
            "language": "de",
        }
        row = await self.pick(Translation, target_id=target["id"])
        said = {"translated_text": f"Gesagt {self.draw.randrange(9)}"}
        if row is None:
            await hand.create(Translation, {**key, **said}, anchor=anchor)
        else:
            await hand.update(Translation, row, changes=said, anchor=anchor)

    async def _flip(self, hand: Hand, anchor: str | None) -> None:
        row = await self.pick(EraFlip)
        taken = {each["at_worldtime"] for each in await self.rows(EraFlip)}
        free = [at for at in range(5) if at not in taken]
        if not free:
            return
        at = self.draw.choice(free)
        if row is None or self.draw.random() < 0.5:
            await hand.create(EraFlip, {"at_worldtime": at, "era_name": "Era"}, anchor=anchor)
        else:
            await hand.update(EraFlip, row, changes={"at_worldtime": at}, anchor=anchor)

    async def _delete(self, hand: Hand, anchor: str | None) -> None:
        table = self.draw.choice(DELETED)
        row = await self.pick(table)
        if row is not None:
            await hand.delete(table, row, anchor=anchor)


DELETED = (
    StoryEntity,
    StoryEntity,
    Lore,
    Thread,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    CharacterRelationship,
    Translation,
    EraFlip,
)
Write = Callable[[World, Hand, str | None], Awaitable[None]]
WRITES: tuple[Write, ...] = (
    World._new_entity,
    World._change_entity,
    World._change_entity,
    World._lore,
    World._thread,
    World._happening,
    World._happening,
    World._link,
    World._link,
    World._remember,
    World._tie,
    World._tie,
    World._translate,
    World._translate,
    World._flip,
    World._delete,
    World._delete,
)
CONTENDED: tuple[Write, ...] = (
    World._tie,
    World._tie,
    World._tie,
    World._link,
    World._change_entity,
    World._translate,
    World._delete,
)
STEPS: dict[str, Callable[[World], Awaitable[Any]]] = {
    "turn": World.turn,
    "edit": World.edit,
    "fact": World.fact,
    "say": World.say,
    "answer": World.answer,
    "agent": World.agent,
    "correct": World.correct,
    "reword": World.reword,
    "close": World.close,
    "drop": World.drop,
    "show": World.show,
    "notice": World.notice,
    "embed": World.embed,
    "undo": World.undo,
    "redo": World.redo,
    "rollback": World.rollback,
}


async def attempt(writing: Writing, doing: Awaitable[Any]) -> str:
    """Do something: DONE, or the code with which it was refused. Then nothing was done."""
    transaction = writing._connection.transaction()
    await transaction.start()
    try:
        await doing
    except Conflict as refusal:
        await transaction.rollback()
        if refusal.code not in REFUSALS:
            raise
        return refusal.code
    except BaseException:
        await transaction.rollback()
        raise
    await transaction.commit()
    return DONE


def bare(row: Image) -> Image:
    """A row without its branch and without what follows from what was embedded."""
    return {name: value for name, value in row.items() if name not in ("branch_id", STALE)}


async def embed_row(writing: Writing, branch_id: str, table: LoggedTable, row: Image) -> None:
    """What an embedder leaves: the hash of the text, and a row that is stale no more."""
    await writing._connection.execute(
        "DELETE FROM embeddings WHERE branch_id = $1 AND target_id = $2", branch_id, row["id"]
    )
    await writing.insert(
        Embedding,
        row_id=new_id("embeddings"),
        branch_id=branch_id,
        target_kind=LOGGED[table].target_kind,
        target_id=row["id"],
        field="text",
        model_id="test",
        dim=3,
        source_hash=content_hash(table, row),
    )
    await writing._connection.execute(
        f"UPDATE {table} SET {STALE} = false WHERE branch_id = $1 AND id = $2", branch_id, row["id"]
    )


def told_anew(planted: State, log: list[Any], made: dict[str, Made]) -> State:
    """A branch from nothing: what it began with, then each change of a log, oldest first."""
    rows: Rows = {name: dict(planted[str(name)]) for name in LOGGED}
    for delta in log:
        table, op, row_id, forward = made[delta.row_id]
        if op is DeltaOp.CREATE:
            rows[table][row_id] = bare(forward)
        elif row_id in rows[table]:
            if op is DeltaOp.UPDATE:
                rows[table][row_id] = restored(LOGGED[table], rows[table][row_id], forward)
            else:
                take(rows, table, row_id)
    return {str(name): each for name, each in rows.items()}


def loose_ends(state: State, log: list[Any]) -> list[str]:
    """Rows that name what is neither live nor held by a delete, live or held themselves."""
    held = [
        (table, row) for each in log if each.op == DeltaOp.DELETE for table, row in held_rows(each)
    ]
    live = [(LoggedTable(name), row) for name, rows in state.items() for row in rows.values()]
    there = {row["id"] for _, row in (*held, *live)}
    return [
        f"{table} {row['id']}: {row[column]}"
        for table, row in (*held, *live)
        for column in LOGGED[table].names
        if row[column] not in there
    ]


def columns_of(log: list[Any]) -> Log:
    """All columns of each delta but its branch, and but what follows from other things."""
    return [
        tuple(bare(value) if isinstance(value, dict) else value for value in tuple(each)[1:])
        for each in log
    ]
