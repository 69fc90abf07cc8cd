"""What a user has, found by its words, by its meaning, or by both.

Source: design, performance (traps), benchmarks (B5); spec aventuras, retrieval.
"""

from services.searching.filters import Filter
from services.searching.finding import MAX_HITS, Asked, Found, search_branches
from services.searching.library import (
    MAX_STORIES,
    LibraryAsked,
    LibraryFound,
    search_homes,
    search_library,
)
from services.searching.ranking import Hit, Part
from services.searching.shelves import HOMES, hashes_of_character
from services.searching.sweeping import WordSweeper
from services.searching.texts import BranchTexts, forget_words
from services.searching.words import Query, folded, query_of, words_in

__all__ = [
    "HOMES",
    "MAX_HITS",
    "MAX_STORIES",
    "Asked",
    "BranchTexts",
    "Filter",
    "Found",
    "Hit",
    "LibraryAsked",
    "LibraryFound",
    "Part",
    "Query",
    "WordSweeper",
    "folded",
    "forget_words",
    "hashes_of_character",
    "query_of",
    "search_branches",
    "search_homes",
    "search_library",
    "words_in",
]
