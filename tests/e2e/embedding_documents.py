"""What front ends ask about how stories are embedded."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.callers import Caller, Json
from tests.e2e.settings_documents import SETTING_CHANGES
from tests.e2e.story_documents import STORY_CHANGES

LOCAL = "multilingual-e5-small-q4"
_PARTS = """
fragment Embedding on Story {
  id
  embedder {
    backend modelId providerId dim failure rowCount staleCount
    swap { backend modelId providerId staged total }
  }
}
fragment Refused on UserError { code message path }
"""
EMBEDDER = (
    _PARTS.partition("fragment Refused")[0]
    + """
query Embedder($id: ID!) { story(id: $id) { ...Embedding currentBranch { id searchModes } } }
"""
)
SIMILAR = """
query Similar($id: ID!, $first: Int! = 10) {
  node(id: $id) { ... on Embeddable { similar(first: $first) { score node { id } } } }
}
"""
EMBEDDING_CHANGES = (
    _PARTS
    + """
mutation EmbeddingSwapStart($input: EmbeddingSwapStartInput!) {
  embeddingSwapStart(input: $input) { story { ...Embedding } errors { ...Refused } }
}
mutation EmbeddingSwapResume($input: EmbeddingSwapResumeInput!) {
  embeddingSwapResume(input: $input) { story { ...Embedding } errors { ...Refused } }
}
mutation EmbeddingSwapCancel($input: EmbeddingSwapCancelInput!) {
  embeddingSwapCancel(input: $input) { story { ...Embedding } errors { ...Refused } }
}
mutation EmbeddingRelabel($input: EmbeddingRelabelInput!) {
  embeddingRelabel(input: $input) { story { ...Embedding } errors { ...Refused } }
}
"""
)
EMBEDDING_PATHS = {
    "embeddingSwapStart": "storyId",
    "embeddingSwapResume": "storyId",
    "embeddingSwapCancel": "storyId",
    "embeddingRelabel": "storyId",
}


def embedding_inputs(ids: Mapping[str, str]) -> dict[str, Json]:
    """An input for each of EMBEDDING_CHANGES, aimed at rows whose ids are given by their kinds."""
    story = {"storyId": ids["Story"]}
    return {
        "EmbeddingSwapStart": {**story, "backend": "LOCAL", "modelId": LOCAL},
        "EmbeddingSwapResume": story,
        "EmbeddingSwapCancel": story,
        "EmbeddingRelabel": {**story, "modelId": "x", "providerId": "prov_1"},
    }


def embedding_texts() -> dict[str, tuple[str, list[str]]]:
    """Each change with `$value` in the place of each of its texts, and the path of that."""
    story = 'storyId: "story_1"'
    places = {
        "embeddingSwapStart": {
            "storyId": 'storyId: $value, backend: LOCAL, modelId: "x"',
            "modelId": f"{story}, backend: LOCAL, modelId: $value",
            "providerId": f'{story}, backend: PROVIDER, modelId: "x", providerId: $value',
        },
        "embeddingSwapResume": {"storyId": "storyId: $value"},
        "embeddingSwapCancel": {"storyId": "storyId: $value"},
        "embeddingRelabel": {
            "storyId": 'storyId: $value, modelId: "x", providerId: "prov_1"',
            "modelId": f'{story}, modelId: $value, providerId: "prov_1"',
            "providerId": f'{story}, modelId: "x", providerId: $value',
        },
    }
    return {
        f"{mutation} {field}": (f"{mutation}(input: {{ {given} }})", ["input", field])
        for mutation, fields in places.items()
        for field, given in fields.items()
    }


async def embed_elsewhere(caller: Caller, story: str) -> None:
    """Let a story's settings name a model of a provider that is not there."""
    settings = {
        "embeddingBackend": "provider",
        "embedding_provider_id": "prov_1",
        "embedding_model_id": "far",
    }
    given = {"input": {"storyId": story, "settings": settings}}
    done = await caller.ask(STORY_CHANGES, given, "StoryUpdate")
    assert done["storyUpdate"]["errors"] == []


async def embedding_input(caller: Caller, operation: str, story: str) -> Json:
    """An input for a change of a story, which is made ready for it."""
    inputs = embedding_inputs({"Story": story})
    if operation == "EmbeddingRelabel":
        provider = {"type": "OPENAI", "displayName": "Far", "apiKey": "sk-x"}
        made = await caller.ask(SETTING_CHANGES, {"input": provider}, "ProviderCreate")
        return {**inputs[operation], "providerId": made["providerCreate"]["providerId"]}
    await embed_elsewhere(caller, story)
    if operation != "EmbeddingSwapStart":
        start = {"input": inputs["EmbeddingSwapStart"]}
        await caller.ask(EMBEDDING_CHANGES, start, "EmbeddingSwapStart")
    return inputs[operation]
