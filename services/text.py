"""What text may be stored: checked here before a database driver sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from services.errors import Invalid, LimitReached

MAX_TEXT = 1_000_000
MAX_LINE = 500
MAX_LINES = 50
# As long as addresses of pictures, voices and documents get.
MAX_REFERENCE = 2_000
_LANGUAGE = re.compile("[a-z]{2}")


def checked_text(value: str, *path: str | int, max_length: int = MAX_TEXT) -> str:
    """The text itself, if it is storable, not blank and at most `max_length` characters.

    Raises Invalid with INVALID_TEXT, TEXT_EMPTY or TEXT_TOO_LONG and the path of the field.
    """
    checked_prose(value, *path, max_length=max_length)
    if not value.strip():
        raise Invalid("Write some text: this is empty.", "TEXT_EMPTY", path)
    return value


def checked_prose(value: str, *path: str | int, max_length: int = MAX_TEXT) -> str:
    """Like checked_text, but it may be blank."""
    refuse_unstorable(value, path)
    if len(value) > max_length:
        raise Invalid(f"Shorten this to {max_length:,} characters.", "TEXT_TOO_LONG", path)
    return value


def checked_lines(values: Sequence[str], *path: str | int, most: int = MAX_LINES) -> list[str]:
    """Short texts such as tags and keywords, checked one by one.

    Raises LimitReached for more than `most`, and what checked_text raises with the text's place.
    """
    if len(values) > most:
        raise LimitReached(f"Give {most} at most.", path=path)
    return [
        checked_text(each, *path, index, max_length=MAX_LINE) for index, each in enumerate(values)
    ]


def checked_language(value: str, *path: str | int) -> str:
    """The code of a language, as ISO 639-1 writes them: en, ja. Raises Invalid with
    LANGUAGE_INVALID.
    """
    if not _LANGUAGE.fullmatch(value):
        raise Invalid("A language is two small letters, such as en.", "LANGUAGE_INVALID", path)
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
