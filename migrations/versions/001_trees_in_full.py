"""trees in full

Purpose: trees can be edited, continued, transplanted, corrected and pruned, and watched by many
clients; which kinds of nodes may stand below which is held by the database.
Lock: on `mirror_trees`, `canonizations` and `runs` briefly and exclusively (columns and keys are
added or replaced); `tree_nodes` and `runs` are locked against writing while an index is built.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "001"
down_revision = "000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.add_column(
        "mirror_trees", sa.Column("last_seq", sa.Integer(), server_default="0", nullable=False)
    )
    op.add_column(
        "canonizations", sa.Column("corrects_canonization_id", sa.String(), nullable=True)
    )
    op.create_foreign_key(
        op.f("fk_canonizations_corrects_canonization_id"),
        "canonizations",
        "canonizations",
        ["corrects_canonization_id"],
        ["id"],
    )
    op.create_table(
        "tree_events",
        sa.Column("tree_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "type IN ('node_planted', 'node_finished', 'entry_moved', 'path_canonized', "
            "'node_cited', 'tree_transplanted', 'tree_pruned')",
            name=op.f("ck_tree_events_one_of_type"),
        ),
        sa.ForeignKeyConstraint(
            ["tree_id"], ["mirror_trees.id"], name=op.f("fk_tree_events_tree_id")
        ),
        sa.PrimaryKeyConstraint("tree_id", "seq", name=op.f("pk_tree_events")),
    )
    op.execute(
        """
        CREATE TRIGGER tree_events_append_only BEFORE UPDATE OR DELETE ON tree_events
        FOR EACH ROW EXECUTE FUNCTION refuse_change()
        """
    )
    op.execute(
        """
        CREATE TRIGGER tree_events_no_truncate BEFORE TRUNCATE ON tree_events
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
        """
    )
    op.create_table(
        "tree_transplants",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("new_tree_id", sa.String(), nullable=False),
        sa.Column("source_tree_id", sa.String(), nullable=False),
        sa.Column("source_node_id", sa.String(), nullable=False),
        sa.Column("source_version", sa.Integer(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["new_tree_id"], ["mirror_trees.id"], name=op.f("fk_tree_transplants_new_tree_id")
        ),
        sa.ForeignKeyConstraint(
            ["source_tree_id"],
            ["mirror_trees.id"],
            name=op.f("fk_tree_transplants_source_tree_id"),
        ),
        sa.ForeignKeyConstraint(
            ["source_node_id"], ["tree_nodes.id"], name=op.f("fk_tree_transplants_source_node_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tree_transplants")),
        sa.UniqueConstraint("new_tree_id", name=op.f("uq_tree_transplants_new_tree_id")),
    )
    op.create_index(
        op.f("ix_tree_transplants_source_tree_id_created_at_id"),
        "tree_transplants",
        ["source_tree_id", "created_at", "id"],
    )
    op.create_index(
        op.f("ix_tree_transplants_source_node_id"), "tree_transplants", ["source_node_id"]
    )
    op.create_index(
        op.f("ix_tree_nodes_supersedes_node_id_created_at_id"),
        "tree_nodes",
        ["supersedes_node_id", "created_at", "id"],
    )
    op.create_index(op.f("ix_runs_question_node_id"), "runs", ["question_node_id"])
    op.alter_column("runs", "question_node_id", nullable=True)
    _refer_to_nodes("SET NULL")
    op.execute(
        """
        CREATE FUNCTION check_tree_nodes() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            trouble text;
        BEGIN
            -- All rows of a statement at once, when all of them are there: their order is free.
            SELECT CASE
                WHEN below.parent_node_id IS NULL AND below.node_type <> 'question'
                    THEN 'a tree begins with a question'
                -- Below a question stand answers to it, and answers stand nowhere else.
                WHEN (above.node_type = 'question') <> (below.node_type = 'candidate_answer')
                    THEN format('no %s stands below a %s', below.node_type, above.node_type)
                ELSE 'a version stands where the node stands that it is a version of'
                END
            INTO trouble
            FROM fresh AS below
            LEFT JOIN tree_nodes AS above ON above.id = below.parent_node_id
            LEFT JOIN tree_nodes AS earlier ON earlier.id = below.supersedes_node_id
            WHERE below.parent_node_id IS NULL AND below.node_type <> 'question'
               OR (above.node_type = 'question') <> (below.node_type = 'candidate_answer')
               OR (earlier.tree_id, earlier.node_type) <> (below.tree_id, below.node_type)
               OR earlier.id IS NOT NULL
                  AND earlier.parent_node_id IS DISTINCT FROM below.parent_node_id
            LIMIT 1;
            IF FOUND THEN
                RAISE EXCEPTION '%', trouble USING ERRCODE = 'MG002';
            END IF;
            RETURN NULL;
        END
        $$
        """
    )
    op.execute(
        """
        CREATE TRIGGER tree_nodes_stand_in_order AFTER INSERT ON tree_nodes
        REFERENCING NEW TABLE AS fresh
        FOR EACH STATEMENT EXECUTE FUNCTION check_tree_nodes()
        """
    )


def downgrade() -> None:
    """Go back; not while there are runs whose question was pruned."""
    op.execute("DROP TRIGGER tree_nodes_stand_in_order ON tree_nodes")
    op.execute("DROP FUNCTION check_tree_nodes()")
    _refer_to_nodes(None)
    op.alter_column("runs", "question_node_id", nullable=False)
    op.drop_index(op.f("ix_runs_question_node_id"), table_name="runs")
    op.drop_index(op.f("ix_tree_nodes_supersedes_node_id_created_at_id"), table_name="tree_nodes")
    op.drop_table("tree_transplants")
    op.execute("DROP TRIGGER tree_events_append_only ON tree_events")
    op.execute("DROP TRIGGER tree_events_no_truncate ON tree_events")
    op.drop_table("tree_events")
    op.drop_column("canonizations", "corrects_canonization_id")
    op.drop_column("mirror_trees", "last_seq")


def _refer_to_nodes(on_delete: str | None) -> None:
    for column in ("question_node_id", "node_id"):
        name = op.f(f"fk_runs_{column}")
        op.drop_constraint(name, "runs", type_="foreignkey")
        op.create_foreign_key(name, "runs", "tree_nodes", [column], ["id"], ondelete=on_delete)
