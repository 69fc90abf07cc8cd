"""Making a story: what it is, its first branch, its cast, its lore and its opening, all at once and
without a log, so that nothing of it can be undone.

Those who ask name what they make by keys of their own, which the answer says the ids of.
Source: spec aventuras, wizard creation is exempt from the delta log; opening entry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from db.enums import (
    EntityKind,
    EntityStatus,
    EntryKind,
    InjectionMode,
    Narration,
    StoryMode,
    StoryStatus,
)
from db.ids import new_id
from db.reading import Writing
from db.tables import Branch, EraFlip, Lore, Story, StoryEntity, StoryEntry
from services import deltas
from services.access import Viewer
from services.accounts import record_act
from services.entities import PREFIXES, with_plain_quantities
from services.errors import Forbidden, Invalid, LimitReached
from services.scenes import MAX_PRESENT, PRESENT_KINDS
from services.shapes import EMPTY_STATES, STATES, merged
from services.stories.defining import (
    checked_definition,
    checked_identity,
    checked_origin,
    checked_style,
    checked_world,
    hold_calendar,
    initial_settings,
)
from services.text import MAX_LINE, checked_lines, checked_prose, checked_text

FIRST_BRANCH = "Main"
MAX_CAST = 500
MAX_LORE = 1_000
MAX_KEY = 100
MAX_PROSE = 50_000
MAX_PRIORITY = 100
# What of a state says where somebody is and belongs: given by keys, since there are no ids yet.
# By kind: the field of the state, the field of the input, the kind of what it leads to.
LINKS: dict[EntityKind, tuple[tuple[str, str, EntityKind], ...]] = {
    EntityKind.CHARACTER: (
        ("current_location_id", "location_key", EntityKind.LOCATION),
        ("faction_id", "faction_key", EntityKind.FACTION),
    ),
    EntityKind.LOCATION: (("parent_location_id", "parent_key", EntityKind.LOCATION),),
    EntityKind.ITEM: (("at_location_id", "location_key", EntityKind.LOCATION),),
    EntityKind.FACTION: (),
}
LINK_FIELDS = {
    "parent_key": "parentKey",
    "location_key": "locationKey",
    "faction_key": "factionKey",
}
# Nobody has anything, and nobody was seen, before a story begins.
LATER = ("equipped_items", "inventory", "lastSeenAt")


@dataclass(frozen=True, slots=True)
class NewStyle:
    """A genre or a tone."""

    label: str
    prompt_body: str


@dataclass(frozen=True, slots=True)
class NewDefinition:
    """What a story is to be. Without a calendar the one that the owner has chosen for new stories,
    without an origin the calendar's example.
    """

    mode: StoryMode
    narration: Narration
    genre: NewStyle
    tone: NewStyle
    setting: str = ""
    lead_key: str | None = None
    calendar_system_id: str | None = None
    world_time_origin: Any = None


@dataclass(frozen=True, slots=True)
class NewMember:
    """One of the cast: a character, a location, an item or a faction."""

    key: str
    kind: EntityKind
    name: str
    description: str = ""
    status: EntityStatus = EntityStatus.ACTIVE
    parent_key: str | None = None
    location_key: str | None = None
    faction_key: str | None = None
    keywords: Sequence[str] = ()
    tags: Sequence[str] = ()
    injection_mode: InjectionMode = InjectionMode.AUTO
    priority: int = 50
    state: Any = None


@dataclass(frozen=True, slots=True)
class NewLore:
    """Something that is so in the world."""

    key: str
    title: str
    body: str
    category: str | None = None
    keywords: Sequence[str] = ()
    tags: Sequence[str] = ()
    injection_mode: InjectionMode = InjectionMode.AUTO
    priority: int = 50


@dataclass(frozen=True, slots=True)
class NewOpening:
    """The first entry, and who is where in it. `model` says that no person wrote it."""

    content: str
    scene_keys: Sequence[str] = ()
    location_key: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class NewStory:
    """A story to make."""

    title: str
    definition: NewDefinition
    description: str = ""
    tags: Sequence[str] = ()
    accent_color: str | None = None
    is_draft: bool = False
    cast: Sequence[NewMember] = ()
    lore: Sequence[NewLore] = ()
    opening: NewOpening | None = None
    # What the time at which the story begins is called, where its calendar has eras.
    era_name: str | None = None
    # The world that it is set in.
    world_id: str | None = None


@dataclass(frozen=True, slots=True)
class KeyedId:
    """The id that something got which the caller named by a key."""

    key: str
    id: str


@dataclass(slots=True)
class _Cast:
    """The cast by key, with the ids that they get."""

    members: dict[str, NewMember] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def require(
        self, key: str, kinds: Collection[EntityKind], *path: str | int, is_active: bool = False
    ) -> str:
        """The id behind a key. Raises Invalid (KEY_UNKNOWN, WRONG_KIND, NOT_ACTIVE)."""
        member = self.members.get(key)
        if member is None:
            raise Invalid("Nothing in the cast has this key.", "KEY_UNKNOWN", path)
        if member.kind not in kinds:
            wanted = " or ".join(sorted(kinds))
            raise Invalid(f"Name a {wanted} here.", "WRONG_KIND", path)
        if is_active and member.status != EntityStatus.ACTIVE:
            raise Invalid("A story begins with those who are active.", "NOT_ACTIVE", path)
        return self.ids[key]


async def create_story(
    writing: Writing, viewer: Viewer, new: NewStory
) -> tuple[Story, list[KeyedId]]:
    """Make a story with all that it begins with; the ids of cast and lore by their keys.

    Raises Forbidden (NOT_SIGNED_IN, RETIRED_PLACE, RETIRED_PARENT), NotFound (calendar, world),
    LimitReached and Invalid: TEXT_…, COLOR_INVALID, KEY_TAKEN, KEY_TWICE, KEY_UNKNOWN, WRONG_KIND,
    NOT_ACTIVE, PARENT_CYCLE, INVALID_SHAPE, OUT_OF_RANGE, CALENDAR_REQUIRED, DATE_INVALID,
    LEAD_REQUIRED, OPENING_REQUIRED.
    """
    owner_id = viewer.signed_in_id
    identity = checked_identity(
        {
            "title": new.title,
            "description": new.description,
            "tags": new.tags,
            "accent_color": new.accent_color,
        }
    )
    cast = _read_cast(new.cast)
    entities = [_entity_row(cast, each, index) for index, each in enumerate(new.cast)]
    lore = _lore_rows(new.lore, taken=cast.ids)
    entry = _opening_row(new.opening, cast, is_draft=new.is_draft)
    if new.era_name is not None:
        checked_text(new.era_name, "input", "eraName", max_length=MAX_LINE)
    definition = await _definition(writing, viewer, new.definition, cast, is_draft=new.is_draft)
    branch_id = new_id("branches")
    story = await writing.insert(
        Story,
        owner_user_id=owner_id,
        **identity,
        status=StoryStatus.DRAFT if new.is_draft else StoryStatus.ACTIVE,
        definition_json=definition,
        settings=await initial_settings(writing, viewer, new.definition.mode),
        current_branch_id=branch_id,
        world_id=await checked_world(writing, viewer, new.world_id),
    )
    await writing.insert(Branch, id=branch_id, story_id=story.id, name=FIRST_BRANCH)
    await deltas.plant_rows(writing, branch_id, StoryEntity, entities)
    await deltas.plant_rows(writing, branch_id, Lore, lore)
    await deltas.plant_rows(writing, branch_id, StoryEntry, entry)
    if new.era_name is not None:
        flip = {"at_worldtime": 0, "era_name": new.era_name}
        await deltas.plant_rows(writing, branch_id, EraFlip, [flip])
    await record_act(writing, viewer, "story_created", story.id)
    keys = [*(each.key for each in new.cast), *(each.key for each in new.lore)]
    ids = [f"{branch_id}:{row['id']}" for row in (*entities, *lore)]
    return story, [KeyedId(*each) for each in zip(keys, ids, strict=True)]


def opening_row(
    content: str,
    model: str | None,
    scene_ids: Sequence[str],
    location_id: str | None,
) -> dict[str, Any]:
    """The first entry of a branch; raises Invalid (TEXT_…)."""
    path = ("input", "opening")
    meta: dict[str, Any] = {
        "sceneEntities": list(dict.fromkeys(scene_ids)),
        "currentLocationId": location_id,
        "worldTime": 0,
    }
    if model is not None:
        meta["model"] = checked_text(model, *path, "model", max_length=MAX_LINE)
    return {
        "position": 1,
        "kind": EntryKind.OPENING,
        "content": checked_text(content, *path, "content"),
        "metadata": meta,
    }


def _read_cast(members: Sequence[NewMember]) -> _Cast:
    if len(members) > MAX_CAST:
        raise LimitReached(f"A story begins with {MAX_CAST} at most.", path=("input", "cast"))
    cast = _Cast()
    for index, member in enumerate(members):
        _check_key(member.key, cast.ids, "input", "cast", index, "key")
        cast.members[member.key] = member
        cast.ids[member.key] = new_id("entities", PREFIXES[member.kind])
    return cast


def _check_key(key: str, taken: Collection[str], *path: str | int) -> None:
    checked_text(key, *path, max_length=MAX_KEY)
    if key in taken:
        raise Invalid("Something else has this key already.", "KEY_TAKEN", path)


def _entity_row(cast: _Cast, member: NewMember, index: int) -> dict[str, Any]:
    path = ("input", "cast", index)
    state = dict(EMPTY_STATES[member.kind])
    if member.state is not None:
        _refuse_links(member, *path, "state")
        patch = with_plain_quantities(member.state, *path, "state")
        state = merged(STATES[member.kind], state, patch, *path, "state")
    return {
        "id": cast.ids[member.key],
        "kind": member.kind,
        "name": checked_text(member.name, *path, "name", max_length=MAX_LINE),
        "description": checked_prose(
            member.description, *path, "description", max_length=MAX_PROSE
        ),
        "status": member.status,
        "keywords": checked_lines(member.keywords, *path, "keywords"),
        "tags": checked_lines(member.tags, *path, "tags"),
        "injection_mode": member.injection_mode,
        "priority": _checked_priority(member.priority, *path, "priority"),
        "state": {**state, **_links(cast, member, path)},
    }


def _refuse_links(member: NewMember, *path: str | int) -> None:
    named = {key for key, _, _ in LINKS[member.kind]}
    for key in (*named, *LATER):
        if isinstance(member.state, Mapping) and key in member.state:
            told = "Say by keys where it is and belongs; what it has it gets in the story."
            raise Invalid(told, "INVALID_SHAPE", (*path, key))


def _links(cast: _Cast, member: NewMember, path: tuple[str | int, ...]) -> dict[str, str]:
    """The links of a state, from keys of the cast."""
    links = {}
    own = {argument: (name, kind) for name, argument, kind in LINKS[member.kind]}
    for argument, label in LINK_FIELDS.items():
        key = getattr(member, argument)
        if key is None:
            continue
        if argument not in own:
            raise Invalid(f"A {member.kind} has none.", "WRONG_KIND", (*path, label))
        name, kind = own[argument]
        links[name] = cast.require(key, (kind,), *path, label)
        is_gone = cast.members[key].status == EntityStatus.RETIRED
        if kind == EntityKind.LOCATION and is_gone and member.status != EntityStatus.RETIRED:
            told = "This place is retired: nothing enters it."
            code = "RETIRED_PARENT" if label == "parentKey" else "RETIRED_PLACE"
            raise Forbidden(told, code, (*path, label))
    if member.parent_key is not None:
        _refuse_cycle(cast, member, (*path, "parentKey"))
    return links


def _refuse_cycle(cast: _Cast, member: NewMember, path: tuple[str | int, ...]) -> None:
    seen = {member.key}
    above = cast.members.get(member.parent_key or "")
    while above is not None:
        if above.key in seen:
            raise Invalid("A place cannot lie within itself.", "PARENT_CYCLE", path)
        seen.add(above.key)
        above = cast.members.get(above.parent_key or "")


def _checked_priority(priority: int, *path: str | int) -> int:
    if not 0 <= priority <= MAX_PRIORITY:
        raise Invalid(f"A priority lies between 0 and {MAX_PRIORITY}.", "OUT_OF_RANGE", path)
    return priority


def _lore_rows(lore: Sequence[NewLore], taken: Collection[str]) -> list[dict[str, Any]]:
    if len(lore) > MAX_LORE:
        raise LimitReached(f"A story begins with {MAX_LORE} at most.", path=("input", "lore"))
    keys = set(taken)
    rows = []
    for index, each in enumerate(lore):
        path = ("input", "lore", index)
        _check_key(each.key, keys, *path, "key")
        keys.add(each.key)
        category = each.category
        if category is not None:
            checked_text(category, *path, "category", max_length=MAX_LINE)
        rows.append(
            {
                "id": new_id("lore"),
                "title": checked_text(each.title, *path, "title", max_length=MAX_LINE),
                "body": checked_text(each.body, *path, "body", max_length=MAX_PROSE),
                "category": category,
                "keywords": checked_lines(each.keywords, *path, "keywords"),
                "tags": checked_lines(each.tags, *path, "tags"),
                "injection_mode": each.injection_mode,
                "priority": _checked_priority(each.priority, *path, "priority"),
            }
        )
    return rows


def _opening_row(
    opening: NewOpening | None, cast: _Cast, *, is_draft: bool
) -> list[dict[str, Any]]:
    path = ("input", "opening")
    if opening is None:
        if is_draft:
            return []
        raise Invalid("Write how the story begins.", "OPENING_REQUIRED", path)
    if len(opening.scene_keys) > MAX_PRESENT:
        raise LimitReached(f"A scene has {MAX_PRESENT} at most.", path=(*path, "sceneKeys"))
    scene = [
        cast.require(key, PRESENT_KINDS, *path, "sceneKeys", index, is_active=True)
        for index, key in enumerate(opening.scene_keys)
    ]
    location = None
    if opening.location_key is not None:
        location = cast.require(
            opening.location_key, (EntityKind.LOCATION,), *path, "locationKey", is_active=True
        )
    return [opening_row(opening.content, opening.model, scene, location)]


async def _definition(
    writing: Writing, viewer: Viewer, new: NewDefinition, cast: _Cast, *, is_draft: bool
) -> dict[str, Any]:
    path = ("input", "definition")
    lead = None
    if new.lead_key is not None:
        lead = cast.require(new.lead_key, (EntityKind.CHARACTER,), *path, "leadKey")
    calendar = await hold_calendar(
        writing, viewer, new.calendar_system_id, (*path, "calendarSystemId")
    )
    origin = new.world_time_origin
    if origin is None:
        origin = calendar.example_start
    definition = {
        "mode": str(new.mode),
        "leadEntityId": lead,
        "narration": str(new.narration),
        "genre": checked_style(new.genre.label, new.genre.prompt_body, *path, "genre"),
        "tone": checked_style(new.tone.label, new.tone.prompt_body, *path, "tone"),
        "setting": checked_prose(new.setting, *path, "setting", max_length=MAX_PROSE),
        "calendarSystemId": calendar.id,
        "worldTimeOrigin": checked_origin(calendar, origin, (*path, "worldTimeOrigin")),
    }
    checked_definition(definition, (*path, "leadKey"), is_draft=is_draft)
    return definition
