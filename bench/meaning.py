"""W5: a hybrid search of a branch over GraphQL, against the bare statement of pgvector that finds
the nearest rows of as many.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import orjson
from aiohttp import ClientSession, web

from bench import prose, vectors
from bench.figures import ratios
from bench.servers import MIRRORGRAPH, Served, serving
from bench.stage import WARM_UP, Json, Say, Stage, milliseconds, seconds, staged
from bench.vectors import NEAREST, Cloud, Vectors
from db.enums import ProviderType
from services import app_settings

CLOUD = Cloud(100_000, 384, is_clustered=True)
SHARES = (0.01, 0.1, 1.0)
_ASKED = 40
_MODEL = "generated"

SEARCH = """
query Search($branch: ID!, $text: String!, $mode: SearchMode!) {
  branch(id: $branch) {
    search(
      text: $text, kinds: [ENTITY, LORE, HAPPENING, THREAD, CHAPTER, ENTRY], mode: $mode, first: 10
    ) {
      mode
      hits { score parts { name value } node { __typename id } label snippet }
    }
  }
}
"""


@dataclass(frozen=True, slots=True)
class Searched:
    """What is searched for, and in which branch; each text ends in its number."""

    branch_id: str
    texts: list[str]

    def body(self, number: int, mode: str = "HYBRID") -> bytes:
        """The request for one of the texts."""
        variables = {"branch": self.branch_id, "text": self.texts[number], "mode": mode}
        return orjson.dumps({"query": SEARCH, "variables": variables})


async def measure(
    dsn: str,
    rounds: int,
    say: Say,
    cloud: Cloud = CLOUD,
    shares: Sequence[float] = SHARES,
    asked: int = _ASKED,
) -> Json:
    """W5, on a migrated database: by the share of all vectors that the branch has. Raises
    RuntimeError where not all of the nearest are found.
    """
    kept, queries = cloud.drawn(asked)
    async with embedding_provider(queries) as url:
        counts = {share: max(NEAREST, round(cloud.rows * share)) for share in shares}
        async with staged(dsn) as stage:
            say("W5: rows")
            provider_id = await make_provider(stage, url)
            parts = [slice(count) for count in counts.values()]
            branches = await fill(stage, provider_id, kept, parts)
            await vectors.put_bare(stage.bare, kept)
            await stage.bare.execute("VACUUM (ANALYZE) bare, vectors, embeddings, lore")
        bare: Any = await asyncpg.connect(dsn)
        try:
            async with serving(MIRRORGRAPH, dsn) as server:
                found: Json = {}
                for share, branch_id in zip(shares, branches, strict=True):
                    searched = Searched(branch_id, questions(asked))
                    say(f"W5, {share:.1%}")
                    count = counts[share]
                    part = await _part(server, bare, searched, kept[:count], queries, rounds)
                    found[f"{share:.1%}"] = {"rows": count, **part}
        finally:
            await bare.close()
    return {"vectors": cloud.name, "asked": asked, "shares": found}


async def _part(
    server: Served,
    bare: Any,
    searched: Searched,
    kept: Vectors,
    queries: Vectors,
    rounds: int,
) -> Json:
    wanted = vectors.exact(kept, queries)
    async with ClientSession() as session:

        async def ask(number: int, mode: str = "HYBRID") -> Json:
            async with session.post(
                server.url, data=searched.body(number, mode), headers=_JSON
            ) as r:
                answer: Json = orjson.loads(await r.read())
            result: Json = answer["data"]["branch"]["search"]
            if "errors" in answer or result["mode"] != mode:
                raise RuntimeError(f"a search of W5 was answered with {answer}")
            return result

        recalls = []
        for number, right in enumerate(wanted):
            hits = (await ask(number, "VECTOR"))["hits"]
            places = {int(each["node"]["id"].rpartition("_")[2]) for each in hits}
            recalls.append(len(right & places) / len(right))
        for number in range(WARM_UP):
            await ask(number % len(queries))
            await vectors.by_hand(bare, len(kept), queries[number % len(queries)])
        times: dict[str, list[float]] = {"request": [], "by_meaning": [], "statement": []}
        medians: dict[str, list[float]] = {name: [] for name in times}
        for _ in range(rounds):
            for number in range(len(queries)):
                times["request"].append(await seconds(ask(number)))
                times["by_meaning"].append(await seconds(ask(number, "VECTOR")))
                statement = vectors.by_hand(bare, len(kept), queries[number])
                times["statement"].append(await seconds(statement))
            for name, each in times.items():
                medians[name].append(sorted(each[-len(queries) :])[len(queries) // 2])
    return {
        "recall": round(sum(recalls) / len(recalls), 4),
        **ratios("vs_statement", medians["request"], medians["statement"]),
        **ratios("by_meaning_vs_statement", medians["by_meaning"], medians["statement"]),
        "milliseconds": {name: milliseconds(each) for name, each in times.items()},
    }


_JSON = {"content-type": "application/json"}


@contextlib.asynccontextmanager
async def embedding_provider(queries: Vectors) -> AsyncIterator[str]:
    """The address of a provider that embeds a text by the number with which it ends."""

    async def embed(request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        data = [
            {"index": place, "embedding": queries[int(text.rpartition(" ")[2])].tolist()}
            for place, text in enumerate(texts)
        ]
        return web.Response(body=orjson.dumps({"data": data}), content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/embeddings", embed)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/v1"
    finally:
        await runner.cleanup()


async def make_provider(stage: Stage, url: str) -> str:
    """A provider of the local user's at this address; its id."""
    async with stage.database.writing() as writing:
        _, provider_id = await app_settings.create_provider(
            writing,
            stage.viewer,
            type=ProviderType.OPENAI_COMPATIBLE,
            display_name="Generated",
            api_key="sk-generated",
            endpoint=url,
            favorite_model_ids=[],
            custom_model_ids=[],
            expected_version=None,
        )
    return provider_id


async def fill(
    stage: Stage, provider_id: str, kept: Vectors, parts: Sequence[slice], seed: int = 0
) -> list[str]:
    """Branches that have these parts of the vectors, embedded by a provider; their ids."""
    draw = random.Random(seed)
    texts = [f"{prose.sentence(draw)} {seed} {number}" for number in range(len(kept))]
    hashes = [vectors.hash_of(each) for each in texts]
    model_id = f"{provider_id}:{_MODEL}"
    await vectors.put_vectors(stage.bare, hashes, kept, model_id)
    settings = {
        "embeddingBackend": "provider",
        "embedding_provider_id": provider_id,
        "embedding_model_id": _MODEL,
    }
    return [await vectors.put_branch(stage, texts[part], model_id, settings) for part in parts]


def questions(asked: int) -> list[str]:
    """What is searched for."""
    draw = random.Random(1)
    return [f"{prose.sentence(draw)} {number}" for number in range(asked)]
