"""Stories that are embedded by a scripted provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from db.engine import Database
from db.enums import EntityKind, ProviderType
from db.tables import Branch, Embedding, StoryEntity, Vector
from services import app_settings, deltas, embedding, stories
from services.access import Viewer
from tests.conftest import People
from tests.factories import entity_values, make_branch
from tests.scripted_provider import ScriptedProvider, scripted_provider
from tests.services.deltas.ledgers import rows_of

MODEL = "letters"


@dataclass
class Shelf:
    """A branch, and the provider with which its story embeds."""

    database: Database
    viewer: Viewer
    branch: Branch
    server: ScriptedProvider
    provider_id: str
    embedders: embedding.Embedders

    @property
    def model_id(self) -> str:
        return f"{self.provider_id}:{MODEL}"

    async def embedder(self, branch_id: str | None = None) -> embedding.Embedder:
        async with self.database.reading() as reading:
            found = await self.embedders.embedder_of(
                reading, self.viewer, branch_id or self.branch.id
            )
        assert found is not None
        return found

    async def sync(self, branch_id: str | None = None) -> int:
        branch_id = branch_id or self.branch.id
        embedder = await self.embedder(branch_id)
        return await embedding.sync_branch(self.database, self.viewer, branch_id, embedder)

    async def write(self, name: str, description: str = "", **values: Any) -> dict[str, Any]:
        """A new character, logged."""
        async with (
            self.database.writing() as writing,
            deltas.acting(writing, self.viewer, self.branch.id) as action,
        ):
            row = {**entity_values(EntityKind.CHARACTER, name), "description": description}
            return await action.create(StoryEntity, {**row, **values}, prefix="char")

    async def change(self, row_id: str, **changes: Any) -> None:
        async with (
            self.database.writing() as writing,
            deltas.acting(writing, self.viewer, self.branch.id) as action,
        ):
            await action.update(
                StoryEntity, await action.require(StoryEntity, row_id, "id"), changes
            )

    async def delete(self, row_id: str) -> None:
        async with (
            self.database.writing() as writing,
            deltas.acting(writing, self.viewer, self.branch.id) as action,
        ):
            await action.delete(StoryEntity, await action.require(StoryEntity, row_id, "id"))

    async def undo(self) -> None:
        async with self.database.writing() as writing:
            await deltas.undo_branch(writing, self.viewer, self.branch.id)

    async def stale(self, branch_id: str | None = None) -> set[str]:
        """The names of entities that are marked as not embedded."""
        async with self.database.reading() as reading:
            rows = await rows_of(reading, StoryEntity, branch_id or self.branch.id)
        return {row.name for row in rows if row.embedding_stale}

    async def pointers(self, branch_id: str | None = None) -> dict[str, str]:
        """The hash at which each row points."""
        async with self.database.reading() as reading:
            rows = await rows_of(reading, Embedding, branch_id or self.branch.id)
        return {row.target_id: row.source_hash for row in rows}

    async def value(self, sql: str, *arguments: Any) -> Any:
        async with self.database.writing() as writing:
            return await writing._connection.fetchval(sql, *arguments)

    async def vectors(self) -> int:
        """How many are kept."""
        return int(await self.value(f"SELECT count(*) FROM {Vector.__tablename__}"))

    async def choose(self, **settings: Any) -> None:
        """Change the story's settings."""
        async with self.database.writing() as writing:
            await stories.update_story(
                writing, self.viewer, self.branch.story_id, {"settings": settings}
            )

    @property
    def asked(self) -> list[list[str]]:
        """The texts of each request."""
        return [list(each.body["input"]) for each in self.server.requests]


@asynccontextmanager
async def shelf(database: Database, people: People, **settings: Any) -> AsyncIterator[Shelf]:
    """A story with nothing but its opening."""
    async with scripted_provider() as server:
        async with database.writing() as writing:
            branch = await make_branch(writing, people.owner)
            _, provider_id = await app_settings.create_provider(
                writing,
                people.owner,
                type=ProviderType.OPENAI_COMPATIBLE,
                display_name="Letters",
                api_key="sk-of-letters",
                endpoint=server.openai_base_url,
                favorite_model_ids=[],
                custom_model_ids=[],
                expected_version=None,
            )
        shelf = Shelf(
            database, people.owner, branch, server, provider_id, embedding.Embedders("none")
        )
        await shelf.choose(
            embeddingBackend="provider",
            embedding_provider_id=provider_id,
            embedding_model_id=MODEL,
            **settings,
        )
        yield shelf
