"""Token mode: the same requests as the owner of things, as somebody else, and as nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from tests.conftest import ServerProcess
from tests.e2e.asset_documents import make_assets
from tests.e2e.calendar_documents import CALENDAR_CHANGES, CALENDARS, DAYS
from tests.e2e.callers import (
    EMBRYO_CREATE,
    PATIENCE,
    RUN_EVENTS,
    TREE_ASK,
    TREE_PAGE,
    Caller,
    Json,
    command,
    dialled,
    numbers_of,
)
from tests.e2e.entity_documents import make_world
from tests.e2e.entry_documents import make_text
from tests.e2e.everything import PATHS, changes
from tests.e2e.form_documents import ANCHOR, FORM, FORM_CHANGES, OUTWARD, VOICE_CHANGES
from tests.e2e.history_documents import BRANCH_DIFF, BRANCH_EVENTS, BRANCH_LOG
from tests.e2e.identity_documents import IDENTITY, IDENTITY_CHANGES, PETITION_EVENTS, PETITIONS
from tests.e2e.ledgers import Ledger
from tests.e2e.plot_documents import make_plot
from tests.e2e.retrieval_documents import make_capture
from tests.e2e.settings_documents import set_up
from tests.e2e.story_documents import STORIES, STORY, STORY_CHANGES
from tests.e2e.transfer_documents import TRANSFER_CHANGES, TRANSFERS, lorebook_taken
from tests.e2e.tree_documents import TREE_CHANGES, TREE_EVENTS, TREE_RULES, TREE_SHAPE
from tests.e2e.world_documents import make_lasting_world

VIEWER = "{ viewer { user { name } roles } }"
CARD = b'{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Nell"}}'


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_AUTH": "token"}


async def make_user(dsn: str, name: str, *options: str) -> tuple[str, str]:
    """The id and a fresh token of a user, as an administrator makes them."""
    status, printed, complaint = await command("user", name, *options, DATABASE_URL=dsn)
    assert (status, complaint) == (0, "")
    user, token = printed.splitlines()
    assert user.endswith(f" ({name})")
    return user.split()[1], token.split()[1]


@dataclass
class World:
    """What the owner has: one of everything, by kind."""

    owner: Caller
    stranger: Caller
    auditor: Caller
    owner_id: str
    ids: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> str:
        return self.ids[kind]


@pytest.fixture(scope="module")
async def world(server: ServerProcess, server_dsn: str, caller: Caller, ledger: Ledger) -> World:
    (owner_id, owner), (_, stranger), (_, auditor) = await asyncio.gather(
        make_user(server_dsn, "Olga"),
        make_user(server_dsn, "Sten"),
        make_user(server_dsn, "Aud", "--role", "auditor"),
    )
    world = World(caller.as_(owner), caller.as_(stranger), caller.as_(auditor), owner_id)
    mine = world.owner
    draft = await mine.ask(EMBRYO_CREATE, {"identity": {"name": "Draft"}})
    character = await mine.create_character(name="Olga's")
    begun = await mine.begin("Mine?", await mine.create_tree(character))
    answer = (await mine.follow(begun.run))[-1]["node"]["id"]
    place = {"source": begun.question, "target": {"start": 0, "end": 4}}
    quoted = await mine.ask(TREE_CHANGES, {"node": answer, **place}, "NodeCite")
    citation = quoted["nodeCite"]["citation"]["id"]
    given = {"endpoint": answer, "scope": "REALITY"}
    confirmed = await mine.ask(TREE_RULES, given, "PathCanonize")
    canonization = confirmed["pathCanonize"]["canonization"]["id"]
    given = {"node": answer, "topic": "Also mine"}
    grown = await mine.ask(TREE_RULES, given, "TreeTransplant")
    transplant = await ledger.value(
        "SELECT id FROM tree_transplants WHERE new_tree_id = $1",
        grown["treeTransplant"]["tree"]["id"],
    )
    act = await ledger.value(
        "SELECT id FROM audit_events WHERE actor_user_id = $1 LIMIT 1", owner_id
    )
    seat = await ledger.value("SELECT id FROM runtime_seats WHERE character_id = $1", character)
    custody = await ledger.value("SELECT id FROM custodianships WHERE character_id = $1", character)
    calendar = await mine.ask(
        CALENDAR_CHANGES, {"name": "Mine", "definition": DAYS}, "CalendarCreate"
    )
    told = (await mine.ask(STORY_CHANGES, {"input": STORY}, "StoryCreate"))["storyCreate"]
    keys = {each["key"]: each["id"] for each in told["keys"]}
    world.ids = {
        "Story": told["story"]["id"],
        "Branch": told["story"]["currentBranch"]["id"],
        "StoryCharacter": keys["mira"],
        "Lore": keys["oil"],
        "Calendar": calendar["calendarCreate"]["calendar"]["id"],
        "EmbryoDraft": draft["embryoCreate"]["embryo"]["id"],
        "Character": character,
        "MirrorTree": begun.tree,
        "TreeNode": answer,
        "Run": begun.run,
        "Citation": citation,
        "Canonization": canonization,
        "TreeTransplant": transplant,
        "grown": grown["treeTransplant"]["tree"]["id"],
        "User": owner_id,
        "AuditEvent": act,
        "RuntimeSeat": seat,
        "Custodianship": custody,
        "question": begun.question,
        **await outward_things(mine, character),
        **await identity_of(mine, character),
        **await transferred(mine, character),
        **await make_plot(mine, told["story"]["currentBranch"]["id"], keys["mira"]),
        **await make_world(mine, told["story"]["currentBranch"]["id"], keys["mira"]),
        **await make_text(mine, told["story"]["currentBranch"]["id"]),
        **await set_up(mine),
    }
    world.ids |= await make_assets(mine, world["StoryEntry"])
    world.ids |= await make_capture(mine, world["Story"], world["Branch"])
    world.ids |= await make_lasting_world(mine, world["StoryCharacter"])
    return world


async def outward_things(mine: Caller, character: str) -> dict[str, str]:
    """An anchor, an official form and a cloned voice of a character."""
    given = {"input": {"characterId": character, **ANCHOR}}
    anchor = (await mine.ask(FORM_CHANGES, given, "FormAnchorSet"))["formAnchorSet"]["anchor"]
    given = {"input": {"characterId": character, **FORM}}
    form = (await mine.ask(FORM_CHANGES, given, "FormPropose"))["formPropose"]["form"]["id"]
    await mine.ask(FORM_CHANGES, {"form": form}, "FormSettle")
    given = {"input": {"characterId": character, "name": "Mine", "sourceKind": "CLONED"}}
    voice = (await mine.ask(VOICE_CHANGES, given, "VoiceAdd"))["voiceAdd"]["voice"]["id"]
    allowed = {"voice": voice, "ref": "Olga's own voice"}
    await mine.ask(VOICE_CHANGES, allowed, "VoiceAuthorizeClone")
    return {"FormAnchor": anchor["id"], "Form": form, "VoiceProfile": voice}


async def identity_of(mine: Caller, character: str) -> dict[str, str]:
    """The identity record of a character, its version, and a petition that waits."""
    given = {"characterId": character, "identity": {"personality": "calm"}, "purpose": "Mine."}
    asked = await mine.ask(IDENTITY_CHANGES, {"input": given}, "IdentityChange")
    found = await mine.ask(IDENTITY, {"character": character})
    record = found["character"]["identityRecord"]
    return {
        "Petition": asked["identityChange"]["petition"]["id"],
        "IdentityRecord": record["id"],
        "IdentityRecordVersion": record["current"]["id"],
    }


async def transferred(mine: Caller, character: str) -> dict[str, str]:
    """A lorebook of a character that came from a file, and a file of the character."""
    book = b'{"entries": [{"keys": ["mine"], "content": "Olga\'s own lore."}]}'
    answer = await mine.upload(book, query=lorebook_taken(character))
    taken = answer.data["lorebookImport"]
    exported = await mine.ask(TRANSFER_CHANGES, {"character": character}, "CardExport")
    return {
        "ImportJob": taken["job"]["id"],
        "ImportItem": taken["job"]["items"]["nodes"][0]["id"],
        "Lorebook": taken["lorebook"]["id"],
        "LorebookEntry": taken["lorebook"]["entries"]["nodes"][0]["id"],
        "Export": exported["cardExport"]["export"]["id"],
    }


KINDS = (
    "Story",
    "Branch",
    "StoryCharacter",
    "StoryLocation",
    "StoryItem",
    "StoryFaction",
    "CharacterRelationship",
    "Lore",
    "Thread",
    "Happening",
    "HappeningInvolvement",
    "HappeningAwareness",
    "Translation",
    "StoryEntry",
    "Asset",
    "EntryAsset",
    "Chapter",
    "EraFlip",
    "ProbeCapture",
    "Calendar",
    "ImportJob",
    "ImportItem",
    "Lorebook",
    "LorebookEntry",
    "Export",
    "IdentityRecord",
    "IdentityRecordVersion",
    "Petition",
    "EmbryoDraft",
    "Character",
    "MirrorTree",
    "TreeNode",
    "Run",
    "Citation",
    "Canonization",
    "TreeTransplant",
    "User",
    "AuditEvent",
    "RuntimeSeat",
    "Custodianship",
    "FormAnchor",
    "Form",
    "VoiceProfile",
)
NOTHING = {"nodes": [], "totalCount": 0}
DAYS_SHOWN = {"name": "Mine", "isBuiltIn": False, "isFavorite": False, "version": 1}


async def test_everybody_is_who_their_token_says(world: World) -> None:
    people = [
        (world.owner, "Olga", []),
        (world.stranger, "Sten", []),
        (world.auditor, "Aud", ["AUDITOR"]),
    ]
    for person, name, roles in people:
        expected = {"viewer": {"user": {"name": name}, "roles": roles}}
        assert await person.ask(VIEWER) == expected
        async with person.socket() as socket:
            assert await socket.ask(VIEWER) == expected
    spelled = {"Authorization": f"bearer   {world.owner.token} "}
    assert (await world.owner.as_(None).post(VIEWER, headers=spelled)).status == 200


@pytest.mark.parametrize("kind", KINDS)
async def test_an_id_of_any_kind_leads_only_its_owner_anywhere(world: World, kind: str) -> None:
    one, several = "($id: ID!) { node(id: $id) { __typename id } }", "query($ids: [ID!]!) "
    several += "{ nodes(ids: $ids) { __typename id } }"
    found = await world.owner.ask(f"query{one}", {"id": world[kind]})
    assert found == {"node": {"__typename": kind, "id": world[kind]}}
    found = await world.owner.ask(several, {"ids": [world[kind], world["MirrorTree"]]})
    assert found["nodes"][0] == {"__typename": kind, "id": world[kind]}
    hidden = [None, None]
    if kind == "AuditEvent":
        seen = await world.auditor.ask(f"query{one}", {"id": world[kind]})
        assert seen == {"node": {"__typename": kind, "id": world[kind]}}
    else:
        assert await world.auditor.ask(f"query{one}", {"id": world[kind]}) == {"node": None}
    assert await world.stranger.ask(f"query{one}", {"id": world[kind]}) == {"node": None}
    asked = {"ids": [world[kind], world["MirrorTree"]]}
    assert await world.stranger.ask(several, asked) == {"nodes": hidden}


ROOTS = """
query Roots(
  $character: ID! $tree: ID! $node: ID! $run: ID! $list: Int
) {
  character(id: $character) { name trees { totalCount } custodian { id } seat { epoch } }
  mirrorTree(id: $tree) { topic nodes { totalCount } }
  treeNode(id: $node) { content citations { quote } }
  run(id: $run) { status question { content } }
  characters(first: $list) { nodes { id } totalCount pageInfo { endCursor } }
  embryos(first: $list) { nodes { id } totalCount }
  runs(first: $list) { nodes { id } totalCount }
}
"""


async def test_a_stranger_sees_nothing_of_it_by_any_root_field(world: World) -> None:
    given = {
        "character": world["Character"],
        "tree": world["MirrorTree"],
        "node": world["TreeNode"],
        "run": world["Run"],
        "list": 10,
    }
    seen = await world.owner.ask(ROOTS, given)
    assert seen["character"] == {
        "name": "Olga's",
        "trees": {"totalCount": 2},
        "custodian": {"id": world.owner_id},
        "seat": {"epoch": 2},
    }
    assert seen["treeNode"]["citations"] == [{"quote": "Mine"}]
    assert seen["runs"] == {"nodes": [{"id": world["Run"]}], "totalCount": 1}
    assert [each["totalCount"] for each in (seen["characters"], seen["embryos"])] == [1, 2]
    for person in (world.stranger, world.auditor):
        async with person.socket() as socket:
            for ask in (person.ask, socket.ask):
                assert await ask(ROOTS, given) == {
                    "character": None,
                    "mirrorTree": None,
                    "treeNode": None,
                    "run": None,
                    "characters": {**NOTHING, "pageInfo": {"endCursor": None}},
                    "embryos": NOTHING,
                    "runs": NOTHING,
                }


async def test_a_cursor_of_somebody_else_opens_nothing(world: World) -> None:
    page = "query($after: String) { characters(after: $after) { nodes { id } } }"
    mine = await world.owner.ask("{ characters { pageInfo { startCursor } edges { cursor } } }")
    cursor = mine["characters"]["edges"][0]["cursor"]
    assert await world.stranger.ask(page, {"after": cursor}) == {"characters": {"nodes": []}}


async def test_everybody_reads_their_own_acts_and_an_auditor_all(world: World) -> None:
    acts = "{ viewer { auditEvents(first: 100) { nodes { action } totalCount } } }"

    async def actions(person: Caller) -> list[str]:
        data = await person.ask(acts)
        found = data["viewer"]["auditEvents"]
        assert found["totalCount"] == len(found["nodes"])
        return [each["action"] for each in found["nodes"]]

    assert await actions(world.owner) == [
        "world_created",
        "asset_uploaded",
        "asset_uploaded",
        "provider_created",
        "provider_created",
        "export_made",
        "lorebook_imported",
        "petition_opened",
        "clone_authorized",
        "voice_added",
        "form_settled",
        "form_proposed",
        "form_anchor_set",
        "story_created",
        "calendar_created",
        "tree_transplanted",
        "path_canonized",
        "run_queued",
        "tree_created",
        "mirror_activated",
        "embryo_created",
        "embryo_created",
    ]
    assert await actions(world.stranger) == []
    # Those of others too, whom other tests may have made.
    everything = await actions(world.auditor)
    own = await actions(world.owner)
    assert everything[-len(own) :] == own


async def test_a_stranger_changes_nothing_by_any_mutation(world: World, ledger: Ledger) -> None:
    before = await ledger.fingerprint()
    async with world.stranger.socket() as socket:
        for name, (query, variables, operation) in changes(world.ids).items():
            for ask in (world.stranger.ask, socket.ask):
                payload = (await ask(query, variables, operation))[name]
                (error,) = payload.pop("errors")
                assert (error["code"], error["path"]) == ("NOT_FOUND", PATHS[name])
                assert set(payload.values()) == {None}
    assert await ledger.fingerprint() == before


LIBRARY = """
query Library($text: String!, $filter: LibraryFilter, $character: ID!) {
  search(text: $text, filter: $filter, first: 100) {
    mode
    hits { kind label snippet node { __typename id } parts { name } }
    excluded { id }
  }
  character(id: $character) { search(text: $text) { hits { kind node { id } } } }
}
"""


async def test_a_search_finds_what_is_ones_own(world: World) -> None:
    """Rules B80, B82, B83."""
    given = {"text": "mine?", "character": world["Character"]}
    seen = await world.owner.ask(LIBRARY, given)
    (question,) = [each for each in seen["search"]["hits"] if each["snippet"] == "Mine?"]
    assert question == {
        "kind": "NODE",
        "label": "",
        "snippet": "Mine?",
        "node": {"__typename": "TreeNode", "id": world["question"]},
        "parts": [{"name": "words"}],
    }
    topic = [each["kind"] for each in seen["search"]["hits"] if each["label"] == "Also mine"]
    assert topic == ["TREE"]
    of_character = seen["character"]["search"]["hits"]
    assert {"kind": "NODE", "node": {"id": world["question"]}} in of_character
    homes = {"characterId": "Character", "storyId": "Story", "worldId": "World"}
    for name, kind in homes.items():
        filtered = {**given, "filter": {name: world[kind]}}
        found = (await world.owner.ask(LIBRARY, filtered))["search"]["hits"]
        assert (question in found) is (kind == "Character")
        for person in (world.stranger, world.auditor):
            nothing = {"mode": "KEYWORD", "hits": [], "excluded": []}
            for variables in (given, filtered):
                answer = await person.ask(LIBRARY, variables)
                assert answer == {"search": nothing, "character": None}


async def test_a_tree_of_ones_own_takes_no_parent_from_anothers(
    world: World, server_dsn: str, ledger: Ledger
) -> None:
    # Somebody else again: the stranger of the other tests has nothing.
    _, token = await make_user(server_dsn, "Thea")
    other = world.owner.as_(token)
    tree = await other.create_tree()
    before = await ledger.fingerprint()
    given = {"tree": tree, "parent": world["TreeNode"], "text": "Not mine?"}
    payload = (await other.ask(TREE_ASK, given, "TreeAsk"))["treeAsk"]
    assert [(each["code"], each["path"]) for each in payload["errors"]] == [
        ("NOT_FOUND", ["input", "parentId"])
    ]
    path = await other.ask(TREE_PAGE, {"id": tree, "node": world["TreeNode"]}, "TreePath")
    assert path["mirrorTree"]["path"] == []
    assert await ledger.fingerprint() == before


async def test_a_stranger_sees_nothing_of_a_trees_shape(world: World) -> None:
    given = {"tree": world["MirrorTree"], "node": world["TreeNode"]}
    seen = await world.owner.ask(TREE_SHAPE, given)
    tree, node = seen["mirrorTree"], seen["treeNode"]
    shape = tree["outline"]["nodes"]
    assert [each["id"] for each in shape] == [world["question"], world["TreeNode"]]
    assert [each["isCanon"] and each["isAdopted"] for each in shape] == [True, True]
    assert tree["roots"] == {"nodes": [{"id": world["question"]}], "totalCount": 1}
    assert tree["transplants"] == {
        "nodes": [
            {
                "id": world["TreeTransplant"],
                "newTree": {"id": world["grown"]},
                "sourceNode": {"id": world["TreeNode"]},
            }
        ],
        "totalCount": 1,
    }
    canon = {"id": world["Canonization"], "isIntact": True, "corrects": None}
    assert tree["canonizations"] == {"nodes": [canon], "totalCount": 1}
    assert tree["lastSeq"] == 7
    assert node == {
        "versions": NOTHING,
        "siblings": {"nodes": [{"id": world["TreeNode"]}], "totalCount": 1},
        "citations": [{"quote": "Mine", "newestSource": None}],
    }
    for person in (world.stranger, world.auditor):
        async with person.socket() as socket:
            for ask in (person.ask, socket.ask):
                assert await ask(TREE_SHAPE, given) == {"mirrorTree": None, "treeNode": None}


async def test_calendars_of_the_server_are_for_all_and_ones_own_for_oneself(world: World) -> None:
    """Rules W20, W24."""
    rendered = {"id": world["Calendar"], "times": [0]}
    mine = {**DAYS_SHOWN, "id": world["Calendar"]}
    for person, own in ((world.owner, [mine]), (world.stranger, []), (world.auditor, [])):
        async with person.socket() as socket:
            for ask in (person.ask, socket.ask):
                seen = await ask(CALENDARS, {}, "Calendars")
                assert seen["calendars"] == {"nodes": own, "totalCount": len(own)}
                assert len(seen["builtInCalendars"]) == 7
                found = await ask(CALENDARS, {"id": world["Calendar"]}, "Calendar")
                assert (found["calendar"] is not None) == bool(own)
                found = await ask(CALENDARS, rendered, "Rendered")
                assert (found["calendar"] is not None) == bool(own)
                found = await ask(CALENDARS, {"id": "stardate"}, "Calendar")
                assert found["calendar"]["name"] == "Stardate"


async def test_stories_are_for_their_owner(world: World) -> None:
    """Rule B26."""
    mine = {"nodes": [{"id": world["Story"], "title": "Mine"}], "totalCount": 1}
    for person, own in ((world.owner, mine), (world.stranger, NOTHING), (world.auditor, NOTHING)):
        async with person.socket() as socket:
            for ask in (person.ask, socket.ask):
                assert (await ask(STORIES, {}, "Stories"))["stories"] == own
                for operation, kind in (("Story", "Story"), ("Branch", "Branch")):
                    found = await ask(STORIES, {"id": world[kind]}, operation)
                    assert (found[operation.lower()] is not None) == (own is mine)


async def test_what_happened_to_a_branch_is_for_its_owner(world: World) -> None:
    """Rules H1, H5, H12."""
    branch = world["Branch"]
    given = {"branch": branch, "after": 0}
    sides = {"left": branch, "right": branch}
    async with world.owner.stream(BRANCH_EVENTS, given) as stream:
        assert (await anext(stream))["data"]["branchEvents"]["seq"] == 1
    log = await world.owner.ask(BRANCH_LOG, {"branch": branch}, "BranchLog")
    assert log["branch"]["deltas"]["totalCount"] > 0
    assert (await world.owner.ask(BRANCH_DIFF, sides))["branchDiff"]["changes"]["nodes"] == []
    for person in (world.stranger, world.auditor):
        async with person.socket() as socket:
            operation = await socket.start(BRANCH_EVENTS, given)
            assert [result async for result in operation] == []
            assert [each["extensions"]["code"] for each in operation.errors] == ["NOT_FOUND"]
        assert await person.ask(BRANCH_LOG, {"branch": branch}, "BranchLog") == {"branch": None}
        assert await person.ask(BRANCH_LOG, {"row": world["Lore"]}, "RowHistory") == {"node": None}
        assert await person.ask(BRANCH_DIFF, sides) == {"branchDiff": None}


async def test_a_stranger_sees_nothing_of_a_characters_looks_and_voice(world: World) -> None:
    """Rule F8."""
    given = {"character": world["Character"]}
    seen = (await world.owner.ask(OUTWARD, given))["character"]
    assert seen["formAnchor"]["id"] == world["FormAnchor"]
    assert seen["primaryForm"]["id"] == world["Form"]
    assert seen["voices"]["totalCount"] == 1
    for person in (world.stranger, world.auditor):
        assert await person.ask(OUTWARD, given) == {"character": None}


async def test_a_stranger_sees_nothing_of_what_came_in(world: World) -> None:
    """Rule X8."""
    seen = await world.owner.ask(TRANSFERS)
    assert [each["id"] for each in seen["importJobs"]["nodes"]] == [world["ImportJob"]]
    assert [each["id"] for each in seen["lorebooks"]["nodes"]] == [world["Lorebook"]]
    for person in (world.stranger, world.auditor):
        assert await person.ask(TRANSFERS) == {"importJobs": NOTHING, "lorebooks": NOTHING}


async def test_a_stranger_sees_nothing_of_a_characters_identity(world: World) -> None:
    given = {"character": world["Character"]}
    seen = await world.owner.ask(IDENTITY, given)
    assert seen["character"]["identityRecord"]["id"] == world["IdentityRecord"]
    waiting = [{"id": world["Petition"], "status": "PENDING"}]
    assert (await world.owner.ask(PETITIONS))["petitions"]["nodes"] == waiting
    for person in (world.stranger, world.auditor):
        # The public key is everybody's.
        signer = {"identitySigner": seen["identitySigner"]}
        assert await person.ask(IDENTITY, given) == {**signer, "character": None}
        assert await person.ask(PETITIONS) == {"petitions": NOTHING}
        asked = "query ($id: ID!) { petition(id: $id) { id } }"
        assert await person.ask(asked, {"id": world["Petition"]}) == {"petition": None}
    async with world.owner.stream(PETITION_EVENTS) as stream:
        assert (await anext(stream))["data"]["petitions"]["id"] == world["Petition"]


async def test_a_stranger_watches_no_tree(world: World) -> None:
    given = {"tree": world["MirrorTree"], "after": 0}
    async with world.owner.stream(TREE_EVENTS, given) as stream:
        events = [(await anext(stream))["data"]["treeEvents"] for _ in range(7)]
    assert [(each["seq"], each["type"]) for each in events] == [
        (1, "NODE_PLANTED"),
        (2, "NODE_PLANTED"),
        (3, "NODE_FINISHED"),
        (4, "ENTRY_MOVED"),
        (5, "NODE_CITED"),
        (6, "PATH_CANONIZED"),
        (7, "TREE_TRANSPLANTED"),
    ]
    nodes = [world["question"], *[world["TreeNode"]] * 6]
    assert [(each["nodeId"], each["node"]["id"]) for each in events] == [(n, n) for n in nodes]
    assert {each["tree"]["id"] for each in events} == {world["MirrorTree"]}
    for person in (world.stranger, world.auditor):
        async with person.socket() as socket:
            operation = await socket.start(TREE_EVENTS, given)
            assert [result async for result in operation] == []
        async with person.stream(TREE_EVENTS, given) as stream:
            (over_stream,) = [result async for result in stream]
        for errors in (over_stream["errors"], operation.errors):
            assert [each["extensions"]["code"] for each in errors] == ["NOT_FOUND"]


async def test_a_stranger_follows_no_run(world: World) -> None:
    whole = await world.owner.follow(world["Run"])
    assert numbers_of(whole) == list(range(1, len(whole) + 1))
    async with world.owner.socket() as socket:
        assert await socket.follow(world["Run"]) == whole
    for person in (world.stranger, world.auditor):
        async with person.socket() as socket:
            operation = await socket.start(RUN_EVENTS, {"run": world["Run"]})
            results = [result async for result in operation]
        async with person.stream(variables={"run": world["Run"]}) as stream:
            (over_stream,) = [result async for result in stream]
        assert results == []
        for errors in (over_stream["errors"], operation.errors):
            assert [each["extensions"]["code"] for each in errors] == ["NOT_FOUND"]


WRONG_HEADERS: dict[str, dict[str, str]] = {
    "no token": {},
    "an empty token": {"Authorization": "Bearer "},
    "a wrong token": {"Authorization": "Bearer mg_wrong"},
    "another scheme": {"Authorization": "Basic bWU6bWU="},
    "a cookie": {"Cookie": "Authorization=x"},
}


@pytest.mark.parametrize("name", WRONG_HEADERS)
async def test_nobody_is_let_in_and_changes_nothing(
    world: World, ledger: Ledger, name: str
) -> None:
    headers = WRONG_HEADERS[name]
    nobody = world.owner.as_(None)
    before = await ledger.fingerprint()
    requests: list[tuple[str, Json, str | None]] = [
        (VIEWER, {}, None),
        ("{ __typename }", {}, None),
        ("{", {}, None),
        (RUN_EVENTS, {"run": world["Run"]}, None),
        (TREE_EVENTS, {"tree": world["MirrorTree"]}, None),
        (EMBRYO_CREATE, {"identity": {"name": "X"}}, None),
        *changes(world.ids).values(),
    ]
    for query, variables, operation in requests:
        for accept in ("application/json", "text/event-stream"):
            refused = await nobody.post(
                query, variables, operation, headers={**headers, "Accept": accept}
            )
            assert (refused.status, refused.codes) == (401, ["UNAUTHENTICATED"])
            assert refused.headers["WWW-Authenticate"] == "Bearer"
    refused = await nobody.upload(CARD, headers={**headers, "GraphQL-Preflight": "1"})
    assert (refused.status, refused.codes) == (401, ["UNAUTHENTICATED"])
    assert await ledger.fingerprint() == before


INIT_PAYLOADS: dict[str, Callable[[World], Json | None]] = {
    "no payload": lambda _: None,
    "an empty payload": lambda _: {},
    "a wrong token": lambda _: {"Authorization": "Bearer mg_wrong"},
    "a token that is a number": lambda _: {"Authorization": 5},
    "a token that is a list": lambda world: {"Authorization": [f"Bearer {world.owner.token}"]},
    "a token under another name": lambda world: {"token": world.owner.token},
}


@pytest.mark.parametrize("name", INIT_PAYLOADS)
async def test_a_socket_is_closed_to_nobody(world: World, name: str) -> None:
    payload = INIT_PAYLOADS[name](world)
    init: Json = {"type": "connection_init"}
    if payload is not None:
        init["payload"] = payload
    async with asyncio.timeout(PATIENCE), dialled(world.owner.server) as connection:
        await connection.send(json.dumps(init))
        await connection.wait_closed()
    assert (connection.close_code, connection.close_reason) == (4403, "UNAUTHENTICATED")


async def test_a_token_in_the_handshake_signs_a_socket_in(world: World) -> None:
    """A browser cannot send it there, but other clients can."""
    headers = world.owner.headers
    async with asyncio.timeout(PATIENCE), dialled(world.owner.server, headers) as connection:
        await connection.send('{"type": "connection_init"}')
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}


async def test_a_token_in_the_payload_goes_before_one_in_the_handshake(world: World) -> None:
    headers = world.owner.headers
    init = {"type": "connection_init", "payload": {"Authorization": "Bearer mg_wrong"}}
    async with asyncio.timeout(PATIENCE), dialled(world.owner.server, headers) as connection:
        await connection.send(json.dumps(init))
        await connection.wait_closed()
    assert (connection.close_code, connection.close_reason) == (4403, "UNAUTHENTICATED")


@pytest.mark.parametrize("key", ["Authorization", "authorization", "AUTHORIZATION"])
async def test_a_socket_signs_in_however_the_key_is_spelled(world: World, key: str) -> None:
    init = {"type": "connection_init", "payload": {key: f"Bearer {world.owner.token}"}}
    async with asyncio.timeout(PATIENCE), dialled(world.owner.server) as connection:
        await connection.send(json.dumps(init))
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}


async def test_pages_and_health_need_no_token(world: World) -> None:
    nobody = world.owner.as_(None)
    for path in ("/healthz", "/readyz", "/schema.graphql", "/"):
        assert (await nobody.request("GET", path)).status == 200


async def spoil_by_revoking(ledger: Ledger, user: str) -> None:
    await ledger.run("UPDATE login_sessions SET revoked_at = now() WHERE user_id = $1", user)


async def spoil_by_time(ledger: Ledger, user: str) -> None:
    await ledger.run(
        "UPDATE login_sessions SET expires_at = now() - interval '1 second' WHERE user_id = $1",
        user,
    )


async def spoil_by_disabling(ledger: Ledger, user: str) -> None:
    await ledger.run("UPDATE users SET status = 'disabled' WHERE id = $1", user)


@pytest.mark.parametrize("spoil", [spoil_by_revoking, spoil_by_time, spoil_by_disabling])
async def test_a_spoilt_token_is_refused(
    world: World,
    server_dsn: str,
    ledger: Ledger,
    spoil: Callable[[Ledger, str], Awaitable[None]],
) -> None:
    user, token = await make_user(server_dsn, spoil.__name__)
    person = world.owner.as_(token)
    assert (await person.post(VIEWER)).status == 200
    await spoil(ledger, user)
    refused = await person.post(VIEWER)
    assert (refused.status, refused.codes) == (401, ["UNAUTHENTICATED"])
    init = {"type": "connection_init", "payload": person.headers}
    async with asyncio.timeout(PATIENCE), dialled(person.server) as connection:
        await connection.send(json.dumps(init))
        await connection.wait_closed()
    assert connection.close_code == 4403


async def test_all_tokens_of_a_user_can_be_taken_back(world: World, server_dsn: str) -> None:
    user, token = await make_user(server_dsn, "Left")
    status, printed, _ = await command("user", "Left", "--revoke", DATABASE_URL=server_dsn)
    assert (status, printed) == (0, f"user  {user} (Left)\nrevoked 1 tokens\n")
    refused = await world.owner.as_(token).post(VIEWER)
    assert (refused.status, refused.codes) == (401, ["UNAUTHENTICATED"])


async def test_a_user_who_is_made_again_gets_one_more_token(
    world: World, server_dsn: str, ledger: Ledger
) -> None:
    first, second = [await make_user(server_dsn, name) for name in ("Twin", "Twin")]
    assert first[0] == second[0]
    assert first[1] != second[1]
    for _, token in (first, second):
        data = await world.owner.as_(token).ask(VIEWER)
        assert data["viewer"]["user"] == {"name": "Twin"}
    # Only hashes are kept.
    for _, token in (first, second):
        kept = "SELECT count(*) FROM login_sessions WHERE token_hash LIKE '%' || $1 || '%'"
        assert await ledger.value(kept, token.removeprefix("mg_")) == 0
