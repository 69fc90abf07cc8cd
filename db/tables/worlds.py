"""Worlds that outlast stories: what is in them, how it hangs together, and who plays whom.

Source: spec soul-mirror, section 5; glossary, section 5.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text

from db.columns import (
    Table,
    boolean_column,
    created_at_column,
    double_column,
    enum_column,
    id_column,
    integer_column,
    json_column,
    json_list_column,
    json_object_column,
    key_column,
    link_column,
    long_column,
    one_of,
    owner_column,
    reference,
    text_column,
    time_column,
    version_column,
)
from db.enums import WorldEntityKind


class World(Table, table=True):
    """A world: stories are set in it, and talk can be canon of it."""

    __tablename__ = "persistent_worlds"
    __table_args__ = (Index(None, "owner_user_id", "created_at", "id"),)

    id: str = id_column()
    owner_user_id: str = reference("users.id")
    name: str = text_column()
    background: str = text_column(default="")
    # What holds in it, each a text.
    rules: list[str] = json_list_column("rules_json")
    # How many records its canon has had.
    canon_version: int = integer_column(default=0)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()


class WorldEntity(Table, table=True):
    """Somebody or something in a world."""

    __tablename__ = "world_entities"
    __table_args__ = (
        one_of("kind", WorldEntityKind),
        Index(None, "world_id", "created_at", "id"),
        Index(None, "world_id", "folded_name"),
        Index(None, "merged_into_id"),
    )

    id: str = id_column()
    world_id: str = reference("persistent_worlds.id", on_delete="CASCADE")
    kind: WorldEntityKind = enum_column()
    name: str = text_column()
    # The name as names are compared.
    folded_name: str = text_column()
    description: str = text_column(default="")
    tags: list[str] = json_list_column("tags_json")
    # Whatever its user keeps of it.
    attributes: dict[str, Any] = json_object_column("attributes_json")
    # Where it was told, each a text.
    sources: list[str] = json_list_column("sources_json")
    # The entity that it turned out to be. It takes no part in anything from then on.
    merged_into_id: str | None = reference("world_entities.id", nullable=True, on_delete="CASCADE")
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()


class WorldAlias(Table, table=True):
    """Another name of an entity. Whose row it is changes with the entity's version."""

    __tablename__ = "world_aliases"
    __table_args__ = (Index(None, "folded"),)

    world_entity_id: str = owner_column("world_entities.id")
    # The alias as names are compared.
    folded: str = key_column()
    alias: str = text_column()
    # The place in the list, from 0.
    number: int = integer_column()


class WorldRelation(Table, table=True):
    """What one entity of a world is to another, for some time of the world or for all of it."""

    __tablename__ = "world_relations"
    __table_args__ = (
        UniqueConstraint(
            "source_id", "target_id", "kind", "valid_from", postgresql_nulls_not_distinct=True
        ),
        CheckConstraint("source_id <> target_id", name="two_ends"),
        Index(None, "world_id", "created_at", "id"),
        Index(None, "target_id"),
    )

    id: str = id_column()
    world_id: str = reference("persistent_worlds.id", on_delete="CASCADE")
    source_id: str = reference("world_entities.id", on_delete="CASCADE")
    target_id: str = reference("world_entities.id", on_delete="CASCADE")
    kind: str = text_column()
    label: str | None = text_column(nullable=True)
    # How strong it is; above 0.
    weight: float = double_column(default=1.0)
    # If not, the two ends stand in the order of their ids.
    is_directed: bool = boolean_column(default=True)
    # Seconds of the world's time; from the first on, and before the second.
    valid_from: int | None = long_column(nullable=True)
    valid_until: int | None = long_column(nullable=True)
    # How sure it is, from 0 to 1.
    confidence: float | None = double_column(nullable=True)
    # Where it was told, each a text.
    sources: list[str] = json_list_column("sources_json")
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()


class WorldMerge(Table, table=True):
    """That an entity of a world was found to be another, and what was there before."""

    __tablename__ = "world_merges"
    __table_args__ = (Index(None, "kept_id"), Index(None, "merged_id"))

    id: str = id_column()
    world_id: str = reference("persistent_worlds.id", on_delete="CASCADE")
    kept_id: str = reference("world_entities.id", on_delete="CASCADE")
    merged_id: str = reference("world_entities.id", on_delete="CASCADE")
    # What was changed and taken away as it was, and what was changed as it became.
    before: dict[str, Any] = json_column("before_json")
    after: dict[str, Any] = json_column("after_json")
    created_at: datetime = created_at_column()
    # When it was taken back.
    undone_at: datetime | None = time_column()


class Casting(Table, table=True):
    """That a character plays an entity of a story, or that the entity was drawn from a world."""

    __tablename__ = "castings"
    __table_args__ = (
        CheckConstraint("num_nonnulls(character_id, world_entity_id) = 1", name="one_origin"),
        Index(
            None,
            "story_id",
            "entity_row_id",
            unique=True,
            postgresql_where=text("character_id IS NOT NULL"),
        ),
        Index(
            "ix_castings_drawn",
            "story_id",
            "entity_row_id",
            unique=True,
            postgresql_where=text("world_entity_id IS NOT NULL"),
        ),
        Index(None, "story_id", "created_at", "id"),
        Index(None, "character_id"),
        Index(None, "world_entity_id"),
    )

    id: str = id_column()
    story_id: str = reference("stories.id", on_delete="CASCADE")
    # The entity's own id, the same in all branches of the story; it may be gone from some.
    entity_row_id: str = link_column()
    character_id: str | None = reference("characters.id", nullable=True)
    world_entity_id: str | None = reference("world_entities.id", nullable=True, on_delete="CASCADE")
    created_at: datetime = created_at_column()
