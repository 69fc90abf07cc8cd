"""Characters: drafts, their activation, and what lives on from there."""

from services.characters.drafts import (
    CHECKLIST,
    activate_embryo,
    create_embryo,
    import_card,
    list_embryos,
)
from services.characters.living import (
    CHARACTERS,
    baseline_of,
    list_characters,
    require_alive,
    seats_of_characters,
)

__all__ = [
    "CHARACTERS",
    "CHECKLIST",
    "activate_embryo",
    "baseline_of",
    "create_embryo",
    "import_card",
    "list_characters",
    "list_embryos",
    "require_alive",
    "seats_of_characters",
]
