"""Reads character cards (PNG or JSON; V1, V2, V3) into one V3-shaped form.

Pure: bytes in, values out. Nothing here stores, sends or runs what a card holds.
"""

from services.cards.card import Card, CardWarning
from services.cards.reading import read_card

__all__ = ["Card", "CardWarning", "read_card"]
