from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.assets import FileStore, open_store
from tests.services.assets.stores import Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    """A folder that is made for the test."""
    return open_store(tmp_path / "assets", "here")
