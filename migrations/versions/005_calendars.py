"""calendars

Purpose: users keep calendars of their own beside those that come with the server.
Lock: none on existing tables but the brief one on `users` that a foreign key to it takes.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "005"
down_revision = "004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "vault_calendars",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_user_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("definition_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("is_favorite", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_user_id"], ["users.id"], name=op.f("fk_vault_calendars_owner_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vault_calendars")),
    )
    op.create_index(
        op.f("ix_vault_calendars_owner_user_id_created_at_id"),
        "vault_calendars",
        ["owner_user_id", "created_at", "id"],
        unique=False,
    )


def downgrade() -> None:
    """Go back."""
    op.drop_index(
        op.f("ix_vault_calendars_owner_user_id_created_at_id"), table_name="vault_calendars"
    )
    op.drop_table("vault_calendars")
