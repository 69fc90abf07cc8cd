"""What texts are found by: their words and their vectors, kept once for each text, however many
branches have it; and captures of what a retrieval saw.

Source: design, performance (traps), retrieval, probe; spec aventuras, probe_captures.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index

from db.columns import (
    BranchRow,
    Table,
    branch_column,
    bytes_column,
    created_at_column,
    enum_column,
    integer_column,
    key_column,
    link_column,
    one_of,
    row_id_column,
    text_column,
    vector_column,
    words_column,
)
from db.enums import CaptureMode


class SearchText(Table, table=True):
    """The words of a text. Follows from the text alone, so it is never wrong, only missing."""

    __tablename__ = "search_texts"
    __table_args__ = (Index(None, "terms", postgresql_using="gin"),)

    # MD5 of the text in hexadecimal, which PostgreSQL computes as well.
    text_hash: str = key_column()
    terms: list[str] = words_column()
    # How many there are: to be read without the words.
    word_count: int = integer_column()


class Vector(Table, table=True):
    """The vector of a text by one model."""

    __tablename__ = "vectors"

    model_id: str = key_column()
    # How many of the model's values are kept; the rest is cut off.
    dim: int = key_column(is_number=True)
    text_hash: str = key_column()
    # Of length 1.
    embedding: str = vector_column()


class ProbeCapture(BranchRow, table=True):
    """What a retrieval saw, chose and dropped. Neither logged nor copied by a fork."""

    __tablename__ = "probe_captures"
    __table_args__ = (one_of("capture_mode", CaptureMode),)

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    # The entry that the retrieval was for, which may be gone.
    target_entry_id: str = link_column()
    capture_mode: CaptureMode = enum_column()
    embedding_model_id: str | None = text_column(nullable=True)
    failure_reason: str | None = text_column(nullable=True)
    # JSON, compressed by gzip, and how many bytes it has uncompressed.
    payload: bytes = bytes_column()
    payload_size: int = integer_column()
    captured_at: datetime = created_at_column()
