"""Makes load over HTTP: with wrk where it is installed, else with a small client of our own.

Both keep 16 connections busy with prepared POST requests, in a process of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import orjson
import uvloop

CONNECTIONS = 16
# How long the program may take beyond the stretch itself.
_GRACE_SECONDS = 30.0

_WRK_SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local turn = 0
request = function()
  turn = turn %% #bodies + 1
  return wrk.format(nil, nil, nil, bodies[turn])
end
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    "result %%d %%d %%d %%d %%d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What one stretch of load came to; times in seconds."""

    requests: int
    seconds: float
    median: float
    p99: float
    failures: int

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


def generator_name() -> str:
    """Which program makes the load on this machine."""
    return "wrk" if shutil.which("wrk") else "own asyncio client"


async def load(url: str, bodies: Sequence[bytes], seconds: float) -> Load:
    """Keep a server busy for a while. Raises RuntimeError when a request fails."""
    with tempfile.TemporaryDirectory(prefix="mgload") as folder:
        listed = Path(folder, "bodies")
        _write_lines(listed, bodies)
        if shutil.which("wrk"):
            result = await _load_with_wrk(url, listed, seconds)
        else:
            result = await _load_with_our_own(url, listed, seconds)
    if result.failures:
        raise RuntimeError(f"{result.failures} requests to {url} failed")
    return result


def _write_lines(path: Path, lines: Sequence[bytes]) -> None:
    path.write_bytes(b"\n".join(lines) + b"\n")


async def _load_with_wrk(url: str, bodies: Path, seconds: float) -> Load:
    script = bodies.with_name("script.lua")
    script.write_text(_WRK_SCRIPT % bodies)
    output = await _output(
        "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", "--timeout", "10s",
        "-s", str(script), url, patience=seconds + _GRACE_SECONDS,
    )  # fmt: skip
    found = re.search(r"^result (\d+) (\d+) (\d+) (\d+) (\d+)$", output, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"wrk said:\n{output}")
    requests, duration, median, p99, failures = (int(each) for each in found.groups())
    return Load(requests, duration / 1e6, median / 1e6, p99 / 1e6, failures)


async def _load_with_our_own(url: str, bodies: Path, seconds: float) -> Load:
    output = await _output(
        sys.executable, "-m", "bench.load", url, str(bodies), "--seconds", str(seconds),
        patience=seconds + _GRACE_SECONDS,
    )  # fmt: skip
    return Load(**orjson.loads(output))


async def _output(*command: str, patience: float) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(patience):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise RuntimeError(f"{command[0]} does not come to an end") from None
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return output.decode()


class _Connection(asyncio.Protocol):
    """Sends the next request as soon as the last one is answered; reads no more than it must."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._received = bytearray()
        self._expected = 0
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but not the class.
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        self._sent_at = time.perf_counter()
        if self._sent_at >= self._shared.ends_at:
            self._transport.close()
            return
        self._transport.write(self._shared.next_request())

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if not self._expected:
            head_end = received.find(b"\r\n\r\n")
            if head_end < 0:
                return
            head = bytes(received[:head_end]).lower()
            length = re.search(rb"content-length: (\d+)", head)
            self._expected = head_end + 4 + (int(length[1]) if length else 0)
            self._shared.failures += b" 200 " not in head[:16]
        if len(received) >= self._expected:
            received.clear()
            self._expected = 0
            self._shared.times.append(time.perf_counter() - self._sent_at)
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if time.perf_counter() < self._shared.ends_at:
            self._shared.failures += 1
        self._shared.closed()


class _Shared:
    """What the connections of a stretch have in common."""

    def __init__(self, requests: Sequence[bytes], ends_at: float) -> None:
        self._requests = requests
        self._turn = 0
        self._open = CONNECTIONS
        self.ends_at = ends_at
        self.times: list[float] = []
        self.failures = 0
        self.all_closed = asyncio.Event()

    def next_request(self) -> bytes:
        self._turn = (self._turn + 1) % len(self._requests)
        return self._requests[self._turn]

    def closed(self) -> None:
        self._open -= 1
        if not self._open:
            self.all_closed.set()


async def _our_own(url: str, bodies: Sequence[bytes], seconds: float) -> Load:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    requests = [
        (
            f"POST {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        + body
        for body in bodies
    ]
    began = time.perf_counter()
    shared = _Shared(requests, began + seconds)
    loop = asyncio.get_running_loop()
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: _Connection(shared), address.hostname, address.port)
    await shared.all_closed.wait()
    times = sorted(shared.times)
    return Load(
        len(times),
        time.perf_counter() - began,
        statistics.median(times),
        times[int(len(times) * 0.99)],
        shared.failures,
    )


def main() -> None:
    """`python -m bench.load URL BODIES --seconds S`: one JSON object on standard output."""
    parser = argparse.ArgumentParser(prog="bench.load")
    parser.add_argument("url")
    parser.add_argument("bodies", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    bodies = given.bodies.read_bytes().splitlines()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(_our_own(given.url, bodies, given.seconds))
    print(orjson.dumps(asdict(result)).decode())


if __name__ == "__main__":
    main()
