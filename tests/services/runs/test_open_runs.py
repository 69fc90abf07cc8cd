"""How many runs may be open, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from db.enums import Realm
from db.reading import Writing
from db.settings import Settings
from db.tables import Run
from services import mirrors, runs
from services.access import Viewer
from services.errors import DomainError, LimitReached, Unavailable
from services.runs import OpenRuns, records
from tests.conftest import People
from tests.factories import make_character, make_talk, make_tree
from tests.services.runs.servers import NO_LIMITS, Bench, a_server, until

PROVIDER: dict[str, Any] = {"provider": "scripted", "model": None}
COUNTED = ("runs", "tree_nodes", "audit_events", "tree_events")


async def counts(bench: Bench) -> list[int]:
    return [(await bench.sql(f"SELECT count(*) FROM {table}"))[0][0] for table in COUNTED]


async def codes_of(asking: list[Awaitable[Any]]) -> list[str]:
    """What became of asks that were made at once, in order: a code, or nothing."""
    results = await asyncio.gather(*asking, return_exceptions=True)
    for each in results:
        if isinstance(each, BaseException) and not isinstance(each, DomainError):
            raise each
    return [each.code if isinstance(each, DomainError) else "" for each in results]


def test_what_holds_unless_said_otherwise_is_what_the_settings_say() -> None:
    settings = Settings(_env_file=None)
    assert OpenRuns() == OpenRuns(
        settings.runs_per_user, settings.runs_per_character, settings.queued_runs
    )


async def test_a_user_has_only_so_many_open_runs(bench: Bench, people: People) -> None:
    """Rule R21. However many ask at once, and in whatever tree; others are not concerned."""
    limits = OpenRuns(per_user=5, per_character=100)
    async with bench.database.writing() as writing:
        trees = [
            await make_tree(writing, people.owner, await make_character(writing, people.owner))
            for _ in range(12)
        ]
        theirs = await make_tree(writing, people.stranger)
    codes = await codes_of([bench.ask("Well?", tree, limits) for tree in trees])
    assert sorted(codes) == [""] * 5 + ["RUNS_OF_USER_LIMIT"] * 7
    before = await counts(bench)
    with pytest.raises(LimitReached) as refused:
        await bench.ask("Well?", trees[codes.index("RUNS_OF_USER_LIMIT")], limits)
    assert (refused.value.code, refused.value.path) == ("RUNS_OF_USER_LIMIT", ("input", "treeId"))
    assert await counts(bench) == before
    async with bench.database.writing() as writing:
        _, other = await runs.ask_tree(
            writing, people.stranger, theirs.id, None, "Well?", limits=limits, **PROVIDER
        )
    # Those in work count like those that wait.
    await bench.sql(
        "UPDATE runs SET status = 'running', lease_holder = 'server_x' WHERE id <> $1", other.id
    )
    assert await codes_of([bench.ask("Well?", None, limits)]) == ["RUNS_OF_USER_LIMIT"]


async def test_an_end_makes_room(bench: Bench) -> None:
    """Rule R21."""
    limits = OpenRuns(per_user=2, per_character=2)
    first, _ = await bench.ask("One?", None, limits), await bench.ask("Two?", None, limits)
    assert await codes_of([bench.ask("Three?", None, limits)]) == ["RUNS_OF_USER_LIMIT"]
    await bench.cancel(first)
    assert await codes_of([bench.ask("Three?", None, limits)]) == [""]
    async with a_server(bench.dsn):

        async def all_ended() -> bool:
            open_runs = await bench.sql("SELECT 1 FROM runs WHERE ended_at IS NULL")
            return not open_runs

        await until(all_ended)
    codes = await codes_of([bench.ask(f"{n}?", None, limits) for n in range(3)])
    assert sorted(codes) == ["", "", "RUNS_OF_USER_LIMIT"]


@pytest.mark.parametrize("how", ["ask", "regenerate", "continue"])
async def test_a_character_has_only_so_many_open_runs(bench: Bench, how: str) -> None:
    """Rule R21. Whichever way they are asked for."""
    limits = OpenRuns(per_user=100, per_character=3)
    async with bench.database.writing() as writing:
        path = await make_talk(writing, bench.viewer, bench.tree, turns=1)
        elsewhere = await make_tree(writing, bench.viewer, topic="Another character's")
    question, answer = path
    given: dict[str, Any] = {"limits": limits, **PROVIDER}
    ways: dict[str, tuple[str, Callable[[Writing], Awaitable[Any]]]] = {
        "ask": (
            "treeId",
            lambda writing: runs.ask_tree(
                writing, bench.viewer, bench.tree.id, answer.id, "And?", **given
            ),
        ),
        "regenerate": (
            "questionId",
            lambda writing: runs.regenerate_answer(writing, bench.viewer, question.id, **given),
        ),
        "continue": (
            "nodeId",
            lambda writing: runs.continue_node(writing, bench.viewer, answer.id, **given),
        ),
    }
    field, way = ways[how]

    async def go() -> None:
        async with bench.database.writing() as writing:
            await way(writing)

    assert sorted(await codes_of([go() for _ in range(7)])) == (
        [""] * 3 + ["RUNS_OF_CHARACTER_LIMIT"] * 4
    )
    before = await counts(bench)
    with pytest.raises(LimitReached) as refused:
        await go()
    assert refused.value.code == "RUNS_OF_CHARACTER_LIMIT"
    assert refused.value.path == ("input", field)
    assert await counts(bench) == before
    assert await codes_of([bench.ask("Well?", elsewhere, limits)]) == [""]


async def test_a_full_queue_takes_nothing_for_a_while(bench: Bench, people: People) -> None:
    """Rule R22. Counted are everybody's runs that wait."""
    limits = OpenRuns(queued=2)
    async with bench.database.writing() as writing:
        theirs = await make_tree(writing, people.stranger)
        await runs.ask_tree(writing, people.stranger, theirs.id, None, "Well?", **PROVIDER)
    run = await bench.ask("Well?", None, limits)
    before = await counts(bench)
    async with bench.database.writing() as writing:
        tree = await make_tree(writing, bench.viewer)
    with pytest.raises(Unavailable) as refused:
        await bench.ask("Well?", tree, limits)
    assert (refused.value.code, refused.value.path) == ("QUEUE_FULL", ())
    assert refused.value.is_retryable
    assert (await counts(bench))[:2] == before[:2]
    await bench.sql(
        "UPDATE runs SET status = 'running', lease_holder = 'server_x' WHERE id = $1", run.id
    )
    assert await codes_of([bench.ask("Well?", tree, limits)]) == [""]


# --- fairness -------------------------------------------------------------------------------------


async def queue(bench: Bench, viewer: Viewer, count: int) -> list[Run]:
    """Runs of a user's, each with a character of its own."""
    queued = []
    async with bench.database.writing() as writing:
        for number in range(count):
            character = await make_character(writing, viewer, f"Character {number}")
            tree = await mirrors.create_tree(writing, viewer, character.id, "T", Realm.REALITY)
            _, run = await runs.ask_tree(
                writing, viewer, tree.id, None, "Well?", limits=NO_LIMITS, **PROVIDER
            )
            queued.append(run)
    return queued


async def take(bench: Bench, count: int) -> list[str]:
    """The ids of the runs that are taken up next."""
    taken = []
    for _ in range(count):
        async with bench.database.writing() as writing:
            run = await records.take_next_run(writing, "server_x", "scripted", 60)
        assert run is not None
        taken.append(run.id)
    return taken


async def test_many_runs_of_one_user_do_not_delay_the_one_of_another(
    bench: Bench, people: People
) -> None:
    """Rules R1, R23."""
    many = [run.id for run in await queue(bench, people.owner, 12)]
    few = [run.id for run in await queue(bench, people.stranger, 2)]
    assert await take(bench, 8) == [
        many[0],
        few[0],
        many[1],
        few[1],
        *many[2:6],
    ]
    # Those that have ended are no longer counted.
    await bench.sql(
        "UPDATE runs SET status = 'succeeded', ended_at = now(), lease_holder = NULL"
        " WHERE id = ANY($1)",
        many,
    )
    await bench.sql(
        "UPDATE runs SET status = 'queued', ended_at = NULL WHERE id = ANY($1)", many[6:9]
    )
    (late,) = await queue(bench, people.stranger, 1)
    # The other has two in work still, so only then it is a matter of age.
    assert await take(bench, 4) == [many[6], many[7], many[8], late.id]


async def test_the_oldest_of_a_user_goes_first(bench: Bench, people: People) -> None:
    """Rules R1, R23."""
    queued = [run.id for run in await queue(bench, people.owner, 4)]
    await bench.sql(
        "UPDATE runs SET created_at = created_at - interval '1 hour' WHERE id = $1", queued[2]
    )
    assert await take(bench, 4) == [queued[2], queued[0], queued[1], queued[3]]
