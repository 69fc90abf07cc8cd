"""How a life ends: death, the time in which it can be taken back, the archive."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from db.engine import Database
from db.enums import CharacterStatus, NodeStatus, NodeType, PetitionStatus, Realm, RunStatus
from db.tables import Brief, Character, Run, RuntimeSeat, TreeNode
from services import characters, endings, mirrors, runs, seats
from services.access import require_row
from services.errors import Conflict, DomainError, Invalid, NotFound
from services.runs import records
from tests.conftest import People
from tests.factories import make_character, make_tree
from tests.lives import NO_TIME, a_deceased, approve, archive, die, now, request
from tests.trees import fetch, grown, refused, run_sql, until_somebody_waits

ASKING: dict[str, Any] = {"provider": "demo", "model": None}
STATES = {
    "death_pending": "UPDATE characters SET status = 'death_pending', died_at = now(),"
    " cooling_off_until = now() + interval '1 day'",
    "overdue": "UPDATE characters SET status = 'death_pending', died_at = now() - interval '2 day',"
    " cooling_off_until = now() - interval '1 day'",
    "deceased": "UPDATE characters SET status = 'deceased', died_at = now(), archived_at = now(),"
    " cooling_off_until = now() - interval '1 day'",
    "purged": "UPDATE characters SET status = 'purged', died_at = now(), archived_at = now(),"
    " cooling_off_until = now() - interval '1 day', erased_at = now()",
}


async def acts(database: Database, *names: str) -> list[Any]:
    return await fetch(
        database,
        "SELECT action, outcome, actor_user_id IS NULL FROM audit_events"
        " WHERE action = ANY($1) ORDER BY created_at, id",
        list(names),
    )


async def a_character(database: Database, people: People) -> Character:
    async with database.writing() as writing:
        return await make_character(writing, people.owner)


async def test_asking_for_a_death_changes_nothing_but_opens_a_petition(
    database: Database, people: People
) -> None:
    """Rule E1."""
    character = await a_character(database, people)
    petition = await request(database, people.owner, character, 7.0)
    assert (petition.kind, petition.status) == ("death", PetitionStatus.PENDING)
    assert petition.brief == Brief(
        action="End the life of this character.",
        target="Ada",
        purpose="It is time.",
        data_involved="Everything of the character is kept and stays readable.",
        consequence="Its runs are stopped, and nothing can be said to it or changed any more.",
        reversibility="Can be taken back within 7 days of the approval, and not after.",
    )
    assert dict(await now(database, people.owner, character)) == dict(character)
    await refused(
        database,
        Conflict,
        "PETITION_PENDING",
        ("input", "characterId"),
        lambda w: endings.request_death(w, people.owner, character.id, "Again.", 7.0),
    )


@pytest.mark.parametrize(
    ("purpose", "code"), [(" ", "TEXT_EMPTY"), ("x" * 501, "TEXT_TOO_LONG"), ("\0", "INVALID_TEXT")]
)
async def test_a_death_has_a_purpose(
    database: Database, people: People, purpose: str, code: str
) -> None:
    character = await a_character(database, people)
    await refused(
        database,
        Invalid,
        code,
        ("input", "purpose"),
        lambda w: endings.request_death(w, people.owner, character.id, purpose, 7.0),
    )


async def test_an_approved_death_begins_the_time_in_which_it_can_be_taken_back(
    database: Database, people: People
) -> None:
    """Rule E1."""
    character = await a_character(database, people)
    dying = await die(database, people.owner, character, 7.0)
    assert dying.status == CharacterStatus.DEATH_PENDING
    assert dying.died_at is not None
    assert dying.cooling_off_until == dying.died_at + timedelta(days=7)
    assert (dying.archived_at, dying.erased_at) == (None, None)
    assert dying.version == character.version + 1
    assert await archive(database) == 0
    assert await acts(database, "death_confirmed") == [("death_confirmed", "confirmed", False)]


async def test_a_death_can_be_taken_back_in_time(database: Database, people: People) -> None:
    """Rule E2."""
    character = await a_character(database, people)
    await die(database, people.owner, character)
    async with database.writing() as writing:
        revived = await endings.revoke_death(writing, people.owner, character.id)
    assert revived.status == CharacterStatus.ACTIVE
    assert (revived.died_at, revived.cooling_off_until) == (None, None)
    assert await acts(database, "death_revoked") == [("death_revoked", "allowed", False)]
    async with database.writing() as writing:
        await make_tree(writing, people.owner, revived)
    # And it can die again.
    assert (await die(database, people.owner, revived)).status == CharacterStatus.DEATH_PENDING


@pytest.mark.parametrize("state", ["overdue", "deceased", "purged"])
async def test_a_death_cannot_be_taken_back_later(
    database: Database, people: People, state: str
) -> None:
    """Rule E2."""
    character = await a_character(database, people)
    await run_sql(database, STATES[state])
    await refused(
        database,
        Conflict,
        "COOLING_OFF_OVER",
        ("input", "characterId"),
        lambda w: endings.revoke_death(w, people.owner, character.id),
    )


async def test_who_lives_has_no_death_to_take_back(database: Database, people: People) -> None:
    character = await a_character(database, people)
    await refused(
        database,
        Conflict,
        "DEATH_NOT_PENDING",
        ("input", "characterId"),
        lambda w: endings.revoke_death(w, people.owner, character.id),
    )


async def test_a_character_becomes_an_archive_when_its_time_is_over(
    database: Database, people: People
) -> None:
    """Rule E3."""
    deceased = await a_deceased(database, people)
    assert deceased.status == CharacterStatus.DECEASED
    # Since the time was over, not since somebody came to write it down.
    assert deceased.archived_at == deceased.cooling_off_until
    assert await archive(database) == 0
    assert await acts(database, "character_archived") == [("character_archived", "allowed", True)]


async def test_two_servers_archive_a_character_once(database: Database, people: People) -> None:
    character = await a_character(database, people)
    await die(database, people.owner, character, NO_TIME)
    assert sorted(await asyncio.gather(archive(database), archive(database))) == [0, 1]


async def test_others_neither_end_nor_revive_a_life(database: Database, people: People) -> None:
    """Rule C3."""
    character = await a_character(database, people)
    for viewer in (people.stranger, people.anonymous):
        await refused(
            database,
            NotFound,
            "NOT_FOUND",
            ("input", "characterId"),
            lambda w, v=viewer: endings.request_death(w, v, character.id, "Why not?", 7.0),
        )
    await die(database, people.owner, character)
    for viewer in (people.stranger, people.anonymous):
        await refused(
            database,
            NotFound,
            "NOT_FOUND",
            ("input", "characterId"),
            lambda w, v=viewer: endings.revoke_death(w, v, character.id),
        )


@pytest.mark.parametrize("state", STATES)
async def test_who_does_not_live_cannot_die(database: Database, people: People, state: str) -> None:
    character = await a_character(database, people)
    petition = await request(database, people.owner, character)
    await run_sql(database, STATES[state])
    await refused(
        database,
        Conflict,
        "CHARACTER_READ_ONLY",
        ("input", "characterId"),
        lambda w: endings.request_death(w, people.owner, character.id, "Again.", 7.0),
    )
    await refused(
        database,
        Conflict,
        "CHARACTER_READ_ONLY",
        ("input", "petitionId"),
        lambda w: endings.carry_out_death(w, people.owner, petition),
    )


async def test_death_stops_what_waits_and_asks_what_runs_to_stop(
    database: Database, people: People
) -> None:
    """Rule E1. The server that works on an answer keeps its text, and gives the seat back."""
    character = await a_character(database, people)
    async with database.writing() as writing:
        asked = []
        for _ in range(2):
            tree = await make_tree(writing, people.owner, character)
            asked.append(
                await runs.ask_tree(writing, people.owner, tree.id, None, "Well?", **ASKING)
            )
        running = await records.take_next_run(writing, "server_a", "demo", 60)
    assert running is not None
    assert running.id == asked[0][1].id
    await die(database, people.owner, character)
    async with database.reading() as reading:
        first, second = [await require_row(reading, people.owner, Run, r.id) for _, r in asked]
        held = (await characters.seats_of_characters(reading, people.owner, [character.id]))[
            character.id
        ]
    assert (first.status, first.is_cancel_requested) == (RunStatus.RUNNING, True)
    assert second.status == RunStatus.CANCELLED
    assert held.lease_holder == "server_a"
    async with database.writing() as writing:
        await records.end_run(
            writing,
            first,
            "server_a",
            status=RunStatus.CANCELLED,
            node_status=NodeStatus.PARTIAL,
            content="Wait, I",
            reasoning="",
            model="demo",
        )
        node = await require_row(writing, people.owner, TreeNode, first.node_id or "")
        seat = await require_row(writing, people.owner, RuntimeSeat, held.id)
    assert (node.status, node.content) == (NodeStatus.PARTIAL, "Wait, I")
    assert (seat.lease_holder, seat.epoch) == (None, held.epoch)


async def test_death_frees_the_seat_of_a_runtime_elsewhere(
    database: Database, people: People
) -> None:
    character = await a_character(database, people)
    async with database.writing() as writing:
        await seats.acquire_seat(writing, people.owner, character.id, "a phone", 60)
    await die(database, people.owner, character)
    assert await fetch(database, "SELECT lease_holder, lease_expires_at FROM runtime_seats") == [
        (None, None)
    ]


async def test_what_is_begun_before_a_death_is_done_before_it(
    database: Database, people: People
) -> None:
    """Rule E4. No question slips in between the look at the character and its death."""
    tree = await grown(database, people)
    character = await now_of(database, people, tree.tree.character_id)
    petition = await request(database, people.owner, character)
    async with database.writing() as writing:
        _, run = await runs.ask_tree(
            writing, people.owner, tree.tree.id, tree.last.id, "And?", **ASKING
        )
        dying = asyncio.create_task(approve(database, people.owner, petition))
        await until_somebody_waits(database)
    await dying
    async with database.reading() as reading:
        asked = await require_row(reading, people.owner, Run, run.id)
    assert asked.status == RunStatus.CANCELLED


async def test_what_is_begun_after_a_death_waits_for_it_and_is_refused(
    database: Database, people: People
) -> None:
    """Rule E4."""
    tree = await grown(database, people)
    character = await now_of(database, people, tree.tree.character_id)
    petition = await request(database, people.owner, character)

    async def ask() -> None:
        async with database.writing() as writing:
            await runs.ask_tree(writing, people.owner, tree.tree.id, tree.last.id, "And?", **ASKING)

    async with database.writing() as writing:
        await endings.carry_out_death(writing, people.owner, petition)
        asking = asyncio.create_task(ask())
        await until_somebody_waits(database)
    with pytest.raises(Conflict) as caught:
        await asking
    assert caught.value.code == "CHARACTER_READ_ONLY"
    assert await fetch(database, "SELECT count(*) FROM runs") == [(0,)]


async def now_of(database: Database, people: People, character_id: str) -> Character:
    async with database.reading() as reading:
        return await require_row(reading, people.owner, Character, character_id)


async def test_deaths_and_talk_at_the_same_time_never_block_each_other(
    database: Database, people: People
) -> None:
    """Rule E4. Locks are taken in one order, so there is no deadlock."""
    tree = await grown(database, people)
    character = await now_of(database, people, tree.tree.character_id)

    async def say() -> str:
        try:
            async with database.writing() as writing:
                await mirrors.edit_node(writing, people.owner, tree.last.id, "New.")
        except DomainError as error:
            return error.code
        return "said"

    async def talk() -> None:
        for _ in range(8):
            assert await say() in {"said", "CHARACTER_READ_ONLY"}

    async def end() -> None:
        for _ in range(4):
            await die(database, people.owner, character)
            async with database.writing() as writing:
                await endings.revoke_death(writing, people.owner, character.id)

    await asyncio.gather(talk(), talk(), end())


@pytest.mark.parametrize("state", STATES)
async def test_the_database_itself_lets_no_tree_grow_after_a_death(
    database: Database, people: People, state: str
) -> None:
    """Rule E5."""
    tree = await grown(database, people)
    await run_sql(database, STATES[state])
    with pytest.raises(asyncpg.PostgresError) as caught:
        async with database.writing() as writing:
            await writing.insert(
                TreeNode,
                tree_id=tree.tree.id,
                parent_node_id=tree.first.id,
                node_type=NodeType.CANDIDATE_ANSWER,
                status=NodeStatus.SOLIDIFIED,
                realm=Realm.REALITY,
                content="I am still here.",
            )
    assert caught.value.sqlstate == "MG004"


async def test_custodianship_goes_on_with_the_archive(database: Database, people: People) -> None:
    """Rule E6."""
    deceased = await a_deceased(database, people)
    async with database.reading() as reading:
        found = await characters.custodianships_of_characters(reading, people.owner, [deceased.id])
        hidden = await characters.custodianships_of_characters(
            reading, people.stranger, [deceased.id]
        )
    custody = found[deceased.id]
    assert (custody.user_id, custody.status) == (people.owner.user_id, "active")
    assert custody.ended_at is None
    assert hidden == {}


async def test_a_character_has_one_custodian(database: Database, people: People) -> None:
    """Rule E6, held by the database."""
    character = await a_character(database, people)
    with pytest.raises(asyncpg.UniqueViolationError, match="uq_custodianships_character_id"):
        await run_sql(
            database,
            "INSERT INTO custodianships (id, user_id, character_id, status)"
            " VALUES ('cust_other', $1, $2, 'active')",
            people.stranger.user_id,
            character.id,
        )
