"""The plot of a story: lore, threads, happenings, who took part in these and who knows of them."""

from schema.plot.changes import LoreMutation, ThreadMutation
from schema.plot.happenings import HappeningMutation
from schema.plot.rows import (
    Happening,
    HappeningAwareness,
    HappeningFilter,
    HappeningInvolvement,
    Lore,
    LoreFilter,
    Thread,
    ThreadFilter,
)

__all__ = [
    "Happening",
    "HappeningAwareness",
    "HappeningFilter",
    "HappeningInvolvement",
    "HappeningMutation",
    "Lore",
    "LoreFilter",
    "LoreMutation",
    "Thread",
    "ThreadFilter",
    "ThreadMutation",
]
