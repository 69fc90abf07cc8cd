"""Characters: from a card or a draft to an activated character and its life."""

from __future__ import annotations

import strawberry

from resolvers import characters as resolve
from schema.base import Connection, root_list, root_row
from schema.characters.changes import CharacterMutation
from schema.characters.drafts import DraftMutation, DraftSubscription
from schema.characters.endings import EndingMutation
from schema.characters.forms import FormMutation
from schema.characters.identity import IdentityMutation, IdentityQuery
from schema.characters.rows import Character, EmbryoDraft
from schema.characters.seats import SeatMutation
from schema.characters.voices import VoiceMutation

__all__ = [
    "Character",
    "CharacterMutation",
    "CharacterQuery",
    "DraftMutation",
    "DraftSubscription",
    "EmbryoDraft",
    "EndingMutation",
    "FormMutation",
    "IdentityMutation",
    "IdentityQuery",
    "SeatMutation",
    "VoiceMutation",
]


@strawberry.type
class CharacterQuery:
    """Root fields about characters."""

    characters: Connection[Character] = root_list(
        resolve.list_characters, "The viewer's characters, oldest first."
    )
    character: Character | None = root_row(resolve.character_by_id, "One character.")
    embryos: Connection[EmbryoDraft] = root_list(
        resolve.list_embryos, "The viewer's drafts, newest first."
    )
