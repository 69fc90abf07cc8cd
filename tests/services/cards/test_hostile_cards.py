"""Hundreds of damaged files and bombs, read by a process that must stay small."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

# What may come out of a file that was damaged by chance; limits have bombs of their own.
CONTAINERS = {"png_text", "json", "charx"}
DAMAGED = CONTAINERS | {
    *("BROKEN_PNG", "BROKEN_CARD", "BROKEN_CHARX", "UNSAFE_CHARX", "NO_CARD", "NOT_A_CARD"),
    *("CARD_NAME_MISSING", "CARD_TOO_DEEP", "UNSUPPORTED_CARD_CONTAINER", "ENCRYPTED_CARD"),
}
BOMBS = {
    "texts": "json",
    "objects": "png_text",
    "numbers": "CARD_FILE_TOO_LARGE",
    "brackets": "CARD_CHUNK_TOO_LARGE",
    "wide text": "CARD_TEXT_TOO_LONG",
    "card chunk": "CARD_CHUNK_TOO_LARGE",
    "file chunk": "CARD_CHUNK_TOO_LARGE",
    "file chunks": "CARD_FILES_TOO_LARGE",
    "chunks": "png_text",
    "archive": "CARD_FILES_TOO_LARGE",
    "lying archive": "BROKEN_CHARX",
    "full archive": "charx",
    "entries": "CARD_TOO_MANY_FILES",
    "png in archive": "png_text",
}


@pytest.fixture(scope="module")
def report() -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "tests.services.cards.hostile"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def test_no_file_takes_more_memory_than_a_quarter_of_a_gibibyte(report: Any) -> None:
    """Rule K9."""
    assert report["peak"] < 256


def test_what_bombs_are_refused_for(report: Any) -> None:
    """Rule K9."""
    assert {name: report["outcomes"][name] for name in BOMBS} == {
        name: {outcome: 1} for name, outcome in BOMBS.items()
    }


def test_a_damaged_real_file_gives_a_card_or_a_refusal(report: Any) -> None:
    """Rule K5. Any other error would have ended the process."""
    damaged = {name: each for name, each in report["outcomes"].items() if name not in BOMBS}
    if not damaged:
        pytest.skip("needs ../shared/data/cards, which does not ship with the project")
    assert len(damaged) == 9
    assert sum(sum(each.values()) for each in damaged.values()) > 500
    assert {outcome for each in damaged.values() for outcome in each} <= DAMAGED
    assert {outcome for each in damaged.values() for outcome in each} > {"png_text", "json"}
