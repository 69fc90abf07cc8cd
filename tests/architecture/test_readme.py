"""The README says what is true: its settings, its commands, its documents."""

from __future__ import annotations

import json
import re

from graphql import parse, validate

from db.settings import Settings
from schema.root import schema
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def environment_names() -> set[str]:
    return {
        str(field.validation_alias or f"MIRRORGRAPH_{name.upper()}")
        for name, field in Settings.model_fields.items()
    }


def test_the_table_of_settings_is_complete_and_holds_nothing_else() -> None:
    rows = [line for line in README.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row.split("|")[1])}
    assert named == environment_names()


def test_documents_in_its_commands_are_valid() -> None:
    bodies = re.findall(r"-d '(\{.*?\})'\n", README, flags=re.DOTALL)
    assert len(bodies) == 4
    for body in bodies:
        document = parse(json.loads(body)["query"])
        assert validate(schema._schema, document) == []


def test_it_gives_exactly_two_set_up_commands_and_links_pages_that_exist() -> None:
    block = README.partition("## Start")[2].partition("```")[2].partition("```")[0]
    commands = [line.partition("#")[0].strip() for line in block.strip().splitlines()]
    assert commands == ["make run", "make test"]
    for link in re.findall(r"\]\((docs/[^)]+)\)", README):
        assert (ROOT / link).is_file(), link


def test_every_environment_name_in_the_pages_is_a_setting() -> None:
    pages = [README, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))]
    named = {name for page in pages for name in re.findall(r"MIRRORGRAPH_[A-Z_]+", page)}
    assert named <= environment_names()
