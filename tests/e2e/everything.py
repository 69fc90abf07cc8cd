"""Every mutation, aimed at somebody's things, and the path of what it does not find."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.callers import CHANGES, CHECKLIST, EMBRYO_ACTIVATE, TREE_ASK, Json
from tests.e2e.tree_documents import TREE_CHANGES, TREE_RULES


def changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Every mutation aimed at things, whose ids are given by their kinds."""
    return {
        "embryoActivate": (
            EMBRYO_ACTIVATE,
            {"id": ids["EmbryoDraft"], "confirmed": CHECKLIST},
            None,
        ),
        "treeCreate": (
            TREE_ASK,
            {"character": ids["Character"], "topic": "Not mine"},
            "TreeCreate",
        ),
        "treeAsk": (
            TREE_ASK,
            {"tree": ids["MirrorTree"], "parent": ids["TreeNode"], "text": "Not mine?"},
            "TreeAsk",
        ),
        "answerRegenerate": (CHANGES, {"question": ids["question"]}, "AnswerRegenerate"),
        "nodeAdopt": (CHANGES, {"node": ids["TreeNode"]}, "NodeAdopt"),
        "runCancel": (CHANGES, {"run": ids["Run"]}, "RunCancel"),
        "nodeContinue": (TREE_CHANGES, {"node": ids["TreeNode"]}, "NodeContinue"),
        "nodeEdit": (TREE_RULES, {"node": ids["TreeNode"], "text": "Not mine."}, "NodeEdit"),
        "nodeCite": (
            TREE_CHANGES,
            {
                "node": ids["TreeNode"],
                "source": ids["question"],
                "target": {"start": 0, "end": 4},
            },
            "NodeCite",
        ),
        "pathCanonize": (
            TREE_RULES,
            {"endpoint": ids["TreeNode"], "scope": "REALITY"},
            "PathCanonize",
        ),
        "nodeCorrect": (
            TREE_CHANGES,
            {"node": ids["TreeNode"], "text": "Not mine."},
            "NodeCorrect",
        ),
        "treeTransplant": (
            TREE_RULES,
            {"node": ids["TreeNode"], "topic": "Not mine"},
            "TreeTransplant",
        ),
        "treePrune": (TREE_CHANGES, {"tree": ids["MirrorTree"], "dryRun": False}, "TreePrune"),
    }


PATHS = {
    "embryoActivate": ["input", "embryoId"],
    "treeCreate": ["input", "characterId"],
    "treeAsk": ["input", "treeId"],
    "answerRegenerate": ["input", "questionId"],
    "nodeAdopt": ["input", "nodeId"],
    "runCancel": ["input", "runId"],
    "nodeContinue": ["input", "nodeId"],
    "nodeEdit": ["input", "nodeId"],
    "nodeCite": ["input", "nodeId"],
    "pathCanonize": ["input", "endpointId"],
    "nodeCorrect": ["input", "nodeId"],
    "treeTransplant": ["input", "nodeId"],
    "treePrune": ["input", "treeId"],
}
