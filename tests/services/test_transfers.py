from __future__ import annotations

import asyncio
import io
import json
import threading
import zipfile
from typing import Any

import pytest

from db.engine import Database
from db.enums import (
    ExportFormat,
    ImportItemKind,
    ImportItemStatus,
    ImportKind,
    ImportStatus,
    Origin,
    ReviewDecision,
)
from db.paging import PageRequest
from db.reading import Reading, Writing
from db.tables import (
    EmbryoDraft,
    Export,
    FileWarning,
    ImportItem,
    ImportJob,
)
from services import characters, exports, imports, lorebooks, transfers
from services.access import Viewer
from services.cards import read_card, read_lorebook, read_lorebook_file
from services.errors import Conflict, DomainError, Invalid, NotFound
from services.transfers.threads import beside_the_loop
from tests.conftest import People, shared
from tests.factories import ALL_POINTS, make_character
from tests.services.test_lorebooks import BOOK, CARD, CHANGES, entries_of, import_book

# The last two lines of a rook, as a picture that its bytes say is none.
NOTE = b"The bridge was built by ogres."
CARDS = (
    "amy.v3-in-chara.png",
    "coding-sensei.v2.png",
    "minimal-v2.json",
    "minimal-v3.json",
    "two-assets.charx",
    "two-chunks.png",
    "with-lorebook-v3.json",
)
# What a card V2 has no place for.
ONLY_V3 = {
    "assets",
    "creation_date",
    "creator_notes_multilingual",
    "group_only_greetings",
    "modification_date",
    "nickname",
    "source",
}


async def import_card(
    writing: Writing, viewer: Viewer, content: bytes, file_name: str | None = "rook.json"
) -> tuple[ImportJob, EmbryoDraft]:
    card = await transfers.read_card_file(content)
    return await transfers.import_card(writing, viewer, card, file_name=file_name)


async def items_of(reading: Reading, viewer: Viewer, job: ImportJob) -> list[ImportItem]:
    (page,) = await imports.ITEMS_OF_JOBS.pages(
        reading, [job.id], PageRequest(), **viewer.parameters
    )
    return page.nodes


async def exported(
    database: Database,
    viewer: Viewer,
    format: ExportFormat = ExportFormat.CARD_V3_JSON,
    *,
    embryo_id: str | None = None,
    character_id: str | None = None,
) -> tuple[Export, bytes]:
    """The export of a draft or a character, as it is downloaded."""
    async with database.reading() as reading:
        card = await transfers.card_to_export(reading, viewer, embryo_id, character_id)
    content = await transfers.write_card_file(card, format)
    async with database.writing() as writing:
        export = await transfers.store_card_export(writing, viewer, card, format, content)
    async with database.reading() as reading:
        found = await exports.find_export(reading, viewer, export.id)
    assert found == (export, content)
    return found


def archive(card: dict[str, Any], **files: bytes) -> bytes:
    """A CharX with files at paths where "__" stands for a slash."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as packed:
        packed.writestr("card.json", json.dumps(card))
        for path, content in files.items():
            packed.writestr(path.replace("__", "/"), content)
    return written.getvalue()


async def test_an_import_is_a_job_a_draft_a_book_and_files(
    database: Database, people: People
) -> None:
    """Rules X1, X2."""
    owner = people.owner
    content = archive(CARD, notes__bridge=NOTE)
    async with database.writing() as writing:
        job, embryo = await import_card(writing, owner, content, "C:\\cards\\Rook.charx")
        items = await items_of(writing, owner, job)
        books = await lorebooks.books_with_entries(writing, owner, embryo)
        files = await imports.files_of_job(writing, owner, job.id)
        targets = await imports.targets_of_items(writing, owner, items)
        made = await imports.embryos_of_jobs(writing, owner, [job.id])
        (act,) = await writing._connection.fetch(
            "SELECT * FROM audit_events WHERE action = 'card_imported'"
        )
    assert (job.kind, job.status, job.file_name, job.finished_at) == (
        ImportKind.CHARACTER_CARD,
        ImportStatus.AWAITING_REVIEW,
        "Rook.charx",
        None,
    )
    assert (job.container, job.spec, job.size_bytes) == ("charx", "v3", len(content))
    assert made == {job.id: embryo}
    assert (embryo.origin, embryo.import_job_id) == (Origin.IMPORTED, job.id)
    assert embryo.source_card == CARD
    # The book is kept as rows alone, so that there is one truth about it.
    assert "character_book" not in embryo.provisional_identity
    ((book, entries),) = books
    assert (book.name, book.source, book.embryo_draft_id, book.character_id) == (
        "Bridges",
        BOOK,
        embryo.id,
        None,
    )
    waiting = (ImportItemKind.LOREBOOK_ENTRY, ImportItemStatus.PENDING_REVIEW)
    assert [(each.number, each.kind, each.status, each.label) for each in items] == [
        (1, ImportItemKind.EMBRYO, ImportItemStatus.PARSED, "Rook"),
        (2, *waiting, ""),
        (3, *waiting, "Toll"),
        (4, *waiting, ""),
        (5, ImportItemKind.FILE, ImportItemStatus.PARSED, "notes/bridge"),
    ]
    assert [target and target.id for target in targets] == [
        embryo.id,
        *(each.id for each in entries),
        None,
    ]
    assert [(each.path, each.content) for each in files] == [("notes/bridge", NOTE)]
    assert (items[4].media_type, items[4].size_bytes) == (files[0].media_type, len(NOTE))
    assert act["subject_id"] == embryo.id


async def test_a_card_without_a_book_needs_no_review(database: Database, people: People) -> None:
    """Rule X4."""
    async with database.writing() as writing:
        job, _ = await import_card(writing, people.owner, b'{"name": "Rook"}', None)
    assert (job.status, job.file_name, job.spec) == (ImportStatus.COMPLETED, "", "v1")
    assert job.finished_at is not None


async def test_a_warning_stands_with_its_part_and_with_the_whole(
    database: Database, people: People
) -> None:
    """Rule X2."""
    entries = [
        {"keys": ["a"], "content": "A", "enabled": True},
        "no entry",
        {"keys": ["b"], "content": 7, "enabled": True},
    ]
    for map_or_list in (entries, dict(zip("012", entries, strict=True))):
        card = {"name": "Rook", "tags": 5, "character_book": {"entries": map_or_list}}
        async with database.writing() as writing:
            job, _ = await import_card(writing, people.owner, json.dumps(card).encode())
            items = await items_of(writing, people.owner, job)
        told = [(each.code, each.path) for each in job.warnings]
        assert ("ENTRY_DROPPED", "character_book.entries.1") in told
        assert ("TYPE_MENDED", "character_book.entries.2.content") in told
        assert ("TYPE_MENDED", "tags") in told
        assert [[(w.code, w.path) for w in each.warnings] for each in items] == [
            [],
            [],
            [("TYPE_MENDED", "character_book.entries.2.content")],
        ]


@pytest.mark.parametrize(
    ("zone", "kept"),
    [
        (["No ogres."], ["No ogres."]),
        ([], []),
        ("No ogres.", None),
        ([1], None),
        ([""], None),
        (None, None),
        ({"a": 1}, None),
    ],
)
async def test_only_a_list_of_texts_is_taken_for_a_forbidden_zone(
    database: Database, people: People, zone: Any, kept: list[str] | None
) -> None:
    """Rule X2."""
    card = {"spec": "chara_card_v2", "data": {"name": "Rook", "forbidden_zone": zone}}
    async with database.writing() as writing:
        job, embryo = await import_card(writing, people.owner, json.dumps(card).encode())
        character = await characters.activate_embryo(writing, people.owner, embryo.id, ALL_POINTS)
    assert embryo.provisional_identity.get("forbidden_zone") == kept
    assert character.identity_baseline["forbidden_zone"] == (kept or [])
    message = "The forbidden zone is not a list of texts; it was left out."
    warning = FileWarning("VALUE_DROPPED", message, "data.forbidden_zone")
    assert (warning in job.warnings) == (kept is None)


@pytest.mark.parametrize("file", CARDS)
@pytest.mark.parametrize("format", transfers.FILE_KINDS)
async def test_a_real_card_goes_out_as_it_came_in(
    database: Database, people: People, file: str, format: ExportFormat
) -> None:
    """Rule X9."""
    content = shared("data", "cards", file).read_bytes()
    owner = people.owner
    async with database.writing() as writing:
        _, embryo = await import_card(writing, owner, content, file)
    export, written = await exported(database, owner, format, embryo_id=embryo.id)
    first, again = read_card(content), read_card(written)
    left_out = ONLY_V3 if format == ExportFormat.CARD_V2_JSON else set()
    for name in (first.fields.keys() | again.fields.keys()) - left_out:
        assert again.fields.get(name) == first.fields.get(name), name
    if format in (ExportFormat.CARD_PNG, ExportFormat.CARD_CHARX):
        assert again.files == first.files
    assert export.size_bytes == len(written)
    assert export.media_type == transfers.FILE_KINDS[format].media_type
    # Activated, it is the same card.
    async with database.writing() as writing:
        character = await characters.activate_embryo(writing, owner, embryo.id, ALL_POINTS)
    _, of_character = await exported(database, owner, format, character_id=character.id)
    assert read_card(of_character).fields == again.fields


async def test_a_character_goes_out_as_it_is_now(database: Database, people: People) -> None:
    """Rules X9, X10."""
    owner = people.owner
    card = {
        **CARD,
        "data": {**CARD["data"], "personality": "stubborn", "tags": ["ogre"], "x_own": {"a": 1}},
        "root_own": 7,
    }
    async with database.writing() as writing:
        _, embryo = await import_card(writing, owner, json.dumps(card).encode())
        character = await characters.activate_embryo(writing, owner, embryo.id, ALL_POINTS)
        ((_, entries),) = await lorebooks.books_with_entries(writing, owner, character)
        await transfers.review_entries(writing, owner, [entries[0].id], ReviewDecision.REJECT)
        await transfers.update_entry(writing, owner, entries[1].id, CHANGES, None)
        baseline = {
            "core_anchor": {"name": "Rook", "description": "Guards, still."},
            "forbidden_zone": ["No fire."],
        }
        await writing._connection.execute("SET LOCAL session_replication_role = replica")
        await writing._connection.execute(
            "UPDATE characters SET identity_baseline_json = $1, updated_at = to_timestamp(86400)",
            baseline,
        )
    export, content = await exported(database, owner, character_id=character.id)
    written = json.loads(content)
    read = read_card(content)
    assert (export.file_name, export.subject_ref) == ("Rook.json", character.id)
    assert written["root_own"] == 7
    assert read.fields["description"] == "Guards, still."
    # What the baseline no longer speaks of is gone; the rest of the card is as it came.
    assert read.fields["personality"] == ""
    assert (read.fields["tags"], read.fields["x_own"]) == (["ogre"], {"a": 1})
    assert read.fields["forbidden_zone"] == ["No fire."]
    assert read.fields["modification_date"] == 86400
    book = read_lorebook(read.fields["character_book"])
    assert (book.name, book.token_budget) == ("Bridges", 300)
    assert [lorebooks.columns_of(each) for each in book.entries] == [
        CHANGES,
        lorebooks.columns_of(read_lorebook(BOOK).entries[2]),
    ]
    # Taken in again, it forbids the same.
    async with database.writing() as writing:
        _, again = await import_card(writing, owner, content)
    assert again.provisional_identity["forbidden_zone"] == ["No fire."]


async def test_a_book_that_nobody_touched_goes_out_with_all_that_it_came_with(
    database: Database, people: People
) -> None:
    """Rule X10."""
    owner = people.owner
    entries = {"7": {"key": "bridge", "uid": 7, "content": "Old.", "order": "3", "my_own": [1]}}
    card = {"name": "Rook", "character_book": {"entries": entries, "odd": None}}
    async with database.writing() as writing:
        _, embryo = await import_card(writing, owner, json.dumps(card).encode())
        ((book, rows),) = await lorebooks.books_with_entries(writing, owner, embryo)
    for decision in (None, ReviewDecision.ACCEPT):
        async with database.writing() as writing:
            if decision:
                await transfers.review_entries(writing, owner, [rows[0].id], decision)
        _, content = await exported(database, owner, embryo_id=embryo.id)
        again = read_card(content).fields["character_book"]
        (entry,) = read_lorebook(again).entries
        assert lorebooks.columns_of(entry) == lorebooks.columns_of(
            read_lorebook(book.source).entries[0]
        )
        # Other programs know the names of V3; what nobody knows stays.
        assert (entry.source["keys"], entry.source["my_own"]) == (["bridge"], [1])
        assert again["odd"] is None


async def test_all_books_of_a_character_go_into_the_one_of_its_card(
    database: Database, people: People
) -> None:
    """Rule X10."""
    owner = people.owner
    world_info = {"entries": {"0": {"uid": 0, "key": ["river"], "content": "Deep.", "order": 2}}}
    async with database.writing() as writing:
        _, embryo = await import_card(writing, owner, json.dumps(CARD).encode())
        character = await characters.activate_embryo(writing, owner, embryo.id, ALL_POINTS)
        _, other, _ = await import_book(writing, owner, world_info, character.id)
    _, content = await exported(database, owner, character_id=character.id)
    book = read_lorebook(read_card(content).fields["character_book"])
    assert (book.name, [each.content for each in book.entries]) == (
        "Bridges",
        ["It is old.", "Two coins.", "They sleep.", "Deep."],
    )
    assert book.entries[3].source["keys"] == ["river"]
    # The book that came with the card goes away; the other one is written as a book of cards.
    async with database.writing() as writing:
        first, *_ = await lorebooks.books_with_entries(writing, owner, character)
        await transfers.delete_lorebook(writing, owner, first[0].id)
    _, content = await exported(database, owner, character_id=character.id)
    written = json.loads(content)["data"]["character_book"]
    assert [each["keys"] for each in written["entries"]] == [["river"]]
    async with database.writing() as writing:
        await transfers.delete_lorebook(writing, owner, other.id)
    _, content = await exported(database, owner, character_id=character.id)
    assert "character_book" not in json.loads(content)["data"]


async def test_a_lorebook_of_another_program_is_read(database: Database, people: People) -> None:
    """Rule X3."""
    content = shared("data", "cards", "lorebook-text-uid.json").read_bytes()
    book = await transfers.read_lorebook_file(content)
    async with database.writing() as writing:
        job, lorebook = await transfers.import_lorebook(
            writing, people.owner, book, content=content, file_name=None, character_id=None
        )
        entries = await entries_of(writing, people.owner, lorebook)
    assert (job.kind, job.container, job.spec) == (ImportKind.LOREBOOK, "json", None)
    assert job.size_bytes == len(content)
    assert lorebook.scan_depth == book.scan_depth
    assert [lorebooks.columns_of(each) for each in read_lorebook_file(content).entries] == [
        {name: getattr(row, name) for name in CHANGES} for row in entries
    ]


@pytest.mark.parametrize("format", transfers.FILE_KINDS)
async def test_a_draft_written_by_hand_becomes_a_card(
    database: Database, people: People, format: ExportFormat
) -> None:
    """Rule X9."""
    identity = {"name": "Ada", "first_mes": "Hm.", "forbidden_zone": ["No fire."]}
    async with database.writing() as writing:
        embryo = await characters.create_embryo(writing, people.owner, Origin.ORIGINAL, identity)
    _, content = await exported(database, people.owner, format, embryo_id=embryo.id)
    fields = read_card(content).fields
    assert {name: fields[name] for name in identity} == identity
    assert (fields["tags"], fields["extensions"]) == ([], {})
    assert "character_book" not in fields


async def test_what_cannot_be_exported_is_refused(database: Database, people: People) -> None:
    """Rules X8, X9."""
    owner = people.owner
    async with database.writing() as writing:
        character = await make_character(writing, owner)
        embryo = await characters.create_embryo(writing, owner, Origin.ORIGINAL, {"name": "Ada"})
        draft_id, issued_id = embryo.id, character.embryo_draft_id or ""
        tries: list[tuple[Viewer, str | None, str | None, type[DomainError], str, str | None]] = [
            (owner, None, None, Invalid, "ONE_SUBJECT", None),
            (owner, draft_id, character.id, Invalid, "ONE_SUBJECT", None),
            (owner, issued_id, None, Conflict, "ALREADY_ACTIVATED", "embryoId"),
            (owner, character.id, None, NotFound, "NOT_FOUND", "embryoId"),
            (owner, None, draft_id, NotFound, "NOT_FOUND", "characterId"),
            (people.stranger, draft_id, None, NotFound, "NOT_FOUND", "embryoId"),
            (people.anonymous, None, character.id, NotFound, "NOT_FOUND", "characterId"),
        ]
        for viewer, embryo_id, character_id, error, code, field in tries:
            with pytest.raises(error) as caught:
                await transfers.card_to_export(writing, viewer, embryo_id, character_id)
            path = ("input", field) if field else ("input",)
            assert (caught.value.code, caught.value.path) == (code, path)
        card = await transfers.card_to_export(writing, owner, draft_id, None)
        with pytest.raises(Invalid) as refused:
            await transfers.write_card_file(card, ExportFormat.IDENTITY_PACKAGE)
        assert (refused.value.code, refused.value.path) == (
            "NOT_A_CARD_FORMAT",
            ("input", "format"),
        )


async def test_what_went_away_while_its_file_was_made_is_not_kept(
    database: Database, people: People
) -> None:
    """Rule X9."""
    owner = people.owner
    v3 = ExportFormat.CARD_V3_JSON
    async with database.writing() as writing:
        embryo = await characters.create_embryo(writing, owner, Origin.ORIGINAL, {"name": "Ada"})
        character = await make_character(writing, owner)
        of_draft = await transfers.card_to_export(writing, owner, embryo.id, None)
        of_character = await transfers.card_to_export(writing, owner, None, character.id)
        await characters.abandon_embryo(writing, owner, embryo.id)
        await writing._connection.execute("SET LOCAL session_replication_role = replica")
        await writing._connection.execute("UPDATE characters SET status = 'purged'")
        with pytest.raises(NotFound) as gone:
            await transfers.store_card_export(writing, owner, of_draft, v3, b"{}")
        assert gone.value.path == ("input", "embryoId")
        with pytest.raises(Conflict) as erased:
            await transfers.store_card_export(writing, owner, of_character, v3, b"{}")
        assert erased.value.code == "CHARACTER_ERASED"
        assert await writing._connection.fetchval("SELECT count(*) FROM exports") == 0


async def test_others_go_on_while_a_file_is_read_and_two_are_read_at_once() -> None:
    """Rule X13."""
    loop, are_two = asyncio.get_running_loop(), asyncio.Event()
    lock, go_on = threading.Lock(), threading.Event()
    reading, most = 0, 0

    def read() -> bool:
        nonlocal reading, most
        with lock:
            reading += 1
            most = max(most, reading)
            if reading == 2:
                loop.call_soon_threadsafe(are_two.set)
        # Only the loop can let it go on.
        is_let_go_on = go_on.wait(30)
        with lock:
            reading -= 1
        return is_let_go_on

    reads = [asyncio.create_task(beside_the_loop(read)) for _ in range(5)]
    await are_two.wait()
    go_on.set()
    assert await asyncio.gather(*reads) == [True] * 5
    assert most == 2


def test_every_real_card_of_the_folder_is_tried() -> None:
    folder = shared("data", "cards")
    others = {"invalid-missing-name.json", "lorebook-text-uid.json"}
    found = {each.name for each in folder.iterdir() if each.suffix in {".png", ".json", ".charx"}}
    assert found == {*CARDS, *others}
