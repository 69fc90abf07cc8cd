"""The web pages in a real browser."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.conftest import ROOT
from tests.e2e.callers import Caller, node_lines

pytestmark = [
    pytest.mark.skipif(
        not ROOT.joinpath("explorer", "dist", "index.html").is_file(),
        reason="needs the web pages (make web)",
    ),
]

SUBSCRIPTION = """subscription Follow($run: ID!) {
  runEvents(runId: $run) {
    __typename
    seq
  }
}"""


def browser() -> str:
    """Where Chromium is; the test is skipped where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.skip("needs Chromium")


async def test_a_visitor_sees_the_demo_character_and_runs_operations_in_graphiql(
    caller: Caller,
) -> None:
    begun = await caller.begin("Well? [demo: length=9]")
    events = await caller.follow(begun.run)
    (seen,) = [
        line
        async for line in node_lines(
            "browse.mjs",
            address=caller.server.address,
            executablePath=browser(),
            run=begun.run,
            subscription=SUBSCRIPTION,
        )
    ]
    home = seen["home"]
    assert home["title"] == "Mirrorgraph"
    assert home["viewer"] == "local"
    assert re.fullmatch(r"Ilse Marrowsoul_[0-9A-Z]{26}", home["characters"][0])
    assert home["total"] == "2 in all"
    assert '"name": "local"' in seen["query"].replace("\xa0", " ")
    assert f'"seq": {events[-1]["seq"]}' in seen["last"].replace("\xa0", " ")
    assert seen["complaints"] == []
    assert seen["outside"] == []
