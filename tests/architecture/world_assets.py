"""Files that entries show, and what their owner has set up."""

from __future__ import annotations

import hashlib

from db.enums import AssetKind
from db.ids import new_id
from db.reading import Writing
from db.tables import StoryEntry
from services import app_settings, assets, attachments, deltas
from services.access import Viewer


async def make_assets(writing: Writing, owner: Viewer, number: int, branch_id: str) -> None:
    """A file of which only the row is there, and an entry that shows it."""
    content = f"file {number}".encode()
    digest = hashlib.sha256(content).hexdigest()
    file = assets.ReadFile(content, AssetKind.FILE, "text/plain", digest)
    asset = await assets.keep_file(writing, owner, file, new_id("assets"), None)
    (entry,) = await deltas.plant_rows(
        writing,
        branch_id,
        StoryEntry,
        [
            {
                "position": 2000,
                "kind": "ai_reply",
                "content": f"Look, {number}.",
                "metadata": {"sceneEntities": [], "currentLocationId": None, "worldTime": 0},
            }
        ],
    )
    await attachments.attach_asset(
        writing,
        owner,
        entry_id=f"{branch_id}:{entry['id']}",
        asset_id=asset.id,
        role=f"reference {number}",
        position=None,
        expected_head=None,
    )
    await app_settings.update_settings(
        writing, owner, {"embedding_model_id": "multilingual-e5-small-q4"}, None
    )
