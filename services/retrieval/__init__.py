"""What a prompt carries of a branch beside its last entries, and captures of how it was chosen.

Source: design, retrieval, probe; spec aventuras, injection modes.
"""

from services.retrieval.capturing import (
    CAPTURES_OF_BRANCHES,
    delete_capture,
    delete_captures,
    keep_capture,
    payload_or_none,
    require_probing,
)
from services.retrieval.previewing import retrieve_for
from services.retrieval.showing import (
    MAX_SHOWN,
    ProbeSimulation,
    RetrievalPreview,
    show_retrieved,
    show_simulation,
)
from services.retrieval.simulating import simulate

__all__ = [
    "CAPTURES_OF_BRANCHES",
    "MAX_SHOWN",
    "ProbeSimulation",
    "RetrievalPreview",
    "delete_capture",
    "delete_captures",
    "keep_capture",
    "payload_or_none",
    "require_probing",
    "retrieve_for",
    "show_retrieved",
    "show_simulation",
    "simulate",
]
