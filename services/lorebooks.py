"""Lorebooks: keeping what was read, reading it, and handing it over from a draft to its character.

Source: spec soul-mirror, sections 5 and 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlmodel import col

from db.enums import LorePosition, ReviewStatus, SelectiveLogic
from db.ids import new_id
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Character, EmbryoDraft, Lorebook, LorebookEntry
from services import cards
from services.access import Viewer, visible

LOREBOOKS = PagedList(
    "lorebooks",
    Lorebook,
    sort=[
        SortKey(col(Lorebook.created_at), is_descending=True),
        SortKey(col(Lorebook.id), is_descending=True),
    ],
    where=lambda: visible(Lorebook),
)
LOREBOOKS_OF_CHARACTERS = PagedList(
    "lorebooks_of_characters",
    Lorebook,
    parent=col(Lorebook.character_id),
    sort=[SortKey(col(Lorebook.created_at)), SortKey(col(Lorebook.id))],
    where=lambda: visible(Lorebook),
)
LOREBOOKS_OF_EMBRYOS = PagedList(
    "lorebooks_of_embryos",
    Lorebook,
    parent=col(Lorebook.embryo_draft_id),
    sort=[SortKey(col(Lorebook.created_at)), SortKey(col(Lorebook.id))],
    where=lambda: visible(Lorebook),
)
# All entries of each book, or those of one `review_status`.
ENTRIES_OF_LOREBOOKS = PagedList(
    "entries_of_lorebooks",
    LorebookEntry,
    parent=col(LorebookEntry.lorebook_id),
    sort=[SortKey(col(LorebookEntry.number))],
    where=lambda: (
        visible(LorebookEntry)
        & or_(
            param("review_status").is_(None),
            col(LorebookEntry.review_status) == param("review_status"),
        )
    ),
)


async def store_lorebook(
    writing: Writing,
    viewer: Viewer,
    book: cards.Lorebook,
    *,
    import_job_id: str,
    embryo_draft_id: str | None = None,
    character_id: str | None = None,
) -> tuple[Lorebook, list[str]]:
    """Keep a book that was read, each entry waiting for review; the ids of its entries in order."""
    lorebook = await writing.insert(
        Lorebook,
        owner_user_id=viewer.signed_in_id,
        embryo_draft_id=embryo_draft_id,
        character_id=character_id,
        import_job_id=import_job_id,
        name=book.name,
        description=book.description,
        scan_depth=book.scan_depth,
        token_budget=book.token_budget,
        is_recursive=bool(book.recursive),
        source=book.source,
    )
    ids = [new_id("lorebook_entries") for _ in book.entries]
    await writing.insert_many(
        LorebookEntry,
        [
            {
                "id": entry_id,
                "lorebook_id": lorebook.id,
                "number": number,
                "review_status": ReviewStatus.PENDING_REVIEW,
                "source": entry.source,
                **columns_of(entry),
            }
            for number, (entry_id, entry) in enumerate(zip(ids, book.entries, strict=True), start=1)
        ],
    )
    return lorebook, ids


def columns_of(entry: cards.LoreEntry) -> dict[str, Any]:
    """What an entry that was read says in our columns, by their names."""
    return {
        "name": entry.name,
        "keys": list(entry.keys),
        "secondary_keys": list(entry.secondary_keys),
        "selective_logic": SelectiveLogic(entry.selective_logic),
        "is_constant": entry.constant,
        "position": LorePosition(entry.position),
        "depth": entry.depth,
        "insertion_order": entry.insertion_order,
        "probability": entry.probability,
        "sticky": entry.sticky,
        "cooldown": entry.cooldown,
        "delay": entry.delay,
        "recursion_values": {
            "exclude": entry.recursion.exclude,
            "prevent": entry.recursion.prevent,
            "delay_until": entry.recursion.delay_until,
        },
        "content": entry.content,
        "is_enabled": entry.enabled,
    }


async def hand_over(
    writing: Writing, viewer: Viewer, embryo: EmbryoDraft, character: Character
) -> None:
    """Give the books of a draft to the character that it has become."""
    await writing.run(
        _hand_over(), embryo_id=embryo.id, character_id=character.id, **viewer.parameters
    )


async def list_lorebooks(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[Lorebook]:
    """The viewer's books, newest first."""
    return await LOREBOOKS.page(reading, request, **viewer.parameters)


async def books_with_entries(
    reading: Reading, viewer: Viewer, owner: EmbryoDraft | Character
) -> list[tuple[Lorebook, list[LorebookEntry]]]:
    """The books of a draft or a character, oldest first, each with all its entries in order."""
    books = await reading.all(_books_of(), owner_id=owner.id, **viewer.parameters)
    entries = await reading.all(
        _entries_of(), lorebook_ids=[each.id for each in books], **viewer.parameters
    )
    by_book: dict[str, list[LorebookEntry]] = {each.id: [] for each in books}
    for entry in entries:
        by_book[entry.lorebook_id].append(entry)
    return [(book, by_book[book.id]) for book in books]


async def books_of_jobs(
    reading: Reading, viewer: Viewer, job_ids: Sequence[str]
) -> dict[str, Lorebook]:
    """The book that each import brought, by the import's id."""
    rows = await reading.all(_books_of_jobs(), job_ids=list(job_ids), **viewer.parameters)
    return {row.import_job_id: row for row in rows if row.import_job_id is not None}


@statement(Lorebook)
def _hand_over() -> Any:
    return (
        update(Lorebook)
        .where(col(Lorebook.embryo_draft_id) == param("embryo_id"), visible(Lorebook))
        .values(
            character_id=param("character_id"),
            updated_at=func.clock_timestamp(),
            version=col(Lorebook.version) + 1,
        )
    )


@statement(Lorebook)
def _books_of() -> Any:
    return (
        select(*columns(Lorebook))
        .where(
            or_(
                col(Lorebook.embryo_draft_id) == param("owner_id"),
                col(Lorebook.character_id) == param("owner_id"),
            ),
            visible(Lorebook),
        )
        .order_by(col(Lorebook.created_at), col(Lorebook.id))
    )


@statement(LorebookEntry)
def _entries_of() -> Any:
    return (
        select(*columns(LorebookEntry))
        .where(any_of(LorebookEntry.lorebook_id, "lorebook_ids"), visible(LorebookEntry))
        .order_by(col(LorebookEntry.lorebook_id), col(LorebookEntry.number))
    )


@statement(Lorebook)
def _books_of_jobs() -> Any:
    return select(*columns(Lorebook)).where(
        any_of(Lorebook.import_job_id, "job_ids"), visible(Lorebook)
    )
