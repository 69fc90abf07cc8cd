"""lives in full

Purpose: imports with items to review, lorebooks, exports; signed identity records, petitions, forms,
voices; characters die, are archived and erased down to tombstones.
Lock: on `characters`, `embryo_drafts`, `tree_nodes` and `citations` briefly and exclusively, as
columns and a trigger are added.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "004"
down_revision = "003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "exports",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_user_id", sa.String(), nullable=False),
        sa.Column("subject_ref", sa.Text(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("file_name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "format IN ('card_v2_json', 'card_v3_json', 'card_png', 'card_charx', 'identity_package')",
            name=op.f("ck_exports_one_of_format"),
        ),
        sa.ForeignKeyConstraint(
            ["owner_user_id"], ["users.id"], name=op.f("fk_exports_owner_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exports")),
    )
    op.create_index(op.f("ix_exports_expires_at"), "exports", ["expires_at"], unique=False)
    op.create_index(
        op.f("ix_exports_owner_user_id_created_at_id"),
        "exports",
        ["owner_user_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "import_jobs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_user_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("file_name", sa.Text(), nullable=False),
        sa.Column("report_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint(
            "kind IN ('character_card', 'lorebook', 'chat_log')",
            name=op.f("ck_import_jobs_one_of_kind"),
        ),
        sa.CheckConstraint(
            "status IN ('awaiting_review', 'completed', 'abandoned')",
            name=op.f("ck_import_jobs_one_of_status"),
        ),
        sa.ForeignKeyConstraint(
            ["owner_user_id"], ["users.id"], name=op.f("fk_import_jobs_owner_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_jobs")),
    )
    op.create_index(
        op.f("ix_import_jobs_owner_user_id_created_at_id"),
        "import_jobs",
        ["owner_user_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "export_files",
        sa.Column("export_id", sa.String(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["export_id"],
            ["exports.id"],
            name=op.f("fk_export_files_export_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("export_id", name=op.f("pk_export_files")),
    )
    op.create_table(
        "import_items",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("import_job_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("target_ref", sa.Text(), nullable=True),
        sa.Column("media_type", sa.Text(), nullable=True),
        sa.Column("size_bytes", sa.Integer(), nullable=True),
        sa.Column(
            "warnings_json",
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
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('embryo', 'lorebook_entry', 'file')", name=op.f("ck_import_items_one_of_kind")
        ),
        sa.CheckConstraint(
            "status IN ('parsed', 'pending_review', 'accepted', 'rejected', 'failed')",
            name=op.f("ck_import_items_one_of_status"),
        ),
        sa.ForeignKeyConstraint(
            ["import_job_id"],
            ["import_jobs.id"],
            name=op.f("fk_import_items_import_job_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_items")),
        sa.UniqueConstraint(
            "import_job_id", "number", name=op.f("uq_import_items_import_job_id_number")
        ),
    )
    op.create_index(
        op.f("ix_import_items_target_ref"), "import_items", ["target_ref"], unique=False
    )
    op.create_table(
        "import_files",
        sa.Column("import_item_id", sa.String(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["import_item_id"],
            ["import_items.id"],
            name=op.f("fk_import_files_import_item_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("import_item_id", name=op.f("pk_import_files")),
    )
    op.create_table(
        "form_anchors",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column(
            "stable_traits_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "permissions_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "taboos_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("variable_range_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_form_anchors_character_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_form_anchors")),
        sa.UniqueConstraint("character_id", name=op.f("uq_form_anchors_character_id")),
    )
    op.create_table(
        "forms",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("asset_ref", sa.Text(), nullable=True),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("settled_by_user_id", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint("kind IN ('primary', 'variant')", name=op.f("ck_forms_one_of_kind")),
        sa.CheckConstraint(
            "status IN ('candidate', 'confirmed', 'rejected', 'retired')",
            name=op.f("ck_forms_one_of_status"),
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_forms_character_id")
        ),
        sa.ForeignKeyConstraint(
            ["settled_by_user_id"], ["users.id"], name=op.f("fk_forms_settled_by_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_forms")),
    )
    op.create_index(
        op.f("ix_forms_character_id_created_at_id"),
        "forms",
        ["character_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "uq_forms_primary",
        "forms",
        ["character_id"],
        unique=True,
        postgresql_where=sa.text("kind = 'primary' AND status = 'confirmed'"),
    )
    op.create_table(
        "identity_records",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column("version_no", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_identity_records_character_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity_records")),
        sa.UniqueConstraint("character_id", name=op.f("uq_identity_records_character_id")),
    )
    op.create_table(
        "lorebooks",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_user_id", sa.String(), nullable=False),
        sa.Column("embryo_draft_id", sa.String(), nullable=True),
        sa.Column("character_id", sa.String(), nullable=True),
        sa.Column("import_job_id", sa.String(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("scan_depth", sa.Integer(), nullable=True),
        sa.Column("token_budget", sa.Integer(), nullable=True),
        sa.Column("is_recursive", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("source_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_lorebooks_character_id")
        ),
        sa.ForeignKeyConstraint(
            ["embryo_draft_id"],
            ["embryo_drafts.id"],
            name=op.f("fk_lorebooks_embryo_draft_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["import_job_id"],
            ["import_jobs.id"],
            name=op.f("fk_lorebooks_import_job_id"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["owner_user_id"], ["users.id"], name=op.f("fk_lorebooks_owner_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lorebooks")),
        sa.UniqueConstraint("import_job_id", name=op.f("uq_lorebooks_import_job_id")),
    )
    op.create_index(
        op.f("ix_lorebooks_character_id_created_at_id"),
        "lorebooks",
        ["character_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_lorebooks_embryo_draft_id"), "lorebooks", ["embryo_draft_id"], unique=False
    )
    op.create_index(
        op.f("ix_lorebooks_owner_user_id_created_at_id"),
        "lorebooks",
        ["owner_user_id", "created_at", "id"],
        unique=False,
    )
    op.create_table(
        "voice_profiles",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source_kind", sa.String(), nullable=False),
        sa.Column("source_ref", sa.Text(), nullable=True),
        sa.Column("is_current", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "clone_authorized", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
        sa.Column("authorization_ref", sa.Text(), nullable=True),
        sa.Column("authorized_by_user_id", sa.String(), nullable=True),
        sa.Column("authorized_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint(
            "source_kind IN ('stock', 'designed', 'cloned')",
            name=op.f("ck_voice_profiles_one_of_source_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["authorized_by_user_id"],
            ["users.id"],
            name=op.f("fk_voice_profiles_authorized_by_user_id"),
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_voice_profiles_character_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_voice_profiles")),
    )
    op.create_index(
        op.f("ix_voice_profiles_character_id_created_at_id"),
        "voice_profiles",
        ["character_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "uq_voice_profiles_current",
        "voice_profiles",
        ["character_id"],
        unique=True,
        postgresql_where=sa.text("is_current"),
    )
    op.create_table(
        "lorebook_entries",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("lorebook_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "keys_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "secondary_keys_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("selective_logic", sa.String(), nullable=False),
        sa.Column("is_constant", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("position", sa.String(), nullable=False),
        sa.Column("depth", sa.Integer(), server_default=sa.text("4"), nullable=False),
        sa.Column("insertion_order", sa.Integer(), server_default=sa.text("100"), nullable=False),
        sa.Column("probability", sa.Integer(), server_default=sa.text("100"), nullable=False),
        sa.Column("sticky", sa.Integer(), nullable=True),
        sa.Column("cooldown", sa.Integer(), nullable=True),
        sa.Column("delay", sa.Integer(), nullable=True),
        sa.Column("recursion_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("review_status", sa.String(), nullable=False),
        sa.Column("reviewed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.CheckConstraint(
            "position IN ('before_char', 'after_char', 'before_examples', 'after_examples', 'before_author_note', 'after_author_note', 'at_depth', 'outlet')",
            name=op.f("ck_lorebook_entries_one_of_position"),
        ),
        sa.CheckConstraint(
            "review_status IN ('pending_review', 'accepted', 'rejected')",
            name=op.f("ck_lorebook_entries_one_of_review_status"),
        ),
        sa.CheckConstraint(
            "selective_logic IN ('and_any', 'and_all', 'not_any', 'not_all')",
            name=op.f("ck_lorebook_entries_one_of_selective_logic"),
        ),
        sa.ForeignKeyConstraint(
            ["lorebook_id"],
            ["lorebooks.id"],
            name=op.f("fk_lorebook_entries_lorebook_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lorebook_entries")),
        sa.UniqueConstraint(
            "lorebook_id", "number", name=op.f("uq_lorebook_entries_lorebook_id_number")
        ),
    )
    op.create_table(
        "confirmations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("character_id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("requested_by_user_id", sa.String(), nullable=False),
        sa.Column("brief_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("arguments_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("character_version", sa.Integer(), nullable=True),
        sa.Column("decided_by_user_id", sa.String(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "(status = 'pending') = (decided_at IS NULL)", name=op.f("ck_confirmations_decided")
        ),
        sa.CheckConstraint(
            "kind IN ('tool_execution', 'death', 'weighty_memory', 'soul_forging')",
            name=op.f("ck_confirmations_one_of_kind"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'approved', 'denied', 'expired')",
            name=op.f("ck_confirmations_one_of_status"),
        ),
        sa.ForeignKeyConstraint(
            ["character_id"], ["characters.id"], name=op.f("fk_confirmations_character_id")
        ),
        sa.ForeignKeyConstraint(
            ["decided_by_user_id"], ["users.id"], name=op.f("fk_confirmations_decided_by_user_id")
        ),
        sa.ForeignKeyConstraint(
            ["requested_by_user_id"],
            ["users.id"],
            name=op.f("fk_confirmations_requested_by_user_id"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_confirmations_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_confirmations")),
    )
    op.create_index(
        op.f("ix_confirmations_character_id_created_at_id"),
        "confirmations",
        ["character_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "ix_confirmations_pending",
        "confirmations",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        op.f("ix_confirmations_requested_by_user_id_created_at_id"),
        "confirmations",
        ["requested_by_user_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        "uq_confirmations_pending",
        "confirmations",
        ["character_id", "kind"],
        unique=True,
        postgresql_where=sa.text("status = 'pending' AND kind <> 'tool_execution'"),
    )
    op.create_table(
        "identity_record_versions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("identity_record_id", sa.String(), nullable=False),
        sa.Column("version_no", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("previous_digest", sa.Text(), nullable=True),
        sa.Column("signed_digest", sa.Text(), nullable=False),
        sa.Column("signer", sa.Text(), nullable=False),
        sa.Column("petition_id", sa.String(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["identity_record_id"],
            ["identity_records.id"],
            name=op.f("fk_identity_record_versions_identity_record_id"),
        ),
        sa.ForeignKeyConstraint(
            ["petition_id"],
            ["confirmations.id"],
            name=op.f("fk_identity_record_versions_petition_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity_record_versions")),
        sa.UniqueConstraint(
            "identity_record_id",
            "version_no",
            name=op.f("uq_identity_record_versions_identity_record_id_version_no"),
        ),
    )
    op.create_table(
        "identity_packages",
        sa.Column("version_id", sa.String(), nullable=False),
        sa.Column("package_json", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["identity_record_versions.id"],
            name=op.f("fk_identity_packages_version_id"),
        ),
        sa.PrimaryKeyConstraint("version_id", name=op.f("pk_identity_packages")),
    )
    op.add_column("characters", sa.Column("died_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "characters", sa.Column("cooling_off_until", sa.DateTime(timezone=True), nullable=True)
    )
    op.add_column("characters", sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "ix_characters_death_pending",
        "characters",
        ["cooling_off_until"],
        unique=False,
        postgresql_where=sa.text("status = 'death_pending'"),
    )
    op.add_column("characters", sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("citations", sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("embryo_drafts", sa.Column("import_job_id", sa.String(), nullable=True))
    op.add_column(
        "embryo_drafts",
        sa.Column(
            "rehearsal_log_json",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
    )
    op.create_unique_constraint(
        op.f("uq_embryo_drafts_import_job_id"), "embryo_drafts", ["import_job_id"]
    )
    op.create_foreign_key(
        op.f("fk_embryo_drafts_import_job_id"),
        "embryo_drafts",
        "import_jobs",
        ["import_job_id"],
        ["id"],
    )
    op.add_column("tree_nodes", sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(
        """
        CREATE TRIGGER identity_record_versions_append_only
        BEFORE UPDATE OR DELETE ON identity_record_versions
        FOR EACH ROW EXECUTE FUNCTION refuse_change()
        """
    )
    op.execute(
        """
        CREATE TRIGGER identity_record_versions_no_truncate
        BEFORE TRUNCATE ON identity_record_versions
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
        """
    )
    op.execute(
        """
        CREATE FUNCTION check_identity_baseline() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            -- At the end of the transaction: the row as it is then, and the newest version, must
            -- say the same, and an approved petition must stand behind it. Erasure is free.
            IF EXISTS (
                SELECT 1 FROM characters AS subject
                WHERE subject.id = NEW.id AND subject.status <> 'purged'
                AND NOT EXISTS (
                    SELECT 1 FROM identity_records AS record
                    JOIN identity_record_versions AS version
                      ON version.identity_record_id = record.id
                     AND version.version_no = record.version_no
                    JOIN identity_packages AS stored ON stored.version_id = version.id
                    JOIN confirmations AS petition ON petition.id = version.petition_id
                    WHERE record.character_id = subject.id
                      AND petition.character_id = subject.id
                      AND (petition.kind, petition.status) = ('soul_forging', 'approved')
                      AND stored.package_json #>> '{sections,identity,name}' = subject.name
                      AND stored.package_json #> '{sections,identity,baseline}'
                          = subject.identity_baseline_json
                )
            ) THEN
                RAISE EXCEPTION 'a baseline is what the identity record says for a petition'
                    USING ERRCODE = 'MG003';
            END IF;
            RETURN NULL;
        END
        $$
        """
    )
    op.execute(
        """
        CREATE CONSTRAINT TRIGGER characters_keep_their_identity
        AFTER UPDATE ON characters DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        WHEN ((OLD.name, OLD.identity_baseline_json) IS DISTINCT FROM
              (NEW.name, NEW.identity_baseline_json))
        EXECUTE FUNCTION check_identity_baseline()
        """
    )
    _events_of_trees("'tree_pruned', 'tree_erased'")
    op.execute(
        """
        CREATE FUNCTION check_lives() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM FROM fresh
            JOIN mirror_trees ON mirror_trees.id = fresh.tree_id
            JOIN characters ON characters.id = mirror_trees.character_id
            WHERE characters.status <> 'active';
            IF FOUND THEN
                RAISE EXCEPTION 'a tree grows while its character lives' USING ERRCODE = 'MG004';
            END IF;
            RETURN NULL;
        END
        $$
        """
    )
    op.execute(
        """
        CREATE TRIGGER tree_nodes_of_the_living AFTER INSERT ON tree_nodes
        REFERENCING NEW TABLE AS fresh
        FOR EACH STATEMENT EXECUTE FUNCTION check_lives()
        """
    )
    _guard_nodes(
        # The one change of what is final: its text goes, and the tombstone stays for ever.
        """
        AND (OLD.erased_at IS NOT NULL OR NEW.erased_at IS NULL
             OR NEW.content <> '' OR NEW.reasoning IS NOT NULL
             OR (OLD.status, OLD.realm, OLD.content_version, OLD.supersedes_node_id)
                IS DISTINCT FROM
                (NEW.status, NEW.realm, NEW.content_version, NEW.supersedes_node_id))
        """
    )


def downgrade() -> None:
    """Go back; not while the log of a tree says that it was erased."""
    _guard_nodes("")
    op.execute("DROP TRIGGER tree_nodes_of_the_living ON tree_nodes")
    op.execute("DROP FUNCTION check_lives()")
    _events_of_trees("'tree_pruned'")
    op.execute("DROP TRIGGER characters_keep_their_identity ON characters")
    op.execute("DROP FUNCTION check_identity_baseline()")
    op.execute("DROP TRIGGER identity_record_versions_append_only ON identity_record_versions")
    op.execute("DROP TRIGGER identity_record_versions_no_truncate ON identity_record_versions")
    op.drop_column("tree_nodes", "erased_at")
    op.drop_constraint(op.f("fk_embryo_drafts_import_job_id"), "embryo_drafts", type_="foreignkey")
    op.drop_constraint(op.f("uq_embryo_drafts_import_job_id"), "embryo_drafts", type_="unique")
    op.drop_column("embryo_drafts", "rehearsal_log_json")
    op.drop_column("embryo_drafts", "import_job_id")
    op.drop_column("citations", "erased_at")
    op.drop_column("characters", "erased_at")
    op.drop_column("characters", "archived_at")
    op.drop_index(
        "ix_characters_death_pending",
        table_name="characters",
        postgresql_where=sa.text("status = 'death_pending'"),
    )
    op.drop_column("characters", "cooling_off_until")
    op.drop_column("characters", "died_at")
    op.drop_table("identity_packages")
    op.drop_table("identity_record_versions")
    op.drop_index(
        "uq_confirmations_pending",
        table_name="confirmations",
        postgresql_where=sa.text("status = 'pending' AND kind <> 'tool_execution'"),
    )
    op.drop_index(
        op.f("ix_confirmations_requested_by_user_id_created_at_id"), table_name="confirmations"
    )
    op.drop_index(
        "ix_confirmations_pending",
        table_name="confirmations",
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.drop_index(op.f("ix_confirmations_character_id_created_at_id"), table_name="confirmations")
    op.drop_table("confirmations")
    op.drop_table("lorebook_entries")
    op.drop_index(
        "uq_voice_profiles_current",
        table_name="voice_profiles",
        postgresql_where=sa.text("is_current"),
    )
    op.drop_index(op.f("ix_voice_profiles_character_id_created_at_id"), table_name="voice_profiles")
    op.drop_table("voice_profiles")
    op.drop_index(op.f("ix_lorebooks_owner_user_id_created_at_id"), table_name="lorebooks")
    op.drop_index(op.f("ix_lorebooks_embryo_draft_id"), table_name="lorebooks")
    op.drop_index(op.f("ix_lorebooks_character_id_created_at_id"), table_name="lorebooks")
    op.drop_table("lorebooks")
    op.drop_table("identity_records")
    op.drop_index(
        "uq_forms_primary",
        table_name="forms",
        postgresql_where=sa.text("kind = 'primary' AND status = 'confirmed'"),
    )
    op.drop_index(op.f("ix_forms_character_id_created_at_id"), table_name="forms")
    op.drop_table("forms")
    op.drop_table("form_anchors")
    op.drop_table("import_files")
    op.drop_index(op.f("ix_import_items_target_ref"), table_name="import_items")
    op.drop_table("import_items")
    op.drop_table("export_files")
    op.drop_index(op.f("ix_import_jobs_owner_user_id_created_at_id"), table_name="import_jobs")
    op.drop_table("import_jobs")
    op.drop_index(op.f("ix_exports_owner_user_id_created_at_id"), table_name="exports")
    op.drop_index(op.f("ix_exports_expires_at"), table_name="exports")
    op.drop_table("exports")


def _events_of_trees(last: str) -> None:
    name = op.f("ck_tree_events_one_of_type")
    op.drop_constraint(name, "tree_events")
    op.create_check_constraint(
        name,
        "tree_events",
        "type IN ('node_planted', 'node_finished', 'entry_moved', 'path_canonized', "
        f"'node_cited', 'tree_transplanted', {last})",
    )


def _guard_nodes(exception: str) -> None:
    op.execute("DROP TRIGGER tree_nodes_no_update ON tree_nodes")
    identity = "id, {0}.tree_id, {0}.parent_node_id, {0}.node_type, {0}.created_at"
    op.execute(
        f"""
        CREATE TRIGGER tree_nodes_no_update BEFORE UPDATE ON tree_nodes FOR EACH ROW
        WHEN ((OLD.status <> 'bud' {exception})
              OR (OLD.{identity.format("OLD")}) IS DISTINCT FROM (NEW.{identity.format("NEW")}))
        EXECUTE FUNCTION refuse_change()
        """
    )
