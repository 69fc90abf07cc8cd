"""B10: a branch as it was, at moments near and far from the present: equal to a replay of its
changes everywhere, and how long it takes.
"""

from __future__ import annotations

import gc
import random

from bench import stories
from bench.replay import Replay, differences
from bench.shapes import Shape, Told
from bench.stage import Json, Say, Stage, milliseconds, seconds, staged
from db.enums import LoggedTable
from db.reading import Reading
from db.tables import StoryEntity
from services import past
from services.past import AsOf

# 250 entities and about 20,000 changes, most of them of states.
SHAPE = Shape(
    5_000,
    characters=150,
    happenings=0,
    states=3.6,
    translations=0,
    has_chapters=False,
    has_late_facts=False,
)
# Every so many entries everything is compared, and at fewer of them as of the log, too.
_COMPARED = 10
_COMPARED_BY_LOG = 50
# How many entries back from the last one, and how often each distance is asked for.
DISTANCES = (10, 100, 500, 2_500, 4_900)
_ASKED = 40


async def measure(
    dsn: str,
    rounds: int,
    say: Say,
    shape: Shape = SHAPE,
    distances: tuple[int, ...] = DISTANCES,
    asked: int = _ASKED,
) -> Json:
    """B10, on a migrated database: all entities of a branch as of an entry."""
    async with staged(dsn) as stage:
        told = await stories.fill(stage.database, shape)
        head, entries = len(told.ledger.deltas), told.entries
        moments = await _compare(stage, told, say)
        entities = len(told.ledger.rows[LoggedTable.ENTITIES])
        branch_id = told.branch_id
        del told
        gc.collect()
        draw = random.Random(0)
        by_distance: Json = {}
        for distance in distances:
            say(f"B10, {distance:,} entries back")
            times = []
            for _ in range(rounds * asked):
                # A tenth nearer or farther, so that it is not always the same moment.
                near = distance + draw.randint(-distance // 10, distance // 10)
                entry = entries[max(0, len(entries) - 1 - near)]
                async with stage.database.reading() as reading:
                    times.append(await seconds(_entities_as_of(reading, stage, branch_id, entry)))
            by_distance[str(distance)] = milliseconds(times)
        return {
            "entries": len(entries),
            "entities": entities,
            "deltas": head,
            "moments_equal_to_replay": moments,
            "milliseconds_by_distance": by_distance,
        }


async def _entities_as_of(reading: Reading, stage: Stage, branch_id: str, entry: str) -> None:
    moment = await past.resolve_moment(reading, stage.viewer, branch_id, AsOf(entry_id=entry))
    await past.rows_at(reading, stage.viewer, moment, StoryEntity)


async def _compare(stage: Stage, told: Told, say: Say) -> int:
    """Compare all tables with the replay: as of entries, and as of positions of the log. How many
    moments were compared. Raises RuntimeError where something differs.
    """
    replay = Replay(told)
    moments = 0
    for position in range(1, len(told.entries) + 1, _COMPARED):
        say(f"B10, entry {position:,} of {len(told.entries):,}")
        logged = replay.logged_before(position)
        wanted = [(AsOf(entry_id=told.entries[position - 1]), replay.as_of(position))]
        if position % _COMPARED_BY_LOG == 1:
            wanted.append((AsOf(log_position=logged), replay.logged_up_to(logged)))
        for as_of, expected in wanted:
            async with stage.database.reading() as reading:
                moment = await past.resolve_moment(reading, stage.viewer, told.branch_id, as_of)
                found = {
                    name: await past.images_at(reading, moment, name)
                    for name in told.ledger.planted
                }
            if differing := differences(expected, found):
                raise RuntimeError(f"{as_of} differs from the replay: {', '.join(differing[:10])}")
            moments += 1
    return moments
