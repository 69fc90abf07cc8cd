"""Searches as front ends see them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance import document
from tests.e2e.callers import Caller
from tests.e2e.ways_back_documents import tell_story

SEARCH = document("51-search.graphql")
CAST = [
    {"key": "mira", "kind": "CHARACTER", "name": "Mira"},
    {"key": "quay", "kind": "LOCATION", "name": "灯台"},
]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_EMBEDDER": "local"}


async def test_the_acceptance_document_finds_rows_and_entries(caller: Caller) -> None:
    """Rules B70, B76, B78."""
    text = "Fog rose. 昨夜、灯台に灯がともる。 Mira slept."
    told = await tell_story(caller, text, cast=CAST, lore=[])
    answer = await caller.ask(SEARCH, {"branch": told.branch, "text": "灯台"})
    found = answer["branch"]["search"]
    assert found["mode"] in ("HYBRID", "KEYWORD")
    place = found["hits"][0]
    assert (place["label"], place["node"]["__typename"]) == ("灯台", "StoryLocation")
    (entry,) = [each for each in found["hits"] if each["node"]["__typename"] == "StoryEntry"]
    assert (entry["label"], entry["snippet"]) == ("", "昨夜、灯台に灯がともる。")
    assert entry["node"]["id"] == told.entries[-1]
    assert [each["name"] for each in place["parts"]][:2] == ["words", "name"]
    assert found["excluded"] == []
    query = "query ($id: ID!) { branch(id: $id) { entities(first: 9) { nodes { id name } } } }"
    cast = (await caller.ask(query, {"id": told.branch}))["branch"]["entities"]["nodes"]
    (mira,) = [each["id"] for each in cast if each["name"] == "Mira"]
    answer = await caller.ask(SEARCH, {"branch": told.branch, "text": "灯台", "perspective": mira})
    labels = [each["label"] for each in answer["branch"]["search"]["hits"]]
    assert "灯台" not in labels


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ('text: ""', "TEXT_EMPTY", ["text"]),
        (r'text: "\u0000"', "INVALID_TEXT", ["text"]),
        ('text: "x", first: 101', "OUT_OF_RANGE", ["first"]),
        ('text: "x", perspective: "char_nobody"', "NOT_FOUND", ["perspective"]),
        (r'text: "x", filter: { tags: ["\u0000"] }', "INVALID_TEXT", ["filter", "tags", "0"]),
        ('text: "x", asOf: { logPosition: 999 }', "OUT_OF_RANGE", ["asOf", "logPosition"]),
    ],
)
async def test_what_cannot_be_searched_is_said(
    caller: Caller, arguments: str, code: str, path: Any
) -> None:
    """Rule B79."""
    told = await tell_story(caller, cast=CAST, lore=[])
    text = f"query ($id: ID!) {{ branch(id: $id) {{ search({arguments}) {{ mode }} }} }}"
    answer = await caller.post(text, {"id": told.branch})
    (error,) = answer.body["errors"]
    assert error["extensions"]["code"] == code
    assert error["extensions"].get("path", path) == path


async def test_a_moment_is_searched_as_it_was(caller: Caller) -> None:
    """Rule B77."""
    told = await tell_story(caller, "Fog.", cast=CAST, lore=[])
    text = """
    query ($id: ID!, $asOf: AsOfInput) {
      branch(id: $id) {
        search(text: "fog", asOf: $asOf, kinds: [ENTRY]) {
          mode hits { node { id } } resolvedAt { logPosition }
        }
      }
    }
    """
    now = (await caller.ask(text, {"id": told.branch}))["branch"]["search"]
    hits = [{"node": {"id": told.entries[-1]}}]
    assert now == {"mode": "KEYWORD", "hits": hits, "resolvedAt": None}
    then = {"id": told.branch, "asOf": {"logPosition": 0}}
    found = (await caller.ask(text, then))["branch"]["search"]
    assert found == {"mode": "KEYWORD", "hits": [], "resolvedAt": {"logPosition": 0}}
