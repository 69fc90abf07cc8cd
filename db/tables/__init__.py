"""The tables of every noun; importing this package registers all of them on `metadata`."""

from db.columns import BranchRow, Table
from db.tables.accounts import (
    AppSettings,
    AuditEvent,
    Credential,
    Idempotency,
    LoginSession,
    Role,
    RoleGrant,
    Setting,
    User,
)
from db.tables.assets import Asset, EntryAsset
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
from db.tables.deltas import BranchEvent, Delta, RedoStep
from db.tables.entities import CharacterRelationship, Stackable, StoryEntity, Visual
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
from db.tables.plot import Happening, HappeningAwareness, HappeningInvolvement, Lore, Thread
from db.tables.runs import ContextPart, Run, RunContext, RunError, RunEvent, RunEventText
from db.tables.stories import (
    Branch,
    Chapter,
    EraFlip,
    Story,
    StoryDefinition,
    StoryEntry,
    StoryStyle,
)
from db.tables.transfers import (
    Export,
    ExportFile,
    FileWarning,
    ImportFile,
    ImportItem,
    ImportJob,
)
from db.tables.translations import Embedding, Translation

metadata = Table.metadata

__all__ = [
    "AppSettings",
    "Asset",
    "AuditEvent",
    "Branch",
    "BranchEvent",
    "BranchRow",
    "Brief",
    "Calendar",
    "CalendarEras",
    "CalendarTier",
    "Canonization",
    "Chapter",
    "Character",
    "CharacterRelationship",
    "Citation",
    "ContextPart",
    "Credential",
    "Custodianship",
    "Delta",
    "Embedding",
    "EmbryoDraft",
    "EntryAsset",
    "EraFlip",
    "Export",
    "ExportFile",
    "FileWarning",
    "Form",
    "FormAnchor",
    "Happening",
    "HappeningAwareness",
    "HappeningInvolvement",
    "Idempotency",
    "IdentityPackage",
    "IdentityRecord",
    "IdentityRecordVersion",
    "ImportFile",
    "ImportItem",
    "ImportJob",
    "LoginSession",
    "Lore",
    "LoreRecursion",
    "Lorebook",
    "LorebookEntry",
    "MirrorTree",
    "Petition",
    "RedoStep",
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
    "Stackable",
    "Story",
    "StoryDefinition",
    "StoryEntity",
    "StoryEntry",
    "StoryStyle",
    "Table",
    "Thread",
    "Translation",
    "TreeEvent",
    "TreeNode",
    "TreeTransplant",
    "User",
    "Visual",
    "VoiceProfile",
    "metadata",
]
