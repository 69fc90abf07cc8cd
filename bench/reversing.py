"""W8 and B7: ways back. W8 against bare statements that do the same to the same rows; B7 undo, redo
and rollback by the number of turns.
"""

from __future__ import annotations

from typing import Any

from bench import bare_sql
from bench.figures import spread
from bench.shapes import Shape, shape_of
from bench.stage import (
    WARM_UP,
    Json,
    Say,
    Stage,
    Story,
    against_bare,
    in_turn,
    milliseconds,
    seconds,
    staged,
)

DELTAS = 1_000
W8_SHAPE = shape_of(5_000)
# Without what a background pass finds out: redo leaves that to the next pass.
B7_SHAPE = Shape(5_000, characters=150, has_late_facts=False)
TURNS = (10, 100, 1_000)
# How often one turn is undone and redone in each round.
_SINGLE = 20


async def measure(
    dsn: str, rounds: int, say: Say, shape: Shape = W8_SHAPE, number: int = DELTAS
) -> Json:
    """W8, on a migrated database: back to an entry behind which there are about so many changes."""
    async with staged(dsn) as stage:
        story = await stage.tell(shape)
        entry, count = _entry_before(story, number)
        rolled_back, _ = await bare_sql.copy_branch(stage.bare, story.branch_id)
        await stage.roll_back(rolled_back, entry)
        effect = await bare_sql.effect_between(stage.bare, story.branch_id, rolled_back)
        times: dict[str, list[float]] = {"services": [], "bare_sql": []}

        async def by_services(copy: str) -> None:
            await stage.roll_back(copy, entry)

        async def by_hand(copy: str) -> None:
            await bare_sql.apply_effect(stage.bare, copy, effect)

        async def warm_up() -> None:
            await stage.roll_back(story.branch_id, entry, warms_up=True)
            await bare_sql.apply_effect(stage.bare, story.branch_id, effect, warms_up=True)

        for _ in range(WARM_UP):
            await warm_up()
        # The first round is not counted either.
        for turn in range(rounds + 1):
            say(f"W8, round {turn} of {rounds}")
            copies = [
                (await bare_sql.copy_branch(stage.bare, story.branch_id))[0] for _ in range(2)
            ]
            await bare_sql.settle(stage.bare)
            # What was planned before the statistics changed is planned anew.
            await warm_up()
            sides: list[Any] = [
                ("services", by_services, copies[0]),
                ("bare_sql", by_hand, copies[1]),
            ]
            for name, work, copy in in_turn(turn, *sides):
                took = await seconds(work(copy))
                if turn:
                    times[name].append(took)
            for copy in copies:
                await stage.check_equal(copy, rolled_back, "two rollbacks to the same entry")
            await bare_sql.drop_branches(stage.bare, copies)
        return {
            "deltas": count,
            "rows": story.rows,
            **against_bare(times["services"], times["bare_sql"]),
        }


def _entry_before(story: Story, number: int) -> tuple[str, int]:
    """The entry behind which the log has about so many changes, and how many they are."""
    entries = [each for each in story.entries if each in story.begins]
    place = min(
        range(1, len(entries)),
        key=lambda place: abs(story.head - story.begins[entries[place]] + 1 - number),
    )
    return entries[place - 1], story.head - story.begins[entries[place]] + 1


async def measure_turns(
    dsn: str,
    rounds: int,
    say: Say,
    shape: Shape = B7_SHAPE,
    turns: tuple[int, ...] = TURNS,
    single: int = _SINGLE,
) -> Json:
    """B7, on a migrated database."""
    async with staged(dsn) as stage:
        story = await stage.tell(shape)
        return {
            "rows": story.rows,
            "one_turn": await _one_turn(stage, story, rounds * single, say),
            "turns": {
                str(number): await _turns(stage, story, number, rounds, say) for number in turns
            },
        }


async def _one_turn(stage: Stage, story: Story, times: int, say: Say) -> Json:
    say("B7, one turn")
    before = await _copy(stage, story)
    for _ in range(WARM_UP):
        await stage.undo(story.branch_id)
        await stage.redo(story.branch_id)
    undone, redone = [], []
    for _ in range(times):
        undone.append(await seconds(stage.undo(story.branch_id)))
        redone.append(await seconds(stage.redo(story.branch_id)))
    await stage.check_equal(story.branch_id, before, "a turn before it was undone and after redo")
    await bare_sql.drop_branches(stage.bare, [before])
    return {
        "undo_milliseconds": milliseconds(undone),
        "redo_milliseconds": milliseconds(redone),
    }


async def _turns(stage: Stage, story: Story, number: int, rounds: int, say: Say) -> Json:
    """Roll back over so many turns; undo them one by one, with what was done between them, and redo
    them.
    """
    entry = story.before_turns(number)
    times: dict[str, list[float]] = {"rollback": [], "undo": [], "redo": []}
    steps = 0
    fork = (await stage.fork(story.branch_id, entry)).branch.id
    for turn in range(rounds):
        say(f"B7, {number:,} turns, round {turn + 1} of {rounds}")
        copies = [await _copy(stage, story) for _ in range(2)]
        await bare_sql.settle(stage.bare)
        times["rollback"].append(await seconds(stage.roll_back(copies[0], entry)))
        await stage.check_equal(copies[0], fork, "a rollback and a fork at the same entry")
        steps = await _steps(stage, story, entry)
        times["undo"].append(await seconds(_repeat(stage.undo, copies[1], steps)))
        times["redo"].append(await seconds(_repeat(stage.redo, copies[1], steps)))
        await stage.check_equal(copies[1], story.branch_id, "a branch before undo and after redo")
        await bare_sql.drop_branches(stage.bare, copies)
    await bare_sql.drop_branches(stage.bare, [fork])
    return {
        "steps": steps,
        **{f"{name}_seconds": spread(each) for name, each in times.items()},
    }


async def _steps(stage: Stage, story: Story, entry: str) -> int:
    """How many actions there are behind an entry, which one undo each takes back."""
    begins = story.begins[story.entries[story.entries.index(entry) + 1]]
    count = await stage.bare.fetchval(
        "SELECT count(DISTINCT action_id) FROM deltas WHERE branch_id = $1 AND log_position >= $2",
        story.branch_id,
        begins,
    )
    return int(count)


async def _repeat(work: Any, branch_id: str, times: int) -> None:
    for _ in range(times):
        await work(branch_id)


async def _copy(stage: Stage, story: Story) -> str:
    copy, _ = await bare_sql.copy_branch(stage.bare, story.branch_id)
    return copy
