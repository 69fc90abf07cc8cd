"""Seats: mutations."""

from __future__ import annotations

from typing import Any

from resolvers.context import Context
from services import seats


async def acquire_seat(context: Context, input: Any) -> dict[str, Any]:
    """Take a seat."""
    async with context.writing() as change:
        seat = await seats.acquire_seat(
            change.writing, context.viewer, input.character_id, input.holder, input.lease_seconds
        )
        return change.answer(seat=seat)


async def renew_seat(context: Context, input: Any) -> dict[str, Any]:
    """Keep a seat for longer."""
    async with context.writing() as change:
        seat = await seats.renew_seat(
            change.writing,
            context.viewer,
            input.character_id,
            input.holder,
            input.epoch,
            input.lease_seconds,
        )
        return change.answer(seat=seat)


async def release_seat(context: Context, input: Any) -> dict[str, Any]:
    """Stop what runs on a seat and free it."""
    async with context.writing() as change:
        seat = await seats.release_seat(
            change.writing, context.viewer, input.character_id, input.epoch
        )
        return change.answer(seat=seat)


async def migrate_seat(context: Context, input: Any) -> dict[str, Any]:
    """Take a seat away from its holder."""
    async with context.writing() as change:
        seat = await seats.migrate_seat(change.writing, context.viewer, input.character_id)
        return change.answer(seat=seat)


async def hand_over_seat(context: Context, input: Any) -> dict[str, Any]:
    """Give a seat from its holder to another one."""
    async with context.writing() as change:
        seat = await seats.hand_over_seat(
            change.writing,
            context.viewer,
            input.character_id,
            input.holder,
            input.epoch,
            input.lease_seconds,
        )
        return change.answer(seat=seat)
