"""B3 at a small size: what characters are shown is what they have learned."""

from __future__ import annotations

from typing import Any

import pytest
from graphql import build_schema, parse, validate

from bench import awareness, hearsay
from bench.hearsay import Cast, Known
from bench.report import table
from db.settings import PROJECT_ROOT
from tests.bench.results import result

SMALL = Cast(24, characters=5, locations=4, items=4, lore=4)
SCHEMA = build_schema((PROJECT_ROOT / "schema" / "schema.graphql").read_text())


def quietly(_: str) -> None:
    pass


async def test_b3_finds_nothing_unknown_and_misses_nothing_known(dsn: str) -> None:
    """Rules J2, J3, J4, J5, J6, J18."""
    asked = 2 * len(awareness.ASKED_FOR)
    found = await awareness.measure(dsn, 1, quietly, SMALL, asked)
    assert found["questions"] == asked
    assert found["facts_shown"] > 200
    assert list(found["fields"]) == [each.name for each in awareness.questions()]
    assert "0 of them not known, 0 known and not shown" in table(result(B3=found))


def test_every_field_that_takes_a_perspective_is_asked_for() -> None:
    takes = {
        name
        for kind in SCHEMA.type_map.values()
        for name, field in getattr(kind, "fields", {}).items()
        if "perspective" in getattr(field, "args", {})
    }
    assert {each.field for each in awareness.ASKED_FOR} == takes


def test_the_questions_are_of_the_schema() -> None:
    for question in awareness.questions():
        assert validate(SCHEMA, parse(question.document)) == []


@pytest.mark.parametrize(
    ("answer", "figures"),
    [
        ({"nodes": [{"title": "A canary-1"}, {"title": "A canary-2 canary-3"}]}, (3, 0, 0)),
        ({"nodes": [{"title": "A canary-1"}]}, (1, 0, 2)),
        ({"nodes": [{"title": "canary-1 canary-2 canary-3 canary-4"}]}, (4, 1, 0)),
        ({"nodes": []}, (0, 0, 3)),
    ],
)
def test_what_is_unknown_or_missing_is_noticed(answer: Any, figures: tuple[int, int, int]) -> None:
    nothing: frozenset[int] = frozenset()
    known = Known(frozenset({1, 2, 3}), nothing, nothing, nothing, nothing)
    (happenings,) = [each for each in awareness.ASKED_FOR if each.field == "happenings"]
    assert happenings.check(known, answer) == figures


def test_in_a_story_of_hearsay_things_are_learned_in_every_way() -> None:
    heard = hearsay.tell(Cast(60))
    assert set(heard.learned) == {"there", "told", "all-hearing", "common knowledge"}
    first, second = heard.known[-1], hearsay.tell(Cast(60)).known[-1]
    assert list(first.values()) == list(second.values())
    ear, *others = [len(each.happenings) for each in first.values()]
    assert ear > max(others) > 0
