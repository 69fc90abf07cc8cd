"""Names: which are alike."""

from __future__ import annotations

import pytest

from services.entities.names import Likeness, folded, likeness, with_names

NONE, PARTIAL, EXACT = Likeness.NONE, Likeness.PARTIAL, Likeness.EXACT


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        ("Mira", " mira ", EXACT),
        ("Mira  Voss", "mira voss", EXACT),
        ("Élodie", "E\u0301lodie", EXACT),
        ("Élodie", "ELODIE", EXACT),
        ("Йен", "йен", EXACT),
        ("Mira", "Mira Voss", PARTIAL),
        ("Captain Mira Voss", "Mira Voss", PARTIAL),
        ("Captain Voss", "Captain Mira Voss", NONE),
        ("Mira", "Miranda", NONE),
        ("ミラ", "ミラ", EXACT),
        # Without spaces a name is one word.
        ("\u7530\u4e2d", "\u7530\u4e2d\u6b63\u592b", NONE),
        ("ガ", "カ", NONE),
    ],
)
def test_names_are_compared_by_whole_words(name: str, other: str, expected: Likeness) -> None:
    """Rule U16."""
    assert likeness(name, [], other, []) is expected
    assert likeness(other, [], name, []) is expected


def test_another_name_of_one_makes_two_alike() -> None:
    """Rule U16."""
    assert likeness("Mira", ["the Lamplighter"], "The lamplighter", []) is PARTIAL
    assert likeness("The lamplighter", [], "Mira", ["the Lamplighter"]) is PARTIAL
    assert likeness("Mira", ["the Lamplighter"], "Odo", ["the Lamplighter"]) is NONE


def test_names_are_folded_without_losing_letters() -> None:
    """Rule U16."""
    found = [folded(each) for each in ("Ärger", "ﬁn", "が", "ÇA", "नि")]
    assert found == ["arger", "fin", "か\u3099", "ca", "नि"]


def test_more_names_are_added_once() -> None:
    """Rule U19."""
    names = with_names(["Mira V."], "MIRA", "Miri", "mira v.", "miri", " ", beside="Mira")
    assert names == ["Mira V.", "Miri"]
