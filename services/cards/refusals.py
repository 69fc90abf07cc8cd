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

# An empty object costs two bytes in the file and over a hundred in memory, so the brackets are
# counted before anything is built. Placeholders such as {{user}} count too, hence the wide margin.
MAX_BRACKETS = 500_000

# Each try may inflate MAX_INFLATED_BYTES; without this a small file could ask for thousands.
MAX_CHUNKS_TRIED = 8


def refusal(code: str, message: str) -> Invalid:
    """Return the error for a card file that cannot be taken, pointing at the uploaded file."""
    return Invalid(message, code, ("input", "file"))
