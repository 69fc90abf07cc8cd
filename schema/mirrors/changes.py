"""Changes to trees: inputs, payloads and mutations."""

from __future__ import annotations

import strawberry
from strawberry.scalars import JSON

from db.enums import CitationTarget, Realm
from resolvers import mirrors as resolve
from schema.base import Payload, described, described_input, field, mutation
from schema.mirrors.rows import Canonization, Citation, LazyRun, MirrorTree, TreeNode


@described_input
class TreeCreateInput:
    """A conversation to begin."""

    character_id: strawberry.ID = field("Whom to talk with.")
    topic: str = field("What it is about, 500 characters at most.")
    realm: Realm = field("The realm that its nodes get.", default=Realm.REALITY)
    world_id: strawberry.ID | None = field("The world, where the realm is WORLD.", default=None)


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


@described_input
class NodeContinueInput:
    """An answer to go on from."""

    node_id: strawberry.ID = field("An adopted answer.")


@described
class NodeContinuePayload(Payload):
    """The run that writes on."""

    run: LazyRun | None = field("Queued already; follow it with runEvents.")


@described_input
class NodeEditInput:
    """A new text for a finished node."""

    node_id: strawberry.ID = field("The node; it stays as it is.")
    text: str = field("The new text.")


@described
class NodeEditPayload(Payload):
    """The new version."""

    node: TreeNode | None = field("It stands beside the old one; ask or adopt to go on from it.")


@described_input
class NodeCiteInput:
    """A place to quote."""

    node_id: strawberry.ID = field("The node that quotes.")
    target_kind: CitationTarget = field(
        "What kind of place is quoted.", default=CitationTarget.TEXT_RANGE
    )
    source_id: strawberry.ID = field("The quoted node's id; of other kinds any name of the source.")
    source_version: int | None = field(
        "Which version of the source; a node's is known.", default=None
    )
    target: JSON = field(
        "Where: start and end (characters of a text, seconds of sound or video); x, y, width and "
        "height as parts of a whole of 1, with page in a PDF; nothing for a whole attachment."
    )
    quote: str | None = field(
        "The quoted text; of a node it is taken from the node itself.", default=None
    )


@described
class NodeCitePayload(Payload):
    """The citation."""

    citation: Citation | None = field("With the quoted text as it is now.")


@described_input
class PathCanonizeInput:
    """A path to make canon."""

    endpoint_id: strawberry.ID = field("The answer at its end.")
    scope: Realm = field("In which realm it counts.")
    world_id: strawberry.ID | None = field("The world, for canon of a world.", default=None)


@described
class PathCanonizePayload(Payload):
    """The canon record."""

    canonization: Canonization | None = field("It never changes.")


@described_input
class NodeCorrectInput:
    """A correction of what is canon."""

    node_id: strawberry.ID = field("The node; it stays as it is.")
    text: str = field("The right text.")


@described
class NodeCorrectPayload(Payload):
    """The correction."""

    node: TreeNode | None = field("The new version, beside the old one.")
    canonizations: list[Canonization] | None = field(
        "The new records, one for each scope in which the old node counts."
    )


@described_input
class TreeTransplantInput:
    """A tree to begin from a node of another."""

    node_id: strawberry.ID = field("The node to go on from.")
    topic: str = field("What the new tree is about, 500 characters at most.")


@described
class TreeTransplantPayload(Payload):
    """The new tree."""

    tree: MirrorTree | None = field("It is empty, and refers to what was said before.")


@described_input
class TreePruneInput:
    """Dead branches to remove."""

    tree_id: strawberry.ID = field("The tree.")
    keep: list[strawberry.ID] = field(
        "Nodes that stay with what they hang on, 100 at most.", default_factory=list
    )
    dry_run: bool = field("Only say what would go.", default=True)


@described
class TreePrunePayload(Payload):
    """What was removed, or would be."""

    tree: MirrorTree | None = field("The tree.")
    removed_count: int | None = field("How many nodes.")
    removed_ids: list[strawberry.ID] | None = field("The first 200 of them, oldest first.")
    kept_count: int | None = field("How many nodes stay.")


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
    node_continue: NodeContinuePayload = mutation(
        resolve.continue_node,
        input=NodeContinueInput,
        payload=NodeContinuePayload,
        description="Let the character go on by itself.",
    )
    node_edit: NodeEditPayload = mutation(
        resolve.edit_node,
        input=NodeEditInput,
        payload=NodeEditPayload,
        description="Put another text beside a finished one, which stays.",
    )
    node_cite: NodeCitePayload = mutation(
        resolve.cite_in_node,
        input=NodeCiteInput,
        payload=NodeCitePayload,
        description="Quote a place, with the original as it is now.",
    )
    path_canonize: PathCanonizePayload = mutation(
        resolve.canonize_path,
        input=PathCanonizeInput,
        payload=PathCanonizePayload,
        description="Make the path from the root to an answer canon.",
    )
    node_correct: NodeCorrectPayload = mutation(
        resolve.correct_node,
        input=NodeCorrectInput,
        payload=NodeCorrectPayload,
        description="Correct what is canon: a new version and new records; the old ones stay.",
    )
    tree_transplant: TreeTransplantPayload = mutation(
        resolve.transplant_tree,
        input=TreeTransplantInput,
        payload=TreeTransplantPayload,
        description="Begin a tree that goes on from a node of another.",
    )
    tree_prune: TreePrunePayload = mutation(
        resolve.prune_tree,
        input=TreePruneInput,
        payload=TreePrunePayload,
        description="Remove branches on which nothing alive stands; never canon.",
    )
