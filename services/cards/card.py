"""What reading a character card gives: its fields, its source, and what was mended on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# A hostile file can need a mend at every value; people read the first few at most.
MAX_WARNINGS = 100

# Where the picture of a PNG card stands among the files, unless an asset gives it another path.
PICTURE_PATH = "assets/icon/images/main.png"


@dataclass(frozen=True, slots=True)
class CardWarning:
    """Something in a card that was mended, left out or ignored, told to a person.

    `code` is stable and in upper case. `path` is the dotted place inside the card (`data.tags`,
    `data.assets.0.uri`) and empty when the file as a whole is meant.
    """

    code: str
    message: str
    path: str


@dataclass(frozen=True, slots=True)
class CardFile:
    """A file that came with a card: its picture, or what an archive or a PNG carried beside it.

    `path` is unique within a card, relative, with `/` between its parts and without `..`: it may
    be joined to a folder. `media_type` was judged by the bytes, never by the ending, and is
    `application/octet-stream` when they tell nothing. `content` is as it came, but for the picture
    of a PNG card: its card chunks are taken out, so that it can carry a card again.
    """

    path: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Card:
    """One character card.

    `container` is `png_text`, `json` or `charx`. `spec` is `v1`, `v2` or `v3`: what the payload is,
    not what the chunk that carried it is called.

    `fields` has the shape of the V3 `data` object whatever the spec was. Always present: the texts
    `name`, `description`, `personality`, `scenario`, `first_mes`, `mes_example`, `creator_notes`,
    `system_prompt`, `post_history_instructions`, `creator`, `character_version`; the lists of text
    `alternate_greetings`, `group_only_greetings`, `tags`; the object `extensions`. Present when the
    card has them: `nickname`, `source`, `assets`, `creator_notes_multilingual`, `character_book`
    (as the file has it), `creation_date` and `modification_date` (Unix seconds), and every unknown
    key of the card's `data`.

    `source` is the JSON object of the file, changed only where a database or a JSON writer could
    not hold it: U+0000, lone surrogates, numbers that are not finite or need more than 64 bits.
    It shares no object with `fields`.

    `files` came with the card. An asset in `fields` that means one of them has the URI
    `embeded://{path}`, however the file spells it; `ccdefault:` means the file at `PICTURE_PATH`.
    """

    container: str
    spec: str
    fields: dict[str, Any]
    source: dict[str, Any]
    warnings: tuple[CardWarning, ...]
    files: tuple[CardFile, ...] = ()


class Findings:
    """Collects the warnings of one reading; beyond `MAX_WARNINGS` it only counts them."""

    def __init__(self) -> None:
        self._warnings: list[CardWarning] = []
        self._uncollected = 0

    def add(self, code: str, message: str, path: str = "") -> None:
        """Note one warning; `path` as in `CardWarning`."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(CardWarning(code, message, path))
        else:
            self._uncollected += 1

    def warnings(self) -> tuple[CardWarning, ...]:
        """Return what was found, in order, with a last `MORE_WARNINGS` when some were left out."""
        if not self._uncollected:
            return tuple(self._warnings)
        message = f"{self._uncollected} further warnings are not listed."
        return (*self._warnings, CardWarning("MORE_WARNINGS", message, ""))
