"""Entities of a world that may be one: found by their names, without looking at every pair.

Equal names and aliases are found whatever the size of the world. Names that are alike have words or
runs of letters in common; only those are compared that share one which is rare, so that the work
grows with the number of names and not with its square.
Source: asks, 49.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Text, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.enums import Alikeness
from db.reading import Reading, any_of, param, statement
from db.tables import WorldAlias, WorldEntity
from services.access import Viewer, visible

# The oldest entities of a world that are looked at.
MAX_NAMED = 20_000
# A feature that more names have says nothing, and no more pairs than this are compared.
MAX_SHARING = 20
MAX_PAIRS = 50_000
# One letter of four differs.
MIN_SIMILARITY = 0.6
_SCORES = {Alikeness.SAME_NAME: 1.0, Alikeness.SAME_ALIAS: 0.9, Alikeness.CONTAINED: 0.8}
# What is only similar scores below what is contained.
_SIMILAR_SCORE = 0.75


@dataclass(frozen=True, slots=True)
class Named:
    """An entity with its names, as names are compared; the first one is its own."""

    id: str
    kind: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entities that may be one, the older first; `score` from 0 to 1."""

    entity_id: str
    other_id: str
    reason: Alikeness
    score: float


async def duplicates_of_worlds(
    reading: Reading,
    viewer: Viewer,
    world_ids: Sequence[str],
    kinds: Sequence[str] | None,
    limit: int,
) -> list[list[Pair]]:
    """The likeliest pairs of each world, `limit` at most: best score first, then by their ids."""
    rows: list[Any] = await reading.all(
        _named(),
        world_ids=list(world_ids),
        kinds=None if kinds is None else list(kinds),
        **viewer.parameters,
    )
    by_world: dict[str, list[Named]] = {each: [] for each in world_ids}
    for row in rows:
        by_world[row.world_id].append(
            Named(row.id, row.kind, (row.folded_name, *(row.aliases or ())))
        )
    # Counting letters of many names takes a while: not on the loop.
    return [
        (await asyncio.to_thread(find_pairs, by_world[each]))[:limit] if by_world[each] else []
        for each in world_ids
    ]


def find_pairs(entities: Sequence[Named]) -> list[Pair]:
    """All pairs that are found, best first. Where many have one name, each is paired with the
    first of them.
    """
    order = {each.id: place for place, each in enumerate(entities)}
    found: dict[tuple[int, int], tuple[Alikeness, float]] = {}

    def note(one: Named, other: Named, reason: Alikeness, score: float) -> None:
        pair = (min(order[one.id], order[other.id]), max(order[one.id], order[other.id]))
        if one is not other and (pair not in found or found[pair][1] < score):
            found[pair] = (reason, round(score, 3))

    firsts: dict[tuple[str, str], Named] = {}
    for each in entities:
        first = firsts.setdefault((each.kind, each.names[0]), each)
        note(first, each, Alikeness.SAME_NAME, _SCORES[Alikeness.SAME_NAME])
    for each in entities:
        for alias in each.names[1:]:
            first = firsts.setdefault((each.kind, alias), each)
            note(first, each, Alikeness.SAME_ALIAS, _SCORES[Alikeness.SAME_ALIAS])
    for one, other, name, other_name in _candidates(entities):
        if _stands_in(name, other_name) or _stands_in(other_name, name):
            note(one, other, Alikeness.CONTAINED, _SCORES[Alikeness.CONTAINED])
            continue
        likeness = similarity(name, other_name)
        if likeness >= MIN_SIMILARITY:
            note(one, other, Alikeness.SIMILAR, _SIMILAR_SCORE * likeness)
    pairs = [
        Pair(entities[one].id, entities[other].id, reason, score)
        for (one, other), (reason, score) in found.items()
    ]
    return sorted(pairs, key=lambda each: (-each.score, each.entity_id, each.other_id))


def similarity(name: str, other: str) -> float:
    """How many pairs of letters two names have in common, from 0 to 1 (Dice's coefficient)."""
    pairs, other_pairs = Counter(_runs(name)), Counter(_runs(other))
    total = pairs.total() + other_pairs.total()
    return 2 * (pairs & other_pairs).total() / total if total else 0.0


def _runs(name: str, size: int = 2) -> list[str]:
    letters = name.replace(" ", "")
    return [letters[place : place + size] for place in range(len(letters) - size + 1)]


def _stands_in(part: str, whole: str) -> bool:
    """Whether a name stands in a longer one, as whole words; in scripts without spaces two letters
    are enough of a word.
    """
    if part == whole:
        return False
    if f" {part} " in f" {whole} ":
        return True
    return len(part) > 1 and not part.isascii() and _has_no_spaces(part) and part in whole


def _has_no_spaces(name: str) -> bool:
    """Whether it is of a script that sets no spaces: Chinese, Japanese, Korean syllables."""
    return all("\u3040" <= each <= "\u30ff" or "\u3400" <= each <= "\ud7af" for each in name)


def _candidates(entities: Sequence[Named]) -> Iterable[tuple[Named, Named, str, str]]:
    """Pairs of one kind with a rare feature in common, the rarest features first."""
    sharing: dict[tuple[str, str], list[tuple[Named, str]]] = {}
    for each in entities:
        for name in each.names:
            for feature in {*name.split(), *_runs(name), *_runs(name, 3)}:
                sharing.setdefault((each.kind, feature), []).append((each, name))
    compared: set[tuple[str, str, str, str]] = set()
    for having in sorted(sharing.values(), key=len):
        if len(having) > MAX_SHARING:
            return
        for place, (other, other_name) in enumerate(having):
            for one, name in having[:place]:
                pair = (one.id, other.id, name, other_name)
                if one is other or name == other_name or pair in compared:
                    continue
                if len(compared) == MAX_PAIRS:
                    return
                compared.add(pair)
                yield one, other, name, other_name


@statement(object)
def _named() -> Any:
    kinds = param("kinds", ARRAY(Text))
    place = func.row_number().over(
        partition_by=col(WorldEntity.world_id),
        order_by=(col(WorldEntity.created_at), col(WorldEntity.id)),
    )
    entities = (
        select(
            col(WorldEntity.id).label("id"),
            col(WorldEntity.world_id).label("world_id"),
            col(WorldEntity.kind).label("kind"),
            col(WorldEntity.folded_name).label("folded_name"),
            place.label("place"),
        )
        .where(
            any_of(WorldEntity.world_id, "world_ids"),
            col(WorldEntity.merged_into_id).is_(None),
            or_(kinds.is_(None), col(WorldEntity.kind) == func.any(kinds)),
            visible(WorldEntity),
        )
        .subquery("entities")
    )
    aliases = (
        select(func.array_agg(col(WorldAlias.folded)))
        .where(col(WorldAlias.world_entity_id) == entities.c.id)
        .scalar_subquery()
    )
    return (
        select(
            entities.c.id,
            entities.c.world_id,
            entities.c.kind,
            entities.c.folded_name,
            aliases.label("aliases"),
        )
        .where(entities.c.place <= MAX_NAMED)
        .order_by(entities.c.world_id, entities.c.place)
    )
