"""Texts in other languages: of rows of any kind, in one batch; lists and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from db.enums import TranslationTarget
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, Translation
from resolvers import branch_rows
from resolvers.context import Context
from resolvers.runs import asking
from services import translations as service
from services.errors import DomainError
from services.translating import start_translation


async def translations_of_rows(
    context: Context, rows: Sequence[Any], *, field: str, language: str | None = None
) -> list[str | DomainError | None]:
    """A field of each row in a language: of rows of all kinds, and at the moment of each."""
    sources = [_source(row, field) for row in rows]
    if language is None:
        return sources
    found = await context.batcher.load_many(_texts_of_rows, rows, {"language": language})
    name = service.stored_field(field)
    return [
        # What has nothing to be said has nothing in any language.
        texts.get(name, source) if source and isinstance(source, str) else source
        for source, texts in zip(sources, found, strict=True)
    ]


def _source(row: Any, field: str) -> str | DomainError | None:
    try:
        return service.source_text(service.kind_of(row), partial(getattr, row), field, "field")
    except DomainError as fault:
        return fault


async def _texts_of_rows(
    context: Context, rows: Sequence[Any], *, language: str
) -> list[dict[str, str]]:
    """What each row says in a language, by field: one statement for all of them, whatever fields
    are asked for.
    """
    found = await branch_rows.lists(
        context,
        service.TRANSLATIONS_OF_TARGETS,
        rows,
        keep=lambda each: each.language == language,
        language=language,
    )
    return [{each.field: each.translated_text for each in texts} for texts in found]


async def targets_of_translations(
    context: Context, translations: Sequence[Translation | service.UntranslatedText]
) -> list[Any]:
    """What each translation, or each text that is to be translated, belongs to: one statement for
    each kind of row.
    """
    targets: list[Any] = [None for _ in translations]
    for kind in TranslationTarget:
        places = [at for at, each in enumerate(translations) if each.target_kind == kind]
        if places:
            rows = [translations[at] for at in places]
            found = await branch_rows.linked(
                context, service.TARGETS[kind], rows, [each.target_id for each in rows]
            )
            for at, target in zip(places, found, strict=True):
                targets[at] = target
    return targets


async def translations_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    as_of: Any = None,
    language: str | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Translation]]:
    """The translations of each branch, of one language or all."""
    return await branch_rows.pages(
        context,
        service.TRANSLATIONS,
        branches,
        page,
        as_of=as_of,
        keep=lambda each: language is None or each.language == language,
        language=language,
    )


async def untranslated_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    language: str,
    kinds: list[TranslationTarget] | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Any]]:
    """The texts of each branch that are not said in a language."""
    async with context.reading() as reading:
        return await service.untranslated_of_branches(
            reading, context.viewer, [each.id for each in branches], page, language, kinds
        )


async def coverages_of_branches(
    context: Context, branches: Sequence[Branch], *, language: str
) -> list[list[service.Coverage]]:
    """How much of each branch is said in a language."""
    async with context.reading() as reading:
        return await service.coverage_of_branches(
            reading, context.viewer, [each.id for each in branches], language
        )


async def set_translation(context: Context, input: Any) -> dict[str, Any]:
    """Say a field in a language."""
    async with context.writing() as change:
        translation, branch = await service.set_translation(
            change.writing,
            context.viewer,
            target_id=input.target_id,
            field=input.field,
            language=input.language,
            text=input.text,
            expected_head=input.expected_head,
        )
        return change.answer(translation=translation, branch=branch)


async def import_translations(context: Context, input: Any) -> dict[str, Any]:
    """Say many texts in a language."""
    async with context.writing() as change:
        done = await service.import_translations(
            change.writing,
            context.viewer,
            input.branch_id,
            input.language,
            [service.Wording(each.target_id, each.field, each.text) for each in input.translations],
            input.expected_head,
        )
        return change.answer(created=done.created, updated=done.updated, branch=done.branch)


async def run_translation(context: Context, input: Any) -> dict[str, Any]:
    """Start a run that says what is missing."""
    async with context.writing() as change:
        given = asking(context)
        run = await start_translation(
            change.writing,
            context.viewer,
            input.branch_id,
            input.language,
            input.kinds,
            **{**given, "model": input.model or given["model"]},
        )
        return change.answer(run=run)


async def delete_translation(context: Context, input: Any) -> dict[str, Any]:
    """Take a translation away."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_translation(
            change.writing, context.viewer, input.translation_id, input.expected_head
        )
        return change.answer(deleted_id=deleted_id, branch=branch)
