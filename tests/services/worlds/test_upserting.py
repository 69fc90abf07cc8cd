from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.enums import WorldEntityKind
from services import worlds
from services.errors import Invalid
from services.worlds import NewEntity, NewRelation
from tests.services.worlds.made import CHARACTER, LOCATION, Made, made

__all__ = ["made"]


def entity(key: str, name: str, kind: WorldEntityKind = CHARACTER, **values: Any) -> NewEntity:
    return NewEntity(key, {"kind": kind, "name": name, **values})


async def put(
    made: Made, entities: list[NewEntity], relations: list[NewRelation] | None = None
) -> Any:
    done = await made.change(worlds.upsert, made.id, entities, relations or [])
    return (
        {each.key: each.id for each in done.ids},
        astuple(done.entities),
        astuple(done.relations),
    )


async def test_what_is_there_is_found_by_kind_and_name_then_by_aliases(made: Made) -> None:
    """Rule O8."""
    await made.add("Mira", aliases=["The Grey"])
    await made.add("Quay", LOCATION)
    await made.add("Odo", description="Old.", sources=["ch. 1"])
    ids, counts, ties = await put(
        made,
        [
            entity("m", "MÍRA", aliases=["Mi"]),
            entity("o", "The Odo", aliases=["odo"], description="Young.", sources=["ch. 2"]),
            entity("q", "quay"),
            entity("l", "quay", LOCATION),
        ],
        [
            NewRelation("m", "o", {"kind": "knows", "weight": 2.0, "sources": ["ch. 2"]}),
            NewRelation("o", "m", {"kind": "knows", "is_directed": True}),
        ],
    )
    assert (ids["m"], ids["o"], ids["l"]) == tuple(made.ids[n] for n in ("Mira", "Odo", "Quay"))
    assert (counts, ties) == ((1, 2, 1), (2, 0, 0))
    assert await made.aliases("Mira") == ["The Grey", "Mi"]
    assert await made.aliases("Odo") == ["The Odo"]
    odo = (await made.entities(search="odo"))[0]
    assert (odo.name, odo.description, odo.sources) == ("Odo", "Young.", ["ch. 1", "ch. 2"])
    # An alias is enough, and a kind of its own is another one.
    again, counts, _ = await put(made, [entity("x", "the grey"), entity("y", "Quay")])
    assert (again, counts) == ({"x": made.ids["Mira"], "y": ids["q"]}, (0, 0, 2))


async def test_relations_are_changed_by_what_is_given(made: Made) -> None:
    """Rules O8, O5."""
    both = [entity("a", "Mira"), entity("b", "Odo")]
    await put(made, both, [NewRelation("a", "b", {"kind": "knows", "sources": ["1"]})])
    changed = NewRelation("a", "b", {"kind": "knows", "label": "well", "sources": ["2"]})
    assert (await put(made, both, [changed]))[2] == (0, 1, 0)
    assert (await put(made, both, [changed]))[2] == (0, 0, 1)
    (row,) = await made.relations()
    assert (row.label, row.sources, row.version) == ("well", ["1", "2"], 2)


@pytest.mark.parametrize(
    ("entities", "relations", "refused"),
    [
        ([entity("a", "A"), entity("a", "B")], [], ("KEY_TAKEN", ("entities", 1, "key"))),
        ([entity("a", "A"), entity("b", "á")], [], ("SAME_ENTITY", ("entities", 1, "name"))),
        ([entity("a", "Twin")], [], ("NAME_AMBIGUOUS", ("entities", 0, "name"))),
        ([entity("a", "New"), entity("b", " ")], [], ("TEXT_EMPTY", ("entities", 1, "name"))),
        (
            [entity("a", "New")],
            [NewRelation("a", "z", {"kind": "knows"})],
            ("KEY_UNKNOWN", ("relations", 0, "targetKey")),
        ),
        (
            [entity("a", "New"), entity("b", "Newer")],
            [NewRelation("a", "b", {"kind": "is", "weight": -1.0})],
            ("OUT_OF_RANGE", ("relations", 0, "weight")),
        ),
        (
            [entity("a", "New"), entity("b", "Newer")],
            [NewRelation("a", "b", {"kind": "is"})] * 2,
            ("DUPLICATE", ("relations", 1)),
        ),
        (
            [entity("a", "New")],
            [NewRelation("a", "a", {"kind": "is"})],
            ("SAME_ENTITY", ("relations", 0, "targetKey")),
        ),
        ([entity(str(n), str(n)) for n in range(1_001)], [], ("LIMIT_REACHED", ("entities",))),
    ],
)
async def test_all_of_it_is_refused_where_anything_is(
    made: Made, entities: Any, relations: Any, refused: tuple[str, tuple[Any, ...]]
) -> None:
    """Rules O8, O9."""
    await made.add("Twin")
    await made.add("twin")
    code, path = refused
    assert await made.refusal(worlds.upsert, made.id, entities, relations) == (
        code,
        ("input", *path),
    )


async def test_nobody_gets_a_name_by_which_another_of_the_same_call_is_found(made: Made) -> None:
    """Rules O8, O9."""
    await put(made, [entity("m", "Mira", aliases=["Ana"])])
    both = [entity("a", "Ana"), entity("o", "Odo", aliases=["Ana"])]
    assert await made.refusal(worlds.upsert, made.id, both, []) == (
        "NAME_AMBIGUOUS",
        ("input", "entities", 0, "name"),
    )


NAMES = st.sampled_from(["Mira", "mira", "Odo", "Ana", "長卿", "相如"])


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=2)), max_size=4))
async def test_twice_is_as_good_as_once(made: Made, wanted: list[tuple[str, list[str]]]) -> None:
    """Rule O9."""
    named = {worlds.name_key(name): (name, aliases) for name, aliases in wanted}
    given_now = [
        entity(str(place), name, aliases=aliases)
        for place, (name, aliases) in enumerate(named.values())
    ]
    try:
        ids, _, _ = await put(made, given_now)
    except Invalid:
        return
    state = await made.state()
    again, counts, _ = await put(made, given_now)
    assert (again, counts) == (ids, (0, 0, len(given_now)))
    assert await made.state() == state
