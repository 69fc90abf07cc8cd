"""Asking: a question is put into a tree and a run that will answer it is queued."""

from __future__ import annotations

import secrets

from db.enums import NodeType, RunKind, RunStatus
from db.reading import Writing
from db.tables import MirrorTree, Run, TreeNode
from services import mirrors
from services.access import Viewer, require_row
from services.accounts import record_act
from services.errors import Invalid
from services.hub import announce

# The hub's topic for "a run was queued, or a seat became free".
QUEUE_TOPIC = "runs"


async def ask_tree(
    writing: Writing,
    viewer: Viewer,
    tree_id: str,
    parent_id: str | None,
    text: str,
    *,
    provider: str,
    model: str | None,
) -> tuple[TreeNode, Run]:
    """Add a question and queue its answer. Raises what mirrors.add_question raises."""
    question = await mirrors.add_question(writing, viewer, tree_id, parent_id, text)
    run = await _queue_answer(writing, viewer, question, provider=provider, model=model)
    return question, run


async def regenerate_answer(
    writing: Writing, viewer: Viewer, question_id: str, *, provider: str, model: str | None
) -> Run:
    """Queue one more answer to a question; the earlier ones stay (section 2, invariant 1).

    Raises NotFound, Invalid (NOT_A_QUESTION) and Conflict.
    """
    path = ("input", "questionId")
    _, question = await mirrors.hold_node(writing, viewer, question_id, *path)
    if question.node_type != NodeType.QUESTION:
        raise Invalid("Name a question: this is an answer.", "NOT_A_QUESTION", path)
    return await _queue_answer(writing, viewer, question, provider=provider, model=model)


async def continue_node(
    writing: Writing, viewer: Viewer, node_id: str, *, provider: str, model: str | None
) -> Run:
    """Let the character go on from an adopted answer by itself.

    Raises what mirrors.require_continuable raises.
    """
    node = await mirrors.require_continuable(writing, viewer, node_id, ("input", "nodeId"))
    return await _queue_answer(writing, viewer, node, provider=provider, model=model)


async def _queue_answer(
    writing: Writing, viewer: Viewer, question: TreeNode, *, provider: str, model: str | None
) -> Run:
    # The caller holds the tree, and so has seen that it may grow.
    tree = await require_row(writing, viewer, MirrorTree, question.tree_id)
    run = await writing.insert(
        Run,
        kind=RunKind.FOREGROUND,
        status=RunStatus.QUEUED,
        requested_by_user_id=viewer.signed_in_id,
        character_id=tree.character_id,
        tree_id=tree.id,
        question_node_id=question.id,
        provider=provider,
        model=model,
        seed=secrets.randbits(62),
    )
    await record_act(writing, viewer, "run_queued", run.id, {"question_id": question.id})
    await announce(writing, QUEUE_TOPIC)
    return run
