"""Tells a story: a cast, turns with what they change in the world, chapters, translations, edits of
the user's, and what a background pass finds out late.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from bench import prose
from bench.ledger import Clock, Ledger
from bench.shapes import MARK, Shape, Told
from db.enums import (
    DeltaSource,
    EntityKind,
    EntityStatus,
    EntryKind,
    InjectionMode,
    LoggedTable,
    ThreadStatus,
    TranslationTarget,
)
from db.tables import (
    Chapter,
    CharacterRelationship,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    Lore,
    StoryEntity,
    StoryEntry,
    Thread,
    Translation,
)
from services.deltas import Image
from services.shapes import EMPTY_STATES

_CHAPTER = 40
# A background pass comes after so many entries, and finds out so many of the happenings.
_PASS = 15
_LATE = 0.2
_LANGUAGES = ("zh", "fr", "ru")
_ROLES = ("actor", "target", "witness", "site")
_TIES = ("friend", "rival", "sister", "debtor", "teacher", "stranger", "keeper")
_PREFIXES = {
    EntityKind.CHARACTER: "char",
    EntityKind.LOCATION: "loc",
    EntityKind.ITEM: "item",
    EntityKind.FACTION: "fact",
}
_NAMES: dict[EntityKind, Callable[[random.Random], str]] = {
    EntityKind.CHARACTER: prose.person,
    EntityKind.LOCATION: prose.place,
    EntityKind.ITEM: prose.thing,
    EntityKind.FACTION: prose.house,
}


def tell(shape: Shape, seed: int = 0) -> Told:
    """A story, in memory."""
    return _Teller(shape, seed).tell()


class _Teller:
    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape = shape
        self.draw = random.Random(seed)
        self.ledger = Ledger(self.draw, Clock(self.draw))
        self.told = Told(self.ledger)
        self.world_time = 0
        self.ids: dict[EntityKind, list[str]] = {kind: [] for kind in EntityKind}
        # Who is still to come in: (kind, after which entry).
        self.coming: list[tuple[int, EntityKind]] = []
        self.scene: list[str] = []
        self.place = ""
        # What the background pass will say: of which entry, and who was there.
        self.overdue: list[tuple[str, int, list[str]]] = []
        self.unchaptered = 0

    def tell(self) -> Told:
        self._plan_cast()
        self._open()
        while len(self.told.entries) < self.shape.entries:
            self._turn()
            is_last = len(self.told.entries) >= self.shape.entries
            # The last thing is a turn, so that there is one to undo.
            if not is_last:
                self._between_turns()
        return self.told

    # What there is at the beginning

    def _plan_cast(self) -> None:
        """Three of five are there from the beginning, the others come in one by one."""
        for kind, number in self.shape.cast.items():
            there = -(-number * 3 // 5)
            for _ in range(there):
                self._entity(kind, None)
            late = number - there
            step = (self.shape.entries - 2) / max(late, 1)
            self.coming += [(1 + int(step * place), kind) for place in range(late)]
        self.coming.sort(key=lambda each: each[0])

    def _open(self) -> None:
        for _ in range(max(2, self.shape.entries // 50)):
            self.ledger.plant(Lore, "lore", **self._lore())
        self.place = self.draw.choice(self.ids[EntityKind.LOCATION])
        self._change_scene()
        entry = self.ledger.plant(
            StoryEntry,
            "entry",
            position=1,
            kind=EntryKind.OPENING,
            content=self._text(prose.answer),
            metadata=self._meta(),
        )
        self._add(entry)

    # Texts

    def _text(self, write: Callable[[random.Random], str], position: int | None = None) -> str:
        text = write(self.draw)
        if not self.shape.is_marked:
            return text
        return f"{text} {MARK}{len(self.told.entries) if position is None else position}"

    def _number(self, rate: float) -> int:
        return int(rate) + (self.draw.random() < rate % 1)

    # A turn: one or two entries, and what they change

    def _turn(self) -> None:
        self.told.turns.append(len(self.told.entries))
        self.ledger.begin(
            DeltaSource.PER_TURN_CLASSIFIER
            if self.draw.random() < 0.2
            else DeltaSource.PIGGYBACK_TAGGED_BLOCK
        )
        self._pass_time()
        has_room = self.shape.entries - len(self.told.entries) >= 2
        if has_room and self.draw.random() < 0.25:
            self._entry(self.ledger.clock.id("entry"), EntryKind.USER_ACTION)
        reply = self.ledger.clock.id("entry")
        # Chosen before it is written: so they are logged before it.
        self._remember(reply)
        self._entry(reply, EntryKind.AI_REPLY)
        while self.coming and self.coming[0][0] < len(self.told.entries):
            self._entity(self.coming.pop(0)[1], reply)
        self._change_states(reply)
        for _ in range(self._number(self.shape.happenings)):
            if self.shape.has_late_facts and self.draw.random() < _LATE:
                self.overdue.append((reply, len(self.told.entries), list(self.scene)))
            else:
                self._happening(reply, len(self.told.entries), self.scene, reply)
        if self.draw.random() < 0.06:
            self._tie(reply)
        if self.draw.random() < 0.05:
            self._thread(reply)
        for _ in range(self._number(self.shape.translations)):
            self._translate()

    def _pass_time(self) -> None:
        self.world_time += self.draw.randrange(60, 7_200)
        if self.draw.random() < 0.2:
            self.place = self.draw.choice(self.ids[EntityKind.LOCATION])
            self._change_scene()

    def _change_scene(self) -> None:
        characters = self.ids[EntityKind.CHARACTER]
        self.scene = self.draw.sample(characters, min(len(characters), self.draw.randint(2, 5)))

    def _entry(self, row_id: str, kind: EntryKind) -> None:
        is_reply = kind is EntryKind.AI_REPLY
        position = len(self.told.entries) + 1
        told_by_a_model: dict[str, Any] = {
            "model": "generated",
            "generationTimingMs": self.draw.randrange(900, 9_000),
            "tokens": {"prompt": self.draw.randrange(9_000), "completion": 300},
            "summary": self._text(prose.sentence, position),
        }
        entry = self.ledger.create(
            StoryEntry,
            "entry",
            anchor=row_id,
            id=row_id,
            position=position,
            kind=kind,
            content=self._text(prose.answer if is_reply else prose.question, position),
            metadata=self._meta() | (told_by_a_model if is_reply else {}),
        )
        self._add(entry)

    def _add(self, entry: Image) -> None:
        self.told.entries.append(entry["id"])
        self.unchaptered += 1

    def _meta(self) -> dict[str, Any]:
        return {
            "sceneEntities": list(self.scene),
            "currentLocationId": self.place,
            "worldTime": self.world_time,
        }

    def _entity(self, kind: EntityKind, anchor: str | None) -> None:
        state = dict(EMPTY_STATES[kind])
        if kind is EntityKind.CHARACTER:
            places, houses = self.ids[EntityKind.LOCATION], self.ids[EntityKind.FACTION]
            state |= {
                "visual": {"hair": "grey", "attire": "oilskin"},
                "traits": [self._text(prose.sentence)],
                "current_location_id": self.draw.choice(places) if places else None,
                "stackables": {"coins": self.draw.randrange(100)},
                "faction_id": self.draw.choice(houses) if houses else None,
            }
        elif kind is EntityKind.LOCATION and self.ids[kind]:
            state["parent_location_id"] = self.draw.choice(self.ids[kind])
        values = {
            "kind": kind,
            "name": self._text(_NAMES[kind]),
            "description": self._text(prose.answer),
            "status": EntityStatus.ACTIVE,
            "injection_mode": InjectionMode.AUTO,
            "state": state,
        }
        prefix = _PREFIXES[kind]
        if anchor is None:
            row = self.ledger.plant(StoryEntity, prefix, **values)
        else:
            row = self.ledger.create(StoryEntity, prefix, anchor=anchor, **values)
        self.ids[kind].append(row["id"])

    def _change_states(self, anchor: str) -> None:
        entities = self.ledger.rows[LoggedTable.ENTITIES]
        for _ in range(self._number(self.shape.states)):
            row_id = self.draw.choice(self.scene)
            state = dict(entities[row_id]["state"])
            match self.draw.randrange(4):
                case 0:
                    state["visual"] = {**state["visual"], "attire": self._text(prose.sentence)}
                case 1:
                    coins = self.draw.randrange(100)
                    state["stackables"] = {**state["stackables"], "coins": coins}
                case 2:
                    state["traits"] = [*state["traits"][-2:], self._text(prose.sentence)]
                case _:
                    state["current_location_id"] = self.place
                    state["lastSeenAt"] = {
                        "entryId": anchor,
                        "locationId": self.place,
                        "worldTime": self.world_time,
                    }
            self.ledger.update(StoryEntity, row_id, anchor=anchor, state=state)

    # What happens, who is in it and who knows of it

    def _happening(self, entry: str, position: int, scene: list[str], anchor: str) -> None:
        row = self.ledger.create(
            Happening,
            "hap",
            anchor=anchor,
            title=self._text(prose.topic, position),
            description=self._text(prose.answer, position),
            occurred_at_entry_id=entry,
        )
        present = list(dict.fromkeys(scene))
        self.draw.shuffle(present)
        for each in present[: self.draw.randint(1, 2)]:
            self.ledger.create(
                HappeningInvolvement,
                "hinv",
                anchor=anchor,
                happening_id=row["id"],
                entity_id=each,
                role=self.draw.choice(_ROLES),
            )
        for each in present[: self._number(self.shape.aware)]:
            self.ledger.create(
                HappeningAwareness,
                "haw",
                anchor=anchor,
                happening_id=row["id"],
                character_id=each,
                learned_at_entry_id=anchor,
                source=self._text(prose.sentence, position),
            )

    def _remember(self, anchor: str) -> None:
        known = self.ledger.rows[LoggedTable.HAPPENING_AWARENESS]
        if known and self.draw.random() < 0.3:
            row = known[self._one_of(known)]
            self.ledger.update(
                HappeningAwareness,
                row["id"],
                anchor=anchor,
                retrieval_count=row["retrieval_count"] + 1,
            )

    def _tie(self, anchor: str | None) -> None:
        """Two of those who are present come to see each other otherwise."""
        if len(self.scene) < 2:
            return
        first, second = sorted(self.draw.sample(self.scene, 2))
        ties = self.ledger.rows[LoggedTable.CHARACTER_RELATIONSHIPS].values()
        pair = next((x for x in ties if (x["a_id"], x["b_id"]) == (first, second)), None)
        values = {self.draw.choice(("kind", "inverse_kind")): self._text(_tie_kind)}
        if pair is not None:
            self.ledger.update(CharacterRelationship, pair["id"], anchor=anchor, **values)
        else:
            self.ledger.create(
                CharacterRelationship, "rel", anchor=anchor, a_id=first, b_id=second, **values
            )

    def _thread(self, anchor: str) -> None:
        threads = self.ledger.rows[LoggedTable.THREADS]
        if threads and self.draw.random() < 0.4:
            self.ledger.update(
                Thread,
                self._one_of(threads),
                anchor=anchor,
                status=ThreadStatus.RESOLVED,
                resolved_at_entry_id=anchor,
            )
        else:
            self.ledger.create(
                Thread,
                "thr",
                anchor=anchor,
                title=self._text(prose.topic),
                description=self._text(prose.answer),
                status=ThreadStatus.ACTIVE,
                injection_mode=InjectionMode.AUTO,
                triggered_at_entry_id=anchor,
            )

    def _lore(self) -> dict[str, Any]:
        return {
            "title": self._text(prose.topic),
            "body": self._text(prose.answer),
            "category": "the light",
            "keywords": ["lamp", "oil"],
            "injection_mode": InjectionMode.AUTO,
        }

    # Translations follow the newest change of what they translate

    def _translate(self) -> None:
        kind, table, name = self.draw.choice(
            (
                (TranslationTarget.STORY_ENTRY, LoggedTable.STORY_ENTRIES, "content"),
                (TranslationTarget.STORY_ENTRY, LoggedTable.STORY_ENTRIES, "content"),
                (TranslationTarget.HAPPENING, LoggedTable.HAPPENINGS, "title"),
                (TranslationTarget.LORE, LoggedTable.LORE, "body"),
            )
        )
        rows = self.ledger.rows[table]
        if not rows:
            return
        target = list(rows)[-1]
        language = self.draw.choice(_LANGUAGES)
        there = self.ledger.rows[LoggedTable.TRANSLATIONS].values()
        anchor = self.ledger.newest_anchor(target)
        # What is said of an entry is known from it on, whenever it is said.
        text = self._text(prose.foreign, self.told.position(anchor) if anchor else None)
        for each in reversed(there):
            if each["target_id"] == target and each["language"] == language:
                self.ledger.update(Translation, each["id"], anchor=anchor, translated_text=text)
                return
            if each["created_at"] < rows[target]["created_at"]:
                break
        self.ledger.create(
            Translation,
            "tr",
            anchor=anchor,
            target_kind=kind,
            target_id=target,
            field=name,
            language=language,
            translated_text=text,
        )

    # Between turns: the background, chapters, the user

    def _between_turns(self) -> None:
        if self.shape.has_chapters and self.unchaptered >= _CHAPTER + 5:
            self._close_chapter()
        if self.overdue and len(self.told.entries) % _PASS == 0:
            self.ledger.begin(DeltaSource.PERIODIC_CLASSIFIER)
            for entry, position, scene in self.overdue:
                # Somebody who was not in the story yet may have part in it.
                newest = self.ids[EntityKind.CHARACTER][-1]
                self._happening(entry, position, [*scene, newest], entry)
            self.overdue.clear()
        if self.draw.random() < self.shape.edits:
            self.ledger.begin(DeltaSource.USER_EDIT)
            self.draw.choice(
                (
                    self._edit_entity,
                    self._edit_entry,
                    self._correct_scene,
                    self._add_lore,
                    self._edit_lore,
                    self._set_tie,
                    self._forget_happening,
                )
            )()

    def _close_chapter(self) -> None:
        """All but the newest five entries."""
        self.ledger.begin(DeltaSource.CHAPTER_CLOSE)
        end = len(self.told.entries) - 5
        ids = self.told.entries[len(self.told.entries) - self.unchaptered : end]
        chapter = self.ledger.create(
            Chapter,
            "chap",
            anchor=None,
            sequence_number=len(self.ledger.rows[LoggedTable.CHAPTERS]) + 1,
            title=self._text(prose.topic),
            summary=self._text(prose.answer),
            theme=self._text(prose.sentence),
            start_entry_id=ids[0],
            end_entry_id=ids[-1],
            token_count=len(ids) * 300,
        )
        for each in ids:
            self.ledger.update(StoryEntry, each, anchor=None, chapter_id=chapter["id"])
        self.unchaptered = 5

    def _edit_entity(self) -> None:
        row_id = self._one_of(self.ledger.rows[LoggedTable.ENTITIES])
        self.ledger.update(StoryEntity, row_id, anchor=None, description=self._text(prose.answer))

    def _settled(self) -> tuple[str, int] | None:
        """An entry below the head turn, and its position: editing it takes nothing back."""
        count = len(self.told.entries)
        if count < 5:
            return None
        place = self.draw.randrange(max(0, count - 30), count - 3)
        return self.told.entries[place], place + 1

    def _edit_entry(self) -> None:
        if settled := self._settled():
            entry, position = settled
            text = self._text(prose.answer, position)
            self.ledger.update(StoryEntry, entry, anchor=entry, content=text)

    def _correct_scene(self) -> None:
        if settled := self._settled():
            entry, _ = settled
            before = self.ledger.rows[LoggedTable.STORY_ENTRIES][entry]["metadata"]
            present = before["sceneEntities"]
            # Nobody who came in later than the entry.
            meta = {**before, "sceneEntities": present[1:] or present}
            self.ledger.update(StoryEntry, entry, anchor=entry, metadata=meta)

    def _add_lore(self) -> None:
        self.ledger.create(Lore, "lore", anchor=None, **self._lore())

    def _edit_lore(self) -> None:
        row_id = self._one_of(self.ledger.rows[LoggedTable.LORE])
        self.ledger.update(Lore, row_id, anchor=None, body=self._text(prose.answer))

    def _set_tie(self) -> None:
        self._tie(None)

    def _forget_happening(self) -> None:
        happenings = self.ledger.rows[LoggedTable.HAPPENINGS]
        if happenings:
            self.ledger.delete(Happening, self._one_of(happenings), anchor=None)

    def _one_of(self, rows: dict[str, Image]) -> str:
        return self.draw.choice(list(rows))


def _tie_kind(draw: random.Random) -> str:
    return draw.choice(_TIES)
