"""Captures of what a retrieval saw: their form, keeping them, and taking them away.

A capture is written only where its owner has both diagnostics and the story's probe on. It is in
no log and in no fork. Source: probe, sections 1 to 7.
"""

from __future__ import annotations

import base64
import gzip
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Integer, delete, select, tuple_
from sqlmodel import col

from db.enums import CaptureMode
from db.ids import new_id
from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, param, statement
from db.tables import Branch, ProbeCapture, Story
from services.access import Viewer, hold_row, require_row, visible
from services.app_settings import find_settings
from services.errors import Forbidden, Invalid
from services.retrieval.ranking import Ranked
from services.retrieval.retrieving import Pool, Retrieved
from services.scenes import narrative_tail

# With every change of a field's form or meaning, another one.
VERSION = 1
MAX_CAPTURES = 100
# Tokens are estimated: which vocabulary a model has is not known here.
TOKENIZER = {"encoding": "estimate", "version": 1}

CAPTURES_OF_BRANCHES = PagedList(
    "captures of branches",
    ProbeCapture,
    sort=[
        SortKey(col(ProbeCapture.captured_at), is_descending=True),
        SortKey(col(ProbeCapture.row_id), is_descending=True),
    ],
    parent=col(ProbeCapture.branch_id),
    where=lambda: visible(ProbeCapture),
)


def payload_of(retrieved: Retrieved, mode: CaptureMode, captured_at: datetime) -> dict[str, Any]:
    """All of what a retrieval saw and decided, as JSON. Names and texts are copies."""
    world = retrieved.world
    tail = world.buffer[-1] if world.buffer else None
    return {
        "version": VERSION,
        "failure": retrieved.failure,
        "branchId": world.branch.id,
        "targetEntryId": world.tail_id,
        "chapterId": tail and tail.chapter_id,
        "capturedAt": captured_at.isoformat(),
        "mode": mode,
        "modelId": retrieved.model_id,
        "tokenizer": TOKENIZER,
        "parameters": world.parameters.as_json(),
        "queries": [
            {
                "slot": each.query.slot,
                "text": each.query.text,
                "tokens": each.tokens,
                "weight": each.weight,
                "hasVector": each.has_vector,
            }
            for each in retrieved.queries
        ],
        "buffer": {"entries": len(world.buffer), "tokens": retrieved.buffer_tokens},
        "floor": [
            {
                "kind": each.kind,
                "id": each.id,
                "name": each.name,
                "reason": each.reason,
                "text": each.text,
                "tokens": each.tokens,
            }
            for each in retrieved.floor
        ],
        "injected": [
            {
                "kind": each.kind,
                "id": each.id,
                "name": each.name,
                "text": each.text,
                "tokens": each.tokens,
                "depth": each.depth,
            }
            for each in retrieved.injected
        ],
        "pools": [_pool(each, mode, retrieved) for each in retrieved.pools],
        "redundancy": [
            {"text": each.text, "ratio": each.ratio, "counted": each.counted}
            for each in retrieved.redundancy
        ],
        "warnings": list(retrieved.warnings),
    }


def _pool(pool: Pool, mode: CaptureMode, retrieved: Retrieved) -> dict[str, Any]:
    return {
        "kind": pool.kind,
        "budget": pool.budget,
        "injectedTokens": pool.injected_tokens,
        "tokensUsed": pool.tokens_used,
        "poolSize": len(pool.ranked),
        "preFilteredSize": sum(each.rank is not None for each in pool.ranked),
        "seatedSize": len(pool.seated),
        # A failure knows no more than that it failed.
        "staleCount": 0 if retrieved.failure else pool.stale_count,
        "candidates": [_candidate(each, mode) for each in pool.ranked],
    }


def _candidate(ranked: Ranked, mode: CaptureMode) -> dict[str, Any]:
    candidate, score = ranked.candidate, ranked.score
    kept: dict[str, Any] = {
        "id": candidate.id,
        "name": candidate.name,
        "text": candidate.text if ranked.rank is not None else None,
        "similarities": list(candidate.similarities),
        "blend": score.blend,
        "recency": score.recency,
        "pin": score.pin,
        "age": score.age,
        "isKeywordHit": candidate.is_keyword_hit,
        "keywordBonus": score.keyword_bonus,
        "isInSeatedChapter": candidate.is_in_seated_chapter,
        "isRevived": score.is_revived,
        "isCommon": candidate.is_common,
        "score": score.value,
        "mmr": ranked.mmr,
        "rank": ranked.rank,
        "tokens": ranked.tokens,
        "isSeated": ranked.is_seated,
        "drop": ranked.drop,
    }
    if mode is CaptureMode.DEEP:
        assert candidate.vector is not None
        raw = np.asarray(candidate.vector, dtype="<f4").tobytes()
        kept["vector"] = base64.b64encode(raw).decode()
    return kept


class Corrupt(Exception):
    """A payload that this server cannot read: it is damaged, or of another version."""


def read_payload(capture: ProbeCapture) -> dict[str, Any]:
    """What a capture holds. Raises Corrupt."""
    try:
        payload = orjson.loads(gzip.decompress(capture.payload))
    except (OSError, EOFError, ValueError) as error:
        raise Corrupt from error
    if not isinstance(payload, dict) or payload.get("version") != VERSION:
        raise Corrupt
    if "failure" not in payload or not isinstance(payload.get("pools"), list):
        raise Corrupt
    return payload


def payload_or_none(capture: ProbeCapture) -> dict[str, Any] | None:
    """What a capture holds; None of one that is corrupt."""
    try:
        return read_payload(capture)
    except Corrupt:
        return None


async def require_probing(reading: Reading, viewer: Viewer, branch_id: str) -> None:
    """Raises NotFound, Forbidden (PROBE_OFF) unless diagnostics and the story's probe are on, and
    Invalid (NOTHING_TOLD) for a branch without entries.
    """
    path = ("input", "branchId")
    branch = await require_row(reading, viewer, Branch, branch_id, *path)
    story = await require_row(reading, viewer, Story, branch.story_id, *path)
    settings = await find_settings(reading, viewer)
    diagnostics = settings.diagnostics if settings is not None else {}
    if not (diagnostics.get("enabled") and story.settings.get("probe_mode_active")):
        raise Forbidden(
            "Turn on diagnostics in your settings, and the probe of the story.", "PROBE_OFF"
        )
    if await narrative_tail(reading, branch.id) is None:
        raise Invalid("There is no entry to retrieve for.", "NOTHING_TOLD", path)


@statement(ProbeCapture)
def _evict() -> Any:
    kept = (
        select(col(ProbeCapture.branch_id), col(ProbeCapture.row_id))
        .join(Branch, col(Branch.id) == col(ProbeCapture.branch_id))
        .where(col(Branch.story_id) == param("story_id"))
        .order_by(col(ProbeCapture.captured_at).desc(), col(ProbeCapture.row_id).desc())
        .offset(param("kept", Integer()))
    )
    return delete(ProbeCapture).where(
        tuple_(col(ProbeCapture.branch_id), col(ProbeCapture.row_id)).in_(kept)
    )


async def keep_capture(
    writing: Writing, viewer: Viewer, retrieved: Retrieved, mode: CaptureMode
) -> ProbeCapture:
    """Keep what a retrieval saw; the oldest captures of the story make room. Raises NotFound."""
    world = retrieved.world
    # Two at once would both see room for one.
    await hold_row(writing, viewer, Story, world.story.id)
    await require_row(writing, viewer, Branch, world.branch.id, "input", "branchId")
    captured_at = datetime.now(UTC)
    payload = orjson.dumps(payload_of(retrieved, mode, captured_at))
    await writing.run(_evict(), story_id=world.story.id, kept=MAX_CAPTURES - 1)
    made = await writing.insert(
        ProbeCapture,
        branch_id=world.branch.id,
        row_id=new_id("probe_captures"),
        target_entry_id=world.tail_id,
        capture_mode=mode,
        embedding_model_id=retrieved.model_id,
        failure_reason=retrieved.failure,
        payload=gzip.compress(payload, mtime=0),
        payload_size=len(payload),
        captured_at=captured_at,
    )
    return await require_row(writing, viewer, ProbeCapture, made.id)


@statement(ProbeCapture)
def _forget() -> Any:
    return delete(ProbeCapture).where(
        col(ProbeCapture.branch_id) == param("branch_id"),
        col(ProbeCapture.row_id) == param("row_id"),
    )


@statement(ProbeCapture)
def _forget_of_story() -> Any:
    branches = select(col(Branch.id)).where(col(Branch.story_id) == param("story_id"))
    forget = delete(ProbeCapture).where(col(ProbeCapture.branch_id).in_(branches))
    return forget.returning(
        col(ProbeCapture.branch_id).label("branch_id"), col(ProbeCapture.row_id).label("row_id")
    )


async def delete_capture(writing: Writing, viewer: Viewer, capture_id: str) -> str:
    """Take a capture away, also one that is corrupt; its id. Raises NotFound."""
    capture = await require_row(writing, viewer, ProbeCapture, capture_id, "input", "captureId")
    await writing.run(_forget(), branch_id=capture.branch_id, row_id=capture.row_id)
    return capture_id


async def delete_captures(writing: Writing, viewer: Viewer, story_id: str) -> list[str]:
    """Take all captures of a story away; their ids, MAX_CAPTURES at most. Raises NotFound."""
    story = await hold_row(writing, viewer, Story, story_id, "input", "storyId")
    deleted = await writing.all(_forget_of_story(), story_id=story.id)
    return sorted(each.id for each in deleted)
