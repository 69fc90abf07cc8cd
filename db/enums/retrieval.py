"""Closed sets of values of searching, of what a prompt carries, and of walks over a world.

Source: design, retrieval, probe, api (one graph).
"""

from __future__ import annotations

from enum import StrEnum


class EdgeKind(StrEnum):
    """What ties two nodes of a branch together."""

    RELATIONSHIP = "relationship"
    INVOLVEMENT = "involvement"
    AWARENESS = "awareness"
    CONTAINMENT = "containment"
    POSITION = "position"
    POSSESSION = "possession"
    MEMBERSHIP = "membership"


class GraphNodeKind(StrEnum):
    """What a node of a branch's graph is."""

    CHARACTER = "character"
    LOCATION = "location"
    ITEM = "item"
    FACTION = "faction"
    HAPPENING = "happening"


class EdgeDirection(StrEnum):
    """Which way edges are followed."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


class TruncationReason(StrEnum):
    """Why a walk over a graph has not found all there is."""

    NODES = "nodes"
    EDGES = "edges"
    HUB = "hub"


class CentralityKind(StrEnum):
    """By what nodes of a graph are called central."""

    DEGREE = "degree"
    BETWEENNESS = "betweenness"


class SearchKind(StrEnum):
    """What kind of row is looked for."""

    ENTITY = "entity"
    LORE = "lore"
    HAPPENING = "happening"
    THREAD = "thread"
    CHAPTER = "chapter"
    ENTRY = "entry"


class LibraryKind(StrEnum):
    """What kind of thing of a user is looked for."""

    CHARACTER = "character"
    TREE = "tree"
    NODE = "node"
    STORY = "story"
    LOREBOOK_ENTRY = "lorebook_entry"
    WORLD = "world"
    WORLD_ENTITY = "world_entity"
    # Rows of stories, as SearchKind has them.
    ENTITY = "entity"
    LORE = "lore"
    HAPPENING = "happening"
    THREAD = "thread"
    CHAPTER = "chapter"
    ENTRY = "entry"


class SearchMode(StrEnum):
    """How rows are found: by their words, by their meaning, or by both."""

    KEYWORD = "keyword"
    VECTOR = "vector"
    HYBRID = "hybrid"


class SearchExclusion(StrEnum):
    """Why a row that was found is not shown."""

    BEYOND_FIRST = "beyond_first"


class CaptureMode(StrEnum):
    """How much a capture of a retrieval keeps: the vectors too, where it is deep."""

    LIGHT = "light"
    DEEP = "deep"


class QuerySlot(StrEnum):
    """What a query of a retrieval is made of."""

    ACTION = "action"
    DIGEST = "digest"
    SUMMARY = "summary"
    DIRECT = "direct"


class FloorReason(StrEnum):
    """Why a row is in a prompt whatever is asked for."""

    SCENE = "scene"
    LOCATION = "location"
    ACTIVE_THREAD = "active_thread"
    ALWAYS = "always"


class DropReason(StrEnum):
    """Why a row of a pool is not in a prompt."""

    PRE_FILTERED = "pre_filtered"
    BELOW_THRESHOLD = "below_threshold"
    OVER_BUDGET = "over_budget"
    CANDIDATE_TOO_LARGE = "candidate_too_large"
    NOT_DROPPED = "not_dropped"


class ProbeFailure(StrEnum):
    """Why nothing could be compared: the model could not begin, or a call failed."""

    INIT = "init"
    CALL = "call"


class EmbedderFailure(StrEnum):
    """Why nobody embeds the texts of a story."""

    NOT_INSTALLED = "not-installed"
    MODEL_MISSING = "model-missing"
    PROVIDER_MISSING = "provider-missing"
    PROVIDER_UNFIT = "provider-unfit"
    NO_VECTORS = "no-vectors"
