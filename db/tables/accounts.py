"""Accounts: who may sign in, what they may do, and the record of what they did.

Source: spec soul-mirror, sections 0, 6 and 7; glossary, section 5.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint

from db.columns import (
    Table,
    created_at_column,
    enum_column,
    id_column,
    json_column,
    one_of,
    reference,
    text_column,
    time_column,
    version_column,
)
from db.enums import AuditOutcome, CredentialKind, RoleName, UserStatus


class User(Table, table=True):
    """A person with an account."""

    __tablename__ = "users"
    __table_args__ = (one_of("status", UserStatus),)

    id: str = id_column()
    name: str = text_column()
    status: UserStatus = enum_column()
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()


class Credential(Table, table=True):
    """One way in which a user can prove who they are; `identifier` is unique within its kind."""

    __tablename__ = "credentials"
    __table_args__ = (
        one_of("kind", CredentialKind),
        UniqueConstraint("kind", "identifier"),
        Index(None, "user_id"),
    )

    id: str = id_column()
    user_id: str = reference("users.id")
    kind: CredentialKind = enum_column()
    identifier: str = text_column()
    verified_at: datetime | None = time_column()
    created_at: datetime = created_at_column()


class LoginSession(Table, table=True):
    """A bearer token that was handed out. Only its SHA-256 is kept: the token has 256 random bits,
    so a slow hash would protect nothing and cost every request.
    """

    __tablename__ = "login_sessions"
    __table_args__ = (UniqueConstraint("token_hash"), Index(None, "user_id"))

    id: str = id_column()
    user_id: str = reference("users.id")
    token_hash: str = text_column()
    expires_at: datetime | None = time_column()
    revoked_at: datetime | None = time_column()
    created_at: datetime = created_at_column()


class Role(Table, table=True):
    """A named set of rights."""

    __tablename__ = "roles"
    __table_args__ = (one_of("name", RoleName), UniqueConstraint("name"))

    id: str = id_column()
    name: RoleName = enum_column()
    created_at: datetime = created_at_column()


class RoleGrant(Table, table=True):
    """That a user has a role."""

    __tablename__ = "role_grants"
    __table_args__ = (UniqueConstraint("user_id", "role_id"),)

    id: str = id_column()
    user_id: str = reference("users.id")
    role_id: str = reference("roles.id")
    created_at: datetime = created_at_column()


class AuditEvent(Table, table=True):
    """An act that was done, tried or refused. Append-only: a trigger refuses change and removal.

    `arguments` holds ids and short values, never private text, so that erasing data can leave
    this table untouched.
    """

    __tablename__ = "audit_events"
    __table_args__ = (
        one_of("outcome", AuditOutcome),
        Index(None, "actor_user_id", "created_at", "id"),
    )

    id: str = id_column()
    actor_user_id: str | None = reference("users.id", nullable=True)
    action: str = text_column()
    subject_id: str | None = text_column(nullable=True)
    arguments: dict[str, Any] = json_column("arguments_json")
    outcome: AuditOutcome = enum_column()
    created_at: datetime = created_at_column()


class Idempotency(Table, table=True):
    """That a root field of a request with a client's key was carried out, and what answered.

    Written inside the mutation's own transaction, so a key exists exactly when its change does.
    """

    __tablename__ = "idempotency"
    __table_args__ = (UniqueConstraint("actor_user_id", "key", "field"), Index(None, "created_at"))

    id: str = id_column()
    actor_user_id: str = reference("users.id")
    key: str = text_column()
    # The root field's name in the response.
    field: str = text_column()
    # SHA-256 of the whole request, files included.
    request_hash: str = text_column()
    answer: dict[str, Any] = json_column("answer_json", nullable=True)
    created_at: datetime = created_at_column()


class Setting(Table, table=True):
    """A value that all servers on this database share, such as the key that signs cursors."""

    __tablename__ = "settings"
    __table_args__ = (UniqueConstraint("key"),)

    id: str = id_column()
    key: str = text_column()
    value: Any = json_column("value_json")
    created_at: datetime = created_at_column()
