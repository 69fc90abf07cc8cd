"""Exports: files that were made for download, kept for a day, read by their owner alone.

What stands in them is made elsewhere. Source: spec soul-mirror, section 8.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import timedelta
from typing import Any

from sqlalchemy import Integer, delete, func, select
from sqlmodel import col

from db.enums import ExportFormat
from db.reading import Reading, Writing, param, statement
from db.tables import Export, ExportFile
from services.access import Viewer, find_row, visible
from services.accounts import record_act

EXPORT_LIFE = timedelta(hours=24)
# A user's older ones make room for new ones.
MAX_EXPORTS = 50
# Files that one step of the chore removes.
_STEP = 20

_MAX_NAME_BYTES = 120
_UNSAFE = re.compile(r'[<>:"/\\|?*%]')
# What Windows takes for a device, whatever ending follows.
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)", re.IGNORECASE)


def safe_file_name(name: str, ending: str) -> str:
    """A file name made of a character's name that every system can store.

    Letters of all scripts stay; what separates paths, names devices, is not printed or turns the
    direction of writing goes. `ending` is without its dot.
    """
    kept = "".join(
        letter if unicodedata.category(letter)[0] not in "CZ" else " "
        for letter in _UNSAFE.sub(" ", unicodedata.normalize("NFC", name))
    )
    short = " ".join(kept.split()).encode()[:_MAX_NAME_BYTES].decode("utf-8", "ignore")
    stem = short.strip(" .") or "character"
    if _DEVICES.match(stem):
        stem = f"_{stem}"
    return f"{stem}.{ending}"


async def store_export(
    writing: Writing,
    viewer: Viewer,
    subject_ref: str,
    format: ExportFormat,
    file_name: str,
    media_type: str,
    content: bytes,
) -> Export:
    """Keep a file for download until EXPORT_LIFE is over; notes the act.

    `subject_ref` is the id of what was exported. Raises Forbidden (NOT_SIGNED_IN).
    """
    export = await writing.insert(
        Export,
        owner_user_id=viewer.signed_in_id,
        subject_ref=subject_ref,
        format=format,
        file_name=file_name,
        media_type=media_type,
        size_bytes=len(content),
        expires_at=await writing.value(_now()) + EXPORT_LIFE,
    )
    await writing.insert_many(ExportFile, [{"export_id": export.id, "content": content}])
    await writing.run(_make_room(), kept=MAX_EXPORTS, **viewer.parameters)
    await record_act(
        writing, viewer, "export_made", subject_ref, {"format": format, "export_id": export.id}
    )
    return export


async def find_export(
    reading: Reading, viewer: Viewer, export_id: str
) -> tuple[Export, bytes] | None:
    """An export and its content; None when it is not there, not the viewer's or out of time."""
    export = await find_row(reading, viewer, Export, export_id)
    if export is None:
        return None
    content = await reading.value(_content(), export_id=export.id)
    # It may have gone between the two looks.
    return None if content is None else (export, content)


async def drop_exports(writing: Writing, viewer: Viewer, subject_ref: str) -> int:
    """Remove the files that were made of something, with what they say of it; how many."""
    return await writing.run(_drop(), subject_ref=subject_ref, **viewer.parameters)


async def forget_old_exports(writing: Writing) -> int:
    """Remove exports whose time has run out, some at a time; how many there were."""
    return await writing.run(_forget())


@statement(object)
def _now() -> Any:
    return select(func.clock_timestamp())


@statement(object)
def _content() -> Any:
    return select(col(ExportFile.content)).where(col(ExportFile.export_id) == param("export_id"))


@statement(Export)
def _make_room() -> Any:
    older = (
        select(col(Export.id))
        .where(visible(Export))
        .order_by(col(Export.created_at).desc(), col(Export.id).desc())
        .offset(param("kept", Integer()))
    )
    return delete(Export).where(col(Export.id).in_(older))


@statement(Export)
def _drop() -> Any:
    return delete(Export).where(col(Export.subject_ref) == param("subject_ref"), visible(Export))


@statement(Export)
def _forget() -> Any:
    overdue = (
        select(col(Export.id))
        .where(col(Export.expires_at) <= func.clock_timestamp())
        .order_by(col(Export.expires_at))
        .limit(_STEP)
    )
    return delete(Export).where(col(Export.id).in_(overdue))
