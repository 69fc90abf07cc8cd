"""Many subscribers of one stream, in a process of their own, each on a WebSocket of its own.

Speaks graphql-transport-ws by hand and does as little as can be with each message: looks whether
it is the one that others got in the same place, and notes the time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
import uvloop

from db.settings import PROJECT_ROOT

# How long it may take until all listen, and then until all have heard the end.
_PATIENCE_SECONDS = 600.0
# How many connect at the same time.
_CONNECTING = 50
# The report holds all messages of one subscriber in one line.
_LONGEST_LINE = 256 * 1024 * 1024

_TEXT, _CLOSE, _PING, _PONG = 0x81, 0x88, 0x89, 0x8A


@dataclass(frozen=True, slots=True)
class Heard:
    """What all subscribers heard behind the opening, each the same in the same order.

    `first_at` and `last_at` say when the first and the last subscriber had each message, in
    nanoseconds of the wall clock; `processor_seconds` is what the subscribers' own process used
    from when all listened until all had heard the end.
    """

    subscribers: int
    messages: list[str]
    first_at: list[int]
    last_at: list[int]
    processor_seconds: float

    @property
    def deliveries(self) -> int:
        """Messages heard, by all subscribers together."""
        return self.subscribers * len(self.messages)

    @property
    def seconds(self) -> float:
        """From the first message at the first subscriber to the last at the last."""
        return (max(self.last_at) - self.first_at[0]) / 1e9


class Subscribers:
    """A process whose subscribers all listen."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def heard(self) -> Heard:
        """What they heard, once the stream has ended for all and all have hung up.

        Raises RuntimeError when a subscriber misses something or hears something else.
        """
        return Heard(**await _line(self._process))


@contextlib.asynccontextmanager
async def listening(
    url: str, request: dict[str, object], number: int
) -> AsyncIterator[Subscribers]:
    """So many subscribers of one request; each has had the first message of its stream.

    Raises RuntimeError when one cannot subscribe.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.subscribers", url, str(number),
        cwd=PROJECT_ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(orjson.dumps(request) + b"\n")
        process.stdin.close()
        await _line(process)
        yield Subscribers(process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _line(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            line = await process.stdout.readline()
    except TimeoutError:
        raise RuntimeError("the subscribers do not come to an end") from None
    if not line:
        raise RuntimeError("the subscribers broke off")
    said: dict[str, Any] = orjson.loads(line)
    if "failure" in said:
        raise RuntimeError(f"a subscriber {said['failure']}")
    return said


class _Stream:
    """What the subscribers have in common: the messages that each must hear."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.messages: list[bytes] = []
        self.first_at: list[int] = []
        self.last_at: list[int] = []
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.all_listen = asyncio.Event()
        self.all_left = asyncio.Event()
        self._listening = 0
        self._left = 0

    def listens(self) -> None:
        """One more has had the opening."""
        self._listening += 1
        if self._listening == self.number:
            self.all_listen.set()

    def fail(self, said: str) -> None:
        """Something is wrong."""
        if not self.failed.done():
            self.failed.set_exception(RuntimeError(said))

    def left(self) -> None:
        """One more has heard the end and hung up."""
        self._left += 1
        if self._left == self.number:
            self.all_left.set()


class _Subscriber(asyncio.Protocol):
    def __init__(self, stream: _Stream, address: str, path: str, request: bytes) -> None:
        self._stream = stream
        self._address = address
        self._path = path
        self._request = request
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._is_upgraded = False
        # How many messages of the stream came; the acknowledgement and the opening are before it.
        self._place = -2
        self._is_complete = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods but not the class.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: {self._address}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            "Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        now = time.time_ns()
        if self._rest:
            data = self._rest + data
        if not self._is_upgraded:
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self._rest = head
                return
            if not head.startswith(b"HTTP/1.1 101 "):
                self._stream.fail(f"was refused: {head[:200]!r}")
                return
            self._is_upgraded = True
            self._send(_TEXT, b'{"type":"connection_init"}')
        begin, end_of_data = 0, len(data)
        while end_of_data - begin >= 2:
            length, body = data[begin + 1], begin + 2
            if length == 126:
                body = begin + 4
                length = int.from_bytes(data[begin + 2 : body])
            elif length == 127:
                body = begin + 10
                length = int.from_bytes(data[begin + 2 : body])
            if body + length > end_of_data:
                break
            if data[begin] == _TEXT:
                self._hear(data[body : body + length], now)
            else:
                self._control(data[begin], data[body : body + length])
            begin = body + length
        self._rest = data[begin:]

    def _hear(self, message: bytes, now: int) -> None:
        stream, place = self._stream, self._place
        self._place = place + 1
        if self._is_complete:
            stream.fail(f"heard {message!r} behind the end")
        if place < 0:
            self._begin(place, message)
        elif place < len(stream.messages):
            if message != stream.messages[place]:
                stream.fail(f"heard {message!r} where another heard {stream.messages[place]!r}")
            stream.last_at[place] = now
        else:
            stream.messages.append(message)
            stream.first_at.append(now)
            stream.last_at.append(now)
            if b'"type":"next"' not in message and not _is_end(message):
                stream.fail(f"heard {message!r}")
        if place >= 0 and _is_end(message):
            self._is_complete = True
            self._send(_CLOSE, (1000).to_bytes(2))

    def _begin(self, place: int, message: bytes) -> None:
        if place == -2:
            if b'"type":"connection_ack"' not in message:
                self._stream.fail(f"was not let in: {message!r}")
            self._send(_TEXT, self._request)
        elif b'"type":"next"' in message:
            self._stream.listens()
        else:
            self._stream.fail(f"could not subscribe: {message!r}")

    def _control(self, opcode: int, body: bytes) -> None:
        assert self._transport is not None
        if opcode == _PING:
            self._send(_PONG, body)
        elif opcode == _CLOSE:
            self._transport.close()
        else:
            self._stream.fail(f"got a frame that begins with {opcode}")

    def _send(self, opcode: int, body: bytes) -> None:
        assert self._transport is not None
        assert len(body) < 1 << 16
        length = bytes((0x80 | len(body),)) if len(body) < 126 else b"\xfe" + len(body).to_bytes(2)
        # Masked with zeros, which leaves the body as it is.
        self._transport.write(bytes((opcode,)) + length + bytes(4) + body)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_complete and self._place == len(self._stream.messages):
            self._stream.left()
        else:
            self._stream.fail(f"was cut off after {self._place} messages")


def _is_end(message: bytes) -> bool:
    # Short, so that most messages are not searched.
    return len(message) < 64 and b'"type":"complete"' in message


async def _listen(url: str, number: int, request: bytes) -> None:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    loop = asyncio.get_running_loop()
    stream = _Stream(number)
    message = orjson.dumps({"type": "subscribe", "id": "1", "payload": orjson.Fragment(request)})
    for begin in range(0, number, _CONNECTING):
        made = [
            loop.create_connection(
                lambda: _Subscriber(stream, address.netloc, address.path, message),
                address.hostname,
                address.port,
            )
            for _ in range(min(_CONNECTING, number - begin))
        ]
        await asyncio.gather(*made)
    await _unless_failed(stream, stream.all_listen)
    _say({"listening": number})
    began = time.process_time()
    await _unless_failed(stream, stream.all_left)
    used = time.process_time() - began
    # The last message says that the stream is complete, and is no event.
    heard = Heard(
        number,
        [each.decode() for each in stream.messages[:-1]],
        stream.first_at[:-1],
        stream.last_at[:-1],
        used,
    )
    _say(asdict(heard))


async def _unless_failed(stream: _Stream, event: asyncio.Event) -> None:
    waiting = asyncio.create_task(event.wait())
    ends: set[asyncio.Future[Any]] = {waiting, stream.failed}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if stream.failed.done():
            stream.failed.result()
    finally:
        waiting.cancel()


def _say(line: dict[str, object]) -> None:
    sys.stdout.buffer.write(orjson.dumps(line) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """`python -m bench.subscribers URL NUMBER`: a request on standard input; says when all listen,
    then what they heard.
    """
    parser = argparse.ArgumentParser(prog="bench.subscribers")
    parser.add_argument("url")
    parser.add_argument("number", type=int)
    given = parser.parse_args()
    request = sys.stdin.buffer.readline().strip()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_listen(given.url, given.number, request))
        except (RuntimeError, OSError) as error:
            _say({"failure": str(error)})


if __name__ == "__main__":
    main()
