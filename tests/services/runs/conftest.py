"""A character with a tree, for each test."""

from __future__ import annotations

import pytest

from db.engine import Database
from tests.conftest import People
from tests.factories import make_tree
from tests.services.runs.servers import (
    Bench,
)


@pytest.fixture
async def bench(database: Database, people: People, dsn: str) -> Bench:
    async with database.writing() as writing:
        return Bench(database, people.owner, await make_tree(writing, people.owner), dsn)
