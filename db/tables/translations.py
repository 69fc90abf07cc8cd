"""Texts of a branch in other languages, and which texts have been embedded.

Source: spec aventuras, translation; diagram (embeddings).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint

from db.columns import (
    BranchRow,
    branch_column,
    created_at_column,
    enum_column,
    integer_column,
    link_column,
    one_of,
    row_id_column,
    text_column,
    time_column,
)
from db.enums import TranslationTarget


class Translation(BranchRow, table=True):
    """One field of one row in one language."""

    __tablename__ = "translations"
    __table_args__ = (
        one_of("target_kind", TranslationTarget),
        # The id before the kind: all kinds of a level are found with one condition.
        UniqueConstraint("branch_id", "target_id", "target_kind", "field", "language"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    target_kind: TranslationTarget = enum_column()
    target_id: str = link_column()
    # A field's name, or a path with dots into a state: visual.hair, traits.0.
    field: str = text_column()
    # ISO 639-1.
    language: str = text_column()
    translated_text: str = text_column()
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()

    @property
    def text(self) -> str:
        """What the field says in this language."""
        return self.translated_text


class Embedding(BranchRow, table=True):
    """Says which text of a row has been embedded, by which model. Follows from the texts, so it is
    not logged.
    """

    __tablename__ = "embeddings"
    __table_args__ = (
        UniqueConstraint("branch_id", "target_kind", "target_id", "field", "model_id"),
        Index(None, "branch_id", "target_id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    target_kind: TranslationTarget = enum_column()
    target_id: str = link_column()
    field: str = text_column()
    model_id: str = text_column()
    dim: int = integer_column()
    # Of the text that was embedded; another one makes the row stale.
    source_hash: str = text_column()
    updated_at: datetime = created_at_column()
