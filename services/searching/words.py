"""The words of a text, in every script: what texts are found by, and what a query looks for. Pure.

Source: design, performance (traps: bigrams find names that a text search does not).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from services.entities import names

# Scripts whose words have no blanks between them, or endings attached: ideographs and their marks,
# kana without the dot between names, hangul, Thai, Lao, Burmese, Khmer.
_RUN = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff"
    "\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Signs that belong to the letter before them: vowels of Indian scripts, points of Arabic.
_MARKS = "".join(
    each for each in map(chr, range(0x300, 0xFFFF)) if unicodedata.category(each)[0] == "M"
)
_WORDS = re.compile(f"(?P<run>[{_RUN}]+)|[^\\W_{_RUN}](?:[^\\W_{_RUN}]|[{_MARKS}])*")
# PostgreSQL's index refuses words of some 2,700 bytes.
_LONGEST = 64
# A run that is longer is a sentence rather than a name: it need not stand in a text as a whole.
_LONGEST_NAME = 3
# Of the words of a sentence without blanks, how many a text must have.
_SHARE = 0.5
_MOST_WORDS = 200


def folded(text: str) -> str:
    """A text as it is compared: without regard to case, width, and accents of Latin, Greek and
    Cyrillic letters.
    """
    return unicodedata.normalize("NFC", names.folded(text).casefold())


def words_in(text: str) -> list[str]:
    """What a text is found by, each once, in order: its words; where the script has no blanks,
    each character and each two that stand together. Words are cut off behind 64 characters.
    """
    found = set()
    for each in _WORDS.finditer(folded(text)):
        word = each[0]
        if each["run"] is None:
            found.add(word[:_LONGEST])
        else:
            found.update(word)
            found.update(_pairs(word))
    return sorted(found)


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A word of a query, or a run of characters without a blank."""

    text: str
    # What an index is asked for.
    words: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it must stand in a text as a whole, which its words alone do not say."""
        return len(self.words) > 1 and len(self.text) <= _LONGEST_NAME

    def is_found(self, words: AbstractSet[str], text: str) -> bool:
        """Whether it stands in a text that has these words; `text` is folded.

        A name of up to three characters stands there as a whole. Of a longer run half is enough.
        """
        there = sum(each in words for each in self.words)
        if self.is_whole:
            return there == len(self.words) and self.text in text
        return there >= _SHARE * len(self.words)


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for."""

    wanted: tuple[Wanted, ...]
    # The whole of it, as names are compared.
    name: str

    @property
    def words(self) -> tuple[str, ...]:
        """What an index is asked for: a text with none of these is not found."""
        return tuple(dict.fromkeys(word for each in self.wanted for word in each.words))


def query_of(text: str) -> Query:
    """What a text asks for; nothing where it has no letter and no digit. No more than 200 words
    are looked for.
    """
    wanted: dict[str, Wanted] = {}
    left = _MOST_WORDS
    for each in _WORDS.finditer(folded(text)):
        word = each[0]
        words = (word[:_LONGEST],) if each["run"] is None else tuple(dict.fromkeys(_pairs(word)))
        if word not in wanted and left > 0:
            wanted[word] = Wanted(word, words[:left])
            left -= len(words)
    return Query(tuple(wanted.values()), name_of(text))


def name_of(text: str) -> str:
    """A name as it is compared: its words and runs, with a blank between them."""
    return " ".join(each[0] for each in _WORDS.finditer(folded(text)))
