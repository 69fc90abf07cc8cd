"""The limit to measure against: a server written by hand for W1, W2 and W3 and nothing else.

Starlette on uvicorn, three statements on asyncpg (one for W2, eight for W3), plain dicts, orjson.
Its answers equal the server's byte for byte once both are read as JSON.
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
from db.reading import Record, prepare_connection
from services import calendars
from services.access import Viewer
from services.accounts import LOCAL_USER_NAME
from services.stories import labels_of_times

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
_BRANCH = """
SELECT b.name, s.title, s.definition FROM branches b JOIN stories s ON s.id = b.story_id
WHERE b.id = $1 AND s.owner_user_id = $2
"""
_ENTRIES = """
SELECT id, position, kind, content, chapter_id, metadata FROM story_entries
WHERE branch_id = $1 AND position > $3 ORDER BY position LIMIT $2
"""
_COUNT = "SELECT count(*) FROM story_entries WHERE branch_id = $1"
_CHAPTERS = "SELECT id, title FROM chapters WHERE branch_id = $1 AND id = ANY($2)"
_ENTITIES = "SELECT id, name, kind FROM entities WHERE branch_id = $1 AND id = ANY($2)"
_TRANSLATIONS = """
SELECT target_id, field, translated_text FROM translations
WHERE branch_id = $1 AND target_id = ANY($2) AND language = $3
"""
_ASSETS = """
SELECT l.entry_id, l.role, a.id, a.mime_type FROM entry_assets l JOIN assets a ON a.id = l.asset_id
WHERE l.branch_id = $1 AND l.entry_id = ANY($2) AND a.owner_user_id = $3
ORDER BY l.entry_id, l.position, l.id
"""
_FLIPS = "SELECT at_worldtime, era_name FROM branch_era_flips WHERE branch_id = $1"
# Which list and order the cursors are for, as `db.paging` signs it.
_LIST = "nodes_of_tree(created_at+,id+)"
ENTRY_LIST = "entries(position+)"


class HandWritten:
    """The handlers over one pool."""

    def __init__(self, pool: Any, viewer: str, cursors: CursorSigner) -> None:
        self._pool = pool
        self._viewer = viewer
        self._cursors = cursors

    async def answer(self, request: Request) -> Response:
        """Answer W1, W2 or W3, told apart by the operation's name."""
        asked = orjson.loads(await request.body())
        variables = asked["variables"]
        async with self._pool.acquire() as connection:
            match asked["operationName"]:
                case "TreeTitle":
                    data = {"mirrorTree": await self._title(connection, variables)}
                case "TreePage":
                    data = {"mirrorTree": await self._page(connection, variables)}
                case _:
                    data = {"branch": await self._branch(connection, variables)}
        return Response(orjson.dumps({"data": data}), media_type="application/json")

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

    async def _branch(self, connection: Any, variables: dict[str, Any]) -> dict[str, Any]:
        branch_id, first, after = variables["id"], variables["first"], variables.get("after")
        branch = await connection.fetchrow(_BRANCH, branch_id, self._viewer)
        behind = self._cursors.read(ENTRY_LIST, after)[0] if after else 0
        rows = await connection.fetch(_ENTRIES, branch_id, first + 1, behind)
        has_next_page = len(rows) > first
        rows = rows[:first]
        metas = [row["metadata"] for row in rows]
        ids = [row["id"] for row in rows]
        named = {each for meta in metas for each in (*meta["sceneEntities"], _place(meta)) if each}
        chapter_ids = list({row["chapter_id"] for row in rows} - {None})
        of_chapters = await connection.fetch(_CHAPTERS, branch_id, chapter_ids)
        chapters = {
            row["id"]: {"id": f"{branch_id}:{row['id']}", "title": row["title"]}
            for row in of_chapters
        }
        entities = {
            row["id"]: row for row in await connection.fetch(_ENTITIES, branch_id, list(named))
        }
        said = {
            (row["target_id"], row["field"]): row["translated_text"]
            for row in await connection.fetch(
                _TRANSLATIONS, branch_id, [*ids, *named], variables["language"]
            )
        }
        assets: dict[str, list[dict[str, Any]]] = {each: [] for each in ids}
        for row in await connection.fetch(_ASSETS, branch_id, ids, self._viewer):
            asset_id = row["id"]
            file = {"id": asset_id, "mimeType": row["mime_type"], "url": f"/assets/{asset_id}"}
            assets[row["entry_id"]].append({"role": row["role"], "asset": file})
        shown = {
            each: {
                "id": f"{branch_id}:{each}",
                "rowId": each,
                "name": row["name"],
                "translated": said.get((each, "name"), row["name"]),
            }
            for each, row in entities.items()
        }
        places = {
            each: {"id": f"{branch_id}:{each}", "name": row["name"]}
            for each, row in entities.items()
            if row["kind"] == "location"
        }
        definition = branch["definition"]
        calendar = calendars.find_built_in(Viewer(self._viewer), definition["calendarSystemId"])
        labels = labels_of_times(
            None if calendar is None else calendar.definition,
            definition["worldTimeOrigin"],
            [meta["worldTime"] for meta in metas],
            await connection.fetch(_FLIPS, branch_id, record_class=Record),
        )
        nodes = [
            {
                "id": f"{branch_id}:{row['id']}",
                "position": row["position"],
                "kind": row["kind"].upper(),
                "content": row["content"],
                "worldTime": meta["worldTime"],
                "worldTimeLabel": labels[meta["worldTime"]],
                "model": meta.get("model"),
                "translated": said.get((row["id"], "content"), row["content"]),
                "sceneEntities": [shown[each] for each in meta["sceneEntities"] if each in shown],
                "currentLocation": places.get(_place(meta)),
                "chapter": chapters.get(row["chapter_id"]),
                "assets": assets[row["id"]],
            }
            for row, meta in zip(rows, metas, strict=True)
        ]
        end = self._cursors.write(ENTRY_LIST, [rows[-1]["position"]]) if rows else None
        return {
            "name": branch["name"],
            "story": {"title": branch["title"]},
            "entries": {
                "nodes": nodes,
                "pageInfo": {"hasNextPage": has_next_page, "endCursor": end},
                "totalCount": await connection.fetchval(_COUNT, branch_id),
            },
        }


def _place(meta: dict[str, Any]) -> str | None:
    place: str | None = meta.get("currentLocationId")
    return place


async def _no_reset(connection: Any) -> None:
    return None


class _Announcing(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        print(f"The hand-written server is ready at http://{host}:{port}", flush=True)


async def serve(dsn: str) -> None:
    """Serve on a port of the system's choice until told to stop."""
    async with asyncpg.create_pool(
        dsn, min_size=1, max_size=8, init=prepare_connection, reset=_no_reset
    ) as pool:
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
