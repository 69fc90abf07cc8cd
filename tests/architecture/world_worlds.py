"""Worlds that outlast stories, for the database in which every relation leads to something."""

from __future__ import annotations

from db.enums import NodeStatus, NodeType, Realm, WorldEntityKind
from db.reading import Writing
from db.tables import Branch, Character, TreeNode, WorldEntity
from services import mirrors, stories, worlds
from services.access import Viewer

# Two of the first world, between whom there is a way.
ENDS = ("went_01ARZ3NDEKTSV4RRFFQ69G5FAV", "went_01ARZ3NDEKTSV4RRFFQ69G5FAW")


async def make_worlds(
    writing: Writing, owner: Viewer, number: int, branch: Branch, character: Character
) -> None:
    """A world with a story, a cast, canon, two who are one and two who may be."""
    world = await worlds.create_world(writing, owner, {"name": f"World {number}"})
    await stories.update_story(writing, owner, branch.story_id, {"world_id": world.id})
    entities = [
        await worlds.create_world_entity(
            writing,
            owner,
            world.id,
            {"kind": WorldEntityKind.CHARACTER, "name": name, "aliases": [f"{name} the Old"]},
        )
        for name in ("Mira", "Mirra", "Odo", "Otto")
    ]
    ids = [each.id for each in entities]
    for source, target in ((0, 1), (1, 0), (1, 2), (2, 3), (3, 0)):
        await worlds.set_relation(
            writing, owner, ids[source], ids[target], "knows", {"label": f"for {number} years"}
        )
    if number == 0:
        for each in ENDS:
            await writing.insert(
                WorldEntity,
                id=each,
                world_id=world.id,
                kind=WorldEntityKind.CONCEPT,
                name=each,
                folded_name=each,
            )
        await worlds.set_relation(writing, owner, *ENDS, "follows", {})
    await worlds.merge_world_entities(writing, owner, ids[2], ids[3])
    drawn, _ = await worlds.cast_world_entity(writing, owner, ids[0], branch.id, {})
    await worlds.create_casting(
        writing, owner, drawn.entity.id, character_id=character.id, world_entity_id=None
    )
    for kind in (WorldEntityKind.LOCATION, WorldEntityKind.ITEM, WorldEntityKind.FACTION):
        thing = await worlds.create_world_entity(
            writing, owner, world.id, {"kind": kind, "name": f"Some {kind}"}
        )
        await worlds.cast_world_entity(writing, owner, thing.id, branch.id, {})
    tree = await mirrors.create_tree(
        writing, owner, character.id, f"World talk {number}", Realm.WORLD, world.id
    )
    nodes: list[TreeNode] = []
    for kind in (NodeType.QUESTION, NodeType.CANDIDATE_ANSWER):
        nodes.append(
            await writing.insert(
                TreeNode,
                tree_id=tree.id,
                parent_node_id=nodes[-1].id if nodes else None,
                node_type=kind,
                status=NodeStatus.SOLIDIFIED,
                realm=Realm.WORLD,
                content="So it is.",
            )
        )
    await mirrors.canonize_path(writing, owner, nodes[-1].id, Realm.WORLD, world.id)
