"""Where what a user has beside the rows of branches is looked into, and to which character, story
or world it belongs.

Source: design, performance (traps).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Integer, Text, literal_column, select, true, union_all
from sqlmodel import col

from db.enums import LibraryKind
from db.reading import Reading, any_of, param, statement
from db.tables import (
    Character,
    Lorebook,
    LorebookEntry,
    MirrorTree,
    SearchText,
    Story,
    Table,
    TreeNode,
    World,
    WorldEntity,
)
from services.access import Viewer, visible
from services.searching.ranking import Key, Said
from services.searching.surfaces import lines_of

# Of each kind, the newest that are searched.
MAX_ROWS = 50_000
_ALL = 2**31 - 1

# To what things belong, and its id.
Home = Literal["character", "story", "world"]
# By the names under which their ids are given.
HOMES: Mapping[str, Home] = {
    "character_id": "character",
    "story_id": "story",
    "world_id": "world",
}

_ALIASES = (
    "SELECT a.alias FROM world_aliases a WHERE a.world_entity_id = world_entities.id "
    "ORDER BY a.number"
)
# Every text of who a character is, whatever it is called.
_IDENTITY = (
    "(SELECT coalesce(string_agg(v #>> '{}', E'\\n'), '') FROM "
    "jsonb_path_query(identity_baseline_json, 'strict $.**') AS q (v) "
    "WHERE jsonb_typeof(v) = 'string')"
)


@dataclass(frozen=True, slots=True)
class Belonging:
    """To what a row belongs, and which rows belong to one of `homes`."""

    home: Callable[[], Any]
    is_of_homes: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Shelf:
    """How things of a kind are looked into: SQL over the columns of their table."""

    table: type[Table]
    # The attribute that it is called by, and everything that it is called, with a line for each.
    label: str | None
    names: str | None
    body: str
    homes: Mapping[Home, Belonging] = field(default_factory=dict)
    condition: Callable[[], Any] = true

    def label_of(self, row: Any) -> str:
        """What a row is called; a node has no name."""
        return str(getattr(row, self.label)) if self.label else ""


def _by(column: Any) -> Belonging:
    return Belonging(lambda: col(column), lambda: any_of(column, "homes"))


def _through(link: Any, table: Any, home: Any) -> Belonging:
    """By way of a row of another table."""
    return Belonging(
        lambda: select(col(home)).where(col(table.id) == col(link)).scalar_subquery(),
        lambda: col(link).in_(select(col(table.id)).where(any_of(home, "homes"))),
    )


SHELVES = {
    LibraryKind.CHARACTER: Shelf(
        Character, "name", "name", _IDENTITY, {"character": _by(Character.id)}
    ),
    LibraryKind.TREE: Shelf(
        MirrorTree, "topic", "topic", "''", {"character": _by(MirrorTree.character_id)}
    ),
    LibraryKind.NODE: Shelf(
        TreeNode,
        None,
        None,
        "content",
        {"character": _through(TreeNode.tree_id, MirrorTree, MirrorTree.character_id)},
    ),
    LibraryKind.STORY: Shelf(Story, "title", "title", "description", {"story": _by(Story.id)}),
    LibraryKind.LOREBOOK_ENTRY: Shelf(
        LorebookEntry,
        "name",
        lines_of(["name"], ["keys_json"]),
        "content",
        {"character": _through(LorebookEntry.lorebook_id, Lorebook, Lorebook.character_id)},
    ),
    LibraryKind.WORLD: Shelf(
        World,
        "name",
        "name",
        lines_of(["background"], ["rules_json"]),
        {"world": _by(World.id)},
    ),
    LibraryKind.WORLD_ENTITY: Shelf(
        WorldEntity,
        "name",
        f"array_to_string(ARRAY[name] || ARRAY({_ALIASES}), E'\\n')",
        "description",
        {"world": _by(WorldEntity.world_id)},
        # What it turned out to be has its names.
        lambda: col(WorldEntity.merged_into_id).is_(None),
    ),
}


def texts_of_libraries() -> str:
    """All texts of all users as SQL, in the column `text`."""
    return " UNION ALL ".join(
        f"SELECT {text} AS text FROM {shelf.table.__tablename__}"
        for shelf in SHELVES.values()
        for text in (shelf.names, shelf.body)
        if text is not None
    )


def _shelved(kind: LibraryKind, shelf: Shelf, *values: Any) -> Any:
    """Rows of a kind that the viewer may see, with values over their columns."""
    table: Any = shelf.table
    name = literal_column(f"'{kind.value}'", Text())
    return select(name.label("kind"), col(table.id).label("id"), *values).where(
        any_of(name, "kinds"), visible(table), shelf.condition()
    )


def _texts(home: Home | None) -> Any:
    arms = []
    for kind, shelf in SHELVES.items():
        if home is not None and home not in shelf.homes:
            continue
        table: Any = shelf.table
        belongs = literal_column("''", Text()) if home is None else shelf.homes[home].home()
        for is_name, text in ((True, shelf.names), (False, shelf.body)):
            if text is None:
                continue
            arm = _shelved(
                kind,
                shelf,
                belongs.label("home"),
                literal_column(str(is_name).lower()).label("is_name"),
                literal_column(text, Text()).label("text"),
            )
            if home is not None:
                arm = arm.where(shelf.homes[home].is_of_homes())
            newest = arm.order_by(col(table.created_at).desc(), col(table.id).desc())
            arms.append(select(newest.limit(param("most", Integer())).subquery()))
    return union_all(*arms).subquery("t")


@statement(object)
def _hashed_texts(home: Home | None) -> Any:
    texts = _texts(home)
    text_hash = literal_column("md5(t.text)", Text())
    kept = col(SearchText.text_hash)
    new = literal_column("CASE WHEN search_texts.text_hash IS NULL THEN t.text END", Text())
    return select(
        texts.c.home,
        texts.c.kind,
        texts.c.id,
        texts.c.is_name,
        text_hash.label("hash"),
        new.label("new_text"),
    ).select_from(texts.outerjoin(SearchText, kept == text_hash))


@statement(object)
def _said() -> Any:
    return union_all(
        *(
            _shelved(
                kind,
                shelf,
                literal_column(shelf.names or "NULL", Text()).label("names"),
                literal_column(shelf.body, Text()).label("body"),
            ).where(any_of(shelf.table.id, "ids"))  # type: ignore[attr-defined]
            for kind, shelf in SHELVES.items()
        )
    )


async def texts_of_library(
    reading: Reading,
    viewer: Viewer,
    kinds: Sequence[str],
    home: Home | None = None,
    home_ids: Sequence[str] = (),
    *,
    most: int = MAX_ROWS,
) -> list[Any]:
    """The texts of what the viewer may see, for `texts.keep_words`: of all that there is (`home` of
    each is then empty), or of what belongs to these characters, stories or worlds.
    """
    given = {} if home is None else {"homes": list(home_ids)}
    return await reading.all(
        _hashed_texts(home), kinds=list(kinds), most=most, **given, **viewer.parameters
    )


async def hashes_of_character(reading: Reading, viewer: Viewer, character_id: str) -> list[str]:
    """The MD5 of every text that belongs to a character."""
    rows = await texts_of_library(
        reading, viewer, list(SHELVES), "character", [character_id], most=_ALL
    )
    return list({row.hash for row in rows})


async def said_of(reading: Reading, viewer: Viewer, keys: Sequence[Key]) -> dict[Key, Said]:
    """What is looked into of these rows; rows that the viewer may not see are not there."""
    rows: list[Any] = await reading.all(
        _said(),
        kinds=list({kind for kind, _ in keys}),
        ids=[row_id for _, row_id in keys],
        **viewer.parameters,
    )
    return {
        (row.kind, row.id): Said([] if row.names is None else row.names.split("\n"), row.body)
        for row in rows
    }
