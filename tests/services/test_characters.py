from __future__ import annotations

import asyncio
import json

import asyncpg
import pytest

from db.engine import Database
from db.enums import CharacterStatus, EmbryoStatus, Origin
from db.paging import PageRequest
from db.reading import Writing
from db.tables import EmbryoDraft, RuntimeSeat
from services import characters, demo, transfers
from services.access import Viewer, find_row
from services.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from tests.conftest import People
from tests.factories import ALL_POINTS, make_character

CARD = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {
        "name": "Rook",
        "description": "{{char}} guards the bridge.",
        "personality": "stubborn",
        "scenario": "",
        "first_mes": "Halt.",
        "mes_example": "",
        "extensions": {"depth_prompt": {"prompt": "toll"}},
    },
}


async def import_card(writing: Writing, viewer: Viewer) -> EmbryoDraft:
    card = transfers.read_card(json.dumps(CARD).encode())
    _, embryo = await transfers.import_card(writing, viewer, card, file_name="rook.json")
    return embryo


async def test_a_card_becomes_a_draft_that_keeps_its_source(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        embryo = await import_card(writing, people.owner)
    async with database.reading() as reading:
        found = await find_row(reading, people.owner, EmbryoDraft, embryo.id)
    assert found is not None
    assert (found.origin, found.status) == (Origin.IMPORTED, EmbryoStatus.DRAFT)
    assert found.source_card == CARD
    assert found.provisional_identity["extensions"] == {"depth_prompt": {"prompt": "toll"}}
    assert [point.key for point in found.checklist] == ALL_POINTS
    assert not any(point.is_confirmed for point in found.checklist)


async def test_activation_issues_character_custodian_and_seat(
    database: Database, people: People
) -> None:
    """Rule C1."""
    async with database.writing() as writing:
        embryo = await import_card(writing, people.owner)
        character = await characters.activate_embryo(writing, people.owner, embryo.id, ALL_POINTS)
        seats = await characters.seats_of_characters(writing, people.owner, [character.id])
        issued = await find_row(writing, people.owner, EmbryoDraft, embryo.id)
        custodians = await writing._connection.fetch("SELECT * FROM custodianships")
    assert (character.name, character.status) == ("Rook", CharacterStatus.ACTIVE)
    assert character.identity_baseline == {
        "core_anchor": {
            "name": "Rook",
            "description": "{{char}} guards the bridge.",
            "personality": "stubborn",
            "first_mes": "Halt.",
        },
        "forbidden_zone": [],
    }
    seat = seats[character.id]
    assert (seat.epoch, seat.lease_holder, seat.lease_expires_at) == (1, None, None)
    assert issued is not None
    assert issued.status == EmbryoStatus.ISSUED
    assert all(point.is_confirmed for point in issued.checklist)
    assert [(row["user_id"], row["character_id"]) for row in custodians] == [
        (people.owner.user_id, character.id)
    ]


async def test_a_character_has_one_seat(database: Database, people: People) -> None:
    """Rule C2, held by the database."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
        with pytest.raises(asyncpg.UniqueViolationError, match="uq_runtime_seats_character_id"):
            await writing.insert(RuntimeSeat, character_id=character.id)


@pytest.mark.parametrize(
    ("confirmed", "code", "named"),
    [
        ([], "CONFIRMATION_REQUIRED", "identity, boundaries, custody"),
        (["identity", "custody"], "CONFIRMATION_REQUIRED", "boundaries"),
        ([*ALL_POINTS, "soul"], "UNKNOWN_CHECKLIST_KEY", "'soul'"),
    ],
)
async def test_every_point_must_be_confirmed(
    database: Database, people: People, confirmed: list[str], code: str, named: str
) -> None:
    async with database.writing() as writing:
        embryo = await characters.create_embryo(
            writing, people.owner, Origin.ORIGINAL, {"name": "Rook"}
        )
        with pytest.raises(Invalid) as caught:
            await characters.activate_embryo(writing, people.owner, embryo.id, confirmed)
        assert (caught.value.code, caught.value.path) == (code, ("input", "confirmed"))
        assert named in caught.value.message
        page = await characters.list_characters(writing, people.owner, PageRequest())
        assert page.nodes == []


async def test_of_two_activations_at_once_one_wins(database: Database, people: People) -> None:
    """Rule C1."""
    async with database.writing() as writing:
        embryo = await characters.create_embryo(
            writing, people.owner, Origin.ORIGINAL, {"name": "Rook"}
        )

    async def activate() -> str:
        async with database.writing() as writing:
            await characters.activate_embryo(writing, people.owner, embryo.id, ALL_POINTS)
        return "activated"

    results = await asyncio.gather(activate(), activate(), return_exceptions=True)
    refusals = [each for each in results if isinstance(each, DomainError)]
    assert results.count("activated") == 1
    assert [(type(each), each.code) for each in refusals] == [(Conflict, "ALREADY_ACTIVATED")]


async def test_only_the_owner_sees_and_activates_a_draft(
    database: Database, people: People
) -> None:
    """Rule C3."""
    async with database.writing() as writing:
        embryo = await characters.create_embryo(
            writing, people.owner, Origin.ORIGINAL, {"name": "Rook"}
        )
        for viewer in (people.stranger, people.anonymous):
            page = await characters.list_embryos(writing, viewer, PageRequest())
            assert page.nodes == []
            with pytest.raises(NotFound):
                await characters.activate_embryo(writing, viewer, embryo.id, ALL_POINTS)
        with pytest.raises(Forbidden) as caught:
            await characters.create_embryo(
                writing, people.anonymous, Origin.ORIGINAL, {"name": "Rook"}
            )
        assert caught.value.code == "NOT_SIGNED_IN"


@pytest.mark.parametrize(
    ("identity", "code", "path"),
    [
        ({"name": " "}, "TEXT_EMPTY", ("input", "identity", "name")),
        ({"name": "x" * 501}, "TEXT_TOO_LONG", ("input", "identity", "name")),
        ({"name": "x", "scenario": "a\0"}, "INVALID_TEXT", ("input", "identity", "scenario")),
    ],
)
async def test_a_draft_by_hand_is_checked(
    database: Database, people: People, identity: dict[str, str], code: str, path: tuple[str, ...]
) -> None:
    async with database.writing() as writing:
        with pytest.raises(Invalid) as caught:
            await characters.create_embryo(writing, people.owner, Origin.ORIGINAL, identity)
        assert (caught.value.code, caught.value.path) == (code, path)


async def test_a_character_that_is_not_active_can_only_be_read(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
        characters.require_alive(character)
        await writing._connection.execute("UPDATE characters SET status = 'deceased'")
        page = await characters.list_characters(writing, people.owner, PageRequest())
        with pytest.raises(Conflict) as caught:
            characters.require_alive(page.nodes[0], "input", "characterId")
        assert caught.value.code == "CHARACTER_READ_ONLY"


async def test_the_demo_is_made_on_an_empty_database_only(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        assert await demo.is_empty(writing)
        tree = await demo.create_demo(writing, people.owner)
        assert not await demo.is_empty(writing)
        nodes = await writing._connection.fetchval("SELECT count(*) FROM tree_nodes")
        quotes = await writing._connection.fetch("SELECT quote FROM citations")
        told = await writing._connection.fetch("SELECT title FROM stories")
    assert tree.working_entry_node_id is not None
    assert nodes == 5
    assert [row["quote"] for row in quotes] == ["I dry them on Sundays"]
    assert [row["title"] for row in told] == ["The Bell Under the Salt"]
