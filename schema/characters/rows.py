"""Characters and drafts, as they can be read."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import CharacterStatus, EmbryoStatus, Origin
from resolvers import characters as resolve
from resolvers import worlds as resolve_worlds
from schema.accounts import User
from schema.base import (
    Connection,
    Node,
    described,
    enum,
    field,
    relation,
    row_type,
)
from schema.characters.endings import Custodianship
from schema.characters.forms import Form, FormAnchor
from schema.characters.records import IdentityRecord
from schema.characters.seats import RuntimeSeat
from schema.characters.voices import VoiceProfile
from schema.searching import CHARACTER_SEARCH, LibraryResult

enum(
    Origin,
    ORIGINAL="Made here.",
    ADOPTED="Taken over from another user.",
    IMPORTED="Read from a file.",
    SERENDIPITY="Met by chance.",
)
enum(
    EmbryoStatus,
    DRAFT="Being written.",
    REHEARSING="In trial talk.",
    READY="Complete, waiting for confirmation.",
    ISSUED="Has become a character.",
)
enum(
    CharacterStatus,
    ACTIVE="Lives and can be talked with.",
    SUSPENDED="Set aside for now.",
    DEATH_PENDING="In the cooling-off period before death.",
    DECEASED="A read-only archive.",
    PURGED="Its data was erased.",
)

if TYPE_CHECKING:
    from schema.lorebooks import Lorebook
    from schema.mirrors import MirrorTree
    from schema.transfers import ImportJob
    from schema.worlds import Casting

LazyMirrorTree = Annotated["MirrorTree", strawberry.lazy("schema.mirrors")]
LazyCasting = Annotated["Casting", strawberry.lazy("schema.worlds")]
LazyLorebook = Annotated["Lorebook", strawberry.lazy("schema.lorebooks")]
LazyImportJob = Annotated["ImportJob", strawberry.lazy("schema.transfers")]


@row_type
class Character(Node):
    """A character that was activated and lives on."""

    name: str = field("What the character is called.")
    status: CharacterStatus = field("Where it stands in its life.")
    origin: Origin = field("Where it comes from.")
    identity_baseline: JSON = field(
        "Who it is at the core (core_anchor) and what must never happen (forbidden_zone)."
    )
    custodian: User | None = relation(
        resolve.custodians_of_characters, "The user who governs the character."
    )
    custodianship: Custodianship | None = relation(
        resolve.custodianships_of_characters, "That user's governing, from when to when."
    )
    seat: RuntimeSeat | None = relation(
        resolve.seats_of_characters, "The seat that a run must hold."
    )
    trees: Connection[LazyMirrorTree] = relation(
        resolve.trees_of_characters, "Mirror trees with this character, newest first."
    )
    search: LibraryResult = CHARACTER_SEARCH
    identity_record: IdentityRecord | None = relation(
        resolve.records_of_characters, "The signed history of who it is."
    )
    form_anchor: FormAnchor | None = relation(
        resolve.anchors_of_characters, "What its forms keep to; null while nothing was set."
    )
    forms: Connection[Form] = relation(
        resolve.forms_of_characters,
        "Its outward forms, newest first.",
        arguments={"status": "Only those in this state."},
    )
    primary_form: Form | None = relation(
        resolve.primary_forms_of_characters, "Its official primary form; null when it has none."
    )
    voices: Connection[VoiceProfile] = relation(
        resolve.voices_of_characters, "Its voices, oldest first."
    )
    current_voice: VoiceProfile | None = relation(
        resolve.current_voices_of_characters,
        "The voice it speaks with; null when none was chosen or that one may not be used.",
    )
    lorebooks: Connection[LazyLorebook] = relation(
        resolve.lorebooks_of_characters, "Its lorebooks, oldest first."
    )
    castings: Connection[LazyCasting] = relation(
        resolve_worlds.castings_of_characters, "Whom it plays in stories, oldest first."
    )
    created_at: datetime = field("When it was activated.")
    died_at: datetime | None = field("When its death was confirmed; nothing changes it any more.")
    cooling_off_until: datetime | None = field(
        "Until when its death can be taken back (deathRevoke)."
    )
    archived_at: datetime | None = field("Since when it is a read-only archive for good.")
    erased_at: datetime | None = field("Since when only tombstones are left of it.")
    version: int = field("Counts its changes, from 1.")


@described
class ChecklistPoint:
    """Something to look at before a draft becomes a character."""

    key: str = field("Pass it as confirmed when activating.")
    label: str = field("What is confirmed.")
    is_confirmed: bool = field("Whether it was confirmed.")


@described
class RehearsalTurn:
    """One turn of trial talk with a draft."""

    question: str = field("What was said to it.")
    answer: str = field("What it answered.")
    model: str = field("Which model answered, as its provider names it.")
    at: datetime = field("When the answer was complete.")


@row_type
class EmbryoDraft(Node):
    """A draft that may become a character."""

    origin: Origin = field("Where it comes from.")
    status: EmbryoStatus = field("How far it has come.")
    provisional_identity: JSON = field("Who it is to be, in the field names of a character card.")
    checklist: list[ChecklistPoint] = field("What must be confirmed before activation.")
    rehearsal: list[RehearsalTurn] = field("Trial talk, oldest first, 50 turns at most.")
    import_job: LazyImportJob | None = relation(
        resolve.import_jobs_of_embryos, "The import that made it, where it was read from a file."
    )
    lorebooks: Connection[LazyLorebook] = relation(
        resolve.lorebooks_of_embryos, "The lorebook that came with its card."
    )
    created_at: datetime = field("When it was made.")
    version: int = field("Counts its changes, from 1.")
