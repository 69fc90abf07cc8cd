"""The numbered rules of the docs and the tests that name them keep together."""

from __future__ import annotations

import re

from tests.conftest import ROOT

PAGES = (
    "rules.md",
    "assets.md",
    "cards.md",
    "runs.md",
    "wire.md",
    "identity.md",
    "transfers.md",
    "calendars.md",
    "deltas.md",
    "entries.md",
    "graphs.md",
    "embedding.md",
    "endings.md",
    "history.md",
    "plot.md",
    "retrieval.md",
    "search.md",
    "settings.md",
    "stories.md",
    "translations.md",
    "world.md",
    "worlds.md",
)
NUMBER = r"[A-Z]\d{1,3}"
# At the start of an item of a list.
START = rf"^(?:- |\d+\. )({NUMBER}) "


def written_rules() -> set[str]:
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES]
    return {rule for page in pages for rule in re.findall(START, page, re.MULTILINE)}


def named_rules() -> set[str]:
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    named = [each for test in tests for each in re.findall(rf"Rules? ((?:{NUMBER},? ?)+)", test)]
    return {rule for each in named for rule in re.findall(NUMBER, each)}


def test_every_rule_is_named_by_a_test_and_every_named_rule_is_written() -> None:
    rules = written_rules()
    assert len(rules) > 30
    assert named_rules() == rules
