"""B2: what comes later must not be read before: every list of a branch, with all that its rows lead
to, is asked for as of entries, and each text tells from which entry on it may be known.
"""

from __future__ import annotations

import gc
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLUnionType,
    build_schema,
    get_named_type,
    is_leaf_type,
    is_required_argument,
)

from bench import stories
from bench.servers import MIRRORGRAPH, Served, serving
from bench.shapes import MARK, Shape
from bench.stage import Json, Say, milliseconds, staged
from db.enums import EntityKind, LoggedTable
from db.settings import PROJECT_ROOT

# 40 characters and about 300 happenings.
SHAPE = Shape(1_000, characters=40, happenings=0.4, is_marked=True)
ASKED = 2_000
# How many rows are asked for of a list, from its end, and of the lists below.
_NEWEST = 50
_BELOW = 20
# How far everything is followed: what a character leads to, and any other row.
_DEPTH_OF_CHARACTERS = 2
_DEPTH = 1
# What is of the present whatever leads there.
_PRESENT = {"Branch", "Story", "DeltaConnection"}
_TRANSLATED = ("content", "body", "title", "name", "description", "kind")
_MARKS = re.compile(rf"{MARK}(\d+)")
# The documents are longer than any that a client writes.
WIDE = MIRRORGRAPH.set_to(
    MIRRORGRAPH_MAX_TOKENS="1000000",
    MIRRORGRAPH_MAX_DEPTH="30",
    MIRRORGRAPH_MAX_ALIASES="100000",
    MIRRORGRAPH_MAX_COST="1000000000",
    MIRRORGRAPH_OPERATION_TIMEOUT="600",
)


@dataclass(frozen=True, slots=True)
class Question:
    """One list of a branch as of an entry."""

    name: str
    document: str

    def body(self, **variables: Any) -> bytes:
        """The JSON of a request."""
        return orjson.dumps({"query": self.document, "variables": variables})


def questions() -> list[Question]:
    """One for each list of a branch that can be read as of a moment; the first is of characters by
    name, and goes on to everything around them.
    """
    writer = Writer()
    branch = writer.fields_of("Branch")
    found = [
        writer.question(
            "character",
            branch["entities"],
            "entities(first: 5, search: $name, asOf: { entryId: $at })",
            _DEPTH_OF_CHARACTERS,
            "$at: ID!, $name: String",
        )
    ]
    for name, field in branch.items():
        if "asOf" in field.args:
            size = f"{'last' if 'last' in field.args else 'first'}: {_NEWEST}"
            what = _WANTED.get(name, "")
            if any(is_required_argument(each) for each in field.args.values()) and not what:
                continue
            newest = f"{name}({what}{size}, asOf: {{ entryId: $at }})"
            found.append(writer.question(name, field, newest, _DEPTH))
    return found


# What must be said besides the moment; fields that need more are not asked.
_WANTED = {"search": 'text: "the", '}


class Writer:
    """Writes documents that ask for everything."""

    def __init__(self) -> None:
        self.schema = build_schema((PROJECT_ROOT / "schema" / "schema.graphql").read_text())
        self._fragments: dict[str, str] = {}

    def fields_of(self, name: str) -> dict[str, GraphQLField]:
        """The fields of a type."""
        kind: Any = self.schema.type_map[name]
        fields: dict[str, GraphQLField] = kind.fields
        return fields

    def question(
        self, name: str, field: GraphQLField, call: str, depth: int, variables: str = "$at: ID!"
    ) -> Question:
        """Asks for a field of a branch and for everything below, as deep as that."""
        self._fragments = {}
        rows = self._selection(field, depth)
        operation = f"query Leaks($id: ID!, {variables})"
        # A call may lead through other fields, which it leaves open.
        ends = "}" * (call.count("{") - call.count("}"))
        document = f"{operation} {{ branch(id: $id) {{ {call} {rows} {ends} }} }}"
        return Question(name, "\n".join((document, *self._fragments.values())))

    def _selection(self, field: GraphQLField, depth: int) -> str:
        """Everything of what a field leads to, as deep as that; of a list, its rows, and of a
        graph, its nodes and edges.
        """
        kind: Any = get_named_type(field.type)
        if isinstance(kind, GraphQLObjectType) and "nodes" in kind.fields:
            is_graph = "edges" in kind.fields and "pageInfo" not in kind.fields
            rows = ("nodes", "edges") if is_graph else ("nodes",)
            below = " ".join(f"{each} {self._selection(kind.fields[each], depth)}" for each in rows)
            return f"{{ {below} }}"
        is_abstract = isinstance(kind, GraphQLInterfaceType | GraphQLUnionType)
        kinds = self.schema.get_possible_types(kind) if is_abstract else [kind]
        spread = " ".join(f"...{self._fragment(each, depth)}" for each in kinds)
        return f"{{ __typename {spread} }}"

    def _fragment(self, kind: GraphQLObjectType, depth: int) -> str:
        name = f"{kind.name}{depth}"
        if name not in self._fragments:
            self._fragments[name] = ""
            parts = []
            for each, field in kind.fields.items():
                arguments = _arguments(kind, field)
                below = get_named_type(field.type)
                # By the type's name too, because types may have fields of one name that differ.
                call = f"{kind.name}_{each}: {each}{arguments}"
                if arguments is None or below.name in _PRESENT:
                    continue
                if is_leaf_type(below):
                    parts.append(call)
                elif depth:
                    parts.append(f"{call} {self._selection(field, depth - 1)}")
            self._fragments[name] = f"fragment {name} on {kind.name} {{ {' '.join(parts)} }}"
        return name


def _arguments(kind: GraphQLObjectType, field: GraphQLField) -> str | None:
    """The arguments that a field must have; None where it is not known what to say."""
    given = []
    for name, argument in field.args.items():
        if name == "first":
            given.append(f"first: {_BELOW}")
        elif name == "field":
            said = next((each for each in _TRANSLATED if each in kind.fields), None)
            if said is None:
                return None
            given.append(f'field: "{said}"')
        elif name == "language":
            given.append('language: "zh"')
        elif is_required_argument(argument):
            return None
    return f"({', '.join(given)})" if given else ""


async def measure(
    dsn: str, _rounds: int, say: Say, shape: Shape = SHAPE, asked: int = ASKED
) -> Json:
    """B2, on a migrated database: `asked` characters and entries by chance, and for each entry one
    of the lists in turn; once, however many rounds the others have. Raises RuntimeError where
    something is known too early.
    """
    async with staged(dsn) as stage:
        told = await stories.fill(stage.database, shape)
    branch_id, entries = told.branch_id, told.entries
    entities = told.ledger.rows[LoggedTable.ENTITIES].values()
    names = [each["name"] for each in entities if each["kind"] is EntityKind.CHARACTER]
    happenings = len(told.ledger.rows[LoggedTable.HAPPENINGS])
    del told, entities
    gc.collect()
    draw = random.Random(0)
    known = 0
    times: dict[str, list[float]] = {}
    async with serving(WIDE, dsn) as server:
        of_character, *lists = questions()
        for number in range(asked):
            if number % 20 == 0:
                say(f"B2, {number:,} of {asked:,}")
            position = draw.randint(1, len(entries))
            for question in (of_character, lists[number % len(lists)]):
                variables = {"id": branch_id, "at": entries[position - 1]}
                if question is of_character:
                    variables["name"] = draw.choice(names)
                began = time.perf_counter()
                data = await answer_of(server, question.body(**variables))
                times.setdefault(question.name, []).append(time.perf_counter() - began)
                known += check(question.name, position, data)
    return {
        "entries": len(entries),
        "happenings": happenings,
        "characters": len(names),
        "questions": asked * 2,
        "texts_known": known,
        "texts_known_too_early": 0,
        "milliseconds": {name: milliseconds(each) for name, each in times.items()},
    }


async def answer_of(server: Served, body: bytes) -> Json:
    """What is asked for. Raises RuntimeError where it is refused."""
    answer: Any = await server.answer(body)
    if "errors" in answer:
        raise RuntimeError(f"a question was refused: {answer['errors'][0]}")
    data: Json = answer["data"]
    return data


def check(question: str, position: int, answer: Json) -> int:
    """How many texts an answer as of an entry has. Raises RuntimeError when one comes later."""
    known = 0
    late: list[str] = []
    for path, mark in marks_in(answer):
        known += 1
        if mark > position:
            late.append(f"{path} ({mark})")
    if late:
        raise RuntimeError(
            f"{len(late)} texts of {question} as of entry {position} are known too early: "
            f"{', '.join(late[:10])}"
        )
    return known


def marks_in(answer: Any) -> Iterator[tuple[str, int]]:
    """The numbers behind every MARK in the texts of an answer, each with the names that lead to it,
    joined by points.
    """
    for path, text in _texts(answer, ()):
        for mark in _MARKS.findall(text):
            yield ".".join(path), int(mark)


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in JSON, with the names that lead to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, (*path, key))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, path)
