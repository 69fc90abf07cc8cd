"""What front ends ask about what prompts carry."""

from __future__ import annotations

from tests.e2e.callers import Caller
from tests.e2e.settings_documents import SETTING_CHANGES
from tests.e2e.story_documents import STORY_CHANGES

PREVIEW = """
query Preview($branch: ID!, $text: String) {
  retrievalPreview(branchId: $branch, text: $text) {
    branch { id }
    queries { slot text weight tokens hasVector }
    bufferEntries bufferTokens
    floor { kind rowId name reason text tokens node { id rowId } } floorTokens
    injected { kind rowId name depth text tokens node { id } }
    pools {
      kind budget injectedTokens tokensUsed poolSize staleCount
      seated { ...Ranked } dropped { ...Ranked }
    }
    redundancy { text ratio counted }
    modelId failure warnings
  }
}
fragment Ranked on RetrievalCandidate {
  rowId name text tokens similarities blend recency pin age keywordBonus isInSeatedChapter
  isCommon isRevived score mmr rank drop node { id }
}
"""

PROBES = """
fragment Refused on UserError { code message path }
fragment Kept on ProbeCapture {
  id capturedAt mode embeddingModelId failureReason payloadSize payload isCorrupt
  branch { id } targetEntry { id }
}
query Captures($branch: ID!, $first: Int) {
  branch(id: $branch) { probeCaptures(first: $first) { nodes { ...Kept } totalCount } }
}
query Capture($id: ID!) { probeCapture(id: $id) { ...Kept } node(id: $id) { id __typename } }
query Simulation($id: ID!, $parameters: ProbeParametersInput) {
  probeSimulation(captureId: $id, parameters: $parameters) {
    isSame
    pools {
      kind budget injectedTokens tokensUsed
      seated { rowId name node { id } } dropped { name drop } added { name } removed { name }
    }
  }
}
mutation RetrievalProbe($branch: ID!, $text: String, $mode: CaptureMode) {
  retrievalProbe(input: { branchId: $branch, text: $text, mode: $mode }) {
    capture { ...Kept } errors { ...Refused }
  }
}
mutation ProbeCaptureDelete($capture: ID!) {
  probeCaptureDelete(input: { captureId: $capture }) { deletedId errors { ...Refused } }
}
mutation ProbeCapturesDelete($story: ID!) {
  probeCapturesDelete(input: { storyId: $story }) { deletedIds errors { ...Refused } }
}
"""


async def probe_on(caller: Caller, story: str) -> None:
    """Let retrievals of a story be captured."""
    given = {"diagnostics": {"enabled": True}}
    await caller.ask(SETTING_CHANGES, {"input": given}, "SettingUpdate")
    switch = {"storyId": story, "settings": {"probe_mode_active": True}}
    await caller.ask(STORY_CHANGES, {"input": switch}, "StoryUpdate")


async def make_capture(caller: Caller, story: str, branch: str) -> dict[str, str]:
    """A capture, by its kind."""
    await probe_on(caller, story)
    made = await caller.ask(PROBES, {"branch": branch, "text": "Mine."}, "RetrievalProbe")
    return {"ProbeCapture": made["retrievalProbe"]["capture"]["id"]}
