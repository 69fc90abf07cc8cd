"""Captures for the database in which every relation leads to something."""

from __future__ import annotations

import gzip

from db.enums import CaptureMode
from db.ids import new_id
from db.reading import Writing
from db.tables import ProbeCapture
from services.scenes import narrative_tail

PAYLOAD = b'{"version": 1, "failure": null, "pools": []}'


async def make_captures(writing: Writing, branch_id: str) -> None:
    """Some that can be read, and one that cannot."""
    entry = await narrative_tail(writing, branch_id)
    assert entry is not None
    readable = gzip.compress(PAYLOAD)
    await writing.insert_many(
        ProbeCapture,
        [
            {
                "branch_id": branch_id,
                "row_id": new_id("probe_captures"),
                "target_entry_id": entry.row_id,
                "capture_mode": CaptureMode.LIGHT,
                "payload": payload,
                "payload_size": len(PAYLOAD),
            }
            for payload in (readable, b"", readable)
        ],
    )
