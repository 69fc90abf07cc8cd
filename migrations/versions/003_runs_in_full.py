"""runs in full

Purpose: the texts of runs' events stand in a table of their own, from which they can be erased; runs
say how far theirs are, how often their provider was asked and what it was given.
Lock: on `runs` and `run_events` exclusively, while the texts of all events are moved.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "003"
down_revision = "002"
branch_labels = None
depends_on = None

_ERASABLE = sa.text("ended_at IS NOT NULL AND texts_until_seq IS NULL")


def upgrade() -> None:
    """Go forward."""
    op.add_column("runs", sa.Column("texts_until_seq", sa.Integer(), nullable=True))
    op.add_column("runs", sa.Column("attempts", sa.Integer(), server_default="0", nullable=False))
    op.add_column(
        "runs", sa.Column("context_json", postgresql.JSONB(astext_type=sa.Text()), nullable=True)
    )
    op.execute("UPDATE runs SET attempts = 1 WHERE started_at IS NOT NULL")
    op.create_index("ix_runs_with_texts", "runs", ["ended_at"], postgresql_where=_ERASABLE)
    op.create_table(
        "run_event_texts",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_run_event_texts")),
    )
    op.execute(
        """
        INSERT INTO run_event_texts (run_id, seq, text)
        SELECT run_id, seq, payload_json ->> 'text' FROM run_events WHERE type = 'text_delta'
        """
    )
    op.create_foreign_key(
        op.f("fk_run_event_texts_run_id_seq"),
        "run_event_texts",
        "run_events",
        ["run_id", "seq"],
        ["run_id", "seq"],
    )
    _rewrite_events(
        "UPDATE run_events SET payload_json = payload_json - 'text' WHERE type = 'text_delta'"
    )
    # What went wrong stands on the run as well.
    _rewrite_events(
        "UPDATE run_events SET payload_json = payload_json #- '{error,message}'"
        " WHERE payload_json -> 'error' ? 'message'"
    )


def downgrade() -> None:
    """Go back; texts that were erased come back as empty ones."""
    _rewrite_events(
        """
        UPDATE run_events SET payload_json = payload_json || jsonb_build_object(
            'text', coalesce((SELECT text FROM run_event_texts AS kept
                              WHERE kept.run_id = run_events.run_id AND kept.seq = run_events.seq),
                             ''))
        WHERE type = 'text_delta'
        """
    )
    _rewrite_events(
        """
        UPDATE run_events SET payload_json = jsonb_set(
            payload_json, '{error,message}',
            to_jsonb(coalesce((SELECT error_message FROM runs WHERE runs.id = run_events.run_id), '')))
        WHERE payload_json -> 'error' ? 'code'
        """
    )
    op.drop_table("run_event_texts")
    op.drop_index("ix_runs_with_texts", table_name="runs", postgresql_where=_ERASABLE)
    op.drop_column("runs", "context_json")
    op.drop_column("runs", "attempts")
    op.drop_column("runs", "texts_until_seq")


def _rewrite_events(update: str) -> None:
    # The one time that events change: what they say stays, and where it stands moves.
    op.execute("ALTER TABLE run_events DISABLE TRIGGER run_events_append_only")
    op.execute(update)
    op.execute("ALTER TABLE run_events ENABLE TRIGGER run_events_append_only")
