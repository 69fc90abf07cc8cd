"""What is in every prompt, whatever is asked for. Source: retrieval, section 4; spec aventuras,
disabled places, structural invariant. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import EntityKind, EntityStatus, FloorReason, InjectionMode, SearchKind, ThreadStatus
from services.entities import chain_among, effective_mode
from services.retrieval.parameters import Parameters
from services.retrieval.rendering import name_of, price_of, text_of

ALWAYS, DISABLED = InjectionMode.ALWAYS, InjectionMode.DISABLED


@dataclass(frozen=True, slots=True)
class Seated:
    """A row of the floor, with what it takes."""

    kind: SearchKind
    row: Any
    reason: FloorReason
    name: str
    text: str
    tokens: int

    @property
    def id(self) -> str:
        """The row's own id."""
        row_id: str = self.row.row_id
        return row_id


def mode_among(entities: Mapping[str, Any], entity: Any, location_id: str | None) -> InjectionMode:
    """When an entity comes into a prompt: of a place that is what is around it, too."""
    if entity.kind != EntityKind.LOCATION:
        return InjectionMode(entity.injection_mode)
    around = chain_among(entities, entity.row_id)
    return effective_mode(entity, around, chain_among(entities, location_id or ""))


def floor_of(
    entities: Mapping[str, Any],
    lore: Mapping[str, Any],
    threads: Mapping[str, Any],
    scene_ids: Sequence[str],
    location_id: str | None,
    parameters: Parameters,
) -> list[Seated]:
    """The rows of the floor, each once: the place, who and what is present, active threads, and
    what is always there.
    """
    found: dict[tuple[SearchKind, str], tuple[Any, FloorReason]] = {}

    def seat(kind: SearchKind, row: Any, reason: FloorReason) -> None:
        found.setdefault((kind, row.row_id), (row, reason))

    place = entities.get(location_id or "")
    if place is not None and place.status == EntityStatus.ACTIVE:
        seat(SearchKind.ENTITY, place, FloorReason.LOCATION)
    for each in scene_ids:
        present = entities.get(each)
        if present is not None and present.status == EntityStatus.ACTIVE:
            seat(SearchKind.ENTITY, present, FloorReason.SCENE)
    for thread in threads.values():
        if thread.status == ThreadStatus.ACTIVE:
            seat(SearchKind.THREAD, thread, FloorReason.ACTIVE_THREAD)
    for entity in entities.values():
        if mode_among(entities, entity, location_id) == ALWAYS:
            seat(SearchKind.ENTITY, entity, FloorReason.ALWAYS)
    for kind, rows in ((SearchKind.LORE, lore), (SearchKind.THREAD, threads)):
        for row in rows.values():
            if row.injection_mode == ALWAYS:
                seat(kind, row, FloorReason.ALWAYS)
    return [
        Seated(
            kind,
            row,
            reason,
            name_of(kind, row),
            text := text_of(kind, row),
            price_of(kind, text, parameters),
        )
        for (kind, _), (row, reason) in found.items()
    ]
