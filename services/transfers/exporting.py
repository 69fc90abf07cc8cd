"""Exporting: a draft or a character, as it is now, as the file of a card.

The file is made between two looks into the database, beside the loop and outside of any
transaction. Source: spec soul-mirror, section 8; sillytavern cards, rules 7 to 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from db.enums import CharacterStatus, EmbryoStatus, ExportFormat, ReviewStatus
from db.ids import parse_id
from db.reading import Reading, Writing
from db.tables import Character, EmbryoDraft, Export, Lorebook, LorebookEntry
from services import cards, characters, imports, lorebooks
from services.access import Viewer, find_row, hold_row, require_row
from services.errors import Conflict, Invalid
from services.exports import safe_file_name, store_export
from services.transfers.threads import beside_the_loop


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a format is for the writer of cards, for HTTP and for file systems."""

    target: cards.CardTarget
    media_type: str
    ending: str


FILE_KINDS = {
    ExportFormat.CARD_V2_JSON: FileKind(cards.CardTarget.JSON_V2, "application/json", "json"),
    ExportFormat.CARD_V3_JSON: FileKind(cards.CardTarget.JSON_V3, "application/json", "json"),
    ExportFormat.CARD_PNG: FileKind(cards.CardTarget.PNG, "image/png", "png"),
    ExportFormat.CARD_CHARX: FileKind(cards.CardTarget.CHARX, "application/zip", "charx"),
}

# What the baseline of a character speaks of, also where it has nothing to say.
_BASELINE = {*characters.CORE_FIELDS, characters.FORBIDDEN_ZONE}
# What belongs to every card, for drafts that were written by hand.
_EMPTY_CARD: dict[str, Any] = {
    "name": "",
    "description": "",
    "personality": "",
    "scenario": "",
    "first_mes": "",
    "mes_example": "",
    "creator_notes": "",
    "system_prompt": "",
    "post_history_instructions": "",
    "creator": "",
    "character_version": "",
    "alternate_greetings": [],
    "group_only_greetings": [],
    "tags": [],
    "extensions": {},
}


@dataclass(frozen=True, slots=True)
class CardToExport:
    """All that a card's file is made of, and whom it shows."""

    subject: EmbryoDraft | Character
    fields: dict[str, Any]
    source: dict[str, Any] | None
    books: Sequence[tuple[Lorebook, Sequence[LorebookEntry]]]
    files: Sequence[cards.CardFile]


async def card_to_export(
    reading: Reading, viewer: Viewer, embryo_id: str | None, character_id: str | None
) -> CardToExport:
    """What there is to export of a draft, or of a character with the draft it came from.

    Exactly one id is given. Raises Invalid (ONE_SUBJECT), NotFound and Conflict
    (ALREADY_ACTIVATED: ask for the character; CHARACTER_ERASED).
    """
    subject = await _subject(reading, viewer, embryo_id, character_id)
    _require_exportable(subject)
    embryo: EmbryoDraft | None
    if character_id is None:
        embryo = cast("EmbryoDraft", subject)
        fields = embryo.provisional_identity
    else:
        character = cast("Character", subject)
        draft_id = character.embryo_draft_id or ""
        embryo = await find_row(reading, viewer, EmbryoDraft, draft_id)
        fields = _present_fields(character, embryo.provisional_identity if embryo else {})
    job_id = embryo and embryo.import_job_id
    return CardToExport(
        subject,
        {**_EMPTY_CARD, **fields},
        embryo.source_card if embryo else None,
        await lorebooks.books_with_entries(reading, viewer, subject),
        await imports.files_of_job(reading, viewer, job_id) if job_id else [],
    )


async def write_card_file(card: CardToExport, format: ExportFormat) -> bytes:
    """The file. Raises Invalid (NOT_A_CARD_FORMAT)."""
    if format not in FILE_KINDS:
        raise Invalid(
            "This format is not one of a card: a card is V2 or V3 JSON, PNG or CharX.",
            "NOT_A_CARD_FORMAT",
            ("input", "format"),
        )
    return await beside_the_loop(lambda: _written(card, format))


async def store_card_export(
    writing: Writing, viewer: Viewer, card: CardToExport, format: ExportFormat, content: bytes
) -> Export:
    """Keep a file that was made of `card`, if that is still there to be shown.

    Raises NotFound and Conflict as `card_to_export` does.
    """
    subject: Any = card.subject
    is_character = parse_id(subject.id).table == Character.__tablename__
    table, name = (Character, "characterId") if is_character else (EmbryoDraft, "embryoId")
    _require_exportable(await hold_row(writing, viewer, table, subject.id, "input", name))
    kind = FILE_KINDS[format]
    file_name = safe_file_name(card.fields["name"], kind.ending)
    return await store_export(
        writing, viewer, subject.id, format, file_name, kind.media_type, content
    )


async def _subject(
    reading: Reading, viewer: Viewer, embryo_id: str | None, character_id: str | None
) -> EmbryoDraft | Character:
    if (embryo_id is None) == (character_id is None):
        raise Invalid("Give either embryoId or characterId.", "ONE_SUBJECT", ("input",))
    if embryo_id is not None:
        return await require_row(reading, viewer, EmbryoDraft, embryo_id, "input", "embryoId")
    return await require_row(reading, viewer, Character, character_id or "", "input", "characterId")


def _require_exportable(subject: EmbryoDraft | Character) -> None:
    if subject.status == EmbryoStatus.ISSUED:
        raise Conflict(
            "This draft has become a character already: export the character.",
            "ALREADY_ACTIVATED",
            ("input", "embryoId"),
        )
    if subject.status == CharacterStatus.PURGED:
        raise Conflict(
            "The data of this character was erased: there is nothing to export.",
            "CHARACTER_ERASED",
            ("input", "characterId"),
        )


def _present_fields(character: Character, drafted: dict[str, Any]) -> dict[str, Any]:
    """The fields of a card as they are now: the baseline, and what it does not speak of."""
    baseline = character.identity_baseline
    fields = {name: value for name, value in drafted.items() if name not in _BASELINE}
    zone = baseline["forbidden_zone"]
    return {
        **fields,
        **baseline["core_anchor"],
        **({characters.FORBIDDEN_ZONE: zone} if zone else {}),
    }


def _written(card: CardToExport, format: ExportFormat) -> bytes:
    kind = FILE_KINDS[format]
    book = _book_of(card.books)
    fields = card.fields if book is None else {**card.fields, "character_book": book}
    # An untouched card keeps the date that its file had.
    changed_at = card.subject.updated_at
    return cards.write_card(
        fields,
        card.source,
        card.files,
        kind.target,
        modified_at=int(changed_at.timestamp()) if changed_at else None,
    )


def _book_of(
    books: Sequence[tuple[Lorebook, Sequence[LorebookEntry]]],
) -> dict[str, Any] | None:
    """The one book that a card has: the oldest, with the entries of all that were not rejected.

    What nobody changed is written as its source has it.
    """
    if not books:
        return None
    oldest = cards.read_lorebook(books[0][0].source)
    entries = tuple(
        _entry_of(each)
        for _, rows in books
        for each in rows
        if each.review_status != ReviewStatus.REJECTED
    )
    return cards.write_lorebook(replace(oldest, entries=entries))


def _entry_of(row: LorebookEntry) -> cards.LoreEntry:
    return cards.LoreEntry(
        name=row.name,
        keys=tuple(row.keys),
        secondary_keys=tuple(row.secondary_keys),
        selective_logic=row.selective_logic,
        constant=row.is_constant,
        position=row.position,
        depth=row.depth,
        insertion_order=row.insertion_order,
        probability=row.probability,
        sticky=row.sticky,
        cooldown=row.cooldown,
        delay=row.delay,
        recursion=cards.Recursion(**row.recursion_values),
        content=row.content,
        enabled=row.is_enabled,
        source=row.source,
    )
