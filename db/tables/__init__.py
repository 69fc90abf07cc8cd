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
from db.tables.characters import (
    Character,
    Custodianship,
    EmbryoDraft,
    Form,
    FormAnchor,
    IdentityPackage,
    IdentityRecord,
    IdentityRecordVersion,
    RuntimeSeat,
    VoiceProfile,
)
from db.tables.lorebooks import Lorebook, LorebookEntry
from db.tables.mirrors import (
    Canonization,
    Citation,
    MirrorTree,
    TreeEvent,
    TreeNode,
    TreeTransplant,
)
from db.tables.petitions import Brief, Petition
from db.tables.runs import Run, RunError, RunEvent
from db.tables.transfers import Export, ExportFile, ImportFile, ImportItem, ImportJob

metadata = Table.metadata

__all__ = [
    "AuditEvent",
    "Brief",
    "Canonization",
    "Character",
    "Citation",
    "Credential",
    "Custodianship",
    "EmbryoDraft",
    "Export",
    "ExportFile",
    "Form",
    "FormAnchor",
    "Idempotency",
    "IdentityPackage",
    "IdentityRecord",
    "IdentityRecordVersion",
    "ImportFile",
    "ImportItem",
    "ImportJob",
    "LoginSession",
    "Lorebook",
    "LorebookEntry",
    "MirrorTree",
    "Petition",
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
    "VoiceProfile",
    "metadata",
]
