"""Changing a story itself, opening one of its branches, and deleting it whole.

Nothing here is logged: what is of the story and not of a branch can not be undone.
Source: spec aventuras, story identity fields; story deletion; story settings shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlmodel import col

from db.enums import AssetKind, EntityKind, EntityStatus, StoryStatus
from db.reading import Writing, any_of, columns, param, statement
from db.tables import Asset, Branch, Story, StoryEntity, StoryEntry
from services import deltas
from services.access import (
    Viewer,
    hold_row,
    require_row,
    require_version,
    row_id_in,
    rows_by_ids,
)
from services.accounts import record_act
from services.assets import settle_references
from services.errors import Forbidden, Invalid, LimitReached, NotFound
from services.hub import announce
from services.scenes import MAX_PRESENT, PRESENT_KINDS
from services.shapes import same
from services.stories.creating import opening_row
from services.stories.defining import (
    MAX_PROSE,
    changed_settings,
    checked_definition,
    checked_identity,
    checked_origin,
    checked_style,
    checked_world,
    hold_calendar,
)
from services.text import checked_prose

_PATH = ("input", "storyId")
_DEFINITION = ("input", "definition")
_LEAD = (*_DEFINITION, "leadEntityId")
_OPENING = ("input", "opening")


@dataclass(frozen=True, slots=True)
class FirstEntry:
    """How a draft begins, with ids of its branch."""

    content: str
    scene_entity_ids: Sequence[str] = ()
    current_location_id: str | None = None
    model: str | None = None


async def update_story(
    writing: Writing,
    viewer: Viewer,
    story_id: str,
    changes: Mapping[str, Any],
    *,
    expected_version: int | None = None,
    opening: FirstEntry | None = None,
) -> Story:
    """Change a story. `changes` has new values by the names of columns, and under `definition` and
    `settings` what changes in these. What changes nothing counts as no change.

    Raises NotFound, Conflict, Forbidden (STATUS_REFUSED), LimitReached and Invalid: TEXT_…,
    COLOR_INVALID, WRONG_KIND, NOT_ACTIVE, CALENDAR_REQUIRED, ORIGIN_REQUIRED, DATE_INVALID,
    LEAD_REQUIRED, OPENING_REQUIRED, OPENING_EXISTS, INVALID_SHAPE.
    """
    story = await hold_row(writing, viewer, Story, story_id, *_PATH)
    require_version(story, expected_version, "input", "expectedVersion")
    wanted = checked_identity(changes)
    if wanted.get("cover_asset_id") is not None:
        await _hold_covers(writing, viewer, story, wanted["cover_asset_id"])
    if "world_id" in wanted:
        wanted["world_id"] = await checked_world(writing, viewer, wanted["world_id"])
    status = _checked_status(story, wanted)
    definition = story.definition_json
    if "definition" in wanted:
        definition = await _defined(writing, viewer, story, wanted.pop("definition"))
        wanted["definition_json"] = definition
    if opening is not None:
        await _plant_opening(writing, viewer, story, opening)
    if "definition" in changes or status != story.status:
        checked_definition(definition, _LEAD, is_draft=status == StoryStatus.DRAFT)
    if story.status == StoryStatus.DRAFT and status != story.status:
        await _require_opening(writing, story)
    if "settings" in wanted:
        wanted["settings"] = changed_settings(story.settings, wanted["settings"])
    changed = {
        name: value for name, value in wanted.items() if not same(getattr(story, name), value)
    }
    if not changed and opening is None:
        return story
    updated = await writing.first(_update(tuple(sorted(changed))), of_id=story.id, **changed)
    assert updated is not None  # it is held
    if "cover_asset_id" in changed:
        covers = (story.cover_asset_id, updated.cover_asset_id)
        await settle_references(writing, {each for each in covers if each is not None})
    return updated


async def open_story(
    writing: Writing, viewer: Viewer, story_id: str, branch_id: str | None = None
) -> Story:
    """Note that a story was opened, at another of its branches if one is given. That is no change
    of the story. Raises NotFound.
    """
    story = await hold_row(writing, viewer, Story, story_id, *_PATH)
    if branch_id is not None:
        path = ("input", "branchId")
        branch = await require_row(writing, viewer, Branch, branch_id, *path)
        if branch.story_id != story.id:
            raise NotFound("This story has no such branch.", path=path)
    opened = await writing.first(
        _open(), of_id=story.id, branch_id=branch_id or story.current_branch_id
    )
    assert opened is not None  # it is held
    return opened


async def delete_story(writing: Writing, viewer: Viewer, story_id: str) -> str:
    """Delete a story with all that belongs to it, without a log; its id. Its calendar stays, and
    files that nothing shows any more are marked for deletion. Raises NotFound.
    """
    story = await hold_row(writing, viewer, Story, story_id, *_PATH)
    branch_ids = await _hold_branches(writing, story.id)
    shown = await drop_branches(writing, branch_ids)
    await writing.run(_delete(), of_id=story.id)
    cover = [story.cover_asset_id] if story.cover_asset_id is not None else []
    await settle_references(writing, {*shown, *cover})
    await record_act(writing, viewer, "story_deleted", story.id)
    return story.id


async def drop_branches(writing: Writing, branch_ids: Sequence[str]) -> list[str]:
    """Delete branches, which the caller holds, with all that belongs to them, and tell those who
    watch them; the ids of files that they have shown, to be settled.
    """
    shown = await deltas.drop_branches(writing, branch_ids)
    await writing.run(_delete_branches(), ids=list(branch_ids))
    for each in branch_ids:
        await announce(writing, deltas.branch_topic(each))
    return shown


async def _hold_branches(writing: Writing, story_id: str) -> list[str]:
    """All branches of a story, held against their writers and against forks: from then on there are
    no others.
    """
    # A fork refers to the story until its end, and refers to one that is locked like this no more.
    await writing.run(_lock_out_forks(), story_id=story_id)
    return [row.id for row in await writing.all(_branches_held(), story_id=story_id)]


def _checked_status(story: Story, wanted: Mapping[str, Any]) -> StoryStatus:
    """The status that a story is to have. Raises Forbidden: a draft becomes active and nothing
    becomes a draft; what is active can be put away and taken out again.
    """
    status: StoryStatus = wanted.get("status", story.status)
    if status != story.status and (
        status == StoryStatus.DRAFT
        or (story.status == StoryStatus.DRAFT and status != StoryStatus.ACTIVE)
    ):
        told = "A draft becomes active, what is active can be archived, and nothing else."
        raise Forbidden(told, "STATUS_REFUSED", ("input", "status"))
    return status


async def _hold_covers(writing: Writing, viewer: Viewer, story: Story, asset_id: str) -> None:
    """Hold the picture that a story is to have and the one that it has: in the order of their ids,
    as who settles them does, so that two who exchange pictures never wait for each other.
    """
    path = ("input", "coverAssetId")
    for each in sorted({asset_id, story.cover_asset_id or asset_id}):
        asset = await hold_row(writing, viewer, Asset, each, *path)
        if each == asset_id and asset.kind != AssetKind.IMAGE:
            raise Invalid("A cover is an image.", "WRONG_KIND", path)


async def _defined(
    writing: Writing, viewer: Viewer, story: Story, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The definition of a story with what was given of it."""
    definition = dict(story.definition_json)
    if "narration" in given:
        definition["narration"] = str(given["narration"])
    for name in ("genre", "tone"):
        if name in given:
            style = given[name]
            definition[name] = checked_style(style.label, style.prompt_body, *_DEFINITION, name)
    if "setting" in given:
        definition["setting"] = checked_prose(
            given["setting"], *_DEFINITION, "setting", max_length=MAX_PROSE
        )
    if "lead_entity_id" in given:
        definition["leadEntityId"] = await _lead_of(writing, viewer, story, given["lead_entity_id"])
    if "calendar_system_id" in given or "world_time_origin" in given:
        await _count_by(writing, viewer, definition, given)
    return definition


async def _count_by(
    writing: Writing, viewer: Viewer, definition: dict[str, Any], given: Mapping[str, Any]
) -> None:
    """Change the calendar, or what time 0 is by it. Seconds of the story stay what they are, so
    that by another calendar somebody must say anew where they begin.
    """
    path = (*_DEFINITION, "worldTimeOrigin")
    calendar_id = given.get("calendar_system_id", definition["calendarSystemId"])
    if calendar_id != definition["calendarSystemId"] and "world_time_origin" not in given:
        told = "Say by the new calendar when the story begins."
        raise Invalid(told, "ORIGIN_REQUIRED", path)
    calendar = await hold_calendar(writing, viewer, calendar_id, (*_DEFINITION, "calendarSystemId"))
    definition["calendarSystemId"] = calendar.id
    if "world_time_origin" in given:
        definition["worldTimeOrigin"] = checked_origin(calendar, given["world_time_origin"], path)


async def _lead_of(
    writing: Writing, viewer: Viewer, story: Story, entity_id: str | None
) -> str | None:
    """The own id of a character of the branch that is open."""
    if entity_id is None:
        return None
    (lead,) = await _entities(writing, viewer, story, [entity_id], _LEAD)
    if lead.kind != EntityKind.CHARACTER:
        raise Invalid("A lead is a character.", "WRONG_KIND", _LEAD)
    return lead.row_id


async def _entities(
    writing: Writing,
    viewer: Viewer,
    story: Story,
    ids: Sequence[str],
    *paths: tuple[str | int, ...],
) -> list[StoryEntity]:
    """Entities of the branch that is open, by ids as clients send them. Raises NotFound with the
    path of the first that is not there.
    """
    branch_id = story.current_branch_id or ""
    own = [
        row_id_in(branch_id, StoryEntity, each, *path)
        for each, path in zip(ids, paths, strict=True)
    ]
    rows = await rows_by_ids(writing, viewer, StoryEntity, [f"{branch_id}:{each}" for each in own])
    found = []
    for row, path in zip(rows, paths, strict=True):
        if row is None:
            raise NotFound("There is no such StoryEntity in this branch.", path=path)
        found.append(row)
    return found


async def _plant_opening(
    writing: Writing, viewer: Viewer, story: Story, opening: FirstEntry
) -> None:
    """Let a draft begin. Raises Invalid (OPENING_EXISTS) where there is something already."""
    branch = await deltas.hold_branch(writing, viewer, story.current_branch_id or "", *_PATH)
    is_begun = await writing.first(_first_entry(), branch_id=branch.id) is not None
    if story.status != StoryStatus.DRAFT or is_begun:
        raise Invalid("This story has begun: edit its entries.", "OPENING_EXISTS", _OPENING)
    path = (*_OPENING, "sceneEntityIds")
    count = len(opening.scene_entity_ids)
    if count > MAX_PRESENT:
        raise LimitReached(f"A scene has {MAX_PRESENT} at most.", path=path)
    paths = [(*path, index) for index in range(count)]
    scene = await _entities(writing, viewer, story, opening.scene_entity_ids, *paths)
    for row, where in zip(scene, paths, strict=True):
        _require_active(row, PRESENT_KINDS, where)
    location_id = None
    if opening.current_location_id is not None:
        path = (*_OPENING, "currentLocationId")
        (place,) = await _entities(writing, viewer, story, [opening.current_location_id], path)
        _require_active(place, (EntityKind.LOCATION,), path)
        location_id = place.row_id
    row_ids = [row.row_id for row in scene]
    entry = opening_row(opening.content, opening.model, row_ids, location_id)
    await deltas.plant_rows(writing, branch.id, StoryEntry, [entry])


def _require_active(
    row: StoryEntity, kinds: Sequence[EntityKind], path: tuple[str | int, ...]
) -> None:
    if row.kind not in kinds:
        raise Invalid(f"Name a {' or '.join(sorted(kinds))} here.", "WRONG_KIND", path)
    if row.status != EntityStatus.ACTIVE:
        raise Invalid("A story begins with those who are active.", "NOT_ACTIVE", path)


async def _require_opening(writing: Writing, story: Story) -> None:
    if await writing.first(_first_entry(), branch_id=story.current_branch_id) is None:
        raise Invalid("Write how the story begins.", "OPENING_REQUIRED", _OPENING)


@statement(StoryEntry)
def _first_entry() -> Any:
    return (
        select(*columns(StoryEntry))
        .where(col(StoryEntry.branch_id) == param("branch_id"))
        .order_by(col(StoryEntry.position))
        .limit(1)
    )


@statement(Story)
def _lock_out_forks() -> Any:
    return select(col(Story.id)).where(col(Story.id) == param("story_id")).with_for_update()


@statement(Branch)
def _branches_held() -> Any:
    return (
        select(col(Branch.id))
        .where(col(Branch.story_id) == param("story_id"))
        .order_by(col(Branch.id))
        .with_for_update(key_share=True)
    )


@statement(Story)
def _update(names: tuple[str, ...]) -> Any:
    changed = {getattr(Story, name): param(name, getattr(Story, name).type) for name in names}
    return (
        update(Story)
        .where(col(Story.id) == param("of_id"))
        .values(
            {
                **changed,
                col(Story.updated_at): func.clock_timestamp(),
                col(Story.version): col(Story.version) + 1,
            }
        )
        .returning(*columns(Story))
    )


@statement(Story)
def _open() -> Any:
    return (
        update(Story)
        .where(col(Story.id) == param("of_id"))
        .values(current_branch_id=param("branch_id"), last_opened_at=func.clock_timestamp())
        .returning(*columns(Story))
    )


@statement(Story)
def _delete() -> Any:
    return delete(Story).where(col(Story.id) == param("of_id"))


@statement(Branch)
def _delete_branches() -> Any:
    return delete(Branch).where(any_of(Branch.id, "ids"))
