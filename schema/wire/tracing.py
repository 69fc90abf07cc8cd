"""Spans by OpenTelemetry: one for each operation and one for each root field. Those of relations
are made by the batcher, one for each call of a batch function.

No span holds the text of an exception: it may quote what a client sent, or what only we may know.
Without a provider, which `send_spans` installs, a span costs a few microseconds and goes nowhere.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from graphql import FieldNode
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

tracer = trace.get_tracer("mirrorgraph")
_propagator = TraceContextTextMapPropagator()

# How long a stopping server waits for its last spans to be taken.
_LAST_SPANS_SECONDS = 3.0

# Those that are an error of the server's, or have one in their response.
_FAILURES = {"partial", "failed", "timeout"}


def send_spans(endpoint: str) -> Callable[[], None]:
    """Send this process's spans to an OTLP endpoint over HTTP; the result stops that, having sent
    what is left. Once per process.
    """
    # An endpoint that does not answer is told of once for each batch, not at each try.
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    provider = TracerProvider(
        resource=Resource.create({"service.name": "mirrorgraph"}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

    def stop() -> None:
        # A thread that the process need not wait for: retries take half a minute.
        stopping = threading.Thread(target=provider.shutdown, daemon=True)
        stopping.start()
        stopping.join(_LAST_SPANS_SECONDS)

    return stop


@contextmanager
def operation_span(
    kind: str, name: str | None, document_id: str, carrier: Mapping[str, Any]
) -> Iterator[trace.Span]:
    """The span of an operation, below the one that the client names by `traceparent`."""
    given = {key: value for key, value in carrier.items() if isinstance(value, str)}
    with tracer.start_as_current_span(
        f"{kind} {name}" if name else kind,
        context=_propagator.extract(given) if "traceparent" in given else None,
        kind=trace.SpanKind.SERVER,
        # OpenTelemetry's names for GraphQL.
        attributes={
            "graphql.operation.type": kind,
            "graphql.operation.name": name or "",
            "graphql.document.id": document_id,
        },
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


def mark(span: trace.Span, outcome: str) -> None:
    """Say how an operation has ended."""
    span.set_attribute("mirrorgraph.outcome", outcome)
    if outcome in _FAILURES:
        span.set_status(StatusCode.ERROR, outcome)


class TracingExecutor(StrawberryGraphQLCoreExecutionContext):
    """Makes a span for each root field. Not a `resolve` hook of an extension: a coroutine one
    would turn every field into one, five times slower.
    """

    def execute_field(
        self, parent_type: Any, source: Any, field_details_list: Any, path: Any, *rest: Any
    ) -> Any:
        """Execute a field, a root field in a span of its own."""
        execute = super().execute_field
        if path.prev is not None:
            return execute(parent_type, source, field_details_list, path, *rest)
        node: FieldNode = field_details_list[0].node
        span = tracer.start_span(f"{parent_type.name}.{node.name.value}")
        with _inside(span):
            try:
                result = execute(parent_type, source, field_details_list, path, *rest)
            except BaseException:
                span.end()
                raise
        if self.is_awaitable(result):
            return _ending(span, result)
        span.end()
        return result


async def _ending(span: trace.Span, result: Awaitable[Any]) -> Any:
    try:
        with _inside(span):
            return await result
    finally:
        span.end()


def _inside(span: trace.Span) -> AbstractContextManager[trace.Span]:
    return trace.use_span(span, record_exception=False, set_status_on_exception=False)


def is_tracing() -> bool:
    """Whether spans go anywhere."""
    return isinstance(trace.get_tracer_provider(), TracerProvider)
