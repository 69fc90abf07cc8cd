"""Imports, as they can be read."""

from __future__ import annotations

from datetime import datetime

from db.enums import ImportItemKind, ImportItemStatus, ImportKind, ImportStatus
from resolvers import transfers as resolve
from schema.base import Connection, Node, described, enum, field, relation, row_type
from schema.characters import EmbryoDraft
from schema.lorebooks import Lorebook

enum(
    ImportKind,
    CHARACTER_CARD="A character card.",
    LOREBOOK="A lorebook of its own.",
    CHAT_LOG="A talk that was had elsewhere.",
)
enum(
    ImportStatus,
    AWAITING_REVIEW="Some of its items wait for a decision.",
    COMPLETED="Everything in it was decided.",
    ABANDONED="It was given up; nothing of what it held is left.",
)
enum(
    ImportItemKind,
    EMBRYO="The draft.",
    LOREBOOK_ENTRY="An entry of the lorebook.",
    FILE="A picture or another file.",
)
enum(
    ImportItemStatus,
    PARSED="Read; there is nothing to decide.",
    PENDING_REVIEW="Waits for a decision.",
    ACCEPTED="Taken.",
    REJECTED="Left out.",
    FAILED="Could not be read.",
)


@described
class FileWarning:
    """Something in an imported file that was mended or left out."""

    code: str = field("For programs: upper case and stable.")
    message: str = field("For people: what was done.")
    path: str = field("The place in the file, dotted; empty for the file as a whole.")


@row_type
class ImportItem(Node):
    """One part of an imported file."""

    number: int = field("Its place in the file, from 1.")
    kind: ImportItemKind = field("What it is.")
    status: ImportItemStatus = field("What became of it.")
    label: str = field("Its name, or its path within the file.")
    media_type: str | None = field("The media type of a file, judged by its bytes.")
    size_bytes: int | None = field("How large a file is.")
    warnings: list[FileWarning] = field("What was mended in it.")
    decided_at: datetime | None = field("When a person decided about it.")
    target: Node | None = relation(
        resolve.targets_of_items, "What was made of it, while that is there: a draft or an entry."
    )


@row_type
class ImportJob(Node):
    """One file that was imported, and what it held."""

    kind: ImportKind = field("What was imported.")
    status: ImportStatus = field("How far it has come.")
    file_name: str = field("The file's name; empty when it had none or was given up.")
    container: str = field("What kind of file it was: json, png_text or charx.")
    spec: str | None = field("The version of a card: v1, v2 or v3.")
    size_bytes: int = field("How large the file was.")
    warnings: list[FileWarning] = field("What was mended or left out.")
    items: Connection[ImportItem] = relation(
        resolve.items_of_jobs, "What was in it, in the order of the file."
    )
    embryo: EmbryoDraft | None = relation(resolve.embryos_of_jobs, "The draft that it made.")
    lorebook: Lorebook | None = relation(resolve.lorebooks_of_jobs, "The lorebook that it brought.")
    created_at: datetime = field("When it was imported.")
    finished_at: datetime | None = field("When everything was decided, or it was given up.")
    version: int = field("Counts its changes, from 1.")
