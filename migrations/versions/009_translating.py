"""translating

Purpose: runs that translate texts of a branch, and how far each of them is.
Lock: on `runs` and `run_events` exclusively, while their checks are made anew: both are read once.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "009"
down_revision = "008"
branch_labels = None
depends_on = None

_KINDS = ("foreground", "background_delegated")
_EVENTS = (
    "run_started",
    "phase_started",
    "text_delta",
    "phase_finished",
    "run_warning",
    "run_finished",
)
_ONE_SUBJECT = (
    "CASE WHEN kind = 'translation'"
    " THEN character_id IS NULL AND tree_id IS NULL AND language IS NOT NULL"
    " ELSE character_id IS NOT NULL AND tree_id IS NOT NULL AND branch_id IS NULL END"
)


def upgrade() -> None:
    """Go forward."""
    for name in ("character_id", "tree_id"):
        op.alter_column("runs", name, existing_type=sa.String(), nullable=True)
    op.add_column("runs", sa.Column("branch_id", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("language", sa.Text(), nullable=True))
    for name in ("kinds_json", "progress_json"):
        column = sa.Column(name, postgresql.JSONB(astext_type=sa.Text()), nullable=True)
        op.add_column("runs", column)
    op.create_foreign_key(
        op.f("fk_runs_branch_id"), "runs", "branches", ["branch_id"], ["id"], ondelete="SET NULL"
    )
    op.create_index(
        op.f("ix_runs_branch_id_created_at_id"), "runs", ["branch_id", "created_at", "id"]
    )
    _check("runs", "kind", (*_KINDS, "translation"))
    op.create_check_constraint(op.f("ck_runs_one_subject"), "runs", _ONE_SUBJECT)
    _check("run_events", "type", (*_EVENTS[:-1], "run_progressed", _EVENTS[-1]))


def downgrade() -> None:
    """Go back; what was translated stays, and the runs that did it are gone."""
    # The one time that events are taken out: nothing could tell any more what they are about.
    op.execute("ALTER TABLE run_events DISABLE TRIGGER run_events_append_only")
    op.execute(
        "DELETE FROM run_events WHERE run_id IN (SELECT id FROM runs WHERE kind = 'translation')"
    )
    op.execute("ALTER TABLE run_events ENABLE TRIGGER run_events_append_only")
    op.execute("DELETE FROM runs WHERE kind = 'translation'")
    _check("run_events", "type", _EVENTS)
    op.drop_constraint(op.f("ck_runs_one_subject"), "runs", type_="check")
    _check("runs", "kind", _KINDS)
    op.drop_index(op.f("ix_runs_branch_id_created_at_id"), table_name="runs")
    op.drop_constraint(op.f("fk_runs_branch_id"), "runs", type_="foreignkey")
    for name in ("progress_json", "kinds_json", "language", "branch_id"):
        op.drop_column("runs", name)
    for name in ("tree_id", "character_id"):
        op.alter_column("runs", name, existing_type=sa.String(), nullable=False)


def _check(table: str, column: str, values: tuple[str, ...]) -> None:
    """Say anew what a column may hold."""
    name = op.f(f"ck_{table}_one_of_{column}")
    listed = ", ".join(f"'{each}'" for each in values)
    op.drop_constraint(name, table, type_="check")
    op.create_check_constraint(name, table, f"{column} IN ({listed})")
