"""The process's front door: what is started and stopped with the server, who the viewer is, and
which address leads where.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from db.embedded import start_embedded
from db.engine import Database, files_folder, open_database
from db.enums import RunKind
from db.listening import Listener
from db.migrating import migrate
from db.settings import AuthMode, Settings, SettingsError
from resolvers.context import Engine
from schema import run_events
from schema.downloads import asset_answer, download, export_answer
from schema.observing import Observation
from schema.root import schema, sdl
from schema.signing_in import SignedIn, sign_in
from schema.wire.documents import DocumentCache, DocumentReader, ManifestError, read_manifest
from schema.wire.errors import Refused, error_response
from schema.wire.execution import Operations
from schema.wire.http import (
    STREAM_TOKEN_HEADER,
    EndpointSettings,
    GraphQLEndpoint,
)
from schema.wire.limits import Limits
from schema.wire.metrics import Metrics
from schema.wire.origins import PREFLIGHT_HEADERS
from services import accounts, demo
from services.access import Viewer
from services.assets import Bucket, FileStore, Sweeper, open_store
from services.characters import issue_missing_records
from services.embedding import Embedders, VectorSweeper
from services.endings import archive_deceased
from services.exports import forget_old_exports
from services.housekeeping import Chore, Housekeeper
from services.hub import CHANNEL, Hub
from services.petitions import expire_petitions
from services.providers import ProviderSettings, make_provider
from services.rehearsing import Rehearsals
from services.runs import ANSWERS, Asking, Retries, RunWorker, Work, forget_old_texts
from services.searching import WordSweeper
from services.translating import Translating

logger = structlog.get_logger("mirrorgraph.server")

# What is done in runs, by their kind.
WORKS: dict[RunKind, type[Work]] = {**ANSWERS, RunKind.TRANSLATION: Translating}
# How long a stop waits for streams to take their last message.
DRAIN_SECONDS = 5.0

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_IMMUTABLE = "public, max-age=31536000, immutable"

PLAIN_PAGE = """<!doctype html><meta charset="utf-8"><title>Mirrorgraph</title>
<h1>Mirrorgraph</h1>
<p>The GraphQL API is at <a href="/schema.graphql">/graphql</a>. Its web pages were not built,
which needs Node 20: install it, then start again with <code>make run</code>.</p>
"""


class Server:
    """Everything that lives as long as the process serves: made by `open`, undone by `close`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.is_draining = False
        self._closing = contextlib.AsyncExitStack()
        self._engine: Engine | None = None
        self._listener: Listener | None = None
        self._local_viewer: Viewer | None = None

    @property
    def engine(self) -> Engine:
        """What operations share; the server must be open."""
        assert self._engine is not None
        return self._engine

    async def open(self) -> None:
        """Start the database, bring it to the newest schema, take up work."""
        began = time.monotonic()
        settings = self.settings
        dsn = await self._database_address()
        await migrate(dsn)
        database = await open_database(
            dsn, pool_size=settings.pool_size, statement_timeout=settings.statement_timeout
        )
        self._closing.push_async_callback(database.close)
        await database.load_secrets()
        await self._sign_in_locally(database)
        hub = Hub()
        self._listener = Listener(
            dsn, CHANNEL, hub.publish, lambda: _listener_lost(hub), hub.publish_all
        )
        await self._listener.start()
        self._closing.push_async_callback(self._listener.close)
        provider = make_provider(_provider_settings(settings))
        budget = settings.context_tokens - settings.answer_tokens
        worker = RunWorker(
            database,
            hub,
            provider,
            holder=f"server_{os.getpid()}_{secrets.token_hex(8)}",
            lease_seconds=settings.lease_seconds,
            concurrent_runs=settings.concurrent_runs,
            asking=Asking(
                budget,
                Retries(settings.provider_retries),
            ),
            works=WORKS,
        )
        await worker.start(is_only_server=settings.database_url is None)
        rehearsals = Rehearsals(database, provider, most=settings.concurrent_runs, budget=budget)
        files = await _open_files(settings, database)
        embedders = Embedders(settings.embedder, settings.embedder_threads)
        self._closing.callback(embedders.close)
        self._engine = Engine(settings, database, hub, worker, rehearsals, files, embedders)
        housekeeper = Housekeeper(
            database, _chores(settings, files), seconds=settings.housekeeping_seconds
        )
        housekeeper.start()
        self._closing.push_async_callback(housekeeper.stop)
        logger.info("ready", seconds=round(time.monotonic() - began, 2), provider=settings.provider)

    async def _database_address(self) -> str:
        if self.settings.database_url is not None:
            return self.settings.database_url.get_secret_value()
        embedded = await asyncio.to_thread(start_embedded, self.settings.data_dir, exclusively=True)
        self._closing.push_async_callback(asyncio.to_thread, embedded.stop)
        return embedded.dsn

    async def _sign_in_locally(self, database: Database) -> None:
        if self.settings.auth is not AuthMode.LOCAL:
            return
        async with database.writing() as writing:
            user = await accounts.ensure_user(writing, accounts.LOCAL_USER_NAME)
            self._local_viewer = Viewer(user.id)
            if self.settings.demo_content and await demo.is_empty(writing):
                await demo.create_demo(writing, self._local_viewer)

    def call_last(self, undo: Callable[[], None]) -> None:
        """Have something undone after everything else; to be said before the server is opened."""
        self._closing.callback(undo)

    async def drain(self) -> None:
        """Refuse new operations, cut running generations, end open streams."""
        if self.is_draining:
            return
        self.is_draining = True
        # Before the worker, which closes the provider.
        await self.engine.rehearsals.drain()
        await self.engine.worker.drain()
        self.engine.hub.close(
            "SERVER_STOPPING", "The server is stopping: connect again and go on with `after`."
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self.engine.hub.wait_until_quiet()

    async def close(self) -> None:
        """Drain, then give everything back, the database last."""
        if self._engine is not None:
            await self.drain()
        await self._closing.aclose()

    async def sign_in(self, headers: Mapping[str, str]) -> SignedIn:
        """Whom these headers (in lower case) sign in. Raises Refused."""
        return await sign_in(headers, self.engine, self._local_viewer, self.check_open)

    def check_open(self) -> None:
        """Raises Refused while the server stops."""
        if self.is_draining:
            raise Refused(
                503,
                "SERVER_STOPPING",
                "The server is stopping: try again soon.",
                headers={"retry-after": "5"},
            )

    async def is_ready(self) -> bool:
        """Whether operations can be served now."""
        return (
            self._engine is not None
            and not self.is_draining
            and self._listener is not None
            and self._listener.is_connected
            and await self._engine.database.is_ready()
        )


def _chores(settings: Settings, files: FileStore) -> dict[str, Chore]:
    """What the server does by the clock: one line for each chore."""
    days = settings.run_retention_days
    sweeper = Sweeper(files, timedelta(days=settings.assets_retention_days))
    return {
        "archive the deceased": archive_deceased,
        "delete files that nothing shows": sweeper.sweep_given_up,
        "delete bytes without a row": sweeper.sweep_orphans,
        "delete vectors that nothing has": VectorSweeper().sweep,
        "delete words that nothing has": WordSweeper().sweep,
        "forget old exports": forget_old_exports,
        "forget old texts of runs": lambda writing: forget_old_texts(writing, days),
        "issue missing identity records": issue_missing_records,
        "let petitions expire": expire_petitions,
    }


def _listener_lost(hub: Hub) -> None:
    logger.warning("the database's announcements were lost: streams are ended to be resumed")
    hub.interrupt(
        "STREAM_INTERRUPTED",
        "Events can no longer be heard here: come back and go on with `after`.",
    )


async def _open_files(settings: Settings, database: Database) -> FileStore:
    async with database.reading() as reading:
        folder = await files_folder(reading)
    if settings.assets_url is not None:
        bucket = Bucket(
            settings.assets_url,
            settings.assets_endpoint,
            settings.assets_region,
            settings.assets_key_id,
            _revealed(settings.assets_key),
        )
        return open_store(bucket, folder)
    try:
        return open_store(settings.data_dir / "assets", folder)
    except OSError as error:
        raise SettingsError(f"MIRRORGRAPH_DATA_DIR: {error}") from None


def _provider_settings(settings: Settings) -> ProviderSettings:
    return ProviderSettings(
        provider=settings.provider,
        model=settings.model,
        openai_base_url=settings.openai_base_url,
        openai_api_key=_revealed(settings.openai_api_key),
        anthropic_api_key=_revealed(settings.anthropic_api_key),
        anthropic_base_url=settings.anthropic_base_url,
        demo_rate=settings.demo_rate,
        first_token_timeout=settings.first_token_timeout,
        silence_timeout=settings.silence_timeout,
    )


def _revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None


def create_app(settings: Settings) -> Starlette:
    """The ASGI application; `app.state.server` is the Server that its lifespan opens."""
    server = Server(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            await server.open()
            yield
        finally:
            await server.close()

    metrics = Metrics()
    limits = _limits(settings)
    documents = _documents(settings, limits)
    operations = Operations(
        schema, documents, limits, metrics, suggestions=settings.gives_suggestions
    )
    endpoint = GraphQLEndpoint(
        operations, server.sign_in, _endpoint_settings(settings), server.check_open
    )
    observation = Observation(metrics, documents)

    async def figures(request: Request) -> Response:
        try:
            caller = await server.sign_in(request.headers)
            caller.require_operator()
        except Refused as refused:
            return error_response(refused)
        return await observation.answer(server.engine)

    async def readiness(_request: Request) -> Response:
        is_ready = await server.is_ready()
        return PlainTextResponse("ready\n" if is_ready else "not ready\n", 200 if is_ready else 503)

    routes: list[BaseRoute] = [
        Route("/graphql", endpoint, methods=None),
        WebSocketRoute("/graphql", endpoint),
        Route("/runs/{run_id}/events", run_events.RunEventStream(endpoint)),
        *(
            Route(path, download(answer, server.sign_in, settings.allowed_origins, metrics))
            for path, answer in (
                ("/exports/{id}", export_answer),
                ("/assets/{id}", asset_answer),
            )
        ),
        Route("/healthz", _health),
        Route("/readyz", readiness),
        Route("/metrics", figures),
        *([Route("/schema.graphql", _sdl)] if settings.introspection else []),
        *_pages(settings.web_dir),
    ]
    app = Starlette(routes=routes, middleware=_middleware(settings), lifespan=lifespan)
    app.state.server = server
    return app


def _limits(settings: Settings) -> Limits:
    return Limits(
        document_bytes=settings.max_document_bytes,
        tokens=settings.max_tokens,
        depth=settings.max_depth,
        aliases=settings.max_aliases,
        duplicate_fields=settings.max_duplicate_fields,
        directives=settings.max_directives,
        cost=settings.max_cost,
        seconds=settings.operation_timeout,
        request_bytes=settings.max_request_bytes,
        request_seconds=settings.request_timeout,
        batch=settings.max_batch,
        files=settings.max_files,
        operations=settings.max_operations,
        connections=settings.max_connections,
    )


def _documents(settings: Settings, limits: Limits) -> DocumentCache:
    reader = DocumentReader(
        schema._schema,
        limits,
        suggestions=settings.gives_suggestions,
        introspection=settings.introspection,
    )
    path = settings.trusted_documents
    try:
        trusted = read_manifest(path) if path is not None else None
    except ManifestError as error:
        raise SettingsError(f"MIRRORGRAPH_TRUSTED_DOCUMENTS: {error}") from None
    return DocumentCache(
        reader,
        limits,
        entries=settings.document_cache_entries,
        size=settings.document_cache_bytes,
        trusted=trusted,
        trusted_only=settings.trusted_documents_only,
        own=[run_events.DOCUMENT],
    )


def _endpoint_settings(settings: Settings) -> EndpointSettings:
    return EndpointSettings(
        allowed_origins=settings.allowed_origins,
        legacy_status_codes=settings.legacy_status_codes,
        heartbeat_seconds=settings.heartbeat,
        initialisation_seconds=settings.init_timeout,
    )


def _middleware(settings: Settings) -> list[Middleware]:
    middleware = []
    if settings.auth is AuthMode.LOCAL:
        # A foreign page that points its own name at this machine must not be let in as the user.
        names = ["127.0.0.1", "localhost", "[::1]", settings.host]
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=names))
    if settings.allowed_origins:
        allowed: dict[str, Any] = {
            "allow_origins": settings.allowed_origins,
            "allow_methods": ["GET", "POST", "PUT", "DELETE"],
            "expose_headers": ["x-request-id", "retry-after"],
            "allow_headers": [
                "authorization",
                "content-type",
                "idempotency-key",
                "traceparent",
                STREAM_TOKEN_HEADER,
                *PREFLIGHT_HEADERS,
            ],
        }
        middleware.append(Middleware(CORSMiddleware, **allowed))
    return middleware


async def _health(_request: Request) -> Response:
    return PlainTextResponse("alive\n")


async def _sdl(_request: Request) -> Response:
    return PlainTextResponse(sdl())


def _pages(web_dir: Path) -> list[BaseRoute]:
    if not (web_dir / "index.html").is_file():
        return [Route("/", _plain_page)]

    def page(name: str) -> Any:
        async def serve(_request: Request) -> Response:
            headers = {
                "content-security-policy": CONTENT_SECURITY_POLICY,
                "cache-control": "no-cache",
            }
            return FileResponse(web_dir / name, headers=headers)

        return serve

    assets = GZipMiddleware(_ImmutableFiles(directory=web_dir / "assets-web"))
    return [
        Route("/", page("index.html")),
        Route("/graphiql", page("graphiql.html")),
        Mount("/assets-web", assets),
    ]


async def _plain_page(_request: Request) -> Response:
    return HTMLResponse(PLAIN_PAGE)


class _ImmutableFiles(StaticFiles):
    """Files whose names carry a hash of their content."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Any,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["cache-control"] = _IMMUTABLE
        return response
