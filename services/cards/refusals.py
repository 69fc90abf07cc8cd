"""Why a card file is refused: the limits a card must keep, and the error that says so."""

from __future__ import annotations

from services.errors import Invalid

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_INFLATED_BYTES = 8 * 1024 * 1024
MAX_PNG_CHUNKS = 10_000
MAX_JSON_DEPTH = 64
MAX_TEXT_LENGTH = 1_000_000
MAX_LIST_LENGTH = 10_000
MAX_GREETINGS = 500

# What comes with a card, in an archive or in chunks: how many files, and all of them inflated.
MAX_FILES = 1_000
MAX_FILES_BYTES = 32 * 1024 * 1024

# An empty object costs two bytes in the file and over a hundred in memory, so the brackets are
# counted before anything is built. Placeholders such as {{user}} count too, hence the wide margin.
MAX_BRACKETS = 500_000
# A short text costs five bytes in the file and sixty in memory. Commas in prose count too.
MAX_COMMAS = 1_000_000

# Each try may inflate MAX_INFLATED_BYTES; without this a small file could ask for thousands.
MAX_CHUNKS_TRIED = 8


def refusal(code: str, message: str) -> Invalid:
    """Return the error for a card file that cannot be taken, pointing at the uploaded file."""
    return Invalid(message, code, ("input", "file"))


def card_too_large() -> Invalid:
    """Return the error for a card, or one chunk, whose text has over `MAX_INFLATED_BYTES`."""
    limit = MAX_INFLATED_BYTES // 1024 // 1024
    return refusal("CARD_CHUNK_TOO_LARGE", f"The text of the card has more than {limit} MiB.")


def too_many_files() -> Invalid:
    """Return the error for more than `MAX_FILES` files beside a card."""
    return refusal("CARD_TOO_MANY_FILES", f"More than {MAX_FILES:,} files come with the card.")


def files_too_large() -> Invalid:
    """Return the error for more than `MAX_FILES_BYTES` beside a card."""
    limit = MAX_FILES_BYTES // 1024 // 1024
    return refusal(
        "CARD_FILES_TOO_LARGE", f"The files that come with the card have more than {limit} MiB."
    )
