"""Law 8: everything that a front-end developer can name has a description, and the schema's text
is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    is_introspection_type,
    is_specified_directive,
    is_specified_scalar_type,
)

from schema.cli import SDL_FILE
from schema.root import sdl
from tests.architecture.declared import CORE


def described_things(core: GraphQLSchema) -> Iterator[tuple[str, Any]]:
    """Everything of a schema that can have a description, with where it is."""
    for name, declared in core.type_map.items():
        if is_introspection_type(declared) or is_specified_scalar_type(declared):
            continue
        yield name, declared
        if isinstance(declared, (GraphQLObjectType, GraphQLInterfaceType)):
            for field_name, field in declared.fields.items():
                yield f"{name}.{field_name}", field
                for argument_name, argument in field.args.items():
                    yield f"{name}.{field_name}({argument_name}:)", argument
        elif isinstance(declared, GraphQLInputObjectType):
            for field_name, input_field in declared.fields.items():
                yield f"{name}.{field_name}", input_field
        elif isinstance(declared, GraphQLEnumType):
            for value_name, value in declared.values.items():
                yield f"{name}.{value_name}", value
    for directive in core.directives:
        if not is_specified_directive(directive):
            yield f"@{directive.name}", directive
            for argument_name, argument in directive.args.items():
                yield f"@{directive.name}({argument_name}:)", argument


def undescribed(core: GraphQLSchema) -> list[str]:
    return [
        where for where, thing in described_things(core) if not (thing.description or "").strip()
    ]


def test_everything_has_a_description() -> None:
    assert undescribed(CORE) == []


def test_whatever_has_no_description_is_noticed() -> None:
    core = build_schema(
        """
        directive @mark(of: String) on FIELD
        scalar Moment
        enum Realm { WORLD }
        input Filter { realm: Realm }
        interface Thing { id: ID! }
        union Any = Query
        "  "
        type Query implements Thing { id: ID! "Described." runs(first: Int): Moment }
        """
    )
    assert undescribed(core) == [
        "Moment",
        "Realm",
        "Realm.WORLD",
        "Filter",
        "Filter.realm",
        "Thing",
        "Thing.id",
        "Any",
        "Query",
        "Query.id",
        "Query.runs(first:)",
        "@mark",
        "@mark(of:)",
    ]


def test_the_committed_text_is_the_schema() -> None:
    told = "schema/schema.graphql is not what the code declares: run `make sdl` and commit the file"
    assert SDL_FILE.is_file(), told
    assert SDL_FILE.read_text(encoding="utf-8") == sdl(), told
