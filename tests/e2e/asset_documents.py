"""What front ends ask about files, and about entries that show them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tests.e2e.callers import Caller, Json

ASSET_UPLOAD = """
mutation AssetUpload($file: Upload!) {
  assetUpload(input: { file: $file }) {
    asset { id kind mimeType sizeBytes contentHash url createdAt pendingDeleteAt }
    errors { code message path }
  }
}
"""
IMAGE_UPLOAD = ASSET_UPLOAD.replace("{ file: $file }", "{ file: $file, kind: IMAGE }")

ASSET_CHANGES = """
mutation AssetDelete($input: AssetDeleteInput!) {
  assetDelete(input: $input) { deletedId errors { code message path } }
}
mutation EntryAssetAttach($input: EntryAssetAttachInput!) {
  entryAssetAttach(input: $input) {
    entryAsset { id rowId role position asset { id url } entry { id } }
    branch { id head }
    errors { code message path }
  }
}
mutation EntryAssetDetach($input: EntryAssetDetachInput!) {
  entryAssetDetach(input: $input) {
    deletedId branch { id head } errors { code message path }
  }
}
"""

ASSETS = """
query Assets($id: ID!) {
  asset(id: $id) { id pendingDeleteAt }
  assets { nodes { id kind mimeType sizeBytes } totalCount }
}
query AssetsAsOf($branch: ID!, $head: Int!) {
  branch(id: $branch) {
    entries(asOf: { logPosition: $head }) {
      nodes { id assets { role position asset { id mimeType url } } }
    }
  }
}
query AssetsOfEntry($entry: ID!) {
  node(id: $entry) {
    ... on StoryEntry { assets { role position asset { id mimeType url } } }
  }
}
"""

_NUMBERS = itertools.count()


def picture() -> bytes:
    """A PNG like no other."""
    return b"\x89PNG\r\n\x1a\n" + str(next(_NUMBERS)).encode()


async def new_asset(caller: Caller, content: bytes | None = None) -> Json:
    """A file that was just uploaded."""
    answer = await caller.upload(content or picture(), "x.bin", query=ASSET_UPLOAD)
    payload = answer.data["assetUpload"]
    assert payload["errors"] == []
    return dict(payload["asset"])


async def make_assets(caller: Caller, entry: str) -> dict[str, str]:
    """A file that nothing shows, and one that an entry shows; ids by kinds."""
    free, shown = await new_asset(caller), await new_asset(caller)
    given = {"input": {"entryId": entry, "assetId": shown["id"], "role": "reference"}}
    attached = (await caller.ask(ASSET_CHANGES, given, "EntryAssetAttach"))["entryAssetAttach"]
    assert attached["errors"] == []
    return {"Asset": free["id"], "EntryAsset": attached["entryAsset"]["id"]}


def asset_inputs(ids: Mapping[str, str]) -> dict[str, Json]:
    """An input for each of ASSET_CHANGES, aimed at rows whose ids are given by their kinds."""
    return {
        "AssetDelete": {"assetId": ids["Asset"]},
        "EntryAssetAttach": {
            "entryId": ids["StoryEntry"],
            "assetId": ids["Asset"],
            "role": "not mine",
        },
        "EntryAssetDetach": {"entryAssetId": ids["EntryAsset"]},
    }


# The first field of each input: where it says what it did not find.
ASSET_PATHS = {
    "assetDelete": "assetId",
    "entryAssetAttach": "entryId",
    "entryAssetDetach": "entryAssetId",
}
# How many rows more each makes, by table.
ASSET_MADE = {
    "assetDelete": {"assets": -1},
    "entryAssetAttach": {"entry_assets": 1, "deltas": 1, "branch_events": 1},
    "entryAssetDetach": {"entry_assets": -1, "deltas": 1, "branch_events": 1},
}


def asset_texts() -> dict[str, tuple[str, list[str]]]:
    """Each change with `$value` in the place of each of its texts, and the path of that."""
    places = {
        "assetDelete assetId": "assetId: $value",
        "entryAssetAttach entryId": 'entryId: $value, assetId: "asset_1", role: "x"',
        "entryAssetAttach assetId": 'entryId: "entry_1", assetId: $value, role: "x"',
        "entryAssetAttach role": 'entryId: "entry_1", assetId: "asset_1", role: $value',
        "entryAssetDetach entryAssetId": "entryAssetId: $value",
    }
    return {
        place: (f"{place.split()[0]}(input: {{ {given} }})", ["input", place.split()[1]])
        for place, given in places.items()
    }
