"""Mirror trees: conversation trees on one topic, their nodes, citations and canon records.

Source: spec soul-mirror, section 2; glossary, section 5.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    UniqueConstraint,
)
from sqlmodel import Field

from db.columns import (
    Table,
    created_at_column,
    enum_column,
    id_column,
    integer_column,
    json_column,
    one_of,
    reference,
    text_column,
    time_column,
    version_column,
)
from db.enums import CitationTarget, NodeStatus, NodeType, Realm, TreeEventType, TreeStatus


class MirrorTree(Table, table=True):
    """A conversation with one character on one topic."""

    __tablename__ = "mirror_trees"
    __table_args__ = (
        one_of("realm", Realm),
        one_of("status", TreeStatus),
        Index(None, "character_id", "created_at", "id"),
        Index(None, "world_id"),
    )

    id: str = id_column()
    character_id: str = reference("characters.id")
    topic: str = text_column()
    # The realm that new nodes get.
    realm: Realm = enum_column()
    # The world in which it is talked, where the realm is that of a world.
    world_id: str | None = reference("persistent_worlds.id", nullable=True, on_delete="SET NULL")
    status: TreeStatus = enum_column()
    # Where the talk continues. May move again and again, and never touches canon.
    # No foreign key: nodes name their tree, and the two rows of a new tree could not be inserted.
    working_entry_node_id: str | None = text_column(nullable=True)
    # The number of the tree's last event. Given under this row's lock, so that the numbers of a
    # tree have no gaps and are in the order of the commits.
    last_seq: int = integer_column(default=0)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()


class TreeEvent(Table, table=True):
    """That something has changed in a tree: for clients that have it open. Append-only."""

    __tablename__ = "tree_events"
    __table_args__ = (one_of("type", TreeEventType),)

    tree_id: str = Field(sa_column=Column(String, ForeignKey("mirror_trees.id"), primary_key=True))
    seq: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    type: TreeEventType = enum_column()
    # No foreign key: the log outlives nodes that are pruned.
    node_id: str | None = text_column(nullable=True)
    created_at: datetime = created_at_column()


class TreeTransplant(Table, table=True):
    """That a tree goes on from a node of another one. Trees refer, they never merge."""

    __tablename__ = "tree_transplants"
    __table_args__ = (
        UniqueConstraint("new_tree_id"),
        Index(None, "source_tree_id", "created_at", "id"),
        Index(None, "source_node_id"),
    )

    id: str = id_column()
    new_tree_id: str = reference("mirror_trees.id")
    source_tree_id: str = reference("mirror_trees.id")
    source_node_id: str = reference("tree_nodes.id")
    source_version: int = integer_column()
    created_at: datetime = created_at_column()


class TreeNode(Table, table=True):
    """A node of a tree. A bud grows once into a solid or partial node; after that nothing changes
    (a trigger refuses it): regenerating and editing insert new rows.
    """

    __tablename__ = "tree_nodes"
    __table_args__ = (
        one_of("node_type", NodeType),
        one_of("status", NodeStatus),
        one_of("realm", Realm),
        Index(None, "supersedes_node_id", "created_at", "id"),
        UniqueConstraint("tree_id", "id"),
        ForeignKeyConstraint(
            ["tree_id", "parent_node_id"], ["tree_nodes.tree_id", "tree_nodes.id"]
        ),
        Index(None, "tree_id", "created_at", "id"),
        Index(None, "parent_node_id", "created_at", "id"),
    )

    id: str = id_column()
    tree_id: str = reference("mirror_trees.id")
    parent_node_id: str | None = text_column(nullable=True)
    node_type: NodeType = enum_column()
    status: NodeStatus = enum_column()
    realm: Realm = enum_column()
    # Empty while the node is a bud: the growing text is in the run's events.
    content: str = text_column(default="")
    # 1 for a first text; an edited copy counts one more than the node it supersedes.
    content_version: int = integer_column(default=1)
    supersedes_node_id: str | None = reference("tree_nodes.id", nullable=True)
    # The model that wrote the text, null for people's.
    model: str | None = text_column(nullable=True)
    # What the model thought aloud before its text, where the provider shows it.
    reasoning: str | None = text_column(nullable=True)
    run_id: str | None = text_column(nullable=True)
    created_at: datetime = created_at_column()
    # Since when only the tombstone is left: no content, no reasoning.
    erased_at: datetime | None = time_column()

    @property
    def is_erased(self) -> bool:
        """Whether only the tombstone is left."""
        return self.erased_at is not None


class Citation(Table, table=True):
    """What a node quotes: where from, and the quoted text as it was."""

    __tablename__ = "citations"
    __table_args__ = (
        one_of("target_kind", CitationTarget),
        Index(None, "node_id", "created_at", "id"),
    )

    id: str = id_column()
    node_id: str = reference("tree_nodes.id")
    target_kind: CitationTarget = enum_column()
    # Where in the source: {"start", "end"} of a text range, a page and box, times in seconds.
    target: dict[str, Any] = json_column("target_json")
    quote: str = text_column()
    source_id: str | None = text_column(nullable=True)
    source_version: int | None = integer_column(nullable=True)
    created_at: datetime = created_at_column()
    # Since when only the tombstone is left: no quote.
    erased_at: datetime | None = time_column()

    @property
    def is_erased(self) -> bool:
        """Whether only the tombstone is left."""
        return self.erased_at is not None


class Canonization(Table, table=True):
    """That the path from the root to a node was made canon. Append-only: a correction is a new
    node and a new record.
    """

    __tablename__ = "canonizations"
    __table_args__ = (
        one_of("scope", Realm),
        CheckConstraint("scope <> 'world' OR world_id IS NOT NULL", name="world_id"),
        Index(None, "tree_id", "confirmed_at", "id"),
        Index(None, "endpoint_node_id"),
        Index(None, "world_id", "confirmed_at", "id"),
    )

    id: str = id_column()
    tree_id: str = reference("mirror_trees.id")
    scope: Realm = enum_column()
    world_id: str | None = text_column(nullable=True)
    endpoint_node_id: str = reference("tree_nodes.id")
    # Number of nodes from the root to the endpoint, both counted.
    path_length: int = integer_column()
    # SHA-256 over the path's ids and contents, for a later check.
    snapshot_digest: str = text_column()
    confirmed_by_user_id: str = reference("users.id")
    # The record that this one puts right; that one stays.
    corrects_canonization_id: str | None = reference("canonizations.id", nullable=True)
    confirmed_at: datetime = created_at_column()
