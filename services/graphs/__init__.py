"""Branches and worlds as graphs: walks, paths, neighbours.

Source: design, api (one graph).
"""

from services.graphs.analyst import Analyst
from services.graphs.beginnings import entries_of_edges
from services.graphs.edges import BranchSource, source_of
from services.graphs.figures import (
    MAX_ITERATIONS,
    MAX_MEMBERS,
    MAX_SHOWN,
    Centrality,
    Communities,
    Community,
    WholeGraph,
    centrality_of_graphs,
    communities_of_graphs,
    whole_graphs,
)
from services.graphs.paths import MAX_PARALLEL, MAX_PATH_DEPTH, MAX_PATHS, Path, find_paths
from services.graphs.walking import (
    MAX_DEPTH,
    MAX_EDGES,
    MAX_NEIGHBOURS,
    MAX_NODES,
    Edge,
    EdgeSource,
    Found,
    MemorySource,
    Node,
    Steps,
    Walk,
    Wanted,
    stars,
    walk,
    whole,
)

__all__ = [
    "MAX_DEPTH",
    "MAX_EDGES",
    "MAX_ITERATIONS",
    "MAX_MEMBERS",
    "MAX_NEIGHBOURS",
    "MAX_NODES",
    "MAX_PARALLEL",
    "MAX_PATHS",
    "MAX_PATH_DEPTH",
    "MAX_SHOWN",
    "Analyst",
    "BranchSource",
    "Centrality",
    "Communities",
    "Community",
    "Edge",
    "EdgeSource",
    "Found",
    "MemorySource",
    "Node",
    "Path",
    "Steps",
    "Walk",
    "Wanted",
    "WholeGraph",
    "centrality_of_graphs",
    "communities_of_graphs",
    "entries_of_edges",
    "find_paths",
    "source_of",
    "stars",
    "walk",
    "whole",
    "whole_graphs",
]
