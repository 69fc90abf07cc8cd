"""Copies of the acceptance documents that belong to landed features."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NAMES = tuple(sorted(path.name for path in FOLDER.glob("*.graphql")))


def document(name: str) -> str:
    """The text of one document, as it was written."""
    return FOLDER.joinpath(name).read_text(encoding="utf-8")
