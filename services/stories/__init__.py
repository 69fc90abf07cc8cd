"""Stories, their branches and entries.

Source: spec aventuras, story settings shape; branch model; entry metadata shape.
"""

from services.stories.listing import BRANCHES_OF_STORIES, STORIES, list_stories

__all__ = ["BRANCHES_OF_STORIES", "STORIES", "list_stories"]
