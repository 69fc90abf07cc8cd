from __future__ import annotations

from typing import Any

from db.enums import EntityKind, WorldEntityKind
from db.paging import PageRequest
from db.tables import Branch, Casting, Story, StoryEntity, World
from services import deltas, stories, worlds
from tests.factories import make_branch, make_character, plant_entity
from tests.services.worlds.made import CHARACTER, Made, made

__all__ = ["made"]


async def begun(made: Made) -> tuple[Branch, str]:
    """A branch, and the id of a character in it."""
    async with made.database.writing() as writing:
        branch = await make_branch(writing, made.owner)
        image = await plant_entity(writing, branch.id, EntityKind.CHARACTER, "Odo")
    return branch, f"{branch.id}:{image['id']}"


async def castings(made: Made, story_id: str) -> list[Casting]:
    async with made.database.reading() as reading:
        (page,) = await worlds.CASTINGS_OF_STORIES.pages(
            reading, [story_id], PageRequest(), **made.owner.parameters
        )
    return page.nodes


async def test_one_of_a_world_is_drawn_in_one_action_that_undo_takes_back(made: Made) -> None:
    """Rules O14, O15."""
    branch, _ = await begun(made)
    mira = await made.add("Mira", aliases=["M."], description="Tall.", tags=["hero"])
    changed, casting = await made.change(worlds.cast_world_entity, mira, branch.id, {})
    entity = changed.entity
    assert (entity.kind, entity.name, entity.description) == ("character", "Mira", "Tall.")
    assert (entity.keywords, entity.tags, entity.status) == (["M."], ["hero"], "active")
    assert (casting.story_id, casting.world_entity_id) == (branch.story_id, mira)
    assert casting.entity_row_id == entity.row_id != mira
    assert changed.branch.head == branch.head + 1
    assert [each.id for each in await castings(made, branch.story_id)] == [casting.id]
    await made.change(worlds.update_world_entity, mira, {"name": "Other"})
    assert (await made.row(StoryEntity, entity.id)).name == "Mira"
    await made.change(deltas.undo_branch, branch.id)
    assert await made.row(StoryEntity, entity.id) is None
    # The record stays for the branches that have it, and for redo.
    assert [each.id for each in await castings(made, branch.story_id)] == [casting.id]


async def test_ideas_and_events_are_not_cast(made: Made) -> None:
    """Rule O15."""
    branch, _ = await begun(made)
    idea = await made.add("Honour", WorldEntityKind.CONCEPT)
    path = ("input", "worldEntityId")
    assert await made.refusal(worlds.cast_world_entity, idea, branch.id, {}) == (
        "WRONG_KIND",
        path,
    )
    mira = await made.add("Mira")
    assert await made.refusal(
        worlds.cast_world_entity, mira, branch.id, {}, viewer=made.stranger
    ) == ("NOT_FOUND", path)
    assert await made.refusal(worlds.cast_world_entity, mira, branch.id, {}, 99) == (
        "CONFLICT",
        ("input", "expectedHead"),
    )
    assert await castings(made, branch.story_id) == []


async def test_an_entity_is_played_by_one_and_drawn_from_one(made: Made) -> None:
    """Rule O14."""
    branch, odo = await begun(made)
    drawn = await made.add("Odo")
    quay = await made.add("Quay", WorldEntityKind.LOCATION)
    async with made.database.writing() as writing:
        character = await make_character(writing, made.owner)
    path, none = ("input", "entityId"), {"character_id": None, "world_entity_id": None}

    async def refused(**named: Any) -> Any:
        return await made.refusal(worlds.create_casting, odo, **{**none, **named})

    assert await refused() == ("ONE_ORIGIN", ("input", "characterId"))
    assert await refused(world_entity_id=quay) == ("WRONG_KIND", path)
    assert await refused(world_entity_id=drawn, viewer=made.stranger) == ("NOT_FOUND", path)
    one, other = [
        await made.change(worlds.create_casting, odo, **{**none, **origin})
        for origin in ({"character_id": character.id}, {"world_entity_id": drawn})
    ]
    assert await refused(character_id=character.id) == ("ALREADY_CAST", path)
    entity = await made.row(StoryEntity, odo)
    async with made.database.reading() as reading:
        (found,) = await worlds.castings_of_entities(reading, made.owner, [entity])
    assert [each.id for each in found] == [one.id, other.id]
    assert await made.change(worlds.delete_casting, one.id) == one.id
    assert await made.refusal(worlds.delete_casting, one.id) == (
        "NOT_FOUND",
        ("input", "castingId"),
    )
    # What was found to be another is drawn from that one.
    await made.add("Odo of Quay")
    ids = (made.ids["Odo of Quay"], drawn)
    _, merge, _ = await made.change(worlds.merge_world_entities, *ids)
    assert (await made.row(Casting, other.id)).world_entity_id == ids[0]
    await made.change(worlds.unmerge_world_entities, merge.id)
    assert (await made.row(Casting, other.id)).world_entity_id == drawn
    await made.change(worlds.delete_world_entity, drawn)
    assert await castings(made, branch.story_id) == []


async def test_a_story_is_set_in_a_world_and_outlasts_it(made: Made) -> None:
    """Rule O16."""
    branch, odo = await begun(made)
    story = await made.change(stories.update_story, branch.story_id, {"world_id": made.id})
    assert (story.world_id, story.version) == (made.id, 2)
    async with made.database.reading() as reading:
        (page,) = await worlds.STORIES_OF_WORLDS.pages(
            reading, [made.id], PageRequest(), **made.owner.parameters
        )
    assert [each.id for each in page.nodes] == [story.id]
    nowhere = "world_01ARZ3NDEKTSV4RRFFQ69G5FAV"
    assert await made.refusal(stories.update_story, story.id, {"world_id": nowhere}) == (
        "NOT_FOUND",
        ("input", "worldId"),
    )
    await made.change(worlds.delete_world, made.id)
    assert await made.row(World, made.id) is None
    assert (await made.row(Story, story.id)).world_id is None
    assert await made.row(StoryEntity, odo) is not None


async def test_castings_go_with_their_story(made: Made) -> None:
    """Rule O14."""
    branch, odo = await begun(made)
    drawn = await made.add("Odo", CHARACTER)
    casting = await made.change(
        worlds.create_casting, odo, character_id=None, world_entity_id=drawn
    )
    await made.change(stories.delete_story, branch.story_id)
    assert await made.row(Casting, casting.id) is None
    assert await made.names() == ["Odo"]
