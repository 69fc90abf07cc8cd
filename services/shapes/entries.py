"""The metadata of a story's entry. Source: spec aventuras, entry metadata shape."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.calendars import MAX_WORLD_TIME

# The beginning of each field: absent, or a value. None is no value of an optional field.
ABSENT: Any = None
Count = Annotated[int, Field(ge=0)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Tokens(_Closed):
    """What a generation took."""

    prompt: Count
    completion: Count
    reasoning: Count = Field(default=ABSENT)


class StateReport(_Closed):
    """What one generation reported of the world; never inherited by the next entry."""

    layer: Literal["piggyback_tagged_block", "per_turn_classifier"]
    sceneEntities: list[str] = Field(default=ABSENT)
    currentLocation: str = Field(default=ABSENT)
    worldTimeDelta: float = Field(default=ABSENT)
    worldTimeDeltaApplied: int = Field(default=ABSENT)
    currentLocationRejected: Literal[True] = Field(default=ABSENT)
    visualChanges: list[dict[str, Any]] = Field(default=ABSENT)
    transfers: dict[str, list[Any]] = Field(default=ABSENT)
    newLocations: list[dict[str, Any]] = Field(default=ABSENT)
    newItems: list[dict[str, Any]] = Field(default=ABSENT)
    failedFields: list[dict[str, Any]] = Field(default=ABSENT)
    raw: str = Field(default=ABSENT)


class Suggestions(_Closed):
    """What a reader may do next."""

    items: list[dict[str, Any]]
    source: Literal["piggyback", "classifier", "refresh"]
    refreshGuidance: str = Field(default=ABSENT)


class SystemFailure(_Closed):
    """What went wrong, in an entry of kind system."""

    kind: str
    failure: str = Field(default=ABSENT)
    detail: str = Field(default=ABSENT)
    submission: dict[str, str] = Field(default=ABSENT)


class EntryMeta(_Closed):
    """All of it. Scene, place and time are carried on from entry to entry; the rest is not."""

    sceneEntities: list[str]
    currentLocationId: str | None
    worldTime: Annotated[int, Field(ge=0, le=MAX_WORLD_TIME)]
    tokens: Tokens = Field(default=ABSENT)
    model: str = Field(default=ABSENT)
    generationTimingMs: Count = Field(default=ABSENT)
    reasoning: str = Field(default=ABSENT)
    summary: str = Field(default=ABSENT)
    retrievalQueries: Annotated[list[str], Field(max_length=3)] = Field(default=ABSENT)
    stateReport: StateReport = Field(default=ABSENT)
    nextTurnSuggestions: Suggestions = Field(default=ABSENT)
    systemFailure: SystemFailure = Field(default=ABSENT)
