"""Makes up requests for everything that the schema declares, whatever comes to be declared: every
field of every type, every root field, every mutation and subscription, aimed at given ids.
"""

from __future__ import annotations

import functools
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLObjectType,
    get_named_type,
    is_leaf_type,
    is_required_argument,
    is_required_input_field,
)

from tests.architecture.declared import CORE, definition_of
from tests.e2e.callers import Json

# How far a field's own value is followed: a page, its nodes, and their own plain fields.
DEPTH = 3
SAMPLES: dict[str, Any] = {
    "String": "x",
    "Int": 1,
    "Long": 1,
    "Float": 1.0,
    "Boolean": True,
    "JSON": {"start": 0, "end": 1},
    "DateTime": "2030-01-01T00:00:00Z",
    "Upload": None,
}


def node_types() -> list[GraphQLObjectType]:
    """Every type whose values have ids of their own."""
    node = CORE.type_map["Node"]
    assert isinstance(node, GraphQLInterfaceType)
    return sorted(CORE.get_possible_types(node), key=lambda each: each.name)


def fields_of(name: str) -> dict[str, GraphQLField]:
    """The fields of an object type."""
    declared = CORE.type_map[name]
    assert isinstance(declared, GraphQLObjectType)
    return dict(declared.fields)


@functools.cache
def everything_in(declared: GraphQLNamedType, depth: int = DEPTH) -> str:
    """A selection of all that a value of a type shows without required arguments; "" for a leaf."""
    if is_leaf_type(declared):
        return ""
    if isinstance(declared, GraphQLObjectType):
        chosen = [
            f"{name} {everything_in(get_named_type(field.type), depth - 1)}"
            for name, field in declared.fields.items()
            if not any(is_required_argument(each) for each in field.args.values())
            and (depth > 0 or is_leaf_type(get_named_type(field.type)))
        ]
        return f"{{ __typename {' '.join(chosen)} }}"
    possible = CORE.get_possible_types(declared)  # type: ignore[arg-type]
    kinds = [f"... on {each.name} {_apart(each, everything_in(each, 0))}" for each in possible]
    return f"{{ __typename {' '.join(kinds)} }}"


def _apart(declared: GraphQLObjectType, selection: str) -> str:
    # Fields of one name may have several types among the members of an interface.
    for name in declared.fields:
        selection = selection.replace(f" {name} ", f" {declared.name}_{name}: {name} ")
    return selection


def sample(declared: Any, id: str) -> Any:
    """A value of an input type; every id in it is `id`."""
    if isinstance(declared, GraphQLNonNull):
        return sample(declared.of_type, id)
    if isinstance(declared, GraphQLList):
        return [sample(declared.of_type, id)]
    if isinstance(declared, GraphQLEnumType):
        return next(iter(declared.values))
    if isinstance(declared, GraphQLInputObjectType):
        if definition_of(declared.name).is_one_of:
            # The one that is called like the id, if one is.
            prefix = id.partition("_")[0]
            name = next((each for each in declared.fields if each.startswith(prefix)), None)
            name = name or next(iter(declared.fields))
            return {name: sample(declared.fields[name].type, id)}
        return {
            name: sample(field.type, id)
            for name, field in declared.fields.items()
            if is_required_input_field(field) or get_named_type(field.type).name == "ID"
        }
    return id if declared.name == "ID" else SAMPLES[declared.name]


def takes_ids(argument: GraphQLArgument) -> bool:
    """Whether an id can be given somewhere in an argument."""
    declared = get_named_type(argument.type)
    if isinstance(declared, GraphQLInputObjectType):
        return any(get_named_type(each.type).name == "ID" for each in declared.fields.values())
    return declared.name == "ID"


def call(name: str, field: GraphQLField, id: str) -> tuple[str, str, Json]:
    """A field with all that it leads to: its text, the variables it declares, their values.

    Arguments that take ids are given `id`, be they required or not.
    """
    given = {
        key: argument
        for key, argument in field.args.items()
        if is_required_argument(argument) or takes_ids(argument)
    }
    passed = ", ".join(f"{key}: ${key}_" for key in given)
    text = f"{name}{f'({passed})' if passed else ''} "
    text += everything_in(get_named_type(field.type))
    declared = ", ".join(f"${key}_: {argument.type}" for key, argument in given.items())
    return text, declared, {f"{k}_": sample(each.type, id) for k, each in given.items()}


def read_of_node(kind: str, name: str, id: str) -> tuple[str, Json]:
    """The request that reads a field of the node `$of`, which is of a type."""
    text, declared, values = call(name, fields_of(kind)[name], id)
    query = f"query($of: ID!{', ' + declared if declared else ''}) "
    return f"{query}{{ node(id: $of) {{ ... on {kind} {{ {text} }} }} }}", values


def root_call(kind: str, name: str, id: str) -> tuple[str, Json]:
    """The request for a root field of Query, Mutation or Subscription, aimed at `id`."""
    text, declared, values = call(name, fields_of(kind)[name], id)
    return f"{kind.lower()}{f'({declared})' if declared else ''} {{ {text} }}", values
