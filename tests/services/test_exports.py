from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.engine import Database
from db.enums import ExportFormat
from db.reading import Writing
from db.tables import Export
from services import exports
from services.access import Viewer, find_row
from services.exports import MAX_EXPORTS, safe_file_name
from tests.conftest import People


async def keep(writing: Writing, viewer: Viewer, content: bytes = b"x") -> Export:
    return await exports.store_export(
        writing, viewer, "soul_x", ExportFormat.CARD_PNG, "x.png", "image/png", content
    )


async def test_an_export_is_its_owners_for_a_day(database: Database, people: People) -> None:
    """Rules X8, X11."""
    async with database.writing() as writing:
        export = await keep(writing, people.owner, b"\0\xff")
        (life,) = await writing._connection.fetchrow("SELECT expires_at - created_at FROM exports")
        assert abs(life.total_seconds() - 24 * 3600) < 60
        assert export.url == f"/exports/{export.id}"
        assert await exports.find_export(writing, people.owner, export.id) == (export, b"\0\xff")
        for viewer in (people.stranger, people.anonymous):
            assert await exports.find_export(writing, viewer, export.id) is None
        assert await exports.find_export(writing, people.owner, "export_1") is None
        assert await exports.forget_old_exports(writing) == 0

        await writing._connection.execute("UPDATE exports SET expires_at = now()")
        assert await exports.find_export(writing, people.owner, export.id) is None
        assert await find_row(writing, people.owner, Export, export.id) is None
        assert await exports.forget_old_exports(writing) == 1
        for table in ("exports", "export_files"):
            assert await writing._connection.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_the_oldest_exports_make_room_for_new_ones(
    database: Database, people: People
) -> None:
    """Rule X11."""
    async with database.writing() as writing:
        theirs = await keep(writing, people.stranger)
        first = await keep(writing, people.owner)
        second = await keep(writing, people.owner)
        for _ in range(MAX_EXPORTS - 1):
            await keep(writing, people.owner)
        assert await exports.find_export(writing, people.owner, first.id) is None
        assert await exports.find_export(writing, people.owner, second.id) is not None
        assert await exports.find_export(writing, people.stranger, theirs.id) is not None


@pytest.mark.parametrize(
    ("name", "file_name"),
    [
        ("Gloria, PA", "Gloria, PA.png"),
        ("A/B: C?", "A B C.png"),
        ("../../etc/passwd", "etc passwd.png"),
        ("con", "_con.png"),
        ("NUL.txt", "_NUL.txt.png"),
        ("Com1", "_Com1.png"),
        ("Rook.", "Rook.png"),
        (" . ", "character.png"),
        ("", "character.png"),
        ("\u202egnp.exe", "gnp.exe.png"),
        ("a\tb\r\nc", "a b c.png"),
        ("Zoe\u0308", "Zo\u00eb.png"),
        ("\u9b42\u955c", "\u9b42\u955c.png"),
        ("\u9b42" * 100, "\u9b42" * 40 + ".png"),
        ('"100%"', "100.png"),
    ],
)
def test_a_file_name_is_made_of_the_characters_name(name: str, file_name: str) -> None:
    """Rule X12."""
    assert safe_file_name(name, "png") == file_name


@given(st.text())
def test_every_name_gives_a_file_name_that_any_system_stores(name: str) -> None:
    """Rule X12."""
    file_name = safe_file_name(name, "charx")
    stem = file_name.removesuffix(".charx")
    assert stem
    assert stem == stem.strip(" .")
    assert len(file_name.encode()) <= 128
    assert not set(file_name) & set('<>:"/\\|?*%')
    assert all(letter.isprintable() for letter in file_name)
    assert Path(file_name).name == file_name
    assert safe_file_name(stem, "charx") == file_name
