"""What front ends ask about stories and about branches as things."""

from __future__ import annotations

from typing import Any

STORY_CHANGES = """
fragment StoryParts on Story {
  id title status isFavorite version currentBranch { id name }
}
mutation StoryCreate($input: StoryCreateInput!) {
  storyCreate(input: $input) {
    story { ...StoryParts } keys { key id } errors { code message path }
  }
}
mutation StoryUpdate($input: StoryUpdateInput!) {
  storyUpdate(input: $input) { story { ...StoryParts } errors { code message path } }
}
mutation StoryOpen($story: ID!, $branch: ID) {
  storyOpen(input: { storyId: $story, branchId: $branch }) {
    story { ...StoryParts } errors { code message path }
  }
}
mutation StoryDelete($story: ID!) {
  storyDelete(input: { storyId: $story }) { deletedId errors { code message path } }
}
mutation BranchRename($branch: ID!, $name: String!) {
  branchRename(input: { branchId: $branch, name: $name }) {
    branch { id name } errors { code message path }
  }
}
mutation BranchDelete($branch: ID!) {
  branchDelete(input: { branchId: $branch }) {
    deletedId story { id } errors { code message path }
  }
}
"""

STORIES = """
query Stories($status: StoryStatus, $search: String) {
  stories(status: $status, search: $search) { nodes { id title } totalCount }
}
query Story($id: ID!) {
  story(id: $id) {
    title description tags accentColor status isFavorite settings version updatedAt
    coverAsset { id }
    calendar { id name }
    definition {
      mode narration genre { label promptBody } tone { label promptBody } setting
      calendarSystemId worldTimeOrigin leadEntity { id rowId name }
    }
    currentBranch { id }
    branches { nodes { id name } totalCount }
  }
}
query Branch($id: ID!) {
  branch(id: $id) {
    name head canUndo canRedo
    story { id }
    parent { id }
    children { nodes { id name } totalCount }
    classifierStatus { state processedThrough lastSuccessAt lastError retryCount }
  }
}
"""

DEFINITION: dict[str, Any] = {
    "mode": "CREATIVE",
    "narration": "THIRD",
    "genre": {"label": "Test"},
    "tone": {"label": "Plain"},
    "calendarSystemId": "earth-gregorian",
}
STORY: dict[str, Any] = {
    "title": "Mine",
    "definition": DEFINITION,
    "cast": [{"key": "mira", "kind": "CHARACTER", "name": "Mira"}],
    "lore": [{"key": "oil", "title": "Oil", "body": "It is taxed."}],
    "opening": {"content": "It begins.", "sceneKeys": ["mira"]},
}
