"""Facts about Strawberry that schema/ relies on.

When one of these fails after an upgrade, the code named in its docstring must be looked at again.
Those about executing are in test_executing.py.
"""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from importlib.metadata import version
from typing import Any, NewType

import pytest
import strawberry
from graphql import (
    ExecutionResult,
    GraphQLEnumType,
    GraphQLError,
    GraphQLSchema,
    GraphQLSyntaxError,
    NoSchemaIntrospectionCustomRule,
    OverlappingFieldsCanBeMergedRule,
    Source,
    parse,
    specified_directives,
    specified_rules,
    validate,
)
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext, validate_document
from strawberry.schema.validation_rules.maybe_null import MaybeNullValidationRule

from schema.root import schema as served_schema
from schema.root import sdl
from schema.wire.documents import _TOO_MANY_TOKENS, RULES, FrugalOverlapRule, NoNullRule
from tests.conftest import ROOT


@strawberry.interface
class Thing:
    id: strawberry.ID


def _is_named(name: str) -> Any:
    return lambda value, _info: type(value).__name__ == name


@strawberry.type
class Apple(Thing):
    weight: int

    is_type_of = _is_named("AppleRow")


@strawberry.type
class Pear(Thing):
    weight: int

    is_type_of = _is_named("PearRow")


class AppleRow:
    """A row is no instance of the GraphQL type; it only has its attributes."""

    id = "apple"

    @property
    def weight(self) -> int:
        return 7


class PearRow(AppleRow):
    id = "pear"


Weight = NewType("Weight", int)


@strawberry.type
class Query:
    @strawberry.field
    def things(self) -> list[Thing]:
        return [AppleRow(), PearRow()]  # type: ignore[list-item]

    @strawberry.field
    def echo(self, text: str | None = strawberry.UNSET, times: int | None = None) -> str:
        return f"{text if text is not strawberry.UNSET else 'left out'} {times}"

    @strawberry.field
    def heavier(self, than: Weight) -> Weight:
        return Weight(than + 1)


schema = strawberry.Schema(
    query=Query,
    types=[Apple, Pear],
    config=StrawberryConfig(
        scalar_map={
            Weight: strawberry.scalar(
                name="Weight", serialize=lambda value: f"{value} g", parse_value=int
            )
        }
    ),
)


async def executed(document: str, **variables: Any) -> ExecutionResult:
    """What schema/wire/execution.py makes of an operation."""
    executor: Any = StrawberryGraphQLCoreExecutionContext.build(
        schema._schema, parse(document), raw_variable_values=variables
    )
    result: Any = executor.execute_operation()
    return await result if executor.is_awaitable(result) else result


async def test_values_are_read_from_attributes_of_any_object() -> None:
    """schema/base.py: row_type declares types whose values are rows."""
    assert served_schema.config.default_resolver is getattr
    result = await executed("{ things { id ... on Apple { weight } } }")
    assert result.errors is None
    assert result.data == {"things": [{"id": "apple", "weight": 7}, {"id": "pear"}]}


async def test_is_type_of_on_the_class_decides_which_type_a_row_is() -> None:
    """schema/base.py: row_type and the types of events set it."""
    result = await executed("{ things { __typename } }")
    assert result.errors is None
    assert result.data == {"things": [{"__typename": "Apple"}, {"__typename": "Pear"}]}


async def test_an_unset_default_is_left_out_of_the_sdl_and_of_the_call() -> None:
    """schema/base.py: relation, so that no argument shows "= null"."""
    sdl = schema.as_str()
    assert "echo(text: String, times: Int = null): String!" in sdl
    result = await executed("{ echo }")
    assert result.data == {"echo": "left out None"}
    result = await executed("query($text: String) { echo(text: $text) }")
    assert result.data == {"echo": "left out None"}
    result = await executed("{ echo(text: null) }")
    assert result.data == {"echo": "None None"}
    paths = [
        line for line in served_schema.as_str().splitlines() if re.search(r"\bto: ID\b(?!!)", line)
    ]
    assert paths == ["    to: ID"]


def test_the_sdl_begins_with_a_directive_that_others_take_for_granted() -> None:
    """schema/root.py: sdl, which leaves it out."""
    assert served_schema.as_str().startswith("directive @oneOf on INPUT_OBJECT\n\n")
    assert "input AsOfInput @oneOf {" in sdl()
    assert "directive @oneOf" not in sdl()


def test_the_core_schema_is_an_attribute() -> None:
    """schema/wire/execution.py, schema/app.py: it is what graphql-core executes."""
    for each in (schema, served_schema):
        assert isinstance(each._schema, GraphQLSchema)


def test_the_sdl_is_sorted_where_asked_for() -> None:
    """schema/root.py: so that the file shows what changed."""
    sdl = served_schema.as_str()
    names = re.findall(r"^(?:type|enum|input|interface|scalar) (\w+)", sdl, re.MULTILINE)
    assert len(names) > 50
    assert names == sorted(names)
    assert re.findall(r"^  (echo|things|heavier)\b", schema.as_str(), re.MULTILINE) == [
        "things",
        "echo",
        "heavier",
    ]


async def test_a_new_type_stands_for_a_scalar_by_the_scalar_map() -> None:
    """schema/root.py: Upload is one."""
    result = await executed("query($than: Weight!) { heavier(than: $than) }", than="4")
    assert (result.errors, result.data) == (None, {"heavier": "5 g"})


async def test_nothing_makes_all_fields_of_the_served_schema_slow() -> None:
    """Rule T46. schema/root.py: neither a coroutine `resolve` hook nor a directive of operations,
    each of which would turn every field into a coroutine.
    """
    assert list(served_schema.get_extensions()) == []
    assert list(served_schema.directives) == []
    assert list(served_schema.extensions) == []
    assert {each.name for each in served_schema._schema.directives} == {
        each.name for each in specified_directives
    }
    executor: Any = StrawberryGraphQLCoreExecutionContext.build(
        schema._schema, parse("{ things { id } echo }")
    )
    assert isinstance(executor.execute_operation(), ExecutionResult)


def test_the_parser_says_in_the_same_words_that_there_are_too_many_tokens() -> None:
    """schema/wire/documents.py: _TOO_MANY_TOKENS."""
    with pytest.raises(GraphQLSyntaxError) as caught:
        parse(Source("{ a b c }", "GraphQL request"), max_tokens=4)
    assert caught.value.message.startswith(_TOO_MANY_TOKENS)
    assert parse("{ a b c }", max_tokens=5) == parse("{ a b c }")


def test_suggestions_about_documents_are_hidden_when_asked() -> None:
    """schema/wire/documents.py: hide_suggestions."""
    document = parse("{ ecko }")
    for is_hidden in (False, True):
        (error,) = validate(schema._schema, document, RULES, hide_suggestions=is_hidden)
        assert error.message == "Cannot query field 'ecko' on type 'Query'." + (
            "" if is_hidden else " Did you mean 'echo'?"
        )


@pytest.mark.parametrize("field", ["__schema { types { name } }", '__type(name: "Query") { name }'])
def test_a_rule_refuses_to_show_the_schema(field: str) -> None:
    """schema/wire/documents.py: MIRRORGRAPH_INTROSPECTION."""
    document = parse(f"{{ {field} }}")
    rules = (*RULES, NoSchemaIntrospectionCustomRule)
    assert validate(schema._schema, document, RULES) == []
    assert len(validate(schema._schema, document, rules)) >= 1
    assert validate(schema._schema, parse("{ __typename }"), rules) == []


def test_our_rules_are_those_that_strawberry_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    """schema/wire/documents.py: RULES."""
    applied: list[Any] = []

    def note(_schema: Any, _document: Any, rules: Any) -> list[GraphQLError]:
        applied.append(tuple(rules))
        return []

    monkeypatch.setattr("strawberry.schema.schema.validate", note)
    validate_document(schema._schema, parse("{ echo }"), tuple(specified_rules))
    replaced = {
        FrugalOverlapRule: OverlappingFieldsCanBeMergedRule,
        NoNullRule: MaybeNullValidationRule,
    }
    assert applied == [tuple(replaced.get(each, each) for each in RULES)]


def test_the_pinned_versions_are_the_installed_ones() -> None:
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))
    # What stands behind a semicolon says for which machines.
    named = [each.partition(";")[0] for each in project["project"]["dependencies"]]
    pins = dict(each.split("==") for each in named if "==" in each)
    assert set(pins) >= {"strawberry-graphql", "graphql-core"}
    assert {name: version(name) for name in pins} == pins
    for lock in ("requirements.lock", "requirements-dev.lock"):
        locked = ROOT.joinpath(lock).read_text(encoding="utf-8")
        for name, pin in pins.items():
            assert re.search(rf"^{re.escape(name)}=={re.escape(pin)}\b", locked, re.MULTILINE)


def test_every_enum_of_an_input_arrives_as_a_member_though_the_schema_is_sorted() -> None:
    """schema/base.py: enum. Services tell members apart by `is`."""
    enums = {
        name: each
        for name, each in served_schema._schema.type_map.items()
        if isinstance(each, GraphQLEnumType) and not name.startswith("__")
    }
    assert "PetitionDecision" in enums
    for each in enums.values():
        for name in each.values:
            arrived = each.parse_value(name)
            assert isinstance(arrived, StrEnum), f"{each.name}.{name}"
            assert arrived.name == name
            # Rows have the text, services the member: both leave by the same name.
            assert each.serialize(arrived.value) == each.serialize(arrived) == name
