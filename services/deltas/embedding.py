"""Whether a row's text is still to be embedded: its hash against that of what was embedded.

Source: spec aventuras, embedding_stale; retrieval, compute lifecycle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlmodel import col

from db.enums import LoggedTable
from db.reading import Reading, Writing, any_of, param, statement
from db.tables import Embedding
from services.deltas.logged import LOGGED, Image


def embedded_text(table: LoggedTable, image: Image) -> str:
    """What of a row is embedded: its texts with one blank between them, also where one is empty."""
    return " ".join(image[column] or "" for column in LOGGED[table].embedded)


def content_hash(table: LoggedTable, image: Image) -> str:
    """The hash of the embedded text of a row, in hexadecimal: MD5, which PostgreSQL has too. It
    tells texts apart, also those of different users; nothing is kept safe by it.
    """
    text = embedded_text(table, image)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@statement(Embedding)
def _hashes() -> Any:
    return select(col(Embedding.target_id), col(Embedding.source_hash)).where(
        col(Embedding.branch_id) == param("branch_id"), any_of(Embedding.target_id, "ids")
    )


async def embedded_hashes(
    reading: Reading, branch_id: str, ids: Sequence[str]
) -> dict[str, set[str]]:
    """Which texts of these rows have been embedded, by hash."""
    found: dict[str, set[str]] = {}
    if ids:
        for row in await reading.all(_hashes(), branch_id=branch_id, ids=list(ids)):
            found.setdefault(row.target_id, set()).add(row.source_hash)
    return found


@statement(Embedding)
def _forget() -> Any:
    return delete(Embedding).where(
        col(Embedding.branch_id) == param("branch_id"), any_of(Embedding.target_id, "ids")
    )


async def forget_embeddings(writing: Writing, branch_id: str, ids: Sequence[str]) -> None:
    """What was embedded of rows goes with them: nothing logs it, so nobody else would take it."""
    if ids:
        await writing.run(_forget(), branch_id=branch_id, ids=list(ids))
