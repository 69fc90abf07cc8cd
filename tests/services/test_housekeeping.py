"""Chores: done in small steps, by one server at a time, and never the end of anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from db.engine import Database
from db.reading import Writing
from db.tables import Role
from services.housekeeping import Chore, Housekeeper

LONG = 3_600.0


def counting_down(steps: list[int], transactions: list[object]) -> Chore:
    """A chore with so much to do in each step; notes the transactions it was given."""

    async def chore(writing: Writing) -> int:
        transactions.append(writing)
        return steps.pop(0) if steps else 0

    return chore


async def test_a_chore_is_done_step_by_step_until_there_is_nothing_to_do(
    database: Database,
) -> None:
    """Rule R30."""
    transactions: list[object] = []
    chores = {"count": counting_down([3, 2], transactions), "rest": counting_down([], [])}
    keeper = Housekeeper(database, chores, seconds=LONG)
    assert await keeper.run_once() == {"count": 5, "rest": 0}
    assert len(transactions) == len({id(each) for each in transactions}) == 3


async def test_a_step_is_one_transaction(database: Database) -> None:
    """Rule R30. What a step that fails did is undone, and other chores are done all the same."""

    async def fail(writing: Writing) -> int:
        await writing.insert(Role, name="member")
        raise ZeroDivisionError

    async def lose_the_connection(writing: Writing) -> int:
        raise ConnectionResetError

    done: list[object] = []
    chores = {"fail": fail, "lose": lose_the_connection, "do": counting_down([1], done)}
    with capture_logs() as logs:
        found = await Housekeeper(database, chores, seconds=LONG).run_once()
    assert found == {"fail": 0, "lose": 0, "do": 1}
    assert [(each["event"], each["chore"], each["log_level"]) for each in logs] == [
        ("a chore failed", "fail", "error"),
        ("a chore waits for the database", "lose", "warning"),
        ("a chore is done", "do", "info"),
    ]
    async with database.reading() as reading:
        assert await reading._connection.fetchval("SELECT count(*) FROM roles") == 0


async def test_of_several_servers_one_does_a_chore_at_a_time(database: Database) -> None:
    """Rule R30. The other goes on with what is free."""
    begun, may_end = asyncio.Event(), asyncio.Event()
    at_work: list[str] = []

    def holding(name: str) -> Callable[[Writing], Awaitable[int]]:
        async def chore(writing: Writing) -> int:
            at_work.append(name)
            begun.set()
            await may_end.wait()
            return 0

        return chore

    first = Housekeeper(database, {"hold": holding("first")}, seconds=LONG)
    others: list[object] = []
    chores = {"hold": holding("second"), "free": counting_down([7], others)}
    second = Housekeeper(database, chores, seconds=LONG)
    round_of_first = asyncio.create_task(first.run_once())
    await begun.wait()
    assert await second.run_once() == {"hold": 0, "free": 7}
    assert at_work == ["first"]
    may_end.set()
    assert await round_of_first == {"hold": 0}
    assert await second.run_once() == {"hold": 0, "free": 0}
    assert at_work == ["first", "second"]


async def test_rounds_begin_at_once_and_go_on_until_they_are_stopped(database: Database) -> None:
    """Rule R30."""
    rounds = 0
    third = asyncio.Event()

    async def chore(writing: Writing) -> int:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            third.set()
        if rounds % 2:
            raise ZeroDivisionError  # and goes on all the same
        return 0

    keeper = Housekeeper(database, {"count": chore}, seconds=0.001)
    await keeper.stop()  # harmless before it has begun
    with capture_logs():
        keeper.start()
        async with asyncio.timeout(20):
            await third.wait()
        await keeper.stop()
    after = rounds
    await asyncio.sleep(0.01)
    assert rounds == after


async def test_a_step_that_is_stopped_is_undone(database: Database) -> None:
    begun = asyncio.Event()

    async def chore(writing: Writing) -> int:
        await writing.insert(Role, name="member")
        begun.set()
        await asyncio.Event().wait()
        return 1

    keeper = Housekeeper(database, {"insert": chore}, seconds=LONG)
    keeper.start()
    await begun.wait()
    async with asyncio.timeout(20):
        await keeper.stop()
    async with database.reading() as reading:
        assert await reading._connection.fetchval("SELECT count(*) FROM roles") == 0
