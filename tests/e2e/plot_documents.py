"""What front ends ask about lore, threads, happenings and translations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.e2e.callers import Caller, Json

PLOT_CHANGES = """
fragment Refused on UserError { code message path }
mutation LoreCreate($input: LoreCreateInput!) {
  loreCreate(input: $input) { lore { id title } branch { id head } errors { ...Refused } }
}
mutation LoreUpdate($input: LoreUpdateInput!) {
  loreUpdate(input: $input) { lore { id title } branch { id head } errors { ...Refused } }
}
mutation LoreDelete($input: LoreDeleteInput!) {
  loreDelete(input: $input) { deletedId branch { id head } errors { ...Refused } }
}
mutation ThreadCreate($input: ThreadCreateInput!) {
  threadCreate(input: $input) { thread { id status } branch { id head } errors { ...Refused } }
}
mutation ThreadUpdate($input: ThreadUpdateInput!) {
  threadUpdate(input: $input) { thread { id status } branch { id head } errors { ...Refused } }
}
mutation ThreadDelete($input: ThreadDeleteInput!) {
  threadDelete(input: $input) { deletedId branch { id head } errors { ...Refused } }
}
mutation HappeningCreate($input: HappeningCreateInput!) {
  happeningCreate(input: $input) {
    happening { id title involvements { id } awareness { id } }
    branch { id head } errors { ...Refused }
  }
}
mutation HappeningUpdate($input: HappeningUpdateInput!) {
  happeningUpdate(input: $input) {
    happening { id title } branch { id head } errors { ...Refused }
  }
}
mutation HappeningDelete($input: HappeningDeleteInput!) {
  happeningDelete(input: $input) { deletedId branch { id head } errors { ...Refused } }
}
mutation InvolvementSet($input: InvolvementSetInput!) {
  involvementSet(input: $input) {
    involvement { id role entity { id } } branch { id head } errors { ...Refused }
  }
}
mutation InvolvementDelete($input: InvolvementDeleteInput!) {
  involvementDelete(input: $input) { deletedId branch { id head } errors { ...Refused } }
}
mutation AwarenessSet($input: AwarenessSetInput!) {
  awarenessSet(input: $input) {
    awareness { id source decayResistance learnedAt { id } character { id } }
    branch { id head } errors { ...Refused }
  }
}
mutation AwarenessDelete($input: AwarenessDeleteInput!) {
  awarenessDelete(input: $input) { deletedId branch { id head } errors { ...Refused } }
}
mutation TranslationSet($input: TranslationSetInput!) {
  translationSet(input: $input) {
    translation { id field language text target { __typename id } }
    branch { id head } errors { ...Refused }
  }
}
mutation TranslationImport($input: TranslationImportInput!) {
  translationImport(input: $input) { created updated branch { id head } errors { ...Refused } }
}
mutation TranslationRun($input: TranslationRunInput!) {
  translationRun(input: $input) {
    run { id kind status language targetKinds branch { id } } errors { ...Refused }
  }
}
mutation TranslationDelete($input: TranslationDeleteInput!) {
  translationDelete(input: $input) { deletedId branch { id head } errors { ...Refused } }
}
"""

PLOT = """
query Plot(
  $branch: ID! $lore: LoreFilter $threads: ThreadFilter $happenings: HappeningFilter
  $asOf: AsOfInput $language: String
) {
  branch(id: $branch) {
    lore(filter: $lore, asOf: $asOf) {
      nodes {
        id title body category tags keywords injectionMode priority embeddingStale
        translated(field: "title", language: $language)
      }
      totalCount
    }
    threads(filter: $threads, asOf: $asOf) {
      nodes {
        id title description category icon status injectionMode
        triggeredAt { position } resolvedAt { position }
      }
      totalCount
    }
    happenings(filter: $happenings, asOf: $asOf) {
      nodes {
        id title description category icon temporal commonKnowledge occurredAt { position }
        involvements { role entity { name } happening { title } }
        awareness {
          source decayResistance retrievalCount learnedAt { position } character { name }
        }
      }
      totalCount
    }
    translations(language: $language, asOf: $asOf) {
      nodes { field language text targetKind target { __typename id } } totalCount
    }
  }
}
query Known($id: ID!) {
  node(id: $id) {
    ... on StoryCharacter {
      knows(first: 20) { nodes { source learnedAt { position } happening { id title } } totalCount }
      involvements { nodes { role happening { id } } totalCount }
    }
  }
}
"""


async def make_plot(caller: Caller, branch: str, character: str) -> dict[str, str]:
    """One of each in a branch; ids by kinds."""

    async def made(operation: str, row: str, **given: Any) -> Json:
        (payload,) = (await caller.ask(PLOT_CHANGES, {"input": given}, operation)).values()
        assert payload["errors"] == []
        return dict(payload[row])

    lore = await made("LoreCreate", "lore", branchId=branch, title="Oil", body="Taxed.")
    thread = await made("ThreadCreate", "thread", branchId=branch, title="Who burns?")
    happening = await made(
        "HappeningCreate",
        "happening",
        branchId=branch,
        title="Fire",
        involvements=[{"entityId": character}],
        awareness=[{"characterId": character}],
    )
    translation = await made(
        "TranslationSet",
        "translation",
        targetId=lore["id"],
        field="title",
        language="fr",
        text="Huile",
    )
    return {
        "Lore": lore["id"],
        "Thread": thread["id"],
        "Happening": happening["id"],
        "HappeningInvolvement": happening["involvements"][0]["id"],
        "HappeningAwareness": happening["awareness"][0]["id"],
        "Translation": translation["id"],
    }


def plot_inputs(ids: Mapping[str, str]) -> dict[str, Json]:
    """An input for each of PLOT_CHANGES, aimed at rows whose ids are given by their kinds."""
    branch, happening = {"branchId": ids["Branch"]}, {"happeningId": ids["Happening"]}
    return {
        "LoreCreate": {**branch, "title": "Not mine", "body": "So it is."},
        "LoreUpdate": {"loreId": ids["Lore"], "title": "Not mine"},
        "LoreDelete": {"loreId": ids["Lore"]},
        "ThreadCreate": {**branch, "title": "Not mine"},
        "ThreadUpdate": {"threadId": ids["Thread"], "status": "FAILED"},
        "ThreadDelete": {"threadId": ids["Thread"]},
        "HappeningCreate": {**branch, "title": "Not mine"},
        "HappeningUpdate": {**happening, "title": "Not mine"},
        "HappeningDelete": happening,
        "InvolvementSet": {**happening, "entityId": ids["StoryCharacter"], "role": "not mine"},
        "InvolvementDelete": {"involvementId": ids["HappeningInvolvement"]},
        "AwarenessSet": {**happening, "characterId": ids["StoryCharacter"], "source": "not mine"},
        "AwarenessDelete": {"awarenessId": ids["HappeningAwareness"]},
        "TranslationSet": {
            "targetId": ids["Lore"],
            "field": "title",
            "language": "de",
            "text": "Nicht meins",
        },
        "TranslationImport": {
            **branch,
            "language": "de",
            "translations": [{"targetId": ids["Lore"], "field": "body", "text": "Nicht meins"}],
        },
        "TranslationRun": {**branch, "language": "de", "kinds": ["LORE"]},
        "TranslationDelete": {"translationId": ids["Translation"]},
    }


# The first field of each input: where it says what it did not find.
PLOT_PATHS = {
    "loreCreate": "branchId",
    "loreUpdate": "loreId",
    "loreDelete": "loreId",
    "threadCreate": "branchId",
    "threadUpdate": "threadId",
    "threadDelete": "threadId",
    "happeningCreate": "branchId",
    "happeningUpdate": "happeningId",
    "happeningDelete": "happeningId",
    "involvementSet": "happeningId",
    "involvementDelete": "involvementId",
    "awarenessSet": "happeningId",
    "awarenessDelete": "awarenessId",
    "translationSet": "targetId",
    "translationImport": "branchId",
    "translationRun": "branchId",
    "translationDelete": "translationId",
}

_OF_LORE = ["title", "body", "category", "tags.1", "keywords.1"]
_OF_THREAD = ["title", "description", "category", "icon", "triggeredAtEntryId", "resolvedAtEntryId"]
_OF_HAPPENING = ["title", "description", "category", "icon", "temporal", "occurredAtEntryId"]
_TEXTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "loreCreate": ({"branchId": '"br_1"', "title": '"x"', "body": '"x"'}, _OF_LORE),
    "loreUpdate": ({"loreId": '"lore_1"'}, _OF_LORE),
    "loreDelete": ({"loreId": '"lore_1"'}, []),
    "threadCreate": ({"branchId": '"br_1"', "title": '"x"'}, _OF_THREAD),
    "threadUpdate": ({"threadId": '"thr_1"'}, _OF_THREAD),
    "threadDelete": ({"threadId": '"thr_1"'}, []),
    "happeningCreate": (
        {"branchId": '"br_1"', "title": '"x"'},
        [
            *_OF_HAPPENING,
            "involvements.0.entityId",
            "involvements.0.role",
            "awareness.0.characterId",
            "awareness.0.source",
            "awareness.0.learnedAtEntryId",
        ],
    ),
    "happeningUpdate": ({"happeningId": '"hap_1"'}, _OF_HAPPENING),
    "happeningDelete": ({"happeningId": '"hap_1"'}, []),
    "involvementSet": ({"happeningId": '"hap_1"', "entityId": '"char_1"'}, ["role"]),
    "involvementDelete": ({"involvementId": '"hinv_1"'}, []),
    "awarenessSet": (
        {"happeningId": '"hap_1"', "characterId": '"char_1"'},
        ["source", "learnedAtEntryId"],
    ),
    "awarenessDelete": ({"awarenessId": '"haw_1"'}, []),
    "translationSet": (
        {"targetId": '"lore_1"', "field": '"title"', "language": '"fr"', "text": '"x"'},
        [],
    ),
    "translationImport": (
        {"branchId": '"br_1"', "language": '"fr"', "translations": "[]"},
        ["translations.0.targetId", "translations.0.field", "translations.0.text"],
    ),
    "translationRun": ({"branchId": '"br_1"', "language": '"fr"'}, ["model"]),
    "translationDelete": ({"translationId": '"tr_1"'}, []),
}
_NESTED = {
    "tags.1": 'tags: ["x", $value]',
    "keywords.1": 'keywords: ["x", $value]',
    "translations.0.targetId": ('translations: [{ targetId: $value, field: "title", text: "x" }]'),
    "translations.0.field": ('translations: [{ targetId: "lore_1", field: $value, text: "x" }]'),
    "translations.0.text": ('translations: [{ targetId: "lore_1", field: "title", text: $value }]'),
    "involvements.0.entityId": "involvements: [{ entityId: $value }]",
    "involvements.0.role": 'involvements: [{ entityId: "char_1", role: $value }]',
    "awareness.0.characterId": "awareness: [{ characterId: $value }]",
    "awareness.0.source": 'awareness: [{ characterId: "char_1", source: $value }]',
    "awareness.0.learnedAtEntryId": (
        'awareness: [{ characterId: "char_1", learnedAtEntryId: $value }]'
    ),
}


def plot_texts() -> dict[str, tuple[str, list[str]]]:
    """Each change with `$value` in the place of each of its texts, and the path of that."""
    found = {}
    for mutation, (required, optional) in _TEXTS.items():
        texts = [name for name, value in required.items() if value != "[]"]
        for place in dict.fromkeys([*texts, *optional]):
            given = {name: f"{name}: {value}" for name, value in required.items()}
            given[place.partition(".")[0]] = _NESTED.get(place, f"{place}: $value")
            written = f"{mutation}(input: {{ {', '.join(given.values())} }})"
            found[f"{mutation} {place}"] = (written, ["input", *place.split(".")])
    return found
