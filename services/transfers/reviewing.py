"""Reviewing lorebooks: taking or leaving what was imported, and changing it by hand.

Source: spec soul-mirror, sections 5 and 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlmodel import col

from db.enums import ImportItemStatus, ReviewDecision, ReviewStatus
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import ImportJob, Lorebook, LorebookEntry
from services import characters, imports
from services.access import (
    Viewer,
    checked_id,
    hold_row,
    require_row,
    require_version,
    rows_by_ids,
)
from services.accounts import record_act
from services.errors import Invalid, LimitReached, NotFound
from services.text import MAX_LINE, MAX_TEXT, checked_text, refuse_unstorable

MAX_REVIEWED = 200
MAX_KEYS = 1000

_ENTRIES_PATH = ("input", "entryIds")
_DECIDED = {
    ReviewDecision.ACCEPT: (ReviewStatus.ACCEPTED, ImportItemStatus.ACCEPTED),
    ReviewDecision.REJECT: (ReviewStatus.REJECTED, ImportItemStatus.REJECTED),
}
_INPUT_PATHS = {"secondary_keys": "secondaryKeys", "recursion_values": "recursion"}


async def review_entries(
    writing: Writing, viewer: Viewer, entry_ids: Sequence[str], decision: ReviewDecision
) -> list[LorebookEntry]:
    """Decide about entries, MAX_REVIEWED at most; the entries in the order given.

    Any decision can be taken again, and one that says the same changes nothing. Raises
    LimitReached, NotFound and Conflict (CHARACTER_READ_ONLY).
    """
    if len(entry_ids) > MAX_REVIEWED:
        raise LimitReached(f"Review {MAX_REVIEWED} entries at most at once.", path=_ENTRIES_PATH)
    entries = await _entries(writing, viewer, entry_ids)
    book_ids = sorted({each.lorebook_id for each in entries})
    await _hold_books(writing, viewer, book_ids, *_ENTRIES_PATH)
    ids = [each.id for each in entries]
    review_status, item_status = _DECIDED[decision]
    await writing.run(_review(), entry_ids=ids, new_status=review_status)
    await imports.decide_parts(writing, viewer, ids, item_status)
    for book_id in book_ids:
        act = {
            "decision": decision,
            "entries": len({each.id for each in entries if each.lorebook_id == book_id}),
        }
        await record_act(writing, viewer, "lorebook_reviewed", book_id, act)
    reviewed = await rows_by_ids(writing, viewer, LorebookEntry, ids)
    return [each for each in reviewed if each is not None]


async def update_entry(
    writing: Writing,
    viewer: Viewer,
    entry_id: str,
    changes: Mapping[str, Any],
    expected_version: int | None,
) -> LorebookEntry:
    """Change an entry; `changes` has new values by the names of its columns.

    What the file said stays in its source. Raises NotFound, Conflict (CONFLICT,
    CHARACTER_READ_ONLY), Invalid (TEXT_TOO_LONG, TEXT_EMPTY, OUT_OF_RANGE) and LimitReached.
    """
    path = ("input", "entryId")
    found = await require_row(writing, viewer, LorebookEntry, entry_id, *path)
    await _hold_books(writing, viewer, [found.lorebook_id], *path)
    entry = await hold_row(writing, viewer, LorebookEntry, entry_id, *path)
    require_version(entry, expected_version, "input", "expectedVersion")
    for name, value in changes.items():
        _check(name, value, "input", _INPUT_PATHS.get(name, name))
    changed = {name: value for name, value in changes.items() if getattr(entry, name) != value}
    if not changed:
        return entry
    updated = await writing.first(_update(tuple(sorted(changed))), of_id=entry.id, **changed)
    assert updated is not None
    return updated


async def delete_lorebook(writing: Writing, viewer: Viewer, lorebook_id: str) -> str:
    """Delete a book with its entries; its id. What of them waited for review counts as rejected.

    Raises NotFound, Conflict (CHARACTER_READ_ONLY).
    """
    path = ("input", "lorebookId")
    book = await require_row(writing, viewer, Lorebook, lorebook_id, *path)
    await _hold_books(writing, viewer, [book.id], *path)
    waiting: list[Any] = await writing.all(_waiting(), lorebook_id=book.id)
    ids = [each.id for each in waiting]
    await imports.decide_parts(writing, viewer, ids, ImportItemStatus.REJECTED)
    await writing.run(_delete(), lorebook_id=book.id)
    await record_act(writing, viewer, "lorebook_deleted", book.id)
    return book.id


async def _hold_books(
    writing: Writing, viewer: Viewer, book_ids: Sequence[str], *path: str | int
) -> None:
    """Hold books against all who change them: characters first, then imports, then the books."""
    books = [await require_row(writing, viewer, Lorebook, each, *path) for each in book_ids]
    for character_id in sorted({each.character_id for each in books if each.character_id}):
        await characters.hold_alive(writing, viewer, character_id, *path)
    for job_id in sorted({each.import_job_id for each in books if each.import_job_id}):
        await hold_row(writing, viewer, ImportJob, job_id, *path)
    for book_id in book_ids:
        await hold_row(writing, viewer, Lorebook, book_id, *path)


async def _entries(
    reading: Reading, viewer: Viewer, entry_ids: Sequence[str]
) -> list[LorebookEntry]:
    ids = [checked_id(each, LorebookEntry) or "" for each in entry_ids]
    found: list[LorebookEntry] = []
    for index, entry in enumerate(await rows_by_ids(reading, viewer, LorebookEntry, ids)):
        if entry is None:
            raise NotFound("There is no such LorebookEntry for you.", path=(*_ENTRIES_PATH, index))
        found.append(entry)
    return found


def _check(name: str, value: Any, *path: str | int) -> None:
    """Raises Invalid or LimitReached for a value that a column cannot have."""
    if name in ("keys", "secondary_keys"):
        if len(value) > MAX_KEYS:
            raise LimitReached(f"An entry has {MAX_KEYS} keys at most.", path=path)
        for index, key in enumerate(value):
            checked_text(key, *path, index)
    elif name in ("name", "content"):
        longest = MAX_LINE if name == "name" else MAX_TEXT
        refuse_unstorable(value, path)
        if len(value) > longest:
            raise Invalid(f"Shorten this to {longest:,} characters.", "TEXT_TOO_LONG", path)
    elif name == "recursion_values":
        _check_count(value["delay_until"], None, *path, "delayUntil")
    elif name in ("probability", "depth", "sticky", "cooldown", "delay"):
        _check_count(value, 100 if name == "probability" else None, *path)


def _check_count(value: int | None, most: int | None, *path: str | int) -> None:
    if value is not None and (value < 0 or (most is not None and value > most)):
        bound = "at least 0" if most is None else f"from 0 to {most}"
        raise Invalid(f"This is a number {bound}.", "OUT_OF_RANGE", path)


@statement(LorebookEntry)
def _review() -> Any:
    return (
        update(LorebookEntry)
        .where(
            any_of(LorebookEntry.id, "entry_ids"),
            col(LorebookEntry.review_status) != param("new_status"),
        )
        .values(
            review_status=param("new_status"),
            reviewed_at=func.clock_timestamp(),
            version=col(LorebookEntry.version) + 1,
        )
    )


@statement(LorebookEntry)
def _update(names: tuple[str, ...]) -> Any:
    changed = {
        getattr(LorebookEntry, name): param(name, getattr(LorebookEntry, name).type)
        for name in names
    }
    return (
        update(LorebookEntry)
        .where(col(LorebookEntry.id) == param("of_id"))
        .values({**changed, col(LorebookEntry.version): col(LorebookEntry.version) + 1})
        .returning(*columns(LorebookEntry))
    )


@statement(LorebookEntry)
def _waiting() -> Any:
    return select(col(LorebookEntry.id)).where(
        col(LorebookEntry.lorebook_id) == param("lorebook_id"),
        col(LorebookEntry.review_status) == ReviewStatus.PENDING_REVIEW.value,
    )


@statement(Lorebook)
def _delete() -> Any:
    return delete(Lorebook).where(col(Lorebook.id) == param("lorebook_id"))
