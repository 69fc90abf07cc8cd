"""What text may be stored: checked here before a database driver sees it."""

from __future__ import annotations

from services.errors import Invalid

MAX_TEXT = 1_000_000
MAX_LINE = 500
# As long as addresses of pictures, voices and documents get.
MAX_REFERENCE = 2_000


def checked_text(value: str, *path: str | int, max_length: int = MAX_TEXT) -> str:
    """The text itself, if it is storable, not blank and at most `max_length` characters.

    Raises Invalid with INVALID_TEXT, TEXT_EMPTY or TEXT_TOO_LONG and the path of the field.
    """
    refuse_unstorable(value, path)
    if not value.strip():
        raise Invalid("Write some text: this is empty.", "TEXT_EMPTY", path)
    if len(value) > max_length:
        raise Invalid(f"Shorten this to {max_length:,} characters.", "TEXT_TOO_LONG", path)
    return value


def storable(text: str) -> str:
    """The text without what PostgreSQL cannot hold; halves of surrogate pairs become "?"."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def refuse_unstorable(value: object, path: tuple[str | int, ...]) -> None:
    """Look through text, lists and mappings for what PostgreSQL cannot hold; raises Invalid."""
    if isinstance(value, str):
        if "\0" in value:
            raise Invalid("Remove the U+0000 character from the text.", "INVALID_TEXT", path)
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Invalid("The text holds half of a surrogate pair.", "INVALID_TEXT", path)
    elif isinstance(value, dict):
        for key, item in value.items():
            refuse_unstorable(key, path)
            refuse_unstorable(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            refuse_unstorable(item, (*path, index))
