"""How stories are embedded, as front ends see it; with the server's own model."""

from __future__ import annotations

from typing import Any

import pytest

from services.embedding.local import is_installed
from tests.e2e.callers import Caller, Json
from tests.e2e.embedding_documents import (
    EMBEDDER,
    EMBEDDING_CHANGES,
    LOCAL,
    SIMILAR,
    embed_elsewhere,
)
from tests.e2e.ways_back_documents import tell_story

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="needs the local model, of Linux on x86-64"
)
LORE = [
    {"title": "Lighthouse", "body": "A tower whose lamp guides ships past the rocks."},
    {"title": "灯台", "body": "船を導く光の塔。"},
    {"title": "Bread", "body": "Baked at dawn, sold at the market."},
]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_EMBEDDER": "local"}


async def change(caller: Caller, operation: str, **given: Any) -> Json:
    (payload,) = (await caller.ask(EMBEDDING_CHANGES, {"input": given}, operation)).values()
    return dict(payload)


async def test_rows_are_alike_by_what_they_mean_and_a_model_takes_over(caller: Caller) -> None:
    """Rules Y7, Y8, Y11."""
    lore = [{"key": f"lore{number}", **each} for number, each in enumerate(LORE)]
    told = await tell_story(caller, lore=lore)
    listed = "query ($id: ID!) { branch(id: $id) { lore { nodes { id title } } } }"
    nodes = (await caller.ask(listed, {"id": told.branch}))["branch"]["lore"]["nodes"]
    ids = {each["title"]: each["id"] for each in nodes}

    async def similar(first: int) -> list[str]:
        given = {"id": ids["Lighthouse"], "first": first}
        found = (await caller.ask(SIMILAR, given))["node"]["similar"]
        scores = [each["score"] for each in found]
        assert scores == sorted(scores, reverse=True)
        return [each["node"]["id"] for each in found]

    story = (await caller.ask(EMBEDDER, {"id": told.story}))["story"]
    rows = story["embedder"]["rowCount"]
    assert story["embedder"] == {
        "backend": "LOCAL",
        "modelId": LOCAL,
        "providerId": None,
        "dim": 384,
        "failure": None,
        "rowCount": rows,
        "staleCount": rows,
        "swap": None,
    }
    assert story["currentBranch"]["searchModes"] == ["KEYWORD", "VECTOR", "HYBRID"]
    assert await similar(1) == [ids["灯台"]]
    assert (await similar(0), len(await similar(99))) == ([], rows - 1)
    embedder = (await caller.ask(EMBEDDER, {"id": told.story}))["story"]["embedder"]
    assert embedder["staleCount"] == 0
    await embed_elsewhere(caller, told.story)
    story = (await caller.ask(EMBEDDER, {"id": told.story}))["story"]
    assert story["embedder"]["failure"] == "PROVIDER_MISSING"
    assert story["currentBranch"]["searchModes"] == ["KEYWORD"]
    assert await similar(9) == []
    given = {"storyId": told.story, "backend": "LOCAL", "modelId": LOCAL}
    started = await change(caller, "EmbeddingSwapStart", **given)
    # It has them all: they were embedded by it before.
    swap = {"backend": "LOCAL", "modelId": LOCAL, "providerId": None}
    assert started["story"]["embedder"]["swap"] == {**swap, "staged": rows, "total": rows}
    again = await change(caller, "EmbeddingSwapStart", **given)
    assert [(each["code"], each["path"]) for each in again["errors"]] == [
        ("SWAP_RUNNING", ["input", "storyId"])
    ]
    done = await change(caller, "EmbeddingSwapResume", storyId=told.story)
    assert done["errors"] == []
    assert (done["story"]["embedder"]["swap"], done["story"]["embedder"]["failure"]) == (None, None)
    refused = await change(caller, "EmbeddingSwapCancel", storyId=told.story)
    assert [(each["code"], each["path"]) for each in refused["errors"]] == [
        ("NO_SWAP", ["input", "storyId"])
    ]
    relabel = {"storyId": told.story, "modelId": "x", "providerId": "prov_1"}
    refused = await change(caller, "EmbeddingRelabel", **relabel)
    assert [(each["code"], each["path"]) for each in refused["errors"]] == [
        ("EMBEDDER_MISSING", ["input", "modelId"])
    ]
