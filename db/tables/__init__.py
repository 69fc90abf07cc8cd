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
from db.tables.calendars import Calendar, CalendarEras, CalendarTier
from db.tables.characters import (
    Character,
    Custodianship,
    EmbryoDraft,
    Form,
    FormAnchor,
    IdentityPackage,
    IdentityRecord,
    IdentityRecordVersion,
    RehearsalTurn,
    RuntimeSeat,
    VoiceProfile,
)
from db.tables.lorebooks import Lorebook, LorebookEntry, LoreRecursion
from db.tables.mirrors import (
    Canonization,
    Citation,
    MirrorTree,
    TreeEvent,
    TreeNode,
    TreeTransplant,
)
from db.tables.petitions import Brief, Petition
from db.tables.runs import ContextPart, Run, RunContext, RunError, RunEvent, RunEventText
from db.tables.transfers import (
    Export,
    ExportFile,
    FileWarning,
    ImportFile,
    ImportItem,
    ImportJob,
)

metadata = Table.metadata

__all__ = [
    "AuditEvent",
    "Brief",
    "Calendar",
    "CalendarEras",
    "CalendarTier",
    "Canonization",
    "Character",
    "Citation",
    "ContextPart",
    "Credential",
    "Custodianship",
    "EmbryoDraft",
    "Export",
    "ExportFile",
    "FileWarning",
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
    "LoreRecursion",
    "Lorebook",
    "LorebookEntry",
    "MirrorTree",
    "Petition",
    "RehearsalTurn",
    "Role",
    "RoleGrant",
    "Run",
    "RunContext",
    "RunError",
    "RunEvent",
    "RunEventText",
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
