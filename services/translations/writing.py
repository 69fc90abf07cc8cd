"""Saying texts in other languages, one or many in one action, and taking that away again.

Source: spec aventuras, translation; survival anchor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.enums import DeltaSource, TranslationTarget
from db.ids import MalformedId, parse_id
from db.reading import Writing, any_of, param, statement
from db.tables import Branch, Translation
from services import deltas
from services.access import Viewer, require_row
from services.deltas.rows import images_by_ids
from services.errors import DomainError, Invalid, LimitReached, NotFound
from services.text import checked_language, checked_text
from services.translations.fields import TARGETS, is_of_the_server, source_text, stored_field
from services.translations.missing import UntranslatedText

MAX_IMPORTED = 1_000
# Of an import that is wrong all over, only so many faults are told.
MAX_FAULTS = 50

# Where a part of a wording stands in the input: its number, the name of the part.
_PathOf = Callable[[int, str], tuple[str | int, ...]]
_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """A text of a row, said in another language. The row is named as clients name it: with the
    branch before its own id, or without where the branch is known.
    """

    target_id: str
    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: how many texts had no translation before, and how many had another."""

    created: int
    updated: int
    branch: Branch


@dataclass(frozen=True, slots=True)
class Draft:
    """What a text as it was read is in another language."""

    source: UntranslatedText
    text: str


@dataclass(frozen=True, slots=True)
class _Place:
    """What a wording is about: a row and a field of it, as they are kept."""

    kind: TranslationTarget
    row_id: str
    field: str


async def set_translation(
    writing: Writing,
    viewer: Viewer,
    *,
    target_id: str,
    field: str,
    language: str,
    text: str,
    expected_head: int | None = None,
) -> tuple[Translation, Branch]:
    """Say a field of a row in a language, instead of what was said so before.

    Raises NotFound, Conflict, Invalid (FIELD_NOT_TRANSLATABLE, NOTHING_TO_TRANSLATE,
    LANGUAGE_INVALID, TEXT_…).
    """
    path = ("input", "targetId")
    branch_id, _, row_id = target_id.partition(":")
    if not row_id or _target(branch_id, row_id) is None:
        raise NotFound("There is no such thing to translate.", path=path)
    checked_language(language, "input", "language")
    async with deltas.acting(
        writing, viewer, branch_id, expected_head=expected_head, path=path
    ) as action:
        wordings = [Wording(row_id, field, text)]
        (row,), _, _ = await _say(action, language, wordings, lambda _, name: ("input", name))
    return (
        await require_row(writing, viewer, Translation, f"{action.branch.id}:{row['id']}"),
        await require_row(writing, viewer, Branch, action.branch.id),
    )


async def import_translations(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    language: str,
    wordings: Sequence[Wording],
    expected_head: int | None = None,
) -> Imported:
    """Say many texts of a branch in a language, in one action: all of them or, where one is wrong,
    none. The number of statements does not depend on how many there are.

    Raises NotFound, Conflict, LimitReached, and what `set_translation` raises, with DUPLICATE for
    a text that is given twice; faults behind the first are its `others`.
    """
    path = ("input", "translations")
    checked_language(language, "input", "language")
    if len(wordings) > MAX_IMPORTED:
        raise LimitReached(f"Give {MAX_IMPORTED:,} at most.", path=path)
    async with deltas.acting(writing, viewer, branch_id, expected_head=expected_head) as action:
        _, created, updated = await _say(
            action, language, wordings, lambda number, name: (*path, number, name)
        )
    branch = await require_row(writing, viewer, Branch, action.branch.id)
    return Imported(created, updated, branch)


async def say_drafts(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    language: str,
    drafts: Sequence[Draft],
) -> list[bool]:
    """Say what a model has made of texts, in one action; for each whether it is said now. A text
    that was changed since it was read, or is gone, is not; what somebody has said meanwhile stays.

    Raises NotFound.
    """
    sources = [each.source for each in drafts]
    ids = [each.target_id for each in sources]
    async with deltas.acting(
        writing, viewer, branch_id, source=DeltaSource.AI_CLASSIFIER
    ) as action:
        images = await _images(action, [(each.target_kind, each.target_id) for each in sources])
        stands = [_stands(images, each) for each in sources]
        found = await _translations_of(action, ids, language)
        await _say(
            action,
            language,
            [
                Wording(draft.source.target_id, draft.source.field, draft.text)
                for draft, is_there in zip(drafts, stands, strict=True)
                if is_there and _place_of(draft.source) not in found
            ],
            lambda number, name: ("drafts", number, name),
        )
    return stands


def _place_of(text: UntranslatedText) -> _Place:
    return _Place(text.target_kind, text.target_id, text.field)


def _stands(
    images: Mapping[TranslationTarget, Mapping[str, deltas.Image]], text: UntranslatedText
) -> bool:
    row = images[text.target_kind].get(text.target_id)
    if row is None:
        return False
    return source_text(text.target_kind, row.__getitem__, text.field) == text.text


async def delete_translation(
    writing: Writing, viewer: Viewer, translation_id: str, expected_head: int | None = None
) -> tuple[str, Branch]:
    """Take a translation away, so that its source shows; its id. Raises NotFound, Conflict."""
    async with deltas.acting_on(
        writing,
        viewer,
        Translation,
        translation_id,
        "input",
        "translationId",
        expected_head=expected_head,
    ) as (action, before):
        anchor = await deltas.newest_anchor(action, before["target_id"])
        await action.delete(Translation, before, anchor=anchor)
    branch_id = action.branch.id
    return f"{branch_id}:{before['id']}", await require_row(writing, viewer, Branch, branch_id)


async def _say(
    action: deltas.Action, language: str, wordings: Sequence[Wording], path_of: _PathOf
) -> tuple[list[deltas.Image], int, int]:
    """Write wordings down: their rows in order, how many are new, and how many say something
    else than before.
    """
    places = await _checked(action, wordings, path_of)
    ids = list({each.row_id for each in places})
    before = await _translations_of(action, ids, language)
    anchors = await deltas.newest_anchors(action, ids)
    said = list(zip(places, wordings, strict=True))
    known = [(place, wording) for place, wording in said if place in before]
    changed = await action.update_many(
        Translation,
        [
            (before[place], {"translated_text": wording.text}, anchors.get(place.row_id))
            for place, wording in known
        ],
    )
    updated = len(action.deltas)
    new = [(place, wording) for place, wording in said if place not in before]
    made = await action.create_many(
        Translation,
        [
            (
                {
                    "target_kind": place.kind,
                    "target_id": place.row_id,
                    "field": place.field,
                    "language": language,
                    "translated_text": wording.text,
                },
                anchors.get(place.row_id),
            )
            for place, wording in new
        ],
    )
    rows = {place: row for (place, _), row in zip([*known, *new], [*changed, *made], strict=True)}
    return [rows[place] for place in places], len(made), updated


async def _translations_of(
    action: deltas.Action, row_ids: Sequence[str], language: str
) -> dict[_Place, deltas.Image]:
    """What rows say in a language."""
    found = await action.writing.all(
        _translations(), branch_id=action.branch.id, target_ids=list(row_ids), language=language
    )
    images = await images_by_ids(
        action.writing,
        action.branch.id,
        deltas.logged_of(Translation).name,
        [each.row_id for each in found],
    )
    return {
        _Place(TranslationTarget(each["target_kind"]), each["target_id"], each["field"]): each
        for each in images.values()
    }


async def _images(
    action: deltas.Action, targets: Collection[tuple[TranslationTarget, str]]
) -> dict[TranslationTarget, dict[str, deltas.Image]]:
    """Rows of a branch by their kinds and own ids."""
    return {
        kind: await images_by_ids(
            action.writing,
            action.branch.id,
            deltas.logged_of(table).name,
            sorted({row_id for of_kind, row_id in targets if of_kind is kind}),
        )
        for kind, table in TARGETS.items()
    }


async def _checked(
    action: deltas.Action, wordings: Sequence[Wording], path_of: _PathOf
) -> list[_Place]:
    """What each wording is about. Raises the first fault, with the `others` behind it."""
    named = [_target(action.branch.id, each.target_id) for each in wordings]
    images = await _images(action, [target for target in named if target is not None])
    places: dict[_Place, int] = {}
    faults: list[DomainError] = []
    for number, (wording, target) in enumerate(zip(wordings, named, strict=True)):
        try:
            row = images[target[0]].get(target[1]) if target is not None else None
            if target is None or row is None:
                raise NotFound(
                    "There is no such thing to translate.", path=path_of(number, "targetId")
                )
            place = _checked_place(target[0], row, wording, path_of(number, "field"))
            checked_text(wording.text, *path_of(number, "text"))
            if place in places:
                raise Invalid("This text is given twice.", "DUPLICATE", path_of(number, "field"))
            places[place] = number
        except DomainError as fault:
            faults.append(fault)
    if faults:
        first, *others = faults[:MAX_FAULTS]
        first.others = tuple(others)
        raise first
    return list(places)


def _checked_place(
    kind: TranslationTarget, row: deltas.Image, wording: Wording, path: _Path
) -> _Place:
    source = source_text(kind, row.__getitem__, wording.field, *path)
    if not source or is_of_the_server(kind, row):
        raise Invalid("There is no text of the story here.", "NOTHING_TO_TRANSLATE", path)
    return _Place(kind, row["id"], stored_field(wording.field))


def _target(branch_id: str, target_id: str) -> tuple[TranslationTarget, str] | None:
    """The kind and the own id of the row of a branch that an id of a target leads to, if any."""
    try:
        parsed = parse_id(target_id if ":" in target_id else f"{branch_id}:{target_id}")
    except MalformedId:
        return None
    for kind, table in TARGETS.items():
        if parsed.table == table.__tablename__ and parsed.branch_id == branch_id:
            return kind, parsed.row_id
    return None


@statement(Translation)
def _translations() -> Any:
    return select(col(Translation.row_id).label("row_id")).where(
        col(Translation.branch_id) == param("branch_id"),
        any_of(Translation.target_id, "target_ids"),
        col(Translation.language) == param("language"),
    )
