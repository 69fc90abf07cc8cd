"""The vocabulary that all GraphQL types share: rows, relations, connections, enums, mutations."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Annotated, Any, Generic, NewType, TypeAlias, TypeVar

import strawberry
from graphql import GraphQLError, IntValueNode, ValueNode
from strawberry.types import Info as StrawberryInfo
from strawberry.utils.str_converters import to_camel_case
from typing_extensions import dataclass_transform

from db.paging import PageRequest
from resolvers import pages as resolve
from resolvers.batching import BatchFunction
from resolvers.context import AlreadyDone, Context
from resolvers.nodes import earlier_payload
from services.errors import DomainError
from services.text import refuse_unstorable

T = TypeVar("T")
Info: TypeAlias = StrawberryInfo[Context, None]

# Whole numbers beyond Int, exact in every reader of JSON: seconds of stories.
Long = NewType("Long", int)
LARGEST_LONG = 2**53 - 1

# The key under which a field's metadata holds its batch function, for any executor to find.
BATCH = "batch"

PAGE_ARGUMENTS = {
    "first": "How many from the beginning: 20 unless said otherwise, 200 at most.",
    "after": "Only what comes behind this cursor.",
    "last": "How many from the end, 200 at most; not together with first.",
    "before": "Only what comes before this cursor.",
}

INFO_PARAMETER = inspect.Parameter("info", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Info)
_SIZES = ("first", "last")
PAGE_PARAMETERS = [
    inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[
            int | None if name in _SIZES else str | None,
            strawberry.argument(description=description),
        ],
        default=strawberry.UNSET,
    )
    for name, description in PAGE_ARGUMENTS.items()
]


def _long(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_LONG:
        return value
    raise GraphQLError(f"A Long is a whole number from -{LARGEST_LONG} to {LARGEST_LONG}.")


def _written_long(node: ValueNode, _variables: Any = None) -> int:
    # Python reads no number of thousands of digits.
    if isinstance(node, IntValueNode) and len(node.value) < 20:
        return _long(int(node.value))
    return _long(None)


LONG_SCALAR = strawberry.scalar(
    name="Long",
    description="A whole number, as a JSON number of at most 2^53 - 1.",
    serialize=_long,
    parse_value=_long,
    parse_literal=_written_long,
)


def field(description: str, **default: Any) -> Any:
    """A plain attribute: of the row, or of an input, where it may have a `default`."""
    return strawberry.field(description=description, **default)


def relation(
    batch: BatchFunction,
    description: str,
    *,
    arguments: Mapping[str, str] | None = None,
    ids: Collection[str] = (),
    types: Mapping[str, Any] | None = None,
) -> Any:
    """A field whose values a batch function finds for all parents of a level at once.

    The batch function's keyword-only parameters become the field's arguments; `arguments` holds
    their descriptions, `ids` names those that are ids and may be left out, and `types` has those
    of types that resolvers do not know. A parameter that is a PageRequest becomes Relay's four.
    """
    parameters = [
        inspect.Parameter(
            "root",
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=strawberry.Parent[Any],  # type: ignore[misc]
        ),
        INFO_PARAMETER,
    ]
    page = None
    for parameter in inspect.signature(batch, eval_str=True).parameters.values():
        if parameter.annotation is PageRequest:
            page = parameter.name
            parameters += PAGE_PARAMETERS
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            annotation = (types or {}).get(parameter.name, parameter.annotation)
            annotation = strawberry.ID | None if parameter.name in ids else annotation
            parameters.append(_argument(parameter, annotation, (arguments or {})[parameter.name]))

    async def load(root: Any, info: Any, **given: Any) -> Any:
        asked = {name: value for name, value in given.items() if value is not strawberry.UNSET}
        if page is not None:
            asked[page] = PageRequest(**{name: asked.pop(name, None) for name in PAGE_ARGUMENTS})
        return await info.context.batcher.load(batch, root, asked)

    resolver = _with_signature(load, parameters)
    return strawberry.field(resolver=resolver, description=description, metadata={BATCH: batch})


def _argument(parameter: inspect.Parameter, annotation: Any, description: str) -> inspect.Parameter:
    """The GraphQL argument of a parameter; `from_` stands for a word of Python's."""
    name = parameter.name[:-1] if parameter.name.endswith("_") else None
    return parameter.replace(
        annotation=Annotated[annotation, strawberry.argument(description=description, name=name)],
        # An argument that was not given is left out, so that the function's own default holds and
        # the SDL shows no "= null".
        default=strawberry.UNSET if parameter.default is None else parameter.default,
    )


def root_list(
    find: Callable[..., Awaitable[Any]],
    description: str,
    *,
    arguments: Mapping[str, str] | None = None,
) -> Any:
    """A root field that is a connection; `find` gets the page that was asked for.

    The keyword-only parameters of `find` become the field's arguments, as those of a relation.
    """

    async def load(info: Any, **given: Any) -> Any:
        asked = {name: value for name, value in given.items() if value is not strawberry.UNSET}
        page = PageRequest(**{name: asked.pop(name, None) for name in PAGE_ARGUMENTS})
        return await find(info.context, page, **asked)

    own = [
        _argument(parameter, parameter.annotation, (arguments or {})[parameter.name])
        for parameter in inspect.signature(find, eval_str=True).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    parameters = [INFO_PARAMETER, *own, *PAGE_PARAMETERS]
    return strawberry.field(resolver=_with_signature(load, parameters), description=description)


def root_row(find: Callable[[Context, str], Awaitable[Any]], description: str) -> Any:
    """A root field that is one row by its id, or null: also for what the viewer may not see."""

    async def load(info: Any, id: str) -> Any:
        return await find(info.context, id)

    described = strawberry.argument(description="Its id.")
    parameters = [
        INFO_PARAMETER,
        inspect.Parameter(
            "id",
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=Annotated[strawberry.ID, described],
        ),
    ]
    return strawberry.field(resolver=_with_signature(load, parameters), description=description)


def _with_signature(resolver: Any, parameters: Sequence[inspect.Parameter]) -> Any:
    # Strawberry reads a field's arguments off its resolver.
    resolver.__signature__ = inspect.Signature(parameters)
    resolver.__annotations__ = {each.name: each.annotation for each in parameters}
    return resolver


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def row_type(cls: type[T]) -> type[T]:
    """Declare a GraphQL type whose values are rows of the class of the same name."""
    name = cls.__name__

    def is_type_of(row: Any, _info: Any) -> bool:
        return type(row).__name__ == name

    cls.is_type_of = is_type_of  # type: ignore[attr-defined]
    return strawberry.type(cls, description=inspect.cleandoc(cls.__doc__ or ""))


def row_type_of_kind(row_name: str, kind: StrEnum) -> Callable[[type[T]], type[T]]:
    """Declare a GraphQL type whose values are those rows of a class that are of one kind."""

    def declare(cls: type[T]) -> type[T]:
        def is_type_of(row: Any, _info: Any) -> bool:
            return type(row).__name__ == row_name and row.kind == kind

        cls.is_type_of = is_type_of  # type: ignore[attr-defined]
        return strawberry.type(cls, description=inspect.cleandoc(cls.__doc__ or ""))

    return declare


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def described(cls: type[T]) -> type[T]:
    """Declare a GraphQL type that is not a row; its docstring is its description."""
    return strawberry.type(cls, description=inspect.cleandoc(cls.__doc__ or ""))


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def described_input(cls: type[T]) -> type[T]:
    """Declare an input; its docstring is its description."""
    return strawberry.input(cls, description=inspect.cleandoc(cls.__doc__ or ""))


def enum(values: type[StrEnum], **descriptions: str) -> Any:
    """Declare a GraphQL enum from one of `db.enums`, each value with its description."""
    declared: Any = strawberry.enum(values, description=inspect.cleandoc(values.__doc__ or ""))
    for value in declared.__strawberry_definition__.values:
        value.description = descriptions.pop(value.name)
        # Strawberry puts texts here, and its own enum type makes members of them; but that type is
        # lost when the schema is sorted, and texts would be handed to resolvers.
        value.value = values(value.value)
    assert not descriptions, f"{values.__name__} has no {', '.join(descriptions)}"
    return declared


@strawberry.interface(description="Anything that has an id and can be fetched by it.")
class Node:
    """What `node(id:)` returns."""

    id: strawberry.ID = field("Unique among all things of this server.")


@described
class PageInfo:
    """Where a page lies in its list."""

    has_next_page: bool = field("Whether more follows.")
    has_previous_page: bool = field("Whether more comes before.")
    start_cursor: str | None = field("Cursor of the first row; null on an empty page.")
    end_cursor: str | None = field("Cursor of the last row; null on an empty page.")


@strawberry.type(description="A row of a page and its place in the list.")
class Edge(Generic[T]):
    """A row and its cursor."""

    cursor: str = field("Pass it as after or before to go on from here.")
    node: T = field("The row.")


@strawberry.type(description="One page of a list.")
class Connection(Generic[T]):
    """A page; its value is a `db.paging.Page`."""

    edges: list[Edge[T]] = field("The rows with their cursors.")
    nodes: list[T] = field("The rows.")
    page_info: PageInfo = field("What lies before and behind this page.")
    total_count: int = relation(
        resolve.total_counts_of_pages, "How many rows the whole list has; counted when asked for."
    )


@described
class UserError:
    """Something in the input that the caller can mend."""

    code: str = field("For programs: upper case and stable.")
    message: str = field("For people: what to do.")
    path: list[str] = field("The input field, from `input` on; empty when it is no single field.")
    hj_code: str | None = field(
        "The error's number where it has one: HJ-1302 for a petition whose time ran out.",
        default=None,
    )
    head: int | None = field(
        "The head of the branch as it is, where a change was made for another one (CONFLICT).",
        default=None,
    )


@strawberry.type
class Payload:
    """What every mutation returns."""

    errors: list[UserError] = field("What to mend. When there are any, nothing was changed.")


def mutation(
    resolver: Callable[[Context, Any], Awaitable[dict[str, Any]]],
    *,
    input: type[Any],
    payload: type[Any],
    description: str,
) -> Any:
    """A root field that changes something: one input, one payload.

    The resolver returns the payload's fields by name; what it raises as DomainError becomes
    `errors`. A repeat under the same Idempotency-Key answers as the first time.
    """
    names = [each.name for each in dataclass_fields(payload) if each.name != "errors"]

    async def change(info: Any, input: Any) -> Any:
        # Root fields of a mutation run one after another, so the name can stand on the context.
        info.context.root_field = str(info.path.key)
        try:
            _refuse_unstorable_input(input)
            values = await resolver(info.context, input)
        except AlreadyDone as done:
            values = await earlier_payload(info.context, done.answer)
        except DomainError as error:
            refusals = [_said(each) for each in (error, *error.others)]
            return payload(**dict.fromkeys(names), errors=refusals)
        return payload(**{name: values.get(name) for name in names}, errors=[])

    described_argument = strawberry.argument(description="Everything that the change needs.")
    change.__annotations__ = {
        "info": Info,
        "input": Annotated[input, described_argument],
        "return": payload,
    }
    return strawberry.mutation(resolver=change, description=description)


def _said(error: DomainError) -> UserError:
    return UserError(
        code=error.code,
        message=error.message,
        path=[str(step) for step in error.path],
        hj_code=error.details.get("hjCode"),
        head=error.details.get("head"),
    )


def _refuse_unstorable_input(input: Any) -> None:
    refuse_unstorable(_plain(input), ("input",))


def _plain(value: Any) -> Any:
    if isinstance(value, strawberry.Some):
        return _plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            to_camel_case(each.name): _plain(getattr(value, each.name))
            for each in dataclass_fields(value)
        }
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value
