"""Transfers: what came in from files, and files that go out.

Source: spec soul-mirror, section 8; glossary, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ForeignKey, Index, String, UniqueConstraint
from sqlmodel import Field

from db.columns import (
    Table,
    bytes_column,
    created_at_column,
    enum_column,
    id_column,
    integer_column,
    json_column,
    json_list_column,
    one_of,
    reference,
    text_column,
    time_column,
    version_column,
)
from db.enums import ExportFormat, ImportItemKind, ImportItemStatus, ImportKind, ImportStatus


@dataclass(frozen=True, slots=True)
class FileWarning:
    """Something in a file that was mended or left out; `path` is empty for the file as a whole."""

    code: str
    message: str
    path: str


class ImportJob(Table, table=True):
    """One file that was imported, and what it held."""

    __tablename__ = "import_jobs"
    __table_args__ = (
        one_of("kind", ImportKind),
        one_of("status", ImportStatus),
        Index(None, "owner_user_id", "created_at", "id"),
    )

    id: str = id_column()
    owner_user_id: str = reference("users.id")
    kind: ImportKind = enum_column()
    status: ImportStatus = enum_column()
    file_name: str = text_column()
    # What was found in the file: {container, spec, size, warnings: [{code, message, path}]}.
    report: dict[str, Any] = json_column("report_json")
    created_at: datetime = created_at_column()
    # When everything in it was decided, or it was given up.
    finished_at: datetime | None = time_column()
    version: int = version_column()

    @property
    def container(self) -> str:
        """What kind of file it was: png_text, json or charx."""
        return str(self.report["container"])

    @property
    def spec(self) -> str | None:
        """Which version of the card format: v1, v2 or v3; None for other files."""
        spec: str | None = self.report["spec"]
        return spec

    @property
    def size_bytes(self) -> int:
        """How large the file was."""
        return int(self.report["size"])

    @property
    def warnings(self) -> list[FileWarning]:
        """What was mended or left out, about 100 at most for each reader."""
        return [FileWarning(**each) for each in self.report["warnings"]]


class ImportItem(Table, table=True):
    """One part of an imported file: the draft, a lorebook entry, a picture."""

    __tablename__ = "import_items"
    __table_args__ = (
        one_of("kind", ImportItemKind),
        one_of("status", ImportItemStatus),
        UniqueConstraint("import_job_id", "number"),
        Index(None, "target_ref"),
    )

    id: str = id_column()
    import_job_id: str = reference("import_jobs.id", on_delete="CASCADE")
    # The place in the file, from 1.
    number: int = integer_column()
    kind: ImportItemKind = enum_column()
    status: ImportItemStatus = enum_column()
    # Its name or its path within the file.
    label: str = text_column()
    # The id of what was made of it; no foreign key, as it may be of several kinds and go away.
    target_ref: str | None = text_column(nullable=True)
    media_type: str | None = text_column(nullable=True)
    size_bytes: int | None = integer_column(nullable=True)
    # [{code, message, path}]; read through `warnings`.
    warning_values: list[dict[str, Any]] = json_list_column("warnings_json")
    created_at: datetime = created_at_column()
    decided_at: datetime | None = time_column()

    @property
    def warnings(self) -> list[FileWarning]:
        """What was mended in this part."""
        return [FileWarning(**each) for each in self.warning_values]


class ImportFile(Table, table=True):
    """The content of an item that is a file; goes with its item."""

    __tablename__ = "import_files"

    import_item_id: str = Field(
        sa_column=Column(
            String, ForeignKey("import_items.id", ondelete="CASCADE"), primary_key=True
        )
    )
    content: bytes = bytes_column()


class Export(Table, table=True):
    """A file that was made for download; it goes when its time has run out."""

    __tablename__ = "exports"
    __table_args__ = (
        one_of("format", ExportFormat),
        Index(None, "owner_user_id", "created_at", "id"),
        Index(None, "expires_at"),
    )

    id: str = id_column()
    owner_user_id: str = reference("users.id")
    # The id of the draft or the character that was exported.
    subject_ref: str = text_column()
    format: ExportFormat = enum_column()
    file_name: str = text_column()
    media_type: str = text_column()
    size_bytes: int = integer_column()
    expires_at: datetime = time_column(nullable=False)
    created_at: datetime = created_at_column()

    @property
    def url(self) -> str:
        """Where its owner can download it, on this server."""
        return f"/exports/{self.id}"


class ExportFile(Table, table=True):
    """The content of an export; goes with it."""

    __tablename__ = "export_files"

    export_id: str = Field(
        sa_column=Column(String, ForeignKey("exports.id", ondelete="CASCADE"), primary_key=True)
    )
    content: bytes = bytes_column()
