"""What a lorebook is: its entries in the form of our columns, each with its untouched source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from services.cards.card import CardWarning

_PATTERN = re.compile(r"/(?:\\.|[^/\\])+/(?P<flags>[gimsuy]*)", re.DOTALL)
_KEY_IN_LINE = re.compile(r"\s*/(?:\\.|[^/\\])+/[gimsuy]*\s*(?=,|$)|[^,]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Recursion:
    """How an entry takes part when entries wake further entries.

    `exclude`: the text of other entries does not wake it. `prevent`: its own text wakes nobody.
    `delay_until` is the level of recursion it waits for, 0 when it does not wait.
    """

    exclude: bool = False
    prevent: bool = False
    delay_until: int = 0


@dataclass(frozen=True, slots=True)
class LoreEntry:
    """One entry of a lorebook.

    `selective_logic` is `and_any`, `and_all`, `not_any` or `not_all`; `position` is `before_char`,
    `after_char`, `before_examples`, `after_examples`, `before_author_note`, `after_author_note`,
    `at_depth` or `outlet`. `depth` counts messages from the newest. `insertion_order`: lower stands
    earlier in the prompt. `probability` is 0 to 100. `sticky`, `cooldown` and `delay` count
    messages, None when unset. `secondary_keys` is empty where the entry says not to look at them.
    A key is a pattern when it looks like `/x/flags` (`is_pattern`), whatever `use_regex` says.

    `source` is the entry exactly as it was; in it stands everything that has no column here.
    """

    name: str
    keys: tuple[str, ...]
    secondary_keys: tuple[str, ...]
    selective_logic: str
    constant: bool
    position: str
    depth: int
    insertion_order: int
    probability: int
    sticky: int | None
    cooldown: int | None
    delay: int | None
    recursion: Recursion
    content: str
    enabled: bool
    source: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lorebook:
    """A lorebook with its entries in file order; every entry is kept, whatever its id.

    `scan_depth` counts messages, `token_budget` tokens; these and `recursive` are None when the
    book leaves them to the reader's settings. `source` is the book as it was, entries included.
    """

    name: str
    description: str
    scan_depth: int | None
    token_budget: int | None
    recursive: bool | None
    entries: tuple[LoreEntry, ...]
    source: dict[str, Any]
    warnings: tuple[CardWarning, ...]


def is_pattern(key: str) -> bool:
    """Whether a key is a regular expression by its shape, `/body/flags`, and not plain text.

    Whether an engine accepts its body is left to who uses it. (spec: sillytavern worldinfo, G2)
    """
    match = _PATTERN.fullmatch(key)
    return match is not None and len(set(match["flags"])) == len(match["flags"])


def split_keys(line: str) -> list[str]:
    """Return the keys of one line, split at commas that are not inside `/.../`.

    (spec: sillytavern worldinfo, G10)
    """
    return [key.strip() for key in _KEY_IN_LINE.findall(line) if key.strip()]
