"""Names of entities: how they are compared, and which are alike.

Source: spec aventuras, name collision; memory, disambiguation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import IntEnum

# Combining marks of Latin, Greek and Cyrillic. Those of other scripts are parts of their letters.
MARKS = "\u0300-\u036f"
_MARKS = re.compile(f"[{MARKS}]")


class Likeness(IntEnum):
    """How alike two names are."""

    NONE = 0
    # One stands, as whole words, within the other, or is another name of the other.
    PARTIAL = 1
    EXACT = 2


def folded(text: str) -> str:
    """A text without regard to case, accents and forms of the same character."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", text)).lower()


def words_of(name: str) -> list[str]:
    """The words of a name as they are compared."""
    return folded(name).split()


def likeness(
    name: str, keywords: Iterable[str], other_name: str, other_keywords: Iterable[str]
) -> Likeness:
    """How alike two names are that may both have other names beside them."""
    words, other_words = words_of(name), words_of(other_name)
    if words == other_words:
        return Likeness.EXACT
    if (
        _stands_in(words, other_words)
        or _stands_in(other_words, words)
        or any(words_of(each) == other_words for each in keywords)
        or any(words_of(each) == words for each in other_keywords)
    ):
        return Likeness.PARTIAL
    return Likeness.NONE


def _stands_in(part: Sequence[str], whole: Sequence[str]) -> bool:
    last_start = len(whole) - len(part)
    return bool(part) and any(
        whole[start : start + len(part)] == part for start in range(last_start + 1)
    )


def with_names(keywords: Sequence[str], *more: str, beside: str) -> list[str]:
    """Other names with some more, none of them twice and none that is the name itself."""
    known = {tuple(words_of(each)) for each in (beside, *keywords)}
    found = list(keywords)
    for each in more:
        words = tuple(words_of(each))
        if words and words not in known:
            known.add(words)
            found.append(each)
    return found
