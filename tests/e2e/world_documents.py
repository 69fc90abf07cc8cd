"""What front ends ask about worlds that outlast stories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.e2e.callers import Caller, Json

WORLD_CHANGES = """
fragment Refused on UserError { code message path }
mutation WorldCreate($input: WorldCreateInput!) {
  worldCreate(input: $input) { world { id name version } errors { ...Refused } }
}
mutation WorldUpdate($input: WorldUpdateInput!) {
  worldUpdate(input: $input) { world { id name version } errors { ...Refused } }
}
mutation WorldDelete($input: WorldDeleteInput!) {
  worldDelete(input: $input) { deletedId errors { ...Refused } }
}
mutation WorldUpsert($input: WorldUpsertInput!) {
  worldUpsert(input: $input) {
    world { id } keys { key id }
    entities { created updated unchanged } relations { created updated unchanged }
    errors { ...Refused }
  }
}
mutation WorldEntityCreate($input: WorldEntityCreateInput!) {
  worldEntityCreate(input: $input) {
    worldEntity { id name aliases attributes version } errors { ...Refused }
  }
}
mutation WorldEntityUpdate($input: WorldEntityUpdateInput!) {
  worldEntityUpdate(input: $input) { worldEntity { id name aliases } errors { ...Refused } }
}
mutation WorldEntityDelete($input: WorldEntityDeleteInput!) {
  worldEntityDelete(input: $input) { deletedId errors { ...Refused } }
}
mutation WorldEntityMerge($input: WorldEntityMergeInput!) {
  worldEntityMerge(input: $input) {
    worldEntity { id aliases } merge { id undoneAt } changes { effect id } errors { ...Refused }
  }
}
mutation WorldEntityUnmerge($input: WorldEntityUnmergeInput!) {
  worldEntityUnmerge(input: $input) {
    kept { id aliases } merged { id mergedInto { id } } merge { id } errors { ...Refused }
  }
}
mutation WorldEntityCast($input: WorldEntityCastInput!) {
  worldEntityCast(input: $input) {
    entity { id name keywords castings { id worldEntity { id } } }
    casting { id story { id world { id } } entity { id } worldEntity { id } }
    branch { id head } errors { ...Refused }
  }
}
mutation WorldRelationSet($input: WorldRelationSetInput!) {
  worldRelationSet(input: $input) {
    relation { id kind weight validFrom source { name } target { name } } errors { ...Refused }
  }
}
mutation WorldRelationDelete($input: WorldRelationDeleteInput!) {
  worldRelationDelete(input: $input) { deletedId errors { ...Refused } }
}
mutation WorldSourceRemove($input: WorldSourceRemoveInput!) {
  worldSourceRemove(input: $input) {
    world { id } entitiesChanged relationsChanged relationsDeleted errors { ...Refused }
  }
}
mutation CastingCreate($input: CastingCreateInput!) {
  castingCreate(input: $input) { casting { id character { id } } errors { ...Refused } }
}
mutation CastingDelete($input: CastingDeleteInput!) {
  castingDelete(input: $input) { deletedId errors { ...Refused } }
}
"""


async def change_world(caller: Caller, operation: str, **given: Any) -> Json:
    """What a mutation answers that refuses nothing."""
    (payload,) = (await caller.ask(WORLD_CHANGES, {"input": given}, operation)).values()
    assert payload["errors"] == []
    return dict(payload)


async def make_lasting_world(caller: Caller, character: str) -> dict[str, str]:
    """A world with one who plays a character of a story, and two who are one; ids by kinds."""
    world = (await change_world(caller, "WorldCreate", name="Mine"))["world"]["id"]
    names = ("one", "other", "again")
    done = await change_world(
        caller,
        "WorldUpsert",
        worldId=world,
        entities=[{"key": each, "kind": "CHARACTER", "name": f"My {each}"} for each in names],
    )
    one, other, again = [each["id"] for each in done["keys"]]
    tied = await change_world(caller, "WorldRelationSet", sourceId=one, targetId=other, kind="mine")
    merged = await change_world(caller, "WorldEntityMerge", keptId=other, mergedId=again)
    cast = await change_world(caller, "CastingCreate", entityId=character, worldEntityId=one)
    return {
        "World": world,
        "WorldEntity": one,
        "other entity": other,
        "WorldRelation": tied["relation"]["id"],
        "WorldMerge": merged["merge"]["id"],
        "Casting": cast["casting"]["id"],
    }


def world_inputs(ids: Mapping[str, str]) -> dict[str, Json]:
    """An input for each of WORLD_CHANGES that names something, aimed at ids given by kinds."""
    world, entity = ids["World"], ids["WorldEntity"]
    return {
        "WorldUpdate": {"worldId": world, "name": "Not mine"},
        "WorldDelete": {"worldId": world},
        "WorldUpsert": {
            "worldId": world,
            "entities": [{"key": "a", "kind": "ITEM", "name": "Not mine"}],
        },
        "WorldEntityCreate": {"worldId": world, "kind": "ITEM", "name": "Not mine"},
        "WorldEntityUpdate": {"worldEntityId": entity, "name": "Not mine"},
        "WorldEntityDelete": {"worldEntityId": entity},
        "WorldEntityMerge": {"keptId": entity, "mergedId": ids["other entity"]},
        "WorldEntityUnmerge": {"mergeId": ids["WorldMerge"]},
        "WorldEntityCast": {"worldEntityId": entity, "branchId": ids["Branch"]},
        "WorldRelationSet": {
            "sourceId": entity,
            "targetId": ids["other entity"],
            "kind": "not mine",
        },
        "WorldRelationDelete": {"relationId": ids["WorldRelation"]},
        "WorldSourceRemove": {"worldId": world, "source": "Not mine"},
        "CastingCreate": {
            "entityId": ids["StoryCharacter"],
            "worldEntityId": entity,
        },
        "CastingDelete": {"castingId": ids["Casting"]},
    }


# What a stranger does not find.
WORLD_PATHS = {
    "worldUpdate": "worldId",
    "worldDelete": "worldId",
    "worldUpsert": "worldId",
    "worldEntityCreate": "worldId",
    "worldEntityUpdate": "worldEntityId",
    "worldEntityDelete": "worldEntityId",
    "worldEntityMerge": "keptId",
    "worldEntityUnmerge": "mergeId",
    "worldEntityCast": "worldEntityId",
    "worldRelationSet": "sourceId",
    "worldRelationDelete": "relationId",
    "worldSourceRemove": "worldId",
    "castingCreate": "entityId",
    "castingDelete": "castingId",
}
