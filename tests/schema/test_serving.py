"""How connections end with the server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets import ConnectionClosed
from websockets.exceptions import InvalidState
from websockets.frames import Close, Frame, Opcode

from schema.serving import PatientWebSocket
from tests.e2e.callers import PATIENCE, dialled


async def accepting(_scope: Any, receive: Any, send: Any) -> None:
    """Takes a socket and waits until it is gone."""
    await receive()
    await send({"type": "websocket.accept", "subprotocol": "graphql-transport-ws"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@pytest.mark.parametrize("protocol", [WebSocketsSansIOProtocol, PatientWebSocket])
async def test_a_server_that_stops_while_a_client_closes_goes_on_stopping(
    protocol: type[WebSocketsSansIOProtocol],
) -> None:
    """uvicorn's own protocol raises, and that would leave the database running behind."""
    config = uvicorn.Config(accepting, log_config=None)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: protocol(config, state, {}), "127.0.0.1", 0
    )
    async with server, asyncio.timeout(PATIENCE):
        port = server.sockets[0].getsockname()[1]
        async with dialled(f"ws://127.0.0.1:{port}") as client:
            (connection,) = state.connections
            # The client's close has come and is not answered yet.
            closing = Frame(Opcode.CLOSE, Close(1000, "").serialize())
            connection.conn.receive_data(closing.serialize(mask=True))  # type: ignore[union-attr]
            if protocol is WebSocketsSansIOProtocol:
                with pytest.raises(InvalidState):
                    connection.shutdown()
                connection.transport.abort()
            else:
                connection.shutdown()
            with pytest.raises(ConnectionClosed):
                await client.recv()
        await asyncio.gather(*state.tasks)
