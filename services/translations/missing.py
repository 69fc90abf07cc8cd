"""Which texts of branches are not said in a language yet, and how many are.

Both are read off the rows as they are, columns and states alike: one statement for all branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import (
    Integer,
    Text,
    case,
    column,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, array
from sqlmodel import col

from db.enums import EntryKind, TranslationTarget
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Statement, compile_statement, param, record_class, statement
from db.tables import Branch, StoryEntity, StoryEntry, Translation
from services.access import Viewer, visible
from services.text import checked_language
from services.translations.fields import FIELDS, STATE_FIELDS, TARGETS

_NUMBERED = list(enumerate(TranslationTarget))


@dataclass(frozen=True, slots=True)
class UntranslatedText:
    """A text of a row that is not said in a language. `number` is that of the kind."""

    number: int
    branch_id: str
    target_id: str
    field: str
    text: str

    @property
    def id(self) -> str:
        """Tells it from other texts."""
        return f"{self.branch_id}:{self.target_id}:{self.field}"

    @property
    def target_kind(self) -> TranslationTarget:
        """The kind of the row."""
        return _NUMBERED[self.number][1]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many texts of the rows of a kind are said in a language."""

    kind: TranslationTarget
    total: int
    translated: int

    @property
    def missing(self) -> int:
        """How many are not."""
        return self.total - self.translated


def _texts(parents: Any) -> Any:
    """All texts of the branch of each parent: number of the kind, id of the row, field, text."""
    arms = [arm for number, kind in _NUMBERED for arm in _arms(number, kind, parents)]
    return union_all(*arms).subquery("texts")


def _arms(number: int, kind: TranslationTarget, parents: Any) -> list[Any]:
    table = cast("Any", TARGETS[kind]).__table__
    columns = {each: table.c[each] for each in sorted(FIELDS[kind])}
    arms = [_arm(number, table, columns, parents)]
    if kind is TranslationTarget.STORY_ENTRY:
        # A notice of the server is no text of the story.
        arms[0] = arms[0].where(col(StoryEntry.kind) != EntryKind.SYSTEM.value)
    if kind is TranslationTarget.ENTITY:
        for entity_kind, fields in STATE_FIELDS.items():
            single = {
                each: literal_column(
                    f"{table.name}.state #>> '{{{each.replace('.', ',')}}}'", Text()
                )
                for each in sorted(fields)
                if not each.endswith("*")
            }
            arms += [
                arm.where(col(StoryEntity.kind) == entity_kind.value)
                for arm in (
                    *([_arm(number, table, single, parents)] if single else []),
                    *(
                        _list_arm(number, table, each.removesuffix(".*"), parents)
                        for each in sorted(fields)
                        if each.endswith("*")
                    ),
                )
            ]
    return arms


def _arm(number: int, table: Any, texts: dict[str, Any], parents: Any) -> Any:
    """Texts of which a row has one each."""
    names: array[Any] = array([literal_column(f"'{each}'", Text()) for each in texts])
    said = (
        func.unnest(names, array(list(texts.values()), type_=Text()))
        .table_valued(column("field", Text()), column("text", Text()), name="said")
        .render_derived()
    )
    return _selected(number, table, said, said.c.field, parents)


def _list_arm(number: int, table: Any, name: str, parents: Any) -> Any:
    """Texts in a list of a state, each by its place from 0."""
    value = literal_column(f"{table.name}.state -> '{name}'", JSONB())
    said = (
        func.jsonb_array_elements_text(case((func.jsonb_typeof(value) == "array", value)))
        .table_valued(column("text", Text()), with_ordinality="place", name="said")
        .render_derived()
    )
    field = func.concat(literal_column(f"'{name}.'"), said.c.place - 1)
    return _selected(number, table, said, field, parents)


def _selected(number: int, table: Any, said: Any, field: Any, parents: Any) -> Any:
    return (
        select(
            literal_column(str(number), Integer()).label("number"),
            table.c.id.label("target_id"),
            field.label("field"),
            said.c.text.label("text"),
        )
        .select_from(table.join(said, true()))
        .where(table.c.branch_id == parents.c.id, said.c.text != "")
        .correlate(parents)
    )


def _is_translated(texts: Any, parents: Any) -> Any:
    """Whether a text is said in the language."""
    kinds: array[Any] = array([literal_column(f"'{kind}'", Text()) for _, kind in _NUMBERED])
    return exists(
        select(1)
        .where(
            col(Translation.branch_id) == parents.c.id,
            col(Translation.target_id) == texts.c.target_id,
            col(Translation.target_kind) == kinds[texts.c.number + 1],
            col(Translation.field) == texts.c.field,
            col(Translation.language) == param("language"),
        )
        .correlate(parents, texts)
    )


def _is_seen(parents: Any) -> Any:
    return exists(select(1).where(col(Branch.id) == parents.c.id, visible(Branch)))


class _Misses(PagedList[Any]):
    """A list of what is no table's rows."""

    def _parent_parameters(self, parent_ids: list[str], *, is_many: bool) -> dict[str, Any]:
        return super()._parent_parameters(parent_ids, is_many=True)

    def _missing(self, parents: Any) -> Any:
        texts = _texts(parents)
        wanted = param("kinds", ARRAY(Integer))
        return (
            select(*texts.c)
            .correlate(parents)
            .where(
                or_(wanted.is_(None), texts.c.number == func.any(wanted)),
                ~_is_translated(texts, parents),
            )
        )

    def _page_statement(
        self,
        is_many: bool,
        is_backward: bool,
        after: tuple[bool, ...] | None,
        before: tuple[bool, ...] | None,
    ) -> Statement[Any]:
        shape = (is_backward, after, before)
        if shape not in self._page_statements:
            parents = self._parents()
            missing = self._missing(parents).subquery("missing")
            rows = select(*missing.c).correlate(parents)
            if after is not None:
                rows = rows.where(self._beyond("after", after, reverse=False))
            if before is not None:
                rows = rows.where(self._beyond("before", before, reverse=True))
            order = [key.order(reverse=is_backward) for key in self.sort]
            found = rows.order_by(*order).limit(param("page_limit", Integer())).lateral("found")
            page = (
                select(parents.c.id.label("branch_id"), *found.c)
                .select_from(parents.join(found, true()))
                .where(_is_seen(parents))
                .order_by(parents.c.place, *order)
            )
            self._page_statements[shape] = compile_statement(page, record_class(object))
        return self._page_statements[shape]

    def _count_statement(self) -> Statement[Any]:
        if False not in self._count_statements:
            parents = self._parents()
            counted = (
                select(func.count().label("total"))
                .select_from(self._missing(parents).subquery("missing"))
                .correlate(parents)
                .lateral("counted")
            )
            whole = (
                select(parents.c.id.label("parent"), counted.c.total)
                .select_from(parents.join(counted, true()))
                .where(_is_seen(parents))
            )
            self._count_statements[False] = compile_statement(whole, record_class(object))
        return self._count_statements[False]


MISSES = _Misses(
    "untranslated texts",
    Branch,
    sort=[
        SortKey(column("number", Integer())),
        SortKey(column("target_id", Text())),
        SortKey(column("field", Text())),
    ],
    parent=column("branch_id"),
    where=lambda: visible(Branch),
)


async def untranslated_of_branches(
    reading: Reading,
    viewer: Viewer,
    branch_ids: Sequence[str],
    request: PageRequest,
    language: str,
    kinds: Sequence[TranslationTarget] | None = None,
) -> list[Page[Any]]:
    """A page of the texts of each branch that are not said in a language: by kinds, then by ids
    of rows, then by fields. Raises BadPageRequest, Invalid (LANGUAGE_INVALID).
    """
    checked_language(language, "language")
    pages = await MISSES.pages(
        reading,
        branch_ids,
        request,
        language=language,
        kinds=_numbers(kinds),
        **viewer.parameters,
    )
    return [
        replace(
            page,
            nodes=[
                UntranslatedText(row.number, row.branch_id, row.target_id, row.field, row.text)
                for row in page.nodes
            ],
        )
        for page in pages
    ]


async def count_untranslated(
    reading: Reading,
    viewer: Viewer,
    branch_id: str,
    language: str,
    kinds: Sequence[TranslationTarget] | None = None,
) -> int:
    """How many texts of a branch are not said in a language. Raises Invalid (LANGUAGE_INVALID)."""
    checked_language(language, "language")
    (count,) = await MISSES.counts(
        reading, [branch_id], language=language, kinds=_numbers(kinds), **viewer.parameters
    )
    return count


def _numbers(kinds: Sequence[TranslationTarget] | None) -> tuple[int, ...] | None:
    if kinds is None:
        return None
    return tuple(number for number, kind in _NUMBERED if kind in kinds)


@statement(Branch)
def _coverage() -> Any:
    parents = (
        func.unnest(param("branch_ids", ARRAY(Text)))
        .table_valued("id", name="parents")
        .render_derived()
    )
    texts = _texts(parents)
    said = (
        select(texts.c.number, _is_translated(texts, parents).label("is_translated"))
        .correlate(parents)
        .lateral("said")
    )
    return (
        select(
            parents.c.id.label("branch_id"),
            said.c.number,
            func.count().label("total"),
            func.count().filter(said.c.is_translated).label("translated"),
        )
        .select_from(parents.join(said, true()))
        .where(_is_seen(parents))
        .group_by(parents.c.id, said.c.number)
    )


async def coverage_of_branches(
    reading: Reading, viewer: Viewer, branch_ids: Sequence[str], language: str
) -> list[list[Coverage]]:
    """How many texts of each kind each branch has, and how many of them are said in a language.
    Raises Invalid (LANGUAGE_INVALID).
    """
    checked_language(language, "language")
    rows: list[Any] = await reading.all(
        _coverage(), branch_ids=list(branch_ids), language=language, **viewer.parameters
    )
    found = {(row.branch_id, row.number): row for row in rows}
    return [
        [
            Coverage(kind, row.total, row.translated) if row else Coverage(kind, 0, 0)
            for number, kind in _NUMBERED
            for row in [found.get((branch_id, number))]
        ]
        for branch_id in branch_ids
    ]
