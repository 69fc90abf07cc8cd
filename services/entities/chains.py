"""What lies within what: a place with those around it, and what their modes make of it.

Source: spec aventuras, LocationState; disabled places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Integer, Text, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import InjectionMode
from db.reading import Reading, param, statement
from db.tables import StoryEntity
from services.access import Viewer, visible
from services.entities.listing import in_state

# Deeper than any world; what reaches it goes round in a circle.
MAX_DEPTH = 100
PARENT = "parent_location_id"


@dataclass(frozen=True, slots=True)
class Link:
    """A place of a chain."""

    row_id: str
    injection_mode: InjectionMode


@statement(object)
def _chains() -> Any:
    wanted = (
        func.unnest(param("branch_ids", ARRAY(Text)), param("row_ids", ARRAY(Text)))
        .table_valued("branch_id", "id", name="wanted")
        .render_derived()
    )
    chain = (
        select(
            wanted.c.branch_id,
            wanted.c.id.label("start_id"),
            col(StoryEntity.row_id).label("row_id"),
            col(StoryEntity.injection_mode).label("injection_mode"),
            in_state(PARENT).label("parent_id"),
            literal_column("1", Integer()).label("depth"),
        )
        .select_from(wanted)
        .join(
            StoryEntity,
            (col(StoryEntity.branch_id) == wanted.c.branch_id)
            & (col(StoryEntity.row_id) == wanted.c.id),
        )
        .where(visible(StoryEntity))
        .cte("chain", recursive=True)
    )
    above = aliased(StoryEntity)
    further = (
        select(
            chain.c.branch_id,
            chain.c.start_id,
            col(above.row_id),
            col(above.injection_mode),
            col(above.state).op("->>", return_type=Text())(literal_column(f"'{PARENT}'")),
            chain.c.depth + literal_column("1", Integer()),
        )
        .select_from(chain)
        .join(
            above,
            (col(above.branch_id) == chain.c.branch_id) & (col(above.row_id) == chain.c.parent_id),
        )
        .where(chain.c.depth <= literal_column(str(MAX_DEPTH), Integer()))
    )
    whole = chain.union_all(further)
    return select(
        whole.c.branch_id, whole.c.start_id, whole.c.row_id, whole.c.injection_mode
    ).order_by(whole.c.depth)


async def chains_of_places(
    reading: Reading, viewer: Viewer, ids: Sequence[str]
) -> list[list[Link]]:
    """Each place with those around it, itself first, the outermost last: places at present, by
    their ids in full. Empty for one that is not there; a circle is followed once round.
    """
    pairs = [each.partition(":") for each in ids]
    rows: list[Any] = await reading.all(
        _chains(),
        branch_ids=[branch_id for branch_id, _, _ in pairs],
        row_ids=[row_id for _, _, row_id in pairs],
        **viewer.parameters,
    )
    found: dict[str, dict[str, Link]] = {}
    for row in rows:
        chain = found.setdefault(f"{row.branch_id}:{row.start_id}", {})
        chain.setdefault(row.row_id, Link(row.row_id, row.injection_mode))
    return [list(found.get(each, {}).values()) for each in ids]


def chain_among(entities: Mapping[str, StoryEntity], row_id: str) -> list[Link]:
    """The same for one place of a past moment, among the entities of that moment."""
    chain: dict[str, Link] = {}
    place = entities.get(row_id)
    while place is not None and place.row_id not in chain and len(chain) <= MAX_DEPTH:
        chain[place.row_id] = Link(place.row_id, place.injection_mode)
        place = entities.get(place.state.get(PARENT) or "")
    return list(chain.values())


def effective_mode(
    place: StoryEntity, around: Sequence[Link], story: Sequence[Link]
) -> InjectionMode:
    """When a place comes into a prompt, given what is around it, and the chain of the place where
    the story is.

    A disabled place takes all places inside it along, unless the story is inside it; the place
    where the story is comes in itself.
    """
    inside = {each.row_id for each in story}
    disabled = InjectionMode.DISABLED
    if any(each.injection_mode == disabled and each.row_id not in inside for each in around):
        return disabled
    if story and story[0].row_id == place.row_id and place.injection_mode == disabled:
        return InjectionMode.AUTO
    return InjectionMode(place.injection_mode)
