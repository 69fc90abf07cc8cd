"""Generated stories are what they claim to be: every way back through the services leads to what a
replay of their changes says. Nothing is timed.
"""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from bench import bare_sql, forking, leaks, measure, past_moments, reversing, stories
from bench.__main__ import main
from bench.replay import Replay, compared, differences
from bench.report import table
from bench.shapes import SIZES, Shape, Told, shape_of
from bench.stage import staged
from bench.telling import tell
from db.engine import Database
from db.enums import DeltaOp, LoggedTable
from db.reading import prepare_connection
from services import deltas
from services.deltas.rows import all_images
from tests.bench.results import result

SHORT = Shape(60, characters=12, edits=0.6)


@pytest.fixture
async def connection(dsn: str) -> Any:
    connection = await asyncpg.connect(dsn)
    await prepare_connection(connection)
    yield connection
    await connection.close()


async def stored(database: Database, branch_id: str) -> Any:
    """Every row of a branch, as a replay has them."""
    async with database.reading() as reading:
        return {name: await all_images(reading, branch_id, name) for name in deltas.LOGGED}


def everything(told: Told) -> list[Any]:
    ledger = told.ledger
    return [
        [compared(row) for rows in ledger.rows.values() for row in rows.values()],
        [compared(row) for row in (*ledger.deltas, *ledger.embeddings)],
    ]


def test_the_same_seed_tells_the_same_story() -> None:
    first, second, other = tell(SHORT, 1), tell(SHORT, 1), tell(SHORT, 2)
    assert first.branch_id != second.branch_id
    payloads = [each.ledger.deltas.copy() for each in (first, second)]
    for told in (first, second, other):
        for delta in told.ledger.deltas:
            payload = delta["undo_payload"]
            if delta["op"] is DeltaOp.DELETE:
                payload.pop("branch_id")
                for rows in payload.get(deltas.CHILDREN, {}).values():
                    for row in rows:
                        row.pop("branch_id")
    assert payloads
    assert everything(first) == everything(second)
    assert everything(first) != everything(other)


def test_a_story_has_the_size_that_it_claims() -> None:
    told = tell(shape_of(1_000))
    assert len(told.entries) == 1_000
    assert len(told.ledger.rows[LoggedTable.ENTITIES]) == 250
    assert 13.2 <= told.rows / 1_000 <= 14.2
    assert 1.3 <= len(told.ledger.embeddings) / 1_000 <= 1.8
    filled = [name for name, rows in told.ledger.rows.items() if rows]
    # And the log is the eleventh.
    assert len(filled) == 10


async def test_what_is_stored_is_what_was_told(database: Database) -> None:
    told = await stories.fill(database, SHORT, seed=3)
    assert differences(told.ledger.rows, await stored(database, told.branch_id)) == []


async def test_undone_all_the_way_a_story_is_what_it_began_with(
    database: Database, connection: Any
) -> None:
    told = await stories.fill(database, SHORT, seed=4)
    viewer = await stories.local_viewer(database)
    async with database.writing() as writing:
        for _ in told.ledger.deltas:
            if not (await deltas.undo_branch(writing, viewer, told.branch_id)).reversed:
                break
    assert await connection.fetchval("SELECT count(*) FROM deltas") == 0
    assert differences(told.ledger.planted, await stored(database, told.branch_id)) == []


async def test_undone_and_redone_all_the_way_a_story_is_what_it_was(dsn: str) -> None:
    calm = Shape(40, characters=12, edits=0.6, has_late_facts=False)
    async with staged(dsn) as stage:
        branch_id = (await stage.tell(calm, seed=6)).branch_id
        states = [await bare_sql.digests(stage.bare, branch_id)]
        while states[-1]["deltas"] is not None:
            await stage.undo(branch_id)
            states.append(await bare_sql.digests(stage.bare, branch_id))
            assert states[-1] != states[-2]
        while len(states) > 1:
            states.pop()
            await stage.redo(branch_id)
            assert await bare_sql.digests(stage.bare, branch_id) == states[-1]


async def test_forks_and_rollbacks_are_what_a_replay_says(
    database: Database, connection: Any
) -> None:
    told = await stories.fill(database, SHORT, seed=5)
    viewer = await stories.local_viewer(database)
    replay = Replay(told)
    for position in range(1, len(told.entries) + 1, 4):
        expected, entry = replay.as_of(position), told.entries[position - 1]
        async with database.writing() as writing:
            fork = await deltas.fork_branch(writing, viewer, told.branch_id, entry, "Fork")
        assert differences(expected, await stored(database, fork.branch.id)) == []
        copy, _ = await bare_sql.copy_branch(connection, told.branch_id)
        async with database.writing() as writing:
            await deltas.roll_back_branch(writing, viewer, copy, entry)
        assert differences(expected, await stored(database, copy)) == []
        both = [await bare_sql.digests(connection, each) for each in (fork.branch.id, copy)]
        assert both[0] == both[1]


async def test_a_difference_between_branches_is_noticed(dsn: str) -> None:
    async with staged(dsn) as stage:
        story = await stage.tell(SHORT)
        copy, rows = await bare_sql.copy_branch(stage.bare, story.branch_id)
        assert rows == story.rows
        await stage.check_equal(story.branch_id, copy, "a branch and its copy")
        await stage.bare.execute("UPDATE lore SET priority = 51 WHERE branch_id = $1", copy)
        with pytest.raises(RuntimeError, match=r"^a branch and its copy: lore differ$"):
            await stage.check_equal(story.branch_id, copy, "a branch and its copy")


def test_a_difference_from_the_replay_is_noticed() -> None:
    told = tell(SHORT)
    replayed = Replay(told).as_of(60)
    assert differences(replayed, told.ledger.rows) == []
    lore = LoggedTable.LORE
    first, second = list(replayed[lore])[:2]
    replayed[lore][first] = {**replayed[lore][first], "priority": 51}
    del replayed[lore][second]
    assert sorted(differences(replayed, told.ledger.rows)) == [f"lore {first}", f"lore {second}"]


def test_what_is_known_too_early_is_noticed() -> None:
    answer = {"branch": {"lore": [{"title": "canary-7 a canary-9"}, {"body": ["canary-8"]}]}}
    assert leaks.check("lore", 9, answer) == 3
    expected = r"^2 texts of lore as of entry 7 are known too early: "
    expected += r"branch\.lore\.title \(9\), branch\.lore\.body \(8\)$"
    with pytest.raises(RuntimeError, match=expected):
        leaks.check("lore", 7, answer)


def test_every_list_that_can_be_read_as_of_a_moment_is_asked_for() -> None:
    asked = {each.name for each in leaks.questions()}
    assert asked >= {"character", "entries", "chapters", "entities", "relationships", "lore"}
    assert asked >= {"threads", "happenings", "eraFlips", "translations"}


def quietly(_: str) -> None:
    pass


async def test_w7_and_b6_compare_equal_forks(dsn: str) -> None:
    fork = await forking.measure(dsn, 1, quietly, SHORT)
    assert list(fork["seconds"]) == ["services", "bare_sql"]
    assert len(fork["vs_bare_sql_rounds"]) == 1
    grid = await forking.measure_grid(dsn, 1, quietly, (40,))
    assert list(grid["40"]) == ["head", "middle", "start"]
    rows = [each["rows"] for each in grid["40"].values()]
    assert rows == sorted(rows, reverse=True)
    for each in grid["40"].values():
        waits = each["writer_waits_milliseconds"]
        assert waits["writes"]
        assert waits["longest"] >= waits["p99"]
    printed = table(result(W7=fork, B6=grid))
    assert f"W7, a fork of a branch of {fork['rows']:,} rows: " in printed
    assert "B6, forks by entries of the story and place" in printed


async def test_w8_and_b7_compare_equal_ways_back(dsn: str) -> None:
    rollback = await reversing.measure(dsn, 1, quietly, SHORT, 100)
    assert 80 <= rollback["deltas"] <= 120
    calm = Shape(40, characters=12, edits=0.6, has_late_facts=False)
    turns = await reversing.measure_turns(dsn, 1, quietly, calm, (1, 10), 2)
    assert turns["one_turn"]["undo_milliseconds"]["times"] == 2
    assert turns["turns"]["1"]["steps"] == 1
    assert turns["turns"]["10"]["steps"] >= 10
    printed = table(result(W8=rollback, B7=turns))
    assert f"W8, {rollback['deltas']} changes rolled back in a branch of " in printed
    assert "one turn undone in " in printed


async def test_b10_finds_every_moment_equal_to_the_replay(dsn: str) -> None:
    past = await past_moments.measure(dsn, 1, quietly, SHORT, (5, 40), 2)
    assert past["moments_equal_to_replay"] == 8
    assert [each["times"] for each in past["milliseconds_by_distance"].values()] == [2, 2]
    assert "8 moments equal to the replay" in table(result(B10=past))


async def test_b2_finds_nothing_that_is_known_too_early(dsn: str) -> None:
    shape = Shape(60, characters=12, edits=0.6, is_marked=True)
    asked = len(leaks.questions()) - 1
    found = await leaks.measure(dsn, 1, quietly, shape, asked)
    assert found["questions"] == asked * 2
    assert found["texts_known"] > 1_000
    assert len(found["milliseconds"]) == len(leaks.questions())
    assert "0 of them known too early" in table(result(B2=found))


def test_every_workload_can_be_asked_for_by_name() -> None:
    assert set(measure.NAMES) == {f"W{number}" for number in range(1, 11)} | {
        f"B{number}" for number in range(2, 11)
    }


@pytest.mark.parametrize("scale", ["0", "huge", "-3"])
def test_a_scale_that_is_none_is_refused(scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["seed", scale])
    assert "argument scale" in capsys.readouterr().err


async def test_stories_of_all_sizes_can_be_made_one_after_the_other(
    database: Database, connection: Any
) -> None:
    assert list(SIZES) == ["small", "medium", "large"]
    seeds = []
    for _ in range(2):
        seeds.append(await stories.unused_seed(database))
        await stories.fill(database, shape_of(20), seeds[-1])
    assert seeds == [0, 1]
    owners = await connection.fetch("SELECT DISTINCT owner_user_id FROM stories")
    assert [row[0] for row in owners] == [(await stories.local_viewer(database)).user_id]
