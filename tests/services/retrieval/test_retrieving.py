"""What a prompt carries of a branch: its floor, its pools, what keywords seat."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import EntityKind, EntityStatus, EntryKind, InjectionMode, ThreadStatus
from db.tables import EraFlip, HappeningAwareness, Lore
from services.errors import NotFound
from services.retrieval.gathering import read_world
from tests.services.deltas.desks import Desk, desk
from tests.services.retrieval.halls import Hall, pooled, seated

__all__ = ["desk"]

ALWAYS, DISABLED = InjectionMode.ALWAYS, InjectionMode.DISABLED
LOCATION = EntityKind.LOCATION
ACTIVE, STAGED, RETIRED = EntityStatus.ACTIVE, EntityStatus.STAGED, EntityStatus.RETIRED


@pytest.fixture
def hall(desk: Desk) -> Hall:
    return Hall(desk)


def floor(found: Any) -> list[tuple[str, str]]:
    return [(each.name, str(each.reason)) for each in found.floor]


async def test_the_floor_is_the_place_who_is_there_what_goes_on_and_what_is_always(
    hall: Hall,
) -> None:
    """Rules B105, B106."""
    quay = await hall.entity("Quay", LOCATION, injection_mode=DISABLED)
    mira = await hall.entity("Mira", injection_mode=DISABLED)
    gone = await hall.entity("Gone", status=RETIRED)
    await hall.entity("Ghost", status=RETIRED, injection_mode=ALWAYS)
    await hall.entity("Elsewhere")
    await hall.thread("The debt", ThreadStatus.ACTIVE, injection_mode=DISABLED)
    await hall.thread("The war", ThreadStatus.PENDING)
    await hall.thread("The oath", ThreadStatus.RESOLVED, injection_mode=ALWAYS)
    await hall.lore("The law", injection_mode=ALWAYS)
    await hall.lore("The tale")
    await hall.entry(2, sceneEntities=[mira, quay, gone, "char_gone"], currentLocationId=quay)
    found = await hall.retrieve(angles=None)
    assert floor(found) == [
        ("Quay", "location"),
        ("Mira", "scene"),
        ("The debt", "active_thread"),
        ("Ghost", "always"),
        ("The law", "always"),
        ("The oath", "always"),
    ]
    assert [each.tokens for each in found.floor][1] == 11 + 5


async def test_a_place_that_is_not_active_leaves_its_seat_empty(hall: Hall) -> None:
    """Rule B105."""
    quay = await hall.entity("Quay", LOCATION, status=STAGED)
    await hall.entry(2, currentLocationId=quay)
    assert floor(await hall.retrieve(angles=None)) == []


async def test_a_disabled_region_keeps_its_places_out_unless_the_story_is_inside(
    hall: Hall,
) -> None:
    """Rule B106."""
    isle = await hall.entity("Isle", LOCATION, injection_mode=DISABLED)
    inside = {"parent_location_id": isle}
    await hall.entity("Tower", LOCATION, inside, injection_mode=ALWAYS)
    cave = await hall.entity("Cave", LOCATION, inside)
    await hall.entity("Hermit", state={"current_location_id": cave})
    await hall.embed({"Isle": 0, "Tower": 0, "Cave": 0, "Hermit": 0})
    found = await hall.retrieve()
    assert (floor(found), pooled(found)) == ([], {"entity": {"Hermit"}})
    await hall.entry(2, currentLocationId=cave)
    found = await hall.retrieve()
    assert floor(found) == [("Cave", "location"), ("Tower", "always")]
    assert pooled(found) == {"entity": {"Hermit"}}


async def test_pools_take_what_may_come_in(hall: Hall) -> None:
    """Rules B107, B108."""
    mira = await hall.entity("Mira")
    stone = await hall.entity("Stone", EntityKind.ITEM)
    await hall.entry(2, content="Old Kell sits there.", sceneEntities=[mira, stone])
    await hall.entity("Odo")
    await hall.entity("Pia", status=STAGED)
    await hall.entity("Kell", status=STAGED)
    await hall.entity("Kel", status=STAGED)
    await hall.entity("Gone", status=RETIRED)
    await hall.entity("Out", injection_mode=DISABLED)
    await hall.lore("Tale")
    await hall.lore("Out", injection_mode=DISABLED)
    for status in ThreadStatus:
        await hall.thread(str(status), status)
    await hall.happening("Common", common_knowledge=True)
    await hall.happening("Hers", mira)
    await hall.happening("Of the stone", stone)
    await hall.happening("Of another", "char_elsewhere")
    await hall.happening("Of nobody")
    angles = dict.fromkeys(["Mira", "Odo", "Pia", "Kel", "Gone", "Out", "Tale", *ThreadStatus], 0.0)
    await hall.embed({**angles, "Common": 0, "Hers": 0, "Of ": 0})
    await hall.lore("Stale")
    found = await hall.retrieve()
    assert pooled(found) == {
        "entity": {"Odo", "Pia", "Kel"},
        "lore": {"Tale"},
        "thread": {"pending", "resolved", "failed"},
        "happening": {"Common", "Hers"},
    }
    assert {str(each.kind): each.stale_count for each in found.pools} == {
        "chapter": 0, "entity": 1, "lore": 1, "thread": 0, "happening": 0,
    }  # fmt: skip
    framed = {each.candidate.name: each.candidate.text for each in found.pools[1].ranked}
    assert framed["Pia"] == "Pia (character, available)"


async def test_without_anybody_there_only_common_knowledge_is_ranked(hall: Hall) -> None:
    """Rule B108."""
    mira = await hall.entity("Mira")
    await hall.happening("Common", common_knowledge=True)
    await hall.happening("Hers", mira)
    await hall.embed({"Common": 0, "Hers": 0})
    assert pooled(await hall.retrieve()) == {"happening": {"Common"}}


async def test_happenings_of_a_seated_chapter_come_into_the_pool_and_count_more(
    hall: Hall,
) -> None:
    """Rules B109, B112."""
    mira = await hall.entity("Mira")
    first = await hall.chapter(1, "One", summary="The storm")
    second = await hall.chapter(2, "Two", summary="The calm")
    told = [await hall.entry(2, chapter_id=first), await hall.entry(3, chapter_id=second)]
    await hall.entry(4, sceneEntities=[mira])
    for name, entry_id in zip(("Wreck", "Peace"), told, strict=True):
        await hall.happening(
            name, mira, occurred_at_entry_id=entry_id, awareness={"decay_resistance": 1.0}
        )
    await hall.happening("Hidden", None, occurred_at_entry_id=told[0])
    await hall.happening("Vectorless", mira, occurred_at_entry_id=told[0])
    await hall.embed({"The storm": 0, "The calm": 90, "Wreck": 60, "Peace": 60, "Hidden": 60})
    found = await hall.retrieve()
    assert seated(found)["chapter"] == ["One"]
    scores = {each.candidate.name: round(each.score.value, 4) for each in found.pools[-1].ranked}
    assert scores == {"Wreck": 0.65, "Peace": 0.5}


async def test_age_is_counted_in_chapters(hall: Hall) -> None:
    """Rule B111."""
    mira, odo = await hall.entity("Mira"), await hall.entity("Odo")
    chapters = [await hall.chapter(n, f"C{n}") for n in (1, 2, 3)]
    told = [await hall.entry(n, chapter_id=each) for n, each in enumerate(chapters, start=2)]
    now = await hall.entry(5, sceneEntities=[mira, odo])
    for name, entry_id in (("First", told[0]), ("Third", told[2]), ("Now", now), ("Never", None)):
        await hall.happening(
            name,
            mira,
            awareness={"learned_at_entry_id": entry_id, "decay_resistance": 0.2, "source": "seen"},
        )
    both = await hall.happening("Both", mira, awareness={"learned_at_entry_id": told[0]})
    await hall.plant(
        HappeningAwareness,
        happening_id=both,
        character_id=odo,
        learned_at_entry_id=told[2],
        decay_resistance=0.9,
        source="told by Mira",
    )
    await hall.embed(dict.fromkeys(["First", "Third", "Now", "Never", "Both"], 0.0))
    found = await hall.retrieve("Where is Mira?")
    rows = {each.candidate.name: each for each in found.pools[-1].ranked}
    assert {name: each.score.age for name, each in rows.items()} == {
        "First": 3, "Third": 1, "Now": 0, "Never": 0, "Both": 1,
    }  # fmt: skip
    # Of several the firmest hold counts; a source that names who is spoken of is a keyword.
    assert rows["Both"].score.pin == 0.9
    assert {name for name, each in rows.items() if each.score.keyword_bonus} == {"Both"}
    assert rows["Both"].candidate.text == "Both\nOdo: told by Mira"


async def test_queries_are_made_of_the_action_the_scene_and_the_last_reply(hall: Hall) -> None:
    """Rules B101, B102."""
    quay = await hall.entity("Quay", LOCATION)
    mira = await hall.entity("Mira")
    await hall.thread("The debt", ThreadStatus.ACTIVE)
    await hall.plant(EraFlip, at_worldtime=10, era_name="Ash")
    await hall.plant(EraFlip, at_worldtime=99, era_name="Bloom")
    await hall.entry(
        2,
        sceneEntities=[mira],
        currentLocationId=quay,
        worldTime=10,
        summary="They met.",
        retrievalQueries=["who owes", "who owes", ""],
    )
    await hall.entry(3, EntryKind.USER_ACTION, "I pay.")
    found = await hall.retrieve(None, angles=[0])
    assert [(str(each.query.slot), each.query.text) for each in found.queries] == [
        ("action", "I pay."),
        ("digest", "Mira, Quay.\nActive threads: The debt\nEra: Ash"),
        ("summary", "They met."),
        ("direct", "who owes"),
    ]
    assert [each.weight for each in found.queries] == [0.3, 0.25, 0.2, 0.25]
    # Nothing is inherited from an older reply.
    await hall.entry(4, sceneEntities=[mira])
    found = await hall.retrieve("I go.")
    assert [str(each.query.slot) for each in found.queries] == ["action", "digest"]


async def test_what_is_near_a_direct_query_may_be_there_anyway(hall: Hall) -> None:
    """Rule B115."""
    mira = await hall.entity("Mira")
    await hall.entity("Odo")
    await hall.entry(2, sceneEntities=[mira], retrievalQueries=["her"])
    await hall.embed({"Mira": 0, "Odo": 10})
    found = await hall.retrieve()
    assert [(each.text, each.ratio, each.counted) for each in found.redundancy] == [("her", 0.5, 2)]


INJECT = {"keywordRetrieval": {"mode": "inject"}}


async def test_keywords_raise_a_score_or_seat_a_row(hall: Hall) -> None:
    """Rules B110, B122, B125."""
    await hall.lore("Bell", "It tolls.", keywords=["bell"])
    await hall.entity("Mira", keywords=["the smith"])
    await hall.entity("Kell", status=STAGED)
    await hall.lore("Out", keywords=["bell"], injection_mode=DISABLED)
    await hall.lore("Far", keywords=["tower"])
    await hall.entry(2, content="The smith waits. Kell too.")
    await hall.embed({"Bell": 90, "Mira": 90})
    found = await hall.retrieve("I ring the bell.", angles=[0])
    assert found.injected == []
    assert {
        each.candidate.name: each.score.keyword_bonus
        for pool in found.pools
        for each in pool.ranked
    } == {"Bell": 0.1, "Mira": 0.1}
    assert seated(found) == {}
    await hall.set(**INJECT)
    found = await hall.retrieve("I ring the bell.", angles=[0])
    assert [each.name for each in found.injected] == ["Bell", "Mira"]
    # Seated once, paid once, and in no pool.
    assert pooled(found) == {}
    assert [pool.tokens_used for pool in found.pools] == [
        0, *(each.tokens for each in found.injected[::-1]), 0, 0,
    ]  # fmt: skip


async def test_keywords_seat_rows_without_vectors_and_without_an_embedder(hall: Hall) -> None:
    """Rules B116, B125."""
    await hall.set(**INJECT)
    await hall.lore("Bell", keywords=["bell"])
    for angles in (None, [0.0]):
        found = await hall.retrieve("The bell!", angles=angles)
        assert [each.name for each in found.injected] == ["Bell"]
        assert pooled(found) == {}
    found = await hall.retrieve("The bell!", angles=None)
    assert (found.model_id, list(found.warnings)) == (None, ["NOTHING_COMPARED", "STALE_LORE"])
    assert [each.weight for each in found.queries] == [0.0]


async def test_the_prompt_carries_the_last_entries(hall: Hall) -> None:
    """Rule B104."""
    chapter = await hall.chapter(1, "One")
    for position in range(2, 14):
        await hall.entry(position, chapter_id=chapter if position < 12 else None)
    found = await hall.retrieve(angles=None)
    assert [each.position for each in found.world.buffer] == [*range(4, 14)]
    await hall.set(protectedBuffer=99)
    found = await hall.retrieve(angles=None)
    assert [each.position for each in found.world.buffer] == [*range(1, 14)]
    await hall.set(protectedBuffer=0, partialChapterBuffer=1, keywordRetrieval={"scanEntries": 3})
    world = await hall.world()
    assert ([e.position for e in world.buffer], len(world.scanned)) == ([13], 3)


async def test_what_was_edited_since_it_was_embedded_stays_out(hall: Hall) -> None:
    """Rule B107."""
    tale = await hall.lore("Tale")
    await hall.embed({"Tale": 0})
    assert pooled(await hall.retrieve()) == {"lore": {"Tale"}}
    await hall.desk.edit(Lore, tale, body="Another.")
    found = await hall.retrieve()
    assert (pooled(found), list(found.warnings)) == ({}, ["STALE_LORE"])


async def test_a_stranger_retrieves_nothing(hall: Hall) -> None:
    """Rule B100."""
    with pytest.raises(NotFound):
        await read_world(hall.writing, hall.desk.people.stranger, hall.branch_id, "branchId")
