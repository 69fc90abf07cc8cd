"""The limit to measure against: a server written by hand for W1 and W2 and nothing else.

Starlette on uvicorn, three statements on asyncpg (one for W2), plain dicts, orjson. Its answers
equal the server's byte for byte once both are read as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from typing import Any

import asyncpg
import orjson
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from db.cursors import CursorSigner
from services.accounts import LOCAL_USER_NAME

_VIEWER = "SELECT user_id FROM credentials WHERE kind = 'name' AND identifier = $1"
_CURSOR_KEY = "SELECT value_json #>> '{}' FROM settings WHERE key = 'cursor_key'"
_TREE = """
SELECT t.topic, t.status FROM mirror_trees t JOIN characters c ON c.id = t.character_id
WHERE t.id = $1 AND c.custodian_user_id = $2
"""
_NODES = """
SELECT id, node_type, status, content, realm, model, created_at, parent_node_id
FROM tree_nodes WHERE tree_id = $1 ORDER BY created_at, id LIMIT $2
"""
_NODES_AFTER = """
SELECT id, node_type, status, content, realm, model, created_at, parent_node_id
FROM tree_nodes WHERE tree_id = $1 AND (created_at, id) > ($3, $4)
ORDER BY created_at, id LIMIT $2
"""
_CITATIONS = """
SELECT node_id, id, target_kind, quote FROM citations
WHERE node_id = ANY($1) ORDER BY created_at, id
"""
# Which list and order the cursors are for, as `db.paging` signs it.
_LIST = "nodes_of_tree(created_at+,id+)"


class HandWritten:
    """Both handlers over one pool."""

    def __init__(self, pool: Any, viewer: str, cursors: CursorSigner) -> None:
        self._pool = pool
        self._viewer = viewer
        self._cursors = cursors

    async def answer(self, request: Request) -> Response:
        """Answer W1 or W2, told apart by the operation's name."""
        asked = orjson.loads(await request.body())
        variables = asked["variables"]
        async with self._pool.acquire() as connection:
            if asked["operationName"] == "TreeTitle":
                tree = await self._title(connection, variables)
            else:
                tree = await self._page(connection, variables)
        body = orjson.dumps({"data": {"mirrorTree": tree}})
        return Response(body, media_type="application/json")

    async def _title(self, connection: Any, variables: dict[str, Any]) -> dict[str, Any]:
        row = await connection.fetchrow(_TREE, variables["id"], self._viewer)
        return {"topic": row["topic"], "status": row["status"].upper()}

    async def _page(self, connection: Any, variables: dict[str, Any]) -> dict[str, Any]:
        tree_id, first, after = variables["id"], variables["first"], variables.get("after")
        tree = await self._title(connection, variables)
        if after is None:
            rows = await connection.fetch(_NODES, tree_id, first + 1)
        else:
            bounds = self._cursors.read(_LIST, after)
            rows = await connection.fetch(_NODES_AFTER, tree_id, first + 1, *bounds)
        has_next_page = len(rows) > first
        rows = rows[:first]
        citations: dict[str, list[dict[str, Any]]] = {row["id"]: [] for row in rows}
        for row in await connection.fetch(_CITATIONS, list(citations)):
            citations[row["node_id"]].append(
                {
                    "id": row["id"],
                    "targetKind": row["target_kind"].upper(),
                    "quote": row["quote"],
                }
            )
        nodes = []
        for row in rows:
            parent = row["parent_node_id"]
            nodes.append(
                {
                    "id": row["id"],
                    "nodeType": row["node_type"].upper(),
                    "status": row["status"].upper(),
                    "content": row["content"],
                    "realm": row["realm"].upper(),
                    "model": row["model"],
                    "createdAt": row["created_at"],
                    "parent": {"id": parent} if parent else None,
                    "citations": citations[row["id"]],
                }
            )
        end_cursor = None
        if rows:
            end_cursor = self._cursors.write(_LIST, [rows[-1]["created_at"], rows[-1]["id"]])
        tree["nodes"] = {
            "nodes": nodes,
            "pageInfo": {"hasNextPage": has_next_page, "endCursor": end_cursor},
        }
        return tree


async def _no_reset(connection: Any) -> None:
    return None


class _Announcing(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        print(f"The hand-written server is ready at http://{host}:{port}", flush=True)


async def serve(dsn: str) -> None:
    """Serve on a port of the system's choice until told to stop."""
    async with asyncpg.create_pool(dsn, min_size=1, max_size=8, reset=_no_reset) as pool:
        viewer = await pool.fetchval(_VIEWER, LOCAL_USER_NAME)
        key = await pool.fetchval(_CURSOR_KEY)
        handler = HandWritten(pool, viewer, CursorSigner(bytes.fromhex(key)))
        app = Starlette(routes=[Route("/graphql", handler.answer, methods=["POST"])])
        config = uvicorn.Config(
            app, port=0, http="httptools", lifespan="off", access_log=False, log_level="warning"
        )
        await _Announcing(config).serve()


def main() -> None:
    """`python -m bench.hand_written DSN`."""
    parser = argparse.ArgumentParser(prog="bench.hand_written")
    parser.add_argument("dsn")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(parser.parse_args().dsn))


if __name__ == "__main__":
    main()
