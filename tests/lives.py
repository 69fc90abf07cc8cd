"""What tests of the ends of lives share."""

from __future__ import annotations

from db.engine import Database
from db.enums import PetitionDecision
from db.tables import Character, Petition
from services import decisions, endings
from services.access import Viewer, require_row
from tests.conftest import People
from tests.factories import make_character

# So short that it is over before the next statement begins.
NO_TIME = 1e-9
WEEK = 7.0


async def request(
    database: Database, viewer: Viewer, character: Character, days: float = WEEK
) -> Petition:
    async with database.writing() as writing:
        return await endings.request_death(writing, viewer, character.id, "It is time.", days)


async def approve(database: Database, viewer: Viewer, petition: Petition) -> Character:
    async with database.writing() as writing:
        await decisions.decide_petition(writing, viewer, petition.id, PetitionDecision.APPROVE)
        return await require_row(writing, viewer, Character, petition.character_id)


async def die(
    database: Database, viewer: Viewer, character: Character, days: float = WEEK
) -> Character:
    """Ask for a character's death, and confirm it."""
    return await approve(database, viewer, await request(database, viewer, character, days))


async def archive(database: Database) -> int:
    async with database.writing() as writing:
        return await endings.archive_deceased(writing)


async def a_deceased(database: Database, people: People, name: str = "Ada") -> Character:
    """A character that is an archive."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner, name)
    await die(database, people.owner, character, NO_TIME)
    assert await archive(database) == 1
    return await now(database, people.owner, character)


async def now(database: Database, viewer: Viewer, character: Character) -> Character:
    """The character as it is now."""
    async with database.reading() as reading:
        return await require_row(reading, viewer, Character, character.id)
