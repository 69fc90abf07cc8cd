"""Drafts: made by hand or read from a card, until they are activated.

Source: spec soul-mirror, section 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import delete, func, update
from sqlmodel import col

from db.enums import CharacterStatus, CustodianshipStatus, EmbryoStatus, Origin
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, columns, param, statement
from db.tables import Character, Custodianship, EmbryoDraft, RehearsalTurn, RuntimeSeat
from services.access import Viewer, hold_row, require_version, visible
from services.accounts import record_act
from services.characters.fields import FORBIDDEN_ZONE, changed_fields, changed_identity
from services.characters.identity import issue_identity_record
from services.characters.living import baseline_of
from services.errors import Conflict, Invalid, LimitReached
from services.exports import drop_exports
from services.imports import abandon_import
from services.lorebooks import hand_over

# What a person must have looked at before a draft becomes a character: key and label.
CHECKLIST = (
    ("identity", "The name and the description say who this character is."),
    ("boundaries", "The forbidden zone holds everything that must never happen to this character."),
    ("custody", "I take custody of this character and answer for what it does."),
)
# Turns of trial talk that a draft keeps; then it must be cleared.
MAX_REHEARSAL = 50

EMBRYOS = PagedList(
    "embryos",
    EmbryoDraft,
    sort=[
        SortKey(col(EmbryoDraft.created_at), is_descending=True),
        SortKey(col(EmbryoDraft.id), is_descending=True),
    ],
    where=lambda: visible(EmbryoDraft),
)


def _checklist(confirmed: Collection[str] = ()) -> list[dict[str, Any]]:
    return [
        {"key": key, "label": label, "is_confirmed": key in confirmed} for key, label in CHECKLIST
    ]


async def insert_imported(
    writing: Writing,
    viewer: Viewer,
    identity: dict[str, Any],
    source_card: dict[str, Any],
    import_job_id: str,
) -> EmbryoDraft:
    """Make a draft of a card that was read: who it shows, the untouched original, the import."""
    return await _insert_embryo(
        writing,
        viewer,
        Origin.IMPORTED,
        identity,
        source_card=source_card,
        import_job_id=import_job_id,
    )


async def create_embryo(
    writing: Writing, viewer: Viewer, origin: Origin, identity: dict[str, Any]
) -> EmbryoDraft:
    """Make a draft by hand; `identity` has the field names of a card and maybe forbidden_zone.

    Raises Invalid.
    """
    identity = changed_identity({}, {"name": None, **identity}, "input", "identity")
    embryo = await _insert_embryo(writing, viewer, origin, identity)
    await record_act(writing, viewer, "embryo_created", embryo.id, {"origin": origin})
    return embryo


async def _insert_embryo(
    writing: Writing,
    viewer: Viewer,
    origin: Origin,
    identity: dict[str, Any],
    **imported: Any,
) -> EmbryoDraft:
    return await writing.insert(
        EmbryoDraft,
        owner_user_id=viewer.signed_in_id,
        origin=origin,
        status=EmbryoStatus.DRAFT,
        provisional_identity=identity,
        checklist_points=_checklist(),
        **imported,
    )


def status_of(confirmed: Collection[str], turns: Sequence[Any]) -> EmbryoStatus:
    """How far a draft has come that was not issued: by its confirmed points and its trial talk."""
    if all(key in confirmed for key, _ in CHECKLIST):
        return EmbryoStatus.READY
    return EmbryoStatus.REHEARSING if turns else EmbryoStatus.DRAFT


async def hold_draft(
    writing: Writing, viewer: Viewer, embryo_id: str, *path: str | int
) -> EmbryoDraft:
    """A draft that can still be changed, held. Raises NotFound and Conflict (ALREADY_ACTIVATED)."""
    embryo = await hold_row(writing, viewer, EmbryoDraft, embryo_id, *path)
    require_draft(embryo, *path)
    return embryo


def require_draft(embryo: EmbryoDraft, *path: str | int) -> None:
    """Raises Conflict with ALREADY_ACTIVATED when it has become a character."""
    if embryo.status == EmbryoStatus.ISSUED:
        raise Conflict(
            "This draft has become a character already: ask for the character.",
            "ALREADY_ACTIVATED",
            path,
        )


@statement(EmbryoDraft)
def _change_embryo(*names: str) -> Any:
    changed: dict[str, Any] = {name: getattr(EmbryoDraft, name) for name in names}
    return (
        update(EmbryoDraft)
        .where(col(EmbryoDraft.id) == param("of_id"))
        .values({column: param(f"new_{name}", column.type) for name, column in changed.items()})
        .values(updated_at=func.clock_timestamp(), version=col(EmbryoDraft.version) + 1)
        .returning(*columns(EmbryoDraft))
    )


async def _change(writing: Writing, embryo: EmbryoDraft, **values: Any) -> EmbryoDraft:
    """Change columns of a draft that the caller holds, and count the change."""
    given = {f"new_{name}": value for name, value in values.items()}
    changed = await writing.first(_change_embryo(*sorted(values)), of_id=embryo.id, **given)
    assert changed is not None
    return changed


async def update_embryo(
    writing: Writing,
    viewer: Viewer,
    embryo_id: str,
    *,
    identity: dict[str, Any] | None = None,
    confirmed: Sequence[str] | None = None,
    expected_version: int | None = None,
) -> EmbryoDraft:
    """Change who the draft is to be, which points are confirmed, or both.

    `identity` has the changed fields by their names in a card; `confirmed` are all points that
    are confirmed from now on. Where it is left out, a changed forbidden zone takes back the
    confirmation of the boundaries, and any other changed field that of the identity. Raises
    NotFound, Conflict (CONFLICT, ALREADY_ACTIVATED) and Invalid (TEXT_…, UNKNOWN_CHECKLIST_KEY).
    """
    embryo = await hold_draft(writing, viewer, embryo_id, "input", "embryoId")
    require_version(embryo, expected_version, "input", "expectedVersion")
    before = embryo.provisional_identity
    after = changed_identity(before, identity or {}, "input", "identity")
    fields = changed_fields(before, after)
    if confirmed is None:
        taken_back = {"boundaries" if each == FORBIDDEN_ZONE else "identity" for each in fields}
        points = _confirmed_points(embryo) - taken_back
    else:
        points = _known_points(confirmed)
    if not fields and points == _confirmed_points(embryo):
        return embryo
    await record_act(
        writing,
        viewer,
        "embryo_updated",
        embryo.id,
        {"fields": fields, "confirmed": sorted(points)},
    )
    return await _change(
        writing,
        embryo,
        provisional_identity=after,
        checklist_points=_checklist(points),
        status=status_of(points, embryo.rehearsal_turns),
    )


async def abandon_embryo(writing: Writing, viewer: Viewer, embryo_id: str) -> str:
    """Delete a draft with everything that came with it or was made of it; its id.

    Raises NotFound and Conflict (ALREADY_ACTIVATED). Spec soul-mirror, section 1: to abandon an
    embryo is to delete the draft.
    """
    embryo = await hold_draft(writing, viewer, embryo_id, "input", "embryoId")
    if embryo.import_job_id is not None:
        await abandon_import(writing, viewer, embryo.import_job_id)
    await drop_exports(writing, viewer, embryo.id)
    await writing.run(_delete_embryo(), of_id=embryo.id)
    await record_act(writing, viewer, "embryo_abandoned", embryo.id)
    return embryo.id


@statement(EmbryoDraft)
def _delete_embryo() -> Any:
    return delete(EmbryoDraft).where(col(EmbryoDraft.id) == param("of_id"))


def check_rehearsal_room(embryo: EmbryoDraft, *path: str | int) -> None:
    """Raises LimitReached (REHEARSAL_FULL) when the draft keeps as many turns as it may."""
    if len(embryo.rehearsal_turns) >= MAX_REHEARSAL:
        raise LimitReached(
            f"A rehearsal keeps {MAX_REHEARSAL} turns: clear it to go on.", "REHEARSAL_FULL", path
        )


async def add_rehearsal_turn(
    writing: Writing, viewer: Viewer, embryo_id: str, turn: RehearsalTurn
) -> EmbryoDraft:
    """Put a finished turn behind the others, nowhere else is it noted.

    Raises NotFound, Conflict (ALREADY_ACTIVATED) and LimitReached (REHEARSAL_FULL).
    """
    embryo = await hold_draft(writing, viewer, embryo_id, "embryoId")
    check_rehearsal_room(embryo, "embryoId")
    return await _keep_turns(writing, embryo, [*embryo.rehearsal_turns, turn.to_json()])


async def clear_rehearsal(writing: Writing, viewer: Viewer, embryo_id: str) -> EmbryoDraft:
    """Forget the trial talk of a draft. Raises NotFound and Conflict (ALREADY_ACTIVATED)."""
    embryo = await hold_draft(writing, viewer, embryo_id, "input", "embryoId")
    return await _keep_turns(writing, embryo, []) if embryo.rehearsal_turns else embryo


async def _keep_turns(
    writing: Writing, embryo: EmbryoDraft, turns: list[dict[str, Any]]
) -> EmbryoDraft:
    status = status_of(_confirmed_points(embryo), turns)
    return await _change(writing, embryo, rehearsal_turns=turns, status=status)


async def activate_embryo(
    writing: Writing, viewer: Viewer, embryo_id: str, confirmed: Sequence[str]
) -> Character:
    """Issue the character of a draft, with its custodianship, its seat and its identity record.

    Every point of the checklist must be confirmed, now or before. Raises NotFound, Conflict
    (ALREADY_ACTIVATED) and Invalid (CONFIRMATION_REQUIRED, UNKNOWN_CHECKLIST_KEY).
    """
    embryo = await hold_draft(writing, viewer, embryo_id, "input", "embryoId")
    _check_complete(_known_points(confirmed) | _confirmed_points(embryo))
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
    await hand_over(writing, viewer, embryo, character)
    await issue_identity_record(writing, viewer, character, None)
    every_point = [key for key, _ in CHECKLIST]
    await _change(
        writing,
        embryo,
        status=EmbryoStatus.ISSUED,
        checklist_points=_checklist(every_point),
    )
    await record_act(writing, viewer, "mirror_activated", character.id, {"embryo_id": embryo.id})
    return character


def _confirmed_points(embryo: EmbryoDraft) -> set[str]:
    return {point.key for point in embryo.checklist if point.is_confirmed}


def _known_points(confirmed: Sequence[str]) -> set[str]:
    known = [key for key, _ in CHECKLIST]
    unknown = [key for key in confirmed if key not in known]
    if unknown:
        raise Invalid(
            f"The checklist has no {unknown[0]!r}: its keys are {', '.join(known)}.",
            "UNKNOWN_CHECKLIST_KEY",
            ("input", "confirmed"),
        )
    return set(confirmed)


def _check_complete(confirmed: Collection[str]) -> None:
    missing = [key for key, _ in CHECKLIST if key not in confirmed]
    if missing:
        raise Invalid(
            f"Confirm every point of the checklist: {', '.join(missing)} is missing.",
            "CONFIRMATION_REQUIRED",
            ("input", "confirmed"),
        )


async def list_embryos(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[EmbryoDraft]:
    """The viewer's drafts, newest first."""
    return await EMBRYOS.page(reading, request, **viewer.parameters)
