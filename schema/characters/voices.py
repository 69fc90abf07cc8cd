"""Voices: what they are, and how they change."""

from __future__ import annotations

from datetime import datetime

import strawberry

from db.enums import VoiceSource
from resolvers import characters as resolve
from schema.accounts import User
from schema.base import (
    Node,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    row_type,
)
from schema.characters.forms import LazyCharacter

enum(
    VoiceSource,
    STOCK="One of a provider's own voices.",
    DESIGNED="Made for the character.",
    CLONED="Taken from a person, who must allow it.",
)


@row_type
class VoiceProfile(Node):
    """A voice of a character."""

    name: str = field("What it is called.")
    source_kind: VoiceSource = field("Where it comes from.")
    source_ref: str | None = field("Where it is kept, as it was given.")
    is_current: bool = field("Whether it was chosen for the character to speak with.")
    is_usable: bool = field(
        "Whether it may be spoken with now: a cloned one while its permission holds."
    )
    has_authorization: bool = field("Whether there is a permission, though it may have run out.")
    authorization_hint: str | None = field(
        "The end of what proves the permission; voiceAuthorizationRead shows all of it."
    )
    authorized_at: datetime | None = field("When the permission was noted.")
    expires_at: datetime | None = field("Until when the permission holds; null without an end.")
    created_at: datetime = field("When the voice was added.")
    version: int = field("Counts its changes, from 1.")
    character: LazyCharacter | None = relation(
        resolve.characters_of_forms, "The character that it belongs to."
    )
    authorized_by: User | None = relation(
        resolve.authorizers_of_voices, "Who noted the permission."
    )


@described
class VoiceAuthorization:
    """What proves that a voice may be cloned."""

    authorization_ref: str | None = field("As it was given; null once it was taken back.")


@described_input
class VoiceAddInput:
    """A voice that a character could have."""

    character_id: strawberry.ID = field("The character.")
    name: str = field("What it is called, 500 characters at most.")
    source_kind: VoiceSource = field("Where it comes from.")
    source_ref: str | None = field(
        "Where it is kept, 2,000 characters at most; it is kept as it is.", default=None
    )


@described
class VoiceAddPayload(Payload):
    """The new voice."""

    voice: VoiceProfile | None = field("The voice.")


@described_input
class VoiceAuthorizeCloneInput:
    """The permission of the person whose voice was cloned."""

    voice_id: strawberry.ID = field("The cloned voice.")
    authorization_ref: str = field(
        "What proves the permission, 2,000 characters at most. It is shown masked from then on."
    )
    expires_at: datetime | None = field(
        "Until when it holds, with a time zone; null without an end.", default=None
    )


@described
class VoiceAuthorizeClonePayload(Payload):
    """The voice that may be used."""

    voice: VoiceProfile | None = field("The voice.")


@described_input
class VoiceRevokeCloneInput:
    """A permission to take back."""

    voice_id: strawberry.ID = field("The cloned voice.")


@described
class VoiceRevokeClonePayload(Payload):
    """The voice that may not be used any more."""

    voice: VoiceProfile | None = field("The voice.")


@described_input
class VoiceAuthorizationReadInput:
    """A permission to look at."""

    voice_id: strawberry.ID = field("The cloned voice.")


@described
class VoiceAuthorizationReadPayload(Payload):
    """What proves a permission."""

    voice: VoiceProfile | None = field("The voice.")
    authorization: VoiceAuthorization | None = field("What proves its permission.")


@described_input
class VoiceSelectInput:
    """A voice to speak with."""

    voice_id: strawberry.ID = field("The voice.")


@described
class VoiceSelectPayload(Payload):
    """The voice that the character speaks with."""

    voice: VoiceProfile | None = field("The voice.")


@described_input
class VoiceRemoveInput:
    """A voice to remove."""

    voice_id: strawberry.ID = field("The voice.")


@described
class VoiceRemovePayload(Payload):
    """What is left."""

    character: LazyCharacter | None = field("The character that had the voice.")


@strawberry.type
class VoiceMutation:
    """Changes to voices."""

    voice_add: VoiceAddPayload = mutation(
        resolve.add_voice,
        input=VoiceAddInput,
        payload=VoiceAddPayload,
        description="Add a voice to a character.",
    )
    voice_authorize_clone: VoiceAuthorizeClonePayload = mutation(
        resolve.authorize_clone,
        input=VoiceAuthorizeCloneInput,
        payload=VoiceAuthorizeClonePayload,
        description="Note that the person whose voice was cloned allows it.",
    )
    voice_revoke_clone: VoiceRevokeClonePayload = mutation(
        resolve.revoke_clone,
        input=VoiceRevokeCloneInput,
        payload=VoiceRevokeClonePayload,
        description="Take that permission back, at once and in every state of the character.",
    )
    voice_authorization_read: VoiceAuthorizationReadPayload = mutation(
        resolve.read_authorization,
        input=VoiceAuthorizationReadInput,
        payload=VoiceAuthorizationReadPayload,
        description="Show what proves a permission; that it was read is noted as an act.",
    )
    voice_select: VoiceSelectPayload = mutation(
        resolve.select_voice,
        input=VoiceSelectInput,
        payload=VoiceSelectPayload,
        description="Let the character speak with this voice.",
    )
    voice_remove: VoiceRemovePayload = mutation(
        resolve.remove_voice,
        input=VoiceRemoveInput,
        payload=VoiceRemovePayload,
        description="Remove a voice, its permission with it.",
    )
