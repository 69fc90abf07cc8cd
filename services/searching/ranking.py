"""The order of what was found, and where the words stand in it. Pure.

Words count by BM25: the rarer in what is searched, the more; a name counts more than a text, and
the whole name most. Words and meaning are joined by reciprocal rank fusion.
Source: design, performance (W5), benchmarks (B1, B5).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
# Of each kind, the best that are looked at as a whole.
CANDIDATES = 200
_SNIPPET = 200
_SENTENCES = re.compile(r"[^.!?。！？…\n]+[.!?。！？…]*")

# A row: its kind and its id.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """What is looked into of a row: what it is called, and what it says."""

    names: Sequence[str]
    body: str


@dataclass(frozen=True, slots=True)
class Match:
    """A text of a row that has words of a query."""

    kind: str
    row_id: str
    # Whether it is what the row is called, rather than what it says.
    is_name: bool
    words: frozenset[str]
    # How many different words the text has.
    length: int


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of the score is worth."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that was found."""

    kind: str
    row: Any
    label: str
    snippet: str
    score: float
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that has words of a query: what they are worth, and which there are."""

    score: float
    words: frozenset[str]
    # Whether a name of it has all words of the query.
    has_name: bool


def candidates(query: Query, matches: Sequence[Match], row_count: int) -> dict[Key, Candidate]:
    """The best rows of each kind, by their words among `row_count` rows."""
    left: Counter[str] = Counter()
    scores = {}
    worths = worth(matches, row_count)
    for key in in_order(worths):
        if left[key[0]] < CANDIDATES:
            left[key[0]] += 1
            scores[key] = worths[key]
    words = _words_by_row(each for each in matches if (each.kind, each.row_id) in scores)
    wanted = frozenset(query.words)
    named = {(each.kind, each.row_id) for each in matches if each.is_name and each.words == wanted}
    return {
        key: Candidate(score, frozenset(words[key]), key in named) for key, score in scores.items()
    }


def first_of(rows: Mapping[Key, Candidate], most: int) -> dict[Key, Candidate]:
    """Those that can come first, whatever a look at them as a whole will say."""
    scores = {key: each.score + WHOLE_NAME * each.has_name for key, each in rows.items()}
    return {key: rows[key] for key in in_order(scores)[:most]}


def _words_by_row(matches: Iterable[Match]) -> dict[Key, set[str]]:
    found: dict[Key, set[str]] = {}
    for each in matches:
        found.setdefault((each.kind, each.row_id), set()).update(each.words)
    return found


def worth(matches: Sequence[Match], row_count: int) -> dict[Key, float]:
    """What the words of rows are worth, by BM25 among `row_count` rows."""
    by_row = _words_by_row(matches)
    having: Counter[str] = Counter()
    for words in by_row.values():
        having.update(words)
    rarity = {
        word: math.log(1 + (max(row_count, count) - count + 0.5) / (count + 0.5))
        for word, count in having.items()
    }
    scores: dict[Key, float] = dict.fromkeys(by_row, 0.0)
    for each in matches:
        length = 1 - _B + _B * each.length / _MIDDLING
        weight = (_NAME_WEIGHT if each.is_name else 1.0) * (_K1 + 1) / (1 + _K1 * length)
        # In the order of the words: sums of the same numbers are then the same.
        scores[each.kind, each.row_id] += sum(rarity[word] * weight for word in sorted(each.words))
    return scores


def in_order(scores: Mapping[Key, float]) -> list[Key]:
    """The best first, then by kind and id."""
    return sorted(scores, key=lambda key: (-scores[key], key))


def found_by_words(
    query: Query, rows: Mapping[Key, Candidate], said: Mapping[Key, Said]
) -> Iterator[tuple[Key, list[Part]]]:
    """Rows in which something of a query stands as the query has it, the best first. Of rows that
    nobody asks for nothing is looked at but their names.
    """
    parts: dict[Key, list[Part]] = {}
    for key, each in rows.items():
        if key in said:
            named = [Part("name", WHOLE_NAME)] if _has_name(query, said[key]) else []
            parts[key] = [Part("words", each.score), *named]
    for key in in_order({key: summed(each) for key, each in parts.items()}):
        if _is_found(query, rows[key].words, said[key]):
            yield key, parts[key]


def summed(parts: Iterable[Part]) -> float:
    """What the parts of a score are worth together."""
    return sum((each.value for each in parts), 0.0)


def _is_found(query: Query, words: frozenset[str], said: Said) -> bool:
    """Whether something of a query stands in a row that has these words of it."""
    text = "\n".join([*said.names, said.body])
    # Folding a long text takes longer than everything else.
    return any(each.is_found(words, text) for each in query.wanted) or any(
        each.is_found(words, folded(text))
        for each in query.wanted
        if each.is_whole and words.issuperset(each.words)
    )


def _has_name(query: Query, said: Said) -> bool:
    """Whether a query is a name of a row."""
    return bool(query.name) and query.name in map(name_of, said.names)


def fused(*rankings: Sequence[Key]) -> dict[Key, float]:
    """Scores by reciprocal rank fusion."""
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for place, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (FUSION + place)
    return scores


def snippet_of(query: Query, said: Said) -> str:
    """The sentence of a row that has most of a query, the first of such; its beginning where it has
    none. At most 200 characters.
    """
    sentences = [found for each in _SENTENCES.findall(said.body) if (found := each.strip())]
    pieces = [
        sentence[start : start + _SNIPPET].strip()
        for sentence in sentences
        for start in range(0, max(1, len(sentence) - _SNIPPET // 2), _SNIPPET // 2)
    ]
    wanted = frozenset(query.words)
    return max(pieces, key=lambda each: len(wanted.intersection(words_in(each))), default="")
