"""W4 and B8: walks and paths over the graphs of branches and worlds, as the services make them and
as a client sees them, against networkx and against bare statements.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import orjson

from bench import communities, tied
from bench.bars import Bars, bars_of_branch, bars_of_worlds
from bench.servers import MIRRORGRAPH, Served, serving
from bench.stage import (
    Json,
    Say,
    Stage,
    against_bare,
    in_turn,
    milliseconds,
    seconds,
    staged,
    undisturbed,
)
from bench.tied import HAPPENING, Put
from db.enums import EdgeKind, EntityKind, TruncationReason
from db.reading import Reading
from services.graphs import (
    MAX_DEPTH,
    MAX_NODES,
    BranchSource,
    EdgeSource,
    Walk,
    Wanted,
    find_paths,
    source_of,
    walk,
)
from services.worlds import WorldSource

DEPTH = 3
# No walk may take longer: servers end a statement then (settings, statement_timeout).
MOST_SECONDS = 30.0
_BAR_STARTS = 5
_PATHS = 3
_WARM_UP = 6
# Depth and nodes of what a client asks for.
_ASKED = (4, MAX_NODES)


@dataclass(frozen=True, slots=True)
class Size:
    """How large the graphs are; of the hub and the chain, how many nodes they have."""

    attached: tuple[int, ...] = (2_000, 20_000)
    hub: int = 5_001
    chain: int = 10_000
    cliques: int = 100
    depths: Sequence[int] = range(1, MAX_DEPTH + 1)
    # How many walks of each depth, pairs of nodes for paths, and requests to a server.
    starts: int = 20
    pairs: int = 10
    requests: int = 20
    # How many seconds a bare statement may take.
    patience: float = 2.0


@dataclass(slots=True)
class Ground:
    """A graph to walk over, and what is true of it."""

    name: str
    source: EdgeSource
    put: Put
    # By the names of the nodes, without directions.
    truth: nx.Graph
    is_hub: bool = False
    bars: Bars | None = None
    patience: float = 0.0

    def expected(self, start: str, depth: int, first: int) -> list[tuple[str, int]]:
        """The nodes around one with their distances, in order."""
        lengths = nx.single_source_shortest_path_length(self.truth, start, cutoff=depth)
        return sorted(lengths.items(), key=lambda each: (each[1], each[0]))[:first]

    def check(self, start: str, depth: int, first: int, found: Walk) -> None:
        """Raise RuntimeError where a walk has not found what there is, or does not say so."""
        shown = [(each.node.id, each.distance) for each in found.nodes]
        wanted = self.expected(start, depth, first + 1)
        what = f"a walk of depth {depth} over {self.name}"
        if len(shown) > first:
            raise RuntimeError(f"{what} has more nodes than were asked for")
        if found.truncated_by == TruncationReason.HUB:
            # Not all of a hub is read: what was found is there, but there may be nearer nodes.
            lengths = nx.single_source_shortest_path_length(self.truth, start, cutoff=depth)
            is_right = all(lengths.get(name, MAX_DEPTH) <= (at or 0) for name, at in shown)
        else:
            is_right = shown == wanted[:first]
            is_right &= (found.truncated_by is not None) == (len(wanted) > first)
            among = self.truth.subgraph([name for name, _ in shown])
            pairs = {frozenset((each.source, each.target)) for each in found.edges}
            is_right &= pairs == {frozenset(each) for each in among.edges}
        if not is_right:
            raise RuntimeError(f"{what} from {start} differs from networkx")


def _truth(names: Sequence[str], pairs: Sequence[Sequence[int]]) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[one], names[other]) for one, other, *_ in pairs if one != other)
    return graph


async def measure(
    dsn: str, rounds: int, say: Say, count: int = 10_000, edges: int = 50_000, starts: int = 10
) -> Json:
    """W4, on a migrated database: the neighbourhoods of the same entities in each round, with all
    relations between what is found, and what bare statements take for the same rows.
    """
    async with staged(dsn) as stage:
        put = await tied.put_world(stage, count, tied.strewn(count, edges))
        bars = bars_of_worlds(stage.bare)
        chance = random.Random(1)
        begin = chance.sample(put.names, starts)
        async with stage.database.reading() as reading:
            source = WorldSource(reading, stage.viewer)

            async def ours() -> None:
                for start in begin:
                    await walk(source, [[start]], Wanted(), depth=DEPTH, first=MAX_NODES)

            async def theirs() -> None:
                for start in begin:
                    await bars.neighbourhood(start, DEPTH, MAX_NODES)

            found = []
            for start in begin:
                (walked,) = await walk(source, [[start]], Wanted(), depth=DEPTH, first=MAX_NODES)
                nodes, relations = await bars.neighbourhood(start, DEPTH, MAX_NODES)
                shown = [(each.node.id, each.distance) for each in walked.nodes]
                among = [each.id for each in walked.edges]
                if shown != [(row["id"], row["distance"]) for row in nodes]:
                    raise RuntimeError("the walk and the bare statement find different entities")
                if among != [row["id"] for row in relations]:
                    raise RuntimeError("the walk and the bare statement find different relations")
                found.append((len(shown), len(among)))
            times: dict[Any, list[float]] = {ours: [], theirs: []}
            with undisturbed():
                for number in range(rounds):
                    say(f"W4, round {number + 1} of {rounds}")
                    for side in in_turn(number, ours, theirs):
                        times[side].append(await seconds(side()) / starts)
    return {
        "entities": count,
        "relations": edges,
        "nodes_found": sum(nodes for nodes, _ in found) / starts,
        "edges_found": sum(each for _, each in found) / starts,
        **against_bare(times[ours], times[theirs]),
    }


async def measure_grid(dsn: str, _rounds: int, say: Say, size: Size | None = None) -> Json:
    """B8, on a migrated database; once, however many rounds the others have. Raises RuntimeError
    where a walk or a path is not what networkx finds, or takes too long.
    """
    size = size or Size()
    async with staged(dsn) as stage:
        say("B8, putting the graphs")
        made = await _made(stage, size)
        async with stage.database.reading() as reading:
            grounds = [await make(reading) for make in made]
            with undisturbed():
                walks = {each.name: await _walks(each, size, say) for each in grounds}
                whole = [each for each in grounds if not each.is_hub]
                paths = {each.name: await _paths(each, size, say) for each in whole}
        largest = [each for each in grounds if each.name.startswith("attached")][-2:]
        requests: Json = {}
        if size.requests:
            async with serving(MIRRORGRAPH, dsn) as server:
                for each in largest:
                    requests[each.name] = await _requests(server, each, size.requests, say)
    return {"walks": walks, "paths": paths, "requests": requests}


_Make = Callable[[Reading], Awaitable[Ground]]


async def _made(stage: Stage, size: Size) -> list[_Make]:
    """The graphs in the database, ready to be walked over with a connection. The last two that are
    `attached` are the largest of a branch and of a world.
    """
    made: list[_Make] = []

    async def in_branch(name: str, graph: tied.Graph, *, is_hub: bool = False) -> Put:
        put = await tied.put_branch(stage, graph, seed=len(made))
        truth = _truth(put.names, graph.pairs)

        async def make(reading: Reading) -> Ground:
            bars = await bars_of_branch(stage.bare, put.id, truth.edges)
            source = BranchSource(reading, stage.viewer)
            return Ground(f"{name}, branch", source, put, truth, is_hub, bars, size.patience)

        made.append(make)
        return put

    async def in_world(name: str, count: int, pairs: Any, *, is_hub: bool = False) -> None:
        put = await tied.put_world(stage, count, pairs, weight=_weight, seed=len(made))
        truth = _truth(put.names, pairs)
        for place, (one, other, *_) in enumerate(pairs):
            if one != other:
                edge = truth.edges[put.names[one], put.names[other]]
                edge["cost"] = min(1 / _weight(place), edge.get("cost", 1.0))

        async def make(reading: Reading) -> Ground:
            source = WorldSource(reading, stage.viewer)
            bars = bars_of_worlds(stage.bare)
            return Ground(f"{name}, world", source, put, truth, is_hub, bars, size.patience)

        made.append(make)

    ring = tied.cliques(size.cliques, 20)
    for name, count, pairs, is_hub in (
        ("hub", size.hub, communities.hub(size.hub), True),
        ("chain", size.chain, communities.chain(size.chain), False),
        ("cliques", size.cliques * 20, ring, False),
    ):
        await in_branch(name, tied.characters(count, pairs), is_hub=is_hub)
        await in_world(name, count, pairs, is_hub=is_hub)
    for count in size.attached:
        mixture = tied.mixed(count, 4)
        put = await in_branch(f"attached {count:,}", mixture)
        if count == size.attached[-1]:
            made.append(_known(stage, mixture, put))
            made.append(await _held(stage, count))
        await in_world(f"attached {count:,}", count, communities.attached(count, 4))
    return made


def _weight(place: int) -> float:
    """Of a relation by its place."""
    return 1.0 + place % 3


async def _held(stage: Stage, count: int) -> _Make:
    """A world of which every other relation holds at the moment that is asked for."""
    pairs = communities.attached(count, 4)

    def interval(place: int) -> tuple[int | None, int | None]:
        return [(None, None), (0, 500), (500, None), (501, None)][place % 4]

    put = await tied.put_world(stage, count, pairs, interval=interval, seed=count)
    truth = _truth(put.names, [each for place, each in enumerate(pairs) if place % 4 in (0, 2)])

    async def make(reading: Reading) -> Ground:
        source = WorldSource(reading, stage.viewer, valid_at=500)
        return Ground("held at a moment, world", source, put, truth)

    return make


def _known(stage: Stage, graph: tied.Graph, put: Put) -> _Make:
    """What that character of a branch knows which is tied to most."""
    degrees: dict[int, int] = {}
    for one, other in graph.pairs:
        for each in (one, other):
            degrees[each] = degrees.get(each, 0) + (graph.kinds[each] == EntityKind.CHARACTER)
    character = max(degrees, key=lambda each: degrees[each])
    nodes, pairs = known_by(graph, character)
    names = [put.names[each] for each in nodes]
    place = {each: number for number, each in enumerate(nodes)}
    truth = _truth(names, [(place[one], place[other]) for one, other in pairs])

    async def make(reading: Reading) -> Ground:
        perspective = put.names[character]
        source = await source_of(reading, stage.viewer, put.id, None, perspective)
        return Ground("known to a character, branch", source, replace(put, names=names), truth)

    return make


def known_by(graph: tied.Graph, character: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The nodes and edges that a character knows of (graphs.md, J1 to J4 and J18)."""
    kind = EdgeKind
    own = [each for each in graph.edges if each[1] == character]
    around = {source: target for what, source, target in graph.edges if what is kind.CONTAINMENT}
    at = {source: target for what, source, target in graph.edges if what is kind.POSITION}
    beside = {character} | {each for each in at if character in at and at[each] == at[character]}
    learned = {target for what, _, target in own if what is kind.AWARENESS}
    known = beside | learned
    known |= {target for what, _, target in own if graph.kinds[target] != HAPPENING}
    known |= {
        source
        for what, source, target in graph.edges
        if what is kind.INVOLVEMENT and target in learned
    }
    place = at.get(character)
    while place is not None:
        known.add(place)
        place = around.get(place)
    pairs = []
    for what, source, target in graph.edges:
        if source in known and target in known:
            is_seen = what in (kind.INVOLVEMENT, kind.CONTAINMENT) or source == character
            if is_seen or (what is kind.POSITION and source in beside):
                pairs.append((source, target))
    return sorted(known), pairs


async def _walks(ground: Ground, size: Size, say: Say) -> Json:
    """Walks of every depth, each checked, and what the bars take from some of the nodes."""
    names = ground.put.names
    begin = random.Random(3).choices(names, k=size.starts)
    if ground.is_hub:
        begin[0] = names[0]
    found: Json = {}
    # Bars that somebody has waited for in vain, and which would take longer still.
    given_up: set[str] = set()
    for depth in size.depths:
        say(f"B8, {ground.name}, depth {depth}")
        times, truncated, shown = [], 0, 0
        warm_up = begin[:_WARM_UP] if depth == size.depths[0] else []
        for number, start in enumerate([*warm_up, *begin]):
            began = time.perf_counter()
            (walked,) = await walk(ground.source, [[start]], Wanted(), depth=depth, first=MAX_NODES)
            taken = time.perf_counter() - began
            ground.check(start, depth, MAX_NODES, walked)
            if taken > MOST_SECONDS:
                raise RuntimeError(f"a walk over {ground.name} takes {taken:.0f} s")
            if number >= len(warm_up):
                times.append(taken)
                truncated += walked.truncated_by is not None
                shown = max(shown, len(walked.nodes))
        if ground.is_hub and depth > 1 and truncated != len(begin):
            raise RuntimeError("a walk that comes to a hub does not say that there is more")
        found[str(depth)] = {**milliseconds(times), "truncated": truncated, "most_nodes": shown}
        found[str(depth)] |= await _bars(ground, begin[:_BAR_STARTS], depth, given_up)
    return {
        "nodes": ground.truth.number_of_nodes(),
        "edges": ground.truth.number_of_edges(),
        "depths": found,
    }


async def _bars(ground: Ground, starts: Sequence[str], depth: int, given_up: set[str]) -> Json:
    """How long the bare statements take from these nodes. Raises RuntimeError where they do not
    find what there is.
    """
    bars = ground.bars
    if bars is None:
        return {}
    times: dict[str, list[float]] = {}
    for start in starts:
        expected = ground.expected(start, depth, MAX_NODES)
        for name, ask in (("by_level", bars.by_level), ("by_paths", bars.by_paths)):
            if name in given_up:
                continue
            began = time.perf_counter()
            rows = await ask(start, depth, MAX_NODES, ground.patience)
            if rows is None:
                given_up.add(name)
            elif [tuple(row) for row in rows] != expected:
                raise RuntimeError(f"a bare statement over {ground.name} differs from networkx")
            times.setdefault(name, []).append(time.perf_counter() - began)
    return {
        name: milliseconds(each) | {"given_up": name in given_up} for name, each in times.items()
    }


async def _paths(ground: Ground, size: Size, say: Say) -> Json:
    """Shortest paths between nodes by chance, and cheapest ones where edges have weights."""
    say(f"B8, {ground.name}, paths")
    chance = random.Random(4)
    times: dict[str, list[float]] = {"shortest": [], "cheapest": []}
    for _ in range(size.pairs):
        ends = tuple(chance.sample(ground.put.names, 2))
        began = time.perf_counter()
        (found,) = await find_paths(
            ground.source, [(ends[0], ends[1])], Wanted(), max_depth=MAX_DEPTH, first=_PATHS
        )
        times["shortest"].append(time.perf_counter() - began)
        if found is None or any(each.is_cut for each in found):
            continue
        if [each.length for each in found] != _lengths(ground.truth, *ends):
            raise RuntimeError(f"the shortest paths of {ground.name} differ from networkx's")
    if any("cost" in data for _, _, data in itertools.islice(ground.truth.edges(data=True), 1)):
        for _ in range(size.pairs // 2):
            ends = tuple(chance.sample(ground.put.names, 2))
            began = time.perf_counter()
            (found,) = await find_paths(
                ground.source,
                [(ends[0], ends[1])],
                Wanted(),
                max_depth=30,
                first=1,
                is_weighted=True,
            )
            times["cheapest"].append(time.perf_counter() - began)
            if found and not found[0].is_cut:
                cost = nx.shortest_path_length(ground.truth, *ends, weight="cost")
                if abs(found[0].cost - cost) > 1e-9:
                    raise RuntimeError(f"the cheapest path of {ground.name} differs")
    return {name: milliseconds(each) for name, each in times.items() if each}


def _lengths(truth: nx.Graph, start: str, end: str) -> list[int]:
    """The lengths of the shortest paths that are short enough."""
    if not nx.has_path(truth, start, end):
        return []
    paths = nx.shortest_simple_paths(truth, start, end)
    lengths = [len(each) - 1 for each in itertools.islice(paths, _PATHS)]
    return [each for each in lengths if each <= MAX_DEPTH]


# Of a branch or a world.
DOCUMENT = """
query Walk($id: ID!, $around: [ID!], $depth: Int!, $first: Int!) { %s(id: $id) {
  graph(around: $around, depth: $depth, first: $first) {
    nodes { id kind label distance } edges { id kind label source target } truncated truncatedBy
  } } }
"""


async def _requests(server: Served, ground: Ground, count: int, say: Say) -> Json:
    """What a client waits for a walk."""
    say(f"B8, {ground.name}, requests")
    depth, first = _ASKED
    what = "world" if isinstance(ground.source, WorldSource) else "branch"
    given = {"id": ground.put.id, "depth": depth, "first": first}
    times = []
    for start in random.Random(3).choices(ground.put.names, k=_WARM_UP + count):
        variables = {**given, "around": [start]}
        body = orjson.dumps({"query": DOCUMENT % what, "variables": variables})
        began = time.perf_counter()
        answer: Any = await server.answer(body)
        times.append(time.perf_counter() - began)
        nodes = answer["data"][what]["graph"]["nodes"]
        if not nodes or nodes[0]["id"] != start:
            raise RuntimeError(f"a server answers otherwise: {str(answer)[:500]}")
    return {"depth": depth, "first": first, **milliseconds(times[_WARM_UP:])}
