"""What front ends ask about what happened to branches, and how two of them differ."""

from __future__ import annotations

BRANCH_EVENTS = """
subscription BranchEvents($branch: ID!, $after: Int) {
  branchEvents(branchId: $branch, after: $after) {
    seq kind actionId source head changeCount createdAt
    changes { table op id }
    branch { id head lastEventSeq }
  }
}
"""

BRANCH_LOG = """
fragment Change on Delta {
  id logPosition source op table rowId actionId anchor
  entry { rowId } branch { id } fields { path before after }
}
query BranchLog($branch: ID!, $filter: DeltaFilter, $first: Int, $after: String) {
  branch(id: $branch) {
    lastEventSeq
    deltas(first: $first, after: $after, filter: $filter) {
      nodes { ...Change } totalCount pageInfo { hasNextPage endCursor }
    }
  }
}
query RowHistory($row: ID!) {
  node(id: $row) {
    ... on BranchNode { rowId history(first: 5) { nodes { ...Change } totalCount } }
  }
}
"""

BRANCH_DIFF = """
query BranchDiff($left: ID!, $right: ID!, $tables: [LoggedTable!], $first: Int, $after: String) {
  branchDiff(left: $left, right: $right) {
    left { id } right { id } commonEntry { id position }
    changes(first: $first, after: $after, tables: $tables) {
      nodes { table rowId kind label fields { path left right } }
      totalCount pageInfo { hasNextPage endCursor }
    }
  }
}
"""

CARRYING = """
mutation ChangeCarry($from: ID!, $to: ID!, $row: ID!, $head: Int) {
  changeCarry(
    input: { fromBranchId: $from, toBranchId: $to, rowId: $row, expectedHead: $head }
  ) {
    kind row { id rowId } branch { id head } errors { code message path }
  }
}
"""
