"""What tests of the wire share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> Iterator[None]:
    """Errors are logged as the product logs them: drawing every frame's variables takes seconds."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    )
    yield
    structlog.reset_defaults()
