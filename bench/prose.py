"""Sentences of our own for generated trees and stories: plain talk about a lighthouse, in three
scripts.
"""

from __future__ import annotations

import random

_WHO = (
    "the keeper", "her brother", "the harbour master", "an old pilot", "the schoolteacher",
    "a woman from the mainland", "the cook of the ferry", "nobody on the island", "the glazier",
    "a boy with a lantern", "the last tenant", "Mireille", "Josué", "the widow of the bell founder",
)  # fmt: skip
_DID = (
    "counted the ships twice", "left the lamp unlit", "wrote the weather down", "sold the oars",
    "mended the stair with driftwood", "kept a place at the table", "listened for the bell",
    "painted the door the colour of salt", "buried the key under the third step",
    "taught the gulls to wait", "read the letters aloud", "carried the oil up in the dark",
)  # fmt: skip
_WHEN = (
    "before the fog came in", "in the winter of the long ice", "on every seventh night",
    "while the tide was out", "until the road was built", "after the naïve first summer",
    "when the wind stood in the north", "long before I was asked", "the year the wells went dry",
)  # fmt: skip
_THEREFORE = (
    "so the light still turns", "and nobody has asked why", "which is how the story begins",
    "and that is all I know for certain", "though the log says otherwise",
    "and I would do it again", "so we learned to wait", "— and the sea gave nothing back",
)  # fmt: skip
_OTHER = (
    "灯塔看守人在雾来之前数了两遍船。",
    "Маяк горит, пока кто-нибудь помнит дорогу.",
    "“Ask me again when the lamp is lit,” she said.",
    "Il pleuvait déjà; le phare, lui, n’attendait personne.",
)
_ASK = (
    "Why is it that {who} {did} {when}?", "Who told you that {who} {did}?",
    "What happened after {who} {did} {when}?", "Do you believe that {who} {did} {when}?",
    "If {who} {did}, what became of the lamp?",
)  # fmt: skip
_SAY = (
    "{who} {did} {when}, {therefore}.", "{when}, {who} {did}.",
    "They say {who} {did}, {therefore}.", "I remember that {who} {did} {when}.",
)  # fmt: skip
_FIRST = (
    "Aldous", "Brenna", "Corvin", "Delphine", "Ewan", "Fen", "Gudrun", "Halvard", "Isolde", "Jory",
    "Käthe", "Lorcan", "Maud", "Nils", "Orla", "Perrin",
)  # fmt: skip
_LAST = (
    "Ashdown", "Brack", "Cray", "Dunmore", "Eddystone", "Farrow", "Gull", "Harrow", "Inch", "Kelp",
    "Lantern", "Marsh", "Northing", "Oakum", "Pitch", "Quay",
)  # fmt: skip
_PLACES = ("Stair", "Gallery", "Cellar", "Landing", "Yard", "Chapel", "Ropewalk", "Shoal", "Inn")
_THINGS = ("Lamp", "Key", "Ledger", "Oar", "Compass", "Bell", "Coat", "Letter", "Lens", "Knife")
_HOUSES = ("Guild", "Watch", "Brotherhood", "Company", "Parish", "Court")


def question(draw: random.Random) -> str:
    """One question, about 80 characters."""
    return _filled(draw, _ASK)


def answer(draw: random.Random) -> str:
    """Two to six sentences, about 300 characters."""
    sentences = [_filled(draw, _SAY) for _ in range(draw.randint(2, 6))]
    if draw.random() < 0.1:
        sentences.append(draw.choice(_OTHER))
    return " ".join(sentences)


def topic(draw: random.Random) -> str:
    """A line of a few words."""
    return f"How {draw.choice(_WHO)} {draw.choice(_DID)}"


def sentence(draw: random.Random) -> str:
    """One sentence, about 60 characters."""
    return _filled(draw, _SAY)


def foreign(draw: random.Random) -> str:
    """One sentence of another language."""
    return draw.choice(_OTHER)


def person(draw: random.Random) -> str:
    """A name of somebody."""
    return f"{draw.choice(_FIRST)} {draw.choice(_LAST)}"


def place(draw: random.Random) -> str:
    """A name of a place."""
    return f"{draw.choice(_LAST)} {draw.choice(_PLACES)}"


def thing(draw: random.Random) -> str:
    """A name of a thing."""
    return f"{draw.choice(_FIRST)}’s {draw.choice(_THINGS)}"


def house(draw: random.Random) -> str:
    """A name of people who hold together."""
    return f"The {draw.choice(_LAST)} {draw.choice(_HOUSES)}"


def _filled(draw: random.Random, patterns: tuple[str, ...]) -> str:
    text = draw.choice(patterns).format(
        who=draw.choice(_WHO),
        did=draw.choice(_DID),
        when=draw.choice(_WHEN),
        therefore=draw.choice(_THEREFORE),
    )
    return text[0].upper() + text[1:]
