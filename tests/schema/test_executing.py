"""Facts about executing with graphql-core and Strawberry's executor that schema/wire and resolvers/
rely on.

When one of these fails after an upgrade, the code named in its docstring must be looked at again.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
import strawberry
from graphql import (
    ExecutionResult,
    GraphQLError,
    build_schema,
    parse,
)
from graphql.execution import create_source_event_stream, map_source_to_response_event
from strawberry.dataloader import DataLoader
from strawberry.execution import optimized_is_awaitable
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from schema.wire.tracing import TracingExecutor
from services.errors import Invalid


class Watch:
    """What happens in the resolvers below."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled: list[str] = []
        self.contexts: list[Any] = []
        self.is_closed = False
        self.loader: DataLoader[str, str] = DataLoader(load_fn=self._load)

    async def _load(self, keys: list[str]) -> list[str]:
        await self.sleep("batch " + " ".join(keys))
        return keys

    async def sleep(self, name: str) -> None:
        """For ever."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise


Info = strawberry.Info[Any, None]


@strawberry.type
class Query:
    @strawberry.field
    def echo(self, text: str | None = strawberry.UNSET, times: int | None = None) -> str:
        return f"{text if text is not strawberry.UNSET else 'left out'} {times}"

    @strawberry.field
    def extension(self, info: Info) -> str:
        return str(info.input_extensions["a"])

    @strawberry.field
    def key(self, info: Info) -> str:
        return f"{info.path.prev} {info.path.key}"

    @strawberry.field
    def nested(self) -> Query:
        return Query()

    @strawberry.field
    async def later(self) -> int:
        return 1

    @strawberry.field
    async def own(self, info: Info) -> int:
        info.context.contexts.append(info.context)
        return len(info.context.contexts)

    @strawberry.field
    async def slow(self, info: Info, name: str) -> int | None:
        await info.context.sleep(name)
        return 0

    @strawberry.field
    async def loaded(self, info: Info, key: str) -> str | None:
        value: str = await info.context.loader.load(key)
        return value

    @strawberry.field
    def broken(self) -> int | None:
        raise RuntimeError("broken")

    @strawberry.field
    async def refused(self) -> int | None:
        raise Invalid("Mend this.")

    @strawberry.field
    async def late(self) -> int | None:
        raise TimeoutError("a resolver's own")


@strawberry.type
class Mutation:
    @strawberry.mutation
    def touch(self) -> int:
        return 1


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, info: Info, to: int) -> AsyncGenerator[int, None]:
        try:
            for number in range(to):
                yield number
        finally:
            await asyncio.sleep(0)
            info.context.is_closed = True

    @strawberry.subscription
    async def each(self) -> AsyncGenerator[Query, None]:
        for _ in range(3):
            yield Query()

    @strawberry.subscription
    async def refused(self) -> AsyncGenerator[int, None]:
        raise Invalid("Mend this.")


schema = strawberry.Schema(query=Query, mutation=Mutation, subscription=Subscription)


def built(document: str, context: Any = None, **given: Any) -> Any:
    """What schema/wire/execution.py makes of an operation."""
    is_awaitable: Any = optimized_is_awaitable
    return StrawberryGraphQLCoreExecutionContext.build(
        schema._schema,
        parse(document),
        **{
            "context_value": context,
            "is_awaitable": is_awaitable,
            "operation_extensions": {},
            **given,
        },
    )


async def executed(document: str, context: Any = None, **given: Any) -> ExecutionResult:
    executor = built(document, context, **given)
    assert not isinstance(executor, list), executor
    result: Any = executor.execute_operation()
    return await result if executor.is_awaitable(result) else result


def variables(**values: Any) -> dict[str, Any]:
    return {"raw_variable_values": values}


# Building an executor.


def test_bad_variables_build_no_executor_but_a_list_of_errors() -> None:
    """schema/wire/execution.py: _executor."""
    document = "query($times: Int!) { echo(times: $times) }"
    errors = built(document, **variables(times="x"))
    assert [each.message for each in errors] == [
        "Variable '$times' has invalid value: Int cannot represent non-integer value: 'x'"
    ]
    assert all(isinstance(each, GraphQLError) for each in errors)
    assert [each.message for each in built(document)] == [
        "Variable '$times' has invalid value: Expected a value of non-null type 'Int!' to be"
        " provided."
    ]
    executor = built(document, **variables(times=2))
    assert isinstance(executor, StrawberryGraphQLCoreExecutionContext)


def test_the_executor_has_the_coerced_variables_defaults_among_them() -> None:
    """schema/wire/execution.py: the cost is computed with them."""
    executor = built("query($a: Int = 3, $b: Int, $c: Int) { echo(times: $a) }", **variables(b=2))
    assert dict(executor.variable_values.coerced) == {"a": 3, "b": 2}


def test_the_named_operation_is_the_one_that_is_built() -> None:
    """schema/wire/execution.py: operation_name."""
    executor = built("query A { echo } mutation B { touch }", operation_name="B")
    assert executor.execute_operation() == ExecutionResult({"touch": 1}, None)


def test_suggestions_about_variables_are_hidden_when_asked() -> None:
    """schema/wire/execution.py: hide_suggestions."""
    core = build_schema("enum Colour { BLUE } type Query { paint(in: Colour): Int }")
    document = parse("query($in: Colour) { paint(in: $in) }")
    build = StrawberryGraphQLCoreExecutionContext.build
    for is_hidden in (False, True):
        (error,) = build(
            core, document, raw_variable_values={"in": "BLU"}, hide_suggestions=is_hidden
        )
        assert ("Did you mean" in error.message) is not is_hidden


async def test_an_operation_carries_the_extensions_of_its_request() -> None:
    """schema/wire/execution.py: operation_extensions, which Strawberry's executor takes."""
    result = await executed("{ extension }", operation_extensions={"a": 5})
    assert result.data == {"extension": "5"}


async def test_a_field_knows_its_key_in_the_response() -> None:
    """schema/base.py: mutation. schema/wire/tracing.py: root fields have no path before theirs."""
    result = await executed("{ mine: key }")
    assert result.data == {"mine": "None mine"}


# Executing.


async def test_an_operation_is_a_coroutine_only_where_a_resolver_is() -> None:
    """schema/wire/execution.py: respond asks before it awaits."""
    plain = built("{ echo }").execute_operation()
    assert isinstance(plain, ExecutionResult)
    executor = built("{ later }")
    coming = executor.execute_operation()
    assert executor.is_awaitable(coming)
    assert (await coming).data == {"later": 1}


async def test_errors_of_resolvers_arrive_located_with_their_cause() -> None:
    """schema/wire/errors.py: presentable looks at original_error."""
    result = await executed("{ broken again: broken refused }")
    found = [(each.path, type(each.original_error)) for each in result.errors or []]
    assert found == [
        (["broken"], RuntimeError),
        (["again"], RuntimeError),
        (["refused"], Invalid),
    ]
    assert all(type(each) is GraphQLError for each in result.errors or [])
    assert result.data == {"broken": None, "again": None, "refused": None}


async def test_a_time_out_of_a_resolver_is_an_error_of_its_field() -> None:
    """schema/wire/execution.py: what leaves asyncio.timeout there is the operation's own."""
    result = await executed("{ late echo }")
    assert result.data == {"late": None, "echo": "left out None"}
    (error,) = result.errors or []
    assert isinstance(error.original_error, TimeoutError)


async def test_a_cancelled_operation_cancels_all_its_resolvers_and_batches() -> None:
    """schema/wire/racing.py, schema/wire/execution.py: nothing works on for a client that left."""
    watch = Watch()
    document = '{ a: slow(name: "a") b: slow(name: "b") c: loaded(key: "c") d: loaded(key: "d") }'
    running = asyncio.ensure_future(built(document, watch).execute_operation())
    async with asyncio.timeout(5):
        await watch.begun.wait()
        # The batch is dispatched a turn after the fields have asked for it.
        for _ in range(3):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        for _ in range(3):
            await asyncio.sleep(0)
    assert sorted(watch.cancelled) == ["a", "b", "batch c d"]


async def test_a_loader_remembers_for_as_long_as_its_context_lives() -> None:
    """resolvers/batching.py: why a context must not outlive an operation."""
    values = iter("ab")

    async def load(keys: list[str]) -> list[str]:
        return [next(values) for _ in keys]

    loader: DataLoader[str, str] = DataLoader(load_fn=load)
    assert [await loader.load("key"), await loader.load("key")] == ["a", "a"]


async def test_a_batch_goes_on_while_one_of_its_futures_is_awaited() -> None:
    """resolvers/batching.py: it is cancelled when all of them are."""
    watch = Watch()
    one, two = [asyncio.ensure_future(watch.loader.load(key)) for key in "ab"]
    async with asyncio.timeout(5):
        await watch.begun.wait()
    one.cancel()
    await asyncio.sleep(0)
    assert watch.cancelled == []
    two.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert watch.cancelled == ["batch a b"]


# Subscriptions.


async def sourced(document: str, context: Any = None) -> Any:
    """The executor and the source of a subscription."""
    executor = built(document, context)
    source: Any = create_source_event_stream(executor)
    return executor, await source if executor.is_awaitable(source) else source


async def test_a_subscription_that_cannot_begin_is_a_result_with_errors() -> None:
    """schema/wire/execution.py: _source."""
    _, refused = await sourced("subscription { refused }")
    assert isinstance(refused, ExecutionResult)
    assert refused.data is None
    assert [type(each.original_error) for each in refused.errors or []] == [Invalid]


async def test_each_event_is_executed_by_our_function_with_an_executor_of_its_own() -> None:
    """schema/wire/execution.py: stream gives each event a context of its own."""
    executor, source = await sourced("subscription { each { own } }", Watch())
    executors: list[Any] = []
    contexts = [Watch() for _ in range(3)]

    def execute_event(event: Any) -> Any:
        event.context_value = contexts[len(executors)]
        executors.append(event)
        return event.execute_operation(False)

    responses = map_source_to_response_event(executor, source, execute_event)
    results = [each async for each in responses]
    assert [each.data for each in results] == [{"each": {"own": 1}}] * 3
    assert [each.contexts for each in contexts] == [[each] for each in contexts]
    assert executor.context_value.contexts == []
    assert len({id(each) for each in (executor, *executors)}) == 4


async def test_errors_of_one_event_are_not_those_of_the_next() -> None:
    """schema/wire/execution.py: each event has an executor, so errors do not gather."""
    executor, source = await sourced("subscription { each { broken } }", Watch())
    responses = map_source_to_response_event(executor, source)
    assert [len(each.errors or []) async for each in responses] == [1, 1, 1]


async def test_what_is_remembered_of_selections_grows_with_each_event() -> None:
    """schema/wire/execution.py: stream gives each event a memory of its own. Where events do not
    share one any more, that line can go.
    """
    executor, source = await sourced("subscription { each { key } }", Watch())
    responses = map_source_to_response_event(executor, source)
    sizes = [len(executor._relevant_sub_fields) async for _ in responses]
    assert sizes == [1, 2, 3]


@pytest.mark.parametrize("taken", [1, 3, 4])
async def test_the_source_is_closed_when_the_consumer_closes_early_or_it_ends(taken: int) -> None:
    """schema/wire/execution.py: stream closes the responses, no more."""
    watch = Watch()
    executor, source = await sourced("subscription { count(to: 3) }", watch)
    async with aclosing(map_source_to_response_event(executor, source)) as responses:
        seen = 0
        async for _ in responses:
            seen += 1
            if seen == taken:
                break
        assert watch.is_closed is (taken > 3)
    assert watch.is_closed
    assert seen == min(taken, 3)


async def test_the_source_is_closed_when_the_consumer_is_cancelled() -> None:
    """schema/wire/execution.py: stream."""
    watch = Watch()
    executor, source = await sourced("subscription { count(to: 2) }", watch)
    reached = asyncio.Event()

    async def consume() -> None:
        async with aclosing(map_source_to_response_event(executor, source)) as responses:
            async for _ in responses:
                reached.set()
                await asyncio.Event().wait()

    consuming = asyncio.create_task(consume())
    async with asyncio.timeout(5):
        await reached.wait()
        consuming.cancel()
        await asyncio.wait([consuming])
    assert consuming.cancelled()
    assert watch.is_closed


def test_a_field_is_executed_by_a_method_of_this_shape() -> None:
    """schema/wire/tracing.py: TracingExecutor overrides it and passes on what it does not read."""
    method = inspect.signature(StrawberryGraphQLCoreExecutionContext.execute_field)
    assert list(method.parameters) == [
        "self",
        "parent_type",
        "source",
        "field_details_list",
        "path",
        "position_context",
    ]


async def test_only_root_fields_have_no_path_before_them() -> None:
    """schema/wire/tracing.py: those get spans."""
    seen: list[tuple[str, bool]] = []

    class Noting(TracingExecutor):
        def execute_field(
            self, parent_type: Any, source: Any, field_details_list: Any, path: Any, *rest: Any
        ) -> Any:
            seen.append((field_details_list[0].node.name.value, path.prev is None))
            return super().execute_field(parent_type, source, field_details_list, path, *rest)

    executor: Any = Noting.build(schema._schema, parse("{ nested { nested { echo } } echo }"))
    assert executor.execute_operation().errors is None
    assert seen == [("nested", True), ("nested", False), ("echo", False), ("echo", True)]
