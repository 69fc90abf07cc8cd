from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import MetaData
from sqlmodel import col

from db.columns import Table, id_column, integer_column, text_column, time_column
from db.cursors import CursorSigner
from db.engine import Database
from db.paging import (
    DEFAULT_FIRST,
    MAX_FIRST,
    BadPageRequest,
    Page,
    PagedList,
    PageRequest,
    SortKey,
)
from db.reading import Reading, Writing, param


class ScratchTable(Table):
    """Apart from the product's tables, so that comparing those with the database stays exact."""

    metadata = MetaData()


class Note(ScratchTable, table=True):
    __tablename__ = "notes"

    id: str = id_column()
    shelf_id: str = text_column()
    title: str | None = text_column(nullable=True)
    rank: int | None = integer_column(nullable=True)
    noted_at: datetime = time_column(nullable=False)
    seen_at: datetime | None = time_column()


CREATE = """
CREATE TABLE notes (
    id varchar PRIMARY KEY,
    shelf_id text NOT NULL,
    title text,
    rank integer,
    noted_at timestamptz NOT NULL,
    seen_at timestamptz
)
"""
START = datetime(2026, 1, 1, tzinfo=UTC)
TITLES = ["Äpfel", "apple", "Apple", "zebra", "日本", "", "a b", "a-b", "ab", "😀"]
NULLABLE = {"title", "rank", "seen_at"}


def sorted_by(*words: str) -> list[SortKey]:
    """`rank-` is descending, `rank` ascending."""
    keys = []
    for word in words:
        name = word.rstrip("-")
        keys.append(
            SortKey(
                col(getattr(Note, name)),
                is_descending=word.endswith("-"),
                is_nullable=name in NULLABLE,
            )
        )
    return keys


def order_by(sort: Sequence[SortKey]) -> str:
    """The order as people would write it, for a statement that shares nothing with ours."""
    return ", ".join(f"{key.name} {'DESC' if key.is_descending else 'ASC'}" for key in sort)


SORTS = {
    " ".join(words): sorted_by(*words)
    for words in (
        ("id",),
        ("id-",),
        ("noted_at", "id"),
        ("noted_at-", "id-"),
        ("noted_at-", "id"),
        ("rank", "id"),
        ("rank-", "id"),
        ("rank", "id-"),
        ("title", "id"),
        ("title-", "id-"),
        ("seen_at-", "rank", "id"),
        ("rank-", "title", "noted_at-", "id"),
    )
}
NOTES = {name: PagedList("notes", Note, sort=sort) for name, sort in SORTS.items()}
NOTES_OF_SHELVES = {
    name: PagedList(
        "notes_of_shelf",
        Note,
        parent=col(Note.shelf_id),
        sort=sort,
        where=lambda: col(Note.shelf_id) != param("hidden"),
    )
    for name, sort in SORTS.items()
}


def make_rows(count: int, seed: int, shelves: int = 1) -> list[dict[str, Any]]:
    """40 % of the nullable values are null, the others have ten values; times repeat."""
    dice = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if dice.random() < 0.4 else value

    return [
        {
            "id": f"note_{dice.getrandbits(64):016x}",
            "shelf_id": f"shelf_{number % shelves}",
            "title": maybe(dice.choice(TITLES)),
            "rank": maybe(dice.randrange(10)),
            "noted_at": START + timedelta(microseconds=dice.randrange(10)),
            "seen_at": maybe(START + timedelta(microseconds=dice.randrange(10))),
        }
        for number in range(count)
    ]


@pytest.fixture(scope="module")
async def scratch(shared_database: Database) -> Database:
    async with shared_database.writing() as writing:
        await writing._connection.execute(CREATE)
    return shared_database


@pytest.fixture
async def notes(scratch: Database) -> Database:
    """A database with an empty table of notes."""
    async with scratch.writing() as writing:
        await writing._connection.execute("DELETE FROM notes")
    return scratch


async def fill(database: Database, rows: list[dict[str, Any]]) -> None:
    async with database.writing() as writing:
        await writing.insert_many(Note, rows)


async def all_ids(reading: Reading, sort: Sequence[SortKey], where: str = "true") -> list[str]:
    found = await reading._connection.fetch(
        f"SELECT id FROM notes WHERE {where} ORDER BY {order_by(sort)}"
    )
    return [row["id"] for row in found]


def ids(page: Page[Note]) -> list[str]:
    return [note.id for note in page.nodes]


async def walk(
    reading: Reading, listed: PagedList[Note], size: int, *, backward: bool = False
) -> list[str]:
    """All ids of a root list in its order, page by page from either end."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await listed.page(
            reading,
            PageRequest(last=size, before=cursor)
            if backward
            else PageRequest(first=size, after=cursor),
        )
        assert len(page.nodes) <= size
        found = ids(page) + found if backward else found + ids(page)
        info = page.page_info
        behind, ahead = info.has_next_page, info.has_previous_page
        if not backward:
            behind, ahead = ahead, behind
        assert behind is (cursor is not None)
        if not ahead:
            return found
        assert len(page.nodes) == size, "a page before the last one is full"
        cursor = info.start_cursor if backward else info.end_cursor


@asynccontextmanager
async def counted(reading: Reading) -> AsyncIterator[list[str]]:
    """The statements that were sent inside the block."""
    sent: list[str] = []
    with reading._connection.query_logger(lambda record: sent.append(record.query)):
        yield sent
        await asyncio.sleep(0)  # the log is written in the next turn of the loop


@asynccontextmanager
async def undone(database: Database) -> AsyncIterator[Writing]:
    """A transaction of which nothing stays."""
    with suppress(_Undone):
        async with database.writing() as writing:
            yield writing
            raise _Undone


class _Undone(Exception):
    pass


# --- walks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sort", SORTS)
async def test_walking_meets_every_row_once_in_order(notes: Database, sort: str) -> None:
    """Rule P1. Ordering by nullable columns (nothing ends at null) and by values that repeat."""
    await fill(notes, make_rows(500, seed=26))
    async with notes.reading() as reading:
        expected = await all_ids(reading, SORTS[sort])
        assert len(set(expected)) == 500
        for size in (7, 100, MAX_FIRST):
            assert await walk(reading, NOTES[sort], size) == expected
            assert await walk(reading, NOTES[sort], size, backward=True) == expected


@pytest.mark.parametrize("sort", SORTS)
async def test_walking_row_by_row_meets_every_row_once_in_order(notes: Database, sort: str) -> None:
    await fill(notes, make_rows(150, seed=27))
    async with notes.reading() as reading:
        expected = await all_ids(reading, SORTS[sort])
        assert await walk(reading, NOTES[sort], 1) == expected
        assert await walk(reading, NOTES[sort], 1, backward=True) == expected


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


rows_of_notes = st.lists(
    st.fixed_dictionaries(
        {
            "title": some(st.sampled_from(TITLES)),
            "rank": some(st.integers(-2, 2)),
            "noted_at": st.integers(0, 2).map(lambda each: START + timedelta(microseconds=each)),
            "seen_at": some(st.datetimes(timezones=st.just(UTC))),
        }
    ),
    max_size=25,
)
orders = st.tuples(
    st.lists(st.sampled_from(["title", "rank", "noted_at", "seen_at"]), unique=True, max_size=4),
    st.lists(st.sampled_from(["", "-"]), min_size=5, max_size=5),
).map(lambda drawn: [f"{n}{d}" for n, d in zip([*drawn[0], "id"], drawn[1], strict=False)])


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=rows_of_notes, words=orders, size=st.integers(1, 8), seed=st.integers(0, 9))
async def test_any_order_of_any_columns_can_be_walked(
    notes: Database, rows: list[dict[str, Any]], words: list[str], size: int, seed: int
) -> None:
    sort = sorted_by(*words)
    names = [f"note_{number:02}" for number in range(len(rows))]
    random.Random(seed).shuffle(names)
    listed = PagedList("notes", Note, sort=sort)
    async with undone(notes) as writing:
        await writing.insert_many(
            Note,
            [{**row, "id": name, "shelf_id": "s"} for name, row in zip(names, rows, strict=True)],
        )
        expected = await all_ids(writing, sort)
        assert await walk(writing, listed, size) == expected
        assert await walk(writing, listed, size, backward=True) == expected


async def test_null_sorts_last_upward_and_first_downward(notes: Database) -> None:
    """Rule P2."""
    ranks: dict[str, int | None] = {"a": 2, "b": None, "c": 1, "d": None}
    await fill(
        notes,
        [
            {
                "id": name,
                "shelf_id": "s",
                "title": None,
                "rank": rank,
                "noted_at": START,
                "seen_at": None,
            }
            for name, rank in ranks.items()
        ],
    )
    async with notes.reading() as reading:
        assert await walk(reading, NOTES["rank id"], 1) == ["c", "a", "b", "d"]
        assert await walk(reading, NOTES["rank- id"], 1) == ["b", "d", "a", "c"]
        assert await walk(reading, NOTES["rank id-"], 1) == ["c", "a", "d", "b"]


async def test_an_empty_list_has_one_empty_page(notes: Database) -> None:
    async with notes.reading() as reading:
        for request in (PageRequest(), PageRequest(first=5), PageRequest(last=5)):
            page = await NOTES["rank id"].page(reading, request)
            info = page.page_info
            assert (page.nodes, page.edges) == ([], [])
            assert (info.has_next_page, info.has_previous_page) == (False, False)
            assert (info.start_cursor, info.end_cursor) == (None, None)


async def test_edges_carry_cursors_that_continue_behind_them(notes: Database) -> None:
    await fill(notes, make_rows(30, seed=3))
    async with notes.reading() as reading:
        listed = NOTES["rank- id"]
        whole = await listed.page(reading, PageRequest(first=30))
        assert [edge.node.id for edge in whole.edges] == ids(whole)
        for place, edge in enumerate(whole.edges):
            behind = await listed.page(reading, PageRequest(first=30, after=edge.cursor))
            assert ids(behind) == ids(whole)[place + 1 :]
            ahead = await listed.page(reading, PageRequest(last=30, before=edge.cursor))
            assert ids(ahead) == ids(whole)[:place]
        assert whole.page_info.start_cursor == whole.edges[0].cursor
        assert whole.page_info.end_cursor == whole.edges[-1].cursor


# --- Relay's algorithm -------------------------------------------------------------------------


def relay(
    rows: list[str], first: int | None, after: str | None, last: int | None, before: str | None
) -> tuple[list[str], bool, bool]:
    """The page, has next, has previous: the cursors bound the list, then it is counted off.

    Our choice where the specification leaves one: in the direction of the walk the flag is exact;
    against it, it says whether a cursor was given there.
    """
    start = 0 if after is None else rows.index(after) + 1
    end = len(rows) if before is None else rows.index(before)
    rows = rows[start:end] if start < end else []
    if last is not None:
        return rows[max(len(rows) - last, 0) :], before is not None, len(rows) > last
    size = DEFAULT_FIRST if first is None else first
    return rows[:size], len(rows) > size, after is not None


@pytest.mark.parametrize("sort", ["id", "noted_at- id-", "rank id", "seen_at- rank id"])
async def test_every_combination_of_arguments_gives_relays_page(notes: Database, sort: str) -> None:
    """Rule P3."""
    await fill(notes, make_rows(DEFAULT_FIRST + 2, seed=30))
    listed = NOTES[sort]
    sizes = (0, 1, 3, DEFAULT_FIRST + 2, MAX_FIRST)
    counts = [(None, None), *((n, None) for n in sizes), *((None, n) for n in sizes)]
    async with notes.reading() as reading:
        whole = await listed.page(reading, PageRequest(first=MAX_FIRST))
        rows = ids(whole)
        picked = [None, *(whole.edges[n] for n in (0, 1, 7, 8, DEFAULT_FIRST, len(rows) - 1))]
        for (first, last), after, before in itertools.product(counts, picked, picked):
            expected, has_next, has_previous = relay(
                rows,
                first,
                after.node.id if after else None,
                last,
                before.node.id if before else None,
            )
            page = await listed.page(
                reading,
                PageRequest(
                    first=first,
                    after=after.cursor if after else None,
                    last=last,
                    before=before.cursor if before else None,
                ),
            )
            asked = f"first {first} after {after} last {last} before {before}"
            assert ids(page) == expected, asked
            flags = (page.has_next_page, page.has_previous_page)
            assert flags == (has_next, has_previous), asked


# --- many parents ------------------------------------------------------------------------------


@pytest.mark.parametrize("sort", SORTS)
async def test_many_parents_at_once_equal_each_parent_alone(notes: Database, sort: str) -> None:
    await fill(notes, make_rows(200, seed=10, shelves=8))
    listed = NOTES_OF_SHELVES[sort]
    # One is empty, one is hidden, one is asked for twice.
    asked = [f"shelf_{number}" for number in (3, 99, 0, 7, 3, 5)]
    hidden = {"hidden": "shelf_5"}
    async with notes.reading() as reading:
        middle = (await listed.pages(reading, ["shelf_0"], PageRequest(first=9), **hidden))[0]
        cursor = middle.page_info.end_cursor
        for request in (
            PageRequest(),
            PageRequest(first=0),
            PageRequest(first=4),
            PageRequest(last=4),
            PageRequest(first=4, after=cursor),
            PageRequest(last=4, before=cursor),
            PageRequest(first=4, before=cursor),
            PageRequest(last=4, after=cursor),
            PageRequest(first=4, after=middle.edges[2].cursor, before=cursor),
        ):
            async with counted(reading) as sent:
                together = await listed.pages(reading, asked, request, **hidden)
            assert len(sent) == 1
            for parent_id, page in zip(asked, together, strict=True):
                async with counted(reading) as sent:
                    (alone,) = await listed.pages(reading, [parent_id], request, **hidden)
                assert len(sent) == 1
                assert ids(page) == ids(alone)
                assert page.page_info == alone.page_info
                assert page.parent_id == alone.parent_id == parent_id
            assert ids(together[0]) == ids(together[4])
            assert together[1].nodes == together[5].nodes == []
        whole = await listed.pages(reading, asked, PageRequest(first=MAX_FIRST), **hidden)
        for parent_id, page in zip(asked, whole, strict=True):
            where = f"shelf_id = '{parent_id}' AND shelf_id <> 'shelf_5'"
            assert ids(page) == await all_ids(reading, SORTS[sort], where)


async def test_statements_do_not_grow_with_parents(notes: Database) -> None:
    await fill(notes, make_rows(300, seed=11, shelves=100))
    listed = NOTES_OF_SHELVES["rank- id"]
    async with notes.reading() as reading:
        for count in (1, 10, 100):
            parents = [f"shelf_{number}" for number in range(count)]
            async with counted(reading) as sent:
                pages = await listed.pages(reading, parents, PageRequest(first=2), hidden="")
                totals = await listed.counts(reading, parents, hidden="")
            assert [len(page.nodes) for page in pages] == [2] * count
            assert [page.has_next_page for page in pages] == [True] * count
            assert totals == [3] * count
            assert len(sent) == 2
        async with counted(reading) as sent:
            assert await listed.pages(reading, [], PageRequest(), hidden="") == []
        assert sent == []


async def test_counts_are_of_whole_lists(notes: Database) -> None:
    await fill(notes, make_rows(50, seed=12, shelves=4))
    listed = NOTES_OF_SHELVES["id"]
    async with notes.reading() as reading:
        asked = ["shelf_1", "shelf_99", "shelf_0", "shelf_1", "shelf_2"]
        assert await listed.counts(reading, asked, hidden="shelf_2") == [13, 0, 13, 13, 0]
        assert await NOTES["rank id"].counts(reading, [None]) == [50]
        assert await NOTES["rank id"].counts(reading, [None, None]) == [50, 50]


async def test_a_page_says_whose_it_is(notes: Database) -> None:
    async with notes.reading() as reading:
        for request in (PageRequest(), PageRequest(first=0), PageRequest(last=1)):
            page = await NOTES["id"].page(reading, request)
            assert (page.source, page.parent_id, page.values) == (NOTES["id"], None, ())
        listed = NOTES_OF_SHELVES["id"]
        (shelf,) = await listed.pages(reading, ["shelf_0"], PageRequest(), hidden="x")
        assert (shelf.source, shelf.parent_id) == (listed, "shelf_0")
        assert shelf.values == (("hidden", "x"),)


# --- while others write ------------------------------------------------------------------------


@pytest.mark.parametrize("sort", ["noted_at- id-", "rank id", "rank- id", "title- id-"])
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
async def test_rows_inserted_during_a_walk_neither_repeat_nor_shift_others(
    notes: Database, sort: str, backward: bool
) -> None:
    rows = make_rows(40, seed=13)
    later = make_rows(60, seed=14)
    await fill(notes, rows)
    listed = NOTES[sort]
    async with notes.reading() as reading:
        expected = await all_ids(reading, SORTS[sort])
        if backward:
            expected.reverse()
        met: list[str] = []
        cursor: str | None = None
        more = True
        while more:
            page = await listed.page(
                reading,
                PageRequest(last=3, before=cursor)
                if backward
                else PageRequest(first=3, after=cursor),
            )
            met += ids(page)[::-1] if backward else ids(page)
            info = page.page_info
            more = info.has_previous_page if backward else info.has_next_page
            cursor = info.start_cursor if backward else info.end_cursor
            await fill(notes, [later.pop() for _ in range(min(3, len(later)))])
        old = {row["id"] for row in rows}
        assert len(met) == len(set(met))
        assert [each for each in met if each in old] == expected
        final = await all_ids(reading, SORTS[sort])
        assert met == [each for each in (final[::-1] if backward else final) if each in set(met)]


async def test_a_walk_goes_on_behind_a_row_that_was_removed(notes: Database) -> None:
    await fill(notes, make_rows(20, seed=15))
    listed = NOTES["rank- id"]
    async with notes.reading() as reading:
        expected = await all_ids(reading, SORTS["rank- id"])
        page = await listed.page(reading, PageRequest(first=5))
        async with notes.writing() as writing:
            await writing._connection.execute("DELETE FROM notes WHERE id = $1", page.nodes[-1].id)
        rest = await listed.page(reading, PageRequest(first=20, after=page.page_info.end_cursor))
        assert ids(rest) == expected[5:]


# --- what is refused ---------------------------------------------------------------------------


async def refusal(
    reading: Reading, request: PageRequest, listed: PagedList[Note] = NOTES["rank id"]
) -> BadPageRequest:
    async with counted(reading) as sent:
        with pytest.raises(BadPageRequest) as caught:
            await listed.page(reading, request)
    assert sent == [], "the database is not asked"
    assert str(caught.value) == caught.value.message
    return caught.value


@pytest.mark.parametrize("size", [-1, MAX_FIRST + 1, -(2**63), 2**63])
async def test_sizes_out_of_bounds_are_refused(notes: Database, size: int) -> None:
    """Rule P4."""
    async with notes.reading() as reading:
        for request, argument in (
            (PageRequest(first=size), "first"),
            (PageRequest(last=size), "last"),
        ):
            error = await refusal(reading, request)
            assert (error.code, error.argument) == ("INVALID_PAGE", argument)
            assert error.message == f"{argument} lies between 0 and 200."


async def test_first_and_last_together_are_refused(notes: Database) -> None:
    async with notes.reading() as reading:
        for first, last in ((1, 1), (0, 0), (-1, 1)):
            error = await refusal(reading, PageRequest(first=first, last=last))
            assert (error.code, error.argument) == ("INVALID_PAGE", "last")
            assert error.message == "Give either first or last, not both."


async def test_cursors_that_this_list_did_not_make_are_refused(notes: Database) -> None:
    """Rule P1."""
    await fill(notes, make_rows(3, seed=16))
    async with notes.reading() as reading:
        own = (await NOTES["rank id"].page(reading, PageRequest(first=1))).page_info.end_cursor
        assert own is not None
        forged = {
            "an offset": "-5",
            "a huge one": "9" * 400,
            "not base64": "!!!",
            "base64 of junk": "AAAAAAAAAAAAAAAAAAAAAAAA",
            "Relay's own": "YXJyYXljb25uZWN0aW9uOjA=",
            "empty": "",
            "text with NUL": "\0",
            "half a character": "\ud83d",
            "cut off": own[:-1],
            "another secret's": CursorSigner(b"x").write("notes(rank+,id+)", [1, "a"]),
            "another list's": reading.cursors.write("others(rank+,id+)", [1, "a"]),
        }
        for sort in ("rank- id", "rank id-", "id", "title id", "rank- title noted_at- id"):
            page = await NOTES[sort].page(reading, PageRequest(first=1))
            forged[f"of the same list by {sort}"] = str(page.page_info.end_cursor)
        shelf = NOTES_OF_SHELVES["rank id"]
        (page,) = await shelf.pages(reading, ["shelf_0"], PageRequest(first=1), hidden="")
        forged["of the same table"] = str(page.page_info.end_cursor)
        for kind, cursor in forged.items():
            for request, argument in (
                (PageRequest(first=1, after=cursor), "after"),
                (PageRequest(first=1, before=cursor), "before"),
                (PageRequest(last=1, after=own, before=cursor), "before"),
                (PageRequest(first=0, after=cursor), "after"),
            ):
                error = await refusal(reading, request)
                assert (error.code, error.argument) == ("INVALID_CURSOR", argument), kind
                assert error.message == (
                    f"{argument} is not a cursor of this list: pass one that the server gave."
                )
        assert ids(await NOTES["rank id"].page(reading, PageRequest(first=3, after=own)))


async def test_a_bad_request_for_many_parents_is_refused_as_a_whole(notes: Database) -> None:
    async with notes.reading() as reading:
        for parents in ([], ["shelf_0"], ["shelf_0", "shelf_1"]):
            for request in (PageRequest(first=-1), PageRequest(after="x")):
                with pytest.raises(BadPageRequest):
                    await NOTES_OF_SHELVES["id"].pages(reading, parents, request, hidden="")


async def test_a_writer_pages_through_its_own_changes(notes: Database) -> None:
    async def titles(writing: Writing) -> list[str | None]:
        page = await NOTES["title id"].page(writing, PageRequest(first=10))
        return [note.title for note in page.nodes]

    async with notes.writing() as writing:
        for title in ("b", None, "a"):
            await writing.insert(
                Note, id=f"note_{title}", shelf_id="s", title=title, noted_at=START
            )
        assert await titles(writing) == ["a", "b", None]
