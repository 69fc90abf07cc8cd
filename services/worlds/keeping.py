"""Worlds themselves: making, changing, deleting; and the lists that begin at one.

Source: spec soul-mirror, section 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, func, update
from sqlmodel import col

from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, columns, param, statement
from db.tables import Story, World
from services.access import Viewer, hold_row, require_version, visible
from services.accounts import record_act
from services.text import MAX_LINE, checked_lines, checked_prose, checked_text

MAX_PROSE = 50_000
WORLD_PATH = ("input", "worldId")

WORLDS = PagedList(
    "worlds",
    World,
    sort=[
        SortKey(col(World.created_at), is_descending=True),
        SortKey(col(World.id), is_descending=True),
    ],
    where=lambda: visible(World),
)
STORIES_OF_WORLDS = PagedList(
    "stories_of_worlds",
    Story,
    sort=[SortKey(col(Story.created_at)), SortKey(col(Story.id))],
    parent=col(Story.world_id),
    where=lambda: visible(Story),
)


async def list_worlds(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[World]:
    """The viewer's worlds, newest first."""
    return await WORLDS.page(reading, request, **viewer.parameters)


async def create_world(writing: Writing, viewer: Viewer, values: Mapping[str, Any]) -> World:
    """Make a world; `values` by the names of columns. Raises Forbidden (NOT_SIGNED_IN), Invalid
    (TEXT_…), LimitReached.
    """
    owner_id = viewer.signed_in_id
    world = await writing.insert(World, owner_user_id=owner_id, **_checked(values))
    await record_act(writing, viewer, "world_created", world.id)
    return world


async def update_world(
    writing: Writing,
    viewer: Viewer,
    world_id: str,
    changes: Mapping[str, Any],
    expected_version: int | None = None,
) -> World:
    """Change what is given. What changes nothing counts as no change.

    Raises NotFound, Conflict, Invalid (TEXT_…), LimitReached.
    """
    world = await hold_world(writing, viewer, world_id)
    require_version(world, expected_version, "input", "expectedVersion")
    wanted = _checked(changes)
    changed = {name: value for name, value in wanted.items() if getattr(world, name) != value}
    if not changed:
        return world
    updated = await writing.first(_update(tuple(sorted(changed))), of_id=world.id, **changed)
    assert updated is not None  # it is held
    return updated


async def delete_world(writing: Writing, viewer: Viewer, world_id: str) -> str:
    """Delete a world with all that is in it; its id. Stories and talk that were set in it stay, and
    so does its canon, which names a world that is gone. Raises NotFound.
    """
    world = await hold_world(writing, viewer, world_id)
    await writing.run(_delete(), of_id=world.id)
    await record_act(writing, viewer, "world_deleted", world.id)
    return world.id


async def hold_world(writing: Writing, viewer: Viewer, world_id: str) -> World:
    """A world, held: who changes anything in a world has it alone. Raises NotFound."""
    return await hold_row(writing, viewer, World, world_id, *WORLD_PATH)


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    wanted = dict(values)
    if "name" in wanted:
        checked_text(wanted["name"], "input", "name", max_length=MAX_LINE)
    if "background" in wanted:
        checked_prose(wanted["background"], "input", "background", max_length=MAX_PROSE)
    if "rules" in wanted:
        wanted["rules"] = checked_lines(wanted["rules"], "input", "rules")
    return wanted


@statement(World)
def _update(names: tuple[str, ...]) -> Any:
    changed = {getattr(World, name): param(name, getattr(World, name).type) for name in names}
    return (
        update(World)
        .where(col(World.id) == param("of_id"))
        .values(
            {
                **changed,
                col(World.updated_at): func.clock_timestamp(),
                col(World.version): col(World.version) + 1,
            }
        )
        .returning(*columns(World))
    )


@statement(World)
def _delete() -> Any:
    return delete(World).where(col(World.id) == param("of_id"))
