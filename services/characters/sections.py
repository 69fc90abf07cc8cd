"""What an identity record states of a character, in three sections that are kept apart.

Texts, times in ISO 8601 and whole numbers only, under keys in ASCII: what can be written in one
way only (services/characters/signing.py). Source: spec soul-mirror, section 1.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ScalarSelect, func, select
from sqlmodel import col

from db.enums import FormKind, FormStatus, IdentitySection
from db.reading import Writing, param, statement
from db.tables import (
    Canonization,
    Character,
    Custodianship,
    Form,
    FormAnchor,
    Lorebook,
    MirrorTree,
    RuntimeSeat,
    TreeNode,
    VoiceProfile,
)

# Random bytes in each section, so that nobody can guess a section that is withheld, or erased,
# and prove the guess by its digest.
_SALT_BYTES = 16


async def sections_of(writing: Writing, character: Character) -> dict[str, dict[str, Any]]:
    """The sections by name, as things stand now."""
    found: Any = await writing.first(_facts(), character_id=character.id)
    counts = {name: getattr(found, name) for name in _COUNTED}
    references = {name: getattr(found, name) for name in _REFERENCES}
    sections: dict[IdentitySection, dict[str, Any]] = {
        IdentitySection.IDENTITY: {
            "name": character.name,
            "origin": character.origin,
            "baseline": character.identity_baseline,
            "activated_at": written(character.created_at),
            "custody_since": written(found.custody_since),
        },
        IdentitySection.DATA: {
            "counts": counts,
            "references": {"embryo_draft": character.embryo_draft_id, **references},
        },
        IdentitySection.RUNTIME_STATE: {
            "status": character.status,
            "version": character.version,
            "seat_epoch": found.seat_epoch,
        },
    }
    return {
        name.value: {**section, "salt": secrets.token_hex(_SALT_BYTES)}
        for name, section in sections.items()
    }


def written(moment: datetime | None) -> str | None:
    """A moment in UTC with microseconds, as packages hold it."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


def _count(table: Any, *conditions: Any) -> ScalarSelect[int]:
    return select(func.count()).select_from(table).where(*conditions).scalar_subquery()


def _trees() -> Any:
    return select(col(MirrorTree.id)).where(col(MirrorTree.character_id) == param("character_id"))


# What is counted of a character's data, and the rows of it that are named.
_COUNTED: Mapping[str, Callable[[], ScalarSelect[int]]] = {
    "mirror_trees": lambda: _of(MirrorTree),
    "tree_nodes": lambda: _count(TreeNode, col(TreeNode.tree_id).in_(_trees())),
    "canonizations": lambda: _count(Canonization, col(Canonization.tree_id).in_(_trees())),
    "lorebooks": lambda: _of(Lorebook),
    "forms": lambda: _of(Form),
    "voice_profiles": lambda: _of(VoiceProfile),
}
_REFERENCES: Mapping[str, Callable[[], ScalarSelect[str]]] = {
    "custodianship": lambda: _reference(Custodianship.id),
    "runtime_seat": lambda: _reference(RuntimeSeat.id),
    "form_anchor": lambda: _reference(FormAnchor.id),
    "primary_form": lambda: _reference(
        Form.id,
        col(Form.kind) == FormKind.PRIMARY.value,
        col(Form.status) == FormStatus.CONFIRMED.value,
    ),
}


def _of(table: Any) -> ScalarSelect[int]:
    return _count(table, col(table.character_id) == param("character_id"))


def _reference(column: Any, *conditions: Any) -> ScalarSelect[Any]:
    table = column.class_
    of_character = col(table.character_id) == param("character_id")
    return select(column).where(of_character, *conditions).scalar_subquery()


@statement(object)
def _facts() -> Any:
    return select(
        *(count().label(name) for name, count in _COUNTED.items()),
        *(reference().label(name) for name, reference in _REFERENCES.items()),
        _reference(Custodianship.started_at).label("custody_since"),
        _reference(RuntimeSeat.epoch).label("seat_epoch"),
    )
