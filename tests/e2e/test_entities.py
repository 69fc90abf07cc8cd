"""The world of a story as front ends see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import shared
from tests.e2e.callers import Caller, Json
from tests.e2e.entity_documents import ENTITIES, ENTITY_CHANGES
from tests.e2e.ledgers import Ledger
from tests.e2e.ways_back_documents import WAYS_BACK, tell_story


@dataclass
class World:
    """A story with places, people, things and a guild: their ids by name."""

    caller: Caller
    branch: str
    entries: list[str]
    ids: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.ids[name]

    async def change(self, operation: str, **given: Any) -> Json:
        (payload,) = (await self.caller.ask(ENTITY_CHANGES, {"input": given}, operation)).values()
        assert payload.pop("errors") == []
        return dict(payload)

    async def refusal(self, operation: str, **given: Any) -> tuple[str, list[str]]:
        (payload,) = (await self.caller.ask(ENTITY_CHANGES, {"input": given}, operation)).values()
        (error,) = payload.pop("errors")
        assert set(payload.values()) == {None}
        return error["code"], error["path"]

    async def sheet(self, name: str) -> Json:
        answer = await self.caller.ask(ENTITIES, {"id": self[name]}, "Sheet")
        return dict(answer["node"])

    async def listed(self, **variables: Any) -> Json:
        given = {"branch": self.branch, "first": 100, **variables}
        return dict((await self.caller.ask(ENTITIES, given, "Entities"))["branch"])

    async def names(self, **variables: Any) -> list[str]:
        found = (await self.listed(**variables))["entities"]
        names = [each["name"] for each in found["nodes"]]
        assert found["totalCount"] == len(names)
        return names


def member(key: str, kind: str, name: str, **rest: Any) -> Json:
    return {"key": key, "kind": kind, "name": name, "status": "ACTIVE", **rest}


CAST = [
    member("city", "LOCATION", "Harbour"),
    member("quay", "LOCATION", "Quay Street", parentKey="city"),
    member("office", "LOCATION", "Tally Office", parentKey="quay"),
    member("guild", "FACTION", "Wick Guild"),
    member("mira", "CHARACTER", "Mira Voss", locationKey="quay", factionKey="guild"),
    member("odo", "CHARACTER", "Ódo Tann", locationKey="office", status="STAGED"),
    member("lamp", "ITEM", "Lamp", locationKey="quay"),
    member("ledger", "ITEM", "Ledger"),
]


@pytest.fixture
async def world(caller: Caller) -> World:
    told = await tell_story(caller, "Fog.", cast=CAST, lore=[])
    query = """
    query ($id: ID!) { branch(id: $id) { entities(first: 9) { nodes { id name } } } }
    """
    found = (await caller.ask(query, {"id": told.branch}))["branch"]["entities"]["nodes"]
    ids = {each["name"].split()[0]: each["id"] for each in found}
    return World(caller, told.branch, told.entries, ids)


SHEET = {
    "__typename": "StoryCharacter",
    "name": "Mira Voss",
    "description": "",
    "status": "ACTIVE",
    "keywords": [],
    "tags": [],
    "injectionMode": "AUTO",
    "priority": 50,
    "nameCollisionFlag": False,
    "nameCollisionReason": None,
    "nameCollisionPartner": None,
    "embeddingStale": True,
    "updatedAt": None,
    "traits": [],
    "drives": [],
    "voice": None,
    "visual": dict.fromkeys(("physique", "face", "hair", "eyes", "attire", "distinguishing"), None),
    "currentLocation": {"name": "Quay Street", "path": [{"name": "Harbour"}]},
    "equippedItems": [],
    "inventory": [],
    "stackables": [],
    "faction": {"name": "Wick Guild"},
    "lastSeenLocation": None,
    "lastSeenWorldTime": None,
    "relationships": [],
}


async def test_a_sheet_of_each_kind_shows_what_its_state_says(world: World) -> None:
    """Rules U2, U26."""
    assert await world.sheet("Mira") == SHEET
    place = await world.sheet("Quay")
    assert {name: place[name] for name in ("parent", "children", "path", "occupants", "items")} == {
        "parent": {"name": "Harbour"},
        "children": [{"name": "Tally Office"}],
        "path": [{"name": "Harbour"}],
        "occupants": [{"name": "Mira Voss"}],
        "items": {"nodes": [{"name": "Lamp"}], "totalCount": 1},
    }
    assert (await world.sheet("Tally"))["path"] == [{"name": "Quay Street"}, {"name": "Harbour"}]
    lamp = await world.sheet("Lamp")
    assert (lamp["holder"], lamp["location"]["name"]) == (None, "Quay Street")
    guild = await world.sheet("Wick")
    assert guild["members"] == {"nodes": [{"name": "Mira Voss"}], "totalCount": 1}
    assert (guild["standing"], guild["agenda"]) == (None, [])


async def test_a_character_gets_things_and_ties(world: World) -> None:
    """Rules U5, U7, U23."""
    mira, odo = world["Mira"], world["Ódo"]
    state = {
        "traits": ["brave"],
        "voice": "low",
        "visual": {"hair": "red"},
        "inventory": [world["Ledger"]],
        "stackables": {"Gold": 5, "arrows": 2},
    }
    changed = await world.change("EntityUpdate", entityId=mira, state=state, keywords=["M."])
    assert changed["alsoChanged"] == []
    assert changed["entity"]["state"]["inventory"] == [world["Ledger"].partition(":")[2]]
    moved = await world.change("ItemMove", itemId=world["Lamp"], holderId=mira, slot="EQUIPPED")
    assert (moved["item"]["holder"], moved["item"]["location"]) == ({"id": mira}, None)
    assert [each["name"] for each in moved["alsoChanged"]] == ["Mira Voss"]
    paid = await world.change(
        "StackablesTransfer", giverId=mira, receiverId=odo, key="gold", amount=5
    )
    assert paid["giver"]["stackables"] == [{"key": "arrows", "count": 2}]
    assert paid["receiver"]["stackables"] == [{"key": "gold", "count": 5}]
    await world.change("RelationshipSet", subjectId=mira, objectId=odo, kind="rival")
    tie = await world.change("RelationshipSet", subjectId=odo, objectId=mira, kind="friend")
    sheet = await world.sheet("Mira")
    (view,) = sheet.pop("relationships")
    kinds = {view["relationship"]["kind"], view["relationship"]["inverseKind"]}
    assert (view["other"]["name"], view["selfToOther"], view["otherToSelf"], kinds) == (
        "Ódo Tann",
        "rival",
        "friend",
        {"rival", "friend"},
    )
    assert sheet == {
        **{name: value for name, value in SHEET.items() if name != "relationships"},
        "keywords": ["M."],
        "updatedAt": sheet["updatedAt"],
        "traits": ["brave"],
        "voice": "low",
        "visual": {**SHEET["visual"], "hair": "red"},  # type: ignore[dict-item]
        "equippedItems": [{"name": "Lamp"}],
        "inventory": [{"name": "Ledger"}],
        "stackables": [{"key": "arrows", "count": 2}],
    }
    (view,) = (await world.sheet("Ódo"))["relationships"]
    assert (view["selfToOther"], view["otherToSelf"]) == ("friend", "rival")
    gone = await world.change("RelationshipDelete", relationshipId=tie["relationship"]["id"])
    assert gone["deletedId"] == tie["relationship"]["id"]
    assert (await world.sheet("Ódo"))["relationships"] == []


async def test_entities_are_listed_by_kind_status_and_name(world: World) -> None:
    """Rule U25."""
    everybody = [each["name"] for each in CAST]
    assert await world.names() == everybody
    for filter_, search, expected in (
        ({"kinds": ["LOCATION"]}, None, everybody[:3]),
        ({"kinds": ["ITEM", "FACTION"]}, None, ["Wick Guild", "Lamp", "Ledger"]),
        ({"kinds": []}, None, []),
        ({"statuses": ["STAGED"]}, None, ["Ódo Tann"]),
        ({"statuses": ["STAGED"], "kinds": ["ITEM"]}, None, []),
        (None, "ODO t", ["Ódo Tann"]),
        (None, "ódo", ["Ódo Tann"]),
        (None, "l", ["Tally Office", "Wick Guild", "Lamp", "Ledger"]),
        (None, "", everybody),
        (None, "%", []),
        ({"kinds": ["ITEM"]}, "l", ["Lamp", "Ledger"]),
    ):
        for as_of in (None, {"logPosition": 0}):
            assert await world.names(filter=filter_, search=search, asOf=as_of) == expected
    first = (await world.listed(first=2, filter={"kinds": ["LOCATION"]}))["entities"]
    assert (len(first["nodes"]), first["pageInfo"]["hasNextPage"]) == (2, True)
    after = first["pageInfo"]["endCursor"]
    rest = (await world.listed(filter={"kinds": ["LOCATION"]}, after=after))["entities"]
    assert [each["name"] for each in rest["nodes"]] == ["Tally Office"]


async def test_a_search_that_holds_u0000_is_told_so(world: World) -> None:
    """Rule T47."""
    given = {"branch": world.branch, "search": "a\0b"}
    (error,) = (await world.caller.post(ENTITIES, given, "Entities")).body["errors"]
    assert error["path"] == ["branch", "entities"]
    assert error["extensions"] == {"code": "INVALID_TEXT", "argument": "search"}


async def test_a_world_of_the_past_is_of_its_moment_all_through(world: World) -> None:
    """Rule U25."""
    then = (await world.caller.ask(ENTITIES, sheets(world, 0), "SheetsThen"))["branch"]
    mira, quay = world["Mira"], world["Quay"]
    await world.change("ItemMove", itemId=world["Lamp"], holderId=mira)
    await world.change("RelationshipSet", subjectId=mira, objectId=world["Ódo"], kind="rival")
    moved = await world.change("EntityUpdate", entityId=quay, state={"parent_location_id": None})
    head = moved["branch"]["head"]
    between = (await world.caller.ask(ENTITIES, sheets(world, head), "SheetsThen"))["branch"]
    await world.change("EntityDelete", entityId=world["Wick"])
    await world.change("EntityMerge", keptId=world["Ledger"], lostId=world["Lamp"])
    await world.change("EntityDelete", entityId=quay)
    for position, expected in ((0, then), (head, between)):
        asked = sheets(world, position)
        assert (await world.caller.ask(ENTITIES, asked, "SheetsThen"))["branch"] == expected
    named = {each["name"]: each for each in between["entities"]["nodes"]}
    assert named["Lamp"]["holder"] == {"name": "Mira Voss"}
    assert named["Mira Voss"]["currentLocation"] == {"name": "Quay Street", "path": []}
    assert named["Mira Voss"]["relationships"][0]["selfToOther"] == "rival"
    assert named["Wick Guild"]["members"]["totalCount"] == 1
    assert named["Tally Office"]["effectiveInjectionMode"] == "AUTO"
    relationships = (await world.listed(asOf={"logPosition": head}))["relationships"]
    assert relationships["totalCount"] == 1
    assert (await world.listed(asOf={"logPosition": 0}))["relationships"]["totalCount"] == 0


def sheets(world: World, position: int) -> Json:
    return {"branch": world.branch, "asOf": {"logPosition": position}}


async def test_a_disabled_place_takes_those_inside_along_until_the_story_comes(
    world: World, caller: Caller
) -> None:
    """Rules U13, U14."""

    async def modes() -> list[str]:
        return [
            (await world.sheet(name))["effectiveInjectionMode"]
            for name in ("Harbour", "Quay", "Tally")
        ]

    assert await modes() == ["AUTO", "AUTO", "AUTO"]
    await world.change("EntityUpdate", entityId=world["Tally"], injectionMode="ALWAYS")
    await world.change("EntityUpdate", entityId=world["Quay"], injectionMode="DISABLED")
    assert await modes() == ["AUTO", "DISABLED", "DISABLED"]
    asked = f"""
    mutation {{
      entryMetaUpdate(input: {{
        entryId: "{world.entries[-1]}", currentLocationId: "{world["Tally"]}"
      }}) {{ errors {{ code }} }}
    }}
    """
    assert await caller.ask(asked) == {"entryMetaUpdate": {"errors": []}}
    assert await modes() == ["AUTO", "DISABLED", "ALWAYS"]
    # The story is inside all of them: none is disabled around it, and none is retired.
    assert await world.refusal(
        "EntityUpdate", entityId=world["Harbour"], injectionMode="DISABLED"
    ) == ("STORY_INSIDE", ["input", "injectionMode"])
    assert await world.refusal("EntityRetire", entityId=world["Harbour"]) == (
        "STORY_INSIDE",
        ["input", "status"],
    )


async def test_a_retired_place_answers_with_those_inside(world: World) -> None:
    """Rules U4, U9."""
    changed = await world.change("EntityRetire", entityId=world["Harbour"], reason="Sank.")
    assert [each["name"] for each in changed["alsoChanged"]] == ["Quay Street", "Tally Office"]
    assert (changed["entity"]["status"], changed["entity"]["retiredReason"]) == ("RETIRED", "Sank.")
    assert await world.names(filter={"statuses": ["RETIRED"]}) == [
        "Harbour",
        "Quay Street",
        "Tally Office",
    ]
    undone = await world.caller.ask(WAYS_BACK, {"branch": world.branch}, "BranchUndo")
    assert undone["branchUndo"]["errors"] == []
    assert await world.names(filter={"statuses": ["RETIRED"]}) == []


async def test_null_is_as_good_as_left_out_where_there_is_always_something(world: World) -> None:
    """Rule U1."""
    given = dict.fromkeys(
        ("name", "description", "status", "keywords", "tags", "injectionMode", "priority", "state")
    )
    before = await world.sheet("Mira")
    changed = await world.change("EntityUpdate", entityId=world["Mira"], **given)
    assert (changed["branch"]["head"], await world.sheet("Mira")) == (1, before)


async def test_two_are_made_one_after_a_look(world: World, ledger: Ledger) -> None:
    """Rules U16, U19, U21."""
    made = await world.change("EntityCreate", branchId=world.branch, kind="CHARACTER", name="mira")
    assert [each["name"] for each in made["namesakes"]] == ["Mira Voss"]
    pair = {"keptId": world["Mira"], "lostId": made["entity"]["id"]}
    before = await ledger.fingerprint()
    told = await world.change("EntityMerge", **pair, dryRun=True)
    assert await ledger.fingerprint() == before
    assert told["entity"]["keywords"] == []
    done = await world.change("EntityMerge", **pair)
    assert (
        done["changes"]
        == told["changes"]
        == [
            {"table": "ENTITIES", "op": "UPDATE", "id": world["Mira"]},
            {"table": "ENTITIES", "op": "DELETE", "id": made["entity"]["id"]},
        ]
    )
    assert done["entity"]["keywords"] == ["mira"]


JSONS: list[Any] = [5, "x", [], True, 1.5, {"traits": 5}, {"stackables": {"a": 2**70}}]
DEEP: Any = "x"
for _ in range(100):
    DEEP = {"hair": DEEP}


@pytest.mark.parametrize("value", [*JSONS, {"visual": DEEP}], ids=lambda value: str(value)[:20])
async def test_states_that_cannot_be_meant_are_told_so(
    world: World, ledger: Ledger, value: Any
) -> None:
    """Rules U1, T47."""
    before = await ledger.fingerprint()
    new = {"branchId": world.branch, "kind": "CHARACTER", "name": "x"}
    for operation, given in (("EntityCreate", new), ("EntityUpdate", {"entityId": world["Mira"]})):
        code, path = await world.refusal(operation, **given, state=value)
        assert (code, path[:2]) == ("INVALID_SHAPE", ["input", "state"])
    assert await ledger.fingerprint() == before


async def test_the_documents_of_front_ends_are_answered(world: World) -> None:
    """Rules U1, U23, U26."""
    document = shared("acceptance", "22-world-write.graphql").read_text()
    given = {"entity": world["Mira"], "description": "Good memory.", "state": {"voice": "low"}}
    done = (await world.caller.ask(document, given, "EntityUpdate"))["entityUpdate"]
    assert done["errors"] == []
    assert done["branch"] == {"id": world.branch, "head": 2}
    assert done["entity"]["rowId"] == world["Mira"].partition(":")[2]
    assert (done["entity"]["description"], done["entity"]["state"]["voice"]) == (
        "Good memory.",
        "low",
    )
    pair = {"subject": world["Mira"], "object": world["Ódo"]}
    done = await world.caller.ask(document, {**pair, "kind": "rival"}, "RelationshipSet")
    tie = done["relationshipSet"]["relationship"]
    assert {tie["a"]["name"], tie["b"]["name"]} == {"Mira Voss", "Ódo Tann"}
    assert {tie["kind"], tie["inverseKind"]} == {"rival", None}
    pages = shared("acceptance", "24-branch-page.graphql").read_text()
    sheet = (await world.caller.ask(pages, {"id": world["Mira"]}, "CharacterSheet"))["node"]
    assert sheet["currentLocation"]["path"] == [
        {"rowId": world["Harbour"].partition(":")[2], "name": "Harbour"}
    ]
    assert [each["selfToOther"] for each in sheet["relationships"]] == ["rival"]
    # The view of the only side that is known goes, and the relationship with it.
    done = (await world.caller.ask(document, pair, "RelationshipSet"))["relationshipSet"]
    assert done == {"relationship": None, "errors": []}
    place = (await world.caller.ask(pages, {"id": world["Quay"]}, "CharacterSheet"))["node"]
    assert [each["name"] for each in place["occupants"]] == ["Mira Voss"]


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59.999999Z", "2999-01-01T00:00:00+14:00"])
async def test_a_time_to_come_is_the_present(world: World, time: str) -> None:
    """Rules T47, U25."""
    assert await world.names(asOf={"at": time}) == [each["name"] for each in CAST]


@pytest.mark.parametrize(
    "time",
    ["2999-01-01T00:00:00", "2999", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-00:01"],
)
async def test_a_time_that_cannot_be_meant_is_no_moment(world: World, time: str) -> None:
    """Rule T47."""
    given = {"branch": world.branch, "asOf": {"at": time}}
    (error, *_) = (await world.caller.post(ENTITIES, given, "Entities")).body["errors"]
    assert error["extensions"] == {"code": "INVALID_TIME", "argument": "asOf.at"}


@pytest.mark.parametrize("amount", [0, -1, -(2**53) + 1, 2**53 - 1])
async def test_an_amount_that_nobody_can_move_is_told_so(
    world: World, ledger: Ledger, amount: int
) -> None:
    """Rules U7, T47."""
    given = {"receiverId": world["Mira"], "key": "gold"}
    if amount < 1:
        before = await ledger.fingerprint()
        refused = await world.refusal("StackablesTransfer", **given, amount=amount)
        assert refused == ("OUT_OF_RANGE", ["input", "amount"])
        assert await ledger.fingerprint() == before
        return
    paid = await world.change("StackablesTransfer", **given, amount=amount)
    assert paid["receiver"]["stackables"] == [{"key": "gold", "count": amount}]
    refused = await world.refusal("StackablesTransfer", **given, amount=1)
    assert refused == ("OUT_OF_RANGE", ["input", "amount"])


@pytest.mark.parametrize("amount", [2**53, -(2**53), 1.5, "1", True])
async def test_an_amount_of_another_size_or_kind_is_refused(world: World, amount: Any) -> None:
    """Rule T47."""
    given = {"input": {"receiverId": world["Mira"], "key": "gold", "amount": amount}}
    refused = await world.caller.post(ENTITY_CHANGES, given, "StackablesTransfer")
    assert (refused.status, refused.codes) == (422, ["BAD_USER_INPUT"])
