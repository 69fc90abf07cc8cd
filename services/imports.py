"""Imports: the record of each file that came in, what was in it, and what was decided about it.

What is made of a file belongs to other nouns, which hand its id over as an item's target.
Source: spec soul-mirror, section 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.enums import ImportItemKind, ImportItemStatus, ImportKind, ImportStatus
from db.ids import new_id
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import (
    EmbryoDraft,
    FileWarning,
    ImportFile,
    ImportItem,
    ImportJob,
    LorebookEntry,
)
from services.access import Viewer, hold_row, rows_by_ids, visible
from services.cards import CardFile
from services.text import MAX_LINE, storable

IMPORT_JOBS = PagedList(
    "import_jobs",
    ImportJob,
    sort=[
        SortKey(col(ImportJob.created_at), is_descending=True),
        SortKey(col(ImportJob.id), is_descending=True),
    ],
    where=lambda: visible(ImportJob),
)
ITEMS_OF_JOBS = PagedList(
    "items_of_jobs",
    ImportItem,
    parent=col(ImportItem.import_job_id),
    sort=[SortKey(col(ImportItem.number))],
    where=lambda: visible(ImportItem),
)
# What an item can have become.
_TARGETS = (EmbryoDraft, LorebookEntry)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in a file: which kind it is, its size in bytes, what was mended."""

    container: str
    spec: str | None
    size: int
    warnings: Sequence[FileWarning]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a file, and the id of what was made of it or its content."""

    kind: ImportItemKind
    label: str
    target_ref: str | None = None
    file: CardFile | None = None
    warnings: Sequence[FileWarning] = ()


async def open_job(
    writing: Writing, viewer: Viewer, kind: ImportKind, file_name: str | None, report: Report
) -> ImportJob:
    """Begin the record of a file that was read; `file_name` is as a client sent it."""
    return await writing.insert(
        ImportJob,
        owner_user_id=viewer.signed_in_id,
        kind=kind,
        status=ImportStatus.AWAITING_REVIEW,
        file_name=_last_part(file_name or ""),
        report=asdict(report),
    )


async def add_parts(
    writing: Writing, viewer: Viewer, job: ImportJob, parts: Sequence[Part]
) -> ImportJob:
    """Note what was in the file, in its order; the job, completed when nothing waits for review."""
    ids = [new_id("import_items") for _ in parts]
    await writing.insert_many(
        ImportItem,
        [
            {
                "id": item_id,
                "import_job_id": job.id,
                "number": number,
                "kind": part.kind,
                "status": (
                    ImportItemStatus.PENDING_REVIEW
                    if part.kind is ImportItemKind.LOREBOOK_ENTRY
                    else ImportItemStatus.PARSED
                ),
                "label": part.label if part.file else part.label[:MAX_LINE],
                "target_ref": part.target_ref,
                "media_type": part.file and part.file.media_type,
                "size_bytes": part.file and len(part.file.content),
                "warning_values": [asdict(each) for each in part.warnings],
            }
            for number, (item_id, part) in enumerate(zip(ids, parts, strict=True), start=1)
        ],
    )
    await writing.insert_many(
        ImportFile,
        [
            {"import_item_id": item_id, "content": part.file.content}
            for item_id, part in zip(ids, parts, strict=True)
            if part.file
        ],
    )
    await writing.run(_complete(), job_ids=[job.id], **viewer.parameters)
    (settled,) = await rows_by_ids(writing, viewer, ImportJob, [job.id])
    assert settled is not None
    return settled


async def decide_parts(
    writing: Writing, viewer: Viewer, target_refs: Sequence[str], status: ImportItemStatus
) -> None:
    """Note what was decided about what was made of parts; completes jobs of which nothing waits.

    The caller holds what the parts became, so that two decisions on one job are one after another.
    """
    changed = await writing.all(
        _decide(), target_refs=list(target_refs), new_status=status, **viewer.parameters
    )
    job_ids = list({each.import_job_id for each in changed})
    await writing.run(_complete(), job_ids=job_ids, **viewer.parameters)


async def abandon_import(writing: Writing, viewer: Viewer, job_id: str) -> None:
    """Forget what a file held: its items, their files, its name and warnings; only the bare job
    stays, as abandoned. Raises NotFound.
    """
    job = await hold_row(writing, viewer, ImportJob, job_id)
    await writing.run(_delete_items(), job_id=job.id)
    await writing.run(_abandon(), job_id=job.id, report={**job.report, "warnings": []})


async def list_imports(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[ImportJob]:
    """The viewer's imports, newest first."""
    return await IMPORT_JOBS.page(reading, request, **viewer.parameters)


async def embryos_of_jobs(
    reading: Reading, viewer: Viewer, job_ids: Sequence[str]
) -> dict[str, EmbryoDraft]:
    """The draft that each import made, by the import's id."""
    rows = await reading.all(_embryos_of_jobs(), job_ids=list(job_ids), **viewer.parameters)
    return {row.import_job_id: row for row in rows if row.import_job_id is not None}


async def targets_of_items(
    reading: Reading, viewer: Viewer, items: Sequence[ImportItem]
) -> list[EmbryoDraft | LorebookEntry | None]:
    """What became of each item: a draft, a lorebook entry; None for files and what has gone."""
    refs = [each.target_ref or "" for each in items]
    found = [await rows_by_ids(reading, viewer, table, refs) for table in _TARGETS]
    return [draft or entry for draft, entry in zip(*found, strict=True)]


async def files_of_job(reading: Reading, viewer: Viewer, job_id: str) -> list[CardFile]:
    """The files that came with a card, in its order."""
    rows: list[Any] = await reading.all(_files(), job_id=job_id, **viewer.parameters)
    return [CardFile(row.label, row.media_type, row.content) for row in rows]


def _last_part(file_name: str) -> str:
    """A file's name without folders, short enough for a line."""
    return storable(file_name).replace("\\", "/").rpartition("/")[2].strip()[:MAX_LINE]


@statement(EmbryoDraft)
def _embryos_of_jobs() -> Any:
    return select(*columns(EmbryoDraft)).where(
        any_of(EmbryoDraft.import_job_id, "job_ids"), visible(EmbryoDraft)
    )


@statement(ImportItem)
def _decide() -> Any:
    return (
        update(ImportItem)
        .where(
            any_of(ImportItem.target_ref, "target_refs"),
            col(ImportItem.status) != param("new_status"),
            visible(ImportItem),
        )
        .values(status=param("new_status"), decided_at=func.clock_timestamp())
        .returning(col(ImportItem.import_job_id).label("import_job_id"))
    )


@statement(ImportJob)
def _complete() -> Any:
    waiting = select(1).where(
        col(ImportItem.import_job_id) == col(ImportJob.id),
        col(ImportItem.status) == ImportItemStatus.PENDING_REVIEW.value,
    )
    return (
        update(ImportJob)
        .where(
            any_of(ImportJob.id, "job_ids"),
            col(ImportJob.status) == ImportStatus.AWAITING_REVIEW.value,
            ~waiting.exists(),
            visible(ImportJob),
        )
        .values(
            status=ImportStatus.COMPLETED.value,
            finished_at=func.clock_timestamp(),
            version=col(ImportJob.version) + 1,
        )
    )


@statement(ImportItem)
def _delete_items() -> Any:
    return delete(ImportItem).where(col(ImportItem.import_job_id) == param("job_id"))


@statement(ImportJob)
def _abandon() -> Any:
    return (
        update(ImportJob)
        .where(col(ImportJob.id) == param("job_id"))
        .values(
            status=ImportStatus.ABANDONED.value,
            file_name="",
            report_json=param("report", JSONB()),
            finished_at=func.clock_timestamp(),
            version=col(ImportJob.version) + 1,
        )
    )


@statement(object)
def _files() -> Any:
    return (
        select(
            col(ImportItem.label).label("label"),
            col(ImportItem.media_type).label("media_type"),
            col(ImportFile.content).label("content"),
        )
        .join(ImportFile, col(ImportFile.import_item_id) == col(ImportItem.id))
        .where(col(ImportItem.import_job_id) == param("job_id"), visible(ImportItem))
        .order_by(col(ImportItem.number))
    )
