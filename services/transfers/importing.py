"""Importing: a file becomes a draft or a lorebook, and the record of all that was in it.

A file is read first, in isolation, and then stored whole, or refused and nothing of it is kept.
Source: spec soul-mirror, section 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import ImportItemKind, ImportKind
from db.reading import Writing
from db.tables import EmbryoDraft, FileWarning, ImportJob, Lorebook
from services import cards, characters, imports, lorebooks
from services.access import Viewer
from services.accounts import record_act
from services.imports import Part, Report
from services.transfers.threads import beside_the_loop


@dataclass(frozen=True, slots=True)
class ReadCard:
    """A card, its lorebook where it has one, and how many bytes its file had."""

    card: cards.Card
    book: cards.Lorebook | None
    size: int


def read_card(content: bytes) -> ReadCard:
    """The card in a file. Raises Invalid at ("input", "file")."""
    card = cards.read_card(content)
    book = card.fields.get("character_book")
    return ReadCard(card, None if book is None else cards.read_lorebook(book), len(content))


async def read_card_file(content: bytes) -> ReadCard:
    """The same beside the loop."""
    return await beside_the_loop(lambda: read_card(content))


async def read_lorebook_file(content: bytes) -> cards.Lorebook:
    """The lorebook in a file, read beside the loop. Raises Invalid at ("input", "file")."""
    return await beside_the_loop(lambda: cards.read_lorebook_file(content))


async def import_card(
    writing: Writing, viewer: Viewer, read: ReadCard, *, file_name: str | None
) -> tuple[ImportJob, EmbryoDraft]:
    """Store a card that was read: the job, a draft, its lorebook and its files.

    Entries of the lorebook wait for review. `file_name` is as the client sent it.
    """
    card, book = read.card, read.book
    identity, warnings = _identity_of(card)
    place = "character_book." if card.spec == "v1" else "data.character_book."
    if book is not None:
        warnings += _warnings(book.warnings, place)
    report = Report(card.container, card.spec, read.size, warnings)
    job = await imports.open_job(writing, viewer, ImportKind.CHARACTER_CARD, file_name, report)
    embryo = await characters.insert_imported(writing, viewer, identity, card.source, job.id)
    parts = [Part(ImportItemKind.EMBRYO, str(identity["name"]), embryo.id)]
    if book is not None:
        _, entry_ids = await lorebooks.store_lorebook(
            writing, viewer, book, import_job_id=job.id, embryo_draft_id=embryo.id
        )
        parts += _parts_of(book, entry_ids, place)
    parts += [Part(ImportItemKind.FILE, each.path, file=each) for each in card.files]
    job = await imports.add_parts(writing, viewer, job, parts)
    act = {"container": card.container, "spec": card.spec, "import_job_id": job.id}
    await record_act(writing, viewer, "card_imported", embryo.id, act)
    return job, embryo


async def import_lorebook(
    writing: Writing,
    viewer: Viewer,
    book: cards.Lorebook,
    *,
    content: bytes,
    file_name: str | None,
    character_id: str | None,
) -> tuple[ImportJob, Lorebook]:
    """Store a lorebook that was read: of a character, or of nobody but the viewer.

    `content` is the file that it was read from. Raises NotFound and Conflict
    (CHARACTER_READ_ONLY).
    """
    if character_id is not None:
        path = ("input", "characterId")
        character_id = (await characters.hold_alive(writing, viewer, character_id, *path)).id
    container = "png_text" if content.startswith(b"\x89PNG") else "json"
    report = Report(container, None, len(content), _warnings(book.warnings, ""))
    job = await imports.open_job(writing, viewer, ImportKind.LOREBOOK, file_name, report)
    lorebook, entry_ids = await lorebooks.store_lorebook(
        writing, viewer, book, import_job_id=job.id, character_id=character_id
    )
    job = await imports.add_parts(writing, viewer, job, _parts_of(book, entry_ids, ""))
    act = {"import_job_id": job.id, "character_id": character_id}
    await record_act(writing, viewer, "lorebook_imported", lorebook.id, act)
    return job, lorebook


def _identity_of(card: cards.Card) -> tuple[dict[str, Any], list[FileWarning]]:
    """Who a card says the character is, and all warnings so far.

    The book is kept as rows. A forbidden zone is what an export of ours has written; what another
    program means by that word is not taken for one.
    """
    warnings = _warnings(card.warnings, "")
    identity = {name: value for name, value in card.fields.items() if name != "character_book"}
    zone = identity.get(characters.FORBIDDEN_ZONE, [])
    if not (isinstance(zone, list) and all(isinstance(each, str) and each for each in zone)):
        del identity[characters.FORBIDDEN_ZONE]
        message = "The forbidden zone is not a list of texts; it was left out."
        warnings.append(FileWarning("VALUE_DROPPED", message, f"data.{characters.FORBIDDEN_ZONE}"))
    return identity, warnings


def _warnings(found: Iterable[cards.CardWarning], place: str) -> list[FileWarning]:
    """The warnings with their paths below `place`, which is empty or ends with a dot."""
    return [
        FileWarning(each.code, each.message, place + each.path if each.path else "")
        for each in found
    ]


def _parts_of(book: cards.Lorebook, entry_ids: Sequence[str], place: str) -> list[Part]:
    """The entries of a book as parts of the file, each with the warnings about it."""
    entries = book.source.get("entries")
    pairs = entries.items() if isinstance(entries, dict) else enumerate(entries or [])
    places = {id(entry): f"entries.{key}." for key, entry in pairs}
    warnings: dict[str, list[cards.CardWarning]] = {}
    for warning in book.warnings:
        key = ".".join(warning.path.split(".", 2)[:2]) + "."
        warnings.setdefault(key, []).append(warning)
    return [
        Part(
            ImportItemKind.LOREBOOK_ENTRY,
            entry.name,
            entry_id,
            warnings=_warnings(warnings.get(places.get(id(entry.source), ""), ()), place),
        )
        for entry, entry_id in zip(book.entries, entry_ids, strict=True)
    ]
