"""Petitions: opening, deciding, running out of time, and watching."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from db.engine import Database
from db.enums import PetitionDecision, PetitionKind, PetitionStatus
from db.paging import PageRequest
from db.reading import Writing
from db.tables import Brief, Character, Petition
from services import petitions
from services.access import Viewer, find_row
from services.decisions import ACTS, decide_petition
from services.errors import Conflict, DomainError, Forbidden, NotFound
from services.hub import Hub
from tests.conftest import People
from tests.factories import make_character

BRIEF = Brief("act", "target", "purpose", "data", "consequence", "reversibility")
APPROVE, DENY = PetitionDecision.APPROVE, PetitionDecision.DENY
# The arguments that an act of each kind is carried out with.
ARGUMENTS: dict[PetitionKind, dict[str, Any]] = {
    PetitionKind.DEATH: {"cooling_off_days": 1.0},
    PetitionKind.SOUL_FORGING: {"identity": {"personality": "calm"}},
}


async def ask(
    writing: Writing,
    viewer: Viewer,
    character: Character,
    kind: PetitionKind = PetitionKind.SOUL_FORGING,
) -> Petition:
    return await petitions.open_petition(
        writing, viewer, kind, character, BRIEF, ARGUMENTS.get(kind, {})
    )


async def asked(database: Database, viewer: Viewer) -> Petition:
    """A petition about a new character."""
    async with database.writing() as writing:
        return await ask(writing, viewer, await make_character(writing, viewer))


async def make_overdue(database: Database, petition_id: str) -> None:
    async with database.writing() as writing:
        await writing._connection.execute(
            "UPDATE confirmations SET expires_at = clock_timestamp() WHERE id = $1", petition_id
        )


async def refusal(
    database: Database, viewer: Viewer, petition_id: str, decision: PetitionDecision
) -> DomainError:
    with pytest.raises(DomainError) as refused:
        async with database.writing() as writing:
            await decide_petition(writing, viewer, petition_id, decision)
    return refused.value


async def rows(database: Database, table: str) -> list[dict[str, Any]]:
    async with database.reading() as reading:
        found = await reading._connection.fetch(f"SELECT * FROM {table} ORDER BY 1")
    return [dict(row) for row in found]


async def acts(database: Database, petition_id: str) -> list[tuple[str, str, str | None]]:
    async with database.reading() as reading:
        found = await reading._connection.fetch(
            "SELECT action, outcome, actor_user_id FROM audit_events WHERE subject_id = $1"
            " ORDER BY created_at",
            petition_id,
        )
    return [tuple(row) for row in found]


# --- opening and deciding ----------------------------------------------------------------------


async def test_a_petition_says_what_is_asked_and_until_when(
    database: Database, people: People
) -> None:
    """Rule D1."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
        petition = await ask(writing, people.owner, character)
        found = await find_row(writing, people.owner, Petition, petition.id)
        assert await find_row(writing, people.stranger, Petition, petition.id) is None
    assert found is not None
    assert asdict(found.brief) == asdict(BRIEF)
    assert (found.kind, found.status, found.character_id, found.run_id) == (
        "soul_forging",
        "pending",
        character.id,
        None,
    )
    assert (found.character_version, found.requested_by_user_id) == (1, people.owner.user_id)
    assert timedelta(0) <= found.created_at + timedelta(hours=24) - found.expires_at
    assert found.created_at + timedelta(hours=24) - found.expires_at < timedelta(seconds=10)
    assert await acts(database, petition.id) == [
        ("petition_opened", "allowed", people.owner.user_id)
    ]


async def test_one_of_a_kind_waits_for_a_character(database: Database, people: People) -> None:
    """Rule D2."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
        first = await ask(writing, people.owner, character)
        # Another kind, and another character, are free.
        await ask(writing, people.owner, character, PetitionKind.DEATH)
        other = await make_character(writing, people.owner, "Bea")
        await ask(writing, people.owner, other)
    before = await rows(database, "confirmations")
    with pytest.raises(Conflict) as refused:
        async with database.writing() as writing:
            await ask(writing, people.owner, character)
    assert (refused.value.code, refused.value.path) == (
        "PETITION_PENDING",
        ("input", "characterId"),
    )
    assert await rows(database, "confirmations") == before
    async with database.writing() as writing:
        await decide_petition(writing, people.owner, first.id, DENY)
        await ask(writing, people.owner, character)


async def test_of_two_that_ask_at_once_one_is_refused(database: Database, people: People) -> None:
    """Rule D2."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)

    async def try_to_ask() -> str:
        try:
            async with database.writing() as writing:
                await ask(writing, people.owner, character)
        except Conflict as refused:
            return refused.code
        return "opened"

    outcomes = await asyncio.gather(*(try_to_ask() for _ in range(4)))
    assert sorted(outcomes) == ["PETITION_PENDING"] * 3 + ["opened"]
    assert len(await rows(database, "confirmations")) == 1


@pytest.mark.parametrize(
    ("decision", "status", "outcome"),
    [(APPROVE, "approved", "confirmed"), (DENY, "denied", "denied")],
)
@pytest.mark.parametrize("kind", ACTS)
async def test_a_decision_is_kept_with_who_made_it(
    database: Database,
    people: People,
    kind: PetitionKind,
    decision: PetitionDecision,
    status: str,
    outcome: str,
) -> None:
    """Rule D3."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
        petition = await ask(writing, people.owner, character, kind)
    async with database.writing() as writing:
        settled = await decide_petition(writing, people.owner, petition.id, decision)
    assert (settled.status, settled.decided_by_user_id) == (status, people.owner.user_id)
    assert settled.decided_at is not None
    assert (await acts(database, petition.id))[1:] == [
        (f"petition_{status}", outcome, people.owner.user_id)
    ]
    async with database.reading() as reading:
        now = await find_row(reading, people.owner, Character, character.id)
    assert now is not None
    assert (now.version > character.version) == (decision is APPROVE)
    # Neither the other nor the same decision can follow.
    for again in PetitionDecision:
        error = await refusal(database, people.owner, petition.id, again)
        assert (type(error), error.code, error.path) == (
            Conflict,
            "PETITION_DECIDED",
            ("input", "petitionId"),
        )


@pytest.mark.parametrize("who", ["stranger", "anonymous"])
async def test_nobody_else_decides(database: Database, people: People, who: str) -> None:
    petition = await asked(database, people.owner)
    for petition_id in (petition.id, petition.id[:-1] + "!", "soul_" + petition.id[5:]):
        error = await refusal(database, getattr(people, who), petition_id, APPROVE)
        assert (type(error), error.code) == (NotFound, "NOT_FOUND")
    (row,) = await rows(database, "confirmations")
    assert row["status"] == "pending"


async def test_of_two_decisions_at_once_the_first_holds(database: Database, people: People) -> None:
    """Rule D3."""
    petition = await asked(database, people.owner)

    async def decide(decision: PetitionDecision) -> str:
        try:
            async with database.writing() as writing:
                return (await decide_petition(writing, people.owner, petition.id, decision)).status
        except Conflict as refused:
            return refused.code

    outcomes = await asyncio.gather(*(decide(each) for each in (APPROVE, DENY, APPROVE, DENY)))
    assert outcomes.count("PETITION_DECIDED") == 3
    (row,) = await rows(database, "confirmations")
    assert row["status"] in outcomes
    versions = await rows(database, "identity_record_versions")
    assert len(versions) == (2 if row["status"] == "approved" else 1)


# --- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", PetitionDecision)
async def test_time_that_runs_out_means_no(
    database: Database, people: People, decision: PetitionDecision
) -> None:
    """Rule D4."""
    petition = await asked(database, people.owner)
    await make_overdue(database, petition.id)
    before = await rows(database, "characters")
    error = await refusal(database, people.owner, petition.id, decision)
    assert (type(error), error.code, error.path, error.details) == (
        Conflict,
        "PETITION_EXPIRED",
        ("input", "petitionId"),
        {"hjCode": "HJ-1302"},
    )
    assert await rows(database, "characters") == before
    # The same is said once it is written down, by whoever comes first.
    async with database.writing() as writing:
        await petitions.expire_if_overdue(writing, people.stranger, petition.id)
        assert (await find_row(writing, people.owner, Petition, petition.id)).status == "pending"
        await petitions.expire_if_overdue(writing, people.owner, petition.id)
    error = await refusal(database, people.owner, petition.id, decision)
    assert error.code == "PETITION_EXPIRED"
    assert (await acts(database, petition.id))[1:] == [("petition_expired", "expired", None)]


async def test_a_petition_that_has_time_left_does_not_expire(
    database: Database, people: People
) -> None:
    """Rule D4."""
    petition = await asked(database, people.owner)
    async with database.writing() as writing:
        await petitions.expire_if_overdue(writing, people.owner, petition.id)
        assert await petitions.expire_petitions(writing) == 0
        await decide_petition(writing, people.owner, petition.id, APPROVE)


async def test_the_chore_writes_down_what_is_overdue(database: Database, people: People) -> None:
    """Rule D4."""
    overdue, waiting, decided = [await asked(database, people.owner) for _ in range(3)]
    async with database.writing() as writing:
        await decide_petition(writing, people.owner, decided.id, DENY)
    await make_overdue(database, overdue.id)
    await make_overdue(database, decided.id)
    async with database.writing() as writing:
        assert await petitions.expire_petitions(writing) == 1
        assert await petitions.expire_petitions(writing) == 0
    found = {row["id"]: row["status"] for row in await rows(database, "confirmations")}
    assert found == {overdue.id: "expired", waiting.id: "pending", decided.id: "denied"}


async def test_an_overdue_one_makes_room_for_the_next(database: Database, people: People) -> None:
    """Rules D2, D4."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
        first = await ask(writing, people.owner, character)
    await make_overdue(database, first.id)
    async with database.writing() as writing:
        second = await ask(writing, people.owner, character)
    found = {row["id"]: row["status"] for row in await rows(database, "confirmations")}
    assert found == {first.id: "expired", second.id: "pending"}


async def test_a_decision_has_a_time_and_a_pending_one_has_none(
    database: Database, people: People
) -> None:
    petition = await asked(database, people.owner)
    with pytest.raises(asyncpg.CheckViolationError):
        async with database.writing() as writing:
            await writing._connection.execute(
                "UPDATE confirmations SET status = 'approved' WHERE id = $1", petition.id
            )


# --- lists and streams ----------------------------------------------------------------------------


async def test_the_list_has_the_newest_first_and_can_be_of_one_status(
    database: Database, people: People
) -> None:
    first, second, third = [await asked(database, people.owner) for _ in range(3)]
    await asked(database, people.stranger)
    async with database.writing() as writing:
        await decide_petition(writing, people.owner, second.id, DENY)

    async def listed(viewer: Viewer, status: PetitionStatus | None = None) -> list[str]:
        async with database.reading() as reading:
            page = await petitions.list_petitions(reading, viewer, PageRequest(), status)
            assert await page.source.counts(reading, [None], **dict(page.values)) == [
                len(page.nodes)
            ]
        return [each.id for each in page.nodes]

    assert await listed(people.owner) == [third.id, second.id, first.id]
    assert await listed(people.owner, PetitionStatus.PENDING) == [third.id, first.id]
    assert await listed(people.owner, PetitionStatus.DENIED) == [second.id]
    assert await listed(people.anonymous) == []


@pytest.fixture
async def hub(database: Database) -> Hub:
    return Hub()


async def test_a_stream_begins_with_what_waits_and_tells_what_becomes_of_it(
    database: Database, people: People, hub: Hub
) -> None:
    """Rule D5."""
    denied, approved, expired, old = [await asked(database, people.owner) for _ in range(4)]
    async with database.writing() as writing:
        await decide_petition(writing, people.owner, old.id, DENY)
    stream = petitions.follow_petitions(database, hub, people.owner)
    waiting = [await anext(stream) for _ in range(3)]
    assert [each.id for each in waiting] == [denied.id, approved.id, expired.id]
    assert {each.status for each in waiting} == {"pending"}

    async def next_after(*changes: Any) -> list[tuple[str, str]]:
        """What the stream gives after changes of which it hears once."""
        following = asyncio.ensure_future(anext(stream))
        for change in changes:
            await change
        assert people.owner.user_id is not None
        hub.publish(petitions.petitions_topic(people.owner.user_id))
        petition = await asyncio.wait_for(following, 10)
        seen = [(petition.id, petition.status)]
        for _ in changes[1:]:
            petition = await asyncio.wait_for(anext(stream), 10)
            seen.append((petition.id, petition.status))
        return seen

    async def decide(petition_id: str, decision: PetitionDecision) -> None:
        async with database.writing() as writing:
            await decide_petition(writing, people.owner, petition_id, decision)

    async def expire(petition_id: str) -> None:
        await make_overdue(database, petition_id)
        async with database.writing() as writing:
            await petitions.expire_petitions(writing)

    assert await next_after(decide(denied.id, DENY)) == [(denied.id, "denied")]
    assert await next_after(decide(approved.id, APPROVE), expire(expired.id)) == [
        (approved.id, "approved"),
        (expired.id, "expired"),
    ]
    # Somebody else's are not told.
    await asked(database, people.stranger)
    async with database.writing() as writing:
        character = await make_character(writing, people.owner, "Bea")

    async def open_and_deny() -> None:
        async with database.writing() as writing:
            petition = await ask(writing, people.owner, character)
        await decide(petition.id, DENY)

    ((_, status),) = await next_after(open_and_deny())
    assert status == "denied"
    await stream.aclose()
    assert hub.open_subscriptions == 0


async def test_each_change_is_announced_to_the_custodian(
    database: Database, people: People
) -> None:
    """Rule D5."""
    assert people.owner.user_id is not None
    heard: list[str] = []
    connection = await asyncpg.connect(database.dsn)
    await connection.add_listener("mirrorgraph", lambda *told: heard.append(told[-1]))
    topic = petitions.petitions_topic(people.owner.user_id)
    first, second = [await asked(database, people.owner) for _ in range(2)]
    async with database.writing() as writing:
        await decide_petition(writing, people.owner, first.id, DENY)
    await make_overdue(database, second.id)
    async with database.writing() as writing:
        await petitions.expire_petitions(writing)
    await connection.execute("SELECT 1")  # what was announced has come in before its answer
    await connection.close()
    assert heard.count(topic) == 4
    assert {each for each in heard if each.startswith("petitions:")} == {topic}


async def test_a_stream_needs_somebody_who_is_signed_in(
    database: Database, people: People, hub: Hub
) -> None:
    with pytest.raises(Forbidden) as refused:
        await anext(petitions.follow_petitions(database, hub, people.anonymous))
    assert refused.value.code == "NOT_SIGNED_IN"
    assert hub.open_subscriptions == 0
