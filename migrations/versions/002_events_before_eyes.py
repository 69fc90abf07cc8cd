"""events before eyes

Purpose: events of runs are stored before they are shown, so no numbers are reserved ahead.
Lock: on `runs` briefly and exclusively, as a column goes.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "002"
down_revision = "001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward. A run whose server was lost goes on behind the numbers that it had reserved."""
    op.execute(
        "UPDATE runs SET last_seq = reserved_seq WHERE ended_at IS NULL AND reserved_seq > last_seq"
    )
    op.drop_column("runs", "reserved_seq")


def downgrade() -> None:
    """Go back."""
    op.add_column(
        "runs", sa.Column("reserved_seq", sa.Integer(), server_default="0", nullable=False)
    )
    op.execute("UPDATE runs SET reserved_seq = last_seq")
