from __future__ import annotations

import re
import string
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.ids import PREFIXES, Body, MalformedId, ParsedId, new_id, parse_id
from db.tables import metadata

# Glossary, section 12: prefix, table. The first specification's ids are ULIDs.
ULID_TABLES = {
    "soul": "characters",
    "embryo": "embryo_drafts",
    "cust": "custodianships",
    "seat": "runtime_seats",
    "idr": "identity_records",
    "idv": "identity_record_versions",
    "fanc": "form_anchors",
    "form": "forms",
    "voice": "voice_profiles",
    "tree": "mirror_trees",
    "node": "tree_nodes",
    "cite": "citations",
    "canon": "canonizations",
    "graft": "tree_transplants",
    "mem": "memories",
    "mtrg": "memory_triggers",
    "mvec": "memory_embeddings",
    "frec": "factual_records",
    "cov": "covenants",
    "cevt": "covenant_events",
    "world": "persistent_worlds",
    "went": "world_entities",
    "wrel": "world_relations",
    "lbk": "lorebooks",
    "lbe": "lorebook_entries",
    "revt": "run_events",
    "cap": "capabilities",
    "mand": "mandates",
    "conf": "confirmations",
    "tcall": "tool_calls",
    "evd": "evidence",
    "audit": "audit_events",
    "mcp": "mcp_servers",
    "persona": "user_personas",
    "preset": "generation_presets",
    "itpl": "instruct_templates",
    "qr": "quick_replies",
    "anote": "author_notes",
    "user": "users",
    "cred": "credentials",
    "dom": "domains",
    "role": "roles",
    "perm": "permissions",
    "rasg": "role_grants",
    "pref": "preferences",
    "sett": "settings",
    "ijob": "import_jobs",
    "iitem": "import_items",
    "dev": "devices",
    "dgr": "device_grants",
    "skill": "skills",
    "idem": "idempotency",
    "obx": "outbox",
}
# The second specification's are UUIDs.
UUID_TABLES = {
    "story": "stories",
    "br": "branches",
    "run": "runs",
    "act": "actions",
    "prof": "profiles",
    "prov": "providers",
    "pack": "vault_packs",
    "cal": "vault_calendars",
    "asset": "assets",
    "scen": "vault_scenarios",
    "tmpl": "vault_character_templates",
}
BRANCH_TABLES = {
    "char": "entities",
    "loc": "entities",
    "item": "entities",
    "fact": "entities",
    "lore": "lore",
    "thr": "threads",
    "hap": "happenings",
    "chap": "chapters",
    "entry": "story_entries",
    "ast": "entry_assets",
    "probe": "probe_captures",
    "tr": "translations",
    "rel": "character_relationships",
    "hinv": "happening_involvements",
    "haw": "happening_awareness",
    "era": "branch_era_flips",
    "evec": "embeddings",
    "dlt": "deltas",
}
# Tables that the architecture adds to the specifications' own.
ADDED = {
    "sess": "login_sessions",
    "cast": "castings",
    "wmrg": "world_merges",
    "export": "exports",
}
RESERVED = {"gprov", "gend", "byok", "ulog"}

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
UUID = "0192f0c1-2b3c-7d4e-8f50-a1b2c3d4e5f6"
BRANCH = f"br_{UUID}"


def refusal(text: str) -> str:
    with pytest.raises(MalformedId) as caught:
        parse_id(text)
    assert str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_registry_is_the_glossarys_table_and_the_tables_added_since() -> None:
    expected = {**ULID_TABLES, **UUID_TABLES, **BRANCH_TABLES}
    assert len(expected) == len(ULID_TABLES) + len(UUID_TABLES) + len(BRANCH_TABLES)
    assert {text: PREFIXES[text].table for text in expected} == expected
    assert {text: each.table for text, each in PREFIXES.items() if text not in expected} == ADDED
    assert {text for text, each in PREFIXES.items() if each.in_branch} == set(BRANCH_TABLES)
    ulids = {text for text, each in PREFIXES.items() if each.body is Body.ULID}
    assert ulids == (set(ULID_TABLES) | set(ADDED))
    assert not RESERVED & set(PREFIXES)


def test_a_prefix_is_one_lower_case_token_and_names_one_table() -> None:
    assert all(text == each.text for text, each in PREFIXES.items())
    assert all(re.fullmatch(r"[a-z]+", text) for text in PREFIXES)
    tables = [each.table for each in PREFIXES.values() if each.table != "entities"]
    assert len(tables) == len(set(tables))
    assert {each.text for each in PREFIXES.values() if each.table == "entities"} == {
        "char",
        "loc",
        "item",
        "fact",
    }


def test_every_table_with_an_id_has_a_prefix() -> None:
    known = {each.table for each in PREFIXES.values()}
    # What a user has set up has the user's id.
    known.add("app_settings")
    assert {table.name for table in metadata.sorted_tables if "id" in table.columns} <= known


@pytest.mark.parametrize("prefix", sorted(PREFIXES))
def test_a_new_id_is_read_back(prefix: str) -> None:
    each = PREFIXES[prefix]
    made = [new_id(each.table, prefix) for _ in range(50)]
    assert len(set(made)) == 50
    for one in made:
        assert one.startswith(f"{prefix}_")
        if each.in_branch:
            assert parse_id(f"{BRANCH}:{one}") == ParsedId(each.table, one, BRANCH)
        else:
            assert parse_id(one) == ParsedId(each.table, one)


def test_new_uuids_are_of_version_7_and_grow_with_time() -> None:
    made = [new_id("stories") for _ in range(100)]
    assert {uuid.UUID(each.partition("_")[2]).version for each in made} == {7}
    assert made == sorted(made)


def test_a_table_with_several_prefixes_needs_one_chosen() -> None:
    with pytest.raises(ValueError, match="unpack"):
        new_id("entities")
    with pytest.raises(ValueError, match="unpack"):
        new_id("users", "soul")
    with pytest.raises(KeyError):
        new_id("no_such_table")


@given(st.uuids())
def test_any_uuid_is_accepted_on_the_way_in(body: uuid.UUID) -> None:
    assert parse_id(f"story_{body}") == ParsedId("stories", f"story_{body}")


@given(st.text(string.digits + "ABCDEFGHJKMNPQRSTVWXYZ", min_size=25, max_size=25))
def test_any_ulid_is_accepted_on_the_way_in(body: str) -> None:
    assert parse_id(f"node_7{body}") == ParsedId("tree_nodes", f"node_7{body}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "_",
        ":",
        "node",
        ULID,
        UUID,
        f"_{ULID}",
        f"Node_{ULID}",
        f"NODE_{ULID}",
        f" node_{ULID}",
        f"nope_{ULID}",
        f"gprov_{UUID}",
        f"node-{ULID}",
        f"ｎode_{ULID}",
    ],
)
def test_an_id_needs_a_known_prefix(text: str) -> None:
    assert refusal(text) == "An id begins with a known prefix and an underscore, like node_01H…."


@pytest.mark.parametrize(
    "body",
    [
        "",
        ULID[:-1],
        f"{ULID}0",
        ULID.lower(),
        f"8{ULID[1:]}",  # beyond 128 bits
        f"{ULID[:-1]}I",
        f"{ULID[:-1]}L",
        f"{ULID[:-1]}O",
        f"{ULID[:-1]}U",
        f"{ULID}\n",
        f"\n{ULID}",
        f"{ULID}\0",
        f"{ULID[:-1]}\0",
        f"{ULID[:-1]}１",
        f"{ULID[:-1]}Ａ",
        f"{ULID[:-1]}\ud83d",
        UUID,
    ],
)
def test_a_ulid_is_26_characters_of_its_alphabet(body: str) -> None:
    assert refusal(f"node_{body}") == "After node_ stands a ULID of 26 upper-case characters."


@pytest.mark.parametrize(
    "body",
    [
        "",
        UUID[:-1],
        f"{UUID}0",
        UUID.upper(),
        UUID.replace("-", ""),
        f"{{{UUID}}}",
        f"{UUID}\n",
        f" {UUID}",
        f"{UUID}\0",
        f"{UUID[:-1]}\0",
        f"{UUID[:-1]}６",  # int() and so uuid.UUID() would take it
        f"{UUID[:-1]}٦",
        f"{UUID[:-2]}_6",
        f"{UUID[:-1]}\ud83d",
        ULID,
    ],
)
def test_a_uuid_is_in_canonical_form(body: str) -> None:
    message = "After story_ stands a UUID in lower case with hyphens."
    assert refusal(f"story_{body}") == message
    assert refusal(f"{BRANCH}:char_{body}") == message.replace("story_", "char_")


@pytest.mark.parametrize("prefix", sorted(BRANCH_TABLES))
def test_a_row_of_a_branch_is_named_with_its_branch(prefix: str) -> None:
    row = f"{prefix}_{UUID}"
    assert parse_id(f"{BRANCH}:{row}") == ParsedId(BRANCH_TABLES[prefix], row, BRANCH)
    assert refusal(row) == (
        f"Rows of {BRANCH_TABLES[prefix]} belong to a branch: write its id and a colon first."
    )


@pytest.mark.parametrize(
    "text",
    [
        f"{BRANCH}:story_{UUID}",
        f"{BRANCH}:{BRANCH}",
        f"{BRANCH}:node_{ULID}",
        f"story_{UUID}:char_{UUID}",
        f"node_{ULID}:char_{UUID}",
        f"char_{UUID}:char_{UUID}",
        f"char_{UUID}:{BRANCH}",
    ],
)
def test_only_a_branch_and_a_row_of_it_are_joined(text: str) -> None:
    assert refusal(text) == "Two ids joined by a colon name a branch and a row of that branch."


@pytest.mark.parametrize(
    "text",
    [
        f"{BRANCH}:",
        f":char_{UUID}",
        f"{BRANCH}::char_{UUID}",
        f"{BRANCH}:{BRANCH}:char_{UUID}",
        f"{BRANCH}：char_{UUID}",
        f"br_{UUID.upper()}:char_{UUID}",
        f"br_:char_{UUID}",
    ],
)
def test_both_sides_of_the_colon_are_whole_ids(text: str) -> None:
    refusal(text)


@given(st.text())
def test_no_text_is_an_id_by_accident(text: str) -> None:
    refusal(text)


@given(
    st.sampled_from([f"node_{ULID}", f"story_{UUID}", f"{BRANCH}:char_{UUID}"]),
    st.integers(min_value=0, max_value=90),
    st.characters(),
)
def test_one_changed_character_is_refused_or_names_another_row_in_full(
    text: str, place: int, character: str
) -> None:
    changed = text[:place] + character + text[place + 1 :]
    try:
        parsed = parse_id(changed)
    except MalformedId:
        return
    assert changed == ":".join(filter(None, (parsed.branch_id, parsed.row_id)))
    assert changed.isascii()
