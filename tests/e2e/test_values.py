"""Values that a database or a JSON reader chokes on: each is the client's mistake, and said so."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from graphql import (
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLScalarType,
    get_named_type,
)
from websockets import ConnectionClosed

from schema.root import schema
from tests.conftest import ServerProcess
from tests.e2e.asset_documents import asset_texts
from tests.e2e.callers import Caller, Json, dialled
from tests.e2e.embedding_documents import embedding_texts
from tests.e2e.entity_documents import entity_texts
from tests.e2e.entry_documents import text_texts
from tests.e2e.form_documents import ANCHOR
from tests.e2e.ledgers import Ledger
from tests.e2e.plot_documents import plot_texts
from tests.e2e.settings_documents import setting_texts

JSON_TYPE = {"Content-Type": "application/json"}
NOT_JSON = (400, ["BAD_REQUEST"])

NODE = "query ($value: ID!) { node(id: $value) { id } }"
PAGE = "query ($value: Int) { characters(first: $value) { totalCount } }"
EVENTS = "subscription ($run: ID!, $value: Int) { runEvents(runId: $run, after: $value) { seq } }"

STYLES = 'genre: { label: "x" }, tone: { label: "x" }'

# A change for each argument that takes a text: the value goes where `value` stands.
CHANGES: dict[str, tuple[str, list[str]]] = {
    **plot_texts(),
    **asset_texts(),
    **setting_texts(),
    **embedding_texts(),
    **text_texts(),
    **entity_texts(),
    **{
        f"changeCarry {field}": (
            f"changeCarry(input: {{ {given.replace('x', '$value', 1)} }})",
            ["input", field],
        )
        for field, given in (
            ("fromBranchId", 'fromBranchId: x, toBranchId: "br_2", rowId: "lore_1"'),
            ("toBranchId", 'toBranchId: x, fromBranchId: "br_1", rowId: "lore_1"'),
            ("rowId", 'rowId: x, fromBranchId: "br_1", toBranchId: "br_2"'),
        )
    },
    "retrievalProbe branchId": (
        "retrievalProbe(input: { branchId: $value })",
        ["input", "branchId"],
    ),
    "retrievalProbe text": (
        'retrievalProbe(input: { branchId: "br_1", text: $value })',
        ["input", "text"],
    ),
    "probeCaptureDelete captureId": (
        "probeCaptureDelete(input: { captureId: $value })",
        ["input", "captureId"],
    ),
    "probeCapturesDelete storyId": (
        "probeCapturesDelete(input: { storyId: $value })",
        ["input", "storyId"],
    ),
    "treeCreate topic": (
        'treeCreate(input: { characterId: "character_1", topic: $value })',
        ["input", "topic"],
    ),
    "treeCreate characterId": (
        'treeCreate(input: { characterId: $value, topic: "x" })',
        ["input", "characterId"],
    ),
    "treeAsk text": ('treeAsk(input: { treeId: "tree_1", text: $value })', ["input", "text"]),
    "treeAsk treeId": ('treeAsk(input: { treeId: $value, text: "x" })', ["input", "treeId"]),
    "treeAsk parentId": (
        'treeAsk(input: { treeId: "tree_1", parentId: $value, text: "x" })',
        ["input", "parentId"],
    ),
    "nodeAdopt": ("nodeAdopt(input: { nodeId: $value })", ["input", "nodeId"]),
    "answerRegenerate": (
        "answerRegenerate(input: { questionId: $value })",
        ["input", "questionId"],
    ),
    "nodeContinue": ("nodeContinue(input: { nodeId: $value })", ["input", "nodeId"]),
    "nodeEdit nodeId": ('nodeEdit(input: { nodeId: $value, text: "x" })', ["input", "nodeId"]),
    "nodeEdit text": ('nodeEdit(input: { nodeId: "node_1", text: $value })', ["input", "text"]),
    "nodeCorrect nodeId": (
        'nodeCorrect(input: { nodeId: $value, text: "x" })',
        ["input", "nodeId"],
    ),
    "nodeCorrect text": (
        'nodeCorrect(input: { nodeId: "node_1", text: $value })',
        ["input", "text"],
    ),
    "nodeCite nodeId": (
        'nodeCite(input: { nodeId: $value, sourceId: "x", target: {} })',
        ["input", "nodeId"],
    ),
    "nodeCite sourceId": (
        'nodeCite(input: { nodeId: "node_1", sourceId: $value, target: {} })',
        ["input", "sourceId"],
    ),
    "nodeCite quote": (
        'nodeCite(input: { nodeId: "node_1", sourceId: "x", target: {}, quote: $value })',
        ["input", "quote"],
    ),
    "nodeCite target": (
        'nodeCite(input: { nodeId: "node_1", sourceId: "x", target: { start: [$value] } })',
        ["input", "target", "start", "0"],
    ),
    "pathCanonize endpointId": (
        "pathCanonize(input: { endpointId: $value, scope: REALITY })",
        ["input", "endpointId"],
    ),
    "pathCanonize worldId": (
        'pathCanonize(input: { endpointId: "node_1", scope: WORLD, worldId: $value })',
        ["input", "worldId"],
    ),
    "treeTransplant nodeId": (
        'treeTransplant(input: { nodeId: $value, topic: "x" })',
        ["input", "nodeId"],
    ),
    "treeTransplant topic": (
        'treeTransplant(input: { nodeId: "node_1", topic: $value })',
        ["input", "topic"],
    ),
    "treePrune treeId": ("treePrune(input: { treeId: $value })", ["input", "treeId"]),
    "treePrune keep": (
        'treePrune(input: { treeId: "tree_1", keep: ["node_1", $value] })',
        ["input", "keep", "1"],
    ),
    "runCancel": ("runCancel(input: { runId: $value })", ["input", "runId"]),
    "calendarCreate name": (
        "calendarCreate(input: { name: $value, definition: {} })",
        ["input", "name"],
    ),
    "calendarCreate definition": (
        'calendarCreate(input: { name: "x", definition: { tiers: [$value] } })',
        ["input", "definition", "tiers", "0"],
    ),
    "calendarClone": ("calendarClone(input: { calendarId: $value })", ["input", "calendarId"]),
    "calendarUpdate calendarId": (
        "calendarUpdate(input: { calendarId: $value })",
        ["input", "calendarId"],
    ),
    "calendarUpdate name": (
        'calendarUpdate(input: { calendarId: "cal_1", name: $value })',
        ["input", "name"],
    ),
    "calendarUpdate definition": (
        'calendarUpdate(input: { calendarId: "cal_1", definition: { tiers: [$value] } })',
        ["input", "definition", "tiers", "0"],
    ),
    "calendarDelete": ("calendarDelete(input: { calendarId: $value })", ["input", "calendarId"]),
    **{
        f"cardExport {name}": (
            f"cardExport(input: {{ {name}: $value, format: CARD_PNG }})",
            ["input", name],
        )
        for name in ("embryoId", "characterId")
    },
    "lorebookEntryReview": (
        'lorebookEntryReview(input: { entryIds: ["lbe_1", $value], decision: ACCEPT })',
        ["input", "entryIds", "1"],
    ),
    "lorebookEntryUpdate entryId": (
        "lorebookEntryUpdate(input: { entryId: $value })",
        ["input", "entryId"],
    ),
    **{
        f"lorebookEntryUpdate {name}": (
            f'lorebookEntryUpdate(input: {{ entryId: "lbe_1", {name}: {place} }})',
            ["input", name, *step],
        )
        for name, place, step in (
            ("name", "$value", []),
            ("content", "$value", []),
            ("keys", '["x", $value]', ["1"]),
            ("secondaryKeys", '["x", $value]', ["1"]),
        )
    },
    "lorebookDelete": ("lorebookDelete(input: { lorebookId: $value })", ["input", "lorebookId"]),
    **{
        f"{field} {name}": (
            f"{field}(input: {{ {name}: $value, {rest} }})".replace(", }", " }"),
            ["input", name],
        )
        for field, name, rest in (
            ("seatAcquire", "characterId", 'holder: "x"'),
            ("seatAcquire", "holder", 'characterId: "soul_1"'),
            ("seatRenew", "characterId", 'holder: "x", epoch: 1'),
            ("seatRenew", "holder", 'characterId: "soul_1", epoch: 1'),
            ("seatRelease", "characterId", ""),
            ("seatMigrate", "characterId", ""),
            ("seatHandover", "characterId", 'holder: "x", epoch: 1'),
            ("seatHandover", "holder", 'characterId: "soul_1", epoch: 1'),
            ("deathRequest", "characterId", 'purpose: "x"'),
            ("deathRequest", "purpose", 'characterId: "soul_1"'),
            ("deathRevoke", "characterId", ""),
            ("dataErase", "characterId", 'name: "x"'),
            ("dataErase", "name", 'characterId: "soul_1"'),
        )
    },
    "identityChange characterId": (
        'identityChange(input: { characterId: $value, identity: {}, purpose: "x" })',
        ["input", "characterId"],
    ),
    "identityChange purpose": (
        'identityChange(input: { characterId: "soul_1", identity: {}, purpose: $value })',
        ["input", "purpose"],
    ),
    "identityChange identity": (
        "identityChange(input: {"
        ' characterId: "soul_1", identity: { exampleMessages: $value }, purpose: "x" })',
        ["input", "identity", "exampleMessages"],
    ),
    "identityChange forbiddenZone": (
        "identityChange(input: {"
        ' characterId: "soul_1", identity: { forbiddenZone: ["x", $value] }, purpose: "x" })',
        ["input", "identity", "forbiddenZone", "1"],
    ),
    "identityExport": ("identityExport(input: { characterId: $value })", ["input", "characterId"]),
    "petitionDecide": (
        "petitionDecide(input: { petitionId: $value, decision: DENY })",
        ["input", "petitionId"],
    ),
    "embryoActivate embryoId": (
        "embryoActivate(input: { embryoId: $value, confirmed: [] })",
        ["input", "embryoId"],
    ),
    "embryoActivate confirmed": (
        'embryoActivate(input: { embryoId: "embryo_1", confirmed: ["x", $value] })',
        ["input", "confirmed", "1"],
    ),
    **{
        f"embryoCreate {name}": (
            f'embryoCreate(input: {{ identity: {{ name: "x", {name}: $value }} }})',
            ["input", "identity", name],
        )
        for name in (
            "description",
            "exampleMessages",
            "firstMessage",
            "nickname",
            "personality",
            "postHistoryInstructions",
            "scenario",
            "systemPrompt",
        )
    },
    **{
        f"embryoUpdate {name}": (
            f'embryoUpdate(input: {{ embryoId: "embryo_1", identity: {{ {name}: $value }} }})',
            ["input", "identity", name],
        )
        for name in (
            "description",
            "exampleMessages",
            "firstMessage",
            "name",
            "nickname",
            "personality",
            "postHistoryInstructions",
            "scenario",
            "systemPrompt",
        )
    },
    "embryoUpdate forbiddenZone": (
        'embryoUpdate(input: { embryoId: "embryo_1", identity: { forbiddenZone: [$value] } })',
        ["input", "identity", "forbiddenZone", "0"],
    ),
    "embryoUpdate confirmed": (
        'embryoUpdate(input: { embryoId: "embryo_1", confirmed: ["x", $value] })',
        ["input", "confirmed", "1"],
    ),
    "embryoUpdate embryoId": (
        "embryoUpdate(input: { embryoId: $value })",
        ["input", "embryoId"],
    ),
    "embryoAbandon": ("embryoAbandon(input: { embryoId: $value })", ["input", "embryoId"]),
    "embryoRehearsalClear": (
        "embryoRehearsalClear(input: { embryoId: $value })",
        ["input", "embryoId"],
    ),
    **{
        f"formAnchorSet {name}": (
            'formAnchorSet(input: { characterId: "soul_1", '
            + ", ".join(f"{each}: {places[each]}" for each in places)
            + f", {name}: {place} }})",
            ["input", *path],
        )
        for name, place, path in (
            ("stableTraits", '["x", $value]', ["stableTraits", "1"]),
            ("permissions", '["x", $value]', ["permissions", "1"]),
            ("taboos", '["x", $value]', ["taboos", "1"]),
            (
                "variableRange",
                '[{ feature: "x", range: "x" }, { feature: $value, range: "x" }]',
                ["variableRange", "1", "feature"],
            ),
        )
        for places in [{each: "[]" for each in ANCHOR if each != name}]
    },
    "formAnchorSet range": (
        'formAnchorSet(input: { characterId: "soul_1", stableTraits: [], permissions: [],'
        ' taboos: [], variableRange: [{ feature: "x", range: $value }] })',
        ["input", "variableRange", "0", "range"],
    ),
    **{
        f"formPropose {name}": (
            "formPropose(input: { kind: VARIANT, "
            + ", ".join(f"{each}: {value}" for each, value in places.items())
            + f", {name}: $value }})",
            ["input", name],
        )
        for name in ("characterId", "name", "description", "assetRef")
        for places in [
            {each: '"x"' for each in ("characterId", "name", "description") if each != name}
        ]
    },
    **{
        field: (f"{field}(input: {{ formId: $value }})", ["input", "formId"])
        for field in ("formSettle", "formReject", "formRetire")
    },
    "voiceAdd characterId": (
        'voiceAdd(input: { characterId: $value, name: "x", sourceKind: STOCK })',
        ["input", "characterId"],
    ),
    "voiceAdd name": (
        'voiceAdd(input: { characterId: "soul_1", name: $value, sourceKind: STOCK })',
        ["input", "name"],
    ),
    "voiceAdd sourceRef": (
        "voiceAdd(input: "
        '{ characterId: "soul_1", name: "x", sourceKind: STOCK, sourceRef: $value })',
        ["input", "sourceRef"],
    ),
    "voiceAuthorizeClone voiceId": (
        'voiceAuthorizeClone(input: { voiceId: $value, authorizationRef: "x" })',
        ["input", "voiceId"],
    ),
    "voiceAuthorizeClone authorizationRef": (
        'voiceAuthorizeClone(input: { voiceId: "voice_1", authorizationRef: $value })',
        ["input", "authorizationRef"],
    ),
    **{
        field: (f"{field}(input: {{ voiceId: $value }})", ["input", "voiceId"])
        for field in (
            "voiceRevokeClone",
            "voiceAuthorizationRead",
            "voiceSelect",
            "voiceRemove",
        )
    },
    "embryoCreate name": (
        "embryoCreate(input: { identity: { name: $value } })",
        ["input", "identity", "name"],
    ),
    "embryoCreate forbiddenZone": (
        'embryoCreate(input: { identity: { name: "x", forbiddenZone: ["y", $value] } })',
        ["input", "identity", "forbiddenZone", "1"],
    ),
    **{
        f"storyCreate {' '.join(path)}": (
            "storyCreate(input: { "
            + (f"title: {title}, definition: {{ mode: CREATIVE, narration: THIRD, {parts} }}{rest}")
            + " })",
            ["input", *path],
        )
        for path, title, parts, rest in (
            (["title"], "$value", STYLES, ""),
            (["description"], '"x"', STYLES, ", description: $value"),
            (["tags", "1"], '"x"', STYLES, ', tags: ["x", $value]'),
            (["accentColor"], '"x"', STYLES, ", accentColor: $value"),
            (["eraName"], '"x"', STYLES, ", eraName: $value"),
            (["definition", "setting"], '"x"', f"setting: $value, {STYLES}", ""),
            (["definition", "leadKey"], '"x"', f"leadKey: $value, {STYLES}", ""),
            (
                ["definition", "calendarSystemId"],
                '"x"',
                f"calendarSystemId: $value, {STYLES}",
                "",
            ),
            (
                ["definition", "worldTimeOrigin", "year"],
                '"x"',
                f"worldTimeOrigin: {{ year: $value }}, {STYLES}",
                "",
            ),
            (
                ["definition", "genre", "label"],
                '"x"',
                'genre: { label: $value }, tone: { label: "x" }',
                "",
            ),
            (
                ["definition", "tone", "promptBody"],
                '"x"',
                'genre: { label: "x" }, tone: { label: "x", promptBody: $value }',
                "",
            ),
            *(
                (
                    ["cast", "0", *where],
                    '"x"',
                    STYLES,
                    f", cast: [{{ kind: ITEM, {member} }}]",
                )
                for where, member in (
                    (["key"], 'key: $value, name: "x"'),
                    (["name"], 'key: "x", name: $value'),
                    (["description"], 'key: "x", name: "x", description: $value'),
                    (["parentKey"], 'key: "x", name: "x", parentKey: $value'),
                    (["locationKey"], 'key: "x", name: "x", locationKey: $value'),
                    (["factionKey"], 'key: "x", name: "x", factionKey: $value'),
                    (["keywords", "0"], 'key: "x", name: "x", keywords: [$value]'),
                    (["tags", "0"], 'key: "x", name: "x", tags: [$value]'),
                    (["state", "condition"], 'key: "x", name: "x", state: { condition: $value }'),
                )
            ),
            *(
                (["lore", "0", *where], '"x"', STYLES, f", lore: [{{ {piece} }}]")
                for where, piece in (
                    (["key"], 'key: $value, title: "x", body: "x"'),
                    (["title"], 'key: "x", title: $value, body: "x"'),
                    (["body"], 'key: "x", title: "x", body: $value'),
                    (["category"], 'key: "x", title: "x", body: "x", category: $value'),
                    (["keywords", "0"], 'key: "x", title: "x", body: "x", keywords: [$value]'),
                    (["tags", "0"], 'key: "x", title: "x", body: "x", tags: [$value]'),
                )
            ),
            *(
                (["opening", *where], '"x"', STYLES, f", opening: {{ {opening} }}")
                for where, opening in (
                    (["content"], "content: $value"),
                    (["sceneKeys", "0"], 'content: "x", sceneKeys: [$value]'),
                    (["locationKey"], 'content: "x", locationKey: $value'),
                    (["model"], 'content: "x", model: $value'),
                )
            ),
        )
    },
    **{
        f"storyUpdate {' '.join(path)}": (
            f"storyUpdate(input: {{ {given} }})",
            ["input", *path],
        )
        for path, given in (
            (["storyId"], "storyId: $value"),
            (["title"], 'storyId: "story_1", title: $value'),
            (["description"], 'storyId: "story_1", description: $value'),
            (["tags", "0"], 'storyId: "story_1", tags: [$value]'),
            (["accentColor"], 'storyId: "story_1", accentColor: $value'),
            (["coverAssetId"], 'storyId: "story_1", coverAssetId: $value'),
            (
                ["settings", "activePackId"],
                'storyId: "story_1", settings: { activePackId: $value }',
            ),
            *(
                (["definition", *where], f'storyId: "story_1", definition: {{ {part} }}')
                for where, part in (
                    (["setting"], "setting: $value"),
                    (["leadEntityId"], "leadEntityId: $value"),
                    (["calendarSystemId"], "calendarSystemId: $value"),
                    (["worldTimeOrigin", "year"], "worldTimeOrigin: { year: $value }"),
                    (["genre", "promptBody"], 'genre: { label: "x", promptBody: $value }'),
                    (["tone", "label"], "tone: { label: $value }"),
                )
            ),
            *(
                (["opening", *where], f'storyId: "story_1", opening: {{ {part} }}')
                for where, part in (
                    (["content"], "content: $value"),
                    (["currentLocationId"], 'content: "x", currentLocationId: $value'),
                    (["model"], 'content: "x", model: $value'),
                )
            ),
        )
    },
    **{
        f"{field} {name}": (
            f"{field}(input: {{ {name}: $value, {rest} }})".replace(", }", " }"),
            ["input", name],
        )
        for field, name, rest in (
            ("storyOpen", "storyId", ""),
            ("storyOpen", "branchId", 'storyId: "story_1"'),
            ("storyDelete", "storyId", ""),
            ("branchRename", "branchId", 'name: "x"'),
            ("branchRename", "name", 'branchId: "br_1"'),
            ("branchDelete", "branchId", ""),
        )
    },
}


@pytest.fixture(scope="module")
async def untouched(caller: Caller, ledger: Ledger) -> dict[str, str]:
    """What the database holds before any test of this module."""
    await caller.create_tree()
    return await ledger.fingerprint()


def change(name: str) -> str:
    """A mutation with the variable `value`, of the type that its place takes."""
    field, place = CHANGES[name]
    lists = {"keep", "entryIds", "sceneEntityIds"}
    is_id = place[-1].endswith("Id") or not lists.isdisjoint(place)
    # Models have the names that their providers gave them.
    is_id = is_id and not place[-1].lower().endswith("modelid")
    kind = "ID!" if is_id else "String!"
    return f"mutation ($value: {kind}) {{ changed: {field} {{ errors {{ code path }} }} }}"


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_that_holds_u0000_is_told_which_field_to_mend(
    caller: Caller, ledger: Ledger, untouched: dict[str, str], name: str
) -> None:
    """Rule T47."""
    mistake = {"changed": {"errors": [{"code": "INVALID_TEXT", "path": CHANGES[name][1]}]}}
    assert await caller.ask(change(name), {"value": "a\0b"}) == mistake
    # The same written into the document, escaped and as it is.
    for written in (r"a\u0000b", "a\0b"):
        literal = change(name).partition("{")[2].replace("$value", f'"{written}"')
        assert await caller.ask("mutation {" + literal) == mistake
    async with caller.socket() as socket:
        assert await socket.ask(change(name), {"value": "a\0b"}) == mistake
    assert await ledger.fingerprint() == untouched


@pytest.mark.parametrize(
    ("query", "code", "argument"),
    [
        ("node(id: $value) { id }", "MALFORMED_ID", "id"),
        ("nodes(ids: [$value]) { id }", "MALFORMED_ID", "ids"),
        ("characters(after: $value) { totalCount }", "INVALID_CURSOR", "after"),
        ("embryos(before: $value) { totalCount }", "INVALID_CURSOR", "before"),
        ("runs(after: $value) { totalCount }", "INVALID_CURSOR", "after"),
        ("petitions(after: $value) { totalCount }", "INVALID_CURSOR", "after"),
        ("importJobs(after: $value) { totalCount }", "INVALID_CURSOR", "after"),
        ("lorebooks(before: $value) { totalCount }", "INVALID_CURSOR", "before"),
        ("calendars(after: $value) { totalCount }", "INVALID_CURSOR", "after"),
        ("assets(after: $value) { totalCount }", "INVALID_CURSOR", "after"),
        ("stories(after: $value) { totalCount }", "INVALID_CURSOR", "after"),
        ("stories(search: $value) { totalCount }", "INVALID_TEXT", "search"),
        ("viewer { auditEvents(before: $value) { totalCount } }", "INVALID_CURSOR", "before"),
    ],
)
async def test_a_question_that_holds_u0000_is_told_which_argument_to_mend(
    caller: Caller, query: str, code: str, argument: str
) -> None:
    """Rule T47."""
    kind = "ID!" if code == "MALFORMED_ID" else "String"
    document = f"query ($value: {kind}) {{ {query} }}"
    answer = await caller.post(document, {"value": "a\0b"})
    assert answer.status == 200
    (error,) = answer.body["errors"]
    assert error["extensions"] == {"code": code, "argument": argument}
    async with caller.socket() as socket:
        started = await socket.start(document, {"value": "a\0b"})
        (result,) = [each async for each in started]
        assert [each["extensions"] for each in result["errors"]] == [error["extensions"]]


@pytest.mark.parametrize(
    "field", ["asset", "calendar", "character", "mirrorTree", "petition", "run", "treeNode"]
)
async def test_an_id_that_holds_u0000_names_nothing(caller: Caller, field: str) -> None:
    """Rule T47."""
    found = await caller.ask(f"query ($id: ID!) {{ {field}(id: $id) {{ id }} }}", {"id": "a\0b"})
    assert found == {field: None}


@pytest.mark.parametrize(
    "value",
    [rb'"\ud800"', rb'"\udfff\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b'"\xc0\x80"'],
    ids=["escaped", "in the wrong order", "raw", "no UTF-8", "overlong"],
)
async def test_a_text_that_is_none_is_refused_over_http(caller: Caller, value: bytes) -> None:
    """Rule T47."""
    asked = b'{"query": "%b", "variables": {"value": %b}}' % (NODE.encode(), value)
    refused = await caller.request("POST", headers=JSON_TYPE, data=asked)
    assert (refused.status, refused.codes) == NOT_JSON
    within_the_document = b'{"query": "{ viewer { roles } } # \xed\xa0\x80"}'
    refused = await caller.request("POST", headers=JSON_TYPE, data=within_the_document)
    assert (refused.status, refused.codes) == NOT_JSON


async def test_a_lone_surrogate_in_a_document_is_a_syntax_error(caller: Caller) -> None:
    """Rule T47."""
    for escape in (r"\ud800", r"\u{d800}", r"\udc00\ud800"):
        refused = await caller.post(f'{{ node(id: "{escape}") {{ id }} }}')
        assert (refused.status, refused.codes) == (400, ["GRAPHQL_PARSE_FAILED"])


NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5_000]


@pytest.mark.parametrize("value", NUMBERS, ids=["NaN", "Infinity", "-Infinity", "1e999", "9…9"])
@pytest.mark.parametrize("query", [PAGE, NODE], ids=["Int", "ID"])
async def test_a_number_that_json_does_not_have_is_refused(
    caller: Caller, server: ServerProcess, query: str, value: bytes
) -> None:
    """Rule T47."""
    asked = b'{"query": "%b", "variables": {"value": %b}}' % (query.encode(), value)
    refused = await caller.request("POST", headers=JSON_TYPE, data=asked)
    assert (refused.status, refused.codes) == NOT_JSON
    subscribe = b'{"type": "subscribe", "id": "1", "payload": %b}' % asked
    assert await closing(server, subscribe.decode()) == (4400, "The message is not JSON")


@pytest.mark.parametrize(
    ("frame", "code", "reason"),
    [
        (r'{"type": "ping", "payload": {"x": "\ud800"}}', 4400, "The message is not JSON"),
        (b'{"type": "ping", "payload": {"x": "\xed\xa0\x80"}}', 1007, None),
        (b'{"type": "ping", "payload": {"x": "\xff"}}', 1007, None),
    ],
    ids=["escaped surrogate", "raw surrogate", "no UTF-8"],
)
async def test_a_text_that_is_none_closes_a_socket(
    server: ServerProcess, frame: bytes | str, code: int, reason: str | None
) -> None:
    """Rule T47."""
    closed_with, said = await closing(server, frame)
    assert closed_with == code
    assert reason is None or said == reason


async def closing(server: ServerProcess, frame: bytes | str) -> tuple[int, str]:
    """Send a text frame as the first operation; how the server closes the socket."""
    async with dialled(server) as connection:
        await connection.send('{"type": "connection_init"}')
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}
        await connection.send(frame, text=True)
        with pytest.raises(ConnectionClosed) as caught:
            await connection.recv()
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code, caught.value.rcvd.reason


NULLS = {
    "SettingUpdateInput": {"defaultProviderId": None},
    "ProviderUpdateInput": {"providerId": "prov_1", "displayName": None},
    "ProfileUpdateInput": {"profileId": "prof_1", "name": None},
    "EmbryoUpdateInput": {"embryoId": "embryo_1", "identity": {"name": None}},
    "IdentityChangeInput": {"characterId": "soul_1", "identity": {"name": None}, "purpose": "x"},
    "LorebookEntryUpdateInput": {"entryId": "lbe_1", "position": None},
    "CalendarUpdateInput": {"calendarId": "cal_1", "isFavorite": None},
    "StoryUpdateInput": {"storyId": "story_1", "definition": {"setting": None}},
    "WorldUpdateInput": {"worldId": "world_1", "name": None},
    "WorldEntityUpdateInput": {"worldEntityId": "went_1", "tags": None},
    "WorldRelationSetInput": {
        "sourceId": "went_1",
        "targetId": "went_2",
        "kind": "knows",
        "weight": None,
    },
    "LoreUpdateInput": {"loreId": "lore_1", "priority": None},
    "ThreadUpdateInput": {"threadId": "thr_1", "status": None},
    "HappeningUpdateInput": {"happeningId": "hap_1", "commonKnowledge": None},
    "EntryMetaUpdateInput": {"entryId": "entry_1", "worldTime": None},
    "ChapterUpdateInput": {"chapterId": "chap_1", "title": None},
    "EraFlipUpdateInput": {"eraFlipId": "era_1", "atWorldTime": None},
    "AwarenessSetInput": {"happeningId": "hap_1", "characterId": "char_1", "decayResistance": None},
}


@pytest.mark.parametrize("kind", NULLS)
async def test_null_for_what_can_only_be_left_out_is_refused(caller: Caller, kind: str) -> None:
    """Rule T47."""
    field = kind[0].lower() + kind.removesuffix("Input")[1:]
    said = "null means nothing here: give a value, or leave the field out."
    query = f"mutation ($input: {kind}!) {{ {field}(input: $input) {{ errors {{ code }} }} }}"
    answer = await caller.post(query, {"input": NULLS[kind]})
    (error,) = answer.body["errors"]
    assert (error["message"], error["path"], error["extensions"]) == (
        said,
        [field],
        {"code": "BAD_USER_INPUT"},
    )
    literal = re.sub(r'"(\w+)":', r"\1:", json.dumps(NULLS[kind]))
    refused = await caller.post(f"mutation {{ {field}(input: {literal}) {{ errors {{ code }} }} }}")
    assert (refused.status, refused.codes) == (422, ["GRAPHQL_VALIDATION_FAILED"])
    assert refused.body["errors"][0]["message"] == said


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**53, 2**63, 2**64, 1.5, "1", True, [1]])
@pytest.mark.parametrize(
    ("query", "given"), [(PAGE, {}), (EVENTS, {"run": "run_1"})], ids=["first", "after"]
)
async def test_an_int_of_another_size_or_kind_is_refused_everywhere(
    caller: Caller, query: str, given: Json, value: Any
) -> None:
    """Rule T47."""
    variables = {**given, "value": value}
    streaming = {"Accept": "application/json, text/event-stream"}
    if "subscription" not in query:
        refused = await caller.post(query, variables, headers=streaming)
        assert (refused.status, refused.codes) == (422, ["BAD_USER_INPUT"])
        (error,) = refused.body["errors"]
        assert error["message"].startswith("Variable '$value' has invalid value: Int cannot ")
    async with caller.stream(query, variables) as results:
        assert [code async for each in results for code in codes(each)] == ["BAD_USER_INPUT"]
    async with caller.socket() as socket:
        started = await socket.start(query, variables)
        assert [each async for each in started] == []
        assert codes({"errors": started.errors}) == ["BAD_USER_INPUT"]


def codes(result: Json) -> list[str]:
    """The codes of a result's errors."""
    return [each["extensions"]["code"] for each in result["errors"]]


# Python reads no number as long as the last one.
WRITTEN = [str(2**31), str(-(2**31) - 1), str(2**63), "NaN", "1.0", "1e1", "9" * 5_000]


@pytest.mark.parametrize("value", WRITTEN, ids=[each[:12] for each in WRITTEN])
async def test_an_int_of_another_size_or_kind_in_a_document_is_refused(
    caller: Caller, value: str
) -> None:
    """Rule T47."""
    refused = await caller.post(f"{{ characters(first: {value}) {{ totalCount }} }}")
    assert (refused.status, refused.codes) == (422, ["GRAPHQL_VALIDATION_FAILED"])
    assert "sys." not in refused.body["errors"][0]["message"]


@pytest.mark.parametrize("value", [2**31, 2**63, -1])
async def test_an_id_may_be_any_integer(caller: Caller, value: int) -> None:
    """Rule T47."""
    found = await caller.ask("query ($id: ID!) { run(id: $id) { id } }", {"id": value})
    assert found == {"run": None}


async def test_extreme_integers_where_nothing_reads_them_are_ignored(caller: Caller) -> None:
    """Rule T47."""
    for value in (2**31, 2**63, 2**64):
        asked = {
            "query": "{ viewer { roles } }",
            "variables": {"unused": value},
            "extensions": {"unused": value, "traceparent": value},
        }
        answer = await caller.request("POST", json=asked)
        assert answer.data == {"viewer": {"roles": []}}


@pytest.mark.parametrize("levels", [100, 300, 900])
@pytest.mark.parametrize("kind", ["lists", "objects"])
async def test_variables_that_nest_deeply_are_refused_or_ignored(
    caller: Caller, levels: int, kind: str
) -> None:
    before, after = ("[", "]") if kind == "lists" else ('{"a": ', "}")
    nested = before * levels + "1" + after * levels

    async def send(query: str, **headers: str) -> tuple[int, list[str]]:
        body = f'{{"query": {json.dumps(query)}, "variables": {{"value": {nested}}}}}'
        answer = await caller.request("POST", headers={**JSON_TYPE, **headers}, data=body)
        return answer.status, answer.codes if "errors" in answer.body else []

    assert await send(NODE) == (422, ["BAD_USER_INPUT"])
    assert await send("{ viewer { roles } }") == (200, [])
    # What is done once must be recognised again, so its variables are read whole.
    cancel = 'mutation { runCancel(input: { runId: "run_1" }) { errors { code } } }'
    expected = (200, []) if levels == 100 else (422, ["BAD_USER_INPUT"])
    assert await send(cancel, **{"Idempotency-Key": f"{kind}-{levels}"}) == expected


async def test_json_deeper_than_anybody_needs_is_refused(caller: Caller) -> None:
    body = '{"query": "{ viewer { roles } }", "variables": {"value": ' + "[" * 50_000
    refused = await caller.request("POST", headers=JSON_TYPE, data=body + "]" * 50_000 + "}}")
    assert (refused.status, refused.codes) == NOT_JSON


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ("node(id: $value) { id }", ["MALFORMED_ID"]),
        ("run(id: $value) { id }", []),
        ("characters(after: $value) { totalCount }", ["INVALID_CURSOR"]),
    ],
)
async def test_a_huge_text_is_answered_shortly(
    caller: Caller, query: str, errors: list[str]
) -> None:
    kind = "String" if "after" in query else "ID!"
    answer = await caller.post(f"query ($value: {kind}) {{ {query} }}", {"value": "x" * 10**6})
    assert (answer.codes if "errors" in answer.body else []) == errors
    assert len(json.dumps(answer.body)) < 1_000


async def test_a_huge_text_that_is_to_be_kept_is_refused(
    caller: Caller, ledger: Ledger, untouched: dict[str, str]
) -> None:
    made = await caller.ask(change("treeCreate topic"), {"value": "x" * 10**6})
    assert made == {"changed": {"errors": [{"code": "TEXT_TOO_LONG", "path": ["input", "topic"]}]}}
    assert await ledger.fingerprint() == untouched


@pytest.mark.parametrize(
    "target",
    [
        {"start": 10**30, "end": 10**31},
        {"start": -1, "end": 2},
        {"start": 2**63, "end": 2**63 + 1},
        {"start": 0.5, "end": 1},
        {"start": True, "end": 2},
        {"start": None, "end": 2},
        {"start": "0", "end": 2},
        [0, 2],
        "0-2",
        5,
    ],
    ids=str,
)
async def test_a_place_that_is_no_place_is_told_so(
    caller: Caller, ledger: Ledger, untouched: dict[str, str], target: Any
) -> None:
    """Rule T47. Definitions of calendars are tried in test_calendars."""
    query = """
    mutation ($node: ID!, $target: JSON!) {
      nodeCite(input: { nodeId: $node, sourceId: $node, target: $target }) { errors { code path } }
    }
    """
    begun = await ledger.value("SELECT id FROM tree_nodes LIMIT 1")
    payload = (await caller.ask(query, {"node": begun, "target": target}))["nodeCite"]
    (error,) = payload["errors"]
    assert error["code"] == "BAD_TARGET"
    assert error["path"][:2] == ["input", "target"]
    assert await ledger.fingerprint() == untouched


AUTHORIZE = """
mutation ($voice: ID!, $until: DateTime) {
  voiceAuthorizeClone(input: { voiceId: $voice, authorizationRef: "x", expiresAt: $until }) {
    errors { code path }
  }
}
"""


@pytest.mark.parametrize(
    "until",
    [
        "2999-01-01T00:00:00",
        "2999",
        "0001-01-01T00:00:00+14:00",
        "1999-12-31T23:59:59Z",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59-00:01",
    ],
)
async def test_a_time_that_cannot_be_meant_is_told_so(
    caller: Caller, ledger: Ledger, untouched: dict[str, str], until: str
) -> None:
    """Rule T47. The one argument that is a time."""
    given = {"voice": "voice_01M8PWHTKM1MYZF1MVN95MYA0B", "until": until}
    payload = (await caller.ask(AUTHORIZE, given))["voiceAuthorizeClone"]
    assert payload["errors"] == [{"code": "INVALID_TIME", "path": ["input", "expiresAt"]}]
    assert await ledger.fingerprint() == untouched


@pytest.mark.parametrize(
    "until",
    ["", "soon", "a\0b", "2999-02-30T00:00:00Z", "2999-01-01T00:00:60Z", "9999-12-31T24:00", 5],
    ids=str,
)
async def test_a_time_that_is_none_is_refused_everywhere(caller: Caller, until: Any) -> None:
    """Rule T47."""
    given = {"voice": "voice_1", "until": until}
    refused = await caller.post(AUTHORIZE, given)
    assert (refused.status, refused.codes) == (422, ["BAD_USER_INPUT"])
    async with caller.socket() as socket:
        started = await socket.start(AUTHORIZE, given)
        assert [each async for each in started] == []
        assert codes({"errors": started.errors}) == ["BAD_USER_INPUT"]


def test_these_arguments_take_times_and_json() -> None:
    """Rule T47. Another one needs tests here: of extreme ones."""
    types = schema._schema.type_map.values()
    arguments = [
        argument
        for each in types
        if isinstance(each, GraphQLObjectType)
        for field in each.fields.values()
        for argument in field.args.values()
    ]
    fields = [
        field
        for each in types
        if isinstance(each, GraphQLInputObjectType)
        for field in each.fields.values()
    ]
    scalars = {
        named.name
        for named in (get_named_type(each.type) for each in (*arguments, *fields))
        if isinstance(named, GraphQLScalarType)
    }
    assert scalars == {
        *("Boolean", "DateTime", "Float", "ID", "Int", "JSON", "Long", "String", "Upload")
    }
    # What is set up, six times JSON and four numbers, is tried in test_settings.
    # In inputs a place and two definitions; as arguments a date and two origins. Shares that
    # decay resists, twice, are tried in test_plot, times of entries and eras in test_entries, what
    # new stories take in test_stories, states, amounts and moments of branches in test_entities.
    for scalar, within, counted in (
        ("DateTime", fields, 2),
        ("DateTime", arguments, 0),
        ("Float", fields, 25),
        ("Float", arguments, 0),
        ("JSON", fields, 18),
        ("JSON", arguments, 3),
        ("Long", fields, 11),
        ("Long", arguments, 8),
    ):
        takers = [each for each in within if get_named_type(each.type).name == scalar]
        assert len(takers) == counted, scalar
