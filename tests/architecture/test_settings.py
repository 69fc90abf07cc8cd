"""Law 9: settings are built once and passed on; importing any module needs no environment."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from db.settings import Settings
from schema.app import _limits
from schema.wire.limits import Limits
from tests.architecture.sources import PACKAGES, Source, imports, snippet, sources
from tests.conftest import ROOT

READS_THE_ENVIRONMENT = "db.settings"
OF_THE_ENVIRONMENT = {"environ", "environb", "getenv", "getenvb"}

# Imports the modules it is given, in one process, where building settings is an error.
IMPORT_ALL = """
import importlib, sys
import db.settings

def refuse(*args, **kwargs):
    raise AssertionError("settings were built while a module was imported")

db.settings.Settings.__init__ = refuse
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        sys.exit(f"{name}: {type(error).__name__}: {error}")
print("imported", len(sys.argv) - 1)
"""


def environment_reads(source: Source) -> list[str]:
    """Everywhere a module looks into the environment by itself."""
    aliases = {"os"} | {
        each.asname
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import)
        for each in node.names
        if each.name == "os" and each.asname
    }
    found = [
        source.at(node, f"os.{node.attr}")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in OF_THE_ENVIRONMENT
        if isinstance(node.value, ast.Name) and node.value.id in aliases
    ]
    return found + [
        source.at(each.node, f"os.{each.name}")
        for each in imports(source)
        if each.module == "os" and each.name in OF_THE_ENVIRONMENT
    ]


def import_all(*names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names],
        cwd=ROOT,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_every_module_is_imported_without_an_environment() -> None:
    names = [each.name for each in sources(*PACKAGES) if not each.name.endswith("__main__")]
    done = import_all(*names)
    assert (done.returncode, done.stdout) == (0, f"imported {len(names)}\n"), done.stderr


def test_a_module_that_builds_settings_when_imported_is_noticed() -> None:
    done = import_all("tests.architecture.builds_settings")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "AssertionError: settings were built while a module was imported\n"
    ), done.stderr


def test_one_module_reads_the_environment() -> None:
    found = [
        each
        for source in sources(*PACKAGES)
        if source.name != READS_THE_ENVIRONMENT
        for each in environment_reads(source)
    ]
    assert found == []


def test_a_look_into_the_environment_is_noticed() -> None:
    text = (
        "import os\nimport os as system\nfrom os import environ, getenv\n"
        "a = os.environ['A']\nb = system.getenv('B')\nc = os.path.join('c')\n"
    )
    assert sorted(environment_reads(snippet(text))) == [
        "services.sample:3: os.environ",
        "services.sample:3: os.getenv",
        "services.sample:4: os.environ",
        "services.sample:5: os.getenv",
    ]


def test_the_limits_of_the_wire_are_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("MIRRORGRAPH_")]:
        monkeypatch.delenv(name)
    assert _limits(Settings()) == Limits()
