"""baseline

Purpose: accounts, characters, mirror trees and runs can be kept.
Lock: none on existing tables; this is the first migration.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "000"
down_revision = None
branch_labels = None
depends_on = None


# Spec soul-mirror, section 0; more of them join with the tables of later migrations.
APPEND_ONLY = ("run_events", "audit_events", "canonizations")


def upgrade() -> None:
    """Go forward."""
    op.execute(
        """
        CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'rows of % never change: insert a new one', TG_TABLE_NAME
                USING ERRCODE = 'MG001';
        END
        $$
        """
    )
    op.create_table(
        "roles",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "name IN ('administrator', 'auditor', 'member')", name=op.f("ck_roles_one_of_name")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_roles")),
        sa.UniqueConstraint("name", name=op.f("uq_roles_name")),
    )
    op.create_table(
        "settings",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_settings")),
        sa.UniqueConstraint("key", name=op.f("uq_settings_key")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint("status IN ('active', 'disabled')", name=op.f("ck_users_one_of_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
    )
    op.create_table(
        "audit_events",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("actor_user_id", sa.String(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=True),
        sa.Column("arguments_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "outcome IN ('allowed', 'confirmed', 'denied', 'expired', 'failed')",
            name=op.f("ck_audit_events_one_of_outcome"),
        ),
        sa.ForeignKeyConstraint(
            ["actor_user_id"], ["users.id"], name=op.f("fk_audit_events_actor_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_events")),
    )
    op.create_index(
        op.f("ix_audit_events_actor_user_id_created_at_id"),
        "audit_events",
        ["actor_user_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "credentials",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("identifier", sa.Text(), nullable=False),
        sa.Column("verified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "kind IN ('name', 'email', 'passkey', 'trusted_third_party')",
            name=op.f("ck_credentials_one_of_kind"),
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_credentials_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
        sa.UniqueConstraint("kind", "identifier", name=op.f("uq_credentials_kind_identifier")),
    )
    op.create_index(op.f("ix_credentials_user_id"), "credentials", ["user_id"], unique=False)
    op.create_table(
        "embryo_drafts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_user_id", sa.String(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column(
            "provisional_identity_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False
        ),
        sa.Column("checklist_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("source_card_json", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint(
            "origin IN ('original', 'adopted', 'imported', 'serendipity')",
            name=op.f("ck_embryo_drafts_one_of_origin"),
        ),
        sa.CheckConstraint(
            "status IN ('draft', 'rehearsing', 'ready', 'issued')",
            name=op.f("ck_embryo_drafts_one_of_status"),
        ),
        sa.ForeignKeyConstraint(
            ["owner_user_id"], ["users.id"], name=op.f("fk_embryo_drafts_owner_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_embryo_drafts")),
    )
    op.create_index(
        op.f("ix_embryo_drafts_owner_user_id_created_at_id"),
        "embryo_drafts",
        ["owner_user_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "idempotency",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("actor_user_id", sa.String(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("answer_json", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["actor_user_id"], ["users.id"], name=op.f("fk_idempotency_actor_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_idempotency")),
        sa.UniqueConstraint(
            "actor_user_id", "key", "field", name=op.f("uq_idempotency_actor_user_id_key_field")
        ),
    )
    op.create_index(op.f("ix_idempotency_created_at"), "idempotency", ["created_at"], unique=False)
    op.create_table(
        "login_sessions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_login_sessions_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_sessions")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_login_sessions_token_hash")),
    )
    op.create_index(op.f("ix_login_sessions_user_id"), "login_sessions", ["user_id"], unique=False)
    op.create_table(
        "role_grants",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["role_id"], ["roles.id"], name=op.f("fk_role_grants_role_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_role_grants_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_role_grants")),
        sa.UniqueConstraint("user_id", "role_id", name=op.f("uq_role_grants_user_id_role_id")),
    )
    op.create_table(
        "characters",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("custodian_user_id", sa.String(), nullable=False),
        sa.Column("embryo_draft_id", sa.String(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column(
            "identity_baseline_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint(
            "origin IN ('original', 'adopted', 'imported', 'serendipity')",
            name=op.f("ck_characters_one_of_origin"),
        ),
        sa.CheckConstraint(
            "status IN ('active', 'suspended', 'death_pending', 'deceased', 'purged')",
            name=op.f("ck_characters_one_of_status"),
        ),
        sa.ForeignKeyConstraint(
            ["custodian_user_id"], ["users.id"], name=op.f("fk_characters_custodian_user_id")
        ),
        sa.ForeignKeyConstraint(
            ["embryo_draft_id"], ["embryo_drafts.id"], name=op.f("fk_characters_embryo_draft_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_characters")),
        sa.UniqueConstraint("embryo_draft_id", name=op.f("uq_characters_embryo_draft_id")),
    )
    op.create_index(
        op.f("ix_characters_custodian_user_id_created_at_id"),
        "characters",
        ["custodian_user_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "custodianships",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('active', 'ended')", name=op.f("ck_custodianships_one_of_status")
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_custodianships_character_id")
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_custodianships_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_custodianships")),
        sa.UniqueConstraint("character_id", name=op.f("uq_custodianships_character_id")),
    )
    op.create_index(op.f("ix_custodianships_user_id"), "custodianships", ["user_id"], unique=False)
    op.create_table(
        "mirror_trees",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("realm", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("working_entry_node_id", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint(
            "realm IN ('reality', 'world', 'simulation')", name=op.f("ck_mirror_trees_one_of_realm")
        ),
        sa.CheckConstraint(
            "status IN ('active', 'archived')", name=op.f("ck_mirror_trees_one_of_status")
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_mirror_trees_character_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mirror_trees")),
    )
    op.create_index(
        op.f("ix_mirror_trees_character_id_created_at_id"),
        "mirror_trees",
        ["character_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "runtime_seats",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("lease_holder", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_runtime_seats_character_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runtime_seats")),
        sa.UniqueConstraint("character_id", name=op.f("uq_runtime_seats_character_id")),
    )
    op.create_table(
        "tree_nodes",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("tree_id", sa.String(), nullable=False),
        sa.Column("parent_node_id", sa.Text(), nullable=True),
        sa.Column("node_type", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("realm", sa.String(), nullable=False),
        sa.Column("content", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("content_version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("supersedes_node_id", sa.String(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("reasoning", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "node_type IN ('question', 'candidate_answer', 'continued_thought')",
            name=op.f("ck_tree_nodes_one_of_node_type"),
        ),
        sa.CheckConstraint(
            "realm IN ('reality', 'world', 'simulation')", name=op.f("ck_tree_nodes_one_of_realm")
        ),
        sa.CheckConstraint(
            "status IN ('bud', 'partial', 'solidified')", name=op.f("ck_tree_nodes_one_of_status")
        ),
        sa.ForeignKeyConstraint(
            ["supersedes_node_id"], ["tree_nodes.id"], name=op.f("fk_tree_nodes_supersedes_node_id")
        ),
        sa.ForeignKeyConstraint(
            ["tree_id", "parent_node_id"],
            ["tree_nodes.tree_id", "tree_nodes.id"],
            name=op.f("fk_tree_nodes_tree_id_parent_node_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tree_id"], ["mirror_trees.id"], name=op.f("fk_tree_nodes_tree_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tree_nodes")),
        sa.UniqueConstraint("tree_id", "id", name=op.f("uq_tree_nodes_tree_id_id")),
    )
    op.create_index(
        op.f("ix_tree_nodes_parent_node_id_created_at_id"),
        "tree_nodes",
        ["parent_node_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_tree_nodes_tree_id_created_at_id"),
        "tree_nodes",
        ["tree_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "canonizations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("tree_id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("world_id", sa.Text(), nullable=True),
        sa.Column("endpoint_node_id", sa.String(), nullable=False),
        sa.Column("path_length", sa.Integer(), nullable=False),
        sa.Column("snapshot_digest", sa.Text(), nullable=False),
        sa.Column("confirmed_by_user_id", sa.String(), nullable=False),
        sa.Column(
            "confirmed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "scope <> 'world' OR world_id IS NOT NULL", name=op.f("ck_canonizations_world_id")
        ),
        sa.CheckConstraint(
            "scope IN ('reality', 'world', 'simulation')",
            name=op.f("ck_canonizations_one_of_scope"),
        ),
        sa.ForeignKeyConstraint(
            ["confirmed_by_user_id"],
            ["users.id"],
            name=op.f("fk_canonizations_confirmed_by_user_id"),
        ),
        sa.ForeignKeyConstraint(
            ["endpoint_node_id"], ["tree_nodes.id"], name=op.f("fk_canonizations_endpoint_node_id")
        ),
        sa.ForeignKeyConstraint(
            ["tree_id"], ["mirror_trees.id"], name=op.f("fk_canonizations_tree_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_canonizations")),
    )
    op.create_index(
        op.f("ix_canonizations_endpoint_node_id"),
        "canonizations",
        ["endpoint_node_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_canonizations_tree_id_confirmed_at_id"),
        "canonizations",
        ["tree_id", "confirmed_at", "id"],
        unique=False,
    )
    op.create_table(
        "citations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("target_kind", sa.String(), nullable=False),
        sa.Column("target_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("quote", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=True),
        sa.Column("source_version", sa.Integer(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "target_kind IN ('text_range', 'image_region', 'pdf_page_region', 'attachment', 'media_time_range')",
            name=op.f("ck_citations_one_of_target_kind"),
        ),
        sa.ForeignKeyConstraint(["node_id"], ["tree_nodes.id"], name=op.f("fk_citations_node_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_citations")),
    )
    op.create_index(
        op.f("ix_citations_node_id_created_at_id"),
        "citations",
        ["node_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("requested_by_user_id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column("tree_id", sa.String(), nullable=False),
        sa.Column("question_node_id", sa.String(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=True),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("seat_epoch", sa.Integer(), nullable=True),
        sa.Column("lease_holder", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "is_cancel_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
        sa.Column("last_seq", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("reserved_seq", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("usage_json", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(status = 'running') = (lease_holder IS NOT NULL)",
            name=op.f("ck_runs_lease_while_running"),
        ),
        sa.CheckConstraint(
            "kind IN ('foreground', 'background_delegated')", name=op.f("ck_runs_one_of_kind")
        ),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'awaiting_confirmation', 'succeeded', 'failed', 'cancelled')",
            name=op.f("ck_runs_one_of_status"),
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_runs_character_id")
        ),
        sa.ForeignKeyConstraint(["node_id"], ["tree_nodes.id"], name=op.f("fk_runs_node_id")),
        sa.ForeignKeyConstraint(
            ["question_node_id"], ["tree_nodes.id"], name=op.f("fk_runs_question_node_id")
        ),
        sa.ForeignKeyConstraint(
            ["requested_by_user_id"], ["users.id"], name=op.f("fk_runs_requested_by_user_id")
        ),
        sa.ForeignKeyConstraint(["tree_id"], ["mirror_trees.id"], name=op.f("fk_runs_tree_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(
        op.f("ix_runs_character_id_created_at_id"),
        "runs",
        ["character_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(op.f("ix_runs_node_id"), "runs", ["node_id"], unique=False)
    op.create_index(
        "ix_runs_open",
        "runs",
        ["status", "created_at"],
        unique=False,
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("visibility", sa.String(), nullable=False),
        sa.Column("payload_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "type IN ('run_started', 'phase_started', 'text_delta', 'phase_finished', 'run_warning', 'run_finished')",
            name=op.f("ck_run_events_one_of_type"),
        ),
        sa.CheckConstraint(
            "visibility IN ('public', 'owner', 'internal')",
            name=op.f("ck_run_events_one_of_visibility"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_events_run_id")),
        sa.PrimaryKeyConstraint("run_id", "seq", name=op.f("pk_run_events")),
    )
    for table in APPEND_ONLY:
        op.execute(
            f"""
            CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION refuse_change()
            """
        )
        op.execute(
            f"""
            CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
            """
        )
    op.execute(
        """
        CREATE TRIGGER tree_nodes_no_update BEFORE UPDATE ON tree_nodes FOR EACH ROW
        WHEN (OLD.status <> 'bud'
              OR (OLD.id, OLD.tree_id, OLD.parent_node_id, OLD.node_type, OLD.created_at)
                 IS DISTINCT FROM
                 (NEW.id, NEW.tree_id, NEW.parent_node_id, NEW.node_type, NEW.created_at))
        EXECUTE FUNCTION refuse_change()
        """
    )


def downgrade() -> None:
    """Go back."""
    for table in APPEND_ONLY:
        op.execute(f"DROP TRIGGER {table}_append_only ON {table}")
        op.execute(f"DROP TRIGGER {table}_no_truncate ON {table}")
    op.execute("DROP TRIGGER tree_nodes_no_update ON tree_nodes")
    op.execute("DROP FUNCTION refuse_change()")
    op.drop_table("run_events")
    op.drop_index("ix_runs_open", table_name="runs", postgresql_where=sa.text("ended_at IS NULL"))
    op.drop_index(op.f("ix_runs_node_id"), table_name="runs")
    op.drop_index(op.f("ix_runs_character_id_created_at_id"), table_name="runs")
    op.drop_table("runs")
    op.drop_index(op.f("ix_citations_node_id_created_at_id"), table_name="citations")
    op.drop_table("citations")
    op.drop_index(op.f("ix_canonizations_tree_id_confirmed_at_id"), table_name="canonizations")
    op.drop_index(op.f("ix_canonizations_endpoint_node_id"), table_name="canonizations")
    op.drop_table("canonizations")
    op.drop_index(op.f("ix_tree_nodes_tree_id_created_at_id"), table_name="tree_nodes")
    op.drop_index(op.f("ix_tree_nodes_parent_node_id_created_at_id"), table_name="tree_nodes")
    op.drop_table("tree_nodes")
    op.drop_table("runtime_seats")
    op.drop_index(op.f("ix_mirror_trees_character_id_created_at_id"), table_name="mirror_trees")
    op.drop_table("mirror_trees")
    op.drop_index(op.f("ix_custodianships_user_id"), table_name="custodianships")
    op.drop_table("custodianships")
    op.drop_index(op.f("ix_characters_custodian_user_id_created_at_id"), table_name="characters")
    op.drop_table("characters")
    op.drop_table("role_grants")
    op.drop_index(op.f("ix_login_sessions_user_id"), table_name="login_sessions")
    op.drop_table("login_sessions")
    op.drop_index(op.f("ix_idempotency_created_at"), table_name="idempotency")
    op.drop_table("idempotency")
    op.drop_index(op.f("ix_embryo_drafts_owner_user_id_created_at_id"), table_name="embryo_drafts")
    op.drop_table("embryo_drafts")
    op.drop_index(op.f("ix_credentials_user_id"), table_name="credentials")
    op.drop_table("credentials")
    op.drop_index(op.f("ix_audit_events_actor_user_id_created_at_id"), table_name="audit_events")
    op.drop_table("audit_events")
    op.drop_table("users")
    op.drop_table("settings")
    op.drop_table("roles")
