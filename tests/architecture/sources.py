"""The project's modules as text and syntax trees, for rules that can be read off the source."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.conftest import ROOT

LAYERS = ("schema", "resolvers", "services", "db")
PACKAGES = (*LAYERS, "bench")


@dataclass(frozen=True)
class Source:
    """One module."""

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]

    def at(self, node: ast.AST, complaint: str) -> str:
        """A complaint with its place."""
        return f"{self.name}:{getattr(node, 'lineno', 0)}: {complaint}"


def sources(*packages: str) -> list[Source]:
    """Every module below these packages."""
    return [
        _source(path) for package in packages for path in sorted((ROOT / package).rglob("*.py"))
    ]


def _source(path: Path) -> Source:
    parts = path.relative_to(ROOT).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return Source(name, path.read_text(encoding="utf-8"), is_package)


def snippet(text: str, name: str = "services.sample") -> Source:
    """A module that breaks a rule, to see that a checker notices."""
    return Source(name, text)


def within(name: str, package: str) -> bool:
    """Whether a dotted name is a package or below it."""
    return name == package or name.startswith(f"{package}.")


@dataclass(frozen=True)
class Import:
    """One imported name; `module` is the module it comes from."""

    node: ast.stmt
    module: str
    name: str | None = None

    def leads_into(self, package: str) -> bool:
        """Whether a package or something below it is imported."""
        return within(f"{self.module}.{self.name}" if self.name else self.module, package)

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


def imports(source: Source, below: ast.AST | None = None) -> Iterator[Import]:
    """Every import statement in a module, or below one of its nodes, one name at a time."""
    for node in ast.walk(below or source.tree):
        if isinstance(node, ast.Import):
            yield from (Import(node, each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            module = importlib.util.resolve_name(relative, source.package)
            yield from (Import(node, module, each.name) for each in node.names)


def functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function, however deep."""
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def method_calls(source: Source) -> Iterator[tuple[ast.Call, str]]:
    """Every call of the form `something.name(...)` with its name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node, node.func.attr


def is_type_checking_block(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )
