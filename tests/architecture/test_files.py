"""Modules stay short, and no file says where packages are fetched from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.sources import LAYERS, sources
from tests.conftest import ROOT

MOST_LINES = 500
# Made by tools or by running; .gitignore names them.
NOT_SOURCE = {
    ".git",
    ".venv",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".import_linter_cache",
    "__pycache__",
    "node_modules",
}
NOT_SOURCE_PATHS = {"data", "bench/work", "explorer/dist"}
REGISTRY = re.compile(
    r"\b(?:pypi\.org|pypi\.python\.org|pythonhosted\.org|npmjs\.(?:org|com)|npm\.pkg\.github\.com"
    r"|yarnpkg\.com|npmmirror\.com|docker\.io|ghcr\.io|quay\.io|registry\.k8s\.io)\b"
)
INDEX_OPTION = re.compile(r"\s*(?:--(?:extra-)?index(?:-url)?|-i|--find-links|-f)\b")


def files(root: Path = ROOT) -> Iterator[Path]:
    """Every file of the project that somebody wrote or a lock tool made."""
    for path in sorted(root.iterdir()):
        if path.name in NOT_SOURCE or str(path.relative_to(ROOT)) in NOT_SOURCE_PATHS:
            continue
        if path.is_dir():
            yield from files(path)
        elif not path.name.endswith((".png", ".ttf", ".ico", ".pyc")):
            yield path


def too_long(text: str) -> bool:
    return text.count("\n") > MOST_LINES


def registries(text: str) -> list[str]:
    return sorted(set(REGISTRY.findall(text)))


def addresses_in_lock(name: str, text: str) -> list[str]:
    """Where a lock file says that its packages come from."""
    if name.endswith(".json"):
        packages: dict[str, Any] = json.loads(text)["packages"]
        return [
            f"{package}: {entry['resolved']}"
            for package, entry in packages.items()
            if "://" in str(entry.get("resolved", ""))
        ]
    return [line.strip() for line in text.splitlines() if "://" in line or INDEX_OPTION.match(line)]


LOCKS = [each for each in files() if each.name == "package-lock.json" or each.suffix == ".lock"]


def test_a_module_stays_short() -> None:
    long = [each.name for each in sources(*LAYERS) if too_long(each.text)]
    assert long == [], "make each a package of the same import name"
    assert too_long("\n" * (MOST_LINES + 1))
    assert not too_long("\n" * MOST_LINES)


def test_no_file_names_a_registry() -> None:
    found = {
        str(path.relative_to(ROOT)): hosts
        for path in files()
        if path.relative_to(ROOT).parts[0] != "tests"
        if (hosts := registries(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_lock_file_carries_no_addresses(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert addresses_in_lock(lock.name, text) == []
    assert registries(text) == []


def test_every_lock_file_is_looked_at() -> None:
    assert {str(each.relative_to(ROOT)) for each in LOCKS} >= {
        "requirements.lock",
        "requirements-dev.lock",
        "explorer/package-lock.json",
    }


def test_an_address_is_noticed() -> None:
    assert registries("see https://files.pythonhosted.org/a and registry.npmjs.org") == [
        "npmjs.org",
        "pythonhosted.org",
    ]
    pinned = "--index-url https://example.org\n-i local\nanyio==4.0 \\\n    --hash=sha256:00\n"
    assert addresses_in_lock("requirements.lock", pinned) == [
        "--index-url https://example.org",
        "-i local",
    ]
    entry = {"resolved": "https://example.org/a.tgz", "funding": {"url": "https://example.org"}}
    lock = {"packages": {"": {}, "node_modules/a": entry, "node_modules/b": {"resolved": "b"}}}
    assert addresses_in_lock("package-lock.json", json.dumps(lock)) == [
        "node_modules/a: https://example.org/a.tgz"
    ]
