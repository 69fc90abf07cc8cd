"""What a prompt of a branch would carry and why, and captures of what a retrieval saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, ProbeCapture, StoryEntry
from resolvers import branch_rows
from resolvers.context import Context
from services import retrieval as service
from services.access import find_row, require_row
from services.errors import Invalid, LimitReached
from services.text import checked_text, refuse_unstorable

MAX_PINS = 200
_BY_KEY = ("budgets", "weights", "fades", "pin_factors")


async def preview(context: Context, branch_id: str, text: str | None) -> service.RetrievalPreview:
    """What the next prompt would carry. Raises NotFound, Invalid (TEXT_…)."""
    refuse_unstorable({"text": text}, ())
    if text is not None:
        checked_text(text, "text")
    engine, viewer = context.engine, context.viewer
    retrieved = await service.retrieve_for(
        engine.database, engine.embedders, viewer, branch_id, text, "branchId"
    )
    async with context.reading() as reading:
        return await service.show_retrieved(reading, viewer, retrieved)


async def capture_by_id(context: Context, id: str) -> ProbeCapture | None:
    """One capture, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, ProbeCapture, id)


async def captures_of_branches(
    context: Context, branches: Sequence[Branch], *, page: PageRequest = FIRST_PAGE
) -> list[Page[ProbeCapture]]:
    """The captures of each branch, newest first."""
    async with context.reading() as reading:
        return await service.CAPTURES_OF_BRANCHES.pages(
            reading, [each.id for each in branches], page, **context.viewer.parameters
        )


async def target_entries_of_captures(
    context: Context, captures: Sequence[ProbeCapture]
) -> list[Any]:
    """The entry that each capture was for."""
    wanted = [each.target_entry_id for each in captures]
    return await branch_rows.linked(context, StoryEntry, captures, wanted)


async def payloads_of_captures(
    context: Context, captures: Sequence[ProbeCapture]
) -> list[dict[str, Any] | None]:
    """What each capture holds; None of one that is corrupt."""
    return [service.payload_or_none(each) for each in captures]


async def corruption_of_captures(context: Context, captures: Sequence[ProbeCapture]) -> list[bool]:
    """Whether each capture is corrupt."""
    return [service.payload_or_none(each) is None for each in captures]


async def simulate(context: Context, capture_id: str, parameters: Any) -> service.ProbeSimulation:
    """What a capture would have chosen. Raises NotFound, LimitReached, Invalid."""
    async with context.reading() as reading:
        capture = await require_row(reading, context.viewer, ProbeCapture, capture_id, "captureId")
        simulation = service.simulate(capture, _changes(parameters))
        return await service.show_simulation(reading, context.viewer, capture, simulation)


def _changes(parameters: Any) -> dict[str, Any]:
    """What is to be other than it was captured."""
    if parameters is None:
        return {}
    changes: dict[str, Any] = {}
    for each in fields(parameters):
        value = getattr(parameters, each.name)
        if value is None:
            continue
        if each.name in _BY_KEY:
            value = {
                key.name: getattr(value, key.name)
                for key in fields(value)
                if getattr(value, key.name) is not None
            }
        elif each.name == "pins":
            if len(value) > MAX_PINS:
                raise LimitReached(f"{MAX_PINS} pins at most.", path=("parameters", "pins"))
            value = {str(pin.row_id): pin.pin for pin in value}
        numbers = value.values() if isinstance(value, dict) else [value]
        if any(number < 0 for number in numbers):
            raise Invalid("No number here is below 0.", "OUT_OF_RANGE", ("parameters", each.name))
        changes[each.name] = value
    return changes


async def probe(context: Context, input: Any) -> dict[str, Any]:
    """Retrieve, and keep what was seen."""
    if input.text is not None:
        checked_text(input.text, "input", "text")
    engine, viewer = context.engine, context.viewer
    async with context.reading() as reading:
        await service.require_probing(reading, viewer, input.branch_id)
    # The embedder works before the transaction begins.
    retrieved = await service.retrieve_for(
        engine.database, engine.embedders, viewer, input.branch_id, input.text, "input", "branchId"
    )
    async with context.writing() as change:
        capture = await service.keep_capture(change.writing, viewer, retrieved, input.mode)
        return change.answer(capture=capture)


async def delete_capture(context: Context, input: Any) -> dict[str, Any]:
    """Take a capture away."""
    async with context.writing() as change:
        deleted = await service.delete_capture(change.writing, context.viewer, input.capture_id)
        return change.answer(deleted_id=deleted)


async def delete_captures(context: Context, input: Any) -> dict[str, Any]:
    """Take all captures of a story away."""
    async with context.writing() as change:
        deleted = await service.delete_captures(change.writing, context.viewer, input.story_id)
        return change.answer(deleted_ids=deleted)
