"""How many of the last entries a prompt carries word for word.

Source: retrieval, section 10. Pure.
"""

from __future__ import annotations

from services.retrieval.parameters import Parameters


def buffer_length(in_open_chapter: int, parameters: Parameters) -> int:
    """How many entries, notices not counted, across as many chapters as it takes."""
    told = in_open_chapter
    if not parameters.is_full_chapter:
        told = min(told, parameters.partial_buffer)
    return max(told, parameters.protected_buffer)
