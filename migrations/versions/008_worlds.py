"""worlds

Purpose: worlds that outlast stories, what is in them, and who plays whom; stories and talk that are
set in a world.
Lock: ACCESS EXCLUSIVE on `stories` and `mirror_trees` for a column and a foreign key without values;
SHARE on these and on `canonizations` while an index is built, which is as long as reading them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "008"
down_revision = "007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "persistent_worlds",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_user_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("background", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "rules_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("canon_version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_user_id"], ["users.id"], name=op.f("fk_persistent_worlds_owner_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_persistent_worlds")),
    )
    op.create_index(
        op.f("ix_persistent_worlds_owner_user_id_created_at_id"),
        "persistent_worlds",
        ["owner_user_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "world_entities",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("world_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded_name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "tags_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "attributes_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "sources_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("merged_into_id", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint(
            "kind IN ('character', 'location', 'item', 'faction', 'concept', 'event')",
            name=op.f("ck_world_entities_one_of_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["merged_into_id"],
            ["world_entities.id"],
            name=op.f("fk_world_entities_merged_into_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["world_id"],
            ["persistent_worlds.id"],
            name=op.f("fk_world_entities_world_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_world_entities")),
    )
    op.create_index(
        op.f("ix_world_entities_merged_into_id"), "world_entities", ["merged_into_id"], unique=False
    )
    op.create_index(
        op.f("ix_world_entities_world_id_created_at_id"),
        "world_entities",
        ["world_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_world_entities_world_id_folded_name"),
        "world_entities",
        ["world_id", "folded_name"],
        unique=False,
    )
    op.create_table(
        "world_aliases",
        sa.Column("world_entity_id", sa.String(), nullable=False),
        sa.Column("folded", sa.String(), autoincrement=False, nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["world_entity_id"],
            ["world_entities.id"],
            name=op.f("fk_world_aliases_world_entity_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("world_entity_id", "folded", name=op.f("pk_world_aliases")),
    )
    op.create_index(op.f("ix_world_aliases_folded"), "world_aliases", ["folded"], unique=False)
    op.create_table(
        "world_merges",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("world_id", sa.String(), nullable=False),
        sa.Column("kept_id", sa.String(), nullable=False),
        sa.Column("merged_id", sa.String(), nullable=False),
        sa.Column("before_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("after_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("undone_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["kept_id"],
            ["world_entities.id"],
            name=op.f("fk_world_merges_kept_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["merged_id"],
            ["world_entities.id"],
            name=op.f("fk_world_merges_merged_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["world_id"],
            ["persistent_worlds.id"],
            name=op.f("fk_world_merges_world_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_world_merges")),
    )
    op.create_index(op.f("ix_world_merges_kept_id"), "world_merges", ["kept_id"], unique=False)
    op.create_index(op.f("ix_world_merges_merged_id"), "world_merges", ["merged_id"], unique=False)
    op.create_table(
        "world_relations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("world_id", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("target_id", sa.String(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("weight", sa.Double(), server_default=sa.text("1.0"), nullable=False),
        sa.Column("is_directed", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("valid_from", sa.BigInteger(), nullable=True),
        sa.Column("valid_until", sa.BigInteger(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column(
            "sources_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint("source_id <> target_id", name=op.f("ck_world_relations_two_ends")),
        sa.ForeignKeyConstraint(
            ["source_id"],
            ["world_entities.id"],
            name=op.f("fk_world_relations_source_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["target_id"],
            ["world_entities.id"],
            name=op.f("fk_world_relations_target_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["world_id"],
            ["persistent_worlds.id"],
            name=op.f("fk_world_relations_world_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_world_relations")),
        sa.UniqueConstraint(
            "source_id",
            "target_id",
            "kind",
            "valid_from",
            name=op.f("uq_world_relations_source_id_target_id_kind_valid_from"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_index(
        op.f("ix_world_relations_target_id"), "world_relations", ["target_id"], unique=False
    )
    op.create_index(
        op.f("ix_world_relations_world_id_created_at_id"),
        "world_relations",
        ["world_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "castings",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("story_id", sa.String(), nullable=False),
        sa.Column("entity_row_id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=True),
        sa.Column("world_entity_id", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "num_nonnulls(character_id, world_entity_id) = 1", name=op.f("ck_castings_one_origin")
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_castings_character_id")
        ),
        sa.ForeignKeyConstraint(
            ["story_id"], ["stories.id"], name=op.f("fk_castings_story_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["world_entity_id"],
            ["world_entities.id"],
            name=op.f("fk_castings_world_entity_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_castings")),
    )
    op.create_index(op.f("ix_castings_character_id"), "castings", ["character_id"], unique=False)
    op.create_index(
        "ix_castings_drawn",
        "castings",
        ["story_id", "entity_row_id"],
        unique=True,
        postgresql_where=sa.text("world_entity_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_castings_story_id_created_at_id"),
        "castings",
        ["story_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_castings_story_id_entity_row_id"),
        "castings",
        ["story_id", "entity_row_id"],
        unique=True,
        postgresql_where=sa.text("character_id IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_castings_world_entity_id"), "castings", ["world_entity_id"], unique=False
    )
    op.create_index(
        op.f("ix_canonizations_world_id_confirmed_at_id"),
        "canonizations",
        ["world_id", "confirmed_at", "id"],
        unique=False,
    )
    op.add_column("mirror_trees", sa.Column("world_id", sa.String(), nullable=True))
    op.create_index(op.f("ix_mirror_trees_world_id"), "mirror_trees", ["world_id"], unique=False)
    op.create_foreign_key(
        op.f("fk_mirror_trees_world_id"),
        "mirror_trees",
        "persistent_worlds",
        ["world_id"],
        ["id"],
        ondelete="SET NULL",
    )
    op.add_column("stories", sa.Column("world_id", sa.String(), nullable=True))
    op.create_index(op.f("ix_stories_world_id"), "stories", ["world_id"], unique=False)
    op.create_foreign_key(
        op.f("fk_stories_world_id"),
        "stories",
        "persistent_worlds",
        ["world_id"],
        ["id"],
        ondelete="SET NULL",
    )


def downgrade() -> None:
    """Go back."""
    for table in ("stories", "mirror_trees"):
        op.drop_column(table, "world_id")
    op.drop_index(op.f("ix_canonizations_world_id_confirmed_at_id"), table_name="canonizations")
    for table in (
        "castings",
        "world_relations",
        "world_merges",
        "world_aliases",
        "world_entities",
        "persistent_worlds",
    ):
        op.drop_table(table)
