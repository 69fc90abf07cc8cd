"""Soul forging: the one way to change who a character is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import asdict
from typing import Any

import asyncpg
import pytest

from db.engine import Database
from db.enums import IdentitySection
from db.tables import Character, Petition
from services import characters
from services.access import Viewer, find_row
from services.errors import Conflict, DomainError, Invalid, NotFound
from tests.conftest import People
from tests.services.identities import (
    DENY,
    ask,
    authentic,
    bare,
    decide,
    everything,
    forged,
    made,
    packages_of,
    present,
    versions_of,
)

ALL_SECTIONS = list(IdentitySection)


async def test_nothing_changes_until_it_is_approved(database: Database, people: People) -> None:
    """Rule G1."""
    character = await made(database, people.owner)
    before = await everything(database)
    petition = await ask(
        database,
        people.owner,
        character,
        {"description": "Ada is kind.", "personality": "calm", "forbidden_zone": ["To lie."]},
        expected_version=1,
    )
    assert asdict(petition.brief) == {
        "action": "Change who the character is at the core (soul forging).",
        "target": "Ada, version 1",
        "purpose": "She has grown.",
        "data_involved": "description: “a character of the tests. {{user}} knows Ada” becomes "
        "“kind”; forbidden_zone: adds “To lie.”; personality: nothing becomes “calm”",
        "consequence": "The baseline is another from the next answer on, and the identity record "
        "gets a signed version that names this petition.",
        "reversibility": "The version before stays in the identity record; going back to it is "
        "another change to approve.",
    }
    assert petition.arguments == {
        "identity": {
            "description": "Ada is kind.",
            "forbidden_zone": ["To lie."],
            "personality": "calm",
        }
    }
    await decide(database, people.owner, petition, DENY)
    after = await everything(database)
    untouched = before.keys() - {"confirmations", "audit_events"}
    assert {each: after[each] for each in untouched} == {each: before[each] for each in untouched}


async def test_an_approval_changes_the_baseline_and_signs_it(
    database: Database, people: People
) -> None:
    """Rules G1, G2."""
    character = await made(database, people.owner)
    petition = await forged(
        database,
        people.owner,
        character,
        {"name": "Ada Lovelace", "description": None, "forbidden_zone": ["To lie.", "To steal."]},
    )
    now = await present(database, character)
    baseline = {
        "core_anchor": {"name": "Ada Lovelace"},
        "forbidden_zone": ["To lie.", "To steal."],
    }
    assert (now["name"], now["identity_baseline_json"]) == ("Ada Lovelace", baseline)
    assert (now["version"], now["updated_at"] is not None) == (2, True)
    first, second = await versions_of(database, people.owner, character)
    assert (second.version_no, second.previous_digest) == (2, first.digest)
    assert second.petition_id == petition.id
    assert await authentic(database, people.owner, character) == [True, True]
    earlier, later = await packages_of(database, people.owner, character)
    assert earlier["sections"]["identity"]["baseline"] == character.identity_baseline
    assert later["sections"]["identity"]["baseline"] == baseline
    assert later["sections"]["identity"]["name"] == "Ada Lovelace"
    assert later["sections"]["runtime_state"]["version"] == 2
    async with database.reading() as reading:
        acts = await reading._connection.fetch(
            "SELECT arguments_json, outcome FROM audit_events WHERE action = 'soul_forging'"
        )
    assert [tuple(act) for act in acts] == [
        (
            {"petition_id": petition.id, "fields": ["description", "forbidden_zone", "name"]},
            "confirmed",
        )
    ]


async def test_a_change_asked_for_an_older_version_is_not_approved(
    database: Database, people: People
) -> None:
    """Rule G3."""
    character = await made(database, people.owner)
    petition = await ask(database, people.owner, character, {"personality": "calm"})
    async with database.writing() as writing:
        await writing._connection.execute("UPDATE characters SET version = version + 1")
    before = await everything(database)
    with pytest.raises(Conflict) as refused:
        await decide(database, people.owner, petition)
    assert (refused.value.code, refused.value.path) == ("CONFLICT", ("input", "petitionId"))
    assert await everything(database) == before
    # It can still be denied.
    assert (await decide(database, people.owner, petition, DENY)).status == "denied"


async def test_of_two_changes_at_once_one_is_asked_for(database: Database, people: People) -> None:
    """Rule G3."""
    character = await made(database, people.owner)

    async def change(personality: str) -> str:
        try:
            petition = await ask(
                database, people.owner, character, {"personality": personality}, expected_version=1
            )
            await decide(database, people.owner, petition)
        except Conflict as refused:
            return refused.code
        return personality

    outcomes = await asyncio.gather(change("calm"), change("wild"))
    (made_one,) = {"calm", "wild"} & set(outcomes)
    assert {"PETITION_PENDING", "CONFLICT"} & set(outcomes)
    package = (await packages_of(database, people.owner, character))[-1]
    assert package["sections"]["identity"]["baseline"]["core_anchor"]["personality"] == made_one
    assert len(await versions_of(database, people.owner, character)) == 2


Refused = tuple[dict[str, Any], type[DomainError], str, tuple[str | int, ...]]

REFUSED: dict[str, Refused] = {
    "nothing": ({"changes": {}}, Invalid, "NOTHING_CHANGES", ("input", "identity")),
    "the same": (
        {"changes": {"name": "Ada", "nickname": None, "forbidden_zone": []}},
        Invalid,
        "NOTHING_CHANGES",
        ("input", "identity"),
    ),
    "no name": ({"changes": {"name": " "}}, Invalid, "TEXT_EMPTY", ("input", "identity", "name")),
    "a long name": (
        {"changes": {"name": "a" * 501}},
        Invalid,
        "TEXT_TOO_LONG",
        ("input", "identity", "name"),
    ),
    "an empty line": (
        {"changes": {"forbidden_zone": ["To lie.", ""]}},
        Invalid,
        "TEXT_EMPTY",
        ("input", "identity", "forbiddenZone", 1),
    ),
    "no purpose": ({"purpose": ""}, Invalid, "TEXT_EMPTY", ("input", "purpose")),
    "a long purpose": ({"purpose": "a" * 501}, Invalid, "TEXT_TOO_LONG", ("input", "purpose")),
    "another version": (
        {"expected_version": 2},
        Conflict,
        "CONFLICT",
        ("input", "expectedVersion"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_change_that_is_refused_leaves_nothing(
    database: Database, people: People, what: str
) -> None:
    given, error, code, path = REFUSED[what]
    character = await made(database, people.owner)
    before = await everything(database)
    with pytest.raises(error) as refused:
        await ask(
            database, people.owner, character, **{"changes": {"personality": "calm"}, **given}
        )
    assert (refused.value.code, refused.value.path) == (code, path)
    assert await everything(database) == before


@pytest.mark.parametrize("who", ["stranger", "anonymous"])
async def test_nobody_else_asks_or_exports(database: Database, people: People, who: str) -> None:
    character = await made(database, people.owner)
    before = await everything(database)
    viewer = getattr(people, who)

    async def export() -> None:
        async with database.writing() as writing:
            await characters.export_identity(writing, viewer, character.id, ALL_SECTIONS)

    tries: list[Awaitable[Any]] = [ask(database, viewer, character, {"name": "Eve"}), export()]
    for each in tries:
        with pytest.raises(NotFound):
            await each
    assert await everything(database) == before


@pytest.mark.parametrize("status", ["suspended", "death_pending", "deceased", "purged"])
async def test_only_a_living_character_is_changed(
    database: Database, people: People, status: str
) -> None:
    """Rule G1."""
    character = await made(database, people.owner)
    petition = await ask(database, people.owner, character, {"personality": "calm"})
    async with database.writing() as writing:
        await writing._connection.execute("UPDATE characters SET status = $1", status)
    before = await everything(database)
    for change in (
        ask(database, people.owner, character, {"personality": "wild"}),
        decide(database, people.owner, petition),
    ):
        with pytest.raises(Conflict) as refused:
            await change
        assert refused.value.code == "CHARACTER_READ_ONLY"
    assert await everything(database) == before


# --- no other way ---------------------------------------------------------------------------------

BYPASSES = {
    "a baseline": "UPDATE characters SET identity_baseline_json = '{}'",
    "a name": "UPDATE characters SET name = 'Eve'",
    "with another column": "UPDATE characters SET name = 'Eve', version = version + 1",
    "and back to another": "UPDATE characters SET name = 'A'; UPDATE characters SET name = 'B'",
    "of what the record says": """
        UPDATE characters SET name = 'Eve';
        UPDATE identity_packages
        SET package_json = jsonb_set(package_json, '{sections,identity,name}', '"Eve"')
    """,
}


@pytest.mark.parametrize("what", BYPASSES)
async def test_the_database_refuses_another_baseline(
    database: Database, people: People, what: str
) -> None:
    """Rule G4."""
    character = await made(database, people.owner)
    before = await everything(database)
    async with bare(database) as connection:
        with pytest.raises(asyncpg.PostgresError) as refused:
            await connection.execute(BYPASSES[what])
    assert refused.value.sqlstate == "MG003"
    assert await everything(database) == before
    # After a change that was approved it is no different.
    await forged(database, people.owner, character, {"personality": "calm"})
    async with bare(database) as connection:
        with pytest.raises(asyncpg.PostgresError):
            await connection.execute(BYPASSES["a baseline"])


async def rename(
    database: Database, viewer: Viewer, character: Character, petition: Petition | None
) -> None:
    """A change that issues a version, but was not approved."""
    async with database.writing() as writing:
        await writing._connection.execute("UPDATE characters SET name = 'Eve'")
        changed = await find_row(writing, viewer, Character, character.id)
        assert changed is not None
        await characters.issue_identity_record(writing, viewer, changed, petition)


async def test_a_version_without_an_approved_petition_is_not_enough(
    database: Database, people: People
) -> None:
    """Rule G4."""
    character = await made(database, people.owner)
    petition = await ask(database, people.owner, character, {"name": "Eve"})
    before = await everything(database)
    for behind in (None, petition):
        with pytest.raises(asyncpg.PostgresError) as refused:
            await rename(database, people.owner, character, behind)
        assert refused.value.sqlstate == "MG003"
    assert await everything(database) == before


async def test_what_stays_the_same_and_what_is_erased_is_free(
    database: Database, people: People
) -> None:
    """Rules G4, N4."""
    await made(database, people.owner)
    async with bare(database) as connection:
        await connection.execute("UPDATE characters SET version = version + 1, name = name")
        await connection.execute(
            "UPDATE characters SET status = 'purged', name = '', identity_baseline_json = '{}'"
        )
