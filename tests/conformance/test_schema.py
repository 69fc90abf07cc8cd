"""Public tools read the schema as we committed it, and as it is served."""

from __future__ import annotations

from typing import Any

from tests.acceptance import NAMES, document
from tests.conftest import ROOT, ServerProcess
from tests.e2e.callers import node_lines


async def test_public_tools_find_nothing_wrong_with_the_schema(server: ServerProcess) -> None:
    steps: dict[str, Any] = {}
    async for line in node_lines(
        "check-schema.mjs",
        url=server.url,
        path=str(ROOT / "schema" / "schema.graphql"),
        documents={name: document(name) for name in NAMES},
    ):
        steps[line["step"]] = line["found"]
    assert steps == {
        "reference": [],
        "reference printer": True,
        "served": True,
        "diff with served": [],
        "diff with itself": [],
        "documents": [],
        "graphql-eslint": [],
        "graphql-schema-linter": [],
    }
