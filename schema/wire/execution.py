"""Executes operations, whatever brought them: prepared from the document cache, in a context of
their own, within the time that they have, observed.

Calls graphql-core directly, with Strawberry's executor: the document is parsed and validated
already, and there are no extensions to run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Hashable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import orjson
import strawberry
import structlog
from graphql import ExecutionResult, GraphQLError, OperationType
from graphql.execution import create_source_event_stream
from strawberry.execution import optimized_is_awaitable
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from schema.wire.documents import Document, DocumentCache, Operation
from schema.wire.errors import (
    Refused,
    RequestError,
    located_body,
    masked,
    presentable,
    request_error,
)
from schema.wire.limits import Limits
from schema.wire.metrics import Metrics
from schema.wire.requests import OperationRequest
from schema.wire.sharing import SharedEvents
from schema.wire.tracing import TracingExecutor, is_tracing, mark, operation_span
from services.errors import DomainError, Unavailable

logger = structlog.get_logger("mirrorgraph.operations")

# A GraphQL response as it is sent. Without `data` nothing was executed, or a stream broke off.
Response = dict[str, Any]


class OperationContext(Protocol):
    """What this layer needs of an operation's context."""

    request_id: str

    @property
    def audience(self) -> Hashable:
        """Equal for those who may see the same."""
        ...

    def renewed(self) -> Self:
        """The same caller with fresh loaders."""
        ...


class Caller(Protocol):
    """Whoever has signed in on a request or a connection."""

    @property
    def identity(self) -> str:
        """Equal for the same person, whatever they signed in with."""
        ...

    def context(
        self, idempotency_key: str | None = None, request_hash: str = ""
    ) -> OperationContext:
        """A context for one operation. Raises Refused when no operation may begin now."""
        ...

    async def signed_out(self) -> None:
        """Return when the sign-in has lost its validity."""
        ...


class SignIn(Protocol):
    """Finds out who calls."""

    async def __call__(self, headers: Mapping[str, str]) -> Caller:
        """Whom these headers sign in. Raises Refused."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request whose document and operation are known and within the limits."""

    request: OperationRequest
    document: Document
    operation: Operation

    @property
    def kind(self) -> str:
        """query, mutation or subscription."""
        return self.operation.type.value

    @property
    def is_subscription(self) -> bool:
        """Whether there may be more than one response."""
        return self.operation.type is OperationType.SUBSCRIPTION


class _Observation:
    outcome = "ok"


class Operations:
    """What executes the operations of one server."""

    def __init__(
        self,
        schema: strawberry.Schema,
        documents: DocumentCache,
        limits: Limits,
        metrics: Metrics,
        *,
        suggestions: bool,
    ) -> None:
        self.documents = documents
        self.limits = limits
        self.metrics = metrics
        self._schema = schema._schema
        self._hides_suggestions = not suggestions
        self._shared = SharedEvents()
        self._executor_class = (
            TracingExecutor if is_tracing() else StrawberryGraphQLCoreExecutionContext
        )

    def prepare(self, request: OperationRequest) -> Prepared:
        """Find the document and the operation of a request. Raises Refused."""
        try:
            document = self.documents.find(request)
            return Prepared(request, document, document.operation(request.operation_name))
        except Refused as refused:
            self.metrics.count(refused)
            raise

    async def respond(self, prepared: Prepared, context: OperationContext) -> Response:
        """The response to a query or a mutation.

        Raises RequestError for what keeps it from being executed, and when its time is up. When
        the awaiting task is cancelled, so is all work of the operation.
        """
        with self._observed(prepared, context) as observed:
            executor = self._executor(prepared, context)
            began = time.perf_counter()
            try:
                async with asyncio.timeout(self.limits.seconds):
                    result = executor.execute_operation()
                    if executor.is_awaitable(result):
                        result = await result
            except TimeoutError:
                raise self._too_slow() from None
            finally:
                self.metrics.seconds.labels(prepared.kind).observe(time.perf_counter() - began)
                if prepared.kind == "mutation":
                    self._shared.forget()  # whoever changed something sees it from now on
            if result.errors:
                observed.outcome = "partial" if result.data is not None else "failed"
            return _response(result, context)

    async def stream(
        self, prepared: Prepared, context: OperationContext
    ) -> AsyncGenerator[Response, None]:
        """The responses of any operation, as they come.

        Raises RequestError before the first response. A stream that breaks off later ends with a
        response that has errors and no data. Close it in the task that reads it.
        """
        if not prepared.is_subscription:
            yield await self.respond(prepared, context)
            return
        with self._observed(prepared, context) as observed:
            executor = self._executor(prepared, context)
            key = _sharing_key(prepared, context)
            source = await self._source(executor, context)
            try:
                async with aclosing(source):
                    async for event in source:
                        result = self._shared.ready(key, event)
                        if result is None:
                            result = await self._event(executor, context, key, event)
                        if result.errors:
                            observed.outcome = "partial"
                        yield _response(result, context)
                        # A source may never wait for anything, and a client read as fast.
                        await asyncio.sleep(0)
            except Exception as error:
                observed.outcome = "failed"
                located = GraphQLError(str(error), original_error=error)
                yield {"errors": presentable([located], context.request_id)}

    async def _source(self, executor: Any, context: OperationContext) -> Any:
        try:
            async with asyncio.timeout(self.limits.seconds):
                source: Any = create_source_event_stream(executor)
                if executor.is_awaitable(source):
                    source = await source
        except TimeoutError:
            raise self._too_slow() from None
        if isinstance(source, ExecutionResult):
            raise RequestError(422, presentable(source.errors or [], context.request_id))
        return source

    async def _event(
        self, executor: Any, context: OperationContext, key: Hashable, event: Any
    ) -> ExecutionResult:
        async def execute() -> ExecutionResult:
            own = executor.build_per_event_executor(event)
            # An event reads anew: what loaders have seen for an earlier one is stale.
            own.context_value = context.renewed()
            # Which fields are asked for is remembered by the list that asks, a new one for each
            # event: shared by all events, as it comes, it grew for as long as the stream.
            own._relevant_sub_fields = {}
            result = own.execute_operation(False)
            if own.is_awaitable(result):
                result = await result
            return result  # type: ignore[no-any-return]

        began = time.perf_counter()
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._shared.result(key, event, execute)
        except TimeoutError:
            # The stream ends with it: going on would leave a gap that nobody is told of.
            raise Unavailable(_said_of_time(self.limits), "OPERATION_TIMEOUT") from None
        finally:
            self.metrics.seconds.labels("subscription").observe(time.perf_counter() - began)

    def _executor(self, prepared: Prepared, context: OperationContext) -> Any:
        """An executor that has coerced the variables; raises RequestError."""
        request = prepared.request
        is_awaitable: Any = optimized_is_awaitable
        executor = self._executor_class.build(
            self._schema,
            prepared.document.tree,
            context_value=context,
            raw_variable_values=request.variables,
            operation_name=prepared.operation.name,
            is_awaitable=is_awaitable,
            hide_suggestions=self._hides_suggestions,
            operation_extensions=request.extensions,
        )
        if isinstance(executor, list):
            raise RequestError(422, [_input_body(each, context) for each in executor])
        prepared.operation.cost.check(executor.variable_values.coerced, self.limits)
        return executor

    @contextmanager
    def _observed(self, prepared: Prepared, context: OperationContext) -> Iterator[_Observation]:
        """Count, log and trace an operation."""
        observed = _Observation()
        kind, name = prepared.kind, prepared.operation.name
        running = self.metrics.running.labels(kind)
        running.inc()
        began = time.perf_counter()
        try:
            with (
                structlog.contextvars.bound_contextvars(request_id=context.request_id),
                operation_span(
                    kind, name, prepared.document.id, prepared.request.extensions
                ) as span,
            ):
                try:
                    yield observed
                except BaseException as error:
                    observed.outcome = _outcome_of(error)
                    raise
                finally:
                    mark(span, observed.outcome)
        except Refused as refused:
            self.metrics.count(refused)
            raise
        except (Exception, asyncio.CancelledError) as error:
            if observed.outcome == "cancelled":
                raise
            # A mistake of ours outside of any resolver.
            raise RequestError(500, [masked(str(error), context.request_id, error)]) from error
        finally:
            running.dec()
            self.metrics.operations.labels(kind, observed.outcome).inc()
            logger.debug(
                "operation",
                kind=kind,
                name=name,
                document=prepared.document.id,
                outcome=observed.outcome,
                seconds=round(time.perf_counter() - began, 4),
                request_id=context.request_id,
            )

    def _too_slow(self) -> RequestError:
        return request_error(503, "OPERATION_TIMEOUT", _said_of_time(self.limits))


def _sharing_key(prepared: Prepared, context: OperationContext) -> Hashable:
    """Equal for streams that ask alike: whose results of an event may be shared."""
    request = prepared.request
    try:
        variables: Hashable = orjson.dumps(request.variables, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        variables = object()  # files, or values nested too deep to write: equal to no others
    return prepared.document.id, request.operation_name, variables, context.audience


def _outcome_of(error: BaseException) -> str:
    """How an operation ended that raised this."""
    if isinstance(error, Refused):
        return {"OPERATION_TIMEOUT": "timeout", "INTERNAL": "failed"}.get(error.code, "refused")
    if isinstance(error, asyncio.CancelledError):
        # At nobody's wish it is a failure: what a resolver waited for was cancelled, not we.
        task = asyncio.current_task()
        return "cancelled" if task is None or task.cancelling() else "failed"
    return "failed" if isinstance(error, Exception) else "cancelled"


def _said_of_time(limits: Limits) -> str:
    return f"The operation took longer than {limits.seconds:g} seconds and was stopped."


def _input_body(error: GraphQLError, context: OperationContext) -> dict[str, Any]:
    """What is said of a variable that cannot be coerced."""
    cause = error.original_error
    if cause is None or isinstance(cause, (GraphQLError, DomainError, ValueError, TypeError)):
        return located_body("BAD_USER_INPUT", error)
    return masked(error.message, context.request_id, cause)


def _response(result: ExecutionResult, context: OperationContext) -> Response:
    if not result.errors:
        return {"data": result.data}
    return {"data": result.data, "errors": presentable(result.errors, context.request_id)}
