"""What trees are made of: nodes, citations, canon records, transplants, events, outlines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import CitationTarget, NodeStatus, NodeType, Realm, TreeEventType, TreeStatus
from resolvers import mirrors as resolve
from resolvers import worlds as resolve_worlds
from schema.accounts import User
from schema.base import (
    Connection,
    Node,
    described,
    enum,
    field,
    relation,
    row_type,
)
from schema.characters import Character

enum(
    Realm,
    REALITY="What really happened between user and character.",
    WORLD="What counts in a persistent world.",
    SIMULATION="A rehearsal without consequences.",
)
enum(
    TreeStatus,
    ACTIVE="Can grow.",
    ARCHIVED="Can only be read.",
)
enum(
    NodeType,
    QUESTION="What a person asks.",
    CANDIDATE_ANSWER="One possible answer to the question above it.",
    CONTINUED_THOUGHT="The character goes on by itself.",
)
enum(
    NodeStatus,
    BUD="Being written: its text is in the events of its run.",
    PARTIAL="Was cut off; the text so far is kept.",
    SOLIDIFIED="Final.",
)
enum(
    CitationTarget,
    TEXT_RANGE="Characters of a text.",
    IMAGE_REGION="A box in a picture.",
    PDF_PAGE_REGION="A box on a page of a PDF.",
    ATTACHMENT="A whole attached file.",
    MEDIA_TIME_RANGE="A stretch of sound or video.",
)

enum(
    TreeEventType,
    NODE_PLANTED="A node has come: a question, a version, or the bud of an answer.",
    NODE_FINISHED="An answer has got its final text.",
    ENTRY_MOVED="The talk continues from another node.",
    PATH_CANONIZED="The path to the node was made canon.",
    NODE_CITED="The node quotes one place more.",
    TREE_TRANSPLANTED="Another tree goes on from the node.",
    TREE_PRUNED="Dead branches were removed; read the tree anew.",
    TREE_ERASED="Its texts were erased: drop what you keep of it. It is the tree's last event.",
)

if TYPE_CHECKING:
    from schema.runs import Run
    from schema.worlds import World

LazyRun = Annotated["Run", strawberry.lazy("schema.runs")]
LazyWorld = Annotated["World", strawberry.lazy("schema.worlds")]
LazyMirrorTree = Annotated["MirrorTree", strawberry.lazy("schema.mirrors")]
LazyCanonization = Annotated["Canonization", strawberry.lazy("schema.mirrors")]
LazyTreeNode = Annotated["TreeNode", strawberry.lazy("schema.mirrors")]


@row_type
class Citation(Node):
    """What a node quotes, with the quoted text as it was."""

    target_kind: CitationTarget = field("What kind of place is quoted.")
    target: JSON = field(
        "Where in the source: start and end of a text range, a page and box, times."
    )
    quote: str = field("The quoted text as it was when it was quoted.")
    source_id: str | None = field("Id of what is quoted.")
    source_version: int | None = field("Which version of the source is quoted.")
    source: LazyTreeNode | None = relation(
        resolve.sources_of_citations, "The quoted node, where a node is quoted."
    )
    newest_source: LazyTreeNode | None = relation(
        resolve.newest_sources_of_citations,
        "The last version of the quoted node, where it was edited or corrected since; the quote "
        "itself stays as it was.",
    )
    created_at: datetime = field("When it was quoted.")
    is_erased: bool = field("Whether the quote was erased, with all else of the character.")


@row_type
class TreeNode(Node):
    """A question or an answer in a mirror tree; never changed once it is final."""

    node_type: NodeType = field("What it is.")
    status: NodeStatus = field("How final its text is.")
    content: str = field("The text; empty while it is a bud.")
    content_version: int = field("1 for a first text, one more for each edited copy.")
    realm: Realm = field("In which realm it counts.")
    model: str | None = field("The model that wrote it; null for people's texts.")
    reasoning: str | None = field("What the model thought aloud, where its provider shows it.")
    created_at: datetime = field("When it was planted.")
    is_erased: bool = field("Whether its text was erased, with all else of the character.")
    tree: LazyMirrorTree | None = relation(resolve.trees_of_nodes, "The tree it stands in.")
    parent: LazyTreeNode | None = relation(
        resolve.parents_of_nodes, "The node above; null at the root."
    )
    children: Connection[LazyTreeNode] = relation(
        resolve.children_of_nodes, "The nodes directly below, oldest first."
    )
    candidates: Connection[LazyTreeNode] = relation(
        resolve.candidates_of_nodes, "The answers directly below, oldest first."
    )
    citations: list[Citation] = relation(
        resolve.citations_of_nodes, "What it quotes, oldest first, 100 at most."
    )
    supersedes: LazyTreeNode | None = relation(
        resolve.superseded_of_nodes, "The node it was made from by editing."
    )
    versions: Connection[LazyTreeNode] = relation(
        resolve.versions_of_nodes, "Nodes that were made from it by editing, oldest first."
    )
    siblings: Connection[LazyTreeNode] = relation(
        resolve.siblings_of_nodes, "All nodes below the same parent, itself too, oldest first."
    )
    run: LazyRun | None = relation(resolve.runs_of_nodes, "The run it was written in.")
    is_working_entry: bool = relation(
        resolve.working_entry_flags_of_nodes, "Whether the talk continues here."
    )


@row_type
class Canonization(Node):
    """That the path from the root to a node was made canon; never changed."""

    scope: Realm = field("In which realm it counts.")
    path_length: int = field("Nodes from the root to the endpoint, both counted.")
    snapshot_digest: str = field("SHA-256 over ids and texts of the path, in hexadecimal.")
    confirmed_at: datetime = field("When.")
    endpoint: TreeNode | None = relation(
        resolve.endpoints_of_canonizations, "The last node of the path."
    )
    confirmed_by: User | None = relation(resolve.confirmers_of_canonizations, "Who confirmed it.")
    corrects: LazyCanonization | None = relation(
        resolve.corrected_of_canonizations, "The record that this one puts right."
    )
    is_intact: bool | None = relation(
        resolve.intact_flags_of_canonizations,
        "Whether the path still has the length and the texts that were confirmed; null when texts "
        "were erased, and nobody can tell any more.",
    )
    tree: LazyMirrorTree | None = relation(resolve.trees_of_nodes, "The tree.")
    world: LazyWorld | None = relation(
        resolve_worlds.worlds_of_rows, "The world in which it counts; null also where that is gone."
    )


@row_type
class TreeTransplant(Node):
    """That a tree goes on from a node of another one."""

    source_version: int = field("Which version of the node.")
    created_at: datetime = field("When.")
    source_tree: LazyMirrorTree | None = relation(
        resolve.source_trees_of_transplants, "The tree it comes from."
    )
    source_node: TreeNode | None = relation(
        resolve.source_nodes_of_transplants, "The node it goes on from."
    )
    new_tree: LazyMirrorTree | None = relation(
        resolve.new_trees_of_transplants, "The tree that grew."
    )


@described
class OutlineNode:
    """A node of a drawing."""

    id: strawberry.ID = field("Id of the node.")
    parent_id: strawberry.ID | None = field("The node above it in the drawing.")
    depth: int = field("Its level in the tree; the root's is 1.")
    node_type: NodeType = field("What it is.")
    status: NodeStatus = field("How final its text is.")
    label: str = field("The first 80 characters of its text.")
    child_count: int = field("How many nodes stand directly below it in the tree.")
    collapsed: int = field("How many nodes between it and its parent are left out.")
    is_adopted: bool = field("Whether it is on the path to the working entry.")
    is_canon: bool = field("Whether it is on a path that was made canon, in any scope.")
    supersedes_id: strawberry.ID | None = field("The node it was made from by editing.")
    created_at: datetime = field("When it was planted.")


@described
class TreeOutline:
    """The shape of a tree, for drawing."""

    nodes: list[OutlineNode] = field("Level by level, oldest first, 5,000 at most.")
    is_truncated: bool = field("Whether there are more than are shown.")


@row_type
class MirrorTree(Node):
    """A conversation with a character on one topic, in which nothing is lost."""

    topic: str = field("What it is about.")
    realm: Realm = field("The realm that new nodes get.")
    status: TreeStatus = field("Whether it can grow.")
    world: LazyWorld | None = relation(
        resolve_worlds.worlds_of_rows, "The world in which it is talked, where it is in one."
    )
    created_at: datetime = field("When it was begun.")
    version: int = field("Counts its changes, from 1.")
    last_seq: int = field("Number of its last event: give it to treeEvents as after.")
    character: Character | None = relation(
        resolve.characters_of_trees, "Whom the conversation is with."
    )
    nodes: Connection[TreeNode] = relation(resolve.nodes_of_trees, "All nodes, oldest first.")
    working_entry: TreeNode | None = relation(
        resolve.working_entries_of_trees, "Where the talk continues; null while it is empty."
    )
    path: list[TreeNode] = relation(
        resolve.paths_of_trees,
        "The nodes from the root to one node, the last 10,000 at most; empty when that is not in "
        "this tree.",
        arguments={"to": "The last node of the path; the working entry unless said otherwise."},
        ids=["to"],
    )
    canonizations: Connection[Canonization] = relation(
        resolve.canonizations_of_trees, "What was made canon, oldest first."
    )
    canon_trunk: list[TreeNode] = relation(
        resolve.canon_trunks_of_trees,
        "The union of the canonized paths in one scope, oldest node first, 10,000 at most.",
        arguments={"scope": "Which realm's canon."},
    )
    roots: Connection[TreeNode] = relation(
        resolve.roots_of_trees, "The nodes without a parent: the first question and its versions."
    )
    outline: TreeOutline = relation(
        resolve.outlines_of_trees,
        "Its shape for drawing: light nodes without texts.",
        arguments={
            "max_depth": "How many levels: 10,000 at most, and unless said otherwise.",
            "collapse_chains": "Leave out nodes in the middle of lines that do not branch.",
        },
    )
    transplanted_from: TreeTransplant | None = relation(
        resolve.origins_of_trees, "Where it grew from; null for a tree begun by itself."
    )
    transplants: Connection[TreeTransplant] = relation(
        resolve.transplants_of_trees, "Trees that grew from it, oldest first."
    )


@row_type
class TreeEvent:
    """That something has changed in a tree."""

    seq: int = field("Counts the tree's events from 1, without gaps.")
    type: TreeEventType = field("What has changed.")
    node_id: strawberry.ID | None = field("Id of the node that it is about.")
    created_at: datetime = field("When.")
    tree: LazyMirrorTree | None = relation(resolve.trees_of_nodes, "The tree as it is now.")
    node: TreeNode | None = relation(
        resolve.nodes_of_events, "The node as it is now; null when it was pruned."
    )
