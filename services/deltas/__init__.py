"""The log of a branch: the only writer of what belongs to branches, and every way back.

Source: spec aventuras, entry mutability and rollback; survival anchor; branch model.
"""

from services.deltas.differing import FieldChange, fields_between, shown_columns
from services.deltas.embedding import (
    EmbeddedText,
    VectorState,
    branches_to_embed,
    forget_models,
    mark_fresh,
    note_embedded,
    rename_model,
    texts_to_embed,
    vector_state,
)
from services.deltas.events import MAX_CHANGES, branch_topic, note_event
from services.deltas.facts import invalidate_facts
from services.deltas.forking import CopiedRows, Fork, fork_branch
from services.deltas.history import (
    DELTAS_OF_BRANCHES,
    DELTAS_OF_ROWS,
    RowName,
    changes_of_deltas,
    images_of_rows,
)
from services.deltas.logged import LOGGED, Image, Logged, logged_of
from services.deltas.looking_back import images_before
from services.deltas.redoing import redo_branch
from services.deltas.rows import all_images
from services.deltas.selecting import Cut, cut_behind
from services.deltas.undoing import (
    INVALIDATION,
    Outcome,
    ReversedAction,
    ReversedChange,
    RollbackWarning,
    roll_back_branch,
    undo_branch,
)
from services.deltas.unlogged import drop_branches, plant_rows, uproot_rows
from services.deltas.watching import events_after, follow_branch
from services.deltas.writing import (
    CHILDREN,
    Action,
    acting,
    acting_on,
    hold_branch,
    new_action_id,
    newest_anchor,
    newest_anchors,
)

__all__ = [
    "CHILDREN",
    "DELTAS_OF_BRANCHES",
    "DELTAS_OF_ROWS",
    "INVALIDATION",
    "LOGGED",
    "MAX_CHANGES",
    "Action",
    "CopiedRows",
    "Cut",
    "EmbeddedText",
    "FieldChange",
    "Fork",
    "Image",
    "Logged",
    "Outcome",
    "ReversedAction",
    "ReversedChange",
    "RollbackWarning",
    "RowName",
    "VectorState",
    "acting",
    "acting_on",
    "all_images",
    "branch_topic",
    "branches_to_embed",
    "changes_of_deltas",
    "cut_behind",
    "drop_branches",
    "events_after",
    "fields_between",
    "follow_branch",
    "forget_models",
    "fork_branch",
    "hold_branch",
    "images_before",
    "images_of_rows",
    "invalidate_facts",
    "logged_of",
    "mark_fresh",
    "new_action_id",
    "newest_anchor",
    "newest_anchors",
    "note_embedded",
    "note_event",
    "plant_rows",
    "redo_branch",
    "rename_model",
    "roll_back_branch",
    "shown_columns",
    "texts_to_embed",
    "undo_branch",
    "uproot_rows",
    "vector_state",
]
