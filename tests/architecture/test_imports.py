"""Law 1: imports run schema -> resolvers -> services -> db, never up, and stand at the top.

The order itself is the import contract in pyproject.toml; here is what that linter cannot see.
"""

from __future__ import annotations

import ast
import subprocess
import sysconfig
from pathlib import Path

from tests.architecture.sources import (
    LAYERS,
    PACKAGES,
    Source,
    functions,
    imports,
    is_type_checking_block,
    method_calls,
    snippet,
    sources,
    within,
)
from tests.conftest import ROOT

# Modules that serve every noun; the others of their packages are nouns.
WITHOUT_NOUNS = (
    "schema.base",
    "schema.wire",
    "resolvers.batching",
    "resolvers.context",
    "resolvers.nodes",
    "resolvers.pages",
)
# The front door opens services, and joins the nouns.
FRONT_DOOR = (
    "schema.app",
    "schema.cli",
    "schema.downloads",
    "schema.observing",
    "schema.root",
    "schema.run_events",
    "schema.serving",
    "schema.signing_in",
)
# Loads the SDK of the chosen provider only: each takes one to two seconds.
LOADS_BY_NAME = ("services.providers",)


def hidden_imports(source: Source) -> list[str]:
    """Imports inside functions, and modules loaded by name."""
    found = [
        source.at(each.node, f"{function.name} imports {each.module}")
        for function in functions(source)
        for each in imports(source, function)
    ]
    if source.name not in LOADS_BY_NAME:
        found += [
            source.at(call, f"{name} hides an import")
            for call, name in method_calls(source)
            if name == "import_module"
        ]
        found += [
            source.at(node, f"{node.id} hides an import")
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and node.id in {"__import__", "import_module"}
        ]
    return found


def imports_for_annotations(source: Source) -> list[str]:
    """Imports under TYPE_CHECKING, unless a GraphQL noun names the type of another one."""
    return [
        source.at(each.node, f"imports {each.module} for annotations")
        for node in ast.walk(source.tree)
        if is_type_checking_block(node)
        for each in imports(source, node)
        if not (source.name.startswith("schema.") and each.top == "schema")
    ]


def imports_of_other_folders(source: Source) -> list[str]:
    """Imports of what is not part of a server: tests, measurements, migrations."""
    return [
        source.at(each.node, f"imports {each.module}")
        for each in imports(source)
        if each.top in {"tests", "bench", "migrations"}
    ]


def known_nouns(source: Source) -> list[str]:
    """Nouns of schema and resolvers that a module without nouns imports."""
    if not any(within(source.name, module) for module in WITHOUT_NOUNS):
        return []
    return [
        source.at(each.node, f"imports {each.module}")
        for each in imports(source)
        if each.top in {"schema", "resolvers"}
        and not any(each.leads_into(allowed) for allowed in WITHOUT_NOUNS)
    ]


def test_the_import_contract_is_kept() -> None:
    command = Path(sysconfig.get_path("scripts"), "lint-imports")
    done = subprocess.run(
        [command, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_imports_stand_at_the_top_of_their_module() -> None:
    assert [each for source in sources(*PACKAGES) for each in hidden_imports(source)] == []


def test_an_import_inside_a_function_is_noticed() -> None:
    inside = "class A:\n    async def f(self):\n        from db import ids\n        import json\n"
    assert hidden_imports(snippet(inside)) == [
        "services.sample:3: f imports db",
        "services.sample:4: f imports json",
    ]
    by_name = "import importlib\nids = importlib.import_module('db.ids')\n__import__('json')\n"
    assert hidden_imports(snippet(by_name)) == [
        "services.sample:2: import_module hides an import",
        "services.sample:3: __import__ hides an import",
    ]


def test_only_graphql_types_import_for_annotations_alone() -> None:
    assert [each for source in sources(*LAYERS) for each in imports_for_annotations(source)] == []


def test_an_upward_import_for_annotations_is_noticed() -> None:
    text = "if TYPE_CHECKING:\n    from schema.mirrors import MirrorTree\n"
    assert imports_for_annotations(snippet(text, "services.mirrors")) == [
        "services.mirrors:2: imports schema.mirrors for annotations"
    ]
    assert imports_for_annotations(snippet(text, "schema.characters")) == []


def test_the_server_does_not_need_tests_or_measurements() -> None:
    assert [each for source in sources(*LAYERS) for each in imports_of_other_folders(source)] == []
    assert imports_of_other_folders(snippet("from tests import factories\nimport bench.peers\n"))


def test_what_serves_every_noun_knows_none() -> None:
    assert [each for source in sources(*LAYERS) for each in known_nouns(source)] == []
    named = {source.name for source in sources("schema", "resolvers")}
    assert {*WITHOUT_NOUNS, *FRONT_DOOR} <= named


def test_a_noun_in_the_wire_is_noticed() -> None:
    text = "from resolvers.batching import Batcher\nfrom schema import mirrors\n"
    assert known_nouns(snippet(text, "schema.wire.http")) == ["schema.wire.http:2: imports schema"]
    assert known_nouns(snippet("import resolvers.runs\n", "resolvers.context")) != []
    assert known_nouns(snippet(text, "schema.runs")) == []
