"""A branch, for each test."""

from __future__ import annotations

import pytest

from db.engine import Database
from tests.conftest import People
from tests.factories import make_branch, make_tree
from tests.services.translating.booths import Booth


@pytest.fixture
async def booth(database: Database, people: People, dsn: str) -> Booth:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        branch = await make_branch(writing, people.owner)
    return Booth(database, people.owner, tree, dsn, branch=branch)
