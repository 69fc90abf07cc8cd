"""Accounts: the viewer, users, and the record of acts."""

from __future__ import annotations

from datetime import datetime
from typing import cast

import strawberry
from strawberry.scalars import JSON

from db.enums import AuditOutcome, RoleName, UserStatus
from resolvers import accounts as resolve
from schema.base import Connection, Info, Node, described, enum, field, relation, row_type

enum(
    UserStatus,
    ACTIVE="May sign in.",
    DISABLED="May not sign in.",
)
enum(
    RoleName,
    ADMINISTRATOR="Runs the server; does not see private texts.",
    AUDITOR="Reads everybody's acts.",
    MEMBER="An ordinary user.",
)
enum(
    AuditOutcome,
    ALLOWED="It was done.",
    CONFIRMED="It was done after the user confirmed it.",
    DENIED="It was refused.",
    EXPIRED="Nobody confirmed it in time, so it was refused.",
    FAILED="It was tried and went wrong.",
)


@row_type
class User(Node):
    """A person with an account."""

    name: str = field("What the person is called.")
    status: UserStatus = field("Whether the account may sign in.")
    created_at: datetime = field("When the account was made.")


@row_type
class AuditEvent(Node):
    """An act that was done, tried or refused; never changed or removed."""

    action: str = field("What was done, in snake case and the past tense.")
    subject_id: str | None = field("Id of the thing it was done to.")
    arguments: JSON = field("Ids and short values that belong to the act.")
    outcome: AuditOutcome = field("How it ended.")
    created_at: datetime = field("When.")


@described
class Viewer:
    """Whoever asks."""

    user: User | None = relation(
        resolve.users_of_viewers, "The account; null when nobody is signed in."
    )
    roles: list[RoleName] = field("What the account may do beyond its own things.")
    audit_events: Connection[AuditEvent] = relation(
        resolve.audit_events_of_viewers,
        "The account's own acts, newest first; everybody's for an auditor.",
    )


@strawberry.type
class AccountQuery:
    """Root fields about the viewer."""

    @strawberry.field(description="Whoever asks.")
    def viewer(self, info: Info) -> Viewer:
        """Whoever asks."""
        return cast("Viewer", resolve.viewer(info.context))
