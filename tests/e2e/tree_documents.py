"""What front ends ask about trees beyond the acceptance documents, and that of the trees' rules."""

from __future__ import annotations

from tests.acceptance import document

TREE_RULES = document("14-tree-rules.graphql")

TREE_CHANGES = """
mutation NodeContinue($node: ID!) {
  nodeContinue(input: { nodeId: $node }) { run { id status } errors { code message path } }
}
mutation NodeCite($node: ID!, $source: ID!, $target: JSON!) {
  nodeCite(input: { nodeId: $node, sourceId: $source, target: $target }) {
    citation { id targetKind target quote sourceId sourceVersion source { id } }
    errors { code message path }
  }
}
mutation NodeCorrect($node: ID!, $text: String!) {
  nodeCorrect(input: { nodeId: $node, text: $text }) {
    node { id content contentVersion supersedes { id } }
    canonizations { id scope pathLength isIntact endpoint { id } corrects { id } }
    errors { code message path }
  }
}
mutation TreePrune($tree: ID!, $keep: [ID!]! = [], $dryRun: Boolean! = true) {
  treePrune(input: { treeId: $tree, keep: $keep, dryRun: $dryRun }) {
    tree { id lastSeq } removedCount removedIds keptCount errors { code message path }
  }
}
"""

# Every relation of trees and nodes that the acceptance documents leave out.
TREE_SHAPE = """
query TreeShape($tree: ID!, $node: ID!) {
  mirrorTree(id: $tree) {
    lastSeq
    roots { nodes { id } totalCount }
    outline(maxDepth: 9, collapseChains: true) {
      isTruncated
      nodes {
        id parentId depth nodeType status label childCount collapsed isAdopted isCanon supersedesId
      }
    }
    transplantedFrom { sourceVersion sourceTree { id } sourceNode { id } newTree { id } }
    transplants { nodes { id newTree { id } sourceNode { id } } totalCount }
    canonizations { nodes { id isIntact corrects { id } } totalCount }
  }
  treeNode(id: $node) {
    versions { nodes { id } totalCount }
    siblings { nodes { id } totalCount }
    citations { quote newestSource { id } }
  }
}
"""

TREE_EVENTS = """
subscription TreeEvents($tree: ID!, $after: Int) {
  treeEvents(treeId: $tree, after: $after) {
    seq type nodeId node { id content } tree { id lastSeq }
  }
}
"""
