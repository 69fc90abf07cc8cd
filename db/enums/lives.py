"""Closed sets of values of accounts, characters, trees and runs.

Source: spec soul-mirror; glossary, section 6.
"""

from __future__ import annotations

from enum import StrEnum


class UserStatus(StrEnum):
    """Whether an account may sign in."""

    ACTIVE = "active"
    DISABLED = "disabled"


class RoleName(StrEnum):
    """What a user may do beyond their own things."""

    ADMINISTRATOR = "administrator"
    AUDITOR = "auditor"
    MEMBER = "member"


class CredentialKind(StrEnum):
    """How a user can prove who they are."""

    NAME = "name"
    EMAIL = "email"
    PASSKEY = "passkey"
    TRUSTED_THIRD_PARTY = "trusted_third_party"


class AuditOutcome(StrEnum):
    """How an act that was recorded ended."""

    ALLOWED = "allowed"
    CONFIRMED = "confirmed"
    DENIED = "denied"
    EXPIRED = "expired"
    FAILED = "failed"


class Origin(StrEnum):
    """Where a character comes from."""

    ORIGINAL = "original"
    ADOPTED = "adopted"
    IMPORTED = "imported"
    SERENDIPITY = "serendipity"


class EmbryoStatus(StrEnum):
    """How far a draft of a character has come."""

    DRAFT = "draft"
    REHEARSING = "rehearsing"
    READY = "ready"
    ISSUED = "issued"


class CharacterStatus(StrEnum):
    """Where a character stands in its life."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DEATH_PENDING = "death_pending"
    DECEASED = "deceased"
    PURGED = "purged"


class CustodianshipStatus(StrEnum):
    """Whether a user still governs a character."""

    ACTIVE = "active"
    ENDED = "ended"


class FormKind(StrEnum):
    """Which of a character's outward forms this is."""

    PRIMARY = "primary"
    VARIANT = "variant"


class FormStatus(StrEnum):
    """Whether a form is official."""

    CANDIDATE = "candidate"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    RETIRED = "retired"


class VoiceSource(StrEnum):
    """Where a voice comes from."""

    STOCK = "stock"
    DESIGNED = "designed"
    CLONED = "cloned"


class PetitionKind(StrEnum):
    """What a user is asked to decide."""

    TOOL_EXECUTION = "tool_execution"
    DEATH = "death"
    WEIGHTY_MEMORY = "weighty_memory"
    SOUL_FORGING = "soul_forging"


class PetitionStatus(StrEnum):
    """What became of a petition; expiry means refusal."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


class PetitionDecision(StrEnum):
    """What a user decides on a petition."""

    APPROVE = "approve"
    DENY = "deny"


class IdentitySection(StrEnum):
    """The parts that an identity record states apart."""

    IDENTITY = "identity"
    DATA = "data"
    RUNTIME_STATE = "runtime_state"


class LorePosition(StrEnum):
    """Where the text of a lorebook entry goes in a prompt."""

    BEFORE_CHAR = "before_char"
    AFTER_CHAR = "after_char"
    BEFORE_EXAMPLES = "before_examples"
    AFTER_EXAMPLES = "after_examples"
    BEFORE_AUTHOR_NOTE = "before_author_note"
    AFTER_AUTHOR_NOTE = "after_author_note"
    AT_DEPTH = "at_depth"
    OUTLET = "outlet"


class SelectiveLogic(StrEnum):
    """How the secondary keys of a lorebook entry count."""

    AND_ANY = "and_any"
    AND_ALL = "and_all"
    NOT_ANY = "not_any"
    NOT_ALL = "not_all"


class ReviewStatus(StrEnum):
    """Whether a person has taken something that was imported."""

    PENDING_REVIEW = "pending_review"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class ReviewDecision(StrEnum):
    """What a person decides about something that was imported."""

    ACCEPT = "accept"
    REJECT = "reject"


class ImportKind(StrEnum):
    """What was imported."""

    CHARACTER_CARD = "character_card"
    LOREBOOK = "lorebook"
    CHAT_LOG = "chat_log"


class ImportStatus(StrEnum):
    """How far an import has come."""

    AWAITING_REVIEW = "awaiting_review"
    COMPLETED = "completed"
    ABANDONED = "abandoned"


class ImportItemKind(StrEnum):
    """What one part of an import is."""

    EMBRYO = "embryo"
    LOREBOOK_ENTRY = "lorebook_entry"
    FILE = "file"


class ImportItemStatus(StrEnum):
    """What became of one part of an import."""

    PARSED = "parsed"
    PENDING_REVIEW = "pending_review"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"


class ExportFormat(StrEnum):
    """In what shape something leaves the server."""

    CARD_V2_JSON = "card_v2_json"
    CARD_V3_JSON = "card_v3_json"
    CARD_PNG = "card_png"
    CARD_CHARX = "card_charx"
    IDENTITY_PACKAGE = "identity_package"


class TreeStatus(StrEnum):
    """Whether a tree can still grow."""

    ACTIVE = "active"
    ARCHIVED = "archived"


class NodeType(StrEnum):
    """What a node of a mirror tree is."""

    QUESTION = "question"
    CANDIDATE_ANSWER = "candidate_answer"
    CONTINUED_THOUGHT = "continued_thought"


class NodeStatus(StrEnum):
    """How final the text of a node is."""

    BUD = "bud"
    PARTIAL = "partial"
    SOLIDIFIED = "solidified"


class TreeEventType(StrEnum):
    """What has changed in a tree."""

    NODE_PLANTED = "node_planted"
    NODE_FINISHED = "node_finished"
    ENTRY_MOVED = "entry_moved"
    PATH_CANONIZED = "path_canonized"
    NODE_CITED = "node_cited"
    TREE_TRANSPLANTED = "tree_transplanted"
    TREE_PRUNED = "tree_pruned"
    TREE_ERASED = "tree_erased"


class Realm(StrEnum):
    """In which of the three realms something counts."""

    REALITY = "reality"
    WORLD = "world"
    SIMULATION = "simulation"


class CitationTarget(StrEnum):
    """What kind of thing a citation points at."""

    TEXT_RANGE = "text_range"
    IMAGE_REGION = "image_region"
    PDF_PAGE_REGION = "pdf_page_region"
    ATTACHMENT = "attachment"
    MEDIA_TIME_RANGE = "media_time_range"


class RunKind(StrEnum):
    """On whose behalf a run works, or what at."""

    FOREGROUND = "foreground"
    BACKGROUND_DELEGATED = "background_delegated"
    TRANSLATION = "translation"


class RunStatus(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_CONFIRMATION = "awaiting_confirmation"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunEventType(StrEnum):
    """What a run's event says."""

    RUN_STARTED = "run_started"
    PHASE_STARTED = "phase_started"
    TEXT_DELTA = "text_delta"
    PHASE_FINISHED = "phase_finished"
    RUN_WARNING = "run_warning"
    RUN_PROGRESSED = "run_progressed"
    RUN_FINISHED = "run_finished"


class Visibility(StrEnum):
    """Who may read a run's event."""

    PUBLIC = "public"
    OWNER = "owner"
    INTERNAL = "internal"


class ContextPartKind(StrEnum):
    """What a part of a model's context is."""

    IDENTITY = "identity"
    FORBIDDEN_ZONE = "forbidden_zone"
    FORM = "form"
    PERSONA = "persona"
    MEMORY = "memory"
    CITATION = "citation"
    EXAMPLES = "examples"
    GREETING = "greeting"
    EARLIER_TALK = "earlier_talk"
    QUESTION = "question"
    ANSWER = "answer"


class ContextOmission(StrEnum):
    """Why a part is not in a model's context."""

    OVER_BUDGET = "over_budget"
    EMPTY = "empty"
    ERASED = "erased"


class TextChannel(StrEnum):
    """Which of a model's two streams a piece of text belongs to."""

    TEXT = "text"
    REASONING = "reasoning"
