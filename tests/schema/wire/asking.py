"""HTTP requests as tests write them: nothing is added that the test does not name."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from multidict import CIMultiDict

from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from schema.wire.negotiation import JSON, RESPONSE_JSON
from tests.e2e.callers import PATIENCE, PREFLIGHT
from tests.schema.wire.serving import USUAL_LIMITS, USUAL_SETTINGS, Wire, wired

__all__ = ["JSON", "PREFLIGHT", "RESPONSE_JSON", "Answer", "Asker", "asking", "error", "form"]

Headers = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: `body` is read as JSON where the answer says that it is JSON."""

    status: int
    media: str
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str:
        """The code of the only error of an answer that has no data."""
        assert set(self.body) == {"errors"}, self.body
        (error,) = self.body["errors"]
        return str(error["extensions"]["code"])

    @property
    def message(self) -> str:
        """The message of the only error."""
        (error,) = self.body["errors"]
        return str(error["message"])


class Asker:
    """A client of one wire."""

    def __init__(self, wire: Wire, session: aiohttp.ClientSession) -> None:
        self.wire = wire
        self.session = session

    async def request(self, method: str, *, headers: Headers = (), **given: Any) -> Answer:
        """Any request. What is refused has a body in JSON whose errors all have codes."""
        # The type of a form has its boundary.
        skipped = [] if isinstance(given.get("data"), aiohttp.FormData) else ["Content-Type"]
        async with asyncio.timeout(PATIENCE):
            response = await self.session.request(
                method,
                self.wire.url,
                headers=CIMultiDict(headers),
                skip_auto_headers=["Accept", "Accept-Encoding", *skipped],
                **given,
            )
            async with response:
                text = await response.text()
        media = response.headers.get("Content-Type", "")
        is_json = media in {f"{JSON}; charset=utf-8", f"{RESPONSE_JSON}; charset=utf-8"}
        body = json.loads(text) if is_json and text else text
        if response.status >= 400 and method != "HEAD":
            assert is_json, (media, text)
            assert all(each["message"] and each["extensions"]["code"] for each in body["errors"])
        return Answer(response.status, media.partition(";")[0], response.headers, body)

    async def post(self, asked: Any, accept: str | None = None, **headers: str) -> Answer:
        """JSON by POST; bytes are sent as they are."""
        data = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
        given = {"Content-Type": JSON, **({"Accept": accept} if accept is not None else {})}
        return await self.request("POST", headers={**given, **headers}, data=data)

    async def get(self, accept: str | None = None, **parameters: str) -> Answer:
        """A GET request with the header that shows it comes from a script."""
        headers = {**PREFLIGHT, **({"Accept": accept} if accept is not None else {})}
        return await self.request("GET", headers=headers, params=parameters)

    async def send_form(self, data: aiohttp.FormData, headers: Headers = PREFLIGHT) -> Answer:
        """A form, as the multipart request specification has it."""
        return await self.request("POST", headers=headers, data=data)


@contextlib.asynccontextmanager
async def asking(
    limits: Limits = USUAL_LIMITS, settings: EndpointSettings = USUAL_SETTINGS, **given: Any
) -> AsyncIterator[Asker]:
    """A wire and a client of it."""
    async with wired(limits, settings, **given) as wire, aiohttp.ClientSession() as session:
        yield Asker(wire, session)


def form(**fields: str | bytes) -> aiohttp.FormData:
    """Fields in their order: texts as they are, bytes as files."""
    data = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        if isinstance(value, bytes):
            data.add_field(name, value, filename=f"{name}.txt", content_type="text/plain")
        else:
            data.add_field(name, value)
    return data


def error(code: str, message: str, *places: tuple[int, int], **extensions: Any) -> dict[str, Any]:
    """An error as it is sent."""
    located = {"locations": [{"line": line, "column": column} for line, column in places]}
    return {
        "message": message,
        **(located if places else {}),
        "extensions": {"code": code, **extensions},
    }
