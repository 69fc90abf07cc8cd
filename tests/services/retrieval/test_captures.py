"""Captures of what a retrieval saw, and what other parameters would have chosen."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest
from sqlalchemy import LargeBinary, select, update
from sqlmodel import col

from db.enums import CaptureMode, ProbeFailure, SearchKind
from db.paging import PageRequest
from db.reading import param, statement
from db.tables import Branch, ProbeCapture, StoryEntry
from services import app_settings, deltas, retrieval
from services.access import find_row, require_row
from services.errors import DomainError
from services.retrieval import capturing, simulate
from services.retrieval.meaning import BranchMeaning
from services.retrieval.ranking import Ranked
from services.retrieval.retrieving import Retrieved, queries_in, retrieve
from services.retrieval.simulating import Simulation
from tests.services.deltas.desks import Desk, desk
from tests.services.retrieval.halls import MODEL, Hall, at

__all__ = ["desk"]

LIGHT, DEEP = CaptureMode.LIGHT, CaptureMode.DEEP
INJECT = {"keywordRetrieval": {"mode": "inject"}}


@pytest.fixture
async def hall(desk: Desk) -> Hall:
    """A branch in which something of each kind is seated and dropped, for every reason but one."""
    hall = Hall(desk)
    await hall.set(retrievalBudgets={"lore": 40}, **INJECT)
    mira = await hall.entity("Mira")
    chapter = await hall.chapter(1, "One", summary="Storm")
    told = await hall.entry(2, chapter_id=chapter)
    await hall.entry(3, sceneEntities=[mira], retrievalQueries=["the bell"])
    for number in range(12):
        await hall.lore(f"L{number:02}", "word " * number * 3, priority=number * 8)
    await hall.lore("Bell", keywords=["bell"])
    await hall.lore("Huge", "word " * 60)
    for number in range(3):
        await hall.happening(
            f"H{number}", mira, occurred_at_entry_id=told, awareness={"learned_at_entry_id": told}
        )
    await hall.embed(
        {
            "Storm": 5,
            "Huge": 1,
            "Mira": 0,
            **{f"L{number:02}": number * 15.0 for number in range(12)},
            **{f"H{number}": number * 40.0 for number in range(3)},
        }
    )
    return hall


async def kept(hall: Hall, mode: CaptureMode = DEEP) -> tuple[Retrieved, ProbeCapture]:
    found = await hall.retrieve("I ring the bell.", angles=[0, 20, 40])
    return found, await capturing.keep_capture(hall.writing, hall.viewer, found, mode)


def chosen(ranked: Any) -> list[tuple[Any, ...]]:
    def told(each: Ranked) -> tuple[Any, ...]:
        return (each.candidate.id, each.score, each.drop, each.mmr, each.rank, each.tokens)

    return [told(each) for each in ranked]


def names(simulation: Simulation, kind: SearchKind = SearchKind.LORE) -> list[str]:
    (pool,) = (each for each in simulation.pools if each.kind is kind)
    return [each.candidate.name for each in pool.seated]


@pytest.mark.parametrize("mode", list(CaptureMode))
async def test_the_same_parameters_choose_what_was_chosen(hall: Hall, mode: CaptureMode) -> None:
    """Rules B133, B134."""
    found, capture = await kept(hall, mode)
    assert {str(each.drop) for pool in found.pools for each in pool.ranked} == {
        "not_dropped", "below_threshold", "over_budget", "candidate_too_large",
    }  # fmt: skip
    simulation = simulate(capture, {})
    assert simulation.is_same
    assert simulation.parameters == found.world.parameters
    for before, after in zip(found.pools, simulation.pools, strict=True):
        assert chosen(after.ranked) == chosen(before.ranked)
        assert after.tokens_used == before.tokens_used
        assert (after.added, after.removed) == ([], [])
    # Said aloud, they are the same parameters.
    said = {"budgets": dict(found.world.parameters.budgets), "score_floor": 0.15}
    assert simulate(capture, said) == simulation


async def test_budgets_and_the_floor_can_be_changed_in_any_capture_and_scores_in_deep_ones(
    hall: Hall,
) -> None:
    """Rules B134, B135."""
    (_, light), (_, deep) = await kept(hall, LIGHT), await kept(hall, DEEP)
    for changes in (
        {"budgets": {SearchKind.LORE: 4000}},
        {"score_floor": 0.4},
        {"budgets": {SearchKind.LORE: 4000}, "score_floor": 0.0},
    ):
        by_light, by_deep = simulate(light, changes), simulate(deep, changes)
        assert [chosen(each.ranked) for each in by_light.pools] == [
            chosen(each.ranked) for each in by_deep.pools
        ]
        assert not by_light.is_same
    more = simulate(light, {"budgets": {SearchKind.LORE: 4000}})
    (lore,) = (each for each in more.pools if each.kind is SearchKind.LORE)
    assert lore.removed == []
    assert "Huge" in {each.candidate.name for each in lore.added}
    none = simulate(light, {"score_floor": 1.0})
    assert names(none) == []
    for changes in (
        {"weights": {"direct": 9.0}},
        {"fades": {SearchKind.HAPPENING: 1.0}},
        {"diversity": 1.0},
        {"keyword_bonus": 0.0},
        {"revival": 0.5},
        {"chapter_boost": 1.0},
        {"pins": {"x": 1.0}},
        {"pin_factors": {SearchKind.LORE: 0.0}},
    ):
        assert len(simulate(deep, changes).pools) == 5
        with pytest.raises(DomainError) as refusal:
            simulate(light, changes)
        assert refusal.value.code == "NEEDS_DEEP"
    unpinned = simulate(deep, {"pin_factors": {SearchKind.LORE: 0.0}, "diversity": 1.0})
    scores = {each.candidate.name: each.score for each in unpinned.pools[2].ranked}
    assert scores["L02"].value == scores["L02"].blend
    aged = simulate(deep, {"chapter_boost": 1.0, "fades": {SearchKind.HAPPENING: 5.0}})
    assert names(aged, SearchKind.HAPPENING) != names(simulate(deep, {}), SearchKind.HAPPENING)


async def test_a_capture_keeps_copies_of_what_was_seen_and_vectors_only_where_it_is_deep(
    hall: Hall,
) -> None:
    """Rule B132."""
    found, light = await kept(hall, LIGHT)
    payload = capturing.read_payload(light)
    assert light.payload_size == len(gzip.decompress(light.payload))
    assert {key: payload[key] for key in ("version", "failure", "mode", "modelId")} == {
        "version": 1, "failure": None, "mode": "light", "modelId": "circle",
    }  # fmt: skip
    assert payload["targetEntryId"] == light.target_entry_id == found.world.tail_id
    assert [each["slot"] for each in payload["queries"]] == ["action", "digest", "direct"]
    assert not any("vector" in each for each in payload["queries"])
    assert [each["name"] for each in payload["injected"]] == ["Bell"]
    assert [each["name"] for each in payload["floor"]] == ["Mira"]
    sizes = {
        each["kind"]: (each["poolSize"], each["preFilteredSize"], each["seatedSize"])
        for each in payload["pools"]
    }
    assert sizes["lore"][:2] == (13, 13)
    assert sizes["chapter"] == (1, 1, 1)
    candidates = [row for pool in payload["pools"] for row in pool["candidates"]]
    assert not any("vector" in each for each in candidates)
    _, deep = await kept(hall, DEEP)
    deeper = capturing.read_payload(deep)
    assert all("vector" in row for pool in deeper["pools"] for row in pool["candidates"])
    # Nothing else is deeper, and no row or text that goes meanwhile is missing.
    for pool in deeper["pools"]:
        for row in pool["candidates"]:
            del row["vector"]
    assert {**deeper, "mode": "light", "capturedAt": payload["capturedAt"]} == payload


async def test_those_that_were_not_priced_stay_out_of_a_simulation(hall: Hall) -> None:
    """Rule B135."""
    found = await hall.retrieve("I look.")
    small = found.world.parameters.changed({"pre_filter": 2})
    object.__setattr__(found.world, "parameters", small)
    queries = [each.query for each in found.queries]
    again = await retrieve(
        hall.writing,
        hall.viewer,
        found.world,
        "I look.",
        queries,
        BranchMeaning(MODEL, [at(0)] * len(queries)),
    )
    capture = await capturing.keep_capture(hall.writing, hall.viewer, again, DEEP)
    (lore,) = (
        each for each in capturing.read_payload(capture)["pools"] if each["kind"] == SearchKind.LORE
    )
    out = [each for each in lore["candidates"] if each["drop"] == "pre_filtered"]
    assert (lore["poolSize"], lore["preFilteredSize"], len(out)) == (13, 2, 11)
    assert {(each["text"], each["tokens"], each["mmr"], each["rank"]) for each in out} == {
        (None, None, None, None)
    }
    assert simulate(capture, {}).is_same
    wide = simulate(capture, {"diversity": 1.0, "budgets": {SearchKind.LORE: 10_000}})
    assert len(names(wide)) == 2


async def test_a_failure_is_kept_with_its_texts_and_cannot_be_simulated(hall: Hall) -> None:
    """Rules B131, B134."""
    world = await hall.world()
    queries = queries_in(world, "I look.")
    found = await retrieve(
        hall.writing, hall.viewer, world, "I look.", queries, None, ProbeFailure.CALL
    )
    capture = await capturing.keep_capture(hall.writing, hall.viewer, found, LIGHT)
    payload = capturing.read_payload(capture)
    assert capture.failure_reason == payload["failure"] == "call"
    assert [each["hasVector"] for each in payload["queries"]] == [False] * 3
    assert [(each["poolSize"], each["staleCount"]) for each in payload["pools"]] == [(0, 0)] * 5
    with pytest.raises(DomainError) as refusal:
        simulate(capture, {})
    assert refusal.value.code == "FAILED_CAPTURE"


@statement(ProbeCapture)
def _spoil() -> Any:
    return (
        update(ProbeCapture)
        .where(col(ProbeCapture.row_id) == param("row_id"))
        .values(payload=param("payload", LargeBinary()))
    )


SPOILED = [
    b"no gzip",
    gzip.compress(b"no json"),
    gzip.compress(b"[]"),
    gzip.compress(orjson.dumps({"version": 0, "failure": None, "pools": []})),
    gzip.compress(orjson.dumps({"version": 1, "pools": []})),
    gzip.compress(orjson.dumps({"version": 1, "failure": None, "pools": []}))[:-3],
]


async def test_what_cannot_be_read_stays_listed_and_can_be_deleted(desk: Desk) -> None:
    """Rule B136."""
    hall = Hall(desk)
    _, capture = await kept(hall, LIGHT)
    for payload in [*SPOILED, gzip.compress(b'{"version": 1, "failure": null, "pools": [{}]}')]:
        await hall.writing.run(_spoil(), row_id=capture.row_id, payload=payload)
        (page,) = await retrieval.CAPTURES_OF_BRANCHES.pages(
            hall.writing, [hall.branch_id], PageRequest(), **hall.viewer.parameters
        )
        (spoiled,) = page.nodes
        assert (retrieval.payload_or_none(spoiled) is None) is (payload in SPOILED)
        with pytest.raises(DomainError) as refusal:
            simulate(spoiled, {})
        assert refusal.value.code == "CORRUPT_CAPTURE"
    await retrieval.delete_capture(hall.writing, hall.viewer, spoiled.id)
    assert await find_row(hall.writing, hall.viewer, ProbeCapture, spoiled.id) is None


@statement(ProbeCapture)
def _ids() -> Any:
    return select(col(ProbeCapture.row_id).label("row_id")).order_by(
        col(ProbeCapture.captured_at), col(ProbeCapture.row_id)
    )


async def test_a_story_keeps_its_hundred_newest_over_all_its_branches(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule B137."""
    assert capturing.MAX_CAPTURES == 100
    monkeypatch.setattr(capturing, "MAX_CAPTURES", 3)
    hall = Hall(desk)
    tail = await desk.turn(2)
    fork_id = await desk.fork(tail["id"])
    other = Hall(Desk(desk.writing, desk.people, fork_id))
    made = []
    for each in (hall, hall, other, hall, other):
        made.append((await kept(each, LIGHT))[1].row_id)
        left = [row.row_id for row in await hall.writing.all(_ids())]
        assert left == made[-3:]
    # A fork takes none along, and no log knows them.
    fork_id = await desk.fork(tail["id"])
    assert len(await hall.writing.all(_ids())) == 3
    assert {str(each.target_table) for each in await desk.log()} == {"story_entries"}
    story_id = (await desk.branch()).story_id
    deleted = await retrieval.delete_captures(hall.writing, hall.viewer, story_id)
    assert sorted(each.partition(":")[2] for each in deleted) == sorted(made[-3:])


async def test_captures_outlive_what_they_saw_and_go_with_their_branch(desk: Desk) -> None:
    """Rule B137."""
    hall = Hall(desk)
    entry_id = await hall.entry(2)
    _, capture = await kept(hall, LIGHT)
    await deltas.uproot_rows(hall.writing, hall.branch_id, StoryEntry, [entry_id])
    assert simulate(capture, {}).is_same
    assert capture.target_entry_id == entry_id


async def test_nothing_is_captured_unless_both_switches_are_on(desk: Desk) -> None:
    """Rule B130."""
    hall = Hall(desk)

    async def refusal() -> str | None:
        try:
            await retrieval.require_probing(hall.writing, hall.viewer, hall.branch_id)
        except DomainError as error:
            return error.code
        return None

    assert await refusal() == "PROBE_OFF"
    await hall.set(probe_mode_active=True)
    assert await refusal() == "PROBE_OFF"
    await app_settings.update_settings(
        hall.writing, hall.viewer, {"diagnostics": {"enabled": True}}, None
    )
    assert await refusal() is None
    await hall.set(probe_mode_active=False)
    assert await refusal() == "PROBE_OFF"


async def test_a_stranger_neither_sees_nor_deletes_captures(desk: Desk) -> None:
    """Rule B137."""
    hall = Hall(desk)
    _, capture = await kept(hall, LIGHT)
    stranger = desk.people.stranger
    branch = await require_row(hall.writing, hall.viewer, Branch, hall.branch_id)
    for attempt, named in (
        (retrieval.delete_capture, capture.id),
        (retrieval.delete_captures, branch.story_id),
    ):
        with pytest.raises(DomainError) as refusal:
            await attempt(hall.writing, stranger, named)  # type: ignore[operator]
        assert refusal.value.code == "NOT_FOUND"
    assert await find_row(hall.writing, stranger, ProbeCapture, capture.id) is None
    assert len(await hall.writing.all(_ids())) == 1
