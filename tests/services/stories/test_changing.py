"""A story is changed, opened and deleted as a whole; its branches stand each for itself."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from db.engine import Database
from db.enums import AssetKind, DeltaSource, EntityKind, StoryMode, StoryStatus
from db.reading import Writing
from db.tables import Asset, Branch, Calendar, Delta, Story, StoryEntity, StoryEntry
from services import calendars, deltas, stories
from services.access import Viewer, find_row, require_row
from services.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from services.shapes import default_settings, loaded_settings
from services.stories import FirstEntry, NewStyle
from tests.conftest import People
from tests.factories import append_entry, entity_values
from tests.services.deltas.ledgers import rows_of
from tests.services.stories.stories import EARTH_ORIGIN, definition, lamplighter, plain
from tests.trees import until_somebody_waits

EVERY_TABLE = (
    *(str(name) for name in deltas.LOGGED),
    "embeddings",
    "redo_steps",
    "branch_events",
    "deltas",
)


async def made(database: Database, viewer: Viewer, new: Any = None) -> tuple[Story, dict[str, str]]:
    """A story, and the ids of what it began with."""
    async with database.writing() as writing:
        story, keys = await stories.create_story(writing, viewer, new or lamplighter())
    return story, {each.key: each.id for each in keys}


def branch_of(story: Story) -> str:
    assert story.current_branch_id is not None
    return story.current_branch_id


async def update(
    database: Database, viewer: Viewer, story: Story, opening: Any = None, **changes: Any
) -> Story:
    async with database.writing() as writing:
        return await stories.update_story(writing, viewer, story.id, changes, opening=opening)


async def picture(
    writing: Writing, viewer: Viewer, name: str, kind: AssetKind = AssetKind.IMAGE
) -> str:
    row = await writing.insert(
        Asset,
        owner_user_id=viewer.signed_in_id,
        kind=kind,
        mime_type="image/png",
        file_path=name,
        size_bytes=1,
        content_hash=name,
    )
    return row.id


async def test_what_changes_nothing_is_no_change(database: Database, people: People) -> None:
    """Rule B11."""
    story, _ = await made(database, people.owner)
    same = {
        "title": story.title,
        "tags": [],
        "status": StoryStatus.ACTIVE,
        "definition": {"genre": NewStyle("Gaslamp mystery", "Fog and brass.")},
        "settings": {"suggestionCount": 3, "translation": {"targetLanguage": None}},
    }
    kept = await update(database, people.owner, story, **same)
    assert (kept.version, kept.updated_at) == (1, None)
    changed = await update(database, people.owner, story, tags=["fog"])
    assert (changed.version, changed.tags, changed.updated_at is None) == (2, ["fog"], False)
    async with database.writing() as writing:
        with pytest.raises(Conflict):
            await stories.update_story(
                writing, people.owner, story.id, {"title": "x"}, expected_version=1
            )


async def test_a_draft_becomes_active_when_it_has_all_that_a_story_needs(
    database: Database, people: People
) -> None:
    """Rules B4, B9, B10, B12."""
    new = lamplighter(is_draft=True, definition=definition(lead_key=None), opening=None)
    story, ids = await made(database, people.owner, new)
    owner, branch_id = people.owner, branch_of(story)
    active = {"status": StoryStatus.ACTIVE}
    begins = FirstEntry("It begins.", [ids["mira"], ids["ledger"].partition(":")[2]], ids["quay"])
    lead = {"definition": {"lead_entity_id": ids["mira"]}}
    cases: list[tuple[Any, dict[str, Any], str, tuple[Any, ...]]] = [
        (None, {"status": StoryStatus.ARCHIVED}, "STATUS_REFUSED", ("status",)),
        (None, {**active, **lead}, "OPENING_REQUIRED", ("opening",)),
        (begins, active, "LEAD_REQUIRED", ("definition", "leadEntityId")),
        (
            FirstEntry("x", [ids["odo"]]),
            {},
            "NOT_ACTIVE",
            ("opening", "sceneEntityIds", 0),
        ),
        (FirstEntry("x", [ids["quay"]]), {}, "WRONG_KIND", ("opening", "sceneEntityIds", 0)),
        (FirstEntry("x", [], ids["mira"]), {}, "WRONG_KIND", ("opening", "currentLocationId")),
        (FirstEntry("x", ["char_1"]), {}, "NOT_FOUND", ("opening", "sceneEntityIds", 0)),
        (
            FirstEntry("x", [ids["mira"]] * 201),
            {},
            "LIMIT_REACHED",
            ("opening", "sceneEntityIds"),
        ),
        (FirstEntry(" "), {}, "TEXT_EMPTY", ("opening", "content")),
    ]
    for opening, changes, code, where in cases:
        with pytest.raises(DomainError) as refusal:
            await update(database, owner, story, opening, **changes)
        assert (refusal.value.code, refusal.value.path) == (code, ("input", *where))
    async with database.reading() as reading:
        assert await rows_of(reading, StoryEntry, branch_id) == []
    begun = await update(database, owner, story, begins, **lead)
    assert (begun.status, begun.version) == ("draft", 2)
    with pytest.raises(Invalid) as refusal:
        await update(database, owner, story, begins)
    assert refusal.value.code == "OPENING_EXISTS"
    done = await update(database, owner, story, **active)
    assert done.status == "active"
    async with database.reading() as reading:
        (entry,) = await rows_of(reading, StoryEntry, branch_id)
        assert await rows_of(reading, Delta, branch_id) == []
    assert (entry.position, entry.kind, entry.meta) == (
        1,
        "opening",
        {
            "sceneEntities": [ids["mira"].partition(":")[2], ids["ledger"].partition(":")[2]],
            "currentLocationId": ids["quay"].partition(":")[2],
            "worldTime": 0,
        },
    )
    for status in (StoryStatus.ARCHIVED, StoryStatus.ACTIVE):
        assert (await update(database, owner, story, status=status)).status == status
    with pytest.raises(Forbidden):
        await update(database, owner, story, status=StoryStatus.DRAFT)


async def test_a_lead_is_a_character_of_the_branch_that_is_open(
    database: Database, people: People
) -> None:
    """Rules B4, B13."""
    story, ids = await made(database, people.owner, lamplighter())
    other, theirs = await made(database, people.owner, lamplighter())
    path = ("input", "definition", "leadEntityId")
    for lead, code in (
        (ids["quay"], "WRONG_KIND"),
        (theirs["mira"], "NOT_FOUND"),
        (None, "LEAD_REQUIRED"),
        ("", "NOT_FOUND"),
    ):
        with pytest.raises(DomainError) as refusal:
            await update(database, people.owner, story, definition={"lead_entity_id": lead})
        assert (refusal.value.code, refusal.value.path) == (code, path)
    bare = ids["odo"].partition(":")[2]
    changed = await update(database, people.owner, story, definition={"lead_entity_id": bare})
    assert changed.definition.lead_entity_id == bare
    assert other.definition.lead_entity_id == theirs["mira"].partition(":")[2]


async def test_a_story_goes_over_to_another_calendar_with_another_beginning(
    database: Database, people: People
) -> None:
    """Rules B5, B14, W25."""
    story, _ = await made(database, people.owner)
    async with database.writing() as writing:
        own = await calendars.clone_calendar(writing, people.owner, "tolkien-shire")
    path = ("input", "definition", "worldTimeOrigin")
    for given, code, where in (
        ({"calendar_system_id": own.id}, "ORIGIN_REQUIRED", path),
        (
            {"calendar_system_id": own.id, "world_time_origin": EARTH_ORIGIN},
            "DATE_INVALID",
            (*path, "hour"),
        ),
        (
            {"calendar_system_id": own.id, "world_time_origin": {"year": 1, "month": 0}},
            "DATE_INVALID",
            (*path, "day"),
        ),
        ({"world_time_origin": 5}, "DATE_INVALID", path),
    ):
        with pytest.raises(Invalid) as refusal:
            await update(database, people.owner, story, definition=given)
        assert (refusal.value.code, refusal.value.path) == (code, where)
    beginning = {"year": 1418, "month": 9, "day": 22}
    swap = {"calendar_system_id": own.id, "world_time_origin": beginning}
    changed = await update(database, people.owner, story, definition=swap)
    assert changed.definition.calendar_system_id == own.id
    assert changed.definition.world_time_origin == beginning
    async with database.writing() as writing:
        with pytest.raises(Forbidden) as used:
            await calendars.delete_calendar(writing, people.owner, own.id)
    assert (used.value.code, used.value.path) == ("CALENDAR_IN_USE", ("input", "calendarId"))
    back = {"calendar_system_id": "earth-gregorian", "world_time_origin": EARTH_ORIGIN}
    await update(database, people.owner, story, definition=back)
    async with database.writing() as writing:
        assert await calendars.delete_calendar(writing, people.owner, own.id) == own.id


async def test_a_calendar_that_no_longer_has_the_date_of_a_beginning_can_be_kept(
    database: Database, people: People
) -> None:
    """Rule W26."""
    async with database.writing() as writing:
        own = await calendars.clone_calendar(writing, people.owner, "tolkien-shire")
    beginning = {"year": 1, "month": 14, "day": 1}
    whole = definition(calendar_system_id=own.id, world_time_origin=beginning)
    story, _ = await made(database, people.owner, lamplighter(definition=whole))
    days = {
        "baseUnitName": "day",
        "secondsPerBaseUnit": 86_400,
        "tiers": [{"name": "day", "startValue": 1}],
        "exampleStartValue": {"day": 1},
        "displayFormat": "day {{ day }}",
    }
    async with database.writing() as writing:
        changed = await calendars.update_calendar(
            writing, people.owner, own.id, {"definition": days}, None
        )
    origin = story.definition.world_time_origin
    (shown,) = calendars.render_times(changed.definition, [86_400], origin, [])
    assert (shown.label, shown.is_fallback) == ("86400", True)
    assert shown.warning is not None
    assert shown.warning.code == "DATE_INVALID"
    # Whatever else is changed, the beginning is asked for only where it is given.
    kept = await update(database, people.owner, story, definition={"setting": "Elsewhere."})
    assert kept.definition.setting == "Elsewhere."
    again = {"world_time_origin": {"day": 5}}
    mended = await update(database, people.owner, story, definition=again)
    assert mended.definition.world_time_origin == {"day": 5}


async def test_settings_change_part_by_part(database: Database, people: People) -> None:
    """Rules B8, B15."""
    story, _ = await made(database, people.owner)
    patch = {
        "suggestionCount": 6,
        "keywordRetrieval": {"cascade": True},
        "models": {"lore-mgmt": {"providerId": "prov_1", "modelId": "m"}},
        "packVariables": {"mood": "low"},
        "suggestionCategories": [],
    }
    changed = await update(database, people.owner, story, settings=patch)
    server = default_settings(StoryMode.ADVENTURE)
    expected = {
        **server,
        **patch,
        "keywordRetrieval": {**server["keywordRetrieval"], "cascade": True},
    }
    assert loaded_settings(changed.settings, StoryMode.ADVENTURE) == expected
    back = {
        "suggestionCount": None,
        "models": {"lore-mgmt": None},
        "packVariables": {"mood": None},
        "suggestionCategories": None,
        "keywordRetrieval": None,
    }
    changed = await update(database, people.owner, story, settings=back)
    assert loaded_settings(changed.settings, StoryMode.ADVENTURE) == server
    path = ("input", "settings")
    for bad, where in (
        ([], ()),
        ({"packVariables": {"x": "y" * 70_000}}, ()),
        ({"models": {"wizard": {}}}, ("models", "wizard")),
        ({"keywordRetrieval": {"mode": "guess"}}, ("keywordRetrieval", "mode")),
        ({"classifierContextEntries": 1}, ("classifierContextEntries",)),
        (
            {"suggestionCategories": server["suggestionCategories"][:1] * 2},
            ("suggestionCategories",),
        ),
    ):
        with pytest.raises(DomainError) as refusal:
            await update(database, people.owner, story, settings=bad)
        assert refusal.value.path == (*path, *where)


async def test_a_cover_is_an_image_of_ones_own_and_settled(
    database: Database, people: People
) -> None:
    """Rule B16."""
    story, _ = await made(database, people.owner, plain())
    async with database.writing() as writing:
        first, second = [await picture(writing, people.owner, each) for each in ("1", "2")]
        sound = await picture(writing, people.owner, "3", AssetKind.AUDIO)
        foreign = await picture(writing, people.stranger, "4")
    for each, code in ((sound, "WRONG_KIND"), (foreign, "NOT_FOUND")):
        with pytest.raises(DomainError) as refusal:
            await update(database, people.owner, story, cover_asset_id=each)
        assert (refusal.value.code, refusal.value.path) == (code, ("input", "coverAssetId"))

    async def is_pending(asset_id: str) -> bool:
        async with database.reading() as reading:
            asset = await require_row(reading, people.owner, Asset, asset_id)
        return asset.pending_delete_at is not None

    await update(database, people.owner, story, cover_asset_id=first)
    await update(database, people.owner, story, cover_asset_id=second)
    assert [await is_pending(each) for each in (first, second)] == [True, False]
    await update(database, people.owner, story, cover_asset_id=first)
    assert [await is_pending(each) for each in (first, second)] == [False, True]
    async with database.writing() as writing:
        await stories.delete_story(writing, people.owner, story.id)
    assert await is_pending(first)


async def test_a_deleted_story_leaves_nothing_but_what_it_shared(
    database: Database, people: People
) -> None:
    """Rules B17, B18."""
    async with database.writing() as writing:
        own = await calendars.clone_calendar(writing, people.owner, "stardate")
    whole = definition(calendar_system_id=own.id, world_time_origin={"count": 1})
    story, _ = await made(database, people.owner, lamplighter(definition=whole, era_name="x"))
    other, _ = await made(database, people.owner, plain())
    branch_id = branch_of(story)
    async with database.writing() as writing:
        async with deltas.acting(writing, people.owner, branch_id) as action:
            entry = await append_entry(action, 2)
        fork = await deltas.fork_branch(writing, people.owner, branch_id, entry["id"], "Fork")
        async with deltas.acting(writing, people.owner, fork.branch.id) as action:
            await append_entry(action, 3)
        await deltas.undo_branch(writing, people.owner, fork.branch.id)
        await stories.update_story(writing, people.owner, story.id, {"is_favorite": True})
    async with database.writing() as writing:
        assert await stories.delete_story(writing, people.owner, story.id) == story.id
    connection = await asyncpg.connect(database.dsn)
    try:
        for table in EVERY_TABLE:
            left = await connection.fetchval(
                f"SELECT count(*) FROM {table} WHERE branch_id = ANY($1)",
                [branch_id, fork.branch.id],
            )
            assert left == 0, table
        kept = await connection.fetch("SELECT id FROM branches")
        acts = await connection.fetch("SELECT action, subject_id FROM audit_events ORDER BY id")
    finally:
        await connection.close()
    assert [row["id"] for row in kept] == [other.current_branch_id]
    assert tuple(acts[-1]) == ("story_deleted", story.id)
    async with database.reading() as reading:
        assert await find_row(reading, people.owner, Calendar, own.id) is not None
        assert await find_row(reading, people.owner, Story, story.id) is None


async def test_a_deletion_waits_for_those_who_are_writing_and_forking(
    database: Database, people: People
) -> None:
    """Rule B17."""
    story, _ = await made(database, people.owner, plain())
    branch_id = branch_of(story)

    async def delete() -> None:
        async with database.writing() as writing:
            await stories.delete_story(writing, people.owner, story.id)

    async with database.writing() as writing:
        async with deltas.acting(writing, people.owner, branch_id) as action:
            entry = await append_entry(action, 2)
        await deltas.fork_branch(writing, people.owner, branch_id, entry["id"], "Fork")
        deletion = asyncio.create_task(delete())
        await until_somebody_waits(database)
    await deletion
    async with database.reading() as reading:
        assert await find_row(reading, people.owner, Story, story.id) is None


async def test_the_open_and_the_only_branch_stay(database: Database, people: People) -> None:
    """Rules B21, B23, B24."""
    story, _ = await made(database, people.owner)
    main = branch_of(story)
    other, _ = await made(database, people.owner, plain())
    async with database.writing() as writing:
        with pytest.raises(Forbidden) as refusal:
            await stories.delete_branch(writing, people.owner, main)
        assert refusal.value.code == "BRANCH_LAST"
        (opening,) = await rows_of(writing, StoryEntry, main)
        fork = await deltas.fork_branch(writing, people.owner, main, opening.row_id, "Fork")
        with pytest.raises(Forbidden) as refusal:
            await stories.delete_branch(writing, people.owner, main)
        assert refusal.value.code == "BRANCH_CURRENT"
        with pytest.raises(NotFound) as lost:
            await stories.open_story(writing, people.owner, story.id, other.current_branch_id)
        assert lost.value.path == ("input", "branchId")
        opened = await stories.open_story(writing, people.owner, story.id, fork.branch.id)
        assert opened.current_branch_id == fork.branch.id
        assert (opened.version, opened.updated_at) == (1, None)
        assert opened.last_opened_at > story.last_opened_at
        assert (await stories.open_story(writing, people.owner, story.id)) is not None
        deleted_id, left = await stories.delete_branch(writing, people.owner, main)
    assert (deleted_id, left.id) == (main, story.id)
    async with database.reading() as reading:
        branch = await require_row(reading, people.owner, Branch, fork.branch.id)
        assert await rows_of(reading, StoryEntity, main) == []
        assert len(await rows_of(reading, StoryEntity, branch.id)) == 6
    assert (branch.parent_branch_id, branch.fork_entry_id) == (None, opening.row_id)


async def test_what_the_classifier_does_by_itself_is_nothing_to_undo(
    database: Database, people: People
) -> None:
    """Rule B25."""
    ids = [branch_of((await made(database, people.owner, plain()))[0]) for _ in range(4)]

    async def act(branch_id: str, source: DeltaSource = DeltaSource.USER_EDIT) -> None:
        async with (
            database.writing() as writing,
            deltas.acting(writing, people.owner, branch_id, source=source) as action,
        ):
            values = entity_values(EntityKind.ITEM, "x")
            await action.create(StoryEntity, values, prefix="item")

    await act(ids[1], DeltaSource.PERIODIC_CLASSIFIER)
    await act(ids[2])
    await act(ids[3])
    async with database.writing() as writing:
        await deltas.undo_branch(writing, people.owner, ids[3])
    async with database.reading() as reading:
        for viewer, undo, redo in (
            (people.owner, [False, False, True, False], [False, False, False, True]),
            (people.stranger, [False] * 4, [False] * 4),
        ):
            assert await stories.can_undo(reading, viewer, ids) == undo
            assert await stories.can_redo(reading, viewer, ids) == redo


async def test_a_story_is_its_owners_alone(database: Database, people: People) -> None:
    """Rule B26."""
    story, _ = await made(database, people.owner)
    branch_id = branch_of(story)
    for viewer in (people.stranger, people.anonymous):
        async with database.writing() as writing:
            for attempt, path in (
                (stories.update_story(writing, viewer, story.id, {"title": "x"}), "storyId"),
                (stories.open_story(writing, viewer, story.id), "storyId"),
                (stories.delete_story(writing, viewer, story.id), "storyId"),
                (stories.rename_branch(writing, viewer, branch_id, "x"), "branchId"),
                (stories.delete_branch(writing, viewer, branch_id), "branchId"),
            ):
                with pytest.raises(NotFound) as refusal:
                    await attempt
                assert refusal.value.path == ("input", path)
    async with database.reading() as reading:
        kept = await require_row(reading, people.owner, Story, story.id)
    assert kept == story
