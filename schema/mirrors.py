"""Mirror trees: conversation trees, their nodes, citations and canon records."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import CitationTarget, NodeStatus, NodeType, Realm, TreeStatus
from resolvers import mirrors as resolve
from schema.accounts import User
from schema.base import (
    Connection,
    Node,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    root_row,
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

if TYPE_CHECKING:
    from schema.runs import Run

LazyRun = Annotated["Run", strawberry.lazy("schema.runs")]
LazyMirrorTree = Annotated["MirrorTree", strawberry.lazy("schema.mirrors")]
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
    created_at: datetime = field("When it was quoted.")


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
    tree: LazyMirrorTree | None = relation(resolve.trees_of_nodes, "The tree.")


@row_type
class MirrorTree(Node):
    """A conversation with a character on one topic, in which nothing is lost."""

    topic: str = field("What it is about.")
    realm: Realm = field("The realm that new nodes get.")
    status: TreeStatus = field("Whether it can grow.")
    created_at: datetime = field("When it was begun.")
    version: int = field("Counts its changes, from 1.")
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


@described_input
class TreeCreateInput:
    """A conversation to begin."""

    character_id: strawberry.ID = field("Whom to talk with.")
    topic: str = field("What it is about, 500 characters at most.")
    realm: Realm = field("The realm that its nodes get.", default=Realm.REALITY)


@described
class TreeCreatePayload(Payload):
    """The new tree."""

    tree: MirrorTree | None = field("The tree.")


@described_input
class TreeAskInput:
    """A question."""

    tree_id: strawberry.ID = field("The tree to ask in.")
    parent_id: strawberry.ID | None = field(
        "The adopted answer under which the question stands; null for the first one.", default=None
    )
    text: str = field("The question.")


@described
class TreeAskPayload(Payload):
    """The question, and the run that answers it."""

    question: TreeNode | None = field("The new question.")
    run: LazyRun | None = field("Queued already; follow it with runEvents.")


@described_input
class AnswerRegenerateInput:
    """A question that is to get one more answer."""

    question_id: strawberry.ID = field("The question.")


@described
class AnswerRegeneratePayload(Payload):
    """The run that writes one more answer."""

    run: LazyRun | None = field("Queued already; follow it with runEvents.")


@described_input
class NodeAdoptInput:
    """An answer to go on from."""

    node_id: strawberry.ID = field("A finished answer.")


@described
class NodeAdoptPayload(Payload):
    """The tree with its new working entry."""

    tree: MirrorTree | None = field("The tree.")


@strawberry.type
class MirrorQuery:
    """Root fields about mirror trees."""

    mirror_tree: MirrorTree | None = root_row(resolve.tree_by_id, "One mirror tree.")
    tree_node: TreeNode | None = root_row(resolve.node_by_id, "One node of a mirror tree.")


@strawberry.type
class MirrorMutation:
    """Changes to mirror trees."""

    tree_create: TreeCreatePayload = mutation(
        resolve.create_tree,
        input=TreeCreateInput,
        payload=TreeCreatePayload,
        description="Begin a conversation with a character.",
    )
    tree_ask: TreeAskPayload = mutation(
        resolve.ask_tree,
        input=TreeAskInput,
        payload=TreeAskPayload,
        description="Ask a question and start the run that answers it.",
    )
    answer_regenerate: AnswerRegeneratePayload = mutation(
        resolve.regenerate_answer,
        input=AnswerRegenerateInput,
        payload=AnswerRegeneratePayload,
        description="Start a run for one more answer; the earlier answers stay.",
    )
    node_adopt: NodeAdoptPayload = mutation(
        resolve.adopt_node,
        input=NodeAdoptInput,
        payload=NodeAdoptPayload,
        description="Continue from another answer; canon is not touched.",
    )
