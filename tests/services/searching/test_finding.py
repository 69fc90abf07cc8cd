"""Searches in branches: what is found, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from db.engine import Database
from db.enums import EntityKind, EntityStatus, SearchKind, SearchMode
from db.tables import Happening, HappeningAwareness, Lore, Thread
from services import deltas, past
from services.access import ANONYMOUS, Viewer
from services.embedding import EmbedderFault
from services.errors import Invalid
from services.past import AsOf, Moment
from services.searching import (
    Asked,
    BranchTexts,
    Filter,
    Found,
    forget_words,
    search_branches,
    texts,
)
from tests.conftest import People
from tests.services.embedding.worlds import Shelf, shelf

# A name, and a text that has it within, as the language writes it.
NAMES = [
    ("李青岚", "昨夜李青岚在灯塔上。"),
    ("ミラ丸", "港にミラ丸が着いた。"),
    ("김서연", "어제 김서연은 떠났다."),
    ("Йорген", "Там стоял йорген."),
    ("Élodie", "They saw ELODIE there."),
    ("ليلى", "رأيت ليلى هناك"),
    ("สมชาย", "เมื่อวานสมชายกลับบ้าน"),
    ("Ng", "Here Ng sat."),
]

# As a process has it: what was read of a branch counts as long as the branch stays as it is.
TEXTS = BranchTexts()


async def search(
    one: Shelf,
    text: str,
    *,
    viewer: Viewer | None = None,
    mode: SearchMode = SearchMode.KEYWORD,
    first: int = 10,
    kinds: tuple[SearchKind, ...] = tuple(SearchKind),
    perspective: str | None = None,
    moment: Moment | None = None,
    filter: Filter | None = None,
) -> Found:
    (found,) = await search_branches(
        one.database,
        one.embedders,
        TEXTS,
        viewer or one.viewer,
        [(one.branch.id, moment)],
        Asked(text, kinds, mode, first, perspective, filter),
    )
    return found


async def labels(one: Shelf, text: str, **options: Any) -> list[str]:
    return [each.label for each in (await search(one, text, **options)).hits]


async def write(one: Shelf, table: Any, **values: Any) -> str:
    async with (
        one.database.writing() as writing,
        deltas.acting(writing, one.viewer, one.branch.id) as action,
    ):
        return str((await action.create(table, values))["id"])


async def moment_at(one: Shelf, position: int) -> Moment:
    async with one.database.reading() as reading:
        as_of = AsOf(log_position=position)
        return await past.resolve_moment(reading, one.viewer, one.branch.id, as_of)


async def test_names_in_every_script_are_found_as_a_scan_finds_them(
    database: Database, people: People
) -> None:
    """Rules B70, B71, B72, B74."""
    async with shelf(database, people) as one:
        for name, text in NAMES:
            await one.write(name)
            await write(one, Lore, title="Note", body=text, injection_mode="auto")
        for name, text in NAMES:
            hits = (await search(one, name)).hits
            # The one that bears the name, then the one that has it in its text.
            assert [each.label for each in hits] == [name, "Note"]
            assert [each.name for each in hits[0].parts] == ["words", "name"]
            assert [each.name for each in hits[1].parts] == ["words"]
            assert hits[1].row.body == text
            assert hits[1].snippet == text


async def test_texts_are_looked_into_once_and_what_was_edited_is_found_by_its_new_words(
    database: Database, people: People
) -> None:
    """Rule B73."""
    async with shelf(database, people) as one:
        mira = await one.write("Mira", "The smith.", keywords=["Hammer\nHand"])
        await one.write("Odo", "The smith.")
        assert await labels(one, "smith") == ["Mira", "Odo"]
        assert await labels(one, "hand") == ["Mira"]
        kept = await one.value("SELECT count(*) FROM search_texts")
        assert await labels(one, "smith") == ["Mira", "Odo"]
        assert await one.value("SELECT count(*) FROM search_texts") == kept
        await one.change(mira["id"], description="The baker.")
        assert await labels(one, "smith") == ["Odo"]
        assert await labels(one, "baker") == ["Mira"]
        await one.undo()
        assert await labels(one, "smith") == ["Mira", "Odo"]
        # A text of which the words were deleted is looked into again.
        hashes = await one.value("SELECT array_agg(text_hash) FROM search_texts")
        async with one.database.writing() as writing:
            assert await forget_words(writing, hashes) == len(hashes)
        assert await labels(one, "smith") == ["Mira", "Odo"]


async def test_the_past_is_searched_as_the_present_was(database: Database, people: People) -> None:
    """Rule B77."""
    async with shelf(database, people) as one:
        await one.write("Mira", "The smith.")
        await write(one, Thread, title="Smith's debt", status="active", injection_mode="auto")
        then = await search(one, "smith begins")
        await one.write("Odo", "A smith.")
        found = await search(
            one, "smith begins", mode=SearchMode.HYBRID, moment=await moment_at(one, 2)
        )
        assert found.mode is SearchMode.KEYWORD
        assert [(each.label, each.score, each.parts, each.snippet) for each in found.hits] == [
            (each.label, each.score, each.parts, each.snippet) for each in then.hits
        ]
        assert [each.label for each in found.hits] == ["Smith's debt", "", "Mira"]


async def test_a_character_finds_nothing_that_it_does_not_know(
    database: Database, people: People
) -> None:
    """Rule B78."""
    async with shelf(database, people) as one:
        mira = await one.write("Mira")
        fire = await write(one, Happening, title="The fire")
        await write(one, HappeningAwareness, happening_id=fire, character_id=mira["id"])
        alone = await search(one, "fire", perspective=mira["id"])
        for title in ("A fire in secret", "Fire of the guild"):
            await write(one, Happening, title=title)
        await write(one, Lore, title="Fire", body="Fire.", injection_mode="auto")
        await write(one, Lore, title="Law", body="No fire.", injection_mode="auto", tags=["common"])
        for mode in SearchMode:
            found = await search(one, "fire", mode=mode, perspective=mira["id"], first=1)
            (hit,) = found.hits
            shown = {hit.label, *(getattr(each, "title", "Mira") for each in found.beyond)}
            assert shown - {"Mira"} == {"The fire", "Law"}
        # Nor does what it does not know change what it sees.
        await write(one, Happening, title="Fire again")
        again = await search(one, "fire", perspective=mira["id"], kinds=(SearchKind.HAPPENING,))
        assert [each.label for each in again.hits] == ["The fire"]
        only = await search(one, "fire", perspective=mira["id"], kinds=(SearchKind.HAPPENING,))
        assert again.hits[0].score == only.hits[0].score
        assert len(alone.hits) == 1


async def test_only_what_is_like_the_filter_is_searched(database: Database, people: People) -> None:
    """Rule B84."""
    async with shelf(database, people) as one:
        mira = await one.write("Mira", "A smith.", tags=["guild", "old"])
        await one.write("Odo", "A smith.", tags=["guild"], status="retired")
        lore = {"body": "Of a smith.", "injection_mode": "auto"}
        await write(one, Lore, title="Law", tags=["old", "guild"], **lore)
        await write(one, Thread, title="The smith", status="active", injection_mode="auto")
        await one.write("Ada", "A smith.", tags=["old", "guild"])
        moment = await moment_at(one, 4)
        both = Filter(tags=("guild", "old"))
        active = Filter(entity_statuses=(EntityStatus.ACTIVE,))
        retired = Filter(
            entity_kinds=(EntityKind.CHARACTER,), entity_statuses=(EntityStatus.RETIRED,)
        )
        places = Filter(entity_kinds=(EntityKind.LOCATION,))
        for wanted, then, now in (
            (both, {"Mira", "Law"}, {"Mira", "Law", "Ada"}),
            (active, {"Mira"}, {"Mira", "Ada"}),
            (retired, {"Odo"}, {"Odo"}),
            (places, set(), set()),
        ):
            assert set(await labels(one, "smith", filter=wanted)) == now
            assert set(await labels(one, "smith", filter=wanted, moment=moment)) == then
            near = await labels(one, "smith", filter=wanted, mode=SearchMode.VECTOR)
            assert set(near) == now
        known = await labels(one, "smith", filter=both, perspective=mira["id"])
        assert known == ["Mira"]


async def test_a_story_that_begins_is_found_by_its_first_words(
    database: Database, people: People
) -> None:
    """Rule B85."""
    async with shelf(database, people) as one:
        story, status = one.branch.story_id, "UPDATE stories SET status = $2 WHERE id = $1"
        await one.value(status, story, "draft")
        assert await labels(one, "fog") == []
        # An entry that the log does not know, as that of a draft that is begun.
        await one.value("UPDATE story_entries SET content = 'Fog.'")
        assert await labels(one, "fog") == [""]
        await one.value(status, story, "active")
        assert await labels(one, "fog") == [""]
        await one.value("UPDATE story_entries SET kind = 'system' WHERE content = 'Fog.'")
        await one.write("Mira")
        # A notice is none of the story.
        assert await labels(one, "fog") == []


async def test_a_word_that_everybody_has_is_found_among_the_texts_of_the_branch(
    database: Database, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule B85."""
    async with shelf(database, people) as one:
        await one.write("Mira", "The smith of the quay.")
        await one.write("Odo", "The smith.")
        found = await search(one, "smith quay")
        monkeypatch.setattr(texts, "_COMMON", 1)
        common = await search(one, "smith quay")
        assert [(each.label, each.score) for each in common.hits] == [
            (each.label, each.score) for each in found.hits
        ]
        assert [each.label for each in found.hits] == ["Mira", "Odo"]


async def test_meaning_and_words_are_joined(database: Database, people: People) -> None:
    """Rules B75, B76."""
    async with shelf(database, people) as one:
        await one.write("Mira", "The smith.")
        await one.write("Odo", "zzzz")
        both = await search(one, "Mira", mode=SearchMode.HYBRID)
        assert both.mode is SearchMode.HYBRID
        assert [each.label for each in both.hits] == ["Mira", "Odo"]
        assert both.hits[0].score == 2 / 61
        assert [each.name for each in both.hits[0].parts] == ["words", "name", "meaning"]
        near = await search(one, "Mira", mode=SearchMode.VECTOR, first=1)
        assert (near.mode, [each.label for each in near.hits]) == (SearchMode.VECTOR, ["Mira"])
        assert [each.name for each in near.beyond] == ["Odo"]
        assert near.hits[0].score == pytest.approx(near.hits[0].parts[-1].value)
        await one.choose(embedding_provider_id="gone")
        for mode in (SearchMode.HYBRID, SearchMode.VECTOR):
            found = await search(one, "Mira", mode=mode)
            assert (found.mode, [each.label for each in found.hits]) == (
                SearchMode.KEYWORD,
                ["Mira"],
            )


async def test_what_lies_beyond_the_first_is_named(database: Database, people: People) -> None:
    """Rule B79."""
    async with shelf(database, people) as one:
        names = [f"Guard {letter}" for letter in "abc"]
        for each in names:
            await one.write(each)
        found = await search(one, "guard", first=1)
        assert [each.label for each in found.hits] == names[:1]
        assert [each.name for each in found.beyond] == names[1:]
        assert (await search(one, "guard", first=0)).hits == []
        assert await labels(one, "guard", kinds=(SearchKind.LORE,)) == []
        assert await labels(one, "!?") == []


async def test_nobody_finds_anything_in_the_branches_of_others(
    database: Database, people: People
) -> None:
    """Rule B70."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        for viewer in (people.stranger, ANONYMOUS):
            for mode in SearchMode:
                found = await search(one, "Mira", viewer=viewer, mode=mode)
                assert (found.hits, found.beyond) == ([], [])


@pytest.mark.parametrize(
    ("text", "first", "code", "path"),
    [
        ("", 1, "TEXT_EMPTY", ("text",)),
        ("x" * 1_001, 1, "TEXT_TOO_LONG", ("text",)),
        ("x", 101, "OUT_OF_RANGE", ("first",)),
        ("x", -1, "OUT_OF_RANGE", ("first",)),
    ],
)
async def test_what_cannot_be_searched_is_refused(
    database: Database, people: People, text: str, first: int, code: str, path: tuple[str, ...]
) -> None:
    """Rule B79."""
    async with shelf(database, people) as one:
        with pytest.raises(Invalid) as refused:
            await search(one, text, first=first)
        assert (refused.value.code, tuple(refused.value.path)) == (code, path)


async def test_an_embedder_that_fails_stops_only_who_asks_for_meaning_alone(
    database: Database, people: People
) -> None:
    """Rule B76."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        one.server.embed = lambda _text: [0.0, 0.0]
        found = await search(one, "Mira", mode=SearchMode.HYBRID)
        assert (found.mode, [each.label for each in found.hits]) == (SearchMode.KEYWORD, ["Mira"])
        with pytest.raises(EmbedderFault):
            await search(one, "Mira", mode=SearchMode.VECTOR)
