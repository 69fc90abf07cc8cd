"""runs in full

Purpose: the texts of events can be erased, runs say what their models were given and how often
they were tried.
Lock: none yet.
"""

from __future__ import annotations

revision = "003"
down_revision = "002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""


def downgrade() -> None:
    """Go back."""
