"""Stories, their branches and entries.

Source: spec aventuras, story settings shape; branch model; entry metadata shape.
"""

from services.stories.branches import (
    CHILDREN_OF_BRANCHES,
    can_redo,
    can_undo,
    delete_branch,
    rename_branch,
)
from services.stories.changing import FirstEntry, delete_story, open_story, update_story
from services.stories.chapters import (
    CHAPTERS_OF_BRANCHES,
    ENTRIES_OF_CHAPTERS,
    OpenRegion,
    create_chapter,
    delete_chapter,
    open_regions_of_branches,
    update_chapter,
)
from services.stories.creating import (
    KeyedId,
    NewDefinition,
    NewLore,
    NewMember,
    NewOpening,
    NewStory,
    NewStyle,
    create_story,
)
from services.stories.dating import labels_of_times, times_before, times_before_entries
from services.stories.entries import (
    ENTRIES_OF_BRANCHES,
    append_entry,
    delete_entry,
    edit_entry,
    update_meta,
)
from services.stories.eras import FLIPS_OF_BRANCHES, delete_flip, flip_era, update_flip
from services.stories.listing import BRANCHES_OF_STORIES, STORIES, list_stories

__all__ = [
    "BRANCHES_OF_STORIES",
    "CHAPTERS_OF_BRANCHES",
    "CHILDREN_OF_BRANCHES",
    "ENTRIES_OF_BRANCHES",
    "ENTRIES_OF_CHAPTERS",
    "FLIPS_OF_BRANCHES",
    "STORIES",
    "FirstEntry",
    "KeyedId",
    "NewDefinition",
    "NewLore",
    "NewMember",
    "NewOpening",
    "NewStory",
    "NewStyle",
    "OpenRegion",
    "append_entry",
    "can_redo",
    "can_undo",
    "create_chapter",
    "create_story",
    "delete_branch",
    "delete_chapter",
    "delete_entry",
    "delete_flip",
    "delete_story",
    "edit_entry",
    "flip_era",
    "labels_of_times",
    "list_stories",
    "open_regions_of_branches",
    "open_story",
    "rename_branch",
    "times_before",
    "times_before_entries",
    "update_chapter",
    "update_flip",
    "update_meta",
    "update_story",
]
