"""The plot of a story: lore, threads, happenings, who took part in these and who knows of them.

Source: spec aventuras, happenings and character knowledge; injection modes.
"""

from services.plot.happenings import (
    MAX_TIES,
    Awareness,
    Involvement,
    create_happening,
    set_awareness,
    set_involvement,
    update_happening,
)
from services.plot.listing import (
    AWARENESS_OF_CHARACTERS,
    AWARENESS_OF_HAPPENINGS,
    HAPPENINGS_OF_BRANCHES,
    INVOLVEMENTS_OF_ENTITIES,
    INVOLVEMENTS_OF_HAPPENINGS,
    LORE_OF_BRANCHES,
    THREADS_OF_BRANCHES,
)
from services.plot.writing import (
    create_lore,
    create_thread,
    delete_row,
    update_lore,
    update_thread,
)

__all__ = [
    "AWARENESS_OF_CHARACTERS",
    "AWARENESS_OF_HAPPENINGS",
    "HAPPENINGS_OF_BRANCHES",
    "INVOLVEMENTS_OF_ENTITIES",
    "INVOLVEMENTS_OF_HAPPENINGS",
    "LORE_OF_BRANCHES",
    "MAX_TIES",
    "THREADS_OF_BRANCHES",
    "Awareness",
    "Involvement",
    "create_happening",
    "create_lore",
    "create_thread",
    "delete_row",
    "set_awareness",
    "set_involvement",
    "update_happening",
    "update_lore",
    "update_thread",
]
