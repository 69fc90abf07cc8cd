"""What front ends ask about the world of a story."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.callers import Caller, Json

ENTITY_CHANGES = """
fragment Refused on UserError { code message path }
fragment Actor on StoryEntity { id rowId kind name status state }
fragment Tie on CharacterRelationship { id a { rowId name } b { rowId name } kind inverseKind }
mutation EntityCreate($input: EntityCreateInput!) {
  entityCreate(input: $input) {
    entity { ...Actor } alsoChanged { id name } namesakes { id name } branch { id head }
    errors { ...Refused }
  }
}
mutation EntityUpdate($input: EntityUpdateInput!) {
  entityUpdate(input: $input) {
    entity { ...Actor description retiredReason keywords tags injectionMode priority }
    alsoChanged { id name } branch { id head } errors { ...Refused }
  }
}
mutation EntityRetire($input: EntityRetireInput!) {
  entityRetire(input: $input) {
    entity { ...Actor retiredReason } alsoChanged { id name } branch { id head }
    errors { ...Refused }
  }
}
mutation EntityDelete($input: EntityDeleteInput!) {
  entityDelete(input: $input) {
    deletedId alsoChanged { id name } branch { id head } errors { ...Refused }
  }
}
mutation EntityMerge($input: EntityMergeInput!) {
  entityMerge(input: $input) {
    entity { ...Actor keywords } alsoChanged { id name } changes { table op id }
    branch { id head } errors { ...Refused }
  }
}
mutation ItemMove($input: ItemMoveInput!) {
  itemMove(input: $input) {
    item { ...Actor holder { id } location { id } } alsoChanged { id name } branch { id head }
    errors { ...Refused }
  }
}
mutation StackablesTransfer($input: StackablesTransferInput!) {
  stackablesTransfer(input: $input) {
    giver { id stackables { key count } } receiver { id stackables { key count } }
    branch { id head } errors { ...Refused }
  }
}
mutation RelationshipSet($input: RelationshipSetInput!) {
  relationshipSet(input: $input) {
    relationship { ...Tie } branch { id head } errors { ...Refused }
  }
}
mutation RelationshipDelete($input: RelationshipDeleteInput!) {
  relationshipDelete(input: $input) { deletedId branch { id head } errors { ...Refused } }
}
"""

ENTITIES = """
query Entities(
  $branch: ID! $filter: EntityFilter $search: String $asOf: AsOfInput $first: Int $after: String
) {
  branch(id: $branch) {
    entities(filter: $filter, search: $search, asOf: $asOf, first: $first, after: $after) {
      nodes { name } totalCount pageInfo { hasNextPage endCursor } resolvedAt { logPosition }
    }
    relationships(asOf: $asOf) {
      nodes { a { name } b { name } kind inverseKind } totalCount
    }
  }
}
query Sheet($id: ID!) {
  node(id: $id) {
    ... on StoryEntity {
      __typename name description status keywords tags injectionMode priority nameCollisionFlag
      nameCollisionReason nameCollisionPartner { name } embeddingStale updatedAt
    }
    ... on StoryCharacter { ...Sheet }
    ... on StoryLocation { ...Place }
    ... on StoryItem { condition holder { name } location { name path { name } } }
    ... on StoryFaction { standing agenda members { nodes { name } totalCount } }
  }
}
query SheetsThen($branch: ID!, $asOf: AsOfInput!) {
  branch(id: $branch) {
    entities(first: 10, asOf: $asOf) {
      nodes {
        name
        ... on StoryCharacter { ...Sheet }
        ... on StoryLocation { ...Place }
        ... on StoryItem { condition holder { name } location { name path { name } } }
        ... on StoryFaction { standing agenda members { nodes { name } totalCount } }
      }
    }
  }
}
fragment Sheet on StoryCharacter {
  traits drives voice visual { physique face hair eyes attire distinguishing }
  currentLocation { name path { name } } equippedItems { name } inventory { name }
  stackables { key count } faction { name } lastSeenLocation { name } lastSeenWorldTime
  relationships { other { name } selfToOther otherToSelf relationship { kind inverseKind } }
}
fragment Place on StoryLocation {
  condition parent { name } children { name } path { name } occupants { name }
  items { nodes { name } totalCount } effectiveInjectionMode
}
"""


async def make_world(mine: Caller, branch: str, character: str) -> dict[str, str]:
    """Entities of a branch and a relationship of a character there: ids by kinds."""

    async def made(kind: str, name: str) -> str:
        given = {"branchId": branch, "kind": kind, "name": name}
        answer = await mine.ask(ENTITY_CHANGES, {"input": given}, "EntityCreate")
        return str(answer["entityCreate"]["entity"]["id"])

    other = await made("CHARACTER", "Odo")
    given = {"subjectId": character, "objectId": other, "kind": "rival"}
    tie = await mine.ask(ENTITY_CHANGES, {"input": given}, "RelationshipSet")
    return {
        "StoryLocation": await made("LOCATION", "Quay"),
        "StoryItem": await made("ITEM", "Lamp"),
        "StoryFaction": await made("FACTION", "Guild"),
        "CharacterRelationship": tie["relationshipSet"]["relationship"]["id"],
        "other": other,
    }


def entity_inputs(ids: Mapping[str, str]) -> dict[str, Json]:
    """An input for each of ENTITY_CHANGES, aimed at rows whose ids are given by their kinds."""
    place = {"entityId": ids["StoryLocation"]}
    return {
        "EntityCreate": {"branchId": ids["Branch"], "kind": "ITEM", "name": "Not mine"},
        "EntityUpdate": {**place, "name": "Not mine"},
        "EntityRetire": {**place, "reason": "Not mine."},
        "EntityDelete": place,
        "EntityMerge": {"keptId": ids["StoryCharacter"], "lostId": ids["other"]},
        "ItemMove": {"itemId": ids["StoryItem"], "holderId": ids["StoryCharacter"]},
        "StackablesTransfer": {"receiverId": ids["StoryCharacter"], "key": "gold", "amount": 1},
        "RelationshipSet": {
            "subjectId": ids["other"],
            "objectId": ids["StoryCharacter"],
            "kind": "not mine",
        },
        "RelationshipDelete": {"relationshipId": ids["CharacterRelationship"]},
    }


# The first field of each input: where it says what it did not find.
ENTITY_PATHS = {
    "entityCreate": "branchId",
    "entityUpdate": "entityId",
    "entityRetire": "entityId",
    "entityDelete": "entityId",
    "entityMerge": "keptId",
    "itemMove": "itemId",
    "stackablesTransfer": "receiverId",
    "relationshipSet": "subjectId",
    "relationshipDelete": "relationshipId",
}
# How many rows more each makes, by table.
ENTITY_MADE = {
    "entityCreate": {"entities": 1},
    "entityUpdate": {},
    "entityRetire": {},
    "entityDelete": {"entities": -1},
    "entityMerge": {"deltas": 2, "entities": -1, "character_relationships": -1},
    "itemMove": {},
    "stackablesTransfer": {},
    "relationshipSet": {},
    "relationshipDelete": {"character_relationships": -1},
}

_OF_ENTITY = ["description", "retiredReason", "keywords.1", "tags.1", "state.voice"]
_TEXTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "entityCreate": ({"branchId": '"br_1"', "kind": "ITEM", "name": '"x"'}, _OF_ENTITY),
    "entityUpdate": ({"entityId": '"char_1"'}, ["name", *_OF_ENTITY]),
    "entityRetire": ({"entityId": '"char_1"'}, ["reason"]),
    "entityDelete": ({"entityId": '"char_1"'}, []),
    "entityMerge": ({"keptId": '"char_1"', "lostId": '"char_2"'}, []),
    "itemMove": ({"itemId": '"item_1"'}, ["holderId", "locationId"]),
    "stackablesTransfer": ({"key": '"x"', "amount": "1"}, ["giverId", "receiverId"]),
    "relationshipSet": ({"subjectId": '"char_1"', "objectId": '"char_2"'}, ["kind"]),
    "relationshipDelete": ({"relationshipId": '"rel_1"'}, []),
}
_NESTED = {
    "keywords.1": 'keywords: ["x", $value]',
    "tags.1": 'tags: ["x", $value]',
    "state.voice": "state: { voice: $value }",
}


def entity_texts() -> dict[str, tuple[str, list[str]]]:
    """Each change with `$value` in the place of each of its texts, and the path of that."""
    found: dict[str, tuple[str, list[str]]] = {}
    for mutation, (required, optional) in _TEXTS.items():
        texts = [name for name, value in required.items() if value.startswith('"')]
        for place in [*texts, *optional]:
            given = {name: f"{name}: {value}" for name, value in required.items()}
            given[place] = _NESTED.get(place, f"{place}: $value")
            written = f"{mutation}(input: {{ {', '.join(given.values())} }})"
            found[f"{mutation} {place}"] = (written, ["input", *place.split(".")])
    return found
