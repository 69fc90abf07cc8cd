"""Seats: runtimes elsewhere take and keep them, custodians move them. What servers do about it is
in `runs/test_moved_seats.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.reading import Writing
from db.tables import RuntimeSeat
from services import seats
from services.access import Viewer
from services.errors import Conflict, DomainError, Invalid, NotFound
from tests.conftest import People
from tests.factories import make_character
from tests.trees import fetch, refused, run_sql

CHARACTER = ("input", "characterId")
EPOCH = ("input", "epoch")
HOLDER = ("input", "holder")
LEASE = ("input", "leaseSeconds")


async def a_character(database: Database, viewer: Viewer) -> str:
    async with database.writing() as writing:
        return (await make_character(writing, viewer)).id


async def do(database: Database, work: Callable[[Writing], Awaitable[RuntimeSeat]]) -> RuntimeSeat:
    async with database.writing() as writing:
        return await work(writing)


async def clock(database: Database) -> Any:
    ((now,),) = await fetch(database, "SELECT clock_timestamp()")
    return now


async def seat_acts(database: Database) -> list[Any]:
    rows = await fetch(
        database,
        "SELECT action, arguments_json FROM audit_events WHERE action LIKE 'seat_%'"
        " ORDER BY created_at, id",
    )
    return [(action, arguments["epoch"]) for action, arguments in rows]


async def test_a_seat_is_taken_kept_and_given_back(database: Database, people: People) -> None:
    """Rule S1."""
    owner, character = people.owner, await a_character(database, people.owner)
    before = await clock(database)
    seat = await do(
        database, lambda w: seats.acquire_seat(w, owner, character, "Ada's phone", 60.0)
    )
    after = await clock(database)
    assert (seat.lease_holder, seat.epoch) == ("Ada's phone", 2)
    assert seat.lease_expires_at is not None
    assert before < seat.lease_expires_at - timedelta(seconds=60) < after
    seat = await do(
        database, lambda w: seats.renew_seat(w, owner, character, "Ada's phone", 2, 3600.0)
    )
    assert (seat.lease_holder, seat.epoch) == ("Ada's phone", 2)
    assert seat.lease_expires_at is not None
    assert after < seat.lease_expires_at - timedelta(hours=1) < await clock(database)
    seat = await do(database, lambda w: seats.release_seat(w, owner, character, 2))
    assert (seat.lease_holder, seat.lease_expires_at, seat.epoch) == (None, None, 2)
    # A free seat stays as it is.
    again = await do(database, lambda w: seats.release_seat(w, owner, character))
    assert (again.lease_holder, again.lease_expires_at, again.epoch) == (None, None, 2)
    assert await seat_acts(database) == [
        ("seat_acquired", 2),
        ("seat_renewed", 2),
        ("seat_released", 2),
    ]


async def test_one_at_a_time_sits_on_a_seat(database: Database, people: People) -> None:
    """Rule S1."""
    owner, character = people.owner, await a_character(database, people.owner)

    async def take(name: str) -> int:
        seat = await do(database, lambda w: seats.acquire_seat(w, owner, character, name, 60))
        return seat.epoch

    results = await asyncio.gather(*(take(name) for name in "abcd"), return_exceptions=True)
    refusals = [each.code for each in results if isinstance(each, DomainError)]
    assert refusals == ["SEAT_LEASE_CONFLICT"] * 3
    assert [each for each in results if isinstance(each, int)] == [2]


async def test_taking_one_s_own_seat_again_outdates_what_was_begun_before(
    database: Database, people: People
) -> None:
    """Rule S1."""
    owner, character = people.owner, await a_character(database, people.owner)
    for epoch in (2, 3):
        seat = await do(database, lambda w: seats.acquire_seat(w, owner, character, "phone", 60))
        assert seat.epoch == epoch
    await refused(
        database,
        Conflict,
        "STALE_SEAT_EPOCH",
        EPOCH,
        lambda w: seats.renew_seat(w, owner, character, "phone", 2, 60),
    )


async def test_a_lease_that_ran_out_is_kept_until_somebody_else_takes_it(
    database: Database, people: People
) -> None:
    """Rule S1."""
    owner, character = people.owner, await a_character(database, people.owner)
    await do(database, lambda w: seats.acquire_seat(w, owner, character, "phone", 60))
    await run_sql(database, "UPDATE runtime_seats SET lease_expires_at = now() - interval '1 s'")
    seat = await do(database, lambda w: seats.renew_seat(w, owner, character, "phone", 2, 60))
    assert seat.epoch == 2
    await run_sql(database, "UPDATE runtime_seats SET lease_expires_at = now() - interval '1 s'")
    seat = await do(database, lambda w: seats.acquire_seat(w, owner, character, "desk", 60))
    assert (seat.lease_holder, seat.epoch) == ("desk", 3)
    await refused(
        database,
        Conflict,
        "STALE_SEAT_EPOCH",
        EPOCH,
        lambda w: seats.renew_seat(w, owner, character, "phone", 2, 60),
    )
    await refused(
        database,
        Conflict,
        "SEAT_LEASE_CONFLICT",
        HOLDER,
        lambda w: seats.renew_seat(w, owner, character, "phone", 3, 60),
    )


async def test_a_seat_is_handed_over_without_a_gap(database: Database, people: People) -> None:
    """Rule S3."""
    owner, character = people.owner, await a_character(database, people.owner)
    hand_over = seats.hand_over_seat
    await refused(
        database,
        Conflict,
        "SEAT_NOT_HELD",
        CHARACTER,
        lambda w: hand_over(w, owner, character, "desk", 1, 60),
    )
    await do(database, lambda w: seats.acquire_seat(w, owner, character, "phone", 60))
    await refused(
        database,
        Conflict,
        "STALE_SEAT_EPOCH",
        EPOCH,
        lambda w: hand_over(w, owner, character, "desk", 1, 60),
    )
    seat = await do(database, lambda w: hand_over(w, owner, character, "desk", 2, 60))
    assert (seat.lease_holder, seat.epoch) == ("desk", 3)
    await refused(
        database,
        Conflict,
        "STALE_SEAT_EPOCH",
        EPOCH,
        lambda w: seats.renew_seat(w, owner, character, "phone", 2, 60),
    )
    assert await seat_acts(database) == [("seat_acquired", 2), ("seat_handed_over", 3)]


async def test_a_seat_is_taken_away_from_whoever_holds_it(
    database: Database, people: People
) -> None:
    """Rule S3."""
    owner, character = people.owner, await a_character(database, people.owner)
    await do(database, lambda w: seats.acquire_seat(w, owner, character, "phone", 60))
    seat = await do(database, lambda w: seats.migrate_seat(w, owner, character))
    assert (seat.lease_holder, seat.lease_expires_at, seat.epoch) == (None, None, 3)
    await refused(
        database,
        Conflict,
        "STALE_SEAT_EPOCH",
        EPOCH,
        lambda w: seats.release_seat(w, owner, character, 2),
    )
    assert await seat_acts(database) == [("seat_acquired", 2), ("seat_migrated", 3)]


OFFERS: dict[str, tuple[str, float, str, tuple[str, ...]]] = {
    "a server's name": ("server_a", 60, "HOLDER_RESERVED", HOLDER),
    "no name": (" ", 60, "TEXT_EMPTY", HOLDER),
    "a long name": ("x" * 101, 60, "TEXT_TOO_LONG", HOLDER),
    "a name that cannot be stored": ("a\0", 60, "INVALID_TEXT", HOLDER),
    "no time": ("phone", 0.999, "LEASE_OUT_OF_RANGE", LEASE),
    "too much time": ("phone", 3600.1, "LEASE_OUT_OF_RANGE", LEASE),
}


@pytest.mark.parametrize("offer", OFFERS)
async def test_what_is_offered_for_a_seat_is_checked(
    database: Database, people: People, offer: str
) -> None:
    owner, character = people.owner, await a_character(database, people.owner)
    holder, lease, code, path = OFFERS[offer]
    for work in (
        lambda w: seats.acquire_seat(w, owner, character, holder, lease),
        lambda w: seats.renew_seat(w, owner, character, holder, 1, lease),
        lambda w: seats.hand_over_seat(w, owner, character, holder, 1, lease),
    ):
        await refused(database, Invalid, code, path, work)


CHANGES: dict[str, Callable[[Writing, Viewer, str], Awaitable[Any]]] = {
    "acquire": lambda w, v, it: seats.acquire_seat(w, v, it, "phone", 60),
    "renew": lambda w, v, it: seats.renew_seat(w, v, it, "phone", 1, 60),
    "release": lambda w, v, it: seats.release_seat(w, v, it),
    "migrate": lambda w, v, it: seats.migrate_seat(w, v, it),
    "hand over": lambda w, v, it: seats.hand_over_seat(w, v, it, "phone", 1, 60),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_seats_are_the_custodian_s_while_the_character_lives(
    database: Database, people: People, name: str
) -> None:
    """Rules C3, E4."""
    character = await a_character(database, people.owner)
    change = CHANGES[name]
    for viewer in (people.stranger, people.anonymous):
        await refused(
            database, NotFound, "NOT_FOUND", CHARACTER, lambda w, v=viewer: change(w, v, character)
        )
    await run_sql(database, "UPDATE characters SET status = 'deceased'")
    await refused(
        database,
        Conflict,
        "CHARACTER_READ_ONLY",
        CHARACTER,
        lambda w: change(w, people.owner, character),
    )


async def outcome(
    database: Database, work: Callable[[Writing], Awaitable[RuntimeSeat]]
) -> tuple[str | None, int] | str:
    """Who sits on the seat afterwards and its epoch, or the code of the refusal."""
    try:
        seat = await do(database, work)
    except DomainError as error:
        return error.code
    return seat.lease_holder, seat.epoch


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "renew", "release", "migrate", "hand over"]),
        st.sampled_from(["phone", "desk"]),
        st.integers(0, 2),
    ),
    max_size=12,
)


@given(steps=STEPS)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_the_epoch_rises_exactly_when_the_seat_changes_hands(
    database: Database, people: People, steps: list[tuple[str, str, int]]
) -> None:
    """Rules S1, S3. Against a model of the seat: who sits on it, and its epoch."""
    character = await a_character(database, people.owner)
    holder: str | None = None
    epoch = 1
    for name, who, back in steps:
        known = epoch - back
        expected: tuple[str | None, int] | str
        if name == "acquire":
            is_free = holder in (None, who)
            expected = (who, epoch + 1) if is_free else "SEAT_LEASE_CONFLICT"
            work = lambda w, x=who: seats.acquire_seat(w, people.owner, character, x, 60)  # noqa: E731
        elif name == "renew":
            expected = (who, epoch) if holder == who else "SEAT_LEASE_CONFLICT"
            expected = expected if known == epoch else "STALE_SEAT_EPOCH"
            work = lambda w, x=who, e=known: seats.renew_seat(  # noqa: E731
                w, people.owner, character, x, e, 60
            )
        elif name == "release":
            expected = (None, epoch) if known == epoch else "STALE_SEAT_EPOCH"
            work = lambda w, e=known: seats.release_seat(w, people.owner, character, e)  # noqa: E731
        elif name == "migrate":
            expected = (None, epoch + 1)
            work = lambda w: seats.migrate_seat(w, people.owner, character)  # noqa: E731
        else:
            expected = (who, epoch + 1) if holder is not None else "SEAT_NOT_HELD"
            expected = expected if known == epoch else "STALE_SEAT_EPOCH"
            work = lambda w, x=who, e=known: seats.hand_over_seat(  # noqa: E731
                w, people.owner, character, x, e, 60
            )
        found = await outcome(database, work)
        assert found == expected
        if not isinstance(found, str):
            holder, epoch = found
