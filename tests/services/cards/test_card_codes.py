"""Every code that a card can be refused or warned with is on the page, and no other."""

from __future__ import annotations

import re

from tests.conftest import ROOT


def codes_on_page(heading: str) -> set[str]:
    page = (ROOT / "docs" / "cards.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    return {code for cell in cells for code in re.findall(r"[A-Z][A-Z0-9_]+", cell)}


def codes_in_source(call: str) -> set[str]:
    files = (ROOT / "services" / "cards").glob("*.py")
    found = (re.findall(rf'{call}\(\s*"([A-Z0-9_]+)"', file.read_text("utf-8")) for file in files)
    return {code for codes in found for code in codes}


def test_every_refusal_is_on_the_page() -> None:
    assert codes_in_source("refusal") == codes_on_page("Refusals")


def test_every_warning_is_on_the_page() -> None:
    told = codes_in_source(r"(?:\.add|CardWarning)") - {"MORE_WARNINGS"}
    assert told == codes_on_page("Warnings")
