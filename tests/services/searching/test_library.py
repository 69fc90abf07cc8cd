"""Searches in all that a user has: what is found where, once, and by whom."""

from __future__ import annotations

from typing import Any

import pytest

from db.engine import Database
from db.enums import EntityKind, LibraryKind, WorldEntityKind
from db.tables import StoryEntity
from services import deltas, mirrors, searching, worlds
from services.access import ANONYMOUS, Viewer
from services.errors import Invalid
from services.searching import BranchTexts, LibraryAsked, LibraryFound
from services.searching.shelves import Home
from tests.conftest import People
from tests.factories import (
    entity_values,
    make_answer,
    make_branch,
    make_character,
    make_tree,
)

# The word that stands in everything.
WORD = "Zephyr"


class Library:
    """What a user has, with the word in it."""

    def __init__(self, database: Database, viewer: Viewer) -> None:
        self.database = database
        self.viewer = viewer
        self.texts = BranchTexts()
        self.ids: dict[str, str] = {}

    async def search(
        self,
        text: str,
        *,
        viewer: Viewer | None = None,
        kinds: tuple[LibraryKind, ...] = tuple(LibraryKind),
        first: int = 50,
        home: Home | None = None,
        home_ids: tuple[str, ...] = ("",),
    ) -> LibraryFound:
        (found,) = await searching.search_homes(
            self.database,
            self.texts,
            viewer or self.viewer,
            LibraryAsked(text, kinds, first),
            home,
            home_ids,
        )
        return found

    async def kinds_of(self, text: str, **options: Any) -> set[str]:
        return {each.kind for each in (await self.search(text, **options)).hits}

    async def labels(self, text: str, **options: Any) -> list[str]:
        return [each.label for each in (await self.search(text, **options)).hits]


@pytest.fixture
async def library(database: Database, people: People) -> Library:
    """One of everything, each with the word in a text, and the word's plural in a name."""
    owner = people.owner
    one = Library(database, owner)
    async with database.writing() as writing:
        character = await make_character(writing, owner, "Zephyrs")
        tree = await make_tree(writing, owner, character, "On Zephyrs")
        question = await mirrors.add_question(writing, owner, tree.id, None, f"Who is {WORD}?")
        await make_answer(writing, question, f"Dust. {WORD} is a wind. Dust.")
        branch = await make_branch(writing, owner, f"The {WORD}")
        async with deltas.acting(writing, owner, branch.id) as action:
            row = entity_values(EntityKind.LOCATION, "Zephyrs")
            values = {**row, "description": f"Where {WORD} blows."}
            entity = await action.create(StoryEntity, values, prefix="loc")
        world = await worlds.create_world(
            writing, owner, {"name": "Aster", "rules": [f"{WORD} must blow."]}
        )
        kept = await worlds.create_world_entity(
            writing,
            owner,
            world.id,
            {"kind": WorldEntityKind.CHARACTER, "name": "Ada", "aliases": [WORD, "Zephyra"]},
        )
        one.ids = {
            "character": character.id,
            "tree": tree.id,
            "story": branch.story_id,
            "branch": branch.id,
            "world": world.id,
            "entity": f"{branch.id}:{entity['id']}",
            "world_entity": kept.id,
        }
    return one


async def test_everything_is_found_by_its_names_and_its_texts(library: Library) -> None:
    """Rules B80, B81."""
    found = await library.search(WORD)
    shown = [(each.kind, type(each.row).__name__, each.label, each.snippet) for each in found.hits]
    assert sorted(shown) == [
        ("entity", "StoryEntity", "Zephyrs", f"Where {WORD} blows."),
        ("node", "TreeNode", "", f"Who is {WORD}?"),
        ("node", "TreeNode", "", f"{WORD} is a wind."),
        ("story", "Story", f"The {WORD}", ""),
        ("world", "World", "Aster", f"{WORD} must blow."),
        ("world_entity", "WorldEntity", "Ada", ""),
    ]
    # Its alias is the word itself.
    assert found.hits[0].kind == "world_entity"
    assert [each.name for each in found.hits[0].parts] == ["words", "name"]
    assert found.hits[0].score == sum(each.value for each in found.hits[0].parts)
    assert sorted(await library.labels("zephyrs")) == ["On Zephyrs", "Zephyrs", "Zephyrs"]
    assert await library.labels("zéphyra") == ["Ada"]
    assert await library.kinds_of(WORD, kinds=(LibraryKind.WORLD, LibraryKind.NODE)) == {
        "world",
        "node",
    }
    assert (await library.search("!?")).hits == []
    rest = await library.search(WORD, first=1)
    assert (len(rest.hits), len(rest.beyond)) == (1, 5)
    assert {*rest.beyond} == {each.row.id for each in found.hits[1:]}


@pytest.mark.parametrize(
    ("home", "kinds"),
    [
        ("character", {"node"}),
        ("story", {"story", "entity"}),
        ("world", {"world", "world_entity"}),
    ],
)
async def test_a_home_has_what_belongs_to_it(library: Library, home: Any, kinds: set[str]) -> None:
    """Rule B82."""
    ids = (library.ids[home],)
    assert await library.kinds_of(WORD, home=home, home_ids=ids) == kinds
    assert await library.kinds_of(WORD, home=home, home_ids=("none",)) == set()


async def test_many_characters_are_searched_each_by_itself(library: Library) -> None:
    """Rule B83."""
    async with library.database.writing() as writing:
        other = await make_character(writing, library.viewer, "Odo")
        await make_tree(writing, library.viewer, other, f"More of {WORD}")
    mine, others, none = await searching.search_homes(
        library.database,
        library.texts,
        library.viewer,
        LibraryAsked(WORD, (LibraryKind.TREE, LibraryKind.NODE), 9),
        "character",
        [library.ids["character"], other.id, "none"],
    )
    assert [each.kind for each in mine.hits] == ["node", "node"]
    assert [each.label for each in others.hits] == [f"More of {WORD}"]
    assert none.hits == []


async def test_what_forks_have_in_common_is_found_once(library: Library) -> None:
    """Rule B81."""
    async with library.database.writing() as writing:
        branch = library.ids["branch"]
        entry = await writing._connection.fetchval(
            "SELECT id FROM story_entries WHERE branch_id = $1", branch
        )
        fork = await deltas.fork_branch(writing, library.viewer, branch, entry, "Fork")

    async def branches() -> list[str]:
        found = await library.search("begins", kinds=(LibraryKind.ENTRY,))
        return [each.row.branch_id for each in found.hits]

    assert await branches() == [branch]
    # The branch that is open is the one that counts.
    async with library.database.writing() as writing:
        await writing._connection.execute(
            "UPDATE stories SET current_branch_id = $1 WHERE id = $2",
            fork.branch.id,
            library.ids["story"],
        )
    assert await branches() == [fork.branch.id]


async def test_rows_of_the_stories_that_were_opened_last_are_searched(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules B81, B82."""
    async with library.database.writing() as writing:
        newer = await make_branch(writing, library.viewer, "Newer")
    monkeypatch.setattr("services.searching.library.MAX_STORIES", 1)
    found = await library.search("begins")
    assert [each.row.branch_id for each in found.hits] == [newer.id]
    ids = (library.ids["story"],)
    found = await library.search("begins", home="story", home_ids=ids)
    assert [each.row.branch_id for each in found.hits] == [library.ids["branch"]]
    assert await library.kinds_of(WORD) == {"node", "story", "world", "world_entity"}


async def test_nobody_finds_anything_of_others(library: Library, people: People) -> None:
    """Rule B80."""
    for viewer in (people.stranger, ANONYMOUS):
        found = await library.search(WORD, viewer=viewer)
        assert (found.hits, found.beyond) == ([], [])
        for home in searching.HOMES.values():
            found = await library.search(
                WORD, viewer=viewer, home=home, home_ids=(library.ids[home],)
            )
            assert (found.hits, found.beyond) == ([], [])


async def test_what_turned_out_to_be_another_is_not_found(library: Library) -> None:
    """Rule B80."""
    async with library.database.writing() as writing:
        other = await worlds.create_world_entity(
            writing,
            library.viewer,
            library.ids["world"],
            {"kind": WorldEntityKind.CHARACTER, "name": "Bo"},
        )
        await worlds.merge_world_entities(
            writing, library.viewer, other.id, library.ids["world_entity"]
        )
    found = await library.search("ada", kinds=(LibraryKind.WORLD_ENTITY,))
    assert [each.row.id for each in found.hits] == [other.id]


async def test_words_of_what_nobody_has_any_more_are_swept(library: Library) -> None:
    """Rule B73."""
    assert await library.kinds_of("blow") == {"world"}
    async with library.database.writing() as writing:
        kept = await writing._connection.fetchval("SELECT count(*) FROM search_texts")
        assert await searching.WordSweeper().sweep(writing) == 0
        await worlds.delete_world(writing, library.viewer, library.ids["world"])
        # The world's name, what it says, and the names of the one who was in it.
        assert await searching.WordSweeper().sweep(writing) == 3
        assert await writing._connection.fetchval("SELECT count(*) FROM search_texts") == kept - 3
    assert await library.kinds_of("blow") == set()
    assert await library.kinds_of("wind") == {"node"}


@pytest.mark.parametrize(
    ("text", "first", "code", "path"),
    [
        ("", 1, "TEXT_EMPTY", ("text",)),
        ("x" * 1_001, 1, "TEXT_TOO_LONG", ("text",)),
        ("x", 101, "OUT_OF_RANGE", ("first",)),
    ],
)
async def test_what_cannot_be_searched_is_refused(
    database: Database, people: People, text: str, first: int, code: str, path: tuple[str, ...]
) -> None:
    """Rule B79."""
    with pytest.raises(Invalid) as refused:
        await Library(database, people.owner).search(text, first=first)
    assert (refused.value.code, tuple(refused.value.path)) == (code, path)
