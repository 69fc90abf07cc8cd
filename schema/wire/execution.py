"""How operations are executed: each, and each event of a subscription, in a context of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol, cast

import strawberry
from graphql import GraphQLSyntaxError
from graphql.execution import ExecutionResult as CoreResult
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext
from strawberry.types import ExecutionResult
from strawberry.types.execution import PreExecutionError
from strawberry.types.graphql import OperationType

from schema.wire.errors import presentable


class OperationContext(Protocol):
    """What this layer needs of a context."""

    request_id: str

    def renewed(self) -> OperationContext:
        """The same caller with fresh loaders."""
        ...


class OperationExecutor(StrawberryGraphQLCoreExecutionContext):
    """Renews the context at the start of every query, mutation and subscription event.

    Without it all operations and events of a socket would share loaders, and with them what the
    first of them had read.
    """

    def execute_operation(self, *args: Any, **kwargs: Any) -> Any:
        """Execute with fresh loaders."""
        self.context_value = self.context_value.renewed()
        return super().execute_operation(*args, **kwargs)


class WireSchema(strawberry.Schema):
    """A schema whose results hold only presentable errors, whatever the transport."""

    async def execute(self, *args: Any, **kwargs: Any) -> ExecutionResult:
        """One result of a query or mutation; a subscription is refused, as it is no single one."""
        allowed = kwargs.get("allowed_operation_types") or OperationType
        kwargs["allowed_operation_types"] = set(allowed) - {OperationType.SUBSCRIPTION}
        result = await super().execute(*args, **kwargs)
        return cast("ExecutionResult", _presented(result, kwargs["context_value"]))

    async def stream(self, *args: Any, **kwargs: Any) -> Any:
        """The results of an operation, as they come."""
        source: Any = await super().stream(*args, **kwargs)
        return _presented_stream(source, kwargs["context_value"])

    def process_errors(self, errors: Any, execution_context: Any = None) -> None:
        """Nothing: what deserves the log was logged when it was made presentable."""


async def _presented_stream(source: Any, context: OperationContext) -> AsyncGenerator[Any, None]:
    try:
        async for result in source:
            yield _presented(result, context)
    except GraphQLSyntaxError as error:
        # Raised by the parser cache, which runs outside of what Strawberry guards.
        yield _presented(PreExecutionError(data=None, errors=[error]), context)
    finally:
        await source.aclose()


def _presented(result: Any, context: OperationContext) -> Any:
    if isinstance(result, (ExecutionResult, CoreResult)) and result.errors:
        result.errors = presentable(result.errors, context.request_id)
    return result
