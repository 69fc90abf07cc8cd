"""Reading the world of a branch: its entities, what lies where, who belongs to what, who sees what
in whom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, func, literal, literal_column, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.enums import EntityKind, ItemSlot
from db.paging import PagedList, SortKey
from db.reading import Reading, any_of, param, statement
from db.tables import CharacterRelationship, StoryEntity, StoryEntry
from services.access import Viewer, visible
from services.entities.names import MARKS, folded
from services.scenes import TELLING

# The keys of a character's state under which items are.
SLOTS = tuple(each.value for each in ItemSlot)
# In the order in which they were made.
_OLDEST_FIRST = [SortKey(col(StoryEntity.created_at)), SortKey(col(StoryEntity.row_id))]


def in_state(key: str) -> Any:
    """A text of an entity's state, as the indexes of the table have it."""
    return col(StoryEntity.state).op("->>", return_type=Text())(literal_column(f"'{key}'"))


def _folded(text: Any) -> Any:
    """What `names.folded` does to a text, in the database."""
    plain = func.regexp_replace(
        func.normalize(text, literal_column("NFKD")), literal(f"[{MARKS}]"), "", "g"
    )
    return func.lower(plain)


def _is_wanted() -> ColumnElement[bool]:
    kinds, statuses = param("kinds", ARRAY(Text)), param("statuses", ARRAY(Text))
    search = param("search", Text())
    return and_(
        visible(StoryEntity),
        or_(kinds.is_(None), col(StoryEntity.kind) == func.any(kinds)),
        or_(statuses.is_(None), col(StoryEntity.status) == func.any(statuses)),
        or_(
            search.is_(None),
            func.strpos(_folded(col(StoryEntity.name)), _folded(search)) > 0,
        ),
    )


@dataclass(frozen=True, slots=True)
class EntityFilter:
    """Which entities are wanted; None asks for nothing. `search` is part of the name."""

    kinds: tuple[str, ...] | None = None
    statuses: tuple[str, ...] | None = None
    search: str | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of `ENTITIES_OF_BRANCHES`."""
        return {
            "kinds": None if self.kinds is None else list(self.kinds),
            "statuses": None if self.statuses is None else list(self.statuses),
            "search": self.search,
        }

    def takes(self, entity: StoryEntity) -> bool:
        """Whether a row is wanted: the same as the list's own condition."""
        return (
            (self.kinds is None or entity.kind in self.kinds)
            and (self.statuses is None or entity.status in self.statuses)
            and (self.search is None or folded(self.search) in folded(entity.name))
        )


ENTITIES_OF_BRANCHES = PagedList(
    "entities",
    StoryEntity,
    sort=_OLDEST_FIRST,
    parent=col(StoryEntity.branch_id),
    where=_is_wanted,
)


def _naming(name: str, key: str) -> PagedList[StoryEntity]:
    """The entities whose state names another one under a key."""
    return PagedList(
        name,
        StoryEntity,
        sort=_OLDEST_FIRST,
        parent=in_state(key),
        within=col(StoryEntity.branch_id),
        parent_of=lambda entity: entity.state.get(key),
        where=lambda: visible(StoryEntity),
    )


OCCUPANTS_OF_LOCATIONS = _naming("occupants", "current_location_id")
ITEMS_OF_LOCATIONS = _naming("items", "at_location_id")
CHILDREN_OF_LOCATIONS = _naming("children", "parent_location_id")
MEMBERS_OF_FACTIONS = _naming("members", "faction_id")

_RELATIONSHIPS_BY_AGE = [
    SortKey(col(CharacterRelationship.created_at)),
    SortKey(col(CharacterRelationship.row_id)),
]
RELATIONSHIPS_OF_BRANCHES = PagedList(
    "relationships",
    CharacterRelationship,
    sort=_RELATIONSHIPS_BY_AGE,
    parent=col(CharacterRelationship.branch_id),
    where=lambda: visible(CharacterRelationship),
)
# Those in which a character is the first of the pair, and those in which it is the second.
RELATIONSHIPS_OF_FIRSTS, RELATIONSHIPS_OF_SECONDS = (
    PagedList(
        f"relationships by {name}",
        CharacterRelationship,
        sort=_RELATIONSHIPS_BY_AGE,
        parent=end,
        within=col(CharacterRelationship.branch_id),
        where=lambda: visible(CharacterRelationship),
    )
    for name, end in (
        ("first", col(CharacterRelationship.a_id)),
        ("second", col(CharacterRelationship.b_id)),
    )
)

# What tells where a story is: the last of these counts.
TELLING_ENTRIES_OF_BRANCHES = PagedList(
    "telling entries",
    StoryEntry,
    sort=[SortKey(col(StoryEntry.position))],
    parent=col(StoryEntry.branch_id),
    where=lambda: and_(
        visible(StoryEntry), or_(*(col(StoryEntry.kind) == each.value for each in TELLING))
    ),
)


def is_telling(entry: StoryEntry) -> bool:
    """The same of one entry."""
    return entry.kind in TELLING


def held_by(state: Mapping[str, Any]) -> list[str]:
    """The items that a character wears or carries, by its state; none for other kinds."""
    return [each for slot in SLOTS for each in state.get(slot, ())]


def held_items() -> Any:
    """The ids of the items that a character wears and carries, as one JSON list."""
    equipped, inventory = (
        col(StoryEntity.state).op("->")(literal_column(f"'{slot}'")) for slot in SLOTS
    )
    return equipped.op("||")(inventory)


@statement(StoryEntity)
def _holders() -> Any:
    item = func.jsonb_array_elements_text(held_items()).column_valued("item")
    return (
        select(
            col(StoryEntity.branch_id),
            col(StoryEntity.row_id).label("row_id"),
            item.label("item_id"),
        )
        .where(
            any_of(StoryEntity.branch_id, "branch_ids"),
            col(StoryEntity.kind) == EntityKind.CHARACTER.value,
            item == func.any(param("item_ids", ARRAY(Text))),
            visible(StoryEntity),
        )
        .order_by(col(StoryEntity.created_at), col(StoryEntity.row_id))
    )


async def holders_of_items(
    reading: Reading, viewer: Viewer, items: Sequence[StoryEntity]
) -> list[str | None]:
    """The own id of the character that holds each item at present, or None. Of an item that has
    several holders from of old, the oldest one.
    """
    rows: list[Any] = await reading.all(
        _holders(),
        branch_ids=list({each.branch_id for each in items}),
        item_ids=list({each.row_id for each in items}),
        **viewer.parameters,
    )
    found: dict[tuple[str, str], str] = {}
    for row in rows:
        found.setdefault((row.branch_id, row.item_id), row.row_id)
    return [found.get((each.branch_id, each.row_id)) for each in items]


def holder_among(entities: Iterable[StoryEntity], item_id: str) -> str | None:
    """The same for an item of a past moment, among the entities of that moment."""
    holders = [each for each in entities if item_id in held_by(each.state)]
    oldest = min(holders, key=lambda each: (each.created_at, each.row_id), default=None)
    return oldest.row_id if oldest else None
