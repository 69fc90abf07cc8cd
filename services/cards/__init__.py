"""Reads and writes character cards (PNG, JSON, CharX; V1, V2, V3) and lorebooks.

Pure: bytes in, values out; values in, bytes out. Nothing here stores, sends or runs what a card
holds.
"""

from services.cards.assets import find_picture
from services.cards.card import PICTURE_PATH, Card, CardFile, CardWarning
from services.cards.lore_reading import read_lorebook, read_lorebook_file
from services.cards.lore_writing import LorebookTarget, write_lorebook, write_lorebook_file
from services.cards.lorebook import Lorebook, LoreEntry, Recursion, is_pattern
from services.cards.media import media_type_of
from services.cards.reading import read_card
from services.cards.writing import CardTarget, write_card

__all__ = [
    "PICTURE_PATH",
    "Card",
    "CardFile",
    "CardTarget",
    "CardWarning",
    "LoreEntry",
    "Lorebook",
    "LorebookTarget",
    "Recursion",
    "find_picture",
    "is_pattern",
    "media_type_of",
    "read_card",
    "read_lorebook",
    "read_lorebook_file",
    "write_card",
    "write_lorebook",
    "write_lorebook_file",
]
