"""Whether a row's text is still to be embedded: its hash against that of what was embedded.

Source: spec aventuras, embedding_stale; retrieval, compute lifecycle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select, update
from sqlmodel import col

from db.enums import LoggedTable
from db.ids import new_id
from db.reading import Reading, Record, Statement, Writing, any_of, param, statement
from db.tables import Branch, Embedding
from services.deltas.logged import LOGGED, STALE, Image


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


@dataclass(frozen=True, slots=True)
class VectorState:
    """Tells what is embedded of a branch from what was: where rows have other texts, wait to be
    embedded or point at other vectors, it is another one. A head says which texts there are, and
    comes again with them (undo); a version never does.
    """

    head: int
    vectors_version: int


@statement(Branch)
def _state() -> Any:
    return select(col(Branch.head), col(Branch.vectors_version)).where(
        col(Branch.id) == param("branch_id")
    )


async def vector_state(reading: Reading, branch_id: str) -> VectorState | None:
    """The state of a branch; None where there is none."""
    row = await reading.first(_state(), branch_id=branch_id)
    return None if row is None else VectorState(row.head, row.vectors_version)


@statement(Branch)
def _renew() -> Any:
    return (
        update(Branch)
        .where(any_of(Branch.id, "branch_ids"))
        .values(vectors_version=col(Branch.vectors_version) + 1)
    )


async def _renew_states(writing: Writing, branch_ids: Sequence[str]) -> None:
    await writing.run(_renew(), branch_ids=list(branch_ids))


@statement(Embedding)
def _forget() -> Any:
    return delete(Embedding).where(
        col(Embedding.branch_id) == param("branch_id"), any_of(Embedding.target_id, "ids")
    )


async def forget_embeddings(writing: Writing, branch_id: str, ids: Sequence[str]) -> None:
    """What was embedded of rows goes with them: nothing logs it, so nobody else would take it."""
    # They may come back without it, and the branch's head with them.
    if ids and await writing.run(_forget(), branch_id=branch_id, ids=list(ids)):
        await _renew_states(writing, [branch_id])


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """What of a row is embedded. `kind` is that of a target of translations."""

    kind: str
    row_id: str
    text: str
    text_hash: str


def _body(columns: Sequence[str]) -> str:
    return " || ' ' || ".join(f"coalesce({each}, '')" for each in columns)


_EMBEDDED = [each for each in LOGGED.values() if each.embedded]


def texts_in(branch: str) -> str:
    """All rows of a branch as SQL: kind, id, `embedded_text` as body, is_stale. The MD5 of the body
    is `content_hash`.
    """
    return " UNION ALL ".join(
        f"SELECT '{each.target_kind}' AS kind, id, {_body(each.embedded)} AS body, "
        f"{STALE} AS is_stale FROM {each.name} WHERE branch_id = {branch}"
        for each in _EMBEDDED
    )


_TEXTS = texts_in("$1")
# A pointer of a model to a vector that is there, for the very text that the row has.
_POINTER = (
    "SELECT 1 FROM embeddings e JOIN vectors v ON v.model_id = e.model_id AND v.dim = e.dim "
    "AND v.text_hash = e.source_hash WHERE e.branch_id = $1 AND e.model_id = $2"
)
_TO_EMBED: Statement[Any] = Statement(
    f"SELECT kind, id, body, md5(body) AS hash FROM ({_TEXTS}) t WHERE (is_stale AND $3) "
    f"OR NOT EXISTS ({_POINTER} AND e.target_kind = kind AND e.target_id = t.id "
    "AND e.source_hash = md5(body)) ORDER BY kind, id",
    ("branch_id", "model_id", "with_flags"),
    {},
    Record,
)
_BRANCHES_TO_EMBED: Statement[Any] = Statement(
    "SELECT DISTINCT w.branch_id FROM unnest($1::text[], $2::text[]) AS w (branch_id, model_id) "
    f"CROSS JOIN LATERAL ({texts_in('w.branch_id')}) t WHERE is_stale OR NOT EXISTS ("
    "SELECT 1 FROM embeddings e JOIN vectors v ON v.model_id = e.model_id AND v.dim = e.dim "
    "AND v.text_hash = e.source_hash WHERE e.branch_id = w.branch_id "
    "AND e.model_id = w.model_id AND e.target_kind = kind AND e.target_id = t.id "
    "AND e.source_hash = md5(body))",
    ("branch_ids", "model_ids"),
    {},
    Record,
)
_POINT: Statement[Any] = Statement(
    "INSERT INTO embeddings (branch_id, id, target_kind, target_id, field, model_id, dim, "
    "source_hash) SELECT $1, w.id, w.kind, w.row_id, 'text', $2, $3, w.hash "
    "FROM unnest($4::text[], $5::text[], $6::text[], $7::text[]) AS w (id, kind, row_id, hash) "
    f"JOIN ({_TEXTS}) t ON t.kind = w.kind AND t.id = w.row_id AND md5(t.body) = w.hash "
    "JOIN vectors v ON v.model_id = $2 AND v.dim = $3 AND v.text_hash = w.hash "
    "ON CONFLICT (branch_id, target_kind, target_id, field, model_id) DO UPDATE "
    "SET dim = excluded.dim, source_hash = excluded.source_hash, updated_at = clock_timestamp()",
    ("branch_id", "model_id", "dim", "ids", "kinds", "row_ids", "hashes"),
    {},
    Record,
)
_FRESH: dict[str, Statement[Any]] = {
    str(each.target_kind): Statement(
        f"UPDATE {each.name} t SET {STALE} = false WHERE t.branch_id = $1 AND t.{STALE} "
        f"AND EXISTS ({_POINTER} AND e.target_kind = '{each.target_kind}' AND e.target_id = t.id "
        f"AND e.source_hash = md5({_body(each.embedded)}))",
        ("branch_id", "model_id"),
        {},
        Record,
    )
    for each in _EMBEDDED
}


async def texts_to_embed(
    reading: Reading, branch_id: str, model_id: str, *, with_flags: bool = True
) -> list[EmbeddedText]:
    """Rows of a branch whose text, as it is now, has no vector of a model; and, with `with_flags`,
    those that are marked as not embedded.
    """
    rows = await reading.all(
        _TO_EMBED, branch_id=branch_id, model_id=model_id, with_flags=with_flags
    )
    return [EmbeddedText(row.kind, row.id, row.body, row.hash) for row in rows]


async def branches_to_embed(reading: Reading, models: Mapping[str, str]) -> set[str]:
    """Those of the branches for which `texts_to_embed` finds something; `models` by their ids."""
    rows = await reading.all(
        _BRANCHES_TO_EMBED, branch_ids=list(models), model_ids=list(models.values())
    )
    return {row.branch_id for row in rows}


async def note_embedded(
    writing: Writing, branch_id: str, model_id: str, dim: int, texts: Sequence[EmbeddedText]
) -> int:
    """Let rows of a branch, which the caller holds, point at the vectors of their texts; how many
    do. A row that says something else by now, or whose vector is gone, is left as it is.
    """
    if not texts:
        return 0
    await _renew_states(writing, [branch_id])
    return await writing.run(
        _POINT,
        branch_id=branch_id,
        model_id=model_id,
        dim=dim,
        ids=[new_id("embeddings") for _ in texts],
        kinds=[each.kind for each in texts],
        row_ids=[each.row_id for each in texts],
        hashes=[each.text_hash for each in texts],
    )


async def mark_fresh(writing: Writing, branch_id: str, model_id: str, kinds: Sequence[str]) -> None:
    """Mark those rows of a branch, which the caller holds, as embedded whose text a model has."""
    await _renew_states(writing, [branch_id])
    for kind in sorted(set(kinds)):
        await writing.run(_FRESH[kind], branch_id=branch_id, model_id=model_id)


@statement(Embedding)
def _forget_models(others: bool) -> Any:
    model_id = col(Embedding.model_id)
    chosen = model_id != param("model_id") if others else model_id == param("model_id")
    return delete(Embedding).where(any_of(Embedding.branch_id, "branch_ids"), chosen)


async def forget_models(
    writing: Writing, branch_ids: Sequence[str], model_id: str, *, others: bool = False
) -> None:
    """Rows of branches, which the caller holds, no longer point at vectors of a model, or with
    `others` of any but that one.
    """
    await _renew_states(writing, branch_ids)
    await writing.run(_forget_models(others), branch_ids=list(branch_ids), model_id=model_id)


@statement(Embedding)
def _rename_model() -> Any:
    return (
        update(Embedding)
        .where(any_of(Embedding.branch_id, "branch_ids"), col(Embedding.model_id) == param("old"))
        .values(model_id=param("new"))
    )


async def rename_model(writing: Writing, branch_ids: Sequence[str], old: str, new: str) -> None:
    """Rows of branches, which the caller holds, point at vectors of `new` that pointed at those of
    `old`; what they had of `new` before is forgotten.
    """
    await forget_models(writing, branch_ids, new)
    await writing.run(_rename_model(), branch_ids=list(branch_ids), old=old, new=new)
