"""The wire by itself: a schema that exists to be observed, served on a real socket by the same
uvicorn protocols as the product, in this process, so that tests see what is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field

import strawberry
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route, WebSocketRoute
from strawberry.dataloader import DataLoader
from strawberry.schema.config import StrawberryConfig
from strawberry.types import Info

from schema.serving import PatientHTTP, PatientWebSocket
from schema.wire.documents import DocumentCache, DocumentReader
from schema.wire.errors import Refused
from schema.wire.execution import Operations
from schema.wire.http import EndpointSettings, GraphQLEndpoint
from schema.wire.limits import Limits
from schema.wire.metrics import Metrics
from schema.wire.uploads import UPLOAD_SCALAR, Upload
from services.errors import Invalid


@dataclass
class Probe:
    """What happens in the resolvers below, seen from outside."""

    # Subscriptions whose source is open now, and how many ever were.
    live: int = 0
    opened: int = 0
    # Sources whose clean-up has run to its end, an await included.
    cleaned: int = 0
    # How long that clean-up takes.
    cleaning_seconds: float = 0.0
    # `slow` resolvers running now, and those that were cancelled.
    slow: int = 0
    cancelled: int = 0
    # Each call of the loader: the keys it got.
    batches: list[list[int]] = field(default_factory=list)
    # What the loader reads; changed by tests and by `set`.
    value: int = 0
    # Set to let `gated` events go on, one for each release.
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    # Callers that sign in with `Authorization: Bearer <name>`; setting an event signs one out.
    signed_out: dict[str, asyncio.Event] = field(default_factory=dict)
    is_stopping: bool = False


@dataclass
class ProbeContext:
    """One operation."""

    probe: Probe
    name: str
    request_id: str
    idempotency_key: str | None = None
    request_hash: str = ""

    def __post_init__(self) -> None:
        self.loader = DataLoader(load_fn=self._load)
        self.broken_loader = DataLoader(load_fn=self._break)

    async def _load(self, keys: list[int]) -> list[int]:
        self.probe.batches.append(list(keys))
        return [self.probe.value + key for key in keys]

    async def _break(self, keys: list[int]) -> list[int]:
        raise RuntimeError("MARKER of what must never leave the server")

    @property
    def audience(self) -> str:
        return self.name

    def renewed(self) -> ProbeContext:
        return ProbeContext(
            self.probe, self.name, self.request_id, self.idempotency_key, self.request_hash
        )


@dataclass
class ProbeCaller:
    """A caller by name; anybody where no header says who."""

    probe: Probe
    name: str
    count: int = 0

    @property
    def identity(self) -> str:
        return self.name

    def context(self, idempotency_key: str | None = None, request_hash: str = "") -> ProbeContext:
        check_open(self.probe)
        self.count += 1
        request_id = f"request-{self.name}-{self.count}"
        return ProbeContext(self.probe, self.name, request_id, idempotency_key, request_hash)

    async def signed_out(self) -> None:
        await self.probe.signed_out.setdefault(self.name, asyncio.Event()).wait()


def check_open(probe: Probe) -> None:
    if probe.is_stopping:
        raise Refused(503, "SERVER_STOPPING", "The server is stopping: try again soon.")


ProbeInfo = Info[ProbeContext, None]


async def _sleep(probe: Probe, seconds: float) -> str:
    probe.slow += 1
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        # Only a clean-up that may await comes to its end.
        await asyncio.sleep(0)
        probe.cancelled += 1
        raise
    finally:
        probe.slow -= 1
    return "slept"


@strawberry.type
class Thing:
    """Nests as deep as anybody wants."""

    number: int

    @strawberry.field
    async def loaded(self, info: ProbeInfo) -> int:
        return await info.context.loader.load(self.number)

    @strawberry.field
    async def badly_loaded(self, info: ProbeInfo) -> int | None:
        return await info.context.broken_loader.load(self.number)

    @strawberry.field
    async def slow(self, info: ProbeInfo, seconds: float = 3600) -> str:
        return await _sleep(info.context.probe, seconds)

    @strawberry.field
    def thing(self) -> Thing:
        return Thing(number=self.number + 1)

    @strawberry.field
    def broken(self) -> str | None:
        raise RuntimeError("MARKER of what must never leave the server")

    @strawberry.field
    def things(self, first: int | None = 20, last: int | None = None) -> ThingPage:
        return ThingPage(nodes=[Thing(number=each) for each in range(min(first or 0, 50))])


@strawberry.type
class ThingPage:
    """A page, as the product's connections are."""

    nodes: list[Thing]


@strawberry.input
class NumberInput:
    """Something to coerce."""

    number: int


@strawberry.type
class Query:
    """Reads."""

    @strawberry.field
    def hello(self, name: str | None = None) -> str:
        return f"hello {name or 'world'}"

    @strawberry.field
    def caller(self, info: ProbeInfo) -> str:
        return info.context.name

    @strawberry.field
    def extension(self, info: ProbeInfo, name: str) -> str | None:
        return info.input_extensions.get(name)

    @strawberry.field
    def twice(self, input: NumberInput) -> int:
        return input.number * 2

    @strawberry.field
    def thing(self) -> Thing:
        return Thing(number=1)

    @strawberry.field
    def things(self, first: int | None = 20, last: int | None = None) -> ThingPage:
        return ThingPage(nodes=[Thing(number=each) for each in range(min(first or 0, 50))])

    @strawberry.field
    def list_of(self, ids: list[int]) -> list[Thing]:
        return [Thing(number=each) for each in ids]

    @strawberry.field
    async def slow(self, info: ProbeInfo, seconds: float = 3600) -> str:
        return await _sleep(info.context.probe, seconds)

    @strawberry.field
    def forbidden(self) -> str | None:
        raise PermissionError("MARKER of what must never leave the server")

    @strawberry.field
    async def cancelled(self) -> str | None:
        """Nobody has cancelled the operation: what it waits for was."""
        raise asyncio.CancelledError("MARKER of what must never leave the server")

    @strawberry.field
    def broken(self) -> str | None:
        raise RuntimeError("MARKER of what must never leave the server")

    @strawberry.field
    def broken_root(self) -> str:
        raise RuntimeError("MARKER of what must never leave the server")

    @strawberry.field
    def refused(self) -> str | None:
        raise Invalid("Mend this.", "MEND_THIS", ("argument",))


@strawberry.type
class Mutation:
    """Changes."""

    @strawberry.mutation
    def set(self, info: ProbeInfo, value: int) -> int:
        info.context.probe.value = value
        return value

    @strawberry.mutation
    async def read_file(self, file: Upload) -> str:
        return (await file.read()).decode()  # type: ignore[attr-defined]

    @strawberry.mutation
    async def read_files(self, files: list[Upload]) -> list[str]:
        return [(await each.read()).decode() for each in files]  # type: ignore[attr-defined]


@contextlib.asynccontextmanager
async def _source(probe: Probe) -> AsyncIterator[None]:
    probe.live += 1
    probe.opened += 1
    try:
        yield
    finally:
        probe.live -= 1
        # What an awaited clean-up leaves behind; a cut-off one would never come here.
        await asyncio.sleep(probe.cleaning_seconds)
        probe.cleaned += 1


@strawberry.type
class Subscription:
    """Streams."""

    @strawberry.subscription
    async def count(
        self, info: ProbeInfo, to: int, seconds: float = 0.0
    ) -> AsyncGenerator[int, None]:
        """1, 2, ... with pauses."""
        async with _source(info.context.probe):
            for number in range(1, to + 1):
                await asyncio.sleep(seconds)
                yield number

    @strawberry.subscription
    async def things(self, info: ProbeInfo, to: int) -> AsyncGenerator[Thing, None]:
        """Things 1, 2, ... at once."""
        async with _source(info.context.probe):
            for number in range(1, to + 1):
                yield Thing(number=number)

    @strawberry.subscription
    async def silent(self, info: ProbeInfo) -> AsyncGenerator[int, None]:
        """Never yields."""
        async with _source(info.context.probe):
            await asyncio.Event().wait()
            yield 0

    @strawberry.subscription
    async def gated(self, info: ProbeInfo) -> AsyncGenerator[Thing, None]:
        """One event for each release of the gate, for ever."""
        async with _source(info.context.probe):
            while True:
                await info.context.probe.gate.acquire()
                yield Thing(number=0)

    @strawberry.subscription
    async def late(self, info: ProbeInfo, seconds: float) -> AsyncGenerator[int, None]:
        """Takes its time before it has a source."""
        await asyncio.sleep(seconds)

        async def source() -> AsyncGenerator[int, None]:
            async with _source(info.context.probe):
                await asyncio.Event().wait()
                yield 0

        return source()

    @strawberry.subscription
    async def breaking(self, info: ProbeInfo, after: int) -> AsyncGenerator[int, None]:
        """Fails in the middle with something that must not be shown."""
        async with _source(info.context.probe):
            for number in range(after):
                yield number
            raise RuntimeError("MARKER of what must never leave the server")

    @strawberry.subscription
    async def unmade(self, info: ProbeInfo) -> AsyncGenerator[int, None]:
        """Fails before there is a source."""
        raise RuntimeError("MARKER of what must never leave the server")

    @strawberry.subscription
    async def refusing(self, info: ProbeInfo, after: int) -> AsyncGenerator[int, None]:
        """Fails in the middle with something that the client can understand."""
        async with _source(info.context.probe):
            for number in range(after):
                yield number
            raise Invalid("Mend this.", "MEND_THIS")

    @strawberry.subscription
    async def large(self, info: ProbeInfo, size: int, to: int) -> AsyncGenerator[str, None]:
        """Texts of a size that begin with their number, as fast as they are taken."""
        async with _source(info.context.probe):
            for number in range(to):
                yield f"{number} ".ljust(size, "x")


probe_schema = strawberry.Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    config=StrawberryConfig(scalar_map={Upload: UPLOAD_SCALAR}),
)


@dataclass
class Wire:
    """A wire being served."""

    address: str
    probe: Probe
    operations: Operations
    endpoint: GraphQLEndpoint
    metrics: Metrics

    @property
    def url(self) -> str:
        return f"{self.address}/graphql"

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws", 1)


USUAL_LIMITS = Limits()
USUAL_SETTINGS = EndpointSettings()


@contextlib.asynccontextmanager
async def wired(
    limits: Limits = USUAL_LIMITS,
    settings: EndpointSettings = USUAL_SETTINGS,
    *,
    suggestions: bool = True,
    introspection: bool = True,
    trusted: Mapping[str, str] | None = None,
    trusted_only: bool = False,
    must_sign_in: bool = False,
    entries: int = 1_000,
    size: int = 64 * 1024 * 1024,
) -> AsyncIterator[Wire]:
    """Serve the probe schema on a port of the system's."""
    probe = Probe()
    metrics = Metrics()
    reader = DocumentReader(
        probe_schema._schema, limits, suggestions=suggestions, introspection=introspection
    )
    documents = DocumentCache(
        reader, limits, entries=entries, size=size, trusted=trusted, trusted_only=trusted_only
    )
    operations = Operations(probe_schema, documents, limits, metrics, suggestions=suggestions)

    async def sign_in(headers: Mapping[str, str]) -> ProbeCaller:
        check_open(probe)
        name = headers.get("authorization", "").removeprefix("Bearer ")
        if must_sign_in and not name:
            raise Refused(401, "UNAUTHENTICATED", "Sign in.")
        return ProbeCaller(probe, name or "anybody")

    endpoint = GraphQLEndpoint(operations, sign_in, settings, lambda: check_open(probe))
    routes = [Route("/graphql", endpoint, methods=None), WebSocketRoute("/graphql", endpoint)]
    config = uvicorn.Config(
        Starlette(routes=routes),
        http=PatientHTTP,
        ws=PatientWebSocket,
        ws_max_size=limits.request_bytes,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    # asyncio sends small pieces at once only where the protocol is said to be TCP.
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listening])
        try:
            port = listening.getsockname()[1]
            yield Wire(f"http://127.0.0.1:{port}", probe, operations, endpoint, metrics)
        finally:
            await server.shutdown(sockets=[listening])
