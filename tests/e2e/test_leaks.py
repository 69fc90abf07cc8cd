"""Nothing of one person's things reaches another: whatever the schema declares is asked for as
their owner, as a stranger and as nobody.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from db.engine import open_database
from services.access import Viewer
from tests.architecture.declared import definition_of, table_classes, table_of_kind
from tests.architecture.world import World as Rows
from tests.architecture.world import make_one_of_each
from tests.conftest import ServerProcess
from tests.e2e.asking_everything import fields_of, node_types, read_of_node, root_call, takes_ids
from tests.e2e.callers import Caller, Json
from tests.e2e.ledgers import Ledger
from tests.e2e.test_people import make_user

# Stands in the texts of the owner's things and in no others.
MARK, OTHER = 77_117_711, 5


def aimed(kind: str) -> list[str]:
    """The root fields that take ids: the others touch nothing that is there."""
    return [
        name
        for name, field in fields_of(kind).items()
        if any(takes_ids(each) for each in field.args.values())
    ]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    # Nobody takes up the runs that are made here, and everything may be asked for at once.
    return {
        "MIRRORGRAPH_AUTH": "token",
        "MIRRORGRAPH_MAX_COST": "100000000",
        "MIRRORGRAPH_MAX_ALIASES": "100000",
        "MIRRORGRAPH_MAX_DUPLICATE_FIELDS": "100000",
        "MIRRORGRAPH_MAX_TOKENS": "1000000",
        "MIRRORGRAPH_MAX_DOCUMENT_BYTES": "10000000",
        "MIRRORGRAPH_MAX_DEPTH": "100",
    }


@dataclass
class People:
    """An owner and a stranger who have one of everything each."""

    owner: Caller
    stranger: Caller
    # The ids of some rows of each type, of all rows, and of the stranger's.
    ids: dict[str, list[str]]
    every_id: set[str]
    strangers: dict[str, list[str]]


@pytest.fixture(scope="module")
async def people(server: ServerProcess, server_dsn: str, caller: Caller) -> People:
    (owner_id, owner), (stranger_id, stranger) = await asyncio.gather(
        make_user(server_dsn, f"Olga {MARK}"), make_user(server_dsn, "Sten")
    )
    database = await open_database(server_dsn, pool_size=2, statement_timeout=30)
    viewers = Viewer(owner_id), Viewer(stranger_id)
    async with database.writing() as writing:
        for viewer, number in zip(viewers, (MARK, OTHER), strict=True):
            await make_one_of_each(writing, viewer, number)
    rows = Rows(database, *viewers)
    found: list[dict[str, list[str]]] = []
    for viewer in viewers:
        theirs: dict[str, list[str]] = {}
        for name in (each.name for each in node_types()):
            table = table_of_kind(name) or table_classes()[name]
            is_one = definition_of(name).origin.is_type_of
            theirs[name] = [row.id for row in await rows.rows(table, viewer) if is_one(row, None)]
        found.append(theirs)
    await database.close()
    every = {each for ids in found[0].values() for each in ids}
    return People(caller.as_(owner), caller.as_(stranger), found[0], every, found[1])


def test_there_is_something_of_every_type(people: People) -> None:
    for each in node_types():
        assert people.ids.get(each.name), f"let tests/architecture/world.py make a {each.name}"
        assert people.strangers.get(each.name)


def texts(value: Any) -> set[str]:
    """Every text in a response."""
    if isinstance(value, dict):
        return set().union(*(texts(each) for each in value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*(texts(each) for each in value)) if value else set()
    return {value} if isinstance(value, str) else set()


def leaked(people: People, body: Any) -> set[str]:
    """What a response says of the owner's things."""
    return {text for text in texts(body) if str(MARK) in text or text in people.every_id}


@pytest.mark.parametrize("kind", [each.name for each in node_types()])
async def test_every_field_is_its_owners_alone(people: People, kind: str) -> None:
    own, foreign = people.ids[kind][0], people.strangers[kind][0]
    told = set()
    for field in fields_of(kind):
        query, values = read_of_node(kind, field, own)
        mine = await people.owner.post(query, {"of": own, **values})
        assert mine.status in (200, 294), (field, mine.body)
        told |= leaked(people, mine.body)
        theirs = await people.stranger.post(query, {"of": own, **values})
        assert theirs.body == {"data": {"node": None}}, field
        # From something of one's own to something of another's.
        for name, ids in people.ids.items():
            query, values = read_of_node(kind, field, ids[0])
            across = await people.stranger.post(query, {"of": foreign, **values})
            assert leaked(people, across.body) == set(), (field, name)
            if not values:
                break
    assert own in told


# Root fields that say the same to everybody who is signed in.
FOR_ALL = {"builtInCalendars", "identitySigner"}


@pytest.mark.parametrize("name", fields_of("Query"))
async def test_every_root_field_is_its_owners_alone(people: People, name: str) -> None:
    told = set()
    for ids in people.ids.values():
        query, values = _call("Query", name, ids[0])
        mine = await people.owner.post(query, values)
        told |= leaked(people, mine.body)
        theirs = await people.stranger.post(query, values)
        assert leaked(people, theirs.body) == set()
        nobody = await people.owner.as_(None).post(query, values)
        assert nobody.codes == ["UNAUTHENTICATED"]
        if not values:
            break
    assert bool(told) is (name not in FOR_ALL), "the owner sees something"


@pytest.mark.parametrize("name", aimed("Mutation"))
async def test_every_change_is_its_owners_alone(people: People, ledger: Ledger, name: str) -> None:
    before = await ledger.fingerprint()
    for kind, ids in people.ids.items():
        query, values = _call("Mutation", name, ids[0])
        theirs = await people.stranger.post(query, values)
        payload = (theirs.body.get("data") or {}).get(name)
        if payload is not None:
            assert payload["errors"], (kind, payload)
        assert leaked(people, theirs.body) == set(), kind
    assert await ledger.fingerprint() == before


@pytest.mark.parametrize("name", aimed("Subscription"))
async def test_every_stream_is_its_owners_alone(people: People, name: str) -> None:
    for kind, ids in people.ids.items():
        query, values = _call("Subscription", name, ids[0])
        async with people.stranger.stream(query, values) as stream:
            results = [result async for result in stream]
        (refused,) = results
        assert refused["errors"], kind
        assert "data" not in refused or set(refused["data"].values()) == {None}
        assert leaked(people, refused) == set()


def _call(kind: str, name: str, id: str) -> tuple[str, Json]:
    query, values = root_call(kind, name, id)
    if kind == "Query" and "text_" in values:
        # What is searched for is the owner's.
        values["text_"] = str(MARK)
    return query, json.loads(json.dumps(values))
