"""Generated stories in databases. The same shape and seed give the same rows, except for the ids of
user, story and branch.
"""

from __future__ import annotations

import random
from typing import Any

import asyncpg

from bench import prose
from bench.shapes import Shape, Told
from bench.telling import tell
from db.engine import Database
from db.enums import LoggedTable, StoryStatus
from db.reading import prepare_connection
from db.tables import Branch, Story
from services import accounts
from services.access import Viewer
from services.deltas import LOGGED


async def fill(database: Database, shape: Shape, seed: int = 0) -> Told:
    """A new story of the local user's. It is in the database when this returns, analyzed."""
    told = tell(shape, seed)
    passed = len(told.entries) - 1 if shape.has_late_facts else 0
    await put(database, told, prose.topic(random.Random(seed)), passed)
    return told


async def put(database: Database, told: Told, title: str, passed: int = 0) -> None:
    """A story that has been told, as the local user's; background passes went up to the position
    `passed`.
    """
    async with database.writing() as writing:
        user = await accounts.ensure_user(writing, accounts.LOCAL_USER_NAME)
        story = await writing.insert(
            Story,
            owner_user_id=user.id,
            title=title,
            status=StoryStatus.ACTIVE,
            definition_json=_definition(told),
            settings={},
            current_branch_id=told.branch_id,
        )
        await writing.insert(
            Branch,
            id=told.branch_id,
            story_id=story.id,
            name="Main",
            classifier_status={"state": "idle", "processedThrough": passed},
        )
    connection: Any = await asyncpg.connect(database.dsn)
    try:
        await prepare_connection(connection)
        async with connection.transaction():
            await told.ledger.put(connection)
        # So that no vacuum or change of plan falls into what is measured later.
        tables = ", ".join((*LOGGED, "deltas", "embeddings", "branches", "stories"))
        await connection.execute(f"VACUUM (ANALYZE) {tables}")
    finally:
        await connection.close()


async def local_viewer(database: Database) -> Viewer:
    """The user whose stories these are."""
    async with database.writing() as writing:
        user = await accounts.ensure_user(writing, accounts.LOCAL_USER_NAME)
    return Viewer(user.id)


async def unused_seed(database: Database) -> int:
    """A seed with which no other story of this database was told: how many there are."""
    connection: Any = await asyncpg.connect(database.dsn)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM stories"))
    finally:
        await connection.close()


def _definition(told: Told) -> dict[str, Any]:
    lead = next(iter(told.ledger.planted[LoggedTable.ENTITIES]))
    return {
        "mode": "adventure",
        "leadEntityId": lead,
        "narration": "third",
        "genre": {"label": "Sea mystery", "promptBody": "Fog, oil and letters."},
        "tone": {"label": "Dry", "promptBody": "Short sentences."},
        "setting": "An island whose light exists only in measurements.",
        "calendarSystemId": "earth-gregorian",
        "worldTimeOrigin": {
            "year": 1872, "month": 10, "day": 3, "hour": 19, "minute": 0, "second": 0,
        },
    }  # fmt: skip
