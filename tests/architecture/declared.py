"""What the real schema declares: types, fields, and the batch functions that fields carry."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLObjectType,
    get_named_type,
    get_nullable_type,
)

from db.tables import BranchRow, Table
from schema.base import BATCH, Connection
from schema.root import schema

CORE = schema._schema
ROOTS = tuple(
    each.name for each in (CORE.query_type, CORE.mutation_type, CORE.subscription_type) if each
)


@dataclass(frozen=True)
class Field:
    """A field of an object type or an interface."""

    owner: str
    name: str
    core: GraphQLField

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}"

    @property
    def declared(self) -> Any:
        """Strawberry's field."""
        return self.core.extensions["strawberry-definition"]

    @property
    def python_name(self) -> str:
        return cast("str", self.declared.python_name)

    @property
    def batch(self) -> Any:
        """The batch function of a relation, None for everything else."""
        return self.declared.metadata.get(BATCH)

    @property
    def is_attribute(self) -> bool:
        """Whether the value is read off the row."""
        return self.declared.base_resolver is None

    @property
    def leads_to(self) -> str:
        """The name of the type, without lists and non-null."""
        return get_named_type(self.core.type).name

    @property
    def is_list(self) -> bool:
        return isinstance(get_nullable_type(self.core.type), GraphQLList)

    @property
    def is_connection(self) -> bool:
        return is_connection(self.leads_to)

    @property
    def arguments(self) -> list[inspect.Parameter]:
        """The keyword-only parameters of the batch function."""
        parameters = inspect.signature(self.batch, eval_str=True).parameters.values()
        return [each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]


def types() -> dict[str, GraphQLNamedType]:
    """Every type but those of introspection."""
    return {name: each for name, each in CORE.type_map.items() if not name.startswith("__")}


def definition_of(name: str) -> Any:
    """Strawberry's definition of a type."""
    return CORE.type_map[name].extensions["strawberry-definition"]


def is_connection(name: str) -> bool:
    definition = CORE.type_map[name].extensions.get("strawberry-definition")
    generic = getattr(definition, "concrete_of", None)
    return generic is not None and issubclass(generic.origin, Connection)


def fields() -> Iterator[Field]:
    """Every field of every object type and interface."""
    for owner, declared in types().items():
        if isinstance(declared, (GraphQLObjectType, GraphQLInterfaceType)):
            yield from (Field(owner, name, core) for name, core in declared.fields.items())


def relations() -> list[Field]:
    """Every field that carries a batch function."""
    return [each for each in fields() if each.batch is not None]


@functools.cache
def table_classes() -> dict[str, type[Table]]:
    """Every table class by its name."""
    classes = [*Table.__subclasses__(), *BranchRow.__subclasses__()]
    return {each.__name__: each for each in classes if each is not BranchRow}


def kind_of(name: str) -> str:
    """The kind of the rows of such a type."""
    test = definition_of(name).origin.is_type_of
    return str(inspect.getclosurevars(test).nonlocals["kind"].value)


def table_of_kind(name: str) -> type[Table] | None:
    """The table class of a type that `row_type_of_kind` made, whose values are some of its rows."""
    test = getattr(getattr(definition_of(name), "origin", None), "is_type_of", None)
    if not getattr(test, "__qualname__", "").startswith("row_type_of_kind."):
        return None
    return table_classes()[inspect.getclosurevars(test).nonlocals["row_name"]]
