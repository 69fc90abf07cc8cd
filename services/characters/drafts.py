"""Drafts: made by hand or read from a card, until they are activated.

Source: spec soul-mirror, section 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.enums import CharacterStatus, CustodianshipStatus, EmbryoStatus, Origin
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, param, statement
from db.tables import Character, Custodianship, EmbryoDraft, RuntimeSeat
from services.access import Viewer, hold_row, visible
from services.accounts import record_act
from services.cards import Card
from services.characters.living import baseline_of
from services.errors import Conflict, Invalid
from services.text import MAX_LINE, checked_text, refuse_unstorable

# What a person must have looked at before a draft becomes a character: key and label.
CHECKLIST = (
    ("identity", "The name and the description say who this character is."),
    ("boundaries", "The forbidden zone holds everything that must never happen to this character."),
    ("custody", "I take custody of this character and answer for what it does."),
)

EMBRYOS = PagedList(
    "embryos",
    EmbryoDraft,
    sort=[
        SortKey(col(EmbryoDraft.created_at), is_descending=True),
        SortKey(col(EmbryoDraft.id), is_descending=True),
    ],
    where=lambda: visible(EmbryoDraft),
)


def _checklist(confirmed: Sequence[str] = ()) -> list[dict[str, Any]]:
    return [
        {"key": key, "label": label, "is_confirmed": key in confirmed} for key, label in CHECKLIST
    ]


async def import_card(writing: Writing, viewer: Viewer, card: Card) -> EmbryoDraft:
    """Make a draft from a card that was read. Raises Invalid."""
    embryo = await _insert_embryo(writing, viewer, Origin.IMPORTED, card.fields, card.source)
    await record_act(
        writing,
        viewer,
        "card_imported",
        embryo.id,
        {"container": card.container, "spec": card.spec},
    )
    return embryo


async def create_embryo(
    writing: Writing, viewer: Viewer, origin: Origin, identity: dict[str, Any]
) -> EmbryoDraft:
    """Make a draft by hand; `identity` has the field names of a card and maybe forbidden_zone.

    Raises Invalid.
    """
    checked_text(identity.get("name") or "", "input", "identity", "name", max_length=MAX_LINE)
    refuse_unstorable(identity, ("input", "identity"))
    embryo = await _insert_embryo(writing, viewer, origin, identity, None)
    await record_act(writing, viewer, "embryo_created", embryo.id, {"origin": origin})
    return embryo


async def _insert_embryo(
    writing: Writing,
    viewer: Viewer,
    origin: Origin,
    identity: dict[str, Any],
    source_card: dict[str, Any] | None,
) -> EmbryoDraft:
    return await writing.insert(
        EmbryoDraft,
        owner_user_id=viewer.signed_in_id,
        origin=origin,
        status=EmbryoStatus.DRAFT,
        provisional_identity=identity,
        checklist_points=_checklist(),
        source_card=source_card,
    )


@statement(EmbryoDraft)
def _issue_embryo() -> Any:
    return (
        update(EmbryoDraft)
        .where(col(EmbryoDraft.id) == param("of_id"))
        .values(
            status=EmbryoStatus.ISSUED.value,
            checklist_json=param("checklist", JSONB()),
            updated_at=func.clock_timestamp(),
            version=col(EmbryoDraft.version) + 1,
        )
    )


async def activate_embryo(
    writing: Writing, viewer: Viewer, embryo_id: str, confirmed: Sequence[str]
) -> Character:
    """Issue the character of a draft, with its custodianship and its seat.

    Every point of the checklist must be confirmed. Raises NotFound, Conflict (ALREADY_ACTIVATED)
    and Invalid (CONFIRMATION_REQUIRED, UNKNOWN_CHECKLIST_KEY).
    """
    embryo = await hold_row(writing, viewer, EmbryoDraft, embryo_id, "input", "embryoId")
    if embryo.status == EmbryoStatus.ISSUED:
        raise Conflict(
            "This draft has become a character already: ask for the character.",
            "ALREADY_ACTIVATED",
            ("input", "embryoId"),
        )
    _check_confirmed([point.key for point in embryo.checklist], confirmed)
    identity = embryo.provisional_identity
    character = await writing.insert(
        Character,
        custodian_user_id=viewer.signed_in_id,
        embryo_draft_id=embryo.id,
        name=identity["name"],
        origin=embryo.origin,
        status=CharacterStatus.ACTIVE,
        identity_baseline=baseline_of(identity),
    )
    await writing.insert(
        Custodianship,
        user_id=viewer.signed_in_id,
        character_id=character.id,
        status=CustodianshipStatus.ACTIVE,
    )
    await writing.insert(RuntimeSeat, character_id=character.id)
    await writing.run(_issue_embryo(), of_id=embryo.id, checklist=_checklist(confirmed))
    await record_act(writing, viewer, "mirror_activated", character.id, {"embryo_id": embryo.id})
    return character


def _check_confirmed(required: Sequence[str], confirmed: Sequence[str]) -> None:
    path = ("input", "confirmed")
    unknown = [key for key in confirmed if key not in required]
    if unknown:
        raise Invalid(
            f"The checklist has no {unknown[0]!r}: its keys are {', '.join(required)}.",
            "UNKNOWN_CHECKLIST_KEY",
            path,
        )
    missing = [key for key in required if key not in confirmed]
    if missing:
        raise Invalid(
            f"Confirm every point of the checklist: {', '.join(missing)} is missing.",
            "CONFIRMATION_REQUIRED",
            path,
        )


async def list_embryos(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[EmbryoDraft]:
    """The viewer's drafts, newest first."""
    return await EMBRYOS.page(reading, request, **viewer.parameters)
