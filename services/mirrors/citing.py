"""Quoting: what a node cites, with the quoted original as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlmodel import col

from db.enums import CitationTarget, TreeEventType
from db.reading import Writing, param, statement
from db.tables import Citation, MirrorTree, TreeNode
from services.access import Viewer, require_row
from services.errors import Forbidden, Invalid, LimitReached
from services.mirrors.changes import note_change
from services.mirrors.growing import hold_node
from services.mirrors.reading import MAX_CITATIONS
from services.text import MAX_LINE, checked_text

_TARGET = ("input", "target")
# The numbers that say where in a source something stands. Boxes are parts of the whole picture or
# page, from 0 to 1; times are seconds.
_BOX = ("x", "y", "width", "height")
# By so much the sum of two parts of 1 may miss it.
_ROUNDING = 1e-9
_PARTS: dict[CitationTarget, tuple[str, ...]] = {
    CitationTarget.TEXT_RANGE: ("start", "end"),
    CitationTarget.IMAGE_REGION: _BOX,
    CitationTarget.PDF_PAGE_REGION: ("page", *_BOX),
    CitationTarget.ATTACHMENT: (),
    CitationTarget.MEDIA_TIME_RANGE: ("start", "end"),
}


async def cite(
    writing: Writing,
    viewer: Viewer,
    node_id: str,
    kind: CitationTarget,
    source_id: str,
    target: Mapping[str, Any],
    quote: str | None = None,
    source_version: int | None = None,
) -> Citation:
    """Quote a source in a node. Of another node's text (TEXT_RANGE) the quote and the version are
    taken from it; of anything else they are given, as the server does not have it.

    Raises NotFound, Forbidden (PERSONA_AUTHORIZATION_REQUIRED) and Invalid (BAD_TARGET,
    EMPTY_QUOTE, TEXT_…), Conflict (TREE_ARCHIVED, CHARACTER_READ_ONLY) and LimitReached.
    """
    tree, node = await hold_node(writing, viewer, node_id, "input", "nodeId")
    if await writing.value(_count_citations(), node_id=node.id) >= MAX_CITATIONS:
        raise LimitReached(
            f"A node quotes at most {MAX_CITATIONS} places.", path=("input", "nodeId")
        )
    place = _checked_target(kind, target)
    if kind is CitationTarget.TEXT_RANGE:
        source = await require_row(writing, viewer, TreeNode, source_id, "input", "sourceId")
        await _require_same_character(writing, viewer, tree, source)
        quote = source.content[int(place["start"]) : int(place["end"])]
        if not quote:
            raise Invalid("The range holds no text.", "EMPTY_QUOTE", _TARGET)
        place["end"] = place["start"] + len(quote)
        source_version = source.content_version
    else:
        quote = checked_text(quote or "", "input", "quote")
        source_id = checked_text(source_id, "input", "sourceId", max_length=MAX_LINE)
    citation = await writing.insert(
        Citation,
        node_id=node.id,
        target_kind=kind,
        target=place,
        quote=quote,
        source_id=source_id,
        source_version=source_version,
    )
    await note_change(writing, tree.id, TreeEventType.NODE_CITED, node.id)
    return citation


@statement(Citation)
def _count_citations() -> Any:
    return select(func.count()).where(col(Citation.node_id) == param("node_id"))


async def _require_same_character(
    writing: Writing, viewer: Viewer, tree: MirrorTree, source: TreeNode
) -> None:
    """Glossary, section 10, no_cross_character_join."""
    other = await require_row(writing, viewer, MirrorTree, source.tree_id)
    if tree.character_id != other.character_id:
        raise Forbidden(
            "This was said with another character, who has not been allowed to share it.",
            "PERSONA_AUTHORIZATION_REQUIRED",
            ("input", "sourceId"),
        )


def _checked_target(kind: CitationTarget, target: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a place, those that its kind has and no others."""
    names = _PARTS[kind]
    if not isinstance(target, Mapping) or set(target) != set(names):
        said = ", ".join(names) if names else "nothing"
        raise Invalid(f"A target of kind {kind} holds {said}.", "BAD_TARGET", _TARGET)
    place = {name: _number(target[name], name) for name in names}
    counted = ("start", "end") if kind is CitationTarget.TEXT_RANGE else ("page",)
    for name in counted:
        if name in place:
            if place[name] != int(place[name]):
                raise Invalid(f"{name} is a whole number.", "BAD_TARGET", (*_TARGET, name))
            place[name] = int(place[name])
    if "page" in place and place["page"] < 1:
        raise Invalid("Pages count from 1.", "BAD_TARGET", (*_TARGET, "page"))
    if "start" in place and place["end"] <= place["start"]:
        raise Invalid("end lies behind start.", "BAD_TARGET", (*_TARGET, "end"))
    if "x" in place:
        right, bottom = place["x"] + place["width"], place["y"] + place["height"]
        is_inside = max(right, bottom) <= 1 + _ROUNDING
        if not is_inside or not place["width"] or not place["height"]:
            raise Invalid("A box lies within the whole, whose sides are 1.", "BAD_TARGET", _TARGET)
    return place


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"{name} is a number.", "BAD_TARGET", (*_TARGET, name))
    if not 0 <= value < 2**31:
        raise Invalid(f"{name} is out of range.", "BAD_TARGET", (*_TARGET, name))
    return value
