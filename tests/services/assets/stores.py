"""A real S3 server on loopback."""

from __future__ import annotations

import contextlib
import itertools
import logging
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from moto.server import ThreadedMotoServer

from services.assets import Bucket

_NUMBERS = itertools.count()
KEY_ID, KEY = "tests", "a-key-that-nobody-sees"


@dataclass(frozen=True)
class Server:
    """It, while it runs."""

    endpoint: str
    stop: Callable[[], None]

    def bucket(self, folder: str = "") -> Bucket:
        """A new bucket, and a place in it."""
        name = f"files-{next(_NUMBERS)}"
        asked = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
        return Bucket(f"s3://{name}{folder}", self.endpoint, "us-east-1", KEY_ID, KEY)


@contextlib.contextmanager
def s3_server() -> Iterator[Server]:
    """Started for the block."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield Server(f"http://{host}:{port}", server.stop)
    finally:
        server.stop()
