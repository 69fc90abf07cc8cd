"""What a prompt says of a row, which is also what the row is priced by. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from db.enums import EntityStatus, SearchKind
from services.retrieval.parameters import Parameters
from services.tokens import estimate_tokens


def name_of(kind: SearchKind, row: Any) -> str:
    """What people call a row."""
    name: str = row.name if kind is SearchKind.ENTITY else row.title
    return name


def text_of(kind: SearchKind, row: Any, sources: Iterable[str] = ()) -> str:
    """All that a prompt says of a row. `sources` are how those who are present know of a
    happening, a line each.
    """
    if kind is SearchKind.ENTITY:
        framed = ", available" if row.status == EntityStatus.STAGED else ""
        lines = [f"{row.name} ({row.kind}{framed})", row.description]
    elif kind is SearchKind.LORE:
        lines = [row.title, row.body]
    elif kind is SearchKind.THREAD:
        lines = [f"{row.title} ({row.status})", row.description]
    elif kind is SearchKind.CHAPTER:
        lines = [row.title, row.summary, row.theme]
    else:
        lines = [row.title, row.description, *sources]
    return "\n".join(filter(None, lines))


def price_of(kind: SearchKind, text: str, parameters: Parameters) -> int:
    """What a row takes of a budget, in tokens: its text, and what stands around it."""
    return estimate_tokens(text) + int(parameters.overheads[kind])


def source_lines(names: Mapping[str, str], awareness: Iterable[Any]) -> list[str]:
    """How those who are present know of a happening, by their names."""
    lines = {
        f"{names[each.character_id]}: {each.source}"
        for each in awareness
        if each.source and each.character_id in names
    }
    return sorted(lines)
