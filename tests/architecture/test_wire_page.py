"""docs/wire.md says what is true: its modules, limits, codes and metrics are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest

from db.settings import Settings
from schema.observing import Observation
from schema.root import schema
from schema.wire.documents import DocumentCache, DocumentReader
from schema.wire.limits import Limits
from schema.wire.metrics import Metrics
from schema.wire.websocket import CloseCode
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "wire.md").read_text(encoding="utf-8")
WIRE = ROOT / "schema" / "wire"
# What makes an error with a code.
MAKERS = {"Refused", "request_error", "error_body", "located_body", "LimitReached"}
# Sent by uvicorn itself, which knows the limit of a message.
UVICORN_CODES = {1009}
UNITS = {"": 1, " KiB": 2**10, " MiB": 2**20}


def section(title: str) -> str:
    """A section of the page by its heading's last words."""
    return re.split(rf"^## \d+\. {title}$", PAGE, flags=re.MULTILINE)[1].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of every table's rows, heads left out."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = {number for number, row in enumerate(cells) if set(row[0]) == {"-"}}
    return [row for number, row in enumerate(cells) if not {number, number + 1} & rules]


def codes_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS:
            for argument in node.args:
                if isinstance(argument, ast.Constant) and re.fullmatch(
                    "[A-Z][A-Z_]+", str(argument.value)
                ):
                    yield str(argument.value)


def number_of(text: str) -> float | None:
    found = re.fullmatch(r"([\d,]+)( [KM]iB)?", text)
    return float(found[1].replace(",", "")) * UNITS[found[2] or ""] if found else None


def test_the_list_of_modules_is_complete() -> None:
    named = set(re.findall(r"`(\w+\.py)`", section("The modules")))
    assert named == {path.name for path in WIRE.glob("*.py")} - {"__init__.py"}


def test_every_code_is_in_the_tables_and_no_other() -> None:
    names = ("app.py", "run_events.py", "serving.py", "signing_in.py")
    beside = [ROOT / "schema" / name for name in names]
    sources = [*WIRE.glob("*.py"), *beside]
    made = {code for path in sources for code in codes_in(path)}
    # In `check_counts` codes are in a table of their own.
    made |= {"DEPTH_LIMIT", "ALIAS_LIMIT", "DUPLICATE_FIELD_LIMIT", "DIRECTIVE_LIMIT"}
    limits = {row[3] for row in rows(section("Limits")) if row[3].isupper()}
    errors = {row[0] for row in rows(section("Error codes")) if row[0].isupper()}
    assert limits | errors == made
    assert not limits & errors


def test_the_limits_are_the_settings_defaults() -> None:
    given: dict[str, Any] = {
        f"MIRRORGRAPH_{name.upper()}": field.default
        for name, field in Settings.model_fields.items()
    }
    told = {row[2].strip("`"): number_of(row[1]) for row in rows(section("Limits")) if row[2]}
    assert told == {name: given[name] for name in told}
    assert len(told) == 14
    # The wire's own defaults, with which its tests run, are the same.
    assert Limits() == Limits(
        **{
            name: given[f"MIRRORGRAPH_{setting}"]
            for name, setting in {
                "document_bytes": "MAX_DOCUMENT_BYTES",
                "tokens": "MAX_TOKENS",
                "depth": "MAX_DEPTH",
                "aliases": "MAX_ALIASES",
                "duplicate_fields": "MAX_DUPLICATE_FIELDS",
                "directives": "MAX_DIRECTIVES",
                "cost": "MAX_COST",
                "seconds": "OPERATION_TIMEOUT",
                "request_bytes": "MAX_REQUEST_BYTES",
                "request_seconds": "REQUEST_TIMEOUT",
                "batch": "MAX_BATCH",
                "files": "MAX_FILES",
                "operations": "MAX_OPERATIONS",
                "connections": "MAX_CONNECTIONS",
            }.items()
        }
    )


def test_the_table_of_close_codes_is_complete() -> None:
    told = {int(row[0]) for row in rows(section("WebSocket"))}
    assert told == {*map(int, CloseCode), *UVICORN_CODES}


def test_the_table_of_metrics_is_complete() -> None:
    metrics, limits = Metrics(), Limits()
    reader = DocumentReader(schema._schema, limits, suggestions=True, introspection=True)
    Observation(metrics, DocumentCache(reader, limits, entries=1, size=1))
    made = set(
        re.findall(r"^# TYPE (\S+)", generate_latest(metrics.registry).decode(), re.MULTILINE)
    )
    told: set[str] = set()
    for row in rows(section("Metrics")):
        first, *more = re.findall(r"`(\w+)`", row[0])
        told |= {first, *(re.sub(r"_[a-z]+(_total)?$", name, first) for name in more)}
    assert told == made
