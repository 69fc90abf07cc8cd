"""What characters are to each other: one row for two characters, with what each sees in the other.

Source: spec aventuras, character-to-character relationships.
"""

from __future__ import annotations

from typing import Any

from db.enums import EntityKind, LoggedTable
from db.reading import Writing
from db.tables import Branch, CharacterRelationship, StoryEntity
from services import deltas
from services.access import Viewer, require_row, row_id_in
from services.deltas import Action, Image
from services.deltas.rows import images_naming
from services.errors import Invalid
from services.text import MAX_LINE, checked_text


def pair_of(subject_id: str, object_id: str) -> tuple[str, str, str]:
    """The two in the order in which they are kept, that of the bytes of their ids; and the column
    of what the subject sees in the object.
    """
    if subject_id.encode() < object_id.encode():
        return subject_id, object_id, "kind"
    return object_id, subject_id, "inverse_kind"


async def find_pair(action: Action, a_id: str, b_id: str) -> Image | None:
    """The row of a pair, or None."""
    found = await images_naming(
        action.writing, action.branch.id, LoggedTable.CHARACTER_RELATIONSHIPS, [a_id]
    )
    for each in found.values():
        if (each["a_id"], each["b_id"]) == (a_id, b_id):
            return each
    return None


async def set_relationship(
    writing: Writing,
    viewer: Viewer,
    subject_id: str,
    object_id: str,
    kind: str | None,
    expected_head: int | None = None,
) -> tuple[CharacterRelationship | None, Branch]:
    """Say what a character sees in another one; nothing, or what is blank, says that it is not
    known. What the other sees stays. A row of which nothing is known goes, and there is None.

    Raises NotFound, Conflict, Invalid (WRONG_KIND, SAME_ENTITY, TEXT_TOO_LONG).
    """
    view = kind.strip() if kind is not None else None
    if view:
        checked_text(view, "input", "kind", max_length=MAX_LINE)
    async with deltas.acting_on(
        writing, viewer, StoryEntity, subject_id, "input", "subjectId", expected_head=expected_head
    ) as (action, subject):
        other_id = row_id_in(action.branch.id, StoryEntity, object_id, "input", "objectId")
        other = await action.require(StoryEntity, other_id, "input", "objectId")
        for image, field in ((subject, "subjectId"), (other, "objectId")):
            if image["kind"] != EntityKind.CHARACTER:
                raise Invalid("Name a character here.", "WRONG_KIND", ("input", field))
        if other_id == subject["id"]:
            told = "Name two characters: this is one."
            raise Invalid(told, "SAME_ENTITY", ("input", "objectId"))
        row = await put_view(action, subject["id"], other_id, view or None)
    branch = await require_row(writing, viewer, Branch, action.branch.id)
    if row is None:
        return None, branch
    named = f"{branch.id}:{row['id']}"
    return await require_row(writing, viewer, CharacterRelationship, named), branch


async def put_view(
    action: Action, subject_id: str, object_id: str, view: str | None
) -> Image | None:
    """Write what one sees in the other; the row as it then is, or None where there is none."""
    a_id, b_id, column = pair_of(subject_id, object_id)
    row = await find_pair(action, a_id, b_id)
    if row is None:
        if view is None:
            return None
        values: dict[str, Any] = {"a_id": a_id, "b_id": b_id, column: view}
        return await action.create(CharacterRelationship, values)
    after = {**row, column: view}
    if after["kind"] is None and after["inverse_kind"] is None:
        await action.delete(CharacterRelationship, row)
        return None
    return await action.update(CharacterRelationship, row, {column: view})


async def delete_relationship(
    writing: Writing, viewer: Viewer, relationship_id: str, expected_head: int | None = None
) -> tuple[str, Branch]:
    """Forget what two characters are to each other; its id and the branch. Raises NotFound and
    Conflict.
    """
    path = ("input", "relationshipId")
    async with deltas.acting_on(
        writing, viewer, CharacterRelationship, relationship_id, *path, expected_head=expected_head
    ) as (action, row):
        await action.delete(CharacterRelationship, row)
    branch = await require_row(writing, viewer, Branch, action.branch.id)
    return f"{branch.id}:{row['id']}", branch
