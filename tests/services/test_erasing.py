"""Erasing: who may, when, in which order, and that it is done whole or not at all. That nothing is
left is proved through the API, in `tests/e2e/test_erasing.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from db.engine import Database
from db.enums import CharacterStatus, Realm
from db.tables import Canonization, Character, Run, TreeNode
from services import endings, erasing, mirrors, runs
from services.access import require_row
from services.errors import Conflict, Invalid, NotFound
from services.runs import records
from tests.conftest import People
from tests.e2e.ledgers import Ledger
from tests.factories import make_character
from tests.lives import NO_TIME, a_deceased, archive, die, now
from tests.trees import Grown, fetch, grown, refused, run_sql, until_somebody_waits

CHARACTER = ("input", "characterId")


async def a_talk(database: Database, people: People) -> tuple[Character, Grown]:
    """A character that has died, and what was said with it."""
    tree = await grown(database, people)
    async with database.writing() as writing:
        await mirrors.canonize_path(writing, people.owner, tree.last.id, Realm.REALITY)
        character = await require_row(writing, people.owner, Character, tree.tree.character_id)
    await die(database, people.owner, character, NO_TIME)
    return await now(database, people.owner, character), tree


async def erase(database: Database, people: People, character: Character) -> Character:
    async with database.writing() as writing:
        return await erasing.erase_character(writing, people.owner, character.id, character.name)


@pytest.mark.parametrize("status", ["active", "suspended", "death_pending", "purged"])
async def test_only_an_archive_is_erased(database: Database, people: People, status: str) -> None:
    """Rule E7."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
    await run_sql(
        database,
        "UPDATE characters SET status = $1, cooling_off_until = now() + interval '1 day'",
        status,
    )
    await refused(
        database,
        Conflict,
        "CHARACTER_NOT_DECEASED",
        CHARACTER,
        lambda w: erasing.erase_character(w, people.owner, character.id, "Ada"),
    )


@pytest.mark.parametrize("name", ["", "ada", "Ada ", "Eve"])
async def test_its_name_must_be_said(database: Database, people: People, name: str) -> None:
    """Rule E7."""
    character = await a_deceased(database, people)
    await refused(
        database,
        Invalid,
        "CONFIRMATION_REQUIRED",
        ("input", "name"),
        lambda w: erasing.erase_character(w, people.owner, character.id, name),
    )


async def test_others_erase_nothing(database: Database, people: People) -> None:
    """Rule C3."""
    character = await a_deceased(database, people)
    for viewer in (people.stranger, people.anonymous):
        await refused(
            database,
            NotFound,
            "NOT_FOUND",
            CHARACTER,
            lambda w, v=viewer: erasing.erase_character(w, v, character.id, "Ada"),
        )


async def test_an_erasure_needs_no_round_of_chores_and_is_done_once(
    database: Database, people: People
) -> None:
    """Rules E3, E7."""
    character, tree = await a_talk(database, people)
    assert character.status == CharacterStatus.DEATH_PENDING
    erased = await erase(database, people, character)
    assert erased.status == CharacterStatus.PURGED
    assert (erased.name, erased.identity_baseline, erased.embryo_draft_id) == ("", {}, None)
    assert erased.archived_at == character.cooling_off_until
    assert await archive(database) == 0
    await refused(
        database,
        Conflict,
        "CHARACTER_NOT_DECEASED",
        CHARACTER,
        lambda w: erasing.erase_character(w, people.owner, character.id, ""),
    )
    async with database.reading() as reading:
        node = await require_row(reading, people.owner, TreeNode, tree.last.id)
        path = await mirrors.paths_to_nodes(reading, people.owner, [tree.last.id])
    # The shape of the tree stays.
    assert [each.id for each in path[tree.last.id]] == [
        tree.first.id,
        tree.chosen.id,
        tree.second.id,
        tree.last.id,
    ]
    assert (node.content, node.reasoning, node.is_erased) == ("", None, True)
    assert (node.status, node.model) == (tree.last.status, tree.last.model)


async def test_a_digest_without_its_texts_cannot_be_checked(
    database: Database, people: People
) -> None:
    """Rule E10."""
    character, _ = await a_talk(database, people)

    async def flags() -> list[bool | None]:
        ((record_id,),) = await fetch(database, "SELECT id FROM canonizations")
        async with database.reading() as reading:
            record = await require_row(reading, people.owner, Canonization, record_id)
            return await mirrors.intact_flags(reading, people.owner, [record])

    assert await flags() == [True]
    await erase(database, people, character)
    assert await flags() == [None]


async def test_the_order_is_that_of_the_specification(database: Database, people: People) -> None:
    """Rule E8."""
    places = list(dict.fromkeys(name.partition(".")[0] for name, _ in erasing.STEPS))
    assert places == ["authority", "vectors", "caches", "derived_views", "proactive_candidates"]
    character, _ = await a_talk(database, people)
    await erase(database, people, character)
    ((counts, outcome),) = await fetch(
        database,
        "SELECT arguments_json, outcome FROM audit_events WHERE action = 'data_erased'",
    )
    assert set(counts) == {name for name, _ in erasing.STEPS}
    done = {name: count for name, count in counts.items() if count}
    assert done == {
        "authority.tree_nodes": 6,
        "authority.mirror_trees": 1,
        "authority.identity_packages": 1,
        "authority.confirmations": 1,
        "authority.characters": 1,
        "authority.embryo_drafts": 1,
    }
    assert outcome == "allowed"


async def test_what_still_runs_ends_with_the_erasure(database: Database, people: People) -> None:
    """Rule E7. A server that has not heard of the death yet stores nothing afterwards."""
    tree = await grown(database, people)
    async with database.writing() as writing:
        asked = await runs.regenerate_answer(
            writing, people.owner, tree.second.id, provider="demo", model=None
        )
        running = await records.take_next_run(writing, "server_a", "demo", 60)
        character = await require_row(writing, people.owner, Character, tree.tree.character_id)
    assert running is not None
    await die(database, people.owner, character, NO_TIME)
    await erase(database, people, character)
    async with database.reading() as reading:
        run = await require_row(reading, people.owner, Run, asked.id)
        node = await require_row(reading, people.owner, TreeNode, run.node_id or "")
    assert (run.status, run.error_code, run.error_message) == ("failed", "STALE_SEAT_EPOCH", None)
    assert (node.status, node.content, node.is_erased) == ("partial", "", True)


# Rows that a late step of an erasure has to change.
LATE = ("embryo_drafts", "confirmations", "custodianships")


@pytest.mark.parametrize("table", LATE)
async def test_an_erasure_that_breaks_off_has_erased_nothing(
    database: Database, people: People, table: str
) -> None:
    """Rule E8."""
    character, _ = await a_talk(database, people)
    before = await Ledger(database.dsn).fingerprint()
    holding = await asyncpg.connect(database.dsn)
    try:
        async with holding.transaction():
            await holding.execute(f"SELECT 1 FROM {table} FOR UPDATE")
            erased = asyncio.create_task(erase(database, people, character))
            await until_somebody_waits(database)
            await holding.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
                await erased
    finally:
        await holding.close()
    assert await Ledger(database.dsn).fingerprint() == before
    assert (await erase(database, people, character)).status == CharacterStatus.PURGED


TAMPERINGS: dict[str, str] = {
    "a text comes back": "UPDATE tree_nodes SET content = 'I never said that.'",
    "a thought comes back": "UPDATE tree_nodes SET reasoning = 'Hm.'",
    "it was never erased": "UPDATE tree_nodes SET erased_at = NULL",
    "it was erased at another time": "UPDATE tree_nodes SET erased_at = now()",
    "it was another one": "UPDATE tree_nodes SET content_version = 9",
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
async def test_a_tombstone_stays_as_it_is(
    database: Database, people: People, tampering: str
) -> None:
    """Rules M1, E9, held by the database."""
    character, _ = await a_talk(database, people)
    await erase(database, people, character)
    with pytest.raises(asyncpg.PostgresError) as caught:
        await run_sql(database, f"{TAMPERINGS[tampering]} WHERE status = 'solidified'")
    assert caught.value.sqlstate == "MG001"


HALF_ERASURES: dict[str, str] = {
    "the text stays": "UPDATE tree_nodes SET erased_at = now()",
    "there is another text": "UPDATE tree_nodes SET content = 'No.', erased_at = now()",
    "no time is noted": "UPDATE tree_nodes SET content = ''",
    "something else changes": "UPDATE tree_nodes SET content = '', erased_at = now(),"
    " status = 'partial'",
}


@pytest.mark.parametrize("half", HALF_ERASURES)
async def test_a_final_node_is_erased_whole_or_stays(
    database: Database, people: People, half: str
) -> None:
    """Rules M1, E9, held by the database."""
    await grown(database, people)
    with pytest.raises(asyncpg.PostgresError) as caught:
        await run_sql(database, f"{HALF_ERASURES[half]} WHERE status = 'solidified'")
    assert caught.value.sqlstate == "MG001"


async def test_two_erasures_at_once_are_one(database: Database, people: People) -> None:
    """Rule E7."""
    character, _ = await a_talk(database, people)
    results = await asyncio.gather(
        *(erase(database, people, character) for _ in range(2)), return_exceptions=True
    )
    refusals: list[Any] = [each for each in results if isinstance(each, Conflict)]
    assert [each.code for each in refusals] == ["CHARACTER_NOT_DECEASED"]


async def test_a_death_that_was_taken_back_leaves_nothing_to_erase(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
    await die(database, people.owner, character)
    async with database.writing() as writing:
        await endings.revoke_death(writing, people.owner, character.id)
    await refused(
        database,
        Conflict,
        "CHARACTER_NOT_DECEASED",
        CHARACTER,
        lambda w: erasing.erase_character(w, people.owner, character.id, "Ada"),
    )
