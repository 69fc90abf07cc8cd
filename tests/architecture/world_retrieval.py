"""Captures for the database in which every relation leads to something."""

from __future__ import annotations

import gzip

from db.enums import CaptureMode
from db.reading import Writing
from db.tables import ProbeCapture
from services.scenes import narrative_tail

PAYLOAD = b'{"version": 1, "failure": null, "pools": []}'


async def make_captures(writing: Writing, branch_id: str, number: int) -> None:
    """Some that can be read, and one that cannot."""
    entry = await narrative_tail(writing, branch_id)
    assert entry is not None
    readable = gzip.compress(PAYLOAD)
    await writing.insert_many(
        ProbeCapture,
        [
            {
                "branch_id": branch_id,
                "row_id": f"probe_01900000-0000-7000-8000-{number:04}{place:08}",
                "target_entry_id": entry.row_id,
                "capture_mode": CaptureMode.LIGHT,
                "payload": payload,
                "payload_size": len(PAYLOAD),
            }
            for place, payload in enumerate([readable, b"", readable])
        ],
    )
