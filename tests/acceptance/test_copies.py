from __future__ import annotations

import pytest

from tests.acceptance import FOLDER, NAMES
from tests.conftest import shared

LANDED = (
    "10-card-import.graphql",
    "11-embryo-activate.graphql",
    "12-tree-ask.graphql",
    "13-run-events.graphql",
    "14-tree-rules.graphql",
    "15-tree-page.graphql",
    "20-story-create.graphql",
    "21-entry-write.graphql",
    "22-world-write.graphql",
    "23-history.graphql",
    "24-branch-page.graphql",
    "40-graph.graphql",
    "50-translation.graphql",
    "51-search.graphql",
)


def test_the_documents_of_landed_features_are_here() -> None:
    assert NAMES == LANDED


@pytest.mark.parametrize("name", [*NAMES, "20-story-create.json"])
def test_a_copy_is_the_original_byte_for_byte(name: str) -> None:
    assert FOLDER.joinpath(name).read_bytes() == shared("acceptance", name).read_bytes()
