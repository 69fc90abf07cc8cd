from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from db.engine import Database
from db.enums import (
    ImportItemStatus,
    ImportStatus,
    LorePosition,
    ReviewDecision,
    ReviewStatus,
    SelectiveLogic,
)
from db.paging import PageRequest
from db.reading import Reading, Writing
from db.tables import ImportJob, Lorebook, LorebookEntry
from services import characters, imports, lorebooks, transfers
from services.access import Viewer, find_row, rows_by_ids
from services.cards import read_lorebook_file
from services.errors import Conflict, DomainError, NotFound
from services.transfers.reviewing import MAX_KEYS, MAX_REVIEWED
from tests.conftest import People
from tests.factories import ALL_POINTS, make_character

ENTRIES: list[dict[str, Any]] = [
    {"keys": ["bridge"], "content": "It is old.", "insertion_order": 7, "enabled": True},
    {"keys": ["toll"], "content": "Two coins.", "comment": "Toll", "enabled": False},
    {"keys": ["/ogres?/i"], "content": "They sleep.", "constant": True},
]
BOOK = {"name": "Bridges", "entries": ENTRIES, "token_budget": 300}
CARD = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {"name": "Rook", "description": "Guards.", "character_book": BOOK},
}


async def import_book(
    writing: Writing, viewer: Viewer, book: Any = BOOK, character_id: str | None = None
) -> tuple[ImportJob, Lorebook, list[LorebookEntry]]:
    """A lorebook read from a file of its own."""
    content = json.dumps(book).encode()
    job, lorebook = await transfers.import_lorebook(
        writing,
        viewer,
        read_lorebook_file(content),
        content=content,
        file_name="bridges.json",
        character_id=character_id,
    )
    return job, lorebook, await entries_of(writing, viewer, lorebook)


async def entries_of(reading: Reading, viewer: Viewer, lorebook: Lorebook) -> list[LorebookEntry]:
    (page,) = await lorebooks.ENTRIES_OF_LOREBOOKS.pages(
        reading, [lorebook.id], PageRequest(), review_status=None, **viewer.parameters
    )
    return page.nodes


async def job_of(reading: Reading, viewer: Viewer, job: ImportJob) -> tuple[ImportJob, list[Any]]:
    """The job as it is now, and the statuses of its items."""
    (now,) = await rows_by_ids(reading, viewer, ImportJob, [job.id])
    (items,) = await imports.ITEMS_OF_JOBS.pages(
        reading, [job.id], PageRequest(), **viewer.parameters
    )
    assert now is not None
    return now, [(each.status, each.decided_at is not None) for each in items.nodes]


async def test_a_lorebook_waits_for_review_entry_by_entry(
    database: Database, people: People
) -> None:
    """Rules X1, X4."""
    owner = people.owner
    async with database.writing() as writing:
        job, lorebook, entries = await import_book(writing, owner)
        assert (job.status, job.finished_at) == (ImportStatus.AWAITING_REVIEW, None)
        assert (lorebook.name, lorebook.token_budget, lorebook.scan_depth) == ("Bridges", 300, None)
        assert lorebook.source == BOOK
        assert [each.source for each in entries] == ENTRIES
        assert [(each.number, each.keys, each.content) for each in entries] == [
            (1, ["bridge"], "It is old."),
            (2, ["toll"], "Two coins."),
            (3, ["/ogres?/i"], "They sleep."),
        ]
        assert [each.is_enabled for each in entries] == [True, False, True]
        assert [each.is_constant for each in entries] == [False, False, True]
        assert {each.review_status for each in entries} == {ReviewStatus.PENDING_REVIEW}

        ids = [each.id for each in entries]
        accepted = await transfers.review_entries(
            writing, owner, [ids[2], ids[0]], ReviewDecision.ACCEPT
        )
        assert [(each.id, each.review_status, each.version) for each in accepted] == [
            (ids[2], ReviewStatus.ACCEPTED, 2),
            (ids[0], ReviewStatus.ACCEPTED, 2),
        ]
        now, items = await job_of(writing, owner, job)
        assert (now.status, now.finished_at) == (ImportStatus.AWAITING_REVIEW, None)
        assert items == [
            (ImportItemStatus.ACCEPTED, True),
            (ImportItemStatus.PENDING_REVIEW, False),
            (ImportItemStatus.ACCEPTED, True),
        ]
        await transfers.review_entries(writing, owner, [ids[1]], ReviewDecision.REJECT)
        now, items = await job_of(writing, owner, job)
        assert (now.status, now.version) == (ImportStatus.COMPLETED, 2)
        assert now.finished_at is not None
        assert items[1] == (ImportItemStatus.REJECTED, True)


async def test_a_decision_can_be_taken_back_and_said_twice(
    database: Database, people: People
) -> None:
    """Rule X4."""
    owner = people.owner
    async with database.writing() as writing:
        job, _, entries = await import_book(writing, owner)
        ids = [each.id for each in entries]

        async def decide(decision: ReviewDecision) -> list[tuple[ReviewStatus, int]]:
            reviewed = await transfers.review_entries(writing, owner, ids, decision)
            return [(each.review_status, each.version) for each in reviewed]

        assert await decide(ReviewDecision.REJECT) == [(ReviewStatus.REJECTED, 2)] * 3
        finished, _ = await job_of(writing, owner, job)
        assert await decide(ReviewDecision.REJECT) == [(ReviewStatus.REJECTED, 2)] * 3
        assert await decide(ReviewDecision.ACCEPT) == [(ReviewStatus.ACCEPTED, 3)] * 3
        now, items = await job_of(writing, owner, job)
        # It was completed once; what is decided anew does not open it again.
        assert (now.status, now.finished_at) == (finished.status, finished.finished_at)
        assert items == [(ImportItemStatus.ACCEPTED, True)] * 3
        assert await transfers.review_entries(writing, owner, [], ReviewDecision.ACCEPT) == []


async def test_two_reviews_at_once_complete_a_job_together(
    database: Database, people: People
) -> None:
    """Rule X4."""
    owner = people.owner
    async with database.writing() as writing:
        job, _, entries = await import_book(writing, owner)

    async def accept(ids: list[str]) -> None:
        async with database.writing() as writing:
            await transfers.review_entries(writing, owner, ids, ReviewDecision.ACCEPT)

    ids = [each.id for each in entries]
    await asyncio.gather(*(accept(part) for part in (ids[:1], ids[1:], ids)))
    async with database.reading() as reading:
        now, _ = await job_of(reading, owner, job)
    assert now.status == ImportStatus.COMPLETED


async def test_entries_that_are_not_ones_own_cannot_be_decided_about(
    database: Database, people: People
) -> None:
    """Rules X4, X8."""
    async with database.writing() as writing:
        _, lorebook, entries = await import_book(writing, people.owner)
        _, _, theirs = await import_book(writing, people.stranger)
        for viewer in (people.stranger, people.anonymous):
            with pytest.raises(NotFound) as caught:
                await transfers.review_entries(
                    writing, viewer, [entries[0].id], ReviewDecision.ACCEPT
                )
            assert caught.value.path == ("input", "entryIds", 0)
        mixed = [entries[0].id, theirs[0].id]
        with pytest.raises(NotFound) as caught:
            await transfers.review_entries(writing, people.owner, mixed, ReviewDecision.ACCEPT)
        assert caught.value.path == ("input", "entryIds", 1)
        too_many = [entries[0].id] * (MAX_REVIEWED + 1)
        with pytest.raises(DomainError) as refused:
            await transfers.review_entries(writing, people.owner, too_many, ReviewDecision.ACCEPT)
        assert (refused.value.code, refused.value.path) == ("LIMIT_REACHED", ("input", "entryIds"))
        assert await entries_of(writing, people.owner, lorebook) == entries


CHANGES = {
    "name": "The toll",
    "keys": ["toll", "/coins?/i"],
    "secondary_keys": ["bridge"],
    "selective_logic": SelectiveLogic.NOT_ALL,
    "is_constant": True,
    "position": LorePosition.AT_DEPTH,
    "depth": 2,
    "insertion_order": -5,
    "probability": 50,
    "sticky": 3,
    "cooldown": 4,
    "delay": 0,
    "recursion_values": {"exclude": True, "prevent": False, "delay_until": 2},
    "content": "",
    "is_enabled": True,
}


async def test_every_column_of_an_entry_can_be_changed_and_its_source_stays(
    database: Database, people: People
) -> None:
    """Rule X5."""
    async with database.writing() as writing:
        _, _, entries = await import_book(writing, people.owner)
        before = entries[1]
        after = await transfers.update_entry(writing, people.owner, before.id, CHANGES, 1)
        assert {name: getattr(after, name) for name in CHANGES} == CHANGES
        assert (after.source, after.version, after.review_status) == (
            ENTRIES[1],
            2,
            ReviewStatus.PENDING_REVIEW,
        )
        # Said again, nothing is otherwise.
        again = await transfers.update_entry(writing, people.owner, before.id, CHANGES, None)
        assert again == after
        sparing = await transfers.update_entry(
            writing, people.owner, before.id, {"sticky": None}, None
        )
        assert (sparing.sticky, sparing.cooldown, sparing.version) == (None, 4, 3)


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        ({"name": "x" * 501}, "TEXT_TOO_LONG", ("name",)),
        ({"content": "x" * 1_000_001}, "TEXT_TOO_LONG", ("content",)),
        ({"content": "a\0"}, "INVALID_TEXT", ("content",)),
        ({"keys": ["x", " "]}, "TEXT_EMPTY", ("keys", 1)),
        ({"secondary_keys": [""]}, "TEXT_EMPTY", ("secondaryKeys", 0)),
        ({"keys": ["x"] * (MAX_KEYS + 1)}, "LIMIT_REACHED", ("keys",)),
        ({"probability": 101}, "OUT_OF_RANGE", ("probability",)),
        ({"probability": -1}, "OUT_OF_RANGE", ("probability",)),
        ({"depth": -1}, "OUT_OF_RANGE", ("depth",)),
        ({"sticky": -1}, "OUT_OF_RANGE", ("sticky",)),
        ({"cooldown": -1}, "OUT_OF_RANGE", ("cooldown",)),
        ({"delay": -1}, "OUT_OF_RANGE", ("delay",)),
        (
            {"recursion_values": {"exclude": True, "prevent": True, "delay_until": -1}},
            "OUT_OF_RANGE",
            ("recursion", "delayUntil"),
        ),
    ],
)
async def test_a_change_of_an_entry_is_checked(
    database: Database,
    people: People,
    changes: dict[str, Any],
    code: str,
    path: tuple[str | int, ...],
) -> None:
    """Rule X5."""
    async with database.writing() as writing:
        _, lorebook, entries = await import_book(writing, people.owner)
        given = {"insertion_order": 1, **changes}
        with pytest.raises(DomainError) as caught:
            await transfers.update_entry(writing, people.owner, entries[0].id, given, None)
        assert (caught.value.code, caught.value.path) == (code, ("input", *path))
        assert await entries_of(writing, people.owner, lorebook) == entries


async def test_a_change_of_what_was_changed_meanwhile_is_a_conflict(
    database: Database, people: People
) -> None:
    """Rules X5, X8."""
    async with database.writing() as writing:
        _, lorebook, entries = await import_book(writing, people.owner)
        entry_id = entries[0].id
        await transfers.review_entries(writing, people.owner, [entry_id], ReviewDecision.ACCEPT)
        reviewed = await entries_of(writing, people.owner, lorebook)
        with pytest.raises(Conflict) as caught:
            await transfers.update_entry(writing, people.owner, entry_id, {"content": "New."}, 1)
        assert (caught.value.code, caught.value.path) == ("CONFLICT", ("input", "expectedVersion"))
        for viewer in (people.stranger, people.anonymous):
            with pytest.raises(NotFound) as hidden:
                await transfers.update_entry(writing, viewer, entry_id, {"content": "Mine."}, None)
            assert hidden.value.path == ("input", "entryId")
            with pytest.raises(NotFound) as hidden:
                await transfers.delete_lorebook(writing, viewer, lorebook.id)
            assert hidden.value.path == ("input", "lorebookId")
        assert await entries_of(writing, people.owner, lorebook) == reviewed


async def test_a_deleted_book_leaves_nothing_to_decide(database: Database, people: People) -> None:
    """Rule X6."""
    owner = people.owner
    async with database.writing() as writing:
        job, lorebook, entries = await import_book(writing, owner)
        await transfers.review_entries(writing, owner, [entries[0].id], ReviewDecision.ACCEPT)
        assert await transfers.delete_lorebook(writing, owner, lorebook.id) == lorebook.id
        assert await find_row(writing, owner, Lorebook, lorebook.id) is None
        ids = [each.id for each in entries]
        assert await rows_by_ids(writing, owner, LorebookEntry, ids) == [None] * 3
        now, items = await job_of(writing, owner, job)
        assert now.status == ImportStatus.COMPLETED
        assert items == [
            (ImportItemStatus.ACCEPTED, True),
            (ImportItemStatus.REJECTED, True),
            (ImportItemStatus.REJECTED, True),
        ]


async def test_activation_hands_the_book_over_and_abandoning_takes_it_away(
    database: Database, people: People
) -> None:
    """Rules X3, X7."""
    owner = people.owner
    content = json.dumps(CARD).encode()
    async with database.writing() as writing:
        made = [
            await transfers.import_card(
                writing, owner, transfers.read_card(content), file_name="rook.json"
            )
            for _ in range(2)
        ]
        (kept_job, kept), (lost_job, lost) = made
        books = await lorebooks.books_of_jobs(writing, owner, [job.id for job, _ in made])
        character = await characters.activate_embryo(writing, owner, kept.id, ALL_POINTS)
        await characters.abandon_embryo(writing, owner, lost.id)

        book = await find_row(writing, owner, Lorebook, books[kept_job.id].id)
        assert book is not None
        assert (book.character_id, book.embryo_draft_id) == (character.id, kept.id)
        (((found, entries)),) = await lorebooks.books_with_entries(writing, owner, character)
        assert (found.id, [each.content for each in entries]) == (
            book.id,
            ["It is old.", "Two coins.", "They sleep."],
        )
        assert await find_row(writing, owner, Lorebook, books[lost_job.id].id) is None
        now, items = await job_of(writing, owner, lost_job)
        assert (now.status, now.file_name, now.warnings, items) == (
            ImportStatus.ABANDONED,
            "",
            [],
            [],
        )
        assert now.finished_at is not None


async def test_the_book_of_a_character_that_is_not_active_can_only_be_read(
    database: Database, people: People
) -> None:
    """Rule X5."""
    owner = people.owner
    async with database.writing() as writing:
        character = await make_character(writing, owner)
        _, lorebook, entries = await import_book(writing, owner, character_id=character.id)
        assert lorebook.character_id == character.id
        await writing._connection.execute("UPDATE characters SET status = 'deceased'")
        tries = [
            transfers.review_entries(writing, owner, [entries[0].id], ReviewDecision.ACCEPT),
            transfers.update_entry(writing, owner, entries[0].id, {"content": "New."}, None),
            transfers.delete_lorebook(writing, owner, lorebook.id),
            import_book(writing, owner, character_id=character.id),
        ]
        for attempt in tries:
            with pytest.raises(Conflict) as caught:
                await attempt
            assert caught.value.code == "CHARACTER_READ_ONLY"
        assert await entries_of(writing, owner, lorebook) == entries


async def test_entries_can_be_asked_for_by_their_status(database: Database, people: People) -> None:
    owner = people.owner
    async with database.writing() as writing:
        _, lorebook, entries = await import_book(writing, owner)
        await transfers.review_entries(writing, owner, [entries[1].id], ReviewDecision.REJECT)
        for status, numbers in (
            (None, [1, 2, 3]),
            (ReviewStatus.PENDING_REVIEW, [1, 3]),
            (ReviewStatus.REJECTED, [2]),
            (ReviewStatus.ACCEPTED, []),
        ):
            asked = {"review_status": status, **owner.parameters}
            (page,) = await lorebooks.ENTRIES_OF_LOREBOOKS.pages(
                writing, [lorebook.id], PageRequest(), **asked
            )
            assert [each.number for each in page.nodes] == numbers
            counts = await lorebooks.ENTRIES_OF_LOREBOOKS.counts(writing, [lorebook.id], **asked)
            assert counts == [len(numbers)]
        books = await lorebooks.list_lorebooks(writing, owner, PageRequest())
        assert [each.id for each in books.nodes] == [lorebook.id]
        for viewer in (people.stranger, people.anonymous):
            assert (await lorebooks.list_lorebooks(writing, viewer, PageRequest())).nodes == []
            assert await entries_of(writing, viewer, lorebook) == []
