"""Things of any kind by id: the prefix of an id says which table it leads into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from db.ids import MalformedId, parse_id
from db.tables import AppSettings
from resolvers.context import PLAIN, SETTINGS, Context
from services import calendars
from services.access import table_named
from services.errors import Invalid, LimitReached

MAX_IDS = 100


async def row_by_id(context: Context, id: str) -> Any:
    """Whatever an id leads to, or None. Raises Invalid (MALFORMED_ID)."""
    (row,) = await _rows(context, [id], "id")
    return row


async def rows_by_ids(context: Context, ids: Sequence[str]) -> list[Any]:
    """The same for several, in order. Raises Invalid (MALFORMED_ID), LimitReached."""
    if len(ids) > MAX_IDS:
        raise LimitReached(f"Ask for {MAX_IDS} ids at most.", path=("ids",))
    return await _rows(context, ids, "ids")


async def earlier_payload(context: Context, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a mutation that was carried out before, its rows as they are now."""
    return {name: await _restored(context, value) for name, value in answer.items()}


async def _restored(context: Context, value: Any) -> Any:
    if isinstance(value, list):
        return [await _restored(context, each) for each in value]
    if isinstance(value, dict):
        if set(value) == {SETTINGS}:
            return (await context.many(AppSettings, [value[SETTINGS]]))[0]
        return value[PLAIN] if set(value) == {PLAIN} else _with_attributes(value)
    return value and await row_by_id(context, value)


def _with_attributes(value: Any) -> Any:
    """A value that is no row, its parts included, as what its type reads attributes off."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: _with_attributes(each) for name, each in value.items()})
    return [_with_attributes(each) for each in value] if isinstance(value, list) else value


async def _rows(context: Context, ids: Sequence[str], argument: str) -> list[Any]:
    try:
        # Calendars of the server have names for ids.
        parsed = {each: parse_id(each) for each in ids if each not in calendars.BUILT_INS}
    except MalformedId as error:
        raise Invalid(str(error), "MALFORMED_ID", (argument,)) from None
    found: dict[str, Any] = {}
    for name in dict.fromkeys(each.table for each in parsed.values()):
        table = table_named(name)
        if table is not None:
            wanted = [each.id for each in parsed.values() if each.table == name]
            found.update(zip(wanted, await context.many(table, wanted), strict=True))
    return [
        found.get(parsed[each].id)
        if each in parsed
        else calendars.find_built_in(context.viewer, each)
        for each in ids
    ]
