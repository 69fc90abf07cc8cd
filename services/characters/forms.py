"""Outward forms: the anchor that every form keeps to, candidates, and which form is official.

Whether a form keeps to its anchor is for the custodian to see: nothing here looks at pictures.
Source: spec soul-mirror, section 1 (`form_anchors`, `forms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.enums import FormKind, FormStatus
from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Form, FormAnchor
from db.tables.characters import VariableFeature
from services.access import Viewer, require_row, require_version, visible
from services.accounts import record_act
from services.characters.living import hold_alive, hold_character
from services.errors import Conflict, Invalid, LimitReached
from services.text import MAX_LINE, MAX_REFERENCE, checked_text

# Points in each list of an anchor: a person must be able to read them all before settling a form.
MAX_POINTS = 50
# A prompt carries the description of the primary form.
MAX_DESCRIPTION = 20_000

# How the act is called that brought a form into a state.
_ACTIONS = {
    FormStatus.CANDIDATE: "form_proposed",
    FormStatus.CONFIRMED: "form_settled",
    FormStatus.REJECTED: "form_rejected",
    FormStatus.RETIRED: "form_retired",
}

FORMS_OF_CHARACTERS = PagedList(
    "forms_of_character",
    Form,
    parent=col(Form.character_id),
    sort=[
        SortKey(col(Form.created_at), is_descending=True),
        SortKey(col(Form.id), is_descending=True),
    ],
    where=lambda: (
        visible(Form)
        & or_(param("form_status").is_(None), col(Form.status) == param("form_status"))
    ),
)


@statement(FormAnchor)
def _anchors_of_characters() -> Any:
    return select(*columns(FormAnchor)).where(
        any_of(FormAnchor.character_id, "character_ids"), visible(FormAnchor)
    )


async def anchors_of_characters(
    reading: Reading, viewer: Viewer, character_ids: Sequence[str]
) -> dict[str, FormAnchor]:
    """The form anchor of each character that has one, by the character's id."""
    rows = await reading.all(
        _anchors_of_characters(), character_ids=list(character_ids), **viewer.parameters
    )
    return {row.character_id: row for row in rows}


@statement(Form)
def _primary_forms_of_characters() -> Any:
    return select(*columns(Form)).where(
        any_of(Form.character_id, "character_ids"),
        col(Form.kind) == FormKind.PRIMARY.value,
        col(Form.status) == FormStatus.CONFIRMED.value,
        visible(Form),
    )


async def primary_forms_of_characters(
    reading: Reading, viewer: Viewer, character_ids: Sequence[str]
) -> dict[str, Form]:
    """The official primary form of each character that has one, by the character's id."""
    rows = await reading.all(
        _primary_forms_of_characters(), character_ids=list(character_ids), **viewer.parameters
    )
    return {row.character_id: row for row in rows}


@statement(FormAnchor)
def _replace_anchor() -> Any:
    return (
        update(FormAnchor)
        .where(col(FormAnchor.id) == param("of_id"))
        .values(
            stable_traits_json=param("stable_traits", JSONB()),
            permissions_json=param("permissions", JSONB()),
            taboos_json=param("taboos", JSONB()),
            variable_range_json=param("variable_ranges", JSONB()),
            updated_at=func.clock_timestamp(),
            version=col(FormAnchor.version) + 1,
        )
        .returning(*columns(FormAnchor))
    )


async def set_anchor(
    writing: Writing,
    viewer: Viewer,
    character_id: str,
    *,
    stable_traits: Sequence[str],
    permissions: Sequence[str],
    taboos: Sequence[str],
    variable_range: Sequence[VariableFeature],
    expected_version: int | None,
) -> FormAnchor:
    """Say what every form of a character keeps to, in place of what was said before.

    `expected_version` is the version that the caller saw; None asks for nothing.
    Raises NotFound, Invalid (TEXT_…, FEATURE_TWICE), LimitReached and Conflict (CONFLICT,
    CHARACTER_READ_ONLY).
    """
    values = {
        "stable_traits": _checked_points(stable_traits, "stableTraits"),
        "permissions": _checked_points(permissions, "permissions"),
        "taboos": _checked_points(taboos, "taboos"),
        "variable_ranges": _checked_ranges(variable_range),
    }
    character = await hold_character(writing, viewer, character_id, "input", "characterId")
    anchor = (await anchors_of_characters(writing, viewer, [character.id])).get(character.id)
    version_path = ("input", "expectedVersion")
    if anchor is None:
        if expected_version is not None:
            raise Conflict("There is no anchor yet: leave this out.", path=version_path)
        anchor = await writing.insert(FormAnchor, character_id=character.id, **values)
    else:
        require_version(anchor, expected_version, *version_path)
        anchor = await writing.first(_replace_anchor(), of_id=anchor.id, **values)
        assert anchor is not None  # the character is held
    await record_act(
        writing,
        viewer,
        "form_anchor_set",
        anchor.id,
        {"character_id": character.id, "version": anchor.version},
    )
    return anchor


def _checked_points(points: Sequence[str], field: str) -> list[str]:
    _check_count(points, field)
    path = ("input", field)
    return [
        checked_text(point, *path, index, max_length=MAX_LINE) for index, point in enumerate(points)
    ]


def _check_count(points: Sequence[Any], field: str) -> None:
    if len(points) > MAX_POINTS:
        raise LimitReached(f"Give {MAX_POINTS} at most.", path=("input", field))


def _checked_ranges(given: Sequence[VariableFeature]) -> dict[str, str]:
    _check_count(given, "variableRange")
    ranges: dict[str, str] = {}
    for index, each in enumerate(given):
        path = ("input", "variableRange", index)
        checked_text(each.feature, *path, "feature", max_length=MAX_LINE)
        checked_text(each.range, *path, "range", max_length=MAX_LINE)
        if each.feature in ranges:
            raise Invalid(
                "This feature has a range already: give it one.",
                "FEATURE_TWICE",
                (*path, "feature"),
            )
        ranges[each.feature] = each.range
    return ranges


async def propose_form(
    writing: Writing,
    viewer: Viewer,
    character_id: str,
    *,
    kind: FormKind,
    name: str,
    description: str,
    asset_ref: str | None,
) -> Form:
    """Add a candidate. Raises NotFound, Invalid (TEXT_…) and Conflict (CHARACTER_READ_ONLY)."""
    checked_text(name, "input", "name", max_length=MAX_LINE)
    checked_text(description, "input", "description", max_length=MAX_DESCRIPTION)
    if asset_ref is not None:
        checked_text(asset_ref, "input", "assetRef", max_length=MAX_REFERENCE)
    character = await hold_alive(writing, viewer, character_id, "input", "characterId")
    form = await writing.insert(
        Form,
        character_id=character.id,
        kind=kind,
        status=FormStatus.CANDIDATE,
        name=name,
        description=description,
        asset_ref=asset_ref,
    )
    await _record(writing, viewer, form)
    return form


async def settle_form(writing: Writing, viewer: Viewer, form_id: str) -> Form:
    """Make a candidate official; of a character's primary forms the earlier one is retired.

    Raises NotFound and Conflict (FORM_NOT_CANDIDATE, CHARACTER_READ_ONLY). Spec soul-mirror,
    section 1: what was generated is a candidate until the user settles it.
    """
    form = await _hold_form(writing, viewer, form_id, FormStatus.CANDIDATE)
    if form.kind == FormKind.PRIMARY:
        earlier = await primary_forms_of_characters(writing, viewer, [form.character_id])
        for each in earlier.values():
            await _move(writing, viewer, each, FormStatus.RETIRED)
    return await _move(writing, viewer, form, FormStatus.CONFIRMED)


async def reject_form(writing: Writing, viewer: Viewer, form_id: str) -> Form:
    """Turn a candidate down for good.

    Raises NotFound and Conflict (FORM_NOT_CANDIDATE, CHARACTER_READ_ONLY).
    """
    form = await _hold_form(writing, viewer, form_id, FormStatus.CANDIDATE)
    return await _move(writing, viewer, form, FormStatus.REJECTED)


async def retire_form(writing: Writing, viewer: Viewer, form_id: str) -> Form:
    """Let an official form be one no longer, for good.

    Raises NotFound and Conflict (FORM_NOT_CONFIRMED, CHARACTER_READ_ONLY).
    """
    form = await _hold_form(writing, viewer, form_id, FormStatus.CONFIRMED)
    return await _move(writing, viewer, form, FormStatus.RETIRED)


async def _hold_form(writing: Writing, viewer: Viewer, form_id: str, required: FormStatus) -> Form:
    """A form in the required state; its character is held, and with it all of its forms."""
    path = ("input", "formId")
    form = await require_row(writing, viewer, Form, form_id, *path)
    await hold_character(writing, viewer, form.character_id, *path)
    # Read anew: it may have been settled, rejected or erased while the character was waited for.
    form = await require_row(writing, viewer, Form, form.id, *path)
    if form.status != required:
        raise Conflict(
            f"This form is {form.status}, and only a {required} one can be changed so.",
            f"FORM_NOT_{required.name}",
            path,
        )
    return form


@statement(Form)
def _move_form(status: FormStatus) -> Any:
    values: dict[str, Any] = {"status": status.value, "version": col(Form.version) + 1}
    if status is FormStatus.CONFIRMED:
        values["settled_at"] = func.clock_timestamp()
        values["settled_by_user_id"] = param("settled_by")
    moved = update(Form).where(col(Form.id) == param("of_id")).values(values)
    return moved.returning(*columns(Form))


async def _move(writing: Writing, viewer: Viewer, form: Form, status: FormStatus) -> Form:
    """Change the state of a form whose character the caller holds."""
    moved = await writing.first(_move_form(status), of_id=form.id, settled_by=viewer.signed_in_id)
    assert moved is not None  # the character is held
    await _record(writing, viewer, moved)
    return moved


async def _record(writing: Writing, viewer: Viewer, form: Form) -> None:
    action = _ACTIONS[FormStatus(form.status)]
    await record_act(writing, viewer, action, form.id, {"character_id": form.character_id})
