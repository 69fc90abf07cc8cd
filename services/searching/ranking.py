"""The order of what was found, and where the words stand in it. Pure.

Words count by BM25: the rarer in what is searched, the more; a name counts more than a text, and
the whole name most. Words and meaning are joined by reciprocal rank fusion.
Source: design, performance (W5), benchmarks (B1, B5).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import SearchKind
from services.searching.surfaces import LOOKED, Match
from services.searching.words import Query, folded, name_of, words_in

# The usual figures of BM25; the length of a middling text is fixed, so that what somebody does not
# know has no influence on the scores that they see.
_K1 = 1.2
_B = 0.75
_MIDDLING = 60
_NAME_WEIGHT = 3.0
# Added where the query is one of the names of a row.
WHOLE_NAME = 10.0
# The usual figure of reciprocal rank fusion.
FUSION = 60
_SNIPPET = 200
_SENTENCES = re.compile(r"[^.!?。！？…\n]+[.!?。！？…]*")

Key = tuple[SearchKind, str]


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of the score is worth."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that was found."""

    kind: SearchKind
    row: Any
    label: str
    snippet: str
    score: float
    parts: list[Part]


def worth(matches: Iterable[Match], row_count: int) -> dict[Key, float]:
    """What the words of rows of one branch are worth, by BM25 among `row_count` rows."""
    listed = list(matches)
    having: Counter[str] = Counter()
    by_row: dict[Key, set[str]] = {}
    for each in listed:
        by_row.setdefault((each.kind, each.row_id), set()).update(each.words)
    for words in by_row.values():
        having.update(words)
    rarity = {
        word: math.log(1 + (max(row_count, count) - count + 0.5) / (count + 0.5))
        for word, count in having.items()
    }
    scores: dict[Key, float] = dict.fromkeys(by_row, 0.0)
    for each in listed:
        length = 1 - _B + _B * each.length / _MIDDLING
        weight = (_NAME_WEIGHT if each.is_name else 1.0) * (_K1 + 1) / (1 + _K1 * length)
        # In the order of the words: sums of the same numbers are then the same.
        scores[each.kind, each.row_id] += sum(rarity[word] * weight for word in sorted(each.words))
    return scores


def in_order(scores: Mapping[Key, float]) -> list[Key]:
    """The best first, then by kind and id."""
    return sorted(scores, key=lambda key: (-scores[key], key))


def is_found(query: Query, kind: SearchKind, row: Any) -> bool:
    """Whether something of a query stands in a row as the query has it."""
    looked = LOOKED[kind]
    text = "\n".join([*looked.all_names(row), looked.body_text(row)])
    words = set(words_in(text))
    return any(each.is_found(words, folded(text)) for each in query.wanted)


def has_name(query: Query, kind: SearchKind, row: Any) -> bool:
    """Whether a query is a name of a row."""
    return bool(query.name) and query.name in map(name_of, LOOKED[kind].all_names(row))


def fused(*rankings: Sequence[Key]) -> dict[Key, float]:
    """Scores by reciprocal rank fusion."""
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for place, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (FUSION + place)
    return scores


def snippet_of(query: Query, kind: SearchKind, row: Any) -> str:
    """The sentence of a row that has most of a query, the first of such; its beginning where it has
    none. At most 200 characters.
    """
    text = LOOKED[kind].body_text(row)
    sentences = [found for each in _SENTENCES.findall(text) if (found := each.strip())]
    pieces = [
        sentence[start : start + _SNIPPET].strip()
        for sentence in sentences
        for start in range(0, max(1, len(sentence) - _SNIPPET // 2), _SNIPPET // 2)
    ]
    wanted = frozenset(query.words)
    return max(pieces, key=lambda each: len(wanted.intersection(words_in(each))), default="")
