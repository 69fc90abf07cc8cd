"""Estimates how many tokens a model makes of a text, whichever model it is. Pure.

Counted are quarters of a token: one for an ASCII letter or blank, two for any other ASCII
character and for each character of two bytes in UTF-8 (accented Latin, Greek, Cyrillic, Arabic),
four for each longer one (Chinese, Japanese, Korean, most other scripts, signs). English comes to
about four characters a token, Chinese to one.

Models cut text into pieces of one byte or more, so they never make more tokens than it has bytes,
and that is never more than UNDERESTIMATE times what is said here.
"""

from __future__ import annotations

import string

# By how much an estimate can be too low for the worst of texts; for prose it is about right.
UNDERESTIMATE = 4
# What a message costs beside its text: its role and its end.
MESSAGE_TOKENS = 4

_LIGHT = (string.ascii_letters + " \n").encode()
_ASCII = bytes(range(0x80))
# Every byte behind the first one of a character.
_TAILS = bytes(range(0x80, 0xC0))
_HEADS_OF_TWO = bytes(range(0xC0, 0xE0))


def estimate_tokens(text: str) -> int:
    """About how many tokens the text is; 0 for an empty one. Never less for a longer text."""
    # Counted by deleting, which takes a few milliseconds for a megabyte.
    whole = text.encode("utf-8", "replace")
    heavier = whole.translate(None, _LIGHT)
    beyond_ascii = heavier.translate(None, _ASCII + _TAILS)
    longer = beyond_ascii.translate(None, _HEADS_OF_TWO)
    light = len(whole) - len(heavier)
    other_ascii = len(heavier) - len(heavier.translate(None, _ASCII))
    quarters = light + 2 * other_ascii + 2 * (len(beyond_ascii) - len(longer)) + 4 * len(longer)
    return -(-quarters // 4)
