"""Voices: where they come from, whether the cloned person allows it, and which one is spoken with.

What proves a permission is sensitive: lists show its masked form, and reading it is an act.
Source: spec soul-mirror, section 1 (`voice_profiles`) and section 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, delete, func, null, select, update
from sqlmodel import col

from db.enums import VoiceSource
from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Character, VoiceProfile
from services.access import Viewer, hold_row, require_row, visible
from services.accounts import record_act
from services.characters.living import hold_alive, hold_character
from services.errors import Conflict, Invalid
from services.text import MAX_LINE, MAX_REFERENCE, checked_text

_PATH = ("input", "voiceId")
# The driver stores this moment as infinity, and reads it back without a zone.
_INFINITY = datetime.max.replace(tzinfo=UTC)

VOICES_OF_CHARACTERS = PagedList(
    "voices_of_character",
    VoiceProfile,
    parent=col(VoiceProfile.character_id),
    sort=[SortKey(col(VoiceProfile.created_at)), SortKey(col(VoiceProfile.id))],
    where=lambda: visible(VoiceProfile),
)


@statement(VoiceProfile)
def _current_voices_of_characters() -> Any:
    return select(*columns(VoiceProfile)).where(
        any_of(VoiceProfile.character_id, "character_ids"),
        col(VoiceProfile.is_current),
        visible(VoiceProfile),
    )


async def current_voices_of_characters(
    reading: Reading, viewer: Viewer, character_ids: Sequence[str]
) -> dict[str, VoiceProfile]:
    """The voice that each character speaks with, where it may be used, by the character's id."""
    rows = await reading.all(
        _current_voices_of_characters(), character_ids=list(character_ids), **viewer.parameters
    )
    return {row.character_id: row for row in rows if row.is_usable}


async def add_voice(
    writing: Writing,
    viewer: Viewer,
    character_id: str,
    *,
    name: str,
    source_kind: VoiceSource,
    source_ref: str | None,
) -> VoiceProfile:
    """Add a voice; a cloned one may not be used before it is authorized.

    Raises NotFound, Invalid (TEXT_…) and Conflict (CHARACTER_READ_ONLY).
    """
    checked_text(name, "input", "name", max_length=MAX_LINE)
    if source_ref is not None:
        checked_text(source_ref, "input", "sourceRef", max_length=MAX_REFERENCE)
    character = await hold_alive(writing, viewer, character_id, "input", "characterId")
    voice = await writing.insert(
        VoiceProfile,
        character_id=character.id,
        name=name,
        source_kind=source_kind,
        source_ref=source_ref,
    )
    await _record(writing, viewer, "voice_added", voice)
    return voice


@statement(VoiceProfile)
def _authorize() -> Any:
    return (
        update(VoiceProfile)
        .where(col(VoiceProfile.id) == param("of_id"))
        .values(
            clone_authorized=True,
            authorization_ref=param("authorization_ref"),
            authorized_by_user_id=param("authorized_by"),
            authorized_at=func.clock_timestamp(),
            expires_at=param("expires_at", DateTime(timezone=True)),
            version=col(VoiceProfile.version) + 1,
        )
        .returning(*columns(VoiceProfile))
    )


async def authorize_clone(
    writing: Writing,
    viewer: Viewer,
    voice_id: str,
    *,
    authorization_ref: str,
    expires_at: datetime | None,
) -> VoiceProfile:
    """Note the permission of the person whose voice was cloned, in place of an earlier one.

    Raises NotFound, Invalid (TEXT_…, INVALID_TIME, VOICE_NOT_CLONED) and Conflict
    (CHARACTER_READ_ONLY).
    """
    checked_text(authorization_ref, "input", "authorizationRef", max_length=MAX_REFERENCE)
    expires_at = expires_at and _checked_expiry(expires_at)
    voice = await _hold_voice(writing, viewer, voice_id)
    if voice.source_kind != VoiceSource.CLONED:
        raise Invalid("Only a cloned voice needs a permission.", "VOICE_NOT_CLONED", _PATH)
    voice = await _changed(
        writing,
        _authorize(),
        of_id=voice.id,
        authorization_ref=authorization_ref,
        authorized_by=viewer.signed_in_id,
        expires_at=expires_at,
    )
    await _record(writing, viewer, "clone_authorized", voice)
    return voice


def _checked_expiry(moment: datetime) -> datetime:
    path = ("input", "expiresAt")
    if moment.tzinfo is None:
        raise Invalid("Say in which zone: end the time with Z.", "INVALID_TIME", path)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        moment = _INFINITY
    if moment == _INFINITY:
        raise Invalid("No such time is kept: leave it out for no end.", "INVALID_TIME", path)
    if moment <= datetime.now(UTC):
        raise Invalid("This time is over already.", "INVALID_TIME", path)
    return moment


@statement(VoiceProfile)
def _revoke() -> Any:
    return (
        update(VoiceProfile)
        .where(col(VoiceProfile.id) == param("of_id"))
        .values(
            clone_authorized=False,
            authorization_ref=null(),
            authorized_by_user_id=null(),
            authorized_at=null(),
            expires_at=null(),
            is_current=False,
            version=col(VoiceProfile.version) + 1,
        )
        .returning(*columns(VoiceProfile))
    )


async def revoke_clone(writing: Writing, viewer: Viewer, voice_id: str) -> VoiceProfile:
    """Take a permission back, at once: the voice is not spoken with any more, and what proved
    the permission is gone. It can be taken back from a character in any state: that is the right of
    the person whose voice it is.

    Raises NotFound and Conflict (CLONE_NOT_AUTHORIZED).
    """
    voice = await hold_row(writing, viewer, VoiceProfile, voice_id, *_PATH)
    if not voice.has_authorization:
        raise Conflict("There is no permission to take back.", "CLONE_NOT_AUTHORIZED", _PATH)
    voice = await _changed(writing, _revoke(), of_id=voice.id)
    await _record(writing, viewer, "clone_revoked", voice)
    return voice


async def read_authorization(writing: Writing, viewer: Viewer, voice_id: str) -> VoiceProfile:
    """The voice, for a caller who shows what proves its permission; that this was read is noted.

    Raises NotFound and Conflict (CLONE_NOT_AUTHORIZED). Spec soul-mirror, section 10.
    """
    voice = await require_row(writing, viewer, VoiceProfile, voice_id, *_PATH)
    if not voice.has_authorization:
        raise Conflict("There is no permission to read.", "CLONE_NOT_AUTHORIZED", _PATH)
    await _record(writing, viewer, "clone_authorization_read", voice)
    return voice


@statement(VoiceProfile)
def _choose(*, is_current: bool) -> Any:
    chosen = (
        update(VoiceProfile)
        .values(is_current=is_current, version=col(VoiceProfile.version) + 1)
        .returning(*columns(VoiceProfile))
    )
    if is_current:
        return chosen.where(col(VoiceProfile.id) == param("of_id"))
    of_character = col(VoiceProfile.character_id) == param("of_character")
    return chosen.where(of_character, col(VoiceProfile.is_current))


async def select_voice(writing: Writing, viewer: Viewer, voice_id: str) -> VoiceProfile:
    """Let the character speak with this voice, in place of the one before.

    Raises NotFound and Conflict (CLONE_NOT_AUTHORIZED, CHARACTER_READ_ONLY).
    """
    voice = await _hold_voice(writing, viewer, voice_id)
    if not voice.is_usable:
        raise Conflict(
            "The person whose voice this is has not allowed it, or not any more: "
            "authorize it first (voiceAuthorizeClone).",
            "CLONE_NOT_AUTHORIZED",
            _PATH,
        )
    if voice.is_current:
        return voice
    await writing.run(_choose(is_current=False), of_character=voice.character_id)
    voice = await _changed(writing, _choose(is_current=True), of_id=voice.id)
    await _record(writing, viewer, "voice_selected", voice)
    return voice


@statement(VoiceProfile)
def _remove() -> Any:
    return delete(VoiceProfile).where(col(VoiceProfile.id) == param("of_id"))


async def remove_voice(writing: Writing, viewer: Viewer, voice_id: str) -> Character:
    """Remove a voice, its permission with it; the character that had it.

    Raises NotFound and Conflict (CHARACTER_READ_ONLY).
    """
    voice = await _hold_voice(writing, viewer, voice_id)
    await writing.run(_remove(), of_id=voice.id)
    await _record(writing, viewer, "voice_removed", voice)
    return await require_row(writing, viewer, Character, voice.character_id)


async def _hold_voice(writing: Writing, viewer: Viewer, voice_id: str) -> VoiceProfile:
    """A voice; its character is held, and then the voice itself, which can be revoked by itself."""
    voice = await require_row(writing, viewer, VoiceProfile, voice_id, *_PATH)
    await hold_character(writing, viewer, voice.character_id, *_PATH)
    return await hold_row(writing, viewer, VoiceProfile, voice.id, *_PATH)


async def _changed(writing: Writing, change: Any, **values: Any) -> VoiceProfile:
    voice: VoiceProfile | None = await writing.first(change, **values)
    assert voice is not None  # it is held
    return voice


async def _record(writing: Writing, viewer: Viewer, action: str, voice: VoiceProfile) -> None:
    await record_act(writing, viewer, action, voice.id, {"character_id": voice.character_id})
