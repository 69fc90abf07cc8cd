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


class SearchKind(StrEnum):
    """What kind of row is looked for."""

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


class CaptureMode(StrEnum):
    """How much a capture of a retrieval keeps: the vectors too, where it is deep."""

    LIGHT = "light"
    DEEP = "deep"
