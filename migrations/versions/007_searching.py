"""searching

Purpose: the words and the vectors that texts are found by, kept once for each text; captures of
what a retrieval saw; who holds an item, for walks over a world.
Lock: writers of `entities` wait while its index is built, a second for each 100,000 characters.
On other tables none but a brief one on `branches`, which gets a column and a foreign key to it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects import postgresql

revision = "007"
down_revision = "006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    # Without pgvector the server works, and searches by words.
    available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"
    has_vector = bool(op.get_bind().scalar(sa.text(available)))
    if has_vector:
        op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    op.create_table(
        "search_texts",
        sa.Column("text_hash", sa.String(), autoincrement=False, nullable=False),
        sa.Column("terms", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("word_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("text_hash", name=op.f("pk_search_texts")),
    )
    op.create_index(
        op.f("ix_search_texts_terms"), "search_texts", ["terms"], postgresql_using="gin"
    )
    op.create_table(
        "vectors",
        sa.Column("model_id", sa.String(), autoincrement=False, nullable=False),
        sa.Column("dim", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("text_hash", sa.String(), autoincrement=False, nullable=False),
        sa.Column(
            "embedding",
            Vector() if has_vector else postgresql.ARRAY(sa.REAL()),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("model_id", "dim", "text_hash", name=op.f("pk_vectors")),
    )
    op.add_column(
        "branches",
        sa.Column("vectors_version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
    )
    op.create_table(
        "probe_captures",
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("target_entry_id", sa.String(), nullable=False),
        sa.Column("capture_mode", sa.String(), nullable=False),
        sa.Column("embedding_model_id", sa.Text(), nullable=True),
        sa.Column("failure_reason", sa.Text(), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("payload_size", sa.Integer(), nullable=False),
        sa.Column(
            "captured_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "capture_mode IN ('light', 'deep')", name=op.f("ck_probe_captures_one_of_capture_mode")
        ),
        sa.ForeignKeyConstraint(
            ["branch_id"], ["branches.id"], name=op.f("fk_probe_captures_branch_id")
        ),
        sa.PrimaryKeyConstraint("branch_id", "id", name=op.f("pk_probe_captures")),
    )
    op.create_index(
        "ix_entities_held",
        "entities",
        [sa.text("((state -> 'equipped_items') || (state -> 'inventory'))")],
        postgresql_using="gin",
        postgresql_where=sa.text("kind = 'character'"),
    )


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_entities_held", table_name="entities")
    op.drop_table("probe_captures")
    op.drop_column("branches", "vectors_version")
    op.drop_table("vectors")
    op.drop_table("search_texts")
