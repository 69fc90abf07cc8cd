"""What is asked while measuring: W1, a page of nodes with their citations, W2, one row, W3, a page
of a branch, and what W6 and W9 need to let a character answer.
"""

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
BRANCH_PAGE = """
query BranchPage($id: ID!, $first: Int!, $after: String, $language: String) {
  branch(id: $id) {
    name
    story { title }
    entries(first: $first, after: $after) {
      nodes {
        id position kind content worldTime worldTimeLabel model
        translated(field: "content", language: $language)
        sceneEntities { id rowId name translated(field: "name", language: $language) }
        currentLocation { id name }
        chapter { id title }
        assets { role asset { id mimeType url } }
      }
      pageInfo { hasNextPage endCursor }
      totalCount
    }
  }
}
"""

TREE_CREATE = """
mutation TreeCreate($character: ID!, $topic: String!) {
  treeCreate(input: { characterId: $character, topic: $topic, realm: REALITY }) {
    tree { id topic realm status workingEntry { id } }
    errors { code message path }
  }
}
"""
TREE_ASK = """
mutation TreeAsk($tree: ID!, $parent: ID, $text: String!) {
  treeAsk(input: { treeId: $tree, parentId: $parent, text: $text }) {
    question { id nodeType status content parent { id } }
    run { id kind status }
    errors { code message path }
  }
}
"""
RUN_CANCEL = """
mutation RunCancel($run: ID!) {
  runCancel(input: { runId: $run }) { run { id } errors { code message path } }
}
"""
RUN_STATUS = "query RunStatus($run: ID!) { run(id: $run) { status } }"
RUN_EVENTS = """
subscription RunEvents($run: ID!, $after: Int) {
  runEvents(runId: $run, after: $after) {
    __typename
    seq
    at
    ... on RunStarted { run { id kind } }
    ... on PhaseStarted { name }
    ... on TextDelta { channel text targetId }
    ... on PhaseFinished { name }
    ... on RunWarning { code message }
    ... on RunFinished { status error { code message } node { id status content } }
  }
}
"""


def request(query: str, **variables: Any) -> dict[str, Any]:
    """A GraphQL request."""
    return {"query": query, "variables": variables}


@dataclass(frozen=True, slots=True)
class Workload:
    """One operation, and the variables that it has beside the id of a tree or branch."""

    name: str
    operation: str
    query: str
    variables: dict[str, Any]

    def body(self, of_id: str, **variables: Any) -> bytes:
        """The JSON of a request for one tree or branch."""
        return orjson.dumps(
            {
                "query": self.query,
                "operationName": self.operation,
                "variables": {"id": of_id, **self.variables, **variables},
            }
        )

    def bodies(self, ids: Sequence[str]) -> list[bytes]:
        """The requests of a round, one for each tree or branch in turn."""
        return [self.body(each) for each in ids]


W1 = Workload("W1", "TreePage", TREE_PAGE, {"first": 100})
W2 = Workload("W2", "TreeTitle", TREE_TITLE, {})
# What is asked of mirror trees.
WORKLOADS = (W1, W2)
W3 = Workload("W3", "BranchPage", BRANCH_PAGE, {"first": 50, "language": "fr"})
