"""Rows of a branch found by their words, by their meaning, or by both.

Source: design, performance (traps), benchmarks (B5); spec aventuras, retrieval.
"""

from services.searching.finding import MAX_HITS, Asked, Found, search_branches
from services.searching.ranking import Hit, Part
from services.searching.sweeping import WordSweeper
from services.searching.words import Query, folded, query_of, words_in

__all__ = [
    "MAX_HITS",
    "Asked",
    "Found",
    "Hit",
    "Part",
    "Query",
    "WordSweeper",
    "folded",
    "query_of",
    "search_branches",
    "words_in",
]
