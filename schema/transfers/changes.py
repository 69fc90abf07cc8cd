"""Importing and exporting: inputs, payloads and mutations."""

from __future__ import annotations

import strawberry

from db.enums import ExportFormat
from resolvers import transfers as resolve
from schema.base import Payload, described, described_input, field, mutation
from schema.characters import EmbryoDraft
from schema.exports import Export
from schema.lorebooks import Lorebook
from schema.transfers.rows import FileWarning, ImportJob
from schema.wire.uploads import Upload


@described_input
class CardImportInput:
    """A character card to read."""

    file: Upload = field("The card: PNG, JSON or CharX; V1, V2 or V3.")


@described
class CardImportPayload(Payload):
    """What became of a card."""

    embryo: EmbryoDraft | None = field("The draft.")
    job: ImportJob | None = field("The record of what was in the file.")
    warnings: list[FileWarning] | None = field("What was mended or left out.")


@described_input
class LorebookImportInput:
    """A lorebook to read."""

    file: Upload = field("World info, a V3 lorebook, or a lorebook of NovelAI, Agnai or RisuAI.")
    character_id: strawberry.ID | None = field(
        "The character that it is for; null to keep it apart.", default=None
    )


@described
class LorebookImportPayload(Payload):
    """What became of a lorebook."""

    lorebook: Lorebook | None = field("The book; its entries wait for review.")
    job: ImportJob | None = field("The record of what was in the file.")
    warnings: list[FileWarning] | None = field("What was mended or left out.")


@described_input
class CardExportInput:
    """What to write as a card: exactly one of the two."""

    embryo_id: strawberry.ID | None = field("A draft that was not activated.", default=None)
    character_id: strawberry.ID | None = field("A character.", default=None)
    format: ExportFormat = field("One of the formats of cards.")


@described
class CardExportPayload(Payload):
    """The file."""

    export: Export | None = field("Download it from its url.")


@strawberry.type
class TransferMutation:
    """Taking in and giving out files."""

    card_import: CardImportPayload = mutation(
        resolve.import_card,
        input=CardImportInput,
        payload=CardImportPayload,
        description="Read a character card into a draft.",
    )
    lorebook_import: LorebookImportPayload = mutation(
        resolve.import_lorebook,
        input=LorebookImportInput,
        payload=LorebookImportPayload,
        description="Read a lorebook from a file of its own.",
    )
    card_export: CardExportPayload = mutation(
        resolve.export_card,
        input=CardExportInput,
        payload=CardExportPayload,
        description="Write a draft or a character, as it is now, as the file of a card.",
    )
