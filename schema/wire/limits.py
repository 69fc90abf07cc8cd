"""What one client may ask for: the sizes that are refused before anything is executed.

Counts over the document alone are taken right after parsing, since validation itself is what some
documents attack; the cost is computed on the valid document and weighed with each request's
variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLNamedType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_list_type,
    is_non_null_type,
)
from graphql.language.ast import DirectiveNode

from db.paging import DEFAULT_FIRST, MAX_FIRST
from schema.wire.errors import RequestError, request_error


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest that is still served; each is a setting of the same name."""

    # Of a document.
    document_bytes: int = 100_000
    tokens: int = 2_000
    depth: int = 16
    aliases: int = 50
    duplicate_fields: int = 50
    directives: int = 50
    # Of an operation.
    page: int = MAX_FIRST
    cost: int = 10_000
    seconds: float = 30.0
    # Of a request.
    request_bytes: int = 20 * 1024 * 1024
    request_seconds: float = 60.0
    batch: int = 10
    files: int = 10
    # Of a socket or an event stream, and of the server.
    operations: int = 100
    connections: int = 2_000


# What a list is taken to hold when neither a page nor a list of ids says it.
ASSUMED_LIST = 10
# Costs above are all the same; JSON has no larger number that every client reads exactly.
LARGEST_COST = 2**53
# Reading the whole schema is worth as much as so many objects.
INTROSPECTION_COST = {"__schema": 1_000, "__type": 100}


def check_counts(document: DocumentNode, limits: Limits) -> None:
    """Refuse a document that is too deep, or repeats too much; raises RequestError.

    The document need not be valid: fragments may be unknown or go in circles.
    """
    try:
        counted = _Counted(document)
    except RecursionError:
        raise request_error(
            422, "DEPTH_LIMIT", "The document nests its fragments too deeply.", limit=limits.depth
        ) from None
    for called, code, found, most in (
        ("levels deep", "DEPTH_LIMIT", counted.depth, limits.depth),
        ("aliases", "ALIAS_LIMIT", counted.aliases, limits.aliases),
        (
            "fields more than once",
            "DUPLICATE_FIELD_LIMIT",
            counted.duplicates,
            limits.duplicate_fields,
        ),
        ("directives", "DIRECTIVE_LIMIT", counted.directives, limits.directives),
    ):
        if found > most:
            verb = "is" if code == "DEPTH_LIMIT" else "has"
            raise request_error(
                422,
                code,
                f"The document {verb} {found:,} {called}; {most:,} at most.",
                found=found,
                limit=most,
            )


class _Counted:
    """The counts of one document. Levels below `__schema` and `__type` are left out: graphql-core
    has a rule of its own for them, and the usual introspection query is deeper than any other.
    """

    def __init__(self, document: DocumentNode) -> None:
        self.aliases = self.duplicates = self.directives = 0
        self._fragments: dict[str, FragmentDefinitionNode] = {}
        self._depths: dict[str, int] = {}
        operations = []
        for definition in document.definitions:
            self._count_directives(getattr(definition, "directives", None))
            if isinstance(definition, FragmentDefinitionNode):
                self._fragments[definition.name.value] = definition
            elif isinstance(definition, OperationDefinitionNode):
                operations.append(definition)
                for variable in definition.variable_definitions or ():
                    self._count_directives(variable.directives)
        for fragment in self._fragments.values():
            self._count(fragment.selection_set)
        for operation in operations:
            self._count(operation.selection_set)
        self.depth = max((self._depth(each.selection_set) for each in operations), default=0)

    def _count_directives(self, directives: tuple[DirectiveNode, ...] | None) -> None:
        self.directives += len(directives or ())

    def _count(self, root: SelectionSetNode) -> None:
        open_sets = [root]
        while open_sets:
            keys: Counter[str] = Counter()
            for selection in _flattened(open_sets.pop()):
                self._count_directives(selection.directives)
                if isinstance(selection, FieldNode):
                    name = selection.name.value
                    key = selection.alias.value if selection.alias else name
                    self.aliases += key != name
                    keys[key] += 1
                    if selection.selection_set:
                        open_sets.append(selection.selection_set)
                elif isinstance(selection, FragmentSpreadNode):
                    keys[f"...{selection.name.value}"] += 1
            self.duplicates += sum(keys.values()) - len(keys)

    def _depth(self, selection_set: SelectionSetNode) -> int:
        deepest = 0
        for selection in selection_set.selections:
            if isinstance(selection, FragmentSpreadNode):
                deepest = max(deepest, self._fragment_depth(selection.name.value))
            elif isinstance(selection, InlineFragmentNode):
                deepest = max(deepest, self._depth(selection.selection_set))
            elif isinstance(selection, FieldNode):
                below = 0
                if selection.selection_set and not selection.name.value.startswith("__"):
                    below = self._depth(selection.selection_set)
                deepest = max(deepest, 1 + below)
        return deepest

    def _fragment_depth(self, name: str) -> int:
        if name not in self._depths:
            # Zero while it is being measured, so that a circle comes to an end.
            self._depths[name] = 0
            if name in self._fragments:
                self._depths[name] = self._depth(self._fragments[name].selection_set)
        return self._depths[name]


def _flattened(selection_set: SelectionSetNode) -> Iterator[Any]:
    """The selections of a set, those of its inline fragments among them."""
    open_sets = [selection_set]
    while open_sets:
        for selection in open_sets.pop().selections:
            yield selection
            if isinstance(selection, InlineFragmentNode):
                open_sets.append(selection.selection_set)


@dataclass(frozen=True, slots=True)
class _Size:
    """How many a list holds: a number, or what a variable says."""

    number: int
    variable: str | None = None

    def value(self, variables: Mapping[str, Any]) -> int:
        if self.variable is None:
            return self.number
        given = variables.get(self.variable)
        if isinstance(given, list):
            return len(given)
        return given if isinstance(given, int) and given >= 0 else self.number


@dataclass(frozen=True, slots=True)
class _Part:
    """Objects of one field: how many for each parent, and what hangs on each. A fragment is one
    as well, without objects of its own.
    """

    size: _Size | None
    own: int
    parts: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """How many objects an operation may return at most, by its variables."""

    _parts: tuple[_Part, ...]
    _pages: tuple[tuple[str, _Size], ...]

    def check(self, variables: Mapping[str, Any], limits: Limits) -> int:
        """The cost with these (coerced) variables; raises RequestError."""
        for argument, size in self._pages:
            asked = size.value(variables)
            if asked > limits.page:
                raise request_error(
                    422,
                    "PAGE_LIMIT",
                    f"{argument} is {asked:,}; {limits.page:,} at most.",
                    argument=argument,
                    found=asked,
                    limit=limits.page,
                )
        known: dict[int, int] = {}
        cost = sum(_objects(part, variables, known) for part in self._parts)
        cost = min(cost, LARGEST_COST)
        if cost > limits.cost:
            raise request_error(
                422,
                "COST_LIMIT",
                f"The operation may return {cost:,} objects; {limits.cost:,} at most. Ask for "
                "smaller pages or fewer levels.",
                found=cost,
                limit=limits.cost,
            )
        return cost


def _objects(part: _Part, variables: Mapping[str, Any], known: dict[int, int]) -> int:
    # Parts of a fragment are shared by all places that spread it; each is added up once.
    found = known.get(id(part))
    if found is None:
        below = sum(_objects(each, variables, known) for each in part.parts)
        found = (part.size.value(variables) if part.size else 1) * (part.own + below)
        known[id(part)] = found
    return found


class CostReader:
    """Reads the costs of a valid document's operations off its fields' types."""

    def __init__(self, schema: GraphQLSchema, document: DocumentNode) -> None:
        self._schema = schema
        self._fragments = {
            each.name.value: each
            for each in document.definitions
            if isinstance(each, FragmentDefinitionNode)
        }
        self._known: dict[tuple[str, _Size | None], _Part] = {}
        self._defaults: dict[str, ValueNode | None] = {}
        self._pages: list[tuple[str, _Size]] = []

    def cost(self, operation: OperationDefinitionNode) -> Cost:
        """The cost of one operation."""
        self._defaults = {
            each.variable.name.value: each.default_value
            for each in operation.variable_definitions or ()
        }
        self._known.clear()
        self._pages = []
        root = self._schema.get_root_type(operation.operation)
        parts = self._parts(operation.selection_set, root, None) if root else ()
        return Cost(parts, tuple(self._pages))

    def _parts(
        self, selections: SelectionSetNode, parent: GraphQLNamedType, page: _Size | None
    ) -> tuple[_Part, ...]:
        parts: list[_Part] = []
        for selection in selections.selections:
            if isinstance(selection, FieldNode):
                part = self._part(selection, parent, page)
                if part is not None:
                    parts.append(part)
            elif isinstance(selection, FragmentSpreadNode):
                parts.append(self._fragment(selection.name.value, page))
            elif isinstance(selection, InlineFragmentNode):
                condition = selection.type_condition
                on = self._schema.get_type(condition.name.value) if condition else parent
                parts += self._parts(selection.selection_set, on or parent, page)
        return tuple(parts)

    def _fragment(self, name: str, page: _Size | None) -> _Part:
        # Shared, never copied: fragments that spread one another twice would double each time.
        key = (name, page)
        if key not in self._known:
            fragment = self._fragments[name]
            on = self._schema.get_type(fragment.type_condition.name.value)
            assert on is not None
            self._known[key] = _Part(None, 0, self._parts(fragment.selection_set, on, page))
        return self._known[key]

    def _part(self, node: FieldNode, parent: GraphQLNamedType, page: _Size | None) -> _Part | None:
        name = node.name.value
        if name in INTROSPECTION_COST:
            return _Part(None, INTROSPECTION_COST[name], ())
        field: GraphQLField | None = getattr(parent, "fields", {}).get(name)
        if field is None or node.selection_set is None:
            return None
        named = get_named_type(field.type)
        if not is_composite_type(named):
            return None
        size = None
        if is_list_type(get_nullable_type(field.type)):
            size = self._listed(node, field) or page or _Size(ASSUMED_LIST)
        asked = self._asked_page(node, field)
        return _Part(size, 1, self._parts(node.selection_set, named, asked))

    def _asked_page(self, node: FieldNode, field: GraphQLField) -> _Size | None:
        """The size of the page that a connection is asked for, or None for other fields. What is
        read in one direction alone is no connection, and has a size and a limit of its own.
        """
        if "first" not in field.args:
            return None
        own = field.args["first"].default_value
        if "last" not in field.args and isinstance(own, int):
            for argument in node.arguments or ():
                if argument.name.value == "first":
                    return self._size(argument.value, own)
            return _Size(own)
        asked = None
        for argument in node.arguments or ():
            if argument.name.value in {"first", "last"}:
                asked = self._size(argument.value, DEFAULT_FIRST)
                self._pages.append((argument.name.value, asked))
        return asked or _Size(DEFAULT_FIRST)

    def _listed(self, node: FieldNode, field: GraphQLField) -> _Size | None:
        """The size of a list that was asked for by a list, such as one of ids.

        A list that may be left out says how to answer, not how much.
        """
        for argument in node.arguments or ():
            declared = field.args.get(argument.name.value)
            if declared and is_non_null_type(declared.type) and is_list_type(declared.type.of_type):
                return self._size(argument.value, 1)
        return None

    def _size(self, value: ValueNode, otherwise: int) -> _Size:
        if isinstance(value, IntValueNode):
            # Below zero it is refused by whoever takes it; it must not pay for other fields here.
            return _Size(max(int(value.value), 0))
        if isinstance(value, ListValueNode):
            return _Size(len(value.values))
        if isinstance(value, VariableNode):
            default = self._defaults.get(value.name.value)
            number = self._size(default, otherwise).number if default else otherwise
            return _Size(number, value.name.value)
        return _Size(otherwise)


def refuse_tokens(limits: Limits) -> RequestError:
    """What is said of a document with too many tokens."""
    return request_error(
        422,
        "TOKEN_LIMIT",
        f"The document has more than {limits.tokens:,} tokens.",
        limit=limits.tokens,
    )
