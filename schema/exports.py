"""Exports: files that were made for download."""

from __future__ import annotations

from datetime import datetime

from db.enums import ExportFormat
from schema.base import Node, enum, field, row_type

enum(
    ExportFormat,
    CARD_V2_JSON="A character card V2 as JSON, for older programs.",
    CARD_V3_JSON="A character card V3 as JSON.",
    CARD_PNG="The character's picture with the card in it, V2 and V3.",
    CARD_CHARX="A CharX archive: the card V3 and its files.",
    IDENTITY_PACKAGE="The signed identity record of a character, as JSON.",
)


@row_type
class Export(Node):
    """A file that was made for download; it goes after a day."""

    format: ExportFormat = field("In what shape it is.")
    file_name: str = field("What to call it; safe on every system.")
    media_type: str = field("Its media type.")
    size_bytes: int = field("How large it is.")
    url: str = field("Where to download it on this server, signed in as for this request.")
    expires_at: datetime = field("When it goes.")
    created_at: datetime = field("When it was made.")
