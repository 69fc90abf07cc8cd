"""The tables of every noun; importing this package registers all of them on `metadata`."""

from db.columns import Table
from db.tables.accounts import (
    AuditEvent,
    Credential,
    Idempotency,
    LoginSession,
    Role,
    RoleGrant,
    Setting,
    User,
)
from db.tables.characters import Character, Custodianship, EmbryoDraft, RuntimeSeat
from db.tables.mirrors import (
    Canonization,
    Citation,
    MirrorTree,
    TreeEvent,
    TreeNode,
    TreeTransplant,
)
from db.tables.runs import Run, RunError, RunEvent

metadata = Table.metadata

__all__ = [
    "AuditEvent",
    "Canonization",
    "Character",
    "Citation",
    "Credential",
    "Custodianship",
    "EmbryoDraft",
    "Idempotency",
    "LoginSession",
    "MirrorTree",
    "Role",
    "RoleGrant",
    "Run",
    "RunError",
    "RunEvent",
    "RuntimeSeat",
    "Setting",
    "Table",
    "TreeEvent",
    "TreeNode",
    "TreeTransplant",
    "User",
    "metadata",
]
