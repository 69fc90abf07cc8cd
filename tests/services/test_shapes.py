"""Undo payloads of JSON: what they hold, and that putting them back is exact."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from services.errors import Invalid
from services.shapes import ShapeError, checked_json, merged, overlay, shape_of, undo_payload
from services.shapes.states import CharacterState

ABSENT: Any = None


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str = Field(default=ABSENT)
    number: int | None


class Sample(BaseModel):
    """One field of each kind that a null can mean something else in."""

    model_config = ConfigDict(extra="forbid")
    leaf: str | None
    object: Inner | None
    optional: str = Field(default=ABSENT)
    optional_object: Inner = Field(default=ABSENT)
    record: dict[str, int] = Field(default=ABSENT)
    items: list[str]


SHAPE = shape_of(Sample)
BASE: dict[str, Any] = {"leaf": None, "object": None, "items": []}
STATES: dict[str, list[dict[str, Any]]] = {
    "leaf": [{"leaf": None}, {"leaf": "a"}, {"leaf": "b"}],
    "object": [
        {"object": None},
        {"object": {"number": 1}},
        {"object": {"number": None, "text": "a"}},
    ],
    "optional": [{}, {"optional": "a"}, {"optional": "b"}],
    "optional_object": [
        {},
        {"optional_object": {"number": None}},
        {"optional_object": {"number": 2, "text": "a"}},
    ],
    "record": [{}, {"record": {}}, {"record": {"gold": 1}}, {"record": {"gold": 2, "oil": 0}}],
    "items": [{"items": []}, {"items": ["a"]}, {"items": ["b", "a"]}],
}
PAIRS = [
    (kind, before, after)
    for kind, states in STATES.items()
    for before, after in itertools.product(states, repeat=2)
]


@pytest.mark.parametrize(("kind", "before", "after"), PAIRS)
def test_a_payload_brings_back_what_was_absent_null_or_there(
    kind: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Rule L4."""
    old, new = {**BASE, **before}, {**BASE, **after}
    payload = undo_payload(old, new, SHAPE)
    assert overlay(new, payload, SHAPE) == old
    assert set(payload) <= {kind}
    assert (payload == {}) == (old == new)


def test_a_payload_holds_the_changed_parts_alone_and_arrays_whole() -> None:
    """Rule L4."""
    before = {**BASE, "object": {"number": 1, "text": "a"}, "items": ["a", "b"], "record": {"x": 1}}
    after = {**BASE, "object": {"number": 1, "text": "b"}, "items": ["a"], "record": {"y": 1}}
    assert undo_payload(before, after, SHAPE) == {
        "object": {"text": "a"},
        "items": ["a", "b"],
        "record": {"x": 1, "y": None},
    }


# What JSON columns are given: no larger numbers are let in.
NUMBERS = st.integers(-(2**53), 2**53)
OBJECTS = st.fixed_dictionaries({"number": st.none() | NUMBERS}, optional={"text": st.text()})
SAMPLES = st.fixed_dictionaries(
    {
        "leaf": st.none() | st.text(),
        "object": st.none() | OBJECTS,
        "items": st.lists(st.text(), max_size=3),
    },
    optional={
        "optional": st.text(),
        "optional_object": OBJECTS,
        "record": st.dictionaries(st.text(max_size=2), NUMBERS, max_size=3),
    },
)


@given(SAMPLES, SAMPLES, SAMPLES)
def test_going_back_step_by_step_ends_where_it_began(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    """Rule L4."""
    back = overlay(third, undo_payload(second, third, SHAPE), SHAPE)
    assert back == second
    assert overlay(back, undo_payload(first, second, SHAPE), SHAPE) == first


def test_numbers_and_truths_that_look_alike_are_not_the_same() -> None:
    """Rule L4."""
    assert undo_payload({**BASE, "items": [1]}, {**BASE, "items": [True]}, SHAPE) == {"items": [1]}


def test_models_with_which_undo_would_be_ambiguous_are_refused() -> None:
    """Rule L5."""

    class Both(BaseModel):
        field: str | None = None

    class NullableValues(BaseModel):
        field: dict[str, int | None]

    for model in (Both, NullableValues):
        with pytest.raises(ShapeError, match=r"field"):
            shape_of(model)


def test_a_patch_changes_what_it_names() -> None:
    state = {
        "visual": {"hair": "red"},
        "traits": ["brave"],
        "drives": [],
        "current_location_id": None,
        "equipped_items": [],
        "inventory": [],
        "faction_id": None,
        "lastSeenAt": None,
        "voice": "low",
    }
    patch = {"visual": {"eyes": "grey"}, "voice": None, "traits": []}
    assert merged(CharacterState, state, patch) == {
        **{key: value for key, value in state.items() if key != "voice"},
        "visual": {"hair": "red", "eyes": "grey"},
        "traits": [],
    }


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        ({"colour": "red"}, ("state", "colour")),
        ({"visual": {"hair": 1}}, ("state", "visual", "hair")),
        ({"stackables": {"gold": -1}}, ("state", "stackables", "gold")),
        ({"traits": ["x"] * 51}, ("state", "traits")),
        ([], ("state",)),
    ],
)
def test_a_patch_that_does_not_fit_is_told_where(patch: Any, path: tuple[str, ...]) -> None:
    state = {
        "visual": {},
        "traits": [],
        "drives": [],
        "current_location_id": None,
        "equipped_items": [],
        "inventory": [],
        "faction_id": None,
        "lastSeenAt": None,
    }
    with pytest.raises(Invalid) as refusal:
        merged(CharacterState, state, patch, "state")
    assert refusal.value.code == "INVALID_SHAPE"
    assert refusal.value.path[: len(path)] == path


def test_what_is_checked_is_kept_as_it_came() -> None:
    class Loose(BaseModel):
        count: Annotated[int, Field(ge=0)] = 3

    assert checked_json(Loose, {}) == {}
    with pytest.raises(Invalid):
        checked_json(Loose, {"count": "3"})
