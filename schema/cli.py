"""The commands that the Makefile calls: serve, migrate, revision, user, sdl."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import structlog
import uvloop

from db.embedded import DataFolderInUse, DataFolderUnusable, start_embedded
from db.engine import Database, DatabaseUnreachable, open_database
from db.enums import RoleName
from db.migrating import SchemaTooNew, migrate, write_revision
from db.settings import PROJECT_ROOT, Settings, SettingsError, load_settings
from schema.app import Server, create_app
from schema.root import sdl
from schema.serving import DrainingServer, PortTaken, uvicorn_config
from schema.wire.tracing import send_spans
from services import accounts
from services.errors import DomainError

SDL_FILE = PROJECT_ROOT / "schema" / "schema.graphql"


# What stops a command with one line that says what to do.
TOLD = (
    SettingsError,
    DataFolderInUse,
    DataFolderUnusable,
    DatabaseUnreachable,
    SchemaTooNew,
    DomainError,
    PortTaken,
)


async def serve(settings: Settings) -> None:
    """Serve until told to stop."""
    stop_sending = send_spans(settings.otlp_endpoint) if settings.otlp_endpoint else None
    app = create_app(settings)
    server: Server = app.state.server
    if stop_sending is not None:
        server.call_last(stop_sending)
    try:
        # Opened here and not by the lifespan protocol, whose errors would be a page of traceback.
        await server.open()
        _collect_garbage_less_often()
        await DrainingServer(uvicorn_config(app, settings), server).serve()
    finally:
        await server.close()


def _collect_garbage_less_often() -> None:
    # A large answer makes tens of thousands of objects that all go at once with it. With Python's
    # usual thresholds they are walked again and again meanwhile: a quarter of a page's time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 50, 1_000)


def configure_logging(settings: Settings) -> None:
    """Structured logs on standard error, from our code and from libraries."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shared: list[Any] = [
        # The id of the request in whose course something is logged.
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        foreign_pre_chain=shared,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.getLogger("mirrorgraph").setLevel(level)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


async def with_database(settings: Settings, work: Callable[[Database], Awaitable[None]]) -> None:
    """Open the database that the server uses (running or not), migrated, for a piece of work."""
    embedded = None
    if settings.database_url is None:
        embedded = start_embedded(settings.data_dir, exclusively=False)
        dsn = embedded.dsn
    else:
        dsn = settings.database_url.get_secret_value()
    try:
        await migrate(dsn)
        database = await open_database(
            dsn, pool_size=settings.pool_size, statement_timeout=settings.statement_timeout
        )
        try:
            await work(database)
        finally:
            await database.close()
    finally:
        if embedded is not None:
            embedded.stop()


async def make_user(
    settings: Settings, name: str, role: RoleName | None, *, is_revoked: bool
) -> None:
    """Make a user if there is none of that name, and print a new bearer token.

    With `is_revoked`, take all tokens of the user back instead.
    """

    async def work(database: Database) -> None:
        async with database.writing() as writing:
            user = await accounts.ensure_user(writing, name)
            if role is not None:
                await accounts.grant_role(writing, user.id, role)
            if is_revoked:
                count = await accounts.revoke_tokens(writing, user.id)
                said = f"revoked {count} tokens"
            else:
                said = f"token {await accounts.issue_token(writing, user.id)}"
        print(f"user  {user.id} ({user.name})\n{said}")

    await with_database(settings, work)


async def make_revision(settings: Settings, message: str) -> None:
    """Write the next migration and print its path."""

    async def work(database: Database) -> None:
        path = await write_revision(database.dsn, message)
        print(path.relative_to(PROJECT_ROOT))

    await with_database(settings, work)


async def bring_up_to_date(settings: Settings) -> None:
    """Migrate and stop."""

    async def work(_database: Database) -> None:
        print("The database is at the newest migration.")

    await with_database(settings, work)


def write_sdl(path: Path) -> None:
    """Write the schema in GraphQL's own language."""
    path.write_text(sdl(), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mirrorgraph")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="serve the API")
    commands.add_parser("migrate", help="bring the database to the newest schema")
    revision = commands.add_parser("revision", help="write the next migration")
    revision.add_argument("message")
    user = commands.add_parser("user", help="make a user and a bearer token")
    user.add_argument("name")
    user.add_argument("--role", type=RoleName, choices=list(RoleName))
    user.add_argument("--revoke", action="store_true", help="take all their tokens back")
    text = commands.add_parser("sdl", help="write the schema's SDL")
    text.add_argument("--output", type=Path, default=SDL_FILE)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status."""
    given = _parser().parse_args(arguments)
    try:
        settings = load_settings()
        configure_logging(settings)
        match given.command:
            case "serve":
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    runner.run(serve(settings))
            case "migrate":
                asyncio.run(bring_up_to_date(settings))
            case "revision":
                asyncio.run(make_revision(settings, given.message))
            case "user":
                asyncio.run(make_user(settings, given.name, given.role, is_revoked=given.revoke))
            case "sdl":
                write_sdl(given.output)
    except TOLD as error:
        print(f"mirrorgraph: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # the server has stopped in order; uvicorn raises it afterwards
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
