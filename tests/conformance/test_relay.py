"""Relay: its compiler takes our schema, and its manifest is served as trusted documents."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.e2e.callers import (
    CLIENTS,
    EMBRYO_ACTIVATE,
    EMBRYO_CREATE,
    PATIENCE,
    RUN_EVENTS,
    TREE_ASK,
    Answer,
    Caller,
    Json,
    node_program,
)
from tests.e2e.plain_streams import plain_events

# What the helpers of these tests send besides what the compiler made.
OWN = (EMBRYO_CREATE, EMBRYO_ACTIVATE, TREE_ASK, RUN_EVENTS)
CONFIG = {
    "src": ".",
    "schema": "schema.graphql",
    "language": "javascript",
    "artifactDirectory": "artifacts",
    "persistConfig": {"file": "persisted.json", "algorithm": "SHA256"},
}


@pytest.fixture(scope="module")
async def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled front end."""
    folder = tmp_path_factory.mktemp("relay")
    shutil.copy(CLIENTS / "relay" / "reader.js", folder)
    shutil.copy(ROOT / "schema" / "schema.graphql", folder)
    folder.joinpath("relay.config.json").write_text(json.dumps(CONFIG))
    folder.joinpath("persisted.json").write_text("{}")
    folder.joinpath("artifacts").mkdir()
    process = await asyncio.create_subprocess_exec(
        node_program(),
        CLIENTS / "node_modules" / "relay-compiler" / "cli.js",
        "relay.config.json",
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return folder


@pytest.fixture(scope="module")
def documents(project: Path) -> dict[str, str]:
    """The compiled documents, by their ids."""
    manifest: dict[str, str] = json.loads(project.joinpath("persisted.json").read_text())
    return manifest


@pytest.fixture(scope="module")
def environment(documents: dict[str, str], project: Path) -> dict[str, str]:
    manifest = project / "manifest.json"
    manifest.write_text(json.dumps({**documents, **{digest(text): text for text in OWN}}))
    return {
        "MIRRORGRAPH_TRUSTED_DOCUMENTS": str(manifest),
        "MIRRORGRAPH_TRUSTED_DOCUMENTS_ONLY": "true",
    }


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Front:
    """Sends what a front end with Relay sends."""

    def __init__(self, caller: Caller, documents: dict[str, str]) -> None:
        self._caller = caller
        self._ids = {
            match[1]: document_id
            for document_id, text in documents.items()
            if (match := re.match(r"(?:query|mutation|subscription) (\w+)", text))
        }

    async def post(
        self, name: str, accept: str = "application/json", **variables: object
    ) -> Answer:
        asked = {"documentId": self._ids[name], "variables": variables}
        return await self._caller.request("POST", headers={"Accept": accept}, json=asked)

    async def ask(self, name: str, **variables: object) -> Json:
        return (await self.post(name, **variables)).data


async def test_relay_s_compiler_takes_the_schema_and_its_documents_are_served_by_id(
    caller: Caller, documents: dict[str, str]
) -> None:
    assert documents == {digest(text): text for text in documents.values()}
    front = Front(caller, documents)
    character = await caller.create_character()
    tree = await caller.create_tree(character)

    asked = (await front.ask("readerAskMutation", tree=tree, text="Well? [demo: length=2]"))[
        "treeAsk"
    ]
    assert asked["errors"] == []
    run, question = asked["run"]["id"], asked["question"]["id"]
    streamed = await front.post("readerSubscription", accept="text/event-stream", run=run)
    events = [
        json.loads(data) for data in re.findall(r"^data: (.+)$", str(streamed.body), re.MULTILINE)
    ]
    finished = events[-1]["data"]["runEvents"]
    assert (finished["__typename"], finished["status"]) == ("RunFinished", "SUCCEEDED")
    # The server's own document needs no place in the manifest.
    plain = [event async for event in plain_events(caller, run)]
    assert plain[-1] == {**plain[-1], **{name: finished[name] for name in ("seq", "status")}}
    assert await front.ask("readerRunQuery", id=run) == {
        "node": {"__typename": "Run", "id": run, "status": "SUCCEEDED", "finishReason": "stop"}
    }

    whole = await front.ask("readerQuery", tree=tree)
    both = [edge["node"]["id"] for edge in whole["mirrorTree"]["nodes"]["edges"]]
    assert both == [question, finished["node"]["id"]]
    assert len(whole["characters"]["edges"]) == 2

    # As usePaginationFragment goes on: by node, from the last cursor.
    page: Json = {"endCursor": None, "hasNextPage": True}
    walked = []
    while page["hasNextPage"]:
        more = await front.ask("readerNodesQuery", id=tree, count=1, cursor=page["endCursor"])
        assert more["node"]["__typename"] == "MirrorTree"
        walked += [edge["node"]["id"] for edge in more["node"]["nodes"]["edges"]]
        page = more["node"]["nodes"]["pageInfo"]
    assert walked == both

    # And backwards, from the root.
    start: Json = {"startCursor": None, "hasPreviousPage": True}
    characters: list[str] = []
    while start["hasPreviousPage"]:
        more = await front.ask("readerCharactersQuery", count=1, cursor=start["startCursor"])
        characters += [edge["node"]["id"] for edge in more["characters"]["edges"]]
        start = more["characters"]["pageInfo"]
    assert len(characters) == len(set(characters)) == 2
    assert character in characters


async def test_a_document_outside_of_relay_s_manifest_is_refused(caller: Caller) -> None:
    refused = await caller.post("{ viewer { roles } }")
    unknown = await caller.request("POST", json={"documentId": digest("{ viewer { roles } }")})
    assert [(each.status, each.codes) for each in (refused, unknown)] == [
        (403, ["DOCUMENT_NOT_TRUSTED"]),
        (404, ["DOCUMENT_NOT_FOUND"]),
    ]
