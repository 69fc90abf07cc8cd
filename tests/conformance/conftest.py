"""Two kinds of servers, one for each module that asks for it: the product as in the end-to-end
tests, and the wire with a schema that can be observed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.e2e.conftest import caller, environment, ledger, server, server_dsn, session
from tests.schema.wire.serving import Wire, wired

__all__ = ["caller", "environment", "ledger", "server", "server_dsn", "session"]


@pytest.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with wired() as wire:
        yield wire
