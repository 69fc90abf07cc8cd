"""Two branches of a story side by side: what they have in common, and every row that only one of
them has or that says something else in the other.

Rows are the same that have the same id, since a fork copies ids. All twelve logged tables are
compared as they are, not by their logs: what a fork has left out is in no log.
Source: design, branch diff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import (
    Integer,
    Text,
    and_,
    column,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import DifferenceKind, LoggedTable, TranslationTarget
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import (
    Reading,
    Statement,
    columns,
    compile_statement,
    param,
    record_class,
    statement,
)
from db.tables import Branch, StoryEntry
from services import deltas
from services.access import Viewer, find_row, visible
from services.deltas import FieldChange, Image, RowName
from services.errors import Invalid

# Follows from which entries there are: an entry that only moved up says the same.
_NOT_COMPARED = {LoggedTable.STORY_ENTRIES: {"position"}}
_NUMBERED = list(enumerate(deltas.LOGGED.values()))
LABEL_LENGTH = 80

# What a row is called: the first of these columns that it has.
_NAMES = ("name", "title", "content", "era_name", "kind", "inverse_kind", "role")
# The links that a row is: each column with the table into which it leads.
_ENDS = {
    LoggedTable.CHARACTER_RELATIONSHIPS: {
        "a_id": LoggedTable.ENTITIES,
        "b_id": LoggedTable.ENTITIES,
    },
    LoggedTable.HAPPENING_INVOLVEMENTS: {
        "entity_id": LoggedTable.ENTITIES,
        "happening_id": LoggedTable.HAPPENINGS,
    },
    LoggedTable.HAPPENING_AWARENESS: {
        "character_id": LoggedTable.ENTITIES,
        "happening_id": LoggedTable.HAPPENINGS,
    },
    LoggedTable.ENTRY_ASSETS: {"entry_id": LoggedTable.STORY_ENTRIES},
}
_TARGETS = {
    TranslationTarget(logged.target_kind): logged.name
    for logged in deltas.LOGGED.values()
    if logged.target_kind is not None
}


@dataclass(frozen=True, slots=True)
class BranchDiff:
    """Two branches of one story."""

    left: Branch
    right: Branch

    @property
    def id(self) -> str:
        """Tells it from other pairs."""
        return f"{self.left.id}:{self.right.id}"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One value of a row in both branches; null where there is none."""

    path: str
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that is not the same in both branches. `number` and `id` are its place in the list."""

    number: int
    id: str
    table: LoggedTable
    kind: DifferenceKind
    label: str
    fields: list[FieldDifference]

    @property
    def row_id(self) -> str:
        """The row's own id."""
        return self.id


async def find_diff(
    reading: Reading, viewer: Viewer, left_id: str, right_id: str
) -> BranchDiff | None:
    """Two branches, or None where the viewer sees not both. Raises Invalid (NOT_OF_ONE_STORY)."""
    left = await find_row(reading, viewer, Branch, left_id)
    right = await find_row(reading, viewer, Branch, right_id)
    if left is None or right is None:
        return None
    if left.story_id != right.story_id:
        raise Invalid(
            "Branches of different stories have nothing to compare.", "NOT_OF_ONE_STORY", ("right",)
        )
    return BranchDiff(left, right)


def _is_seen(branch_id: Any) -> Any:
    return exists(select(1).where(col(Branch.id) == branch_id, visible(Branch)))


@statement(StoryEntry)
def _common_entries() -> Any:
    pairs = (
        func.unnest(param("left_ids", ARRAY(Text)), param("right_ids", ARRAY(Text)))
        .table_valued("left_id", "right_id", name="pairs")
        .render_derived()
    )
    other = aliased(StoryEntry)
    is_in_both = exists(
        select(1).where(
            col(other.branch_id) == pairs.c.right_id, col(other.row_id) == col(StoryEntry.row_id)
        )
    ).correlate(pairs, StoryEntry)
    last = (
        select(*columns(StoryEntry))
        .where(col(StoryEntry.branch_id) == pairs.c.left_id, is_in_both, visible(StoryEntry))
        .correlate(pairs)
        .order_by(col(StoryEntry.position).desc())
        .limit(1)
        .lateral("last")
    )
    return (
        select(*last.c, pairs.c.right_id)
        .select_from(pairs.join(last, true()))
        .where(_is_seen(pairs.c.right_id))
    )


async def common_entries(
    reading: Reading, viewer: Viewer, diffs: Sequence[BranchDiff]
) -> list[StoryEntry | None]:
    """The last entry that the two branches have in common, as it is in the left one; None where
    they have none.
    """
    rows: list[Any] = await reading.all(
        _common_entries(),
        left_ids=[each.left.id for each in diffs],
        right_ids=[each.right.id for each in diffs],
        **viewer.parameters,
    )
    found = {(row.branch_id, row.right_id): row for row in rows}
    return [found.get((each.left.id, each.right.id)) for each in diffs]


class _Differences(PagedList[Any]):
    """A list of what is no table's rows: each parent is two branches, `left:right`."""

    def _parent_parameters(self, parent_ids: list[str], *, is_many: bool) -> dict[str, Any]:
        return super()._parent_parameters(parent_ids, is_many=True)

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
            # Tables before or behind the cursor are not even looked at.
            bounds = []
            if after is not None:
                bounds.append(column("number") >= param("after_0", Integer()))
            if before is not None:
                bounds.append(column("number") <= param("before_0", Integer()))
            rows = select(_differing_rows(parents)).correlate(parents).where(*bounds)
            if after is not None:
                rows = rows.where(self._beyond("after", after, reverse=False))
            if before is not None:
                rows = rows.where(self._beyond("before", before, reverse=True))
            order = [key.order(reverse=is_backward) for key in self.sort]
            found = rows.order_by(*order).limit(param("page_limit", Integer())).lateral("found")
            page = (
                select(parents.c.branch_id, parents.c.id.label("right_id"), *found.c)
                .select_from(parents.join(found, true()))
                .where(self._are_seen(parents))
                .order_by(parents.c.place, *order)
            )
            self._page_statements[shape] = compile_statement(page, record_class(object))
        return self._page_statements[shape]

    def _count_statement(self) -> Statement[Any]:
        if False not in self._count_statements:
            parents = self._parents()
            counted = (
                select(func.count().label("total"))
                .select_from(_differing_rows(parents))
                .correlate(parents)
                .lateral("counted")
            )
            whole = (
                select(
                    parents.c.branch_id.label("within"),
                    parents.c.id.label("parent"),
                    counted.c.total,
                )
                .select_from(parents.join(counted, true()))
                .where(self._are_seen(parents))
            )
            self._count_statements[False] = compile_statement(whole, record_class(object))
        return self._count_statements[False]

    @staticmethod
    def _are_seen(parents: Any) -> Any:
        return and_(_is_seen(parents.c.branch_id), _is_seen(parents.c.id))


def _differing_rows(parents: Any) -> Any:
    """The rows of all wanted tables that the two branches of each parent do not share: the number
    of the table, the row's id, and on which sides it is.
    """
    wanted = param("tables", ARRAY(Text))
    arms: list[Any] = []
    for number, logged in _NUMBERED:
        table = cast("Any", logged.table).__table__
        ignored = _NOT_COMPARED.get(logged.name, set())
        compared = [each for each in deltas.shown_columns(logged.name) if each not in ignored]
        left, right = (
            select(table.c.id, *(table.c[each] for each in compared))
            .where(table.c.branch_id == branch_id)
            .correlate(parents)
            .subquery(side)
            for side, branch_id in (("l", parents.c.branch_id), ("r", parents.c.id))
        )
        is_wanted = or_(wanted.is_(None), literal_column(f"'{logged.name}'") == func.any(wanted))
        arms.append(
            select(
                literal_column(str(number)).label("number"),
                func.coalesce(left.c.id, right.c.id).label("id"),
                left.c.id.is_not(None).label("is_in_left"),
                right.c.id.is_not(None).label("is_in_right"),
            )
            .select_from(left.join(right, left.c.id == right.c.id, full=True))
            .where(
                is_wanted,
                tuple_(*(left.c[each] for each in compared)).is_distinct_from(
                    tuple_(*(right.c[each] for each in compared))
                ),
            )
        )
    return union_all(*arms).subquery("differing")


DIFFERENCES = _Differences(
    "differences",
    Branch,
    sort=[SortKey(column("number", Integer())), SortKey(column("id", Text()))],
    parent=column("right_id"),
    within=column("branch_id"),
    where=lambda: visible(Branch),
)


async def differences_of_diffs(
    reading: Reading,
    viewer: Viewer,
    diffs: Sequence[BranchDiff],
    request: PageRequest,
    tables: Sequence[LoggedTable] | None = None,
) -> list[Page[Any]]:
    """A page of what differs in each pair: by tables in the order of `LoggedTable`, then by id.

    A row that both have says what has changed; one that only one has, all that it says.
    Raises BadPageRequest.
    """
    pages = await DIFFERENCES.pages(
        reading,
        [each.id for each in diffs],
        request,
        tables=None if tables is None else tuple(map(str, tables)),
        **viewer.parameters,
    )
    rows = [row for page in pages for row in page.nodes]
    images = await deltas.images_of_rows(
        reading,
        viewer,
        {
            (branch_id, _NUMBERED[row.number][1].name, row.id)
            for row in rows
            for branch_id in (row.branch_id, row.right_id)
        },
    )
    ends = await deltas.images_of_rows(
        reading, viewer, {end for name, image in images.items() for end in ends_of(name, image)}
    )
    return [
        replace(page, nodes=[_difference(row, images, ends) for row in page.nodes])
        for page in pages
    ]


def _difference(
    row: Any, images: Mapping[RowName, Image], ends: Mapping[RowName, Image]
) -> RowDifference:
    logged = _NUMBERED[row.number][1]
    left, right = ((branch_id, logged.name, row.id) for branch_id in (row.branch_id, row.right_id))
    kind = DifferenceKind.CHANGED
    if not (row.is_in_left and row.is_in_right):
        kind = DifferenceKind.ADDED if row.is_in_right else DifferenceKind.REMOVED
    shown = left if kind == DifferenceKind.REMOVED else right
    return RowDifference(
        row.number,
        row.id,
        logged.name,
        kind,
        _label(shown, images.get(shown), ends),
        [
            FieldDifference(each.path, each.before, each.after)
            for each in deltas.fields_between(logged, images.get(left), images.get(right))
            if kind != DifferenceKind.CHANGED or _is_compared(logged.name, each)
        ],
    )


def _is_compared(table: LoggedTable, change: FieldChange) -> bool:
    return change.path not in _NOT_COMPARED.get(table, ())


def ends_of(name: RowName, image: Image) -> list[RowName]:
    """The rows that a link joins; those that a translation or a file belongs to."""
    branch_id, table, _ = name
    if table is LoggedTable.TRANSLATIONS:
        target = _TARGETS[TranslationTarget(image["target_kind"])]
        return [(branch_id, target, image["target_id"])]
    return [(branch_id, leads_to, image[each]) for each, leads_to in _ENDS.get(table, {}).items()]


def _label(name: RowName, image: Image | None, ends: Mapping[RowName, Image]) -> str:
    """What people call a row: its name, or the names of what it links."""
    if image is None:
        return name[2]
    linked = ends_of(name, image)
    if not linked:
        return _name(image)
    label = " – ".join(_name(ends[each]) if each in ends else each[2] for each in linked)
    is_translation = name[1] is LoggedTable.TRANSLATIONS
    return f"{label} ({image['field']}, {image['language']})" if is_translation else label


def _name(image: Image) -> str:
    text = next((str(image[each]) for each in _NAMES if image.get(each)), image["id"])
    return " ".join(text.split())[:LABEL_LENGTH]
