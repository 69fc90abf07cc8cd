"""Transfers: cards and lorebooks that come in to be reviewed, and cards that go out."""

from services.transfers.exporting import (
    FILE_KINDS,
    card_to_export,
    store_card_export,
    write_card_file,
)
from services.transfers.importing import (
    ReadCard,
    import_card,
    import_lorebook,
    read_card,
    read_card_file,
    read_lorebook_file,
)
from services.transfers.reviewing import (
    MAX_REVIEWED,
    delete_lorebook,
    review_entries,
    update_entry,
)

__all__ = [
    "FILE_KINDS",
    "MAX_REVIEWED",
    "ReadCard",
    "card_to_export",
    "delete_lorebook",
    "import_card",
    "import_lorebook",
    "read_card",
    "read_card_file",
    "read_lorebook_file",
    "review_entries",
    "store_card_export",
    "update_entry",
    "write_card_file",
]
