"""The harness itself, and the shortest way through each transport."""

from __future__ import annotations

import json

import aiohttp

from tests.e2e.callers import Socket, dialled
from tests.schema.wire.serving import wired


async def test_every_transport_answers() -> None:
    async with wired() as wire, aiohttp.ClientSession() as session:
        async with session.post(wire.url, json={"query": "{ hello }"}) as response:
            assert (response.status, await response.json()) == (
                200,
                {"data": {"hello": "hello world"}},
            )
        asked = {"query": "subscription { count(to: 2) }"}
        accept = {"Accept": "text/event-stream"}
        async with session.post(wire.url, json=asked, headers=accept) as response:
            assert await response.text() == (
                ":\n\n"
                'event: next\ndata: {"data":{"count":1}}\n\n'
                'event: next\ndata: {"data":{"count":2}}\n\n'
                "event: complete\ndata: \n\n"
            )
        accept = {"Accept": "multipart/mixed;subscriptionSpec=1.0, application/json"}
        async with session.post(wire.url, json=asked, headers=accept) as response:
            reader = aiohttp.MultipartReader.from_response(response)
            parts = []
            while (part := await reader.next()) is not None:
                parts.append(json.loads(await part.read()))
        assert parts == [{"payload": {"data": {"count": 1}}}, {"payload": {"data": {"count": 2}}}]
        async with dialled(wire.socket_url) as connection:
            client = Socket(connection)
            await client.send({"type": "connection_init"})
            assert await client.receive() == {"type": "connection_ack"}
            async with client.listening():
                counted = await client.start("subscription { count(to: 2) }")
                assert [each async for each in counted] == [
                    {"data": {"count": 1}},
                    {"data": {"count": 2}},
                ]
        assert (wire.probe.live, wire.probe.opened, wire.probe.cleaned) == (0, 3, 3)
