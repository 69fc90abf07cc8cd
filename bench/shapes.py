"""What generated stories are like, and what is known of one that has been told."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.ledger import Ledger
from db.enums import EntityKind, LoggedTable

# Entries of the stories that `make seed` makes.
SIZES = {"small": 100, "medium": 1_000, "large": 5_000}
# Before the position of an entry, in texts that may be known from it on.
MARK = "canary-"


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a story is, and how much happens: the numbers with fractions are for each reply.

    As it stands there are about 13.7 rows an entry in eleven tables, and 1.5 embeddings.
    """

    entries: int
    characters: int
    happenings: float = 1.0
    # How many know of a happening when it happens.
    aware: float = 2.0
    states: float = 1.3
    translations: float = 1.3
    edits: float = 0.1
    has_chapters: bool = True
    # Whether a background pass finds out things later than they happen.
    has_late_facts: bool = True
    # Each text says from which entry on it may be known: MARK and the entry's position.
    is_marked: bool = False

    @property
    def cast(self) -> dict[EntityKind, int]:
        """How many entities of each kind."""
        return {
            EntityKind.CHARACTER: self.characters,
            EntityKind.LOCATION: self.characters // 3,
            EntityKind.ITEM: self.characters // 4,
            EntityKind.FACTION: -(-self.characters // 12),
        }


def shape_of(entries: int) -> Shape:
    """An ordinary story: 250 entities, fewer where it is short."""
    return Shape(entries, characters=150 if entries >= 600 else max(6, entries // 4))


@dataclass(slots=True)
class Told:
    """A story that has been told, with its ids in order of their positions."""

    ledger: Ledger
    entries: list[str] = field(default_factory=list)
    # The position of the last entry before each turn.
    turns: list[int] = field(default_factory=list)

    @property
    def branch_id(self) -> str:
        """The branch."""
        return self.ledger.branch_id

    def position(self, entry_id: str) -> int:
        """The position of an entry."""
        return int(self.ledger.rows[LoggedTable.STORY_ENTRIES][entry_id]["position"])

    @property
    def rows(self) -> int:
        """Of all tables, without the embeddings."""
        live = sum(len(rows) for rows in self.ledger.rows.values())
        return live + len(self.ledger.deltas)
