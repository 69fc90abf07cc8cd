"""B5: names in many texts of six scripts: what a search in a branch finds, against a scan of the
texts, and how long that takes; beside it what PostgreSQL has for it.
"""

from __future__ import annotations

import random
import time
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bench.stage import WARM_UP, Json, Say, Stage, milliseconds, staged
from db.enums import EntryKind, SearchKind, SearchMode, StoryStatus
from db.ids import new_id
from db.tables import Branch, Story
from services import searching
from services.embedding import Embedders
from services.searching import BranchTexts

PASSAGES = 20_000
NAMES = 300
# Of so many passages one has a name.
_EVERY = 3
_WORDS = 60
# The hits that a client gets unless it asks for more.
_FIRST = 10

Find = Callable[[str], Awaitable[set[str]]]


@dataclass(frozen=True, slots=True)
class Script:
    """How texts of a language are made: of which letters, and with what between words."""

    letters: str
    word_length: int
    blank: str
    name_length: int
    # Whether a name may be written in other ways: capitals, without its accents.
    varies: bool = False
    # What may follow a name without a blank.
    endings: tuple[str, ...] = ("",)


def _range(first: int, last: int) -> str:
    return "".join(map(chr, range(first, last + 1)))


SCRIPTS = {
    "Chinese": Script(_range(0x4E00, 0x55B7), 1, "", 3),
    "Japanese": Script(_range(0x3042, 0x3093) + _range(0x4E00, 0x51FF), 1, "", 3),
    "Korean": Script(_range(0xAC00, 0xB3CF), 2, " ", 3, endings=("는", "이", "")),
    "Thai": Script(_range(0x0E01, 0x0E2E), 4, "", 6),
    "English": Script("abcdefghijklmnopqrstuvwxyzé", 5, " ", 7, varies=True),
    "Cyrillic": Script(_range(0x0430, 0x044F), 5, " ", 7, varies=True),
    "Arabic": Script(_range(0x0627, 0x063A) + _range(0x0641, 0x064A), 4, " ", 6),
}


@dataclass(frozen=True, slots=True)
class Texts:
    """Passages by their ids, and names, some of which stand in them."""

    passages: dict[str, str]
    # The same without case and accents, with a blank before and behind.
    plain: dict[str, str]
    names: list[str]
    script: Script

    def scan(self, name: str) -> set[str]:
        """The passages in which a name stands: as a whole word, where words have blanks."""
        wanted = _plain(name)
        if self.script.blank and self.script.endings == ("",):
            wanted = f" {wanted} "
        return {each for each, text in self.plain.items() if wanted in text}


def _plain(text: str) -> str:
    """Without case and accents."""
    if text.isascii():
        return text.lower()
    whole = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", whole.replace("\N{COMBINING ACUTE ACCENT}", ""))


def texts_of(script: Script, passages: int, names: int) -> Texts:
    """Texts in which few words are frequent, and most are rare."""
    chance = random.Random(7)

    def word(length: int) -> str:
        return "".join(chance.choices(script.letters, k=length))

    vocabulary = list(dict.fromkeys(word(script.word_length) for _ in range(4_000)))
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    named = list(dict.fromkeys(word(script.name_length) for _ in range(names)))

    def written(name: str) -> str:
        if script.varies:
            name = chance.choice((name, name.upper(), name.title(), name.replace("é", "e")))
        return name + chance.choice(script.endings)

    made = {}
    for number in range(passages):
        words = chance.choices(vocabulary, weights, k=_WORDS)
        place = chance.randrange(_WORDS)
        if number % _EVERY == 0:
            words[place] = written(chance.choice(named))
        elif number % _EVERY == 1:
            # The beginning of a name, which is not the name.
            words[place] = chance.choice(named)[: script.name_length - 1]
        made[new_id("story_entries")] = script.blank.join(words)
    plain = {each: f" {_plain(text)} " for each, text in made.items()}
    return Texts(made, plain, named, script)


async def measure(
    dsn: str, rounds: int, say: Say, passages: int = PASSAGES, names: int = NAMES
) -> Json:
    """B5, on a migrated database. Raises RuntimeError where a search misses a name."""
    measured: Json = {}
    async with staged(dsn) as stage:
        for language, script in SCRIPTS.items():
            say(f"B5, {language}")
            measured[language] = await _measured(stage, texts_of(script, passages, names), rounds)
    return {"passages": passages, "names": names, "scripts": measured}


async def _measured(stage: Stage, texts: Texts, rounds: int) -> Json:
    branch_id = await _put(stage, texts)
    embedders, branch_texts = Embedders("none"), BranchTexts()

    async def search(name: str) -> set[str]:
        asked = searching.Asked(name, (SearchKind.ENTRY,), SearchMode.KEYWORD, _FIRST)
        (found,) = await searching.search_branches(
            stage.database, embedders, branch_texts, stage.viewer, [(branch_id, None)], asked
        )
        return {each.row_id for each in (*(hit.row for hit in found.hits), *found.beyond)}

    async def by_statement(condition: str, name: str) -> set[str]:
        rows = await stage.bare.fetch(f"SELECT id FROM bench_texts WHERE {condition}", name)
        return {row["id"] for row in rows}

    size = "SELECT pg_total_relation_size('search_texts')"
    before = await stage.bare.fetchval(size)
    began = time.perf_counter()
    await search(texts.names[0])
    built = time.perf_counter() - began
    after = await stage.bare.fetchval(size)
    await stage.bare.execute("VACUUM (ANALYZE) search_texts")
    peers = await _peers(stage, texts)
    truth = {name: texts.scan(name) for name in texts.names}
    ours = await _asked(search, truth, rounds)
    if ours["recall"] < 1:
        raise RuntimeError("a search has not found every text with a name")
    return {
        "ours": {**ours, "seconds_to_build": round(built, 2), "bytes": after - before},
        "tsvector": {
            **await _asked(
                lambda name: by_statement("words @@ plainto_tsquery('simple', $1)", name),
                truth,
                rounds,
            ),
            **peers,
        },
        "like": await _asked(
            lambda name: by_statement("content LIKE '%' || $1 || '%'", name), truth, 1
        ),
    }


async def _put(stage: Stage, texts: Texts) -> str:
    """A story that says these texts; its branch."""
    async with stage.database.writing() as writing:
        story = await writing.insert(
            Story,
            owner_user_id=stage.viewer.signed_in_id,
            title="Names",
            status=StoryStatus.ACTIVE,
            definition_json={},
            settings={},
        )
        branch = await writing.insert(Branch, story_id=story.id, name="Main")
    await stage.bare.copy_records_to_table(
        "story_entries",
        columns=["branch_id", "id", "position", "kind", "content"],
        records=[
            (branch.id, row_id, position, EntryKind.AI_REPLY.value, text)
            for position, (row_id, text) in enumerate(texts.passages.items(), start=1)
        ],
    )
    await stage.bare.execute("VACUUM (ANALYZE) story_entries")
    return branch.id


async def _peers(stage: Stage, texts: Texts) -> Json:
    """The same texts in a table that PostgreSQL's own search looks into."""
    bare = stage.bare
    await bare.execute("DROP TABLE IF EXISTS bench_texts")
    await bare.execute("CREATE TABLE bench_texts (id text, content text, words tsvector)")
    await bare.copy_records_to_table(
        "bench_texts", columns=["id", "content"], records=texts.passages.items()
    )
    began = time.perf_counter()
    await bare.execute("UPDATE bench_texts SET words = to_tsvector('simple', content)")
    await bare.execute("CREATE INDEX bench_words ON bench_texts USING gin (words)")
    built = time.perf_counter() - began
    await bare.execute("VACUUM (ANALYZE) bench_texts")
    size = "SELECT sum(pg_column_size(words)) + pg_relation_size('bench_words') FROM bench_texts"
    return {"seconds_to_build": round(built, 2), "bytes": int(await bare.fetchval(size))}


async def _asked(find: Find, truth: dict[str, set[str]], rounds: int) -> Json:
    """Recall and precision over all names, and how long one takes."""
    times: list[float] = []
    right = found_in_all = there = 0
    names: Sequence[str] = list(truth)
    for name in names[:WARM_UP]:
        await find(name)
    for number in range(rounds):
        for name in names:
            began = time.perf_counter()
            found = await find(name)
            times.append(time.perf_counter() - began)
            if number == 0:
                right += len(found & truth[name])
                found_in_all += len(found)
                there += len(truth[name])
    return {
        "recall": round(right / there, 4) if there else 1.0,
        "precision": round(right / found_in_all, 4) if found_in_all else 1.0,
        "milliseconds": milliseconds(times),
    }
