"""Characters and drafts: look-ups, relations and mutations."""

from resolvers.characters.drafts import (
    activate_embryo,
    create_embryo,
    import_card,
    list_embryos,
)
from resolvers.characters.living import (
    character_by_id,
    custodians_of_characters,
    list_characters,
    seats_of_characters,
    trees_of_characters,
)

__all__ = [
    "activate_embryo",
    "character_by_id",
    "create_embryo",
    "custodians_of_characters",
    "import_card",
    "list_characters",
    "list_embryos",
    "seats_of_characters",
    "trees_of_characters",
]
