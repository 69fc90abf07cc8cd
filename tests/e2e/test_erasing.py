"""Erasing a character through the API, and proof from the database that nothing of it is left."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.e2e.callers import PATIENCE, RUN_EVENTS, Caller, Json
from tests.e2e.ending_documents import LIFE
from tests.e2e.ledgers import Ledger
from tests.e2e.tree_documents import TREE_EVENTS
from tests.e2e.whole_lives import WORD, Life, act, end, live


async def places_of(ledger: Ledger, word: str) -> set[str]:
    """The columns of the whole database in which a word stands: of every type that holds text."""
    connection = await asyncpg.connect(ledger.dsn)
    try:
        columns = await connection.fetch(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " JOIN information_schema.tables USING (table_schema, table_name)"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        found = set()
        for table, name, type_ in columns:
            condition = f"position('{word}' in lower({name}::text)) > 0"
            if type_ == "bytea":
                condition = f"position('{word}'::bytea in {name}) > 0"
            if await connection.fetchval(
                f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {condition})"
            ):
                found.add(f"{table}.{name}")
        return found
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_COOLING_OFF_DAYS": "0.000000001", "MIRRORGRAPH_DEMO_CONTENT": "false"}


# Where the word must stand before, so that looking for it proves something.
EVERYWHERE = {
    "characters.name",
    "characters.identity_baseline_json",
    "citations.quote",
    "citations.source_id",
    "confirmations.arguments_json",
    "confirmations.brief_json",
    "embryo_drafts.provisional_identity_json",
    "embryo_drafts.rehearsal_log_json",
    "embryo_drafts.source_card_json",
    "export_files.content",
    "exports.file_name",
    "form_anchors.permissions_json",
    "form_anchors.stable_traits_json",
    "form_anchors.taboos_json",
    "form_anchors.variable_range_json",
    "forms.asset_ref",
    "forms.description",
    "forms.name",
    "idempotency.answer_json",
    "identity_packages.package_json",
    "import_items.label",
    "import_jobs.file_name",
    "import_jobs.report_json",
    "lorebook_entries.content",
    "lorebook_entries.keys_json",
    "lorebook_entries.name",
    "lorebook_entries.secondary_keys_json",
    "lorebook_entries.source_json",
    "lorebooks.description",
    "lorebooks.name",
    "lorebooks.source_json",
    "mirror_trees.topic",
    "run_event_texts.text",
    "runtime_seats.lease_holder",
    "search_texts.terms",
    "tree_nodes.content",
    "tree_nodes.reasoning",
    "voice_profiles.authorization_ref",
    "voice_profiles.name",
    "voice_profiles.source_ref",
}


async def test_nothing_of_an_erased_character_is_left_anywhere(
    caller: Caller, ledger: Ledger
) -> None:
    """Rules E7, E8, E9."""
    other = await live(caller, "Bea of another life")
    rest = await places_of(ledger, WORD)
    life = await live(caller, f"Ada {WORD}")
    before = await places_of(ledger, WORD)
    assert EVERYWHERE - before == set()
    await end(caller, life)
    appended = await _appended(ledger)

    async with caller.stream(TREE_EVENTS, {"tree": life.tree, "after": 0}) as changes:
        erased = await act(caller, "DataErase", character=life.character, name=life.name)
        async with asyncio.timeout(PATIENCE):
            seen = [event_of_tree(each) async for each in changes]
    # The stream of a tree ends with its erasure.
    assert seen[-1] == "TREE_ERASED"
    assert seen.count("TREE_ERASED") == 1

    # The other character's word is where it was: in everything that has none of this one's name.
    assert await places_of(ledger, WORD) == rest
    assert await places_of(ledger, f"ada {WORD}") == set()
    await _erase_all_else(caller, other)
    assert await places_of(ledger, WORD) == set()

    # Append-only records are as they were, and longer.
    for table, rows in (await _appended(ledger)).items():
        assert set(appended[table]) <= set(rows), table

    tombstone = erased["character"]
    assert (tombstone["id"], tombstone["name"]) == (life.character, "")
    assert (tombstone["status"], tombstone["identityBaseline"]) == ("PURGED", {})
    assert tombstone["erasedAt"] is not None
    assert tombstone["custodianship"]["status"] == "ENDED"
    assert tombstone["custodianship"]["endedAt"] is not None
    left = (await caller.ask(LIFE, {"character": life.character}))["character"]
    trees = left["trees"]["nodes"]
    nodes = [node for tree in trees for node in tree["nodes"]["nodes"]]
    assert {(node["content"], node["reasoning"], node["isErased"]) for node in nodes} == {
        ("", None, True)
    }
    quotes = [quote for node in nodes for quote in node["citations"]]
    assert {(each["quote"], each["isErased"]) for each in quotes} == {("", True)}
    assert sorted(each["sourceId"] is None for each in quotes) == [False, True]
    records = [record for tree in trees for record in tree["canonizations"]["nodes"]]
    assert len(records) == 2
    assert {record["isIntact"] for record in records} == {None}
    outline = "query ($tree: ID!) { mirrorTree(id: $tree) { outline { nodes { label } } } }"
    drawn = (await caller.ask(outline, {"tree": life.tree}))["mirrorTree"]["outline"]["nodes"]
    assert {each["label"] for each in drawn} == {""}
    assert (await caller.request("GET", life.exported)).status == 404
    # The events of its runs stay, and say honestly that their texts are gone.
    given = {"run": life.run, "after": 0}
    async with asyncio.timeout(PATIENCE), caller.stream(f"{RUN_EVENTS}\n", given) as events:
        (refusal,) = [each async for each in events]
    assert [each["extensions"]["code"] for each in refusal["errors"]] == ["OUT_OF_WINDOW"]


def event_of_tree(result: Json) -> str:
    assert "errors" not in result, result
    return str(result["data"]["treeEvents"]["type"])


async def _appended(ledger: Ledger) -> dict[str, list[str]]:
    tables = (
        "audit_events",
        "canonizations",
        "identity_record_versions",
        "run_events",
        "tree_events",
    )
    return {
        table: [row["r"] for row in await ledger.rows(f"SELECT r::text AS r FROM {table} r")]
        for table in tables
    }


async def _erase_all_else(caller: Caller, life: Life) -> None:
    await end(caller, life)
    await act(caller, "DataErase", character=life.character, name=life.name)
