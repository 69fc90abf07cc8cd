"""Accounts: users, the tokens that sign them in, their roles, the record of acts, and idempotency.

Source: spec soul-mirror, sections 6 and 7.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import col

from db.enums import AuditOutcome, CredentialKind, RoleName, UserStatus
from db.ids import new_id
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, columns, param, statement
from db.tables import (
    AuditEvent,
    Credential,
    Idempotency,
    LoginSession,
    Role,
    RoleGrant,
    User,
)
from services.access import Viewer, visible
from services.errors import Conflict, Invalid
from services.hub import announce
from services.text import MAX_LINE, checked_text

LOCAL_USER_NAME = "local"
# After this a key is forgotten, and the same key means a new act.
IDEMPOTENCY_HOURS = 24
MAX_KEY = 200

AUDIT_EVENTS = PagedList(
    "audit_events",
    AuditEvent,
    sort=[
        SortKey(col(AuditEvent.created_at), is_descending=True),
        SortKey(col(AuditEvent.id), is_descending=True),
    ],
    where=lambda: visible(AuditEvent),
)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@statement(User)
def _sign_in_of_token() -> Any:
    seconds_left = func.extract("epoch", col(LoginSession.expires_at) - func.clock_timestamp())
    return (
        select(
            col(User.id),
            func.min(seconds_left).label("seconds_left"),
            func.array_remove(func.array_agg(col(Role.name)), None).label("roles"),
        )
        .select_from(LoginSession)
        .join(User, col(User.id) == col(LoginSession.user_id))
        .outerjoin(RoleGrant, col(RoleGrant.user_id) == col(User.id))
        .outerjoin(Role, col(Role.id) == col(RoleGrant.role_id))
        .where(
            col(LoginSession.token_hash) == param("token_hash"),
            col(LoginSession.revoked_at).is_(None),
            or_(
                col(LoginSession.expires_at).is_(None),
                col(LoginSession.expires_at) > func.clock_timestamp(),
            ),
            col(User.status) == UserStatus.ACTIVE.value,
        )
        .group_by(col(User.id))
    )


@dataclass(frozen=True, slots=True)
class SignIn:
    """Whom a token signs in, and for how many seconds more; None when it does not expire."""

    viewer: Viewer
    seconds_left: float | None


async def find_sign_in(reading: Reading, token: str) -> SignIn | None:
    """What a bearer token stands for, or None when it is unknown, expired or revoked."""
    row: Any = await reading.first(_sign_in_of_token(), token_hash=_hash(token))
    if row is None:
        return None
    left = None if row.seconds_left is None else float(row.seconds_left)
    return SignIn(Viewer(row.id, frozenset(RoleName(name) for name in row.roles)), left)


def sign_in_topic(user_id: str) -> str:
    """What is announced when a user's tokens or roles change."""
    return f"sign_in:{user_id}"


@statement(Idempotency)
def _lock() -> Any:
    return select(func.pg_advisory_xact_lock(func.hashtextextended(param("lock"), 0)))


@statement(User)
def _user_named() -> Any:
    return (
        select(*columns(User))
        .join(Credential, col(Credential.user_id) == col(User.id))
        .where(
            col(Credential.kind) == CredentialKind.NAME.value,
            col(Credential.identifier) == param("name"),
        )
    )


async def ensure_user(writing: Writing, name: str) -> User:
    """The user of that name, made if there is none. Raises Invalid.

    Of several servers that want to make one at the same time, the later ones wait for the first.
    """
    name = checked_text(name.strip(), "name", max_length=MAX_LINE)
    identifier = name.casefold()
    user = await writing.first(_user_named(), name=identifier)
    if user is None:
        await writing.run(_lock(), lock=f"user named {identifier}")
        user = await writing.first(_user_named(), name=identifier)
    if user is None:
        user = await writing.insert(User, name=name, status=UserStatus.ACTIVE)
        await writing.insert(
            Credential, user_id=user.id, kind=CredentialKind.NAME, identifier=identifier
        )
    return user


@statement(Role)
def _keep_role() -> Any:
    return (
        insert(Role)
        .values(id=param("id"), name=param("name"))
        .on_conflict_do_nothing(index_elements=["name"])
    )


@statement(RoleGrant)
def _keep_grant() -> Any:
    role_id = select(col(Role.id)).where(col(Role.name) == param("name")).scalar_subquery()
    return (
        insert(RoleGrant)
        .values(id=param("id"), user_id=param("user_id"), role_id=role_id)
        .on_conflict_do_nothing(index_elements=["user_id", "role_id"])
    )


async def grant_role(writing: Writing, user_id: str, role: RoleName) -> None:
    """Give a user a role; nothing happens when they have it."""
    await writing.run(_keep_role(), id=new_id("roles"), name=role)
    await writing.run(_keep_grant(), id=new_id("role_grants"), name=role, user_id=user_id)
    await announce(writing, sign_in_topic(user_id))


async def issue_token(writing: Writing, user_id: str, expires_at: datetime | None = None) -> str:
    """A new bearer token for a user. It is shown once: only its hash is kept."""
    token = f"mg_{secrets.token_urlsafe(32)}"
    await writing.insert(
        LoginSession, user_id=user_id, token_hash=_hash(token), expires_at=expires_at
    )
    return token


@statement(LoginSession)
def _revoke_tokens() -> Any:
    return (
        update(LoginSession)
        .where(
            col(LoginSession.user_id) == param("of_user"), col(LoginSession.revoked_at).is_(None)
        )
        .values(revoked_at=func.clock_timestamp())
    )


async def revoke_tokens(writing: Writing, user_id: str) -> int:
    """Take all tokens of a user back at once; how many there were."""
    await announce(writing, sign_in_topic(user_id))
    return await writing.run(_revoke_tokens(), of_user=user_id)


async def record_act(
    writing: Writing,
    viewer: Viewer,
    action: str,
    subject_id: str | None,
    arguments: dict[str, Any] | None = None,
    outcome: AuditOutcome = AuditOutcome.ALLOWED,
) -> None:
    """Add an act to the audit record. `arguments` holds ids and short values, no private text."""
    await writing.insert(
        AuditEvent,
        actor_user_id=viewer.user_id,
        action=action,
        subject_id=subject_id,
        arguments=arguments or {},
        outcome=outcome,
    )


async def list_acts(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[AuditEvent]:
    """The viewer's own acts, newest first; everybody's for an auditor."""
    return await AUDIT_EVENTS.page(
        reading,
        request,
        **viewer.parameters,
    )


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """A client's key, a digest of the whole request under it, and which of its root fields acts."""

    key: str
    request_hash: str
    field: str


def _of_key() -> list[Any]:
    return [
        col(Idempotency.actor_user_id) == param("viewer"),
        col(Idempotency.key) == param("key"),
    ]


@statement(Idempotency)
def _forget_old_key() -> Any:
    age = func.clock_timestamp() - timedelta(hours=IDEMPOTENCY_HOURS)
    return delete(Idempotency).where(*_of_key(), col(Idempotency.created_at) < age)


@statement(Idempotency)
def _claims_of_key() -> Any:
    return select(*columns(Idempotency)).where(*_of_key())


@statement(Idempotency)
def _keep_answer() -> Any:
    return (
        update(Idempotency)
        .where(*_of_key(), col(Idempotency.field) == param("of_field"))
        .values(answer_json=param("answer", JSONB()))
    )


async def claim_key(
    writing: Writing, viewer: Viewer, claim: IdempotencyClaim
) -> dict[str, Any] | None:
    """Take a key for the transaction's change: None when it is new, else the earlier answer.

    A second call waits until the first one's transaction has ended. Raises Conflict with
    IDEMPOTENCY_KEY_REUSED when something else was asked under the key, Invalid for a bad key.
    """
    if not 0 < len(claim.key) <= MAX_KEY or not claim.key.isprintable():
        raise Invalid(
            f"An Idempotency-Key has 1 to {MAX_KEY} printable characters.",
            "INVALID_IDEMPOTENCY_KEY",
        )
    user_id = viewer.signed_in_id
    await writing.run(_lock(), lock=f"{user_id} {claim.key}")
    await writing.run(_forget_old_key(), viewer=user_id, key=claim.key)
    earlier = await writing.all(_claims_of_key(), viewer=user_id, key=claim.key)
    for each in earlier:
        if each.request_hash != claim.request_hash:
            raise Conflict(
                "This Idempotency-Key was used for another request: send a new key.",
                "IDEMPOTENCY_KEY_REUSED",
            )
        if each.field == claim.field:
            return each.answer or {}
    await writing.insert(
        Idempotency,
        actor_user_id=user_id,
        key=claim.key,
        field=claim.field,
        request_hash=claim.request_hash,
    )
    return None


async def keep_answer(
    writing: Writing, viewer: Viewer, claim: IdempotencyClaim, answer: dict[str, Any]
) -> None:
    """Remember which rows answered, in the same transaction as the change itself."""
    await writing.run(
        _keep_answer(),
        viewer=viewer.signed_in_id,
        key=claim.key,
        of_field=claim.field,
        answer=answer,
    )
