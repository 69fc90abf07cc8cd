"""A character of which there is everything, made through the API with one word in every text."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.e2e.callers import (
    CARD_IMPORT,
    CHECKLIST,
    EMBRYO_ACTIVATE,
    PATIENCE,
    PREFLIGHT,
    TREE_ASK,
    Caller,
    Json,
)
from tests.e2e.draft_documents import DRAFT_CHANGES, REHEARSAL
from tests.e2e.ending_documents import ENDING_CHANGES, SEAT_CHANGES
from tests.e2e.form_documents import FORM_CHANGES, VOICE_CHANGES
from tests.e2e.tree_documents import TREE_CHANGES, TREE_RULES

# A word that nothing else in a database has; it stands in every text of the character.
WORD = "xyzzyplugh"

OTHER_CHANGES = """
mutation LorebookImport($file: Upload!, $character: ID) {
  lorebookImport(input: { characterId: $character, file: $file }) {
    lorebook { id entries { nodes { id } } } errors { code path }
  }
}
mutation Review($entries: [ID!]!) {
  lorebookEntryReview(input: { entryIds: $entries, decision: ACCEPT }) {
    entries { id } errors { code path }
  }
}
mutation EntryUpdate($entry: ID!, $content: String!) {
  lorebookEntryUpdate(input: { entryId: $entry, content: $content }) {
    entry { id } errors { code path }
  }
}
mutation LorebookDelete($book: ID!) {
  lorebookDelete(input: { lorebookId: $book }) { errors { code path } }
}
mutation IdentityChange($character: ID!, $identity: EmbryoIdentityUpdateInput!, $purpose: String!) {
  identityChange(input: { characterId: $character, identity: $identity, purpose: $purpose }) {
    petition { id } errors { code path }
  }
}
mutation Export($character: ID!, $format: ExportFormat!) {
  cardExport(input: { characterId: $character, format: $format }) {
    export { id url } errors { code path }
  }
}
mutation Cite($node: ID!, $kind: CitationTarget!, $source: ID!, $target: JSON!, $quote: String) {
  nodeCite(
    input: {
      nodeId: $node, targetKind: $kind, sourceId: $source, target: $target, quote: $quote
    }
  ) { citation { id } errors { code path } }
}
"""
DOCUMENTS = (
    OTHER_CHANGES,
    TREE_CHANGES,
    TREE_RULES,
    FORM_CHANGES,
    VOICE_CHANGES,
    SEAT_CHANGES,
    ENDING_CHANGES,
    DRAFT_CHANGES,
    TREE_ASK,
)


def book(number: int) -> Json:
    return {
        "name": f"{WORD} book {number}",
        "description": f"About {WORD}.",
        "extensions": {"note": WORD},
        "entries": [
            {
                "keys": [f"{WORD} {number}"],
                "secondary_keys": [WORD],
                "selective": True,
                "content": f"What {WORD} is.",
                "extensions": {"hidden": WORD},
                "enabled": True,
                "insertion_order": 1,
                "name": f"{WORD} entry",
                "comment": WORD,
            }
        ],
    }


def card(name: str) -> bytes:
    fields = ("description", "personality", "scenario", "first_mes", "mes_example", "creator_notes")
    data = {
        "name": name,
        **{field: f"{name} says {WORD} in {field}." for field in fields},
        "tags": [WORD],
        # Too large a number is mended, with a warning whose path has the word.
        "extensions": {"own": {WORD: 10**30}},
        "character_book": book(0),
    }
    return json.dumps({"spec": "chara_card_v3", "spec_version": "3.0", "data": data}).encode()


async def act(caller: Caller, operation: str, **variables: Any) -> Json:
    """The payload of one mutation that must succeed."""
    (query,) = [each for each in DOCUMENTS if f"mutation {operation}(" in each]
    (payload,) = (await caller.ask(query, variables, operation)).values()
    assert payload["errors"] == [], (operation, payload["errors"])
    return dict(payload)


async def upload_book(caller: Caller, character: str, number: int) -> Json:
    form = aiohttp.FormData(quote_fields=False)
    asked = {
        "query": OTHER_CHANGES,
        "operationName": "LorebookImport",
        "variables": {"file": None, "character": character},
    }
    form.add_field("operations", json.dumps(asked))
    form.add_field("map", json.dumps({"0": ["variables.file"]}))
    content = json.dumps(book(number)).encode()
    form.add_field("0", content, filename=f"{WORD}-{number}.json", content_type="application/json")
    answer = await caller.request("POST", headers=PREFLIGHT, data=form)
    payload = answer.data["lorebookImport"]
    assert payload["errors"] == []
    return dict(payload["lorebook"])


@dataclass(frozen=True)
class Life:
    """What was made of a character."""

    name: str
    character: str
    tree: str
    run: str
    exported: str


async def live(caller: Caller, name: str) -> Life:
    """A character with a text in every place that there is, and WORD in each of them."""
    keyed = {**PREFLIGHT, "Idempotency-Key": f"import of {name.partition(' ')[0]}"}
    query = CARD_IMPORT.replace("warnings { code message }", "warnings { code message path }")
    imported = (await caller.upload(card(name), f"{WORD}.json", keyed, query)).data["cardImport"]
    assert imported["errors"] == []
    embryo = imported["embryo"]["id"]
    identity = {"nickname": WORD, "forbiddenZone": [f"Forgetting {WORD}."]}
    await act(caller, "EmbryoUpdate", embryo=embryo, identity=identity)
    async with asyncio.timeout(PATIENCE):
        given = {"embryo": embryo, "text": f"Who is {WORD}?"}
        async with caller.stream(REHEARSAL, given) as said:
            assert [each async for each in said]
    issued = await caller.ask(EMBRYO_ACTIVATE, {"id": embryo, "confirmed": CHECKLIST})
    character = issued["embryoActivate"]["character"]["id"]

    tree = await caller.create_tree(character, f"On {WORD}")
    begun = await caller.begin(f"What is {WORD}?", tree)
    answer = (await caller.follow(begun.run))[-1]["node"]["id"]
    refused = await caller.begin(f"[demo: fault=refused] {WORD}?", tree, answer)
    await caller.follow(refused.run)
    confirmed = {"endpoint": answer, "scope": "REALITY"}
    await act(caller, "PathCanonize", **confirmed)
    await act(caller, "NodeEdit", node=answer, text=f"No, {WORD}.")
    await act(caller, "NodeCorrect", node=begun.question, text=f"And what is {WORD}?")
    await act(caller, "TreeTransplant", node=answer, topic=f"More of {WORD}")
    cited: list[Json] = [
        {"kind": "TEXT_RANGE", "source": begun.question, "target": {"start": 0, "end": 200}},
        {"kind": "ATTACHMENT", "source": f"{WORD}.pdf", "target": {}, "quote": f"{WORD}!"},
    ]
    for each in cited:
        await act(caller, "Cite", node=answer, **each)

    anchor = {
        "characterId": character,
        "stableTraits": [WORD],
        "permissions": [WORD],
        "taboos": [WORD],
        "variableRange": [{"feature": WORD, "range": WORD}],
    }
    await act(caller, "FormAnchorSet", input=anchor)
    form = {"kind": "PRIMARY", "name": WORD, "description": WORD, "assetRef": f"{WORD}.png"}
    proposed = await act(caller, "FormPropose", input={"characterId": character, **form})
    await act(caller, "FormSettle", form=proposed["form"]["id"])
    voice = {"characterId": character, "name": WORD, "sourceKind": "CLONED", "sourceRef": WORD}
    voice_id = (await act(caller, "VoiceAdd", input=voice))["voice"]["id"]
    await act(caller, "VoiceAuthorizeClone", voice=voice_id, ref=f"letter of {WORD}")

    kept, dropped = [await upload_book(caller, character, number) for number in (1, 2)]
    entries = [each["id"] for each in kept["entries"]["nodes"]]
    await act(caller, "Review", entries=entries)
    await act(caller, "EntryUpdate", entry=entries[0], content=f"{WORD} is more.")
    await act(caller, "LorebookDelete", book=dropped["id"])

    for text in (f"Now {WORD}.", f"Perhaps {WORD}."):
        changed = {"identity": {"description": text}, "purpose": f"For {WORD}."}
        asked = await act(caller, "IdentityChange", character=character, **changed)
        if text.startswith("Now"):
            await act(caller, "Approve", petition=asked["petition"]["id"])
    held = await act(caller, "SeatAcquire", character=character, holder=f"phone of {WORD}")
    for shape in ("CARD_V2_JSON", "CARD_V3_JSON", "CARD_CHARX"):
        made = await act(caller, "Export", character=character, format=shape)
    assert held["seat"]["leaseHolder"] == f"phone of {WORD}"
    # A search keeps the words of what it looks into.
    search = "query ($text: String!) { search(text: $text, first: 100) { hits { kind } } }"
    found = (await caller.ask(search, {"text": WORD}))["search"]["hits"]
    assert {each["kind"] for each in found} == {"CHARACTER", "TREE", "NODE", "LOREBOOK_ENTRY"}
    return Life(name, character, tree, begun.run, made["export"]["url"])


async def end(caller: Caller, life: Life) -> None:
    asked = await act(caller, "DeathRequest", character=life.character, purpose=f"Enough {WORD}.")
    await act(caller, "Approve", petition=asked["petition"]["id"])
