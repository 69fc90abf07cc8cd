"""What stories are made of. Lists of a branch that belong to other nouns are one line each here."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import strawberry

from resolvers import stories as resolve
from schema.base import Connection, Node, field, relation, row_type

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]


@row_type
class Story(Node):
    """A story: what it is and how it is written. Its text and its world are in its branches."""

    title: str = field("Its title.")
    branches: Connection[LazyBranch] = relation(
        resolve.branches_of_stories, "Its branches, oldest first."
    )
    created_at: datetime = field("When it was made.")


@row_type
class Branch(Node):
    """A line of a story that stands on its own, with a world and a history of its own."""

    name: str = field("Its name.")
    story: Story | None = relation(resolve.stories_of_branches, "The story.")
    head: int = field("The position of its newest change in the log; 0 where there is none.")
    created_at: datetime = field("When it was made.")
