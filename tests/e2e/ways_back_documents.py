"""What front ends ask to go back and to fork."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e.callers import Caller
from tests.e2e.story_documents import STORY, STORY_CHANGES

WAYS_BACK = """
fragment Head on Branch { id head canUndo canRedo }
fragment Taken on ReversedAction { actionId source changes { table op rowId } }
mutation BranchUndo($branch: ID!, $head: Int) {
  branchUndo(input: { branchId: $branch, expectedHead: $head }) {
    branch { ...Head } reversed { ...Taken } errors { code message path }
  }
}
mutation BranchRedo($branch: ID!, $head: Int) {
  branchRedo(input: { branchId: $branch, expectedHead: $head }) {
    branch { ...Head } errors { code message path }
  }
}
mutation BranchRollback($branch: ID!, $entry: ID!, $dryRun: Boolean, $head: Int) {
  branchRollback(
    input: { branchId: $branch, keepEntryId: $entry, dryRun: $dryRun, expectedHead: $head }
  ) {
    branch { ...Head } reversed { ...Taken } warnings { code message }
    errors { code message path }
  }
}
mutation BranchFork($branch: ID!, $entry: ID!, $name: String!) {
  branchFork(input: { branchId: $branch, atEntryId: $entry, name: $name }) {
    branch { ...Head name parent { id } forkEntry { rowId } }
    copied { table rows } errors { code message path }
  }
}
"""

WAY_OPERATIONS = ("BranchUndo", "BranchRedo", "BranchRollback", "BranchFork")

TELLING = """
mutation EntryAppend($branch: ID!, $content: String!, $head: Int) {
  entryAppend(
    input: { branchId: $branch, kind: AI_REPLY, content: $content, expectedHead: $head }
  ) {
    entry { id rowId position } branch { head } errors { code message path }
  }
}
query Told($branch: ID!) {
  branch(id: $branch) {
    head canUndo canRedo
    entries(first: 100) { nodes { id rowId position content } }
  }
}
"""


@dataclass(frozen=True)
class Told:
    """A story with its opening and further entries; ids of all of them, in order."""

    story: str
    branch: str
    entries: list[str]


async def tell_story(caller: Caller, *contents: str, **changes: Any) -> Told:
    """A story in which something is told."""
    given = {"input": {**STORY, **changes}}
    made = await caller.ask(STORY_CHANGES, given, "StoryCreate")
    assert made["storyCreate"]["errors"] == []
    story = made["storyCreate"]["story"]
    branch = story["currentBranch"]["id"]
    for content in contents:
        await caller.ask(TELLING, {"branch": branch, "content": content}, "EntryAppend")
    told = await caller.ask(TELLING, {"branch": branch}, "Told")
    entries = [each["id"] for each in told["branch"]["entries"]["nodes"]]
    return Told(story["id"], branch, entries)
