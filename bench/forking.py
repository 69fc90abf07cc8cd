"""W7 and B6: forks. W7 against the bare copy of the same rows; B6 by the size of the story and the
place of the fork, with somebody who writes to the parent meanwhile.
"""

from __future__ import annotations

from bench import bare_sql
from bench.figures import p99, spread
from bench.shapes import Shape, shape_of
from bench.stage import Json, Say, Stage, Story, against_bare, in_turn, seconds, staged
from bench.writer import writing_meanwhile

# About 100,000 rows, those of the log and what points to embeddings included.
W7_SHAPE = shape_of(6_600)
SIZES = (100, 1_000, 5_000)


async def measure(dsn: str, rounds: int, say: Say, shape: Shape = W7_SHAPE) -> Json:
    """W7, on a migrated database: a fork at the last entry, which has every row."""
    async with staged(dsn) as stage:
        story = await stage.tell(shape)
        times: dict[str, list[float]] = {"services": [], "bare_sql": []}
        # The first round is for comparing, and warms up.
        for number in range(rounds + 1):
            say(f"W7, round {number} of {rounds}")
            made: dict[str, str] = {}

            async def by_services(made: dict[str, str] = made) -> None:
                fork = await stage.fork(story.branch_id, story.entries[-1])
                made["services"] = fork.branch.id

            async def by_hand(made: dict[str, str] = made) -> None:
                made["bare_sql"], _ = await bare_sql.copy_branch(stage.bare, story.branch_id)

            for name, work in in_turn(number, ("services", by_services), ("bare_sql", by_hand)):
                await stage.bare.execute("CHECKPOINT")
                took = await seconds(work())
                if number:
                    times[name].append(took)
            if not number:
                fork, copy = made["services"], made["bare_sql"]
                await stage.check_equal(fork, copy, "a fork and a copy")
            await bare_sql.drop_branches(stage.bare, list(made.values()))
        return {"rows": story.rows, **against_bare(times["services"], times["bare_sql"])}


async def measure_grid(dsn: str, rounds: int, say: Say, sizes: tuple[int, ...] = SIZES) -> Json:
    """B6, on a migrated database: by entries of the story, then by the place of the fork."""
    async with staged(dsn) as stage:
        grid: Json = {}
        for size in sizes:
            story = await stage.tell(shape_of(size))
            grid[str(size)] = {
                place: await _at_place(stage, story, position, rounds, say)
                for place, position in (("head", size), ("middle", size // 2), ("start", 1))
            }
            await bare_sql.drop_branches(stage.bare, [story.branch_id])
        return grid


async def _at_place(stage: Stage, story: Story, position: int, rounds: int, say: Say) -> Json:
    entry = story.entries[position - 1]
    fork = await stage.fork(story.branch_id, entry)
    copy, _ = await bare_sql.copy_branch(stage.bare, story.branch_id)
    await stage.roll_back(copy, entry)
    await stage.check_equal(fork.branch.id, copy, "a fork and a rollback to the same entry")
    rows = sum(each.rows for each in fork.copied)
    await bare_sql.drop_branches(stage.bare, [fork.branch.id, copy])
    times: list[float] = []
    waits: list[float] = []
    for number in range(rounds):
        say(f"B6, {len(story.entries):,} entries at {position:,}, {number + 1} of {rounds}")
        made: list[str] = []

        async def fork_it(made: list[str] = made) -> None:
            made.append((await stage.fork(story.branch_id, entry)).branch.id)

        times.append(await seconds(fork_it()))
        async with writing_meanwhile(stage.database.dsn, story.branch_id) as waited:
            await fork_it()
        waits += waited
        await bare_sql.drop_branches(stage.bare, made)
    return {
        "rows": rows,
        "seconds": spread(times),
        "writer_waits_milliseconds": {
            "writes": len(waits),
            "p99": round(p99(waits), 3),
            "longest": max(waits),
        },
    }
