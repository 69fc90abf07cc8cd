"""Lore and threads: what they take, and what is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from db.engine import Database
from db.enums import InjectionMode, ThreadStatus
from db.reading import Writing
from db.tables import Branch, Delta, Lore, StoryEntry, Thread
from services import deltas, plot
from services.access import Viewer
from services.errors import Conflict, DomainError
from tests.conftest import People
from tests.factories import append_entry, make_branch
from tests.services.deltas.ledgers import rows_of, state_of

OIL: dict[str, Any] = {
    "title": "Whale oil",
    "body": "Taxed by the lamp.",
    "category": "economy",
    "tags": ["city"],
    "keywords": ["oil", "tax"],
    "injection_mode": InjectionMode.AUTO,
    "priority": 50,
}
QUEST: dict[str, Any] = {
    "title": "Who puts out the lamps?",
    "status": ThreadStatus.PENDING,
    "injection_mode": InjectionMode.AUTO,
}
NOWHERE = "entry_01900000-0000-7000-8000-000000000000"


async def test_lore_is_written_changed_and_deleted(database: Database, people: People) -> None:
    """Rules Q1, Q2."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        lore, after = await plot.create_lore(writing, people.owner, branch.id, OIL, 0)
        assert after.head == 1
        assert {name: getattr(lore, name) for name in OIL} == OIL
        assert (lore.embedding_stale, lore.updated_at) == (True, None)
        same, after = await plot.update_lore(
            writing, people.owner, lore.id, {"priority": 50, "tags": ["city"]}, 1
        )
        assert (same, after.head) == (lore, 1)
        changes = {"category": " ", "tags": [], "injection_mode": InjectionMode.DISABLED}
        changed, after = await plot.update_lore(writing, people.owner, lore.id, changes, 1)
        assert (changed.category, changed.tags, changed.keywords) == (None, [], ["oil", "tax"])
        assert (changed.injection_mode, after.head) == ("disabled", 2)
        deleted_id, after = await plot.delete_row(writing, people.owner, Lore, lore.id, "loreId", 2)
        assert (deleted_id, after.head) == (lore.id, 3)
    async with database.reading() as reading:
        log = await rows_of(reading, Delta, branch.id)
        assert [(each.op, each.entry_id, each.source) for each in log] == [
            ("create", None, "user_edit"),
            ("update", None, "user_edit"),
            ("delete", None, "user_edit"),
        ]
        assert len({each.action_id for each in log}) == 3
        assert await rows_of(reading, Lore, branch.id) == []


async def test_a_thread_may_stand_in_any_way_after_any_other(
    database: Database, people: People
) -> None:
    """Rule Q3."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        async with deltas.acting(writing, people.owner, branch.id) as action:
            entry = await append_entry(action, 2)
        begun = {
            **QUEST,
            "category": "",
            "icon": "lamp",
            "triggered_at_entry_id": entry["id"],
        }
        thread, _ = await plot.create_thread(writing, people.owner, branch.id, begun)
        assert (thread.category, thread.icon, thread.description) == (None, "lamp", "")
        assert (thread.triggered_at_entry_id, thread.resolved_at_entry_id) == (entry["id"], None)
        stages = [
            ThreadStatus.RESOLVED,
            ThreadStatus.ACTIVE,
            ThreadStatus.FAILED,
            ThreadStatus.PENDING,
        ]
        for status in stages:
            changed, _ = await plot.update_thread(
                writing, people.owner, thread.id, {"status": status}
            )
            assert (changed.status, changed.resolved_at_entry_id) == (status, None)
        composed = f"{branch.id}:{entry['id']}"
        changes = {"resolved_at_entry_id": composed, "triggered_at_entry_id": ""}
        changed, _ = await plot.update_thread(writing, people.owner, thread.id, changes)
        assert (changed.triggered_at_entry_id, changed.resolved_at_entry_id) == (None, entry["id"])


async def test_a_thread_bears_with_an_entry_that_is_gone(
    database: Database, people: People
) -> None:
    """Rules Q3, Q10."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        async with deltas.acting(writing, people.owner, branch.id) as action:
            entry = await append_entry(action, 2)
        begun = {**QUEST, "triggered_at_entry_id": entry["id"]}
        thread, _ = await plot.create_thread(writing, people.owner, branch.id, begun)
        async with deltas.acting(writing, people.owner, branch.id) as action:
            await action.delete(StoryEntry, entry)
        kept, _ = await plot.update_thread(writing, people.owner, thread.id, {"title": "Who?"})
        assert (kept.title, kept.triggered_at_entry_id) == ("Who?", entry["id"])


Work = Callable[[Writing, Viewer, Branch, Lore, Thread], Awaitable[Any]]
REFUSALS: dict[str, tuple[Work, str, tuple[str | int, ...]]] = {
    "no title": (
        lambda w, v, b, _l, _t: plot.create_lore(w, v, b.id, {**OIL, "title": " "}),
        "TEXT_EMPTY",
        ("input", "title"),
    ),
    "a long title": (
        lambda w, v, _b, lore, _t: plot.update_lore(w, v, lore.id, {"title": "x" * 501}),
        "TEXT_TOO_LONG",
        ("input", "title"),
    ),
    "no body": (
        lambda w, v, _b, lore, _t: plot.update_lore(w, v, lore.id, {"body": ""}),
        "TEXT_EMPTY",
        ("input", "body"),
    ),
    "an empty tag": (
        lambda w, v, _b, lore, _t: plot.update_lore(w, v, lore.id, {"tags": ["a", ""]}),
        "TEXT_EMPTY",
        ("input", "tags", 1),
    ),
    "too many keywords": (
        lambda w, v, _b, lore, _t: plot.update_lore(w, v, lore.id, {"keywords": ["k"] * 51}),
        "LIMIT_REACHED",
        ("input", "keywords"),
    ),
    "a priority below 0": (
        lambda w, v, _b, lore, _t: plot.update_lore(w, v, lore.id, {"priority": -1}),
        "OUT_OF_RANGE",
        ("input", "priority"),
    ),
    "a priority above 100": (
        lambda w, v, b, _l, _t: plot.create_lore(w, v, b.id, {**OIL, "priority": 101}),
        "OUT_OF_RANGE",
        ("input", "priority"),
    ),
    "a long category": (
        lambda w, v, _b, _l, thread: plot.update_thread(w, v, thread.id, {"category": "x" * 501}),
        "TEXT_TOO_LONG",
        ("input", "category"),
    ),
    "no such branch": (
        lambda w, v, _b, lore, _t: plot.create_lore(w, v, lore.id, OIL),
        "NOT_FOUND",
        ("input", "branchId"),
    ),
    "no such entry": (
        lambda w, v, _b, _l, thread: plot.update_thread(
            w, v, thread.id, {"triggered_at_entry_id": NOWHERE}
        ),
        "NOT_FOUND",
        ("input", "triggeredAtEntryId"),
    ),
    "no entry at all": (
        lambda w, v, b, lore, _t: plot.create_thread(
            w, v, b.id, {**QUEST, "resolved_at_entry_id": lore.id}
        ),
        "NOT_FOUND",
        ("input", "resolvedAtEntryId"),
    ),
    "lore that is a thread": (
        lambda w, v, _b, _l, thread: plot.update_lore(w, v, thread.id, {"title": "x"}),
        "NOT_FOUND",
        ("input", "loreId"),
    ),
    "a thread that is none": (
        lambda w, v, b, _l, _t: plot.delete_row(w, v, Thread, b.id, "threadId"),
        "NOT_FOUND",
        ("input", "threadId"),
    ),
    "another head": (
        lambda w, v, _b, lore, _t: plot.update_lore(w, v, lore.id, {"title": "x"}, 1),
        "CONFLICT",
        ("input", "expectedHead"),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_what_breaks_a_rule_is_refused(database: Database, people: People, name: str) -> None:
    """Rules Q1, Q2, Q3."""
    work, code, path = REFUSALS[name]
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        lore, _ = await plot.create_lore(writing, people.owner, branch.id, OIL)
        thread, _ = await plot.create_thread(writing, people.owner, branch.id, QUEST)
        before = await state_of(writing, branch.id)
    with pytest.raises(DomainError) as refusal:
        async with database.writing() as writing:
            await work(writing, people.owner, branch, lore, thread)
    assert (refusal.value.code, refusal.value.path) == (code, path)
    if isinstance(refusal.value, Conflict):
        assert refusal.value.details == {"head": 2}
    async with database.reading() as reading:
        assert await state_of(reading, branch.id) == before
        assert len(await rows_of(reading, Delta, branch.id)) == 2


async def test_the_plot_of_others_is_not_there(database: Database, people: People) -> None:
    """Rule Q1."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        lore, _ = await plot.create_lore(writing, people.owner, branch.id, OIL)
        thread, _ = await plot.create_thread(writing, people.owner, branch.id, QUEST)
        before = await state_of(writing, branch.id)
        for viewer in (people.stranger, people.anonymous):
            works: list[Awaitable[Any]] = [
                plot.create_lore(writing, viewer, branch.id, OIL),
                plot.update_lore(writing, viewer, lore.id, {"title": "Mine"}),
                plot.delete_row(writing, viewer, Lore, lore.id, "loreId"),
                plot.create_thread(writing, viewer, branch.id, QUEST),
                plot.update_thread(writing, viewer, thread.id, {"title": "Mine"}),
            ]
            for work in works:
                with pytest.raises(DomainError) as refusal:
                    await work
                assert refusal.value.code == "NOT_FOUND"
        assert await state_of(writing, branch.id) == before
