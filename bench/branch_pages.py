"""W3: a page of a branch: 50 entries with their scenes, names in another language, places, chapters
and files; against a handler written by hand.
"""

from __future__ import annotations

import contextlib

import orjson

from bench.hand_written import ENTRY_LIST
from bench.servers import CONTENDERS, Served, serving
from bench.shapes import Shape, shape_of
from bench.stage import Json, Say, Stage, Story, staged
from bench.turns import in_rounds
from bench.workloads import W3
from db.enums import AssetKind

SHAPE = shape_of(1_000)
_SECONDS = 4.0
_PAGES_ASKED = 20
# Every so many entries one shows two files.
_SHOWING = 3

_NAMES = """
INSERT INTO translations
(branch_id, id, target_kind, target_id, field, language, translated_text)
SELECT branch_id, 'tr_' || md5(id), 'entity', id, 'name', $2, 'le/la ' || name
FROM entities WHERE branch_id = $1
"""
_FILES = """
INSERT INTO assets (id, owner_user_id, kind, mime_type, file_path, size_bytes, content_hash)
SELECT 'asset_' || md5($2 || n), $1, $3, 'image/png', 'asset_' || md5($2 || n), 1, md5($2 || n)
FROM generate_series(1, 40) AS n
"""
_SHOWN = """
INSERT INTO entry_assets (branch_id, id, entry_id, asset_id, role, position)
SELECT branch_id, 'easset_' || md5(id || place), id,
'asset_' || md5($1 || (1 + (position + place) % 40)), 'background', place
FROM story_entries, generate_series(0, 1) AS place
WHERE branch_id = $1 AND position % $2 = 0
"""


async def measure(
    dsn: str, rounds: int, say: Say, shape: Shape = SHAPE, seconds: float = _SECONDS
) -> Json:
    """W3, on a migrated database. Raises RuntimeError where answers differ."""
    async with staged(dsn) as stage:
        story = await stage.tell(shape)
        await embellish(stage, story.branch_id)
        asked = await bodies(stage, story)
    async with contextlib.AsyncExitStack() as running:
        servers = [
            await running.enter_async_context(serving(contender, dsn)) for contender in CONTENDERS
        ]
        size = await check_equal(servers, asked)
        measured = await in_rounds(servers, W3.name, asked, rounds, seconds, say)
        return {"rows": story.rows, "response_bytes": size, **measured.summary()}


async def embellish(stage: Stage, branch_id: str) -> None:
    """Give all entities of a branch names in the language that W3 asks for, and entries files."""
    bare = stage.bare
    await bare.execute(_NAMES, branch_id, W3.variables["language"])
    await bare.execute(_FILES, stage.viewer.user_id, branch_id, AssetKind.IMAGE)
    await bare.execute(_SHOWN, branch_id, _SHOWING)
    await bare.execute("VACUUM (ANALYZE) translations, assets, entry_assets")


async def bodies(stage: Stage, story: Story) -> list[bytes]:
    """Requests for pages that begin all over a branch."""
    step = max(1, len(story.entries) // _PAGES_ASKED)
    async with stage.database.reading() as reading:
        cursors = [
            reading.cursors.write(ENTRY_LIST, [position])
            for position in range(0, len(story.entries), step)
        ]
    return [W3.body(story.branch_id, after=each) for each in cursors]


async def check_equal(servers: list[Served], asked: list[bytes]) -> int:
    """Raise RuntimeError unless both answer the same; how long the first answer is."""
    sizes = []
    for body in asked:
        expected, answer = [await each.answer(body) for each in servers]
        if answer != expected or "errors" in str(expected)[:20]:
            raise RuntimeError(
                f"the servers answer W3 differently: {orjson.dumps(expected)[:500]!r} and "
                f"{orjson.dumps(answer)[:500]!r}"
            )
        sizes.append(len(orjson.dumps(expected)))
    return sizes[0]
