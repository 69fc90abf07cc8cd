"""What is asked while measuring: W1, a page of nodes with their citations, and W2, one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

TREE_PAGE = """
query TreePage($id: ID!, $first: Int!, $after: String) {
  mirrorTree(id: $id) {
    topic
    status
    nodes(first: $first, after: $after) {
      nodes {
        id nodeType status content realm model createdAt
        parent { id }
        citations { id targetKind quote }
      }
      pageInfo { hasNextPage endCursor }
    }
  }
}
"""
TREE_TITLE = "query TreeTitle($id: ID!) { mirrorTree(id: $id) { topic status } }"


@dataclass(frozen=True, slots=True)
class Workload:
    """One operation, and the variables that it has beside the id of a tree."""

    name: str
    operation: str
    query: str
    variables: dict[str, Any]

    def body(self, tree_id: str, **variables: Any) -> bytes:
        """The JSON of a request for one tree."""
        return orjson.dumps(
            {
                "query": self.query,
                "operationName": self.operation,
                "variables": {"id": tree_id, **self.variables, **variables},
            }
        )

    def bodies(self, tree_ids: Sequence[str]) -> list[bytes]:
        """The requests of a round, one for each tree in turn."""
        return [self.body(each) for each in tree_ids]


W1 = Workload("W1", "TreePage", TREE_PAGE, {"first": 100})
W2 = Workload("W2", "TreeTitle", TREE_TITLE, {})
WORKLOADS = (W1, W2)
