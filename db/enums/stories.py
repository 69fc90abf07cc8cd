"""Closed sets of values of stories and their branches.

Source: spec aventuras; glossary, section 6.
"""

from __future__ import annotations

from enum import StrEnum


class StoryStatus(StrEnum):
    """How far a story has come."""

    DRAFT = "draft"
    ACTIVE = "active"
    ARCHIVED = "archived"


class StoryMode(StrEnum):
    """How a person takes part in a story."""

    ADVENTURE = "adventure"
    CREATIVE = "creative"


class Narration(StrEnum):
    """In which person a story is told."""

    FIRST = "first"
    SECOND = "second"
    THIRD = "third"


class EntryKind(StrEnum):
    """What an entry of a story is."""

    USER_ACTION = "user_action"
    AI_REPLY = "ai_reply"
    SYSTEM = "system"
    OPENING = "opening"


class EntityKind(StrEnum):
    """What an actor of a story's world is."""

    CHARACTER = "character"
    LOCATION = "location"
    ITEM = "item"
    FACTION = "faction"


class ItemSlot(StrEnum):
    """How a character has an item: the key of the character's state."""

    EQUIPPED = "equipped_items"
    INVENTORY = "inventory"


class EntityStatus(StrEnum):
    """Whether an entity has come into the story, or gone for good."""

    STAGED = "staged"
    ACTIVE = "active"
    RETIRED = "retired"


class InjectionMode(StrEnum):
    """When a row comes into a prompt."""

    ALWAYS = "always"
    AUTO = "auto"
    DISABLED = "disabled"


class CollisionReason(StrEnum):
    """Why an entity was marked as a possible duplicate of a namesake."""

    ALIKE = "alike"
    AMBIGUOUS = "ambiguous"
    DISTINCT = "distinct"
    IN_SCENE = "in-scene"
    NO_SIGNAL = "no-signal"
    SAME_PARENT = "same-parent"


class ThreadStatus(StrEnum):
    """How a strand of the plot stands."""

    PENDING = "pending"
    ACTIVE = "active"
    RESOLVED = "resolved"
    FAILED = "failed"


class DeltaSource(StrEnum):
    """Who changed a branch."""

    AI_CLASSIFIER = "ai_classifier"
    PIGGYBACK_TAGGED_BLOCK = "piggyback_tagged_block"
    PER_TURN_CLASSIFIER = "per_turn_classifier"
    PERIODIC_CLASSIFIER = "periodic_classifier"
    USER_EDIT = "user_edit"
    LORE_AGENT = "lore_agent"
    CHAPTER_CLOSE = "chapter_close"


class DeltaOp(StrEnum):
    """What was done to a row of a branch."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class LoggedTable(StrEnum):
    """The tables whose changes are in the log of a branch."""

    STORY_ENTRIES = "story_entries"
    ENTITIES = "entities"
    LORE = "lore"
    THREADS = "threads"
    HAPPENINGS = "happenings"
    HAPPENING_INVOLVEMENTS = "happening_involvements"
    HAPPENING_AWARENESS = "happening_awareness"
    CHARACTER_RELATIONSHIPS = "character_relationships"
    CHAPTERS = "chapters"
    ENTRY_ASSETS = "entry_assets"
    TRANSLATIONS = "translations"
    BRANCH_ERA_FLIPS = "branch_era_flips"


class BranchTable(StrEnum):
    """The tables whose rows a fork copies: those whose changes are logged, the log, and what says
    which texts are embedded.
    """

    STORY_ENTRIES = "story_entries"
    ENTITIES = "entities"
    LORE = "lore"
    THREADS = "threads"
    HAPPENINGS = "happenings"
    HAPPENING_INVOLVEMENTS = "happening_involvements"
    HAPPENING_AWARENESS = "happening_awareness"
    CHARACTER_RELATIONSHIPS = "character_relationships"
    CHAPTERS = "chapters"
    ENTRY_ASSETS = "entry_assets"
    TRANSLATIONS = "translations"
    BRANCH_ERA_FLIPS = "branch_era_flips"
    EMBEDDINGS = "embeddings"
    DELTAS = "deltas"


class TranslationTarget(StrEnum):
    """What kind of row a translation belongs to."""

    ENTITY = "entity"
    LORE = "lore"
    THREAD = "thread"
    HAPPENING = "happening"
    STORY_ENTRY = "story_entry"
    CHARACTER_RELATIONSHIP = "character_relationship"
    CHAPTER = "chapter"


class BranchEventKind(StrEnum):
    """What happened to a branch."""

    ACTION = "action"
    UNDO = "undo"
    REDO = "redo"
    ROLLBACK = "rollback"
    NOTICE = "notice"


class DifferenceKind(StrEnum):
    """How a row of two branches differs, seen from the left one."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class AssetKind(StrEnum):
    """What a stored file is."""

    IMAGE = "image"
    AUDIO = "audio"
    FILE = "file"
