"""Soul forging: changing who a character is at the core, which a person must approve.

There is no other way: the database refuses a baseline that the newest version of the identity
record does not state for an approved petition. Source: spec soul-mirror, sections 1 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from sqlalchemy import func, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.enums import AuditOutcome, PetitionKind
from db.reading import Writing, columns, param, statement
from db.tables import Brief, Character, Petition
from services.access import Viewer, require_version
from services.accounts import record_act
from services.characters.fields import FORBIDDEN_ZONE, changed_fields, changed_identity
from services.characters.identity import issue_identity_record
from services.characters.living import baseline_of, hold_character
from services.errors import Invalid
from services.petitions import open_petition
from services.text import MAX_LINE, checked_text

# A brief shows the changed piece of a text, or of the lines that come and go, up to here.
_SHOWN = 80
_SHOWN_LINES = 5


async def ask_identity_change(
    writing: Writing,
    viewer: Viewer,
    character_id: str,
    changes: dict[str, Any],
    purpose: str,
    expected_version: int | None,
) -> Petition:
    """Ask for a change of a character's baseline; nothing changes until it is approved.

    `changes` has fields by their names in a card, None to take one out. Raises NotFound, Conflict
    (CONFLICT, CHARACTER_READ_ONLY, PETITION_PENDING) and Invalid (TEXT_…, NOTHING_CHANGES).
    """
    character = await hold_character(writing, viewer, character_id, "input", "characterId")
    require_version(character, expected_version, "input", "expectedVersion")
    purpose = checked_text(purpose, "input", "purpose", max_length=MAX_LINE)
    before = _identity_of(character)
    after = changed_identity(before, changes, "input", "identity")
    fields = changed_fields(before, after)
    if not fields:
        raise Invalid(
            "This is what the character is already: change something.",
            "NOTHING_CHANGES",
            ("input", "identity"),
        )
    return await open_petition(
        writing,
        viewer,
        PetitionKind.SOUL_FORGING,
        character,
        _brief(character, purpose, {each: (before.get(each), after.get(each)) for each in fields}),
        {"identity": {each: after.get(each) for each in fields}},
    )


async def forge_soul(writing: Writing, viewer: Viewer, petition: Petition) -> None:
    """Carry out an approved change of a baseline; the identity record gets its next version.

    Raises Conflict (CONFLICT, CHARACTER_READ_ONLY) when the character has changed since it was
    asked for.
    """
    path = ("input", "petitionId")
    character = await hold_character(writing, viewer, petition.character_id, *path)
    require_version(character, petition.character_version, *path)
    changes = petition.arguments["identity"]
    after = changed_identity(_identity_of(character), changes, *path)
    changed = await writing.first(
        _change_baseline(),
        of_id=character.id,
        new_name=after["name"],
        new_baseline=baseline_of(after),
    )
    assert changed is not None
    await issue_identity_record(writing, viewer, changed, petition)
    await record_act(
        writing,
        viewer,
        "soul_forging",
        character.id,
        {"petition_id": petition.id, "fields": sorted(changes)},
        AuditOutcome.CONFIRMED,
    )


def _identity_of(character: Character) -> dict[str, Any]:
    """The baseline as one set of fields; an empty forbidden zone is not there."""
    baseline = character.identity_baseline
    zone = baseline.get(FORBIDDEN_ZONE)
    identity = {"name": character.name, **baseline.get("core_anchor", {})}
    return identity | ({FORBIDDEN_ZONE: zone} if zone else {})


def _brief(character: Character, purpose: str, differences: Mapping[str, tuple[Any, Any]]) -> Brief:
    pieces = [
        f"{field}: {_lines(*both) if field == FORBIDDEN_ZONE else _text(*both)}"
        for field, both in differences.items()
    ]
    return Brief(
        action="Change who the character is at the core (soul forging).",
        target=f"{character.name}, version {character.version}",
        purpose=purpose,
        data_involved="; ".join(pieces),
        consequence="The baseline is another from the next answer on, and the identity record "
        "gets a signed version that names this petition.",
        reversibility="The version before stays in the identity record; going back to it is "
        "another change to approve.",
    )


def _text(before: str | None, after: str | None) -> str:
    """What differs between two texts, without what stands the same before and behind it."""
    old, new = before or "", after or ""
    start = _shared(old, new)
    old, new = old[start:], new[start:]
    end = _shared(old[::-1], new[::-1])
    return f"{_shown(old[: len(old) - end])} becomes {_shown(new[: len(new) - end])}"


def _shared(one: str, other: str) -> int:
    """How many letters two texts begin alike with, up to the end of a word."""
    pairs = zip(one, other, strict=False)
    length = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    is_inside = any(
        each[length - 1 : length + 1].isalnum() for each in (one, other) if length < len(each)
    )
    # Scripts without blanks between words are not ASCII: there every letter may end the piece.
    while is_inside and length and one[length - 1].isascii() and one[length - 1].isalnum():
        length -= 1
    return length


def _lines(before: list[str] | None, after: list[str] | None) -> str:
    old, new = before or [], after or []
    added = [f"adds {_shown(each)}" for each in new if each not in old]
    removed = [f"takes away {_shown(each)}" for each in old if each not in new]
    pieces = removed + added or ["the same in another order"]
    more = len(pieces) - _SHOWN_LINES
    return ", ".join(pieces[:_SHOWN_LINES]) + (f" and {more} more" if more > 0 else "")


def _shown(text: str) -> str:
    if not text:
        return "nothing"
    return f"“{text}”" if len(text) <= _SHOWN else f"“{text[:_SHOWN]}…”"


@statement(Character)
def _change_baseline() -> Any:
    return (
        update(Character)
        .where(col(Character.id) == param("of_id"))
        .values(
            name=param("new_name"),
            identity_baseline_json=param("new_baseline", JSONB()),
            updated_at=func.clock_timestamp(),
            version=col(Character.version) + 1,
        )
        .returning(*columns(Character))
    )
