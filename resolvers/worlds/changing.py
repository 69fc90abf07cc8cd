"""Changes of worlds, of what is in them, and of who plays whom."""

from __future__ import annotations

from typing import Any

from resolvers.context import Context
from resolvers.inputs import given
from services import worlds as service


async def create_world(context: Context, input: Any) -> dict[str, Any]:
    """Make a world."""
    values = {"name": input.name, "background": input.background, "rules": input.rules}
    async with context.writing() as change:
        world = await service.create_world(change.writing, context.viewer, values)
        return change.answer(world=world)


async def update_world(context: Context, input: Any) -> dict[str, Any]:
    """Change a world."""
    changes = given(input, "name", "background", "rules")
    async with context.writing() as change:
        world = await service.update_world(
            change.writing, context.viewer, input.world_id, changes, input.expected_version
        )
        return change.answer(world=world)


async def delete_world(context: Context, input: Any) -> dict[str, Any]:
    """Delete a world."""
    async with context.writing() as change:
        deleted_id = await service.delete_world(change.writing, context.viewer, input.world_id)
        return change.answer(deleted_id=deleted_id)


async def create_world_entity(context: Context, input: Any) -> dict[str, Any]:
    """Put somebody or something into a world."""
    async with context.writing() as change:
        entity = await service.create_world_entity(
            change.writing, context.viewer, input.world_id, _entity_values(input)
        )
        return change.answer(world_entity=entity)


async def update_world_entity(context: Context, input: Any) -> dict[str, Any]:
    """Change an entity of a world."""
    names = ("kind", "name", "description", "aliases", "tags", "attributes", "sources")
    async with context.writing() as change:
        entity = await service.update_world_entity(
            change.writing,
            context.viewer,
            input.world_entity_id,
            given(input, *names),
            input.expected_version,
        )
        return change.answer(world_entity=entity)


async def delete_world_entity(context: Context, input: Any) -> dict[str, Any]:
    """Delete an entity of a world."""
    async with context.writing() as change:
        deleted_id = await service.delete_world_entity(
            change.writing, context.viewer, input.world_entity_id
        )
        return change.answer(deleted_id=deleted_id)


async def set_relation(context: Context, input: Any) -> dict[str, Any]:
    """Say what one entity is to another."""
    async with context.writing() as change:
        relation = await service.set_relation(
            change.writing,
            context.viewer,
            input.source_id,
            input.target_id,
            input.kind,
            given(
                input,
                "label",
                "weight",
                "is_directed",
                "valid_from",
                "valid_until",
                "confidence",
                "sources",
            ),
        )
        return change.answer(relation=relation)


async def delete_relation(context: Context, input: Any) -> dict[str, Any]:
    """Delete a relation."""
    async with context.writing() as change:
        deleted_id = await service.delete_relation(
            change.writing, context.viewer, input.relation_id
        )
        return change.answer(deleted_id=deleted_id)


async def remove_source(context: Context, input: Any) -> dict[str, Any]:
    """Take a source back."""
    async with context.writing() as change:
        world, entities, relations, gone = await service.remove_source(
            change.writing, context.viewer, input.world_id, input.source
        )
        return change.answer(
            world=world,
            entities_changed=entities,
            relations_changed=relations,
            relations_deleted=gone,
        )


def _entity_values(input: Any) -> dict[str, Any]:
    names = ("kind", "name", "description", "aliases", "tags", "attributes", "sources")
    return _said(input, *names)


def _said(input: Any, *names: str) -> dict[str, Any]:
    """Those of the named fields that are not null."""
    values = {name: getattr(input, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


async def upsert(context: Context, input: Any) -> dict[str, Any]:
    """Put many entities and relations into a world."""
    entities = [service.NewEntity(each.key, _entity_values(each)) for each in input.entities]
    relations = [
        service.NewRelation(
            each.source_key,
            each.target_key,
            _said(
                each,
                "kind",
                "label",
                "weight",
                "is_directed",
                "valid_from",
                "valid_until",
                "confidence",
                "sources",
            ),
        )
        for each in input.relations
    ]
    async with context.writing() as change:
        done = await service.upsert(
            change.writing, context.viewer, input.world_id, entities, relations
        )
        return change.answer(
            world=done.world, keys=done.ids, entities=done.entities, relations=done.relations
        )


async def merge_world_entities(context: Context, input: Any) -> dict[str, Any]:
    """Make two entities one."""
    async with context.writing() as change:
        kept, merge, changes = await service.merge_world_entities(
            change.writing, context.viewer, input.kept_id, input.merged_id, is_dry=input.dry_run
        )
        return change.answer(world_entity=kept, merge=merge, changes=changes)


async def unmerge_world_entities(context: Context, input: Any) -> dict[str, Any]:
    """Take a merge back."""
    async with context.writing() as change:
        kept, merged, merge = await service.unmerge_world_entities(
            change.writing, context.viewer, input.merge_id
        )
        return change.answer(kept=kept, merged=merged, merge=merge)


async def cast_world_entity(context: Context, input: Any) -> dict[str, Any]:
    """Draw one of a story's cast from a world."""
    values = _said(input, "name", "description", "status")
    async with context.writing() as change:
        changed, casting = await service.cast_world_entity(
            change.writing,
            context.viewer,
            input.world_entity_id,
            input.branch_id,
            values,
            input.expected_head,
        )
        return change.answer(entity=changed.entity, casting=casting, branch=changed.branch)


async def create_casting(context: Context, input: Any) -> dict[str, Any]:
    """Write down who plays an entity, or what it was drawn from."""
    async with context.writing() as change:
        casting = await service.create_casting(
            change.writing,
            context.viewer,
            input.entity_id,
            character_id=input.character_id,
            world_entity_id=input.world_entity_id,
        )
        return change.answer(casting=casting)


async def delete_casting(context: Context, input: Any) -> dict[str, Any]:
    """Take a casting back."""
    async with context.writing() as change:
        deleted_id = await service.delete_casting(change.writing, context.viewer, input.casting_id)
        return change.answer(deleted_id=deleted_id)
