from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.cursors import CursorSigner
from db.engine import Database
from db.enums import EmbryoStatus, Origin, UserStatus
from db.ids import new_id, parse_id
from db.reading import (
    Record,
    Statement,
    Writing,
    any_of,
    columns,
    compile_statement,
    param,
    record_class,
    statement,
)
from db.tables import EmbryoDraft, LorebookEntry, Role, Run, Setting, Table, User
from db.tables.characters import ChecklistPoint


@statement(User)
def users_by_name() -> Any:
    return select(*columns(User)).where(col(User.name) == param("name")).order_by(col(User.id))


@statement(User)
def rename_user() -> Any:
    return update(User).where(col(User.id) == param("id")).values(name=param("name"))


@statement(User)
def delete_users() -> Any:
    return delete(User).where(any_of(col(User.id), "ids"))


@statement(object)
def count_users() -> Any:
    return select(func.count()).select_from(User)


async def make_user(writing: Writing, name: str) -> User:
    return await writing.insert(User, name=name, status=UserStatus.ACTIVE)


def typed(value: Any) -> Any:
    """A value together with the types inside it, so that 1 and True differ."""
    if isinstance(value, dict):
        return {key: typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value), value)
    return value


# --- statements --------------------------------------------------------------------------------


def test_a_statement_is_built_once_for_each_shape() -> None:
    built: list[tuple[str, bool]] = []

    @statement(User)
    def sorted_users(column: str, is_descending: bool) -> Any:
        built.append((column, is_descending))
        key = col(getattr(User, column))
        return select(*columns(User)).order_by(key.desc() if is_descending else key.asc())

    first = sorted_users("name", False)
    assert sorted_users("name", False) is first
    assert sorted_users("name", True) is not first
    assert sorted_users("id", False) is not first
    assert sorted_users("name", True).sql.endswith("ORDER BY users.name DESC")
    assert built == [("name", False), ("name", True), ("id", False)]


def test_parameters_stand_in_the_order_of_the_text() -> None:
    compiled: Statement[Any] = compile_statement(
        select(col(User.id)).where(
            col(User.name) == param("b"),
            col(User.status) == "active",
            col(User.id) == param("a"),
            col(User.name) != param("b"),
        ),
        record_class(User),
    )
    assert "$1" in compiled.sql
    assert "$4" not in compiled.sql, "a parameter that is used twice is sent once"
    assert compiled.fixed == {"status_1": "active"}
    assert compiled.arguments({"a": 1, "b": 2}) == [2, "active", 1]
    assert compiled.arguments({"a": None, "b": 2}) == [2, "active", None]


@pytest.mark.parametrize(("given_values", "missing"), [({}, "name"), ({"nmae": "x"}, "name")])
async def test_a_missing_parameter_is_named(
    shared_database: Database, given_values: dict[str, Any], missing: str
) -> None:
    async with shared_database.reading() as reading:
        with pytest.raises(KeyError) as caught:
            await reading.all(users_by_name(), **given_values)
    assert caught.value.args == (missing,)


async def test_rows_come_as_all_as_the_first_or_as_a_value(database: Database) -> None:
    async with database.writing() as writing:
        made = [await make_user(writing, name) for name in ("twin", "twin", "other")]
    twins = sorted(each.id for each in made[:2])
    async with database.reading() as reading:
        assert [each.id for each in await reading.all(users_by_name(), name="twin")] == twins
        first = await reading.first(users_by_name(), name="twin")
        assert first is not None
        assert first.id == twins[0]
        assert await reading.value(users_by_name(), name="twin") == twins[0]
        assert await reading.value(count_users()) == 3
        assert await reading.all(users_by_name(), name="nobody") == []
        assert await reading.first(users_by_name(), name="nobody") is None
        assert await reading.value(users_by_name(), name="nobody") is None


async def test_any_of_takes_a_list_of_any_length(database: Database) -> None:
    async with database.writing() as writing:
        made = [await make_user(writing, f"n{number}") for number in range(5)]
        assert await writing.run(delete_users(), ids=[]) == 0
        assert await writing.run(delete_users(), ids=["user_x", made[0].id, made[0].id]) == 1
        assert await writing.run(delete_users(), ids=[each.id for each in made]) == 4


# --- records -----------------------------------------------------------------------------------


async def test_a_record_has_the_attributes_of_its_table(shared_database: Database) -> None:
    started = datetime.now(UTC)
    async with shared_database.writing() as writing:
        user = await make_user(writing, "Ada")
    assert isinstance(user, Record)
    assert type(user).__name__ == "User"
    assert (user.name, user.status, user.updated_at, user.version) == ("Ada", "active", None, 1)
    assert user.created_at.utcoffset() == timedelta(0)
    assert abs(user.created_at - started) < timedelta(minutes=1)
    with pytest.raises(AttributeError) as caught:
        _ = user.nmae  # type: ignore[attr-defined]
    assert str(caught.value) == "User has no column 'nmae'"
    assert getattr(user, "nmae", 7) == 7
    with pytest.raises(AttributeError):
        user.name = "Eve"


async def test_properties_of_table_classes_work_on_records(shared_database: Database) -> None:
    points = [{"key": "name", "label": "The name", "is_confirmed": True}]
    async with shared_database.writing() as writing:
        user = await make_user(writing, "Ada")
        draft = await writing.insert(
            EmbryoDraft,
            owner_user_id=user.id,
            origin=Origin.ORIGINAL,
            status=EmbryoStatus.DRAFT,
            provisional_identity={"name": "Ada"},
            checklist_points=points,
        )
    assert draft.checklist == [ChecklistPoint("name", "The name", True)]
    assert draft.source_card is None
    assert record_class(EmbryoDraft) is record_class(EmbryoDraft) is type(draft)
    assert isinstance(vars(record_class(Run))["error"], property)


def test_no_column_hides_behind_a_records_own_attribute() -> None:
    for table in Table.__subclasses__():
        own = record_class(table)
        for name in table.model_fields:
            assert isinstance(getattr(own, name, None), property) or not hasattr(own, name), name
    assert isinstance(record_class(LorebookEntry).keys, property)


# --- inserting ---------------------------------------------------------------------------------


async def test_an_inserted_row_comes_back_with_its_id_and_defaults(database: Database) -> None:
    async with database.writing() as writing:
        made = await make_user(writing, "Ada")
        assert parse_id(made.id).table == "users"
        own = await writing.insert(User, id=new_id("users"), name="Eve", status="disabled")
        assert await writing.first(users_by_name(), name="Eve") == own
    async with database.reading() as reading:
        assert await reading.first(users_by_name(), name="Ada") == made


async def test_a_missing_value_is_refused_by_the_database(database: Database) -> None:
    with pytest.raises(asyncpg.NotNullViolationError):
        async with database.writing() as writing:
            await writing.insert(User, name="Ada")
    with pytest.raises(asyncpg.CheckViolationError, match="ck_users_one_of_status"):
        async with database.writing() as writing:
            await writing.insert(User, name="Ada", status="sleeping")
    with pytest.raises(KeyError, match="no_such_column"):
        async with database.writing() as writing:
            await writing.insert(User, name="Ada", status="active", no_such_column=1)


async def test_many_rows_go_in_at_once(database: Database) -> None:
    rows = [
        {"id": new_id("settings"), "key": f"k{number}", "value": {"n": number}}
        for number in range(250)
    ]
    async with database.writing() as writing:
        await writing.insert_many(Setting, [])
        await writing.insert_many(Setting, iter(rows))
    async with database.reading() as reading:
        found = await reading.all(_settings())
    assert {each.key: each.value for each in found if each.key.startswith("k")} == {
        each["key"]: each["value"] for each in rows
    }


async def test_many_rows_go_in_wholly_or_not_at_all(database: Database) -> None:
    first = {"id": new_id("settings"), "key": "a", "value": 1}
    with pytest.raises(asyncpg.UniqueViolationError, match="uq_settings_key"):
        async with database.writing() as writing:
            await writing.insert_many(Setting, [first, {**first, "id": new_id("settings")}])
    for other, differing in (
        ({"id": "x", "key": "b"}, "value"),
        ({"id": "x", "key": "b", "value": 1, "created_at": None}, "created_at"),
        ({"id": "x", "kye": "b", "value": 1}, "key, kye"),
    ):
        with pytest.raises(ValueError, match=f"these differ: {differing}$"):
            async with database.writing() as writing:
                await writing.insert_many(Setting, [first, other])
    async with database.reading() as reading:
        kept = [each.key for each in await reading.all(_settings())]
        assert sorted(kept) == ["cursor_key", "files_name", "identity_key"]


@statement(Setting)
def _settings() -> Any:
    return select(*columns(Setting)).order_by(col(Setting.key))


async def test_run_counts_the_rows_it_touched(database: Database) -> None:
    async with database.writing() as writing:
        ada, eve = [await make_user(writing, name) for name in ("Ada", "Eve")]
        assert await writing.run(rename_user(), id=ada.id, name="Bea") == 1
        assert await writing.run(rename_user(), id="user_none", name="Bea") == 0
        assert await writing.run(delete_users(), ids=[ada.id, eve.id]) == 2
        insertion = compile_statement(
            insert(Role).values(id=literal("r"), name=literal("member")), record_class(Role)
        )
        assert await writing.run(insertion) == 1
        assert await writing.run(count_users()) == 1  # rows that a SELECT gives


# --- JSON --------------------------------------------------------------------------------------

# Surrogates and U+0000 cannot be stored; jsonb holds a float as the decimal
# number it prints as, so that a big one without a fraction comes back as a whole number.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63 - 1)
    | st.floats(min_value=-1e15, max_value=1e15)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=documents)
@example(document={"é": ["日本語 😀", {"": {'\u2028"\\/': [[], {}, [None]]}}], "a": {"b": 1.5}})
@example(document="just a text")
@example(document=[1, True, "1", None, 1.25, -0.0, 1e308, 5e-324, 2**63 - 1])
async def test_json_comes_back_as_it_went_in(shared_database: Database, document: Any) -> None:
    asked: Statement[Any] = compile_statement(
        select(param("document", JSONB()).label("document")), record_class(object)
    )
    async with shared_database.reading() as reading:
        assert typed(await reading.value(asked, document=document)) == typed(document)


async def test_json_null_and_no_json_differ(shared_database: Database) -> None:
    asked: Statement[Any] = compile_statement(
        select(func.jsonb_typeof(param("document", JSONB()))), record_class(object)
    )
    async with shared_database.reading() as reading:
        assert await reading.value(asked, document=None) is None
        assert await reading.value(asked, document={"a": None}) == "object"
        # orjson has no number for it; callers check before.
        assert await reading.value(asked, document=math.nan) == "null"


# --- what cannot be stored ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\0b", asyncpg.CharacterNotInRepertoireError),
        ("\ud83d", asyncpg.DataError),
    ],
    ids=["NUL", "half a character"],
)
async def test_text_that_cannot_be_stored_ends_in_a_clear_error(
    database: Database, text: str, expected: type[Exception]
) -> None:
    async with database.reading() as reading:
        with pytest.raises(expected):
            await reading.all(users_by_name(), name=text)
        assert await reading.value(count_users()) == 0, "the connection still serves"

    async def write() -> None:
        async with database.writing() as writing:
            await make_user(writing, "before")
            await make_user(writing, text)

    with pytest.raises(expected):
        await write()
    async with database.writing() as writing:
        await make_user(writing, "after")
        assert await writing.value(count_users()) == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\0b", asyncpg.UntranslatableCharacterError),
        ({"\0": 1}, asyncpg.UntranslatableCharacterError),
        (["\ud83d"], asyncpg.DataError),
        (2**64, asyncpg.DataError),
        ({1: 2}, asyncpg.DataError),
        ({1, 2}, asyncpg.DataError),
    ],
    ids=["NUL", "NUL key", "half a character", "huge number", "number as key", "set"],
)
async def test_json_that_cannot_be_stored_ends_in_a_clear_error(
    database: Database, value: Any, expected: type[Exception]
) -> None:
    async def write() -> None:
        async with database.writing() as writing:
            await make_user(writing, "before")
            await writing.insert(Setting, key="k", value=value)

    with pytest.raises(expected):
        await write()
    async with database.reading() as reading:
        assert await reading.value(count_users()) == 0
    async with database.writing() as writing:
        assert (await writing.insert(Setting, key="k", value=[1])).value == [1]


# --- reading and writing -----------------------------------------------------------------------


async def test_the_database_itself_refuses_writes_of_a_reader(database: Database) -> None:
    async with database.writing() as writing:
        user = await make_user(writing, "Ada")
    insertion: Statement[Any] = compile_statement(
        insert(User).values(id=literal("u"), name=literal("n"), status=literal("active")),
        record_class(User),
    )
    async with database.reading() as reading:
        assert not isinstance(reading, Writing)
        for work in (
            reading.all(insertion),
            reading.first(rename_user(), id=user.id, name="Eve"),
            reading.value(delete_users(), ids=[user.id]),
        ):
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await work
        assert [each.id for each in await reading.all(users_by_name(), name="Ada")] == [user.id]


async def test_a_writer_sees_its_own_changes_and_a_reader_does_not_yet(database: Database) -> None:
    async with database.writing() as writing, database.reading() as reading:
        await make_user(writing, "Ada")
        assert await writing.value(count_users()) == 1
        assert await reading.value(count_users()) == 0
    async with database.reading() as reading:
        assert await reading.value(count_users()) == 1


class _Undone(Exception):
    pass


async def test_announcements_arrive_when_their_transaction_commits(
    database: Database, dsn: str
) -> None:
    async def announce_and_undo() -> None:
        async with database.writing() as writing:
            await writing.notify("things", "undone")
            raise _Undone

    heard: asyncio.Queue[str] = asyncio.Queue()
    listening = await asyncpg.connect(dsn)
    try:
        await listening.add_listener("things", lambda *arguments: heard.put_nowait(arguments[3]))
        with pytest.raises(_Undone):
            await announce_and_undo()
        async with database.writing() as writing:
            await writing.notify("others", "elsewhere")
            await writing.notify("things", "a'b\"é😀")
            await writing.notify("things", "x" * 7_999)
            # An answer on the listening connection would bring announcements with it.
            await listening.execute("SELECT 1")
            assert heard.empty()
        async with asyncio.timeout(5):
            assert await heard.get() == "a'b\"é😀"
            assert await heard.get() == "x" * 7_999
        with pytest.raises(asyncpg.InvalidParameterValueError, match="payload string too long"):
            async with database.writing() as writing:
                await writing.notify("things", "x" * 8_000)
    finally:
        await listening.close()


async def test_reading_needs_no_more_than_the_statement_itself(database: Database) -> None:
    """No look-up of types, no reset between loans: each would cost a round trip."""
    sent: list[str] = []
    async with database.reading() as reading:
        await reading.all(users_by_name(), name="warm")
        connection = reading._connection
        with connection.query_logger(lambda record: sent.append(record.query)):
            await reading.all(_users_of_ids(), ids=["a", "b"])
            await asyncio.sleep(0)  # the log is written in the next turn of the loop
    assert sent == [_users_of_ids().sql]


@statement(User)
def _users_of_ids() -> Any:
    return select(*columns(User)).where(any_of(col(User.id), "ids"))


def test_handles_share_the_signer_of_cursors() -> None:
    signer = CursorSigner(b"s")
    assert Writing(None, signer).cursors is signer
