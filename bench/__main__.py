"""`python -m bench seed N|small|medium|large` and `python -m bench run [--rounds R] [--scale N]
[--only W6 ...]`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import orjson

from bench import generator, measure, stories
from bench.report import table
from bench.shapes import SIZES, shape_of
from db.engine import Database
from db.settings import load_settings
from schema.cli import TOLD, with_database

DEFAULT_SCALE = 100_000


def _say(text: str) -> None:
    print(f"\r{text:40}", end="", file=sys.stderr, flush=True)


async def _seed(scale: int | str) -> None:
    """Nodes of mirror trees, or a story of a size."""

    async def tell_story(database: Database) -> None:
        shape = shape_of(SIZES[str(scale)])
        told = await stories.fill(database, shape, seed=await stories.unused_seed(database))
        print(
            f"The local user's new story has {shape.entries:,} entries and {told.rows:,} rows in "
            f"branch {told.branch_id}."
        )

    async def grow_trees(database: Database) -> None:
        nodes = int(scale)
        seed = await generator.unused_seed(database)
        character = await generator.fill(
            database, nodes, seed=seed, progress=lambda done: _say(f"{done:,} of {nodes:,} nodes")
        )
        print(f"\nThe local user's new character {character} has {nodes:,} nodes.")

    await with_database(load_settings(), tell_story if scale in SIZES else grow_trees)


async def _run(rounds: int, seconds: float, scale: int, only: list[str]) -> None:
    path = await measure.run(
        rounds=rounds,
        seconds=seconds,
        nodes=scale,
        say=_say,
        only=only,
    )
    print(f"\n\n{table(orjson.loads(path.read_bytes()))}\n\nwritten to {path}")


def _nodes(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 10_000_000:
        raise argparse.ArgumentTypeError("a number of nodes between 1 and 10,000,000")
    return number


def _scale(text: str) -> int | str:
    return text if text in SIZES else _nodes(text)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status."""
    parser = argparse.ArgumentParser(prog="bench")
    commands = parser.add_subparsers(dest="command", required=True)
    seed = commands.add_parser("seed", help="fill the server's database")
    seed.add_argument("scale", type=_scale, help=f"nodes of trees; or a story: {', '.join(SIZES)}")
    run = commands.add_parser("run", help="measure, on a database of its own")
    run.add_argument("--rounds", type=int, default=5)
    run.add_argument("--seconds", type=float, default=4, help="length of each round's parts")
    run.add_argument(
        "--scale", type=_nodes, default=DEFAULT_SCALE, help="nodes of W1 and W2, rows of W10"
    )
    run.add_argument("--only", nargs="+", choices=measure.NAMES, default=measure.NAMES)
    given = parser.parse_args(arguments)
    try:
        if given.command == "seed":
            asyncio.run(_seed(given.scale))
        else:
            asyncio.run(_run(given.rounds, given.seconds, given.scale, given.only))
    except (*TOLD, RuntimeError) as error:
        print(f"\nbench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
