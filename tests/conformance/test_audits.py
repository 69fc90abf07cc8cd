"""The audits of graphql-http, which measure a server against the older GraphQL over HTTP draft."""

from __future__ import annotations

import pytest

from tests.conftest import ServerProcess
from tests.e2e.callers import Json, node_lines

ALL = 61

# Malformed parameters: the newer draft recommends 422, the older one allowed 400.
UNPROCESSABLE = (
    "423L",  # no query
    *(f"LKJ{number}" for number in range(4)),  # a query of another type
    *(f"6C0{number}" for number in range(4)),  # operationName of another type
    *(f"476{number}" for number in range(4)),  # variables of another type
    *(f"58B{number}" for number in range(4)),  # extensions of another type
    "3E3A",  # parameters that are all invalid
)
NEWER_CODES = {
    **dict.fromkeys(UNPROCESSABLE, ("notice", 422)),
    # A document that cannot be executed is no success, whatever the client reads.
    "572B": ("warn", 400),
    "FDE2": ("warn", 400),
    "7B9B": ("warn", 422),
    # Variables that do not fit are well-formed, and so 422 in the newer draft.
    "86EE": ("warn", 422),
}


@pytest.fixture(scope="module", params=[True, False], ids=["legacy codes", "newer codes"])
def is_legacy(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def environment(*, is_legacy: bool) -> dict[str, str]:
    return {"MIRRORGRAPH_LEGACY_STATUS_CODES": "true" if is_legacy else "false"}


async def test_the_audits_find_nothing_but_what_the_newer_draft_recommends(
    server: ServerProcess, *, is_legacy: bool
) -> None:
    """Rule T38."""
    audits = [each async for each in node_lines("audit.mjs", url=server.url)]
    assert len(audits) == ALL
    different = {each["id"]: _finding(each) for each in audits if each["status"] != "ok"}
    assert different == ({} if is_legacy else NEWER_CODES)


def _finding(audit: Json) -> tuple[str, int]:
    return audit["status"], audit["answer"]["status"]
