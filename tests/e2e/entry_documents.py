"""What front ends ask about entries, chapters and eras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.e2e.callers import Caller, Json
from tests.e2e.story_documents import STORY, STORY_CHANGES

# Each takes one input.
TEXT_CHANGES = """
fragment EntryParts on StoryEntry {
  id rowId position kind content worldTime worldTimeLabel model summary
  sceneEntities { id name } currentLocation { id name } chapter { id }
}
fragment ChapterParts on Chapter {
  id rowId sequenceNumber title summary theme keywords
  startEntry { position } endEntry { position } entries { nodes { position } totalCount }
}
fragment EraParts on EraFlip { id rowId atWorldTime atWorldTimeLabel eraName }
mutation EntryAppend($input: EntryAppendInput!) {
  entryAppend(input: $input) {
    entry { ...EntryParts } branch { id head } errors { code message path }
  }
}
mutation EntryEdit($input: EntryEditInput!) {
  entryEdit(input: $input) {
    entry { ...EntryParts } branch { id head } errors { code message path }
  }
}
mutation EntryMetaUpdate($input: EntryMetaUpdateInput!) {
  entryMetaUpdate(input: $input) {
    entry { ...EntryParts } branch { id head } errors { code message path }
  }
}
mutation EntryDelete($input: EntryDeleteInput!) {
  entryDelete(input: $input) {
    deletedId branch { id head } errors { code message path }
  }
}
mutation ChapterCreate($input: ChapterCreateInput!) {
  chapterCreate(input: $input) {
    chapter { ...ChapterParts } branch { id head } errors { code message path }
  }
}
mutation ChapterUpdate($input: ChapterUpdateInput!) {
  chapterUpdate(input: $input) {
    chapter { ...ChapterParts } branch { id head } errors { code message path }
  }
}
mutation ChapterDelete($input: ChapterDeleteInput!) {
  chapterDelete(input: $input) {
    deletedId branch { id head } errors { code message path }
  }
}
mutation EraFlip($input: EraFlipCreateInput!) {
  eraFlip(input: $input) {
    eraFlip { ...EraParts } branch { id head } errors { code message path }
  }
}
mutation EraFlipUpdate($input: EraFlipUpdateInput!) {
  eraFlipUpdate(input: $input) {
    eraFlip { ...EraParts } branch { id head } errors { code message path }
  }
}
mutation EraFlipDelete($input: EraFlipDeleteInput!) {
  eraFlipDelete(input: $input) {
    deletedId branch { id head } errors { code message path }
  }
}
"""

TEXT = """
query Text($branch: ID!, $filter: EntryFilter, $asOf: AsOfInput) {
  branch(id: $branch) {
    head
    entries(first: 100, filter: $filter, asOf: $asOf) {
      nodes {
        id position kind content worldTime worldTimeLabel isTimeBackwards model reasoning summary
        metadata createdAt
        sceneEntities { rowId name } currentLocation { rowId name } chapter { title }
        branch { id }
      }
      totalCount
    }
    chapters(asOf: $asOf) {
      nodes { title startEntry { position } entries { nodes { position chapter { title } } } }
      totalCount
    }
    eraFlips(asOf: $asOf) { nodes { eraName atWorldTime atWorldTimeLabel } totalCount }
    openRegion { entryCount tokenCount tokenThreshold isReadyToClose }
  }
}
"""


async def begin_story(caller: Caller, **changes: Any) -> str:
    """A story; the id of its branch."""
    made = await caller.ask(STORY_CHANGES, {"input": {**STORY, **changes}}, "StoryCreate")
    assert made["storyCreate"]["errors"] == []
    return str(made["storyCreate"]["story"]["currentBranch"]["id"])


async def append(caller: Caller, branch: str, content: str, **given: Any) -> Json:
    """A reply behind the last entry."""
    asked = {"branchId": branch, "kind": "AI_REPLY", "content": content, **given}
    return await made(caller, "EntryAppend", "entry", **asked)


async def made(caller: Caller, operation: str, row: str, **given: Any) -> Json:
    """The row that a change makes."""
    (payload,) = (await caller.ask(TEXT_CHANGES, {"input": given}, operation)).values()
    assert payload["errors"] == []
    return dict(payload[row])


async def make_text(caller: Caller, branch: str) -> dict[str, str]:
    """A chapter, an entry behind it, and an era; ids by kinds."""
    told = (await append(caller, branch, "Told."))["id"]
    chapter = await made(
        caller, "ChapterCreate", "chapter", branchId=branch, endEntryId=told, title="One"
    )
    entry = await append(caller, branch, "It goes on.")
    flip = await made(
        caller, "EraFlip", "eraFlip", branchId=branch, atWorldTime=1, eraName="An era"
    )
    return {"StoryEntry": entry["id"], "Chapter": chapter["id"], "EraFlip": flip["id"]}


def text_inputs(ids: Mapping[str, str]) -> dict[str, Json]:
    """An input for each of TEXT_CHANGES, aimed at rows whose ids are given by their kinds."""
    branch, entry = {"branchId": ids["Branch"]}, {"entryId": ids["StoryEntry"]}
    chapter, flip = {"chapterId": ids["Chapter"]}, {"eraFlipId": ids["EraFlip"]}
    return {
        "EntryAppend": {**branch, "kind": "AI_REPLY", "content": "Not mine."},
        "EntryEdit": {**entry, "content": "Not mine."},
        "EntryMetaUpdate": {**entry, "worldTime": 5},
        "EntryDelete": entry,
        "ChapterCreate": {**branch, "endEntryId": ids["StoryEntry"], "title": "Not mine"},
        "ChapterUpdate": {**chapter, "title": "Not mine"},
        "ChapterDelete": chapter,
        "EraFlip": {**entry, "eraName": "Not mine"},
        "EraFlipUpdate": {**flip, "eraName": "Not mine"},
        "EraFlipDelete": flip,
    }


# The field of each input that says what it did not find.
TEXT_PATHS = {
    "entryAppend": "branchId",
    "entryEdit": "entryId",
    "entryMetaUpdate": "entryId",
    "entryDelete": "entryId",
    "chapterCreate": "branchId",
    "chapterUpdate": "chapterId",
    "chapterDelete": "chapterId",
    "eraFlip": "entryId",
    "eraFlipUpdate": "eraFlipId",
    "eraFlipDelete": "eraFlipId",
}
# How many rows more each change makes, by table.
TEXT_MADE: dict[str, dict[str, int]] = {
    "entryAppend": {"story_entries": 1, "deltas": 1, "branch_events": 1},
    "entryEdit": {"deltas": 1, "branch_events": 1},
    "entryMetaUpdate": {"deltas": 1, "branch_events": 1},
    "entryDelete": {"story_entries": -1, "deltas": 1, "branch_events": 1},
    "chapterCreate": {"chapters": 1, "deltas": 2, "branch_events": 1},
    "chapterUpdate": {"deltas": 1, "branch_events": 1},
    "chapterDelete": {"chapters": -1, "deltas": 3, "branch_events": 1},
    "eraFlip": {"branch_era_flips": 1, "deltas": 1, "branch_events": 1},
    "eraFlipUpdate": {"deltas": 1, "branch_events": 1},
    "eraFlipDelete": {"branch_era_flips": -1, "deltas": 1, "branch_events": 1},
}

_SCENE = ["sceneEntityIds.1", "currentLocationId", "summary"]
_SAID = ["title", "summary", "theme", "keywords.1"]
_TEXTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "entryAppend": (
        {"branchId": '"br_1"', "kind": "AI_REPLY", "content": '"x"'},
        [*_SCENE, "model"],
    ),
    "entryEdit": ({"entryId": '"entry_1"', "content": '"x"'}, []),
    "entryMetaUpdate": ({"entryId": '"entry_1"'}, _SCENE),
    "entryDelete": ({"entryId": '"entry_1"'}, []),
    "chapterCreate": (
        {"branchId": '"br_1"', "endEntryId": '"entry_1"', "title": '"x"'},
        _SAID,
    ),
    "chapterUpdate": ({"chapterId": '"chap_1"'}, _SAID),
    "chapterDelete": ({"chapterId": '"chap_1"'}, []),
    "eraFlip": ({"eraName": '"x"'}, ["entryId", "branchId"]),
    "eraFlipUpdate": ({"eraFlipId": '"era_1"'}, ["eraName"]),
    "eraFlipDelete": ({"eraFlipId": '"era_1"'}, []),
}


def text_texts() -> dict[str, tuple[str, list[str]]]:
    """Each change with `$value` in the place of each of its texts, and the path of that."""
    found = {}
    for mutation, (required, optional) in _TEXTS.items():
        for place in dict.fromkeys([*required, *optional]):
            name, _, number = place.partition(".")
            given = {name: f"{name}: {value}" for name, value in required.items()}
            given[name] = f'{name}: ["x", $value]' if number else f"{name}: $value"
            if name != "kind":
                written = f"{mutation}(input: {{ {', '.join(given.values())} }})"
                found[f"{mutation} {place}"] = (written, ["input", *place.split(".")])
    return found
