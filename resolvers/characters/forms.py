"""Outward forms: relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.enums import FormStatus
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Character, Form, FormAnchor, User
from db.tables.characters import VariableFeature
from resolvers.context import Context
from services import characters as service


async def anchors_of_characters(
    context: Context, characters: Sequence[Character]
) -> list[FormAnchor | None]:
    """What the forms of each character keep to."""
    async with context.reading() as reading:
        found = await service.anchors_of_characters(
            reading, context.viewer, [each.id for each in characters]
        )
    return [found.get(each.id) for each in characters]


async def forms_of_characters(
    context: Context,
    characters: Sequence[Character],
    *,
    status: FormStatus | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Form]]:
    """The forms of each character, those in one state where one is named, newest first."""
    async with context.reading() as reading:
        return await service.FORMS_OF_CHARACTERS.pages(
            reading,
            [each.id for each in characters],
            page,
            form_status=status,
            **context.viewer.parameters,
        )


async def primary_forms_of_characters(
    context: Context, characters: Sequence[Character]
) -> list[Form | None]:
    """The official primary form of each character."""
    async with context.reading() as reading:
        found = await service.primary_forms_of_characters(
            reading, context.viewer, [each.id for each in characters]
        )
    return [found.get(each.id) for each in characters]


async def characters_of_forms(context: Context, forms: Sequence[Any]) -> list[Character | None]:
    """The character of each form, anchor or voice."""
    return await context.many(Character, [each.character_id for each in forms])


async def settlers_of_forms(context: Context, forms: Sequence[Form]) -> list[User | None]:
    """Who settled each form."""
    return await context.many(User, [each.settled_by_user_id for each in forms])


async def set_anchor(context: Context, input: Any) -> dict[str, Any]:
    """Say what every form of a character keeps to."""
    async with context.writing() as change:
        anchor = await service.set_anchor(
            change.writing,
            context.viewer,
            input.character_id,
            stable_traits=input.stable_traits,
            permissions=input.permissions,
            taboos=input.taboos,
            variable_range=[
                VariableFeature(each.feature, each.range) for each in input.variable_range
            ],
            expected_version=input.expected_version,
        )
        return change.answer(anchor=anchor)


async def propose_form(context: Context, input: Any) -> dict[str, Any]:
    """Add a candidate."""
    async with context.writing() as change:
        form = await service.propose_form(
            change.writing,
            context.viewer,
            input.character_id,
            kind=input.kind,
            name=input.name,
            description=input.description,
            asset_ref=input.asset_ref,
        )
        return change.answer(form=form)


async def settle_form(context: Context, input: Any) -> dict[str, Any]:
    """Make a candidate official."""
    async with context.writing() as change:
        form = await service.settle_form(change.writing, context.viewer, input.form_id)
        return change.answer(form=form)


async def reject_form(context: Context, input: Any) -> dict[str, Any]:
    """Turn a candidate down."""
    async with context.writing() as change:
        form = await service.reject_form(change.writing, context.viewer, input.form_id)
        return change.answer(form=form)


async def retire_form(context: Context, input: Any) -> dict[str, Any]:
    """Let an official form be one no longer."""
    async with context.writing() as change:
        form = await service.retire_form(change.writing, context.viewer, input.form_id)
        return change.answer(form=form)
