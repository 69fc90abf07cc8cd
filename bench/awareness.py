"""B3: a character's perspective shows all that it has learned and nothing else: whatever takes a
perspective is asked for as characters of a story of hearsay, at entries and at the present.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench import hearsay, stories
from bench.figures import p95
from bench.hearsay import Cast, Known
from bench.leaks import WIDE, Question, Writer, answer_of, marks_in
from bench.servers import serving
from bench.stage import Json, Say, milliseconds, staged
from db.enums import LoggedTable

ASKED = 600
_MOST_FOUND = 100
_NOTHING: frozenset[int] = frozenset()


def _graph_of(known: Known) -> frozenset[int]:
    return known.happenings | known.entities | known.ties


def _found_of(known: Known) -> frozenset[int]:
    return known.happenings | known.entities | known.lore


@dataclass(frozen=True, slots=True)
class Asked:
    """A field that takes a perspective: how it is asked for and how deep, what it may show, and
    what it must show; `most` is how much it can. What lies deeper is the whole row (graphs.md,
    J18), and no perspective is asked for there.
    """

    field: str
    call: str
    depth: int
    may: Callable[[Known], frozenset[int]]
    must: Callable[[Known], frozenset[int]] = lambda _: _NOTHING
    most: int = 1_000_000
    name: str = ""

    def check(self, known: Known, answer: Json) -> tuple[int, int, int]:
        """How many facts an answer shows, how many of them are not known, and how many that are
        known are missing.
        """
        shown = {mark for _, mark in marks_in(answer)}
        must = self.must(known)
        missed = must - shown if len(must) <= self.most else _NOTHING
        return len(shown), len(shown - self.may(known)), len(missed)


_VARIABLES = {"$who": "ID", "$asOf": "AsOfInput", "$from": "ID!", "$to": "ID!"}
_WHO = "perspective: $who, asOf: $asOf"
_SEARCH = f'search(text: "canary", mode: KEYWORD, first: {_MOST_FOUND}, {_WHO}'
ASKED_FOR = (
    Asked(
        "happenings",
        f"happenings(first: 200, {_WHO})",
        0,
        lambda known: known.happenings,
        lambda known: known.happenings,
        200,
    ),
    Asked(
        "lore", f"lore(first: 200, {_WHO})", 0, lambda known: known.lore, lambda known: known.lore
    ),
    Asked("graph", f"graph(first: 1000, {_WHO})", 0, _graph_of, _graph_of),
    Asked(
        "graph",
        f"graph(around: [$from], depth: 6, first: 1000, {_WHO})",
        0,
        _graph_of,
        name="graph around",
    ),
    Asked("paths", f"paths(from: $from, to: $to, first: 20, {_WHO})", 0, _graph_of),
    Asked("communities", f"communities(first: 200, {_WHO})", 1, _graph_of),
    Asked(
        "centrality",
        f"centrality(by: DEGREE, first: 200, {_WHO})",
        1,
        _graph_of,
        lambda known: known.happenings | known.entities,
        200,
    ),
    Asked(
        "search",
        f"{_SEARCH}, kinds: [HAPPENING, ENTITY, LORE])",
        1,
        _found_of,
        _found_of,
        _MOST_FOUND,
    ),
    Asked(
        "search",
        f"{_SEARCH}, kinds: [ENTRY])",
        1,
        lambda known: known.entries,
        lambda known: known.entries,
        _MOST_FOUND,
        "search, entries",
    ),
    Asked(
        "neighbours",
        "entities(first: 200, asOf: $asOf) { nodes { neighbours(first: 200, perspective: $who)",
        0,
        _graph_of,
        lambda known: known.ties,
    ),
)


def questions() -> dict[Question, Asked]:
    """The documents, each with what it may show."""
    writer = Writer()
    fields = {**writer.fields_of("StoryEntity"), **writer.fields_of("Branch")}
    return {
        writer.question(
            each.name or each.field,
            fields[each.field],
            each.call,
            each.depth,
            ", ".join(f"{name}: {kind}" for name, kind in _VARIABLES.items() if name in each.call),
        ): each
        for each in ASKED_FOR
    }


async def measure(
    dsn: str, _rounds: int, say: Say, cast: Cast | None = None, asked: int = ASKED
) -> Json:
    """B3, on a migrated database: `asked` characters and moments by chance, and for each one of the
    fields in turn, with the perspective and without; once, however many rounds the others have.
    Raises RuntimeError where something is shown that is not known, or known and not shown.
    """
    heard = hearsay.tell(cast or Cast())
    async with staged(dsn) as stage:
        await stories.put(stage.database, heard.told, "What everybody heard")
    branch_id, entries = heard.told.branch_id, heard.told.entries
    rows = heard.told.ledger.rows
    ends = [*rows[LoggedTable.HAPPENINGS], *rows[LoggedTable.ENTITIES]]
    gc.collect()
    draw = random.Random(0)
    shown = 0
    times: dict[str, dict[str, list[float]]] = {}
    async with serving(WIDE, dsn) as server:
        in_turn = list(questions().items())
        for number in range(asked):
            if number % 20 == 0:
                say(f"B3, {number:,} of {asked:,}")
            question, field = in_turn[number % len(in_turn)]
            # The present has statements of its own.
            is_past = draw.random() < 0.5
            position = draw.randint(1, len(entries)) if is_past else len(entries)
            character = draw.choice(list(heard.known[0]))
            variables = {
                "id": branch_id,
                "asOf": {"entryId": entries[position - 1]} if is_past else None,
                "from": character,
                "to": draw.choice(ends),
            }
            for who in (character, None):
                began = time.perf_counter()
                answer = await answer_of(server, question.body(who=who, **variables))
                side = "of_one" if who else "of_all"
                taken = times.setdefault(question.name, {"of_one": [], "of_all": []})
                taken[side].append(time.perf_counter() - began)
                if who is not None:
                    known = heard.known[position - 1][character]
                    facts, unknown, missed = field.check(known, answer)
                    shown += facts
                    if unknown or missed:
                        raise RuntimeError(
                            f"{question.name} as of entry {position} shows {character} {unknown} "
                            f"facts that it does not know, and not {missed} that it knows"
                        )
    return {
        "entries": len(entries),
        "happenings": len(rows[LoggedTable.HAPPENINGS]),
        "characters": len(heard.known[0]),
        "learned": dict(heard.learned),
        "questions": asked,
        "facts_shown": shown,
        "facts_shown_but_unknown": 0,
        "facts_known_but_not_shown": 0,
        "fields": {
            name: {
                **{side: milliseconds(each) for side, each in sides.items()},
                "p95_vs_unfiltered": round(p95(sides["of_one"]) / p95(sides["of_all"]), 3),
            }
            for name, sides in times.items()
        },
    }
