"""Changes to a story's world."""

from __future__ import annotations

from typing import Any

from db.enums import ItemSlot
from resolvers.context import Context
from resolvers.inputs import given
from services import entities as service

# Of an input: what becomes columns. None of them can be null, so null is as good as left out.
_COLUMNS = (*("name", "description", "status", "keywords", "tags", "injection_mode", "priority"),)


async def create_entity(context: Context, input: Any) -> dict[str, Any]:
    """Make an entity."""
    values = {name: getattr(input, name) for name in ("kind", "retired_reason", *_COLUMNS)}
    async with context.writing() as change:
        changed, namesakes = await service.create_entity(
            change.writing,
            context.viewer,
            input.branch_id,
            values,
            input.state,
            input.expected_head,
        )
        return change.answer(
            entity=changed.entity,
            also_changed=changed.also_changed,
            namesakes=namesakes,
            branch=changed.branch,
        )


async def update_entity(context: Context, input: Any) -> dict[str, Any]:
    """Change an entity."""
    columns = {name: getattr(input, name) for name in _COLUMNS}
    changes = {name: value for name, value in columns.items() if value is not None}
    async with context.writing() as change:
        changed = await service.update_entity(
            change.writing,
            context.viewer,
            input.entity_id,
            {**changes, **given(input, "retired_reason")},
            input.state,
            clears_collision=input.clear_collision,
            expected_head=input.expected_head,
        )
        return change.answer(
            entity=changed.entity, also_changed=changed.also_changed, branch=changed.branch
        )


async def retire_entity(context: Context, input: Any) -> dict[str, Any]:
    """Say that an entity is gone."""
    async with context.writing() as change:
        changed = await service.retire_entity(
            change.writing, context.viewer, input.entity_id, input.reason, input.expected_head
        )
        return change.answer(
            entity=changed.entity, also_changed=changed.also_changed, branch=changed.branch
        )


async def delete_entity(context: Context, input: Any) -> dict[str, Any]:
    """Delete an entity."""
    async with context.writing() as change:
        deleted_id, also_changed, branch = await service.delete_entity(
            change.writing, context.viewer, input.entity_id, input.expected_head
        )
        return change.answer(deleted_id=deleted_id, also_changed=also_changed, branch=branch)


async def merge_entities(context: Context, input: Any) -> dict[str, Any]:
    """Make two entities one, or tell what that would change."""
    async with context.writing() as change:
        changed, changes = await service.merge_entities(
            change.writing,
            context.viewer,
            input.kept_id,
            input.lost_id,
            is_dry=input.dry_run,
            expected_head=input.expected_head,
        )
        return change.answer(
            entity=changed.entity,
            also_changed=changed.also_changed,
            changes=changes,
            branch=changed.branch,
        )


async def move_item(context: Context, input: Any) -> dict[str, Any]:
    """Move an item."""
    async with context.writing() as change:
        changed = await service.move_item(
            change.writing,
            context.viewer,
            input.item_id,
            holder_id=input.holder_id,
            slot=input.slot or ItemSlot.INVENTORY,
            location_id=input.location_id,
            expected_head=input.expected_head,
        )
        return change.answer(
            item=changed.entity, also_changed=changed.also_changed, branch=changed.branch
        )


async def transfer_stackables(context: Context, input: Any) -> dict[str, Any]:
    """Move a quantity."""
    async with context.writing() as change:
        giver, receiver, branch = await service.transfer_stackables(
            change.writing,
            context.viewer,
            giver_id=input.giver_id,
            receiver_id=input.receiver_id,
            key=input.key,
            amount=input.amount,
            expected_head=input.expected_head,
        )
        return change.answer(giver=giver, receiver=receiver, branch=branch)


async def set_relationship(context: Context, input: Any) -> dict[str, Any]:
    """Say what a character sees in another one."""
    async with context.writing() as change:
        relationship, branch = await service.set_relationship(
            change.writing,
            context.viewer,
            input.subject_id,
            input.object_id,
            input.kind,
            input.expected_head,
        )
        return change.answer(relationship=relationship, branch=branch)


async def delete_relationship(context: Context, input: Any) -> dict[str, Any]:
    """Forget what two characters are to each other."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_relationship(
            change.writing, context.viewer, input.relationship_id, input.expected_head
        )
        return change.answer(deleted_id=deleted_id, branch=branch)
