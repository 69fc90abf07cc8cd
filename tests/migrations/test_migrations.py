from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import re
import shutil
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from db import migrating
from db.engine import DatabaseUnreachable
from db.migrating import (
    VERSIONS,
    SchemaTooNew,
    current_revision,
    differences,
    downgrade,
    migrate,
    newest_revision,
    write_revision,
)
from db.tables import metadata
from tests.clusters import Cluster
from tests.conftest import ROOT

FILES = sorted(VERSIONS.glob("*.py"))
OWN_LAYERS = {"db", "services", "resolvers", "schema", "tests", "bench"}


@pytest.fixture
async def empty(cluster: Cluster) -> AsyncIterator[str]:
    """A database that no migration has seen."""
    dsn = await cluster.new_database(template="template1")
    yield dsn
    await cluster.drop(dsn)


CATALOGUE = """
SELECT 'column', format('%s.%s %s null:%s default:%s', table_name, column_name, data_type,
                        is_nullable, column_default)
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL
SELECT 'constraint', format('%s.%s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
AND contype NOT IN ('n', 't')  -- of the columns; of triggers, which are among the programs
UNION ALL
SELECT 'index', indexdef FROM pg_indexes WHERE schemaname = 'public'
"""
# Without what belongs to an extension, which stays when a migration is taken back: it may have been
# there before.
PROGRAMS = """
WITH extended AS (SELECT objid FROM pg_depend WHERE deptype = 'e')
SELECT 'trigger', pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT 'function', pg_get_functiondef(oid) FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND oid NOT IN (SELECT objid FROM extended)
UNION ALL
SELECT 'type', typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
AND oid NOT IN (SELECT objid FROM extended) AND typelem NOT IN (SELECT objid FROM extended)
UNION ALL
SELECT 'relation', relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
"""


async def catalogue(dsn: str, *questions: str) -> set[tuple[str, str]]:
    """What the database has, without what alembic keeps for itself."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = [row for question in questions for row in await connection.fetch(question)]
    finally:
        await connection.close()
    return {(kind, text) for kind, text in rows if "alembic_version" not in text}


# --- up and down -------------------------------------------------------------------------------


async def test_up_from_nothing_down_to_nothing_and_up_again(empty: str) -> None:
    assert await current_revision(empty) is None
    await migrate(empty)
    assert await current_revision(empty) == newest_revision()
    first = await catalogue(empty, CATALOGUE, PROGRAMS)
    assert {("relation", table.name) for table in metadata.sorted_tables} <= first
    await downgrade(empty, "base")
    assert await current_revision(empty) is None
    assert await catalogue(empty, CATALOGUE, PROGRAMS) == set()
    await migrate(empty)
    assert await catalogue(empty, CATALOGUE, PROGRAMS) == first
    assert await differences(empty) == []


async def test_each_migration_can_be_taken_back_alone(empty: str) -> None:
    numbers = [path.name[:3] for path in FILES]
    for number, previous in zip(numbers, ["base", *numbers], strict=False):
        before = await catalogue(empty, CATALOGUE, PROGRAMS)
        await migrate(empty, number)
        assert await current_revision(empty) == number
        after = await catalogue(empty, CATALOGUE, PROGRAMS)
        await downgrade(empty, previous)
        assert await catalogue(empty, CATALOGUE, PROGRAMS) == before
        await migrate(empty, number)
        assert await catalogue(empty, CATALOGUE, PROGRAMS) == after


async def test_runs_in_work_go_on_behind_the_numbers_that_were_reserved(empty: str) -> None:
    """Until 002 events were shown under reserved numbers before they were stored. Whoever saw one
    must see the end of the run, and no number may name two events.
    """
    await migrate(empty, "001")
    connection = await asyncpg.connect(empty)
    # What the runs are about does not matter here, so nothing of it is made.
    await connection.execute("SET session_replication_role = replica")
    await connection.executemany(
        "INSERT INTO runs (id, kind, status, requested_by_user_id, character_id, tree_id,"
        " question_node_id, provider, seed, lease_holder, lease_expires_at, ended_at, last_seq,"
        " reserved_seq) VALUES ($1, 'foreground', $2::text, 'user_1', 'character_1', 'tree_1',"
        " 'treenode_1', 'demo', 1, $3::text, CASE WHEN $3::text IS NOT NULL THEN now() END,"
        " CASE WHEN $2::text = 'succeeded' THEN now() END, $4, $5)",
        [
            ("run_queued", "queued", None, 0, 0),
            ("run_running", "running", "server_1", 5, 261),
            ("run_ended", "succeeded", None, 9, 261),
        ],
    )
    numbers = "SELECT id, last_seq FROM runs ORDER BY id"
    await migrate(empty, "002")
    after = [("run_ended", 9), ("run_queued", 0), ("run_running", 261)]
    assert [tuple(row) for row in await connection.fetch(numbers)] == after
    await downgrade(empty, "001")
    reserved = "SELECT id, reserved_seq FROM runs ORDER BY id"
    assert [tuple(row) for row in await connection.fetch(reserved)] == after
    await connection.close()


async def test_texts_of_events_move_out_of_the_log_and_back(empty: str) -> None:
    """Rule R18. Until 003 the texts stood in the append-only events themselves."""
    await migrate(empty, "002")
    connection = await asyncpg.connect(empty)
    await connection.execute("SET session_replication_role = replica")
    await connection.executemany(
        "INSERT INTO runs (id, kind, status, requested_by_user_id, character_id, tree_id,"
        " question_node_id, provider, seed, last_seq, started_at, ended_at) VALUES ($1,"
        " 'foreground', 'failed', 'user_1', 'character_1', 'tree_1', 'treenode_1', 'demo', 1, 4,"
        " $2, now())",
        [("run_asked", datetime.now(UTC)), ("run_never", None)],
    )
    said = [
        ("run_started", "{}"),
        ("text_delta", '{"text": "Yes, \\"é\\".", "channel": "text", "target_id": "node_1"}'),
        ("text_delta", '{"text": "", "channel": "reasoning", "target_id": "node_1"}'),
        ("run_warning", '{"code": "TEST", "message": "Kept.", "text": "Kept, too."}'),
        (
            "run_finished",
            '{"node_id": null, "error": {"code": "REFUSED", "message": "You said é."}}',
        ),
    ]
    # What a provider says may quote private text, and so stands on the run alone.
    await connection.execute("UPDATE runs SET error_message = 'You said é.'")
    await connection.executemany(
        "INSERT INTO run_events (run_id, seq, type, visibility, payload_json, at)"
        " VALUES ('run_asked', $1, $2, 'public', $3, now())",
        [(seq, kind, payload) for seq, (kind, payload) in enumerate(said, start=1)],
    )
    events = "SELECT * FROM run_events ORDER BY seq"
    before = await connection.fetch(events)

    await migrate(empty, "003")
    texts = await connection.fetch("SELECT * FROM run_event_texts ORDER BY seq")
    assert [tuple(row) for row in texts] == [("run_asked", 2, 'Yes, "é".'), ("run_asked", 3, "")]
    after = await connection.fetch(events)
    for old, new in zip(before, after, strict=True):
        payload = json.loads(old["payload_json"])
        if old["type"] == "text_delta":
            del payload["text"]
        if old["type"] == "run_finished":
            del payload["error"]["message"]
        assert json.loads(new["payload_json"]) == payload
        assert {**old, "payload_json": ""} == {**new, "payload_json": ""}
    runs = "SELECT id, attempts, texts_until_seq, context_json FROM runs ORDER BY id"
    assert [tuple(row) for row in await connection.fetch(runs)] == [
        ("run_asked", 1, None, None),
        ("run_never", 0, None, None),
    ]
    # The log refuses every change again.
    await connection.execute("SET session_replication_role = DEFAULT")
    with pytest.raises(asyncpg.PostgresError) as refused:
        await connection.execute("UPDATE run_events SET seq = seq")
    assert refused.value.sqlstate == "MG001"

    await connection.execute("DELETE FROM run_event_texts WHERE seq = 2")
    await downgrade(empty, "002")
    back = await connection.fetch(events)
    expected = [json.loads(row["payload_json"]) for row in before]
    expected[1]["text"] = ""  # what is erased does not come back
    assert [json.loads(row["payload_json"]) for row in back] == expected
    with pytest.raises(asyncpg.PostgresError) as refused:
        await connection.execute("DELETE FROM run_events")
    assert refused.value.sqlstate == "MG001"
    await connection.close()


async def test_runs_that_translate_go_with_their_events_when_009_is_taken_back(empty: str) -> None:
    await migrate(empty, "009")
    connection = await asyncpg.connect(empty)
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(
        "INSERT INTO runs (id, kind, status, requested_by_user_id, character_id, tree_id, language,"
        " provider, seed, last_seq, ended_at) VALUES"
        " ('run_1', 'foreground', 'failed', 'user_1', 'char_1', 'tree_1', NULL, 'demo', 1, 1,"
        " now()),"
        " ('run_2', 'translation', 'failed', 'user_1', NULL, NULL, 'fr', 'demo', 1, 1, now())"
    )
    await connection.execute(
        "INSERT INTO run_events (run_id, seq, type, visibility, payload_json, at) VALUES"
        " ('run_1', 1, 'run_finished', 'public', '{}', now()),"
        " ('run_2', 1, 'run_progressed', 'public', '{}', now())"
    )
    await downgrade(empty, "008")
    for table, column in (("runs", "id"), ("run_events", "run_id")):
        rows = await connection.fetch(f"SELECT {column} FROM {table}")
        assert [tuple(row) for row in rows] == [("run_1",)]
    await connection.execute("SET session_replication_role = DEFAULT")
    with pytest.raises(asyncpg.PostgresError) as refused:
        await connection.execute("DELETE FROM run_events")
    assert refused.value.sqlstate == "MG001"
    await connection.close()


async def test_a_migrated_database_is_what_the_tables_say(dsn: str, empty: str) -> None:
    """Also in checks and in the names of constraints, which alembic does not compare."""
    assert await differences(dsn) == []
    engine = create_async_engine(re.sub(r"^postgresql://", "postgresql+asyncpg://", empty))
    async with engine.begin() as connection:
        await connection.execute(text("CREATE EXTENSION vector"))
        await connection.run_sync(metadata.create_all)
    await engine.dispose()
    assert await catalogue(dsn, CATALOGUE) == await catalogue(empty, CATALOGUE)


async def test_differences_are_told(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("ALTER TABLE users DROP COLUMN name")
    await connection.execute("CREATE TABLE stray (id int)")
    await connection.close()
    found = await differences(dsn)
    assert len(found) == 2
    assert any("remove_table" in each and "stray" in each for each in found)
    assert any("add_column" in each and "'name'" in each for each in found)


async def test_migrating_again_changes_nothing(dsn: str) -> None:
    before = await catalogue(dsn, CATALOGUE, PROGRAMS)
    await migrate(dsn)
    await migrate(dsn, newest_revision())
    assert await catalogue(dsn, CATALOGUE, PROGRAMS) == before


# --- many servers, other versions --------------------------------------------------------------


async def test_servers_that_start_at_once_migrate_once(empty: str) -> None:
    await asyncio.gather(*(migrate(empty) for _ in range(4)))
    assert await current_revision(empty) == newest_revision()
    assert await differences(empty) == []


async def test_processes_that_start_at_once_migrate_once(empty: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from db.migrating import migrate\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "asyncio.run(migrate(sys.argv[1]))\n"
    )
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program,
            empty,
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(2)
    ]
    async with asyncio.timeout(60):
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        results = await asyncio.gather(*(each.communicate(b"\n") for each in processes))
    assert [each.returncode for each in processes] == [0, 0], results
    assert await current_revision(empty) == newest_revision()
    assert await differences(empty) == []


async def test_a_migration_that_fails_leaves_nothing(empty: str) -> None:
    connection = await asyncpg.connect(empty)
    await connection.execute("CREATE TABLE roles (id int)")  # in the way
    await connection.close()
    before = await catalogue(empty, CATALOGUE, PROGRAMS)
    with pytest.raises(Exception, match='relation "roles" already exists'):
        await migrate(empty)
    assert await catalogue(empty, CATALOGUE, PROGRAMS) == before
    assert await current_revision(empty) is None


async def test_a_database_of_a_newer_program_is_left_alone(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("UPDATE alembic_version SET version_num = '999'")
    await connection.close()
    before = await catalogue(dsn, CATALOGUE, PROGRAMS)
    for revision in ("head", newest_revision()):
        with pytest.raises(SchemaTooNew) as caught:
            await migrate(dsn, revision)
        assert str(caught.value) == (
            f"The database is at migration 999, this program knows {newest_revision()}: "
            "start the newer version that made it."
        )
    assert await catalogue(dsn, CATALOGUE, PROGRAMS) == before
    assert await current_revision(dsn) == "999"


async def test_a_database_that_does_not_answer_is_told_in_one_line() -> None:
    with pytest.raises(DatabaseUnreachable) as caught:
        await migrate("postgresql://ada:hunter2@127.0.0.1:1/mirror")
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


# --- how migrations are written ----------------------------------------------------------------


def loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"migration_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported_roots(source: str) -> set[str]:
    """The packages that a file imports, also inside functions."""
    roots = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add("." if node.level else str(node.module).partition(".")[0])
    return roots


def test_migrations_are_numbered_without_gaps_in_one_line() -> None:
    assert [path.name[:4] for path in FILES] == [f"{n:03}_" for n in range(len(FILES))]
    assert newest_revision() == f"{len(FILES) - 1:03}"
    previous = None
    for path in FILES:
        module = loaded(path)
        assert re.fullmatch(r"\d{3}_[a-z0-9_]+\.py", path.name)
        assert module.revision == path.name[:3]
        assert module.down_revision == previous
        assert module.branch_labels is None
        assert module.depends_on is None
        previous = module.revision


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_migration_says_what_for_and_what_it_locks(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text is not None
    for word in ("Purpose", "Lock"):
        (line,) = re.findall(rf"^{word}: (.+)$", text, re.MULTILINE)
        assert line[0].islower() or line[0].isupper()
        assert not line.startswith(("say what", "name the")), "the template's words"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_migration_depends_on_no_code_that_may_change(path: Path) -> None:
    roots = imported_roots(path.read_text())
    assert not roots & (OWN_LAYERS | {"."})


# --- making the next one -----------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the migrations, which takes the place of the project's own."""
    shutil.copy(ROOT / "alembic.ini", tmp_path)
    shutil.copytree(
        ROOT / "migrations",
        tmp_path / "migrations",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    versions = tmp_path / "migrations" / "versions"
    monkeypatch.setattr(migrating, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(migrating, "VERSIONS", versions)
    return versions


async def test_the_next_migration_is_written_from_what_is_missing(empty: str, copied: Path) -> None:
    await migrate(empty)
    whole = await catalogue(empty, CATALOGUE)
    # As if the tables in the code had got a column and an index since.
    connection = await asyncpg.connect(empty)
    await connection.execute("ALTER TABLE idempotency DROP COLUMN answer_json")
    await connection.execute("DROP INDEX ix_runs_node_id")
    await connection.close()
    before = sorted(path.name for path in FILES)
    path = await write_revision(empty, "Answers can be kept: again!")
    number = f"{len(FILES):03}"
    assert path == copied / f"{number}_answers_can_be_kept_again.py"
    assert sorted(path.name for path in VERSIONS.glob("*.py")) == before
    assert newest_revision() == number
    source = path.read_text()
    assert "Purpose: " in source
    assert "Lock: " in source
    assert not imported_roots(source) & OWN_LAYERS
    module = loaded(path)
    assert module.revision == number
    assert module.down_revision == before[-1][:3]
    assert await current_revision(empty) == before[-1][:3], "written, not carried out"
    await migrate(empty)
    assert await current_revision(empty) == number
    assert await differences(empty) == []
    assert await catalogue(empty, CATALOGUE) == whole
    await downgrade(empty, before[-1][:3])
    assert len(await differences(empty)) == 2


async def test_the_next_migration_brings_an_old_database_up_first(empty: str, copied: Path) -> None:
    path = await write_revision(empty, "nothing")
    assert await current_revision(empty) == f"{len(FILES) - 1:03}"
    functions = [
        node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    assert [node.name for node in functions] == ["upgrade", "downgrade"]
    for node in functions:
        assert [type(each) for each in node.body] == [ast.Expr, ast.Pass]
    following = await write_revision(empty, "nothing again")
    assert following.name == f"{len(FILES) + 1:03}_nothing_again.py"
