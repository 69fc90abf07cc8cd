"""A branch with texts to translate, and a model that says what the tests tell it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from db.enums import InjectionMode, RunKind, TranslationTarget
from db.paging import PageRequest
from db.tables import Branch, Lore, Run, Translation
from services import deltas, translating, translations
from services.providers import Part, Request, TextPart
from services.runs import ANSWERS, Event, OpenRuns
from services.translating import Translating
from tests.services.deltas.ledgers import rows_of
from tests.services.runs.servers import (
    ASKED_ONCE,
    NO_LIMITS,
    STOP,
    Bench,
    ScriptedProvider,
    Server,
    a_server,
)

KINDS = {**ANSWERS, RunKind.TRANSLATION: Translating}
# What a call answers instead of what it should: parts, or what to raise.
Turn = Callable[[Sequence[str]], Sequence[Part | Exception]]


def said(items: Sequence[tuple[int, Any]]) -> str:
    return json.dumps([{"n": number, "text": text} for number, text in items])


def answered(texts: Sequence[str]) -> list[tuple[int, Any]]:
    """What is said of texts when all goes well."""
    return [(number, f"fr {text}") for number, text in enumerate(texts, start=1)]


def fails(error: Exception) -> Turn:
    return lambda _texts: [error]


def answers(text: str) -> Turn:
    return lambda _texts: [TextPart("text", text), STOP]


class Interpreter(ScriptedProvider):
    """Says every text in French, or takes its turns while there are any."""

    def __init__(self, *turns: Turn | None, is_held: bool = False) -> None:
        super().__init__(is_held=is_held)
        self.turns = list(turns)

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        assert request.to_translate is not None
        texts = request.to_translate.texts
        turn = self.turns.pop(0) if self.turns else None
        self.parts = tuple((turn or right)(texts))
        async for part in super().stream(request):
            yield part

    @property
    def asked(self) -> list[tuple[str, ...]]:
        """The texts of each call."""
        return [
            each.request.to_translate.texts for each in self.answers if each.request.to_translate
        ]


def right(texts: Sequence[str]) -> list[Part | Exception]:
    return [TextPart("text", said(answered(texts))), STOP]


@dataclass
class Booth(Bench):
    """Short ways to have the branch translated, and to look at it."""

    branch: Branch | None = None

    @property
    def branch_id(self) -> str:
        assert self.branch is not None
        return self.branch.id

    def server(self, provider: Interpreter, **given: Any) -> AbstractAsyncContextManager[Server]:
        return a_server(self.dsn, provider, kinds=KINDS, **{"asking": ASKED_ONCE, **given})

    async def start(
        self,
        kinds: Sequence[TranslationTarget] | None = None,
        language: str = "fr",
        limits: OpenRuns = NO_LIMITS,
    ) -> Run:
        async with self.database.writing() as writing:
            return await translating.start_translation(
                writing,
                self.viewer,
                self.branch_id,
                language,
                kinds,
                provider="scripted",
                model=None,
                limits=limits,
            )

    async def said(self) -> dict[str, str]:
        """What the branch says in French: by the text as it was written."""
        async with self.database.reading() as reading:
            lore = {each.row_id: each for each in await rows_of(reading, Lore, self.branch_id)}
            rows = await rows_of(reading, Translation, self.branch_id)
        return {getattr(lore[each.target_id], each.field): each.text for each in rows}

    async def missing(self) -> list[str]:
        async with self.database.reading() as reading:
            (page,) = await translations.untranslated_of_branches(
                reading,
                self.viewer,
                [self.branch_id],
                PageRequest(first=200),
                "fr",
                [TranslationTarget.LORE],
            )
        return [each.text for each in page.nodes]

    async def lore(self) -> list[Any]:
        async with self.database.reading() as reading:
            return await rows_of(reading, Lore, self.branch_id)

    async def rename(self, number: int, title: str) -> None:
        """Give a row of lore another title."""
        row = (await self.lore())[number]
        async with (
            self.database.writing() as writing,
            deltas.acting_on(writing, self.viewer, Lore, row.id) as (action, before),
        ):
            await action.update(Lore, before, {"title": title})


def titles(count: int) -> list[str]:
    """Of the rows of lore, in their order."""
    return [f"Title {number:02}" for number in range(count)]


async def tell(booth: Booth, count: int) -> None:
    """Give the branch so many rows of lore with a title each, in one action."""
    rows = [
        ({"title": title, "body": "", "injection_mode": InjectionMode.AUTO}, None)
        for title in titles(count)
    ]
    async with (
        booth.database.writing() as writing,
        deltas.acting(writing, booth.viewer, booth.branch_id) as action,
    ):
        await action.create_many(Lore, rows)


def progress_of(events: Sequence[Event]) -> list[tuple[int, int, int]]:
    """Done, total and missed, as it was told."""
    return [
        (each.done, each.total, each.missed) for each in events if each.type == "run_progressed"
    ]


def misses_of(events: Sequence[Event]) -> list[tuple[str, str | None, str | None]]:
    """What was told of texts that were missed: code, row and field."""
    return [
        (each.code, each.subject_id, each.field)
        for each in events
        if each.type == "run_warning" and each.subject_id is not None
    ]
