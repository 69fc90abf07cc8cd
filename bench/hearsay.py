"""Tells a story of who hears what: scenes that people come to and leave, things that happen before
some of them, and what they pass on to each other. What everybody knows at every entry is noted
while it is told, by nothing but what was told: it is what a perspective must show.

Every text has a number of its own (MARK), of the one row or tie that it stands in.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bench import prose
from bench.ledger import Clock, Ledger
from bench.shapes import MARK, Told
from db.enums import (
    DeltaSource,
    EntityKind,
    EntityStatus,
    EntryKind,
    InjectionMode,
    LoggedTable,
    TranslationTarget,
)
from db.tables import (
    CharacterRelationship,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    Lore,
    StoryEntity,
    StoryEntry,
    Translation,
)
from services.perspectives import COMMON
from services.shapes import EMPTY_STATES

_PREFIXES = {
    EntityKind.CHARACTER: "char",
    EntityKind.LOCATION: "loc",
    EntityKind.ITEM: "item",
    EntityKind.FACTION: "fact",
}
_ROLES = ("actor", "target", "witness")


@dataclass(frozen=True, slots=True)
class Cast:
    """How much there is of everything."""

    entries: int = 150
    characters: int = 12
    locations: int = 6
    items: int = 8
    lore: int = 8


@dataclass(frozen=True, slots=True)
class Known:
    """What a character knows at an entry: the marks of rows and of ties."""

    happenings: frozenset[int]
    entities: frozenset[int]
    lore: frozenset[int]
    entries: frozenset[int]
    # What it sees in whom, how it knows of what, and who took part as what.
    ties: frozenset[int]


@dataclass(slots=True)
class Heard:
    """A story that has been told. `known` has, for each entry in order, what each character knows
    by its id; `learned` how many have learned of something in which way.
    """

    told: Told
    known: list[dict[str, Known]] = field(default_factory=list)
    learned: Counter[str] = field(default_factory=Counter)


def tell(cast: Cast, seed: int = 0) -> Heard:
    """A story, in memory."""
    return _Teller(cast, seed).tell()


@dataclass(slots=True)
class _Mind:
    """What a character has learned by itself, with the marks of the ties: of what, and whom it has
    come to see in some way; and the entries in whose scene it was.
    """

    happenings: dict[str, int] = field(default_factory=dict)
    views: dict[str, int] = field(default_factory=dict)
    entries: set[int] = field(default_factory=set)


class _Teller:
    def __init__(self, cast: Cast, seed: int) -> None:
        self.cast = cast
        self.draw = random.Random(seed)
        self.ledger = Ledger(self.draw, Clock(self.draw))
        self.heard = Heard(Told(self.ledger))
        self.marks: dict[str, int] = {}
        self.minds: dict[str, _Mind] = {}
        # Who took part in a happening, with the mark of the role.
        self.roles: dict[str, dict[str, int]] = {}
        self.common: set[str] = set()
        self.lore: set[int] = set()
        # Where people and things are, what lies within what, who has what and belongs to whom.
        self.at: dict[str, str] = {}
        self.around: dict[str, str | None] = {}
        self.held: dict[str, list[str]] = {}
        self.factions: dict[str, str] = {}
        self.gone: set[str] = set()

    def tell(self) -> Heard:
        self._open()
        while len(self.heard.told.entries) < self.cast.entries:
            self._turn()
        return self.heard

    def _new(self, prefix: str) -> str:
        """An id with a mark."""
        row_id = self.ledger.clock.id(prefix)
        self.marks[row_id] = len(self.marks) + 1
        return row_id

    def _said(self, write: Callable[[random.Random], str], row_id: str) -> str:
        """A text with the mark of a row."""
        return f"{write(self.draw)} {MARK}{self.marks[row_id]}"

    # What there is at the beginning

    def _open(self) -> None:
        places: list[str] = []
        for _ in range(self.cast.locations):
            around = self.draw.choice(places) if places else None
            places.append(self._entity(EntityKind.LOCATION, prose.place, parent_location_id=around))
            self.around[places[-1]] = around
        houses = [self._entity(EntityKind.FACTION, prose.house) for _ in range(2)]
        items = []
        for number in range(self.cast.items):
            place = self.draw.choice(places) if number % 2 else None
            item = self._entity(EntityKind.ITEM, prose.thing, at_location_id=place)
            if place is None:
                items.append(item)
            else:
                self.at[item] = place
        for _ in range(self.cast.characters):
            held = [items.pop()] if items else []
            place, house = self.draw.choice(places), self.draw.choice(houses)
            character = self._entity(
                EntityKind.CHARACTER,
                prose.person,
                current_location_id=place,
                faction_id=house,
                inventory=held,
            )
            self.minds[character] = _Mind()
            self.at[character], self.held[character] = place, held
            self.factions[character] = house
        for number in range(self.cast.lore):
            lore = self._new("lore")
            self.ledger.plant(
                Lore,
                "lore",
                id=lore,
                title=self._said(prose.topic, lore),
                body=self._said(prose.sentence, lore),
                tags=[COMMON] if number % 2 else [],
                injection_mode=InjectionMode.AUTO,
            )
            if number % 2:
                self.lore.add(self.marks[lore])
        entry = self._new("entry")
        present = self._present(self.draw.choice(places))
        values = self._entry(entry, EntryKind.OPENING, present)
        self.ledger.plant(StoryEntry, "entry", **values)
        self._note(entry)

    def _entity(self, kind: EntityKind, name: Callable[[random.Random], str], **state: Any) -> str:
        row_id = self._new(_PREFIXES[kind])
        self.ledger.plant(
            StoryEntity,
            _PREFIXES[kind],
            id=row_id,
            kind=kind,
            name=self._said(name, row_id),
            description=self._said(prose.sentence, row_id),
            status=EntityStatus.ACTIVE,
            injection_mode=InjectionMode.AUTO,
            state={**EMPTY_STATES[kind], **state},
        )
        return row_id

    def _present(self, place: str) -> list[str]:
        """The characters at a place."""
        return [each for each in self.minds if self.at[each] == place and each not in self.gone]

    def _entry(self, row_id: str, kind: EntryKind, present: list[str]) -> dict[str, Any]:
        for each in present:
            self.minds[each].entries.add(self.marks[row_id])
        return {
            "id": row_id,
            "position": len(self.heard.told.entries) + 1,
            "kind": kind,
            "content": self._said(prose.sentence, row_id),
            "metadata": {
                "sceneEntities": present,
                "currentLocationId": self.at[present[0]] if present else None,
                "worldTime": 3_600 * len(self.heard.told.entries),
            },
        }

    # A scene: some come and go, something happens, something is passed on

    def _turn(self) -> None:
        self.heard.told.turns.append(len(self.heard.told.entries))
        self.ledger.begin(DeltaSource.PIGGYBACK_TAGGED_BLOCK)
        entry = self._new("entry")
        place = self.at[self.draw.choice([each for each in self.minds if each not in self.gone])]
        moved = self._come_and_go(place)
        present = self._present(place)
        values = self._entry(entry, EntryKind.AI_REPLY, present)
        self.ledger.create(StoryEntry, "entry", anchor=entry, **values)
        for each in moved:
            state = self.ledger.rows[LoggedTable.ENTITIES][each]["state"]
            state = {**state, "current_location_id": self.at[each]}
            status = EntityStatus.RETIRED if each in self.gone else EntityStatus.ACTIVE
            self.ledger.update(StoryEntity, each, anchor=entry, state=state, status=status)
        if present and self.draw.random() < 0.8:
            self._happen(entry, place, present)
        if len(present) > 1:
            if self.draw.random() < 0.8:
                self._pass_on(entry, present)
            if self.draw.random() < 0.3:
                self._see(entry, *self.draw.sample(present, 2))
        self._note(entry)

    def _come_and_go(self, place: str) -> list[str]:
        """Some come to a place, some leave it, one in a long while leaves the story."""
        there = [each for each in self.minds if each not in self.gone]
        moved = self.draw.sample(there, self.draw.randint(0, 2))
        for each in moved:
            if len(there) > 3 and self.draw.random() < 0.02:
                self.gone.add(each)
            elif self.at[each] == place:
                self.at[each] = self.draw.choice(list(self.around))
            else:
                self.at[each] = place
        return moved

    def _happen(self, entry: str, place: str, present: list[str]) -> None:
        happening = self._new("hap")
        is_foreign = self.draw.random() < 0.5
        is_common = self.draw.random() < 0.1
        languages = (prose.foreign, prose.topic) if is_foreign else (prose.topic, prose.foreign)
        self.ledger.create(
            Happening,
            "hap",
            anchor=entry,
            id=happening,
            title=self._said(languages[0], happening),
            description=self._said(languages[0], happening),
            occurred_at_entry_id=entry,
            common_knowledge=is_common,
        )
        self.ledger.create(
            Translation,
            "tr",
            anchor=entry,
            target_kind=TranslationTarget.HAPPENING,
            target_id=happening,
            field="title",
            language="en" if is_foreign else "zh",
            translated_text=self._said(languages[1], happening),
        )
        involved = {self.draw.choice(present), self.draw.choice([place, *self.held, *self.at])}
        roles = self.roles[happening] = {}
        for each in sorted(involved):
            role = self._new("hinv")
            roles[each] = self.marks[role]
            self.ledger.create(
                HappeningInvolvement,
                "hinv",
                anchor=entry,
                id=role,
                happening_id=happening,
                entity_id=each,
                role=self._said(_role, role),
            )
        if is_common:
            self.common.add(happening)
            self.heard.learned["common knowledge"] += len(self.minds)
            return
        # The first of all hears everything, wherever it is said; others may not pay attention.
        ear = next(iter(self.minds))
        for each in self.minds:
            if each == ear or (each in present and self.draw.random() < 0.8):
                self._learn(entry, each, happening, "there" if each in present else "all-hearing")

    def _pass_on(self, entry: str, present: list[str]) -> None:
        """Somebody tells somebody what that does not know yet, be it from hearsay itself."""
        teller, listener = self.draw.sample(present, 2)
        told = self.minds[teller].happenings
        news = [each for each in told if each not in self.minds[listener].happenings]
        if news:
            self._learn(entry, listener, self.draw.choice(news), "told")

    def _learn(self, entry: str, character: str, happening: str, way: str) -> None:
        awareness = self._new("haw")
        self.minds[character].happenings[happening] = self.marks[awareness]
        self.heard.learned[way] += 1
        self.ledger.create(
            HappeningAwareness,
            "haw",
            anchor=entry,
            id=awareness,
            happening_id=happening,
            character_id=character,
            learned_at_entry_id=entry,
            source=self._said(lambda _: way, awareness),
        )

    def _see(self, entry: str, subject: str, other: str) -> None:
        """Somebody comes to see somebody in some way."""
        pair = (min(subject, other), max(subject, other))
        known = self.ledger.rows[LoggedTable.CHARACTER_RELATIONSHIPS].values()
        row = next((each for each in known if (each["a_id"], each["b_id"]) == pair), None)
        # Only for its mark.
        view = self._new("view")
        self.minds[subject].views[other] = self.marks[view]
        column = "kind" if subject == pair[0] else "inverse_kind"
        values = {column: self._said(prose.sentence, view)}
        if row is None:
            ends = {"a_id": pair[0], "b_id": pair[1]}
            self.ledger.create(CharacterRelationship, "rel", anchor=entry, **ends, **values)
        else:
            self.ledger.update(CharacterRelationship, row["id"], anchor=entry, **values)

    # What everybody knows

    def _note(self, entry: str) -> None:
        self.heard.told.entries.append(entry)
        self.heard.known.append({each: self._known(each) for each in self.minds})

    def _known(self, character: str) -> Known:
        mind, place = self.minds[character], self.at[character]
        learned = self.common | mind.happenings.keys()
        entities = {character, self.factions[character], *self.held[character], *mind.views}
        if character not in self.gone:
            entities |= {each for each, at in self.at.items() if at == place} - self.gone
        around: str | None = place
        while around is not None:
            entities.add(around)
            around = self.around[around]
        roles = [self.roles[each] for each in learned]
        entities |= {each for of_happening in roles for each in of_happening}
        return Known(
            happenings=self._marked(learned),
            entities=self._marked(entities),
            lore=frozenset(self.lore),
            entries=frozenset(mind.entries),
            ties=frozenset(mind.views.values())
            | frozenset(mind.happenings.values())
            | {mark for of_happening in roles for mark in of_happening.values()},
        )

    def _marked(self, row_ids: Iterable[str]) -> frozenset[int]:
        return frozenset(self.marks[each] for each in row_ids)


def _role(draw: random.Random) -> str:
    return draw.choice(_ROLES)
