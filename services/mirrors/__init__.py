"""Mirror trees: growing and reading conversation trees, the working entry, and canon.

Source: spec soul-mirror, section 2 and its four invariants.
"""

from services.mirrors.canon import canonize_path, correct_node, intact_flags, path_digest
from services.mirrors.changes import events_after, follow_tree, note_change, tree_topic
from services.mirrors.citing import cite
from services.mirrors.growing import (
    add_question,
    adopt_node,
    create_tree,
    edit_node,
    hold_node,
    move_working_entry,
    require_continuable,
)
from services.mirrors.outlining import MAX_DEPTH, OutlineNode, TreeOutline, outlines_of_trees
from services.mirrors.pruning import Pruning, prune_tree
from services.mirrors.reading import (
    CANDIDATES_OF_NODES,
    CANON_OF_WORLDS,
    CANONIZATIONS_OF_TREES,
    CHILDREN_OF_NODES,
    MAX_CITATIONS,
    MAX_PATH,
    NODES_OF_TREES,
    ROOTS_OF_TREES,
    TRANSPLANTS_OF_TREES,
    TREES_OF_CHARACTERS,
    VERSIONS_OF_NODES,
    canon_trunks_of_trees,
    citations_of_nodes,
    newest_versions_of_nodes,
    paths_to_nodes,
    transplants_into_trees,
)
from services.mirrors.transplanting import talk_to_node, transplant_tree

__all__ = [
    "CANDIDATES_OF_NODES",
    "CANONIZATIONS_OF_TREES",
    "CANON_OF_WORLDS",
    "CHILDREN_OF_NODES",
    "MAX_CITATIONS",
    "MAX_DEPTH",
    "MAX_PATH",
    "NODES_OF_TREES",
    "ROOTS_OF_TREES",
    "TRANSPLANTS_OF_TREES",
    "TREES_OF_CHARACTERS",
    "VERSIONS_OF_NODES",
    "OutlineNode",
    "Pruning",
    "TreeOutline",
    "add_question",
    "adopt_node",
    "canon_trunks_of_trees",
    "canonize_path",
    "citations_of_nodes",
    "cite",
    "correct_node",
    "create_tree",
    "edit_node",
    "events_after",
    "follow_tree",
    "hold_node",
    "intact_flags",
    "move_working_entry",
    "newest_versions_of_nodes",
    "note_change",
    "outlines_of_trees",
    "path_digest",
    "paths_to_nodes",
    "prune_tree",
    "require_continuable",
    "talk_to_node",
    "transplant_tree",
    "transplants_into_trees",
    "tree_topic",
]
