"""Law 2: a GraphQL type is a declaration: attributes, then one-line relations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.sources import (
    Source,
    imports,
    is_type_checking_block,
    snippet,
    sources,
    within,
)

# The shared vocabulary, the front door and the transports: everything else in schema/ is a noun.
NOT_NOUNS = (
    "schema.app",
    "schema.base",
    "schema.cli",
    "schema.downloads",
    "schema.observing",
    "schema.root",
    "schema.run_events",
    "schema.serving",
    "schema.signing_in",
    "schema.wire",
)
DATABASE_LIBRARIES = ("sqlalchemy", "sqlmodel", "asyncpg", "alembic")
BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.Try,
    ast.TryStar,
    ast.Match,
    ast.BoolOp,
)
SQL = re.compile(r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|DELETE\s+FROM|UPDATE\s.+\sSET)\b", re.DOTALL)


def nouns() -> list[Source]:
    return [
        source
        for source in sources("schema")
        if source.name != "schema" and not any(within(source.name, name) for name in NOT_NOUNS)
    ]


def knowledge_of_tables(source: Source) -> list[str]:
    """SQL, database libraries, and anything of `db` but its enums."""
    found = []
    for each in imports(source):
        is_of_db = each.top == "db" and not each.leads_into("db.enums")
        if each.top in DATABASE_LIBRARIES or is_of_db:
            found.append(source.at(each.node, f"imports {each.module}"))
    found += [
        source.at(node, "holds SQL")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if SQL.search(node.value)
    ]
    return found


def branching(source: Source) -> list[str]:
    """Decisions and loops inside a class or a function; the module's own level is set-up."""
    return [
        source.at(node, type(node).__name__)
        for statement in source.tree.body
        if not is_type_checking_block(statement)
        for definition in _definitions(statement)
        for node in ast.walk(definition)
        if isinstance(node, BRANCHES)
    ]


def _definitions(statement: ast.stmt) -> Iterator[ast.AST]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if isinstance(statement, kinds):
        yield statement
    else:
        yield from (node for node in ast.walk(statement) if isinstance(node, kinds))


def methods_of_types(source: Source) -> list[str]:
    """Functions in classes, but for those of root types, which have no row to ask."""
    return [
        source.at(member, f"{owner.name}.{member.name} is a method")
        for owner in ast.walk(source.tree)
        if isinstance(owner, ast.ClassDef)
        if not owner.name.endswith(("Query", "Mutation", "Subscription"))
        for member in owner.body
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def test_types_know_no_tables() -> None:
    assert nouns()
    assert [each for source in nouns() for each in knowledge_of_tables(source)] == []


def test_a_type_that_knows_tables_is_noticed() -> None:
    text = (
        "from db.enums import Realm\n"
        "from db import enums\n"
        "from db.tables import Run\n"
        "import sqlalchemy as sa\n"
        "from asyncpg import connect\n"
        'QUERY = "SELECT id FROM runs"\n'
    )
    assert knowledge_of_tables(snippet(text, "schema.sample")) == [
        "schema.sample:3: imports db.tables",
        "schema.sample:4: imports sqlalchemy",
        "schema.sample:5: imports asyncpg",
        "schema.sample:6: holds SQL",
    ]


def test_types_decide_nothing() -> None:
    assert [each for source in nouns() for each in branching(source)] == []


def test_a_type_that_decides_is_noticed() -> None:
    text = (
        "if TYPE_CHECKING:\n    from schema.runs import Run\n"
        "class Run:\n"
        "    def state(self):\n"
        "        if self.ended_at:\n"
        "            return 'over'\n"
        "        return self.name or ('old' if self.is_old else 'new')\n"
        "def _helper(rows):\n"
        "    for row in rows:\n"
        "        try:\n            pass\n        finally:\n            pass\n"
        "    match rows:\n        case []:\n            pass\n"
        "    while rows:\n        pass\n"
    )
    kinds = [each.rpartition(" ")[2] for each in branching(snippet(text, "schema.sample"))]
    assert sorted(kinds) == ["BoolOp", "For", "If", "IfExp", "Match", "Try", "While"]


def test_types_have_no_methods() -> None:
    assert [each for source in nouns() for each in methods_of_types(source)] == []


def test_an_async_scalar_is_noticed() -> None:
    text = (
        "@row_type\nclass Run(Node):\n"
        "    @strawberry.field(description='How many.')\n"
        "    async def count(self, info: Info) -> int:\n"
        "        return await count_events(info.context, self)\n"
        "@strawberry.type\nclass RunQuery:\n    async def run(self): ...\n"
    )
    assert methods_of_types(snippet(text, "schema.sample")) == [
        "schema.sample:4: Run.count is a method"
    ]
