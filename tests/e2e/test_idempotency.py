"""The Idempotency-Key header makes a mutation safe to repeat."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import pytest

from tests.e2e.asset_documents import (
    ASSET_CHANGES,
    ASSET_MADE,
    ASSET_PATHS,
    ASSET_UPLOAD,
    asset_inputs,
    make_assets,
    picture,
)
from tests.e2e.calendar_documents import CALENDAR_CHANGES, DAYS
from tests.e2e.callers import (
    CARD_IMPORT,
    CHECKLIST,
    EMBRYO_ACTIVATE,
    EMBRYO_CREATE,
    PREFLIGHT,
    TREE_ASK,
    Answer,
    Caller,
    Json,
    command,
)
from tests.e2e.draft_documents import DRAFT_CHANGES
from tests.e2e.embedding_documents import EMBEDDING_CHANGES, EMBEDDING_PATHS, embedding_input
from tests.e2e.ending_documents import ENDING_CHANGES, SEAT_CHANGES
from tests.e2e.entity_documents import (
    ENTITY_CHANGES,
    ENTITY_MADE,
    ENTITY_PATHS,
    entity_inputs,
    make_world,
)
from tests.e2e.entry_documents import TEXT_CHANGES, TEXT_MADE, TEXT_PATHS, make_text, text_inputs
from tests.e2e.form_documents import ANCHOR, FORM, FORM_CHANGES, VOICE_CHANGES
from tests.e2e.history_documents import CARRYING
from tests.e2e.identity_documents import IDENTITY_CHANGES
from tests.e2e.ledgers import Ledger
from tests.e2e.plot_documents import PLOT_CHANGES, PLOT_PATHS, make_plot, plot_inputs
from tests.e2e.retrieval_documents import PROBES, make_capture
from tests.e2e.settings_documents import SETTING_CHANGES, SETTING_PATHS, set_up, setting_inputs
from tests.e2e.story_documents import STORY, STORY_CHANGES
from tests.e2e.transfer_documents import TRANSFER_CHANGES, lorebook_taken
from tests.e2e.tree_documents import TREE_CHANGES, TREE_RULES
from tests.e2e.ways_back_documents import WAY_OPERATIONS, WAYS_BACK, tell_story
from tests.e2e.world_documents import (
    WORLD_CHANGES,
    WORLD_PATHS,
    change_world,
    make_lasting_world,
    world_inputs,
)

CARD = b'{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Nell"}}'
OTHER_CARD = CARD.replace(b"Nell", b"Nora")
BOOK = b'{"entries": [{"keys": ["once"], "content": "Once."}]}'
OTHER_BOOK = BOOK.replace(b"Once", b"Twice")


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_AUTH": "token", "MIRRORGRAPH_EMBEDDER": "local"}


async def signed_in(caller: Caller, dsn: str, name: str) -> Caller:
    """A person with a token."""
    _, printed, _ = await command("user", name, DATABASE_URL=dsn)
    return caller.as_(printed.split()[-1])


@pytest.fixture(scope="module")
async def owner(caller: Caller, server_dsn: str) -> Caller:
    return await signed_in(caller, server_dsn, "owner")


@pytest.fixture(scope="module")
async def stranger(caller: Caller, server_dsn: str) -> Caller:
    return await signed_in(caller, server_dsn, "stranger")


def keyed() -> dict[str, str]:
    """A header with a new key."""
    return {"Idempotency-Key": str(uuid.uuid4())}


# How to send a mutation twice: with the same headers it is the same request, `differently` another.
Send = Callable[..., Awaitable[Answer]]


async def card_import(owner: Caller) -> Send:
    async def send(headers: dict[str, str], *, differently: bool = False) -> Answer:
        card = OTHER_CARD if differently else CARD
        return await owner.upload(card, headers={**PREFLIGHT, **headers})

    return send


def operation_of(
    owner: Caller, query: str, variables: Json, other: Json, operation: str | None = None
) -> Send:
    async def send(headers: dict[str, str], *, differently: bool = False) -> Answer:
        given = {**variables, **(other if differently else {})}
        return await owner.post(query, given, operation, headers)

    return send


async def embryo_create(owner: Caller) -> Send:
    return operation_of(
        owner, EMBRYO_CREATE, {"identity": {"name": "Ada"}}, {"identity": {"name": "Eda"}}
    )


async def embryo_activate(owner: Caller) -> Send:
    embryos = [(await owner.upload(CARD)).data["cardImport"]["embryo"]["id"] for _ in range(2)]
    given = {"id": embryos[0], "confirmed": CHECKLIST}
    return operation_of(owner, EMBRYO_ACTIVATE, given, {"id": embryos[1]})


async def two_drafts(owner: Caller) -> tuple[Json, Json]:
    """Variables that name a draft, and others that name another."""
    ids = [(await owner.upload(CARD)).data["cardImport"]["embryo"]["id"] for _ in range(2)]
    return {"embryo": ids[0]}, {"embryo": ids[1]}


async def embryo_update(owner: Caller) -> Send:
    draft, _ = await two_drafts(owner)
    given = {**draft, "identity": {"name": "Once"}, "version": 1}
    return operation_of(owner, DRAFT_CHANGES, given, {"identity": {}}, "EmbryoUpdate")


async def embryo_abandon(owner: Caller) -> Send:
    return operation_of(owner, DRAFT_CHANGES, *await two_drafts(owner), "EmbryoAbandon")


async def embryo_rehearsal_clear(owner: Caller) -> Send:
    return operation_of(owner, DRAFT_CHANGES, *await two_drafts(owner), "EmbryoRehearsalClear")


async def tree_create(owner: Caller) -> Send:
    given = {"character": await owner.create_character(), "topic": "Once"}
    return operation_of(owner, TREE_ASK, given, {"topic": "Twice"}, "TreeCreate")


async def tree_ask(owner: Caller) -> Send:
    given = {"tree": await owner.create_tree(), "parent": None, "text": "Once?"}
    return operation_of(owner, TREE_ASK, given, {"text": "Twice?"}, "TreeAsk")


async def answered(owner: Caller) -> tuple[str, str, str]:
    """A tree with a question and its answer."""
    begun = await owner.begin("Once?")
    answer = (await owner.follow(begun.run))[-1]["node"]["id"]
    return begun.tree, begun.question, answer


async def node_continue(owner: Caller) -> Send:
    _, _, answer = await answered(owner)
    return operation_of(owner, TREE_CHANGES, {"node": answer}, {"other": 1}, "NodeContinue")


async def node_edit(owner: Caller) -> Send:
    _, question, _ = await answered(owner)
    given = {"node": question, "text": "Once."}
    return operation_of(owner, TREE_RULES, given, {"text": "Twice."}, "NodeEdit")


async def node_cite(owner: Caller) -> Send:
    _, question, answer = await answered(owner)
    given = {"node": answer, "source": question, "target": {"start": 0, "end": 4}}
    other = {"target": {"start": 0, "end": 2}}
    return operation_of(owner, TREE_CHANGES, given, other, "NodeCite")


async def path_canonize(owner: Caller) -> Send:
    _, question, answer = await answered(owner)
    given = {"endpoint": answer, "scope": "REALITY"}
    return operation_of(owner, TREE_RULES, given, {"endpoint": question}, "PathCanonize")


async def node_correct(owner: Caller) -> Send:
    _, _, answer = await answered(owner)
    await owner.ask(TREE_RULES, {"endpoint": answer, "scope": "REALITY"}, "PathCanonize")
    given = {"node": answer, "text": "Once."}
    return operation_of(owner, TREE_CHANGES, given, {"text": "Twice."}, "NodeCorrect")


async def tree_transplant(owner: Caller) -> Send:
    _, _, answer = await answered(owner)
    given = {"node": answer, "topic": "Once"}
    return operation_of(owner, TREE_RULES, given, {"topic": "Twice"}, "TreeTransplant")


async def tree_prune(owner: Caller) -> Send:
    tree, question, _ = await answered(owner)
    await owner.ask(TREE_RULES, {"node": question, "text": "Dead?"}, "NodeEdit")
    given = {"tree": tree, "dryRun": False}
    return operation_of(owner, TREE_CHANGES, given, {"dryRun": True}, "TreePrune")


async def form_anchor_set(owner: Caller) -> Send:
    given = {"characterId": await owner.create_character(), **ANCHOR}
    other = {"input": {**given, "taboos": []}}
    return operation_of(owner, FORM_CHANGES, {"input": given}, other, "FormAnchorSet")


async def form_propose(owner: Caller) -> Send:
    given = {"characterId": await owner.create_character(), **FORM}
    other = {"input": {**given, "name": "Twice"}}
    return operation_of(owner, FORM_CHANGES, {"input": given}, other, "FormPropose")


async def proposed(owner: Caller) -> str:
    send = await form_propose(owner)
    return str((await send({})).data["formPropose"]["form"]["id"])


async def form_settle(owner: Caller) -> Send:
    given, other = [{"form": await proposed(owner)} for _ in range(2)]
    return operation_of(owner, FORM_CHANGES, given, other, "FormSettle")


async def form_reject(owner: Caller) -> Send:
    given, other = [{"form": await proposed(owner)} for _ in range(2)]
    return operation_of(owner, FORM_CHANGES, given, other, "FormReject")


async def form_retire(owner: Caller) -> Send:
    given, other = [{"form": await proposed(owner)} for _ in range(2)]
    for each in (given, other):
        await owner.ask(FORM_CHANGES, each, "FormSettle")
    return operation_of(owner, FORM_CHANGES, given, other, "FormRetire")


async def voice_add(owner: Caller) -> Send:
    given = {
        "characterId": await owner.create_character(),
        "name": "Once",
        "sourceKind": "CLONED",
    }
    other = {"input": {**given, "name": "Twice"}}
    return operation_of(owner, VOICE_CHANGES, {"input": given}, other, "VoiceAdd")


async def cloned(owner: Caller) -> Json:
    """A voice, and the permission to clone it."""
    send = await voice_add(owner)
    given = {"voice": (await send({})).data["voiceAdd"]["voice"]["id"], "ref": "Once"}
    await owner.ask(VOICE_CHANGES, given, "VoiceAuthorizeClone")
    return given


async def voice_authorize_clone(owner: Caller) -> Send:
    given = await cloned(owner)
    return operation_of(owner, VOICE_CHANGES, given, {"ref": "Twice"}, "VoiceAuthorizeClone")


async def voice_revoke_clone(owner: Caller) -> Send:
    given, other = [await cloned(owner) for _ in range(2)]
    return operation_of(owner, VOICE_CHANGES, given, other, "VoiceRevokeClone")


async def voice_authorization_read(owner: Caller) -> Send:
    given, other = [await cloned(owner) for _ in range(2)]
    return operation_of(owner, VOICE_CHANGES, given, other, "VoiceAuthorizationRead")


async def voice_select(owner: Caller) -> Send:
    given, other = [await cloned(owner) for _ in range(2)]
    return operation_of(owner, VOICE_CHANGES, given, other, "VoiceSelect")


async def voice_remove(owner: Caller) -> Send:
    given, other = [await cloned(owner) for _ in range(2)]
    return operation_of(owner, VOICE_CHANGES, given, other, "VoiceRemove")


async def identity_change(owner: Caller) -> Send:
    given = {
        "characterId": await owner.create_character(),
        "identity": {"name": "Once"},
        "purpose": "Once.",
    }
    other = {"input": {**given, "purpose": "Twice."}}
    return operation_of(owner, IDENTITY_CHANGES, {"input": given}, other, "IdentityChange")


async def petition_decide(owner: Caller) -> Send:
    send = await identity_change(owner)
    petition = (await send({})).data["identityChange"]["petition"]["id"]
    given = {"petition": petition, "decision": "APPROVE"}
    return operation_of(owner, IDENTITY_CHANGES, given, {"decision": "DENY"}, "PetitionDecide")


async def identity_export(owner: Caller) -> Send:
    given = {"character": await owner.create_character()}
    other = {"sections": ["IDENTITY"]}
    return operation_of(owner, IDENTITY_CHANGES, given, other, "IdentityExport")


async def lorebook_import(owner: Caller) -> Send:
    async def send(headers: dict[str, str], *, differently: bool = False) -> Answer:
        book = OTHER_BOOK if differently else BOOK
        return await owner.upload(book, headers={**PREFLIGHT, **headers}, query=lorebook_taken())

    return send


async def card_export(owner: Caller) -> Send:
    given = {"character": await owner.create_character()}
    other = {"format": "CARD_V2_JSON"}
    return operation_of(owner, TRANSFER_CHANGES, given, other, "CardExport")


async def lorebook_taken_in(owner: Caller) -> tuple[str, str]:
    """A lorebook and its entry."""
    answer = await owner.upload(BOOK, query=lorebook_taken())
    lorebook = answer.data["lorebookImport"]["lorebook"]
    return lorebook["id"], lorebook["entries"]["nodes"][0]["id"]


async def lorebook_entry_review(owner: Caller) -> Send:
    _, entry = await lorebook_taken_in(owner)
    given: Json = {"entries": [entry], "decision": "ACCEPT"}
    other = {"decision": "REJECT"}
    return operation_of(owner, TRANSFER_CHANGES, given, other, "LorebookEntryReview")


async def lorebook_entry_update(owner: Caller) -> Send:
    _, entry = await lorebook_taken_in(owner)
    given, other = [{"input": {"entryId": entry, "content": each}} for each in ("1", "2")]
    return operation_of(owner, TRANSFER_CHANGES, given, other, "LorebookEntryUpdate")


async def lorebook_delete(owner: Caller) -> Send:
    books = [(await lorebook_taken_in(owner))[0] for _ in range(2)]
    given, other = [{"lorebook": each} for each in books]
    return operation_of(owner, TRANSFER_CHANGES, given, other, "LorebookDelete")


async def seat_acquire(owner: Caller) -> Send:
    given = {"character": await owner.create_character(), "holder": "phone"}
    return operation_of(owner, SEAT_CHANGES, given, {"lease": 31.0}, "SeatAcquire")


async def held(owner: Caller) -> Json:
    """A seat that somebody holds."""
    character = await owner.create_character()
    given = {"character": character, "holder": "phone"}
    taken = await owner.ask(SEAT_CHANGES, given, "SeatAcquire")
    return {**given, "epoch": taken["seatAcquire"]["seat"]["epoch"]}


async def seat_renew(owner: Caller) -> Send:
    return operation_of(owner, SEAT_CHANGES, await held(owner), {"lease": 31.0}, "SeatRenew")


async def seat_release(owner: Caller) -> Send:
    given = await held(owner)
    given.pop("holder")
    return operation_of(owner, SEAT_CHANGES, given, {"epoch": None}, "SeatRelease")


async def seat_migrate(owner: Caller) -> Send:
    given, other = [{"character": await owner.create_character()} for _ in range(2)]
    return operation_of(owner, SEAT_CHANGES, given, other, "SeatMigrate")


async def seat_handover(owner: Caller) -> Send:
    given = {**await held(owner), "holder": "desk"}
    return operation_of(owner, SEAT_CHANGES, given, {"lease": 31.0}, "SeatHandover")


async def death_request(owner: Caller) -> Send:
    given = {"character": await owner.create_character(), "purpose": "Once."}
    return operation_of(owner, ENDING_CHANGES, given, {"purpose": "Twice."}, "DeathRequest")


async def dying(owner: Caller) -> Json:
    """A character whose death can be taken back."""
    given = {"character": await owner.create_character(), "purpose": "Enough."}
    asked = await owner.ask(ENDING_CHANGES, given, "DeathRequest")
    approved = {"petition": asked["deathRequest"]["petition"]["id"]}
    await owner.ask(ENDING_CHANGES, approved, "Approve")
    return {"character": given["character"]}


async def death_revoke(owner: Caller) -> Send:
    given, other = [await dying(owner) for _ in range(2)]
    return operation_of(owner, ENDING_CHANGES, given, other, "DeathRevoke")


async def calendar_create(owner: Caller) -> Send:
    given = {"name": "Once", "definition": DAYS}
    return operation_of(owner, CALENDAR_CHANGES, given, {"name": "Twice"}, "CalendarCreate")


async def calendar_clone(owner: Caller) -> Send:
    given, other = {"calendar": "stardate"}, {"calendar": "tolkien-shire"}
    return operation_of(owner, CALENDAR_CHANGES, given, other, "CalendarClone")


async def cloned_calendar(owner: Caller) -> str:
    send = await calendar_clone(owner)
    return str((await send({})).data["calendarClone"]["calendar"]["id"])


async def calendar_update(owner: Caller) -> Send:
    calendar = await cloned_calendar(owner)
    given, other = [{"input": {"calendarId": calendar, "name": each}} for each in ("1", "2")]
    return operation_of(owner, CALENDAR_CHANGES, given, other, "CalendarUpdate")


async def calendar_delete(owner: Caller) -> Send:
    given, other = [{"calendar": await cloned_calendar(owner)} for _ in range(2)]
    return operation_of(owner, CALENDAR_CHANGES, given, other, "CalendarDelete")


async def story_create(owner: Caller) -> Send:
    given, other = [{"input": {**STORY, "title": each}} for each in ("Once", "Twice")]
    return operation_of(owner, STORY_CHANGES, given, other, "StoryCreate")


async def new_story(owner: Caller) -> Json:
    send = await story_create(owner)
    return dict((await send({})).data["storyCreate"]["story"])


async def story_update(owner: Caller) -> Send:
    story = (await new_story(owner))["id"]
    given, other = [{"input": {"storyId": story, "title": each}} for each in ("1", "2")]
    return operation_of(owner, STORY_CHANGES, given, other, "StoryUpdate")


async def story_open(owner: Caller) -> Send:
    given, other = [{"story": (await new_story(owner))["id"]} for _ in range(2)]
    return operation_of(owner, STORY_CHANGES, given, other, "StoryOpen")


async def story_delete(owner: Caller) -> Send:
    given, other = [{"story": (await new_story(owner))["id"]} for _ in range(2)]
    return operation_of(owner, STORY_CHANGES, given, other, "StoryDelete")


async def branch_rename(owner: Caller) -> Send:
    branch = (await new_story(owner))["currentBranch"]["id"]
    given, other = [{"branch": branch, "name": each} for each in ("1", "2")]
    return operation_of(owner, STORY_CHANGES, given, other, "BranchRename")


async def branch_delete(owner: Caller) -> Send:
    branch = (await new_story(owner))["currentBranch"]["id"]
    query = """
    query ($id: ID!) { branch(id: $id) { entries { nodes { id } } } }
    """
    entry = (await owner.ask(query, {"id": branch}))["branch"]["entries"]["nodes"][0]["id"]
    fork = f"""
    mutation {{ branchFork(input: {{ branchId: "{branch}", atEntryId: "{entry}", name: "x" }}) {{
      branch {{ id }}
    }} }}
    """
    given, other = [
        {"branch": (await owner.ask(fork))["branchFork"]["branch"]["id"]} for _ in range(2)
    ]
    return operation_of(owner, STORY_CHANGES, given, other, "BranchDelete")


def plot_change(mutation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A change of a story's plot, and the same of another story's."""
    operation = mutation[0].upper() + mutation[1:]

    async def change(owner: Caller) -> Send:
        given, other = [{"input": await _plot_input(owner, operation)} for _ in range(2)]
        return operation_of(owner, PLOT_CHANGES, given, other, operation)

    change.__name__ = mutation
    return change


async def _plot_input(owner: Caller, operation: str) -> Json:
    made = await (await story_create(owner))({})
    keys = {each["key"]: each["id"] for each in made.data["storyCreate"]["keys"]}
    branch = made.data["storyCreate"]["story"]["currentBranch"]["id"]
    ids = await make_plot(owner, branch, keys["mira"])
    return plot_inputs({**ids, "Branch": branch, "StoryCharacter": keys["mira"]})[operation]


def entity_change(mutation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A change of a story's world, and the same of another story's."""
    operation = mutation[0].upper() + mutation[1:]

    async def change(owner: Caller) -> Send:
        given, other = [{"input": await _entity_input(owner, operation)} for _ in range(2)]
        return operation_of(owner, ENTITY_CHANGES, given, other, operation)

    change.__name__ = mutation
    return change


async def _entity_input(owner: Caller, operation: str) -> Json:
    made = await (await story_create(owner))({})
    keys = {each["key"]: each["id"] for each in made.data["storyCreate"]["keys"]}
    branch = made.data["storyCreate"]["story"]["currentBranch"]["id"]
    ids = await make_world(owner, branch, keys["mira"])
    return entity_inputs({**ids, "Branch": branch, "StoryCharacter": keys["mira"]})[operation]


async def change_carry(owner: Caller) -> Send:
    given, other = [await _to_carry(owner) for _ in range(2)]
    return operation_of(owner, CARRYING, given, other, "ChangeCarry")


def probe_change(operation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A capture that is made or deleted, and the same in another story."""

    async def change(owner: Caller) -> Send:
        given, other = [await _captured(owner) for _ in range(2)]
        return operation_of(owner, PROBES, given, other, operation)

    change.__name__ = operation[0].lower() + operation[1:]
    return change


async def _captured(owner: Caller) -> Json:
    """A story with one capture."""
    told = await tell_story(owner, "One.")
    made = await make_capture(owner, told.story, told.branch)
    return {"branch": told.branch, "story": told.story, "capture": made["ProbeCapture"]}


async def _to_carry(owner: Caller) -> Json:
    """A fork with lore that the branch has not."""
    told = await tell_story(owner, "One.")
    fork = {"branch": told.branch, "entry": told.entries[-1], "name": "Fork"}
    made = await owner.ask(WAYS_BACK, fork, "BranchFork")
    branch = made["branchFork"]["branch"]["id"]
    lore = {"branchId": branch, "title": "Oil", "body": "It is so."}
    row = await owner.ask(PLOT_CHANGES, {"input": lore}, "LoreCreate")
    return {"from": branch, "to": told.branch, "row": row["loreCreate"]["lore"]["id"]}


def way_back(operation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A way back of a branch, or a fork of it, and the same of another one."""

    async def change(owner: Caller) -> Send:
        given, other = [await _told(owner, operation) for _ in range(2)]
        return operation_of(owner, WAYS_BACK, given, other, operation)

    change.__name__ = operation[0].lower() + operation[1:]
    return change


async def _told(owner: Caller, operation: str) -> Json:
    """A branch with two entries behind its opening; before a redo, one of them is undone."""
    told = await tell_story(owner, "One.", "Two.")
    if operation == "BranchRedo":
        await owner.ask(WAYS_BACK, {"branch": told.branch}, "BranchUndo")
    return {"branch": told.branch, "entry": told.entries[0], "name": "Fork"}


def text_change(mutation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A change of a story's text, and the same of another story's."""
    operation = mutation[0].upper() + mutation[1:]

    async def change(owner: Caller) -> Send:
        given, other = [{"input": await _text_input(owner, operation)} for _ in range(2)]
        return operation_of(owner, TEXT_CHANGES, given, other, operation)

    change.__name__ = mutation
    return change


async def _text_input(owner: Caller, operation: str) -> Json:
    branch = (await new_story(owner))["currentBranch"]["id"]
    return text_inputs({**await make_text(owner, branch), "Branch": branch})[operation]


async def asset_upload(owner: Caller) -> Send:
    pictures = [picture(), picture()]

    async def send(headers: dict[str, str], *, differently: bool = False) -> Answer:
        sent = {**PREFLIGHT, **headers}
        return await owner.upload(pictures[differently], headers=sent, query=ASSET_UPLOAD)

    return send


def asset_change(mutation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A change of a file or of what shows it, and the same of another one."""
    operation = mutation[0].upper() + mutation[1:]

    async def change(owner: Caller) -> Send:
        given, other = [{"input": await _asset_input(owner, operation)} for _ in range(2)]
        return operation_of(owner, ASSET_CHANGES, given, other, operation)

    change.__name__ = mutation
    return change


async def _asset_input(owner: Caller, operation: str) -> Json:
    told = await tell_story(owner, "One.")
    ids = await make_assets(owner, told.entries[-1])
    return asset_inputs({**ids, "StoryEntry": told.entries[-1]})[operation]


def setting_change(mutation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A change of something that is set up, and the same of something else."""
    operation = mutation[0].upper() + mutation[1:]

    async def change(owner: Caller) -> Send:
        given, other = [{"input": setting_inputs(await set_up(owner))[operation]} for _ in range(2)]
        return operation_of(owner, SETTING_CHANGES, given, other, operation)

    change.__name__ = mutation
    return change


async def provider_create(owner: Caller) -> Send:
    given, other = [
        {"input": {"type": "OPENAI", "displayName": name, "apiKey": "sk-x"}} for name in ("1", "2")
    ]
    return operation_of(owner, SETTING_CHANGES, given, other, "ProviderCreate")


async def profile_create(owner: Caller) -> Send:
    given, other = [{"input": {"name": name}} for name in ("1", "2")]
    return operation_of(owner, SETTING_CHANGES, given, other, "ProfileCreate")


async def profiles_reset(owner: Caller) -> Send:
    await set_up(owner)
    # As many profiles as after the next one.
    await owner.ask(SETTING_CHANGES, {"input": {}}, "ProfilesReset")
    given, other = [{"input": each} for each in ({}, {"expectedVersion": 1})]
    return operation_of(owner, SETTING_CHANGES, given, other, "ProfilesReset")


def embedding_change(mutation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A change of how a story is embedded, and the same of another story."""
    operation = mutation[0].upper() + mutation[1:]

    async def change(owner: Caller) -> Send:
        given, other = [
            {"input": await embedding_input(owner, operation, (await new_story(owner))["id"])}
            for _ in range(2)
        ]
        return operation_of(owner, EMBEDDING_CHANGES, given, other, operation)

    change.__name__ = mutation
    return change


def world_change(mutation: str) -> Callable[[Caller], Awaitable[Send]]:
    """A change of a world that outlasts stories, and the same of another world."""
    operation = mutation[0].upper() + mutation[1:]

    async def change(owner: Caller) -> Send:
        given, other = [{"input": await _world_input(owner, operation)} for _ in range(2)]
        return operation_of(owner, WORLD_CHANGES, given, other, operation)

    change.__name__ = mutation
    return change


async def _world_input(owner: Caller, operation: str) -> Json:
    if operation == "WorldCreate":
        return {"name": f"Another {uuid.uuid4()}"}
    made = await (await story_create(owner))({})
    keys = {each["key"]: each["id"] for each in made.data["storyCreate"]["keys"]}
    branch = made.data["storyCreate"]["story"]["currentBranch"]["id"]
    ids = await make_lasting_world(owner, keys["mira"])
    if operation == "CastingCreate":
        await change_world(owner, "CastingDelete", castingId=ids["Casting"])
    return world_inputs({**ids, "Branch": branch, "StoryCharacter": keys["mira"]})[operation]


MUTATIONS = [
    *[world_change(mutation) for mutation in ("worldCreate", *WORLD_PATHS)],
    asset_upload,
    *[asset_change(mutation) for mutation in ASSET_PATHS],
    *[setting_change(mutation) for mutation in SETTING_PATHS],
    *[embedding_change(mutation) for mutation in EMBEDDING_PATHS],
    provider_create,
    profile_create,
    profiles_reset,
    *[plot_change(mutation) for mutation in PLOT_PATHS],
    *[entity_change(mutation) for mutation in ENTITY_PATHS],
    *[text_change(mutation) for mutation in TEXT_PATHS],
    *[way_back(operation) for operation in WAY_OPERATIONS],
    change_carry,
    *map(probe_change, ("RetrievalProbe", "ProbeCaptureDelete", "ProbeCapturesDelete")),
    story_create,
    story_update,
    story_open,
    story_delete,
    branch_rename,
    branch_delete,
    calendar_create,
    calendar_clone,
    calendar_update,
    calendar_delete,
    seat_acquire,
    seat_renew,
    seat_release,
    seat_migrate,
    seat_handover,
    death_request,
    death_revoke,
    lorebook_import,
    card_export,
    lorebook_entry_review,
    lorebook_entry_update,
    lorebook_delete,
    identity_change,
    petition_decide,
    identity_export,
    card_import,
    embryo_create,
    embryo_activate,
    embryo_update,
    embryo_abandon,
    embryo_rehearsal_clear,
    tree_create,
    tree_ask,
    node_continue,
    node_edit,
    node_cite,
    path_canonize,
    node_correct,
    tree_transplant,
    tree_prune,
    form_anchor_set,
    form_propose,
    form_settle,
    form_reject,
    form_retire,
    voice_add,
    voice_authorize_clone,
    voice_revoke_clone,
    voice_authorization_read,
    voice_select,
    voice_remove,
]
# What runs write comes when it comes.
PEOPLES_NODES = "tree_nodes WHERE run_id IS NULL"
READS = "audit_events WHERE action = 'clone_authorization_read'"
# What is set up lies within one row.
PROVIDERS = "app_settings, jsonb_array_elements(providers)"
PROFILES = "app_settings, jsonb_array_elements(profiles)"
# A change of a branch is one delta and one event.
LOGGED = {"deltas": 1, "branch_events": 1}
PLOT_MADE = {
    "loreCreate": {"lore": 1},
    "loreUpdate": {},
    "loreDelete": {"lore": -1, "translations": -1},
    "threadCreate": {"threads": 1},
    "threadUpdate": {},
    "threadDelete": {"threads": -1},
    "happeningCreate": {"happenings": 1},
    "happeningUpdate": {},
    "happeningDelete": {
        "happenings": -1,
        "happening_involvements": -1,
        "happening_awareness": -1,
    },
    "involvementSet": {},
    "involvementDelete": {"happening_involvements": -1},
    "awarenessSet": {},
    "awarenessDelete": {"happening_awareness": -1},
    "translationSet": {"translations": 1},
    "translationImport": {"translations": 1},
    "translationDelete": {"translations": -1},
}
# How many rows more a mutation makes, by table.
MADE = {
    **ASSET_MADE,
    "assetUpload": {"assets": 1},
    "settingUpdate": {},
    "providerCreate": {PROVIDERS: 1},
    "providerUpdate": {},
    "providerDelete": {PROVIDERS: -1},
    "profileCreate": {PROFILES: 1},
    "profileUpdate": {},
    "profileDelete": {PROFILES: -1},
    "profilesReset": {},
    "assignmentSet": {},
    "embeddingSwapStart": {},
    "embeddingSwapResume": {"embeddings": 2},
    "embeddingSwapCancel": {},
    "embeddingRelabel": {},
    **TEXT_MADE,
    "branchUndo": {"story_entries": -1, "deltas": -1, "redo_steps": 1, "branch_events": 1},
    "branchRedo": {"story_entries": 1, "deltas": 1, "redo_steps": -1, "branch_events": 1},
    "branchRollback": {"story_entries": -2, "deltas": -2, "branch_events": 1},
    "branchFork": {"branches": 1, "story_entries": 1, "entities": 1, "lore": 1},
    "changeCarry": {"lore": 1, "deltas": 1, "branch_events": 1},
    "retrievalProbe": {"probe_captures": 1},
    "probeCaptureDelete": {"probe_captures": -1},
    "probeCapturesDelete": {"probe_captures": -1},
    **{mutation: LOGGED | made for mutation, made in (PLOT_MADE | ENTITY_MADE).items()},
    "translationRun": {"runs": 1, "translations": 4, "deltas": 4, "branch_events": 1},
    "worldCreate": {"persistent_worlds": 1},
    "worldUpdate": {},
    "worldDelete": {
        "persistent_worlds": -1,
        "world_entities": -3,
        "world_relations": -1,
        "world_merges": -1,
        "castings": -1,
    },
    "worldUpsert": {"world_entities": 1},
    "worldEntityCreate": {"world_entities": 1},
    "worldEntityUpdate": {},
    "worldEntityDelete": {"world_entities": -1, "world_relations": -1, "castings": -1},
    "worldEntityMerge": {"world_merges": 1, "world_relations": -1},
    "worldEntityUnmerge": {},
    "worldEntityCast": LOGGED | {"entities": 1, "castings": 1},
    "worldRelationSet": {"world_relations": 1},
    "worldRelationDelete": {"world_relations": -1},
    "worldSourceRemove": {},
    "castingCreate": {"castings": 1},
    "castingDelete": {"castings": -1},
    "storyCreate": {"stories": 1, "branches": 1, "entities": 1, "lore": 1, "story_entries": 1},
    "storyUpdate": {},
    "storyOpen": {},
    "storyDelete": {
        "stories": -1,
        "branches": -1,
        "entities": -1,
        "lore": -1,
        "story_entries": -1,
    },
    "branchRename": {},
    "branchDelete": {"branches": -1, "entities": -1, "lore": -1, "story_entries": -1},
    "calendarCreate": {"vault_calendars": 1},
    "calendarClone": {"vault_calendars": 1},
    "calendarUpdate": {},
    "calendarDelete": {"vault_calendars": -1},
    "seatAcquire": {},
    "seatRenew": {},
    "seatRelease": {},
    "seatMigrate": {},
    "seatHandover": {},
    "deathRequest": {"confirmations": 1},
    "deathRevoke": {},
    "cardImport": {"embryo_drafts": 1, "import_jobs": 1},
    "lorebookImport": {"lorebooks": 1, "import_jobs": 1},
    "cardExport": {"exports": 1},
    "lorebookEntryReview": {},
    "lorebookEntryUpdate": {},
    "lorebookDelete": {"lorebooks": -1},
    "embryoCreate": {"embryo_drafts": 1},
    "embryoActivate": {"characters": 1, "identity_record_versions": 1},
    "identityChange": {"confirmations": 1},
    "petitionDecide": {"identity_record_versions": 1},
    "identityExport": {"exports": 1},
    "embryoUpdate": {},
    "embryoAbandon": {"embryo_drafts": -1},
    "embryoRehearsalClear": {},
    "treeCreate": {"mirror_trees": 1},
    "treeAsk": {"runs": 1, PEOPLES_NODES: 1},
    "nodeContinue": {"runs": 1},
    "nodeEdit": {PEOPLES_NODES: 1},
    "nodeCite": {"citations": 1},
    "pathCanonize": {"canonizations": 1},
    "nodeCorrect": {PEOPLES_NODES: 1, "canonizations": 1},
    "treeTransplant": {"mirror_trees": 1, "tree_transplants": 1},
    "treePrune": {PEOPLES_NODES: -1},
    "formAnchorSet": {"form_anchors": 1},
    "formPropose": {"forms": 1},
    "formSettle": {},
    "formReject": {},
    "formRetire": {},
    "voiceAdd": {"voice_profiles": 1},
    "voiceAuthorizeClone": {},
    "voiceRevokeClone": {},
    "voiceAuthorizationRead": {READS: 1},
    "voiceSelect": {},
    "voiceRemove": {"voice_profiles": -1},
}
# Which of them can be done again, and then make something else.
REPEATABLE = {
    "worldCreate",
    "worldEntityCreate",
    "worldEntityCast",
    "entryAssetAttach",
    "providerCreate",
    "profileCreate",
    "entryAppend",
    "entityCreate",
    "loreCreate",
    "threadCreate",
    "happeningCreate",
    "storyCreate",
    "calendarCreate",
    "calendarClone",
    "identityExport",
    "cardImport",
    "lorebookImport",
    "cardExport",
    "embryoCreate",
    "treeCreate",
    "nodeEdit",
    "nodeCite",
    "nodeCorrect",
    "treeTransplant",
    "formPropose",
    "voiceAdd",
}


def payload_of(answer: Answer) -> tuple[str, Json]:
    ((name, payload),) = answer.data.items()
    return name, payload


def ids_of(payload: Json) -> dict[str, str]:
    """The ids of what a payload holds."""
    named = {name: value for name, value in payload.items() if name.endswith("Id")}
    rows = {
        f"{name} {index}": row
        for name, value in payload.items()
        for index, row in enumerate(value if isinstance(value, list) else [value])
    }
    listed = {name: row for name, row in rows.items() if name.partition(" ")[0].endswith("Ids")}
    return {
        **named,
        **listed,
        **{name: row["id"] for name, row in rows.items() if isinstance(row, dict) and "id" in row},
    }


def assert_refused(answer: Answer, code: str, message: str) -> None:
    _, payload = payload_of(answer)
    assert payload.pop("errors") == [{"code": code, "message": message, "path": []}]
    assert set(payload.values()) == {None}


def assert_reused(answer: Answer) -> None:
    assert_refused(
        answer,
        "IDEMPOTENCY_KEY_REUSED",
        "This Idempotency-Key was used for another request: send a new key.",
    )


async def count(ledger: Ledger, table: str) -> int:
    return int(await ledger.value(f"SELECT count(*) FROM {table}"))


@pytest.mark.parametrize("mutation", MUTATIONS)
async def test_a_repeat_answers_as_the_first_time_and_does_nothing(
    owner: Caller, ledger: Ledger, mutation: Callable[[Caller], Awaitable[Send]]
) -> None:
    """Rule I1."""
    send = await mutation(owner)
    headers = keyed()
    first = await send(headers)
    name, payload = payload_of(first)
    assert payload["errors"] == []
    if "run" in payload:
        # What runs by itself must have come to rest before tables are compared.
        await owner.follow(payload["run"]["id"])
    before = await ledger.fingerprint()
    for _ in range(2):
        again = payload_of(await send(headers))[1]
        assert ids_of(again) == ids_of(payload) != {}
        assert again["errors"] == []
        if name in REPEATABLE or name in ("pathCanonize", "treePrune"):
            assert again == payload
    assert await ledger.fingerprint() == before
    # Without a key, or with another one, it is done again where that makes sense.
    if name in REPEATABLE:
        for other in ({}, keyed()):
            assert ids_of(payload_of(await send(other))[1]) != ids_of(payload)


async def test_a_repeat_shows_the_rows_as_they_are_now(owner: Caller) -> None:
    send = await tree_ask(owner)
    headers = keyed()
    _, first = payload_of(await send(headers))
    assert first["run"]["status"] == "QUEUED"
    await owner.follow(first["run"]["id"])
    _, again = payload_of(await send(headers))
    assert again["run"] == {**first["run"], "status": "SUCCEEDED"}
    assert again["question"] == first["question"]


async def test_a_repeated_import_gives_its_warnings_again(owner: Caller) -> None:
    card = b'{"name": "Old", "description": "A card of the first version.", "first_mes": 5}'
    headers = {**PREFLIGHT, **keyed()}
    first, again = [payload_of(await owner.upload(card, headers=headers))[1] for _ in range(2)]
    assert first["errors"] == []
    assert first["warnings"] != []
    assert again == first


@pytest.mark.parametrize("mutation", MUTATIONS)
async def test_another_request_under_a_used_key_is_refused(
    owner: Caller, ledger: Ledger, mutation: Callable[[Caller], Awaitable[Send]]
) -> None:
    """Rule I2."""
    send = await mutation(owner)
    headers = keyed()
    _, first = payload_of(await send(headers))
    if "run" in first:
        await owner.follow(first["run"]["id"])
    before = await ledger.fingerprint()
    assert_reused(await send(headers, differently=True))
    assert await ledger.fingerprint() == before
    assert ids_of(payload_of(await send(headers))[1]) == ids_of(first)


async def test_another_mutation_document_or_operation_is_another_request(
    owner: Caller, ledger: Ledger
) -> None:
    character = await owner.create_character()
    headers = keyed()
    given = {"character": character, "topic": "Once"}
    assert payload_of(await owner.post(TREE_ASK, given, "TreeCreate", headers))[1]["errors"] == []
    before = await ledger.fingerprint()
    spaced = TREE_ASK.replace("TreeCreate(", "TreeCreate (")
    assert_reused(await owner.post(spaced, given, "TreeCreate", headers))
    assert_reused(await owner.post(EMBRYO_CREATE, {"identity": {"name": "X"}}, None, headers))
    assert await ledger.fingerprint() == before


@pytest.mark.parametrize("mutation", MUTATIONS)
async def test_at_the_same_moment_it_is_done_once_and_all_answers_are_equal(
    owner: Caller, ledger: Ledger, mutation: Callable[[Caller], Awaitable[Send]]
) -> None:
    send = await mutation(owner)
    headers = keyed()
    tables = {name: await count(ledger, name) for made in MADE.values() for name in made}
    answers = await asyncio.gather(*(send(headers) for _ in range(6)))
    payloads = [payload_of(each)[1] for each in answers]
    assert [each["errors"] for each in payloads] == [[]] * 6
    assert [ids_of(each) for each in payloads] == [ids_of(payloads[0])] * 6
    name, payload = payload_of(answers[0])
    if "run" in payload:
        # What a run makes of a branch comes when it comes, and all of it by its end.
        await owner.follow(payload["run"]["id"])
    made = MADE[name]
    assert {name: await count(ledger, name) for name in tables} == {
        name: number + made.get(name, 0) for name, number in tables.items()
    }
    kept = await ledger.value("SELECT count(*) FROM idempotency WHERE key = $1", *headers.values())
    assert kept == 1


async def test_of_two_different_requests_at_the_same_moment_one_is_done(
    owner: Caller, ledger: Ledger
) -> None:
    send = await tree_create(owner)
    headers = keyed()
    before = await count(ledger, "mirror_trees")
    answers = await asyncio.gather(send(headers), send(headers, differently=True))
    refused = [each for each in answers if payload_of(each)[1]["errors"]]
    assert len(refused) == 1
    assert_reused(refused[0])
    assert await count(ledger, "mirror_trees") == before + 1


async def test_a_refused_mutation_keeps_no_key(owner: Caller, ledger: Ledger) -> None:
    """Rule I1."""
    tree = await owner.create_tree()
    headers = keyed()
    before = await ledger.fingerprint()
    given = {"tree": tree, "parent": None, "text": " "}
    refused = await owner.post(TREE_ASK, given, "TreeAsk", headers)
    assert [each["code"] for each in payload_of(refused)[1]["errors"]] == ["TEXT_EMPTY"]
    card = await owner.upload(b"no card", headers={**PREFLIGHT, **headers})
    assert payload_of(card)[1]["embryo"] is None
    assert await ledger.fingerprint() == before
    # So the mended request may use it.
    mended = await owner.post(TREE_ASK, {**given, "text": "Well?"}, "TreeAsk", headers)
    assert payload_of(mended)[1]["errors"] == []
    # Nothing goes on behind the tests that follow.
    await owner.follow(payload_of(mended)[1]["run"]["id"])


async def test_a_document_with_two_mutations_is_repeated_as_a_whole(
    owner: Caller, ledger: Ledger
) -> None:
    document = """
    mutation($character: ID!) {
      one: treeCreate(input: { characterId: $character, topic: "One" }) { tree { id topic } }
      two: treeCreate(input: { characterId: $character, topic: "Two" }) { tree { id topic } }
    }
    """
    given = {"character": await owner.create_character()}
    headers = keyed()
    first = (await owner.post(document, given, None, headers)).data
    assert [first[name]["tree"]["topic"] for name in ("one", "two")] == ["One", "Two"]
    before = await ledger.fingerprint()
    assert (await owner.post(document, given, None, headers)).data == first
    assert await ledger.fingerprint() == before


async def test_a_key_belongs_to_its_user(owner: Caller, stranger: Caller) -> None:
    """Rule I3."""
    headers = {**PREFLIGHT, **keyed()}
    mine = payload_of(await owner.upload(CARD, headers=headers))[1]
    theirs = payload_of(await stranger.upload(CARD, headers=headers))[1]
    other = payload_of(await stranger.upload(OTHER_CARD, headers={**PREFLIGHT, **keyed()}))[1]
    assert [each["errors"] for each in (mine, theirs, other)] == [[], [], []]
    assert len({each["embryo"]["id"] for each in (mine, theirs, other)}) == 3
    assert payload_of(await owner.upload(CARD, headers=headers))[1] == mine
    assert payload_of(await stranger.upload(CARD, headers=headers))[1] == theirs


async def test_a_key_is_forgotten_after_a_day(owner: Caller, ledger: Ledger) -> None:
    """Rule I3."""
    send = await tree_create(owner)
    headers = keyed()
    first = ids_of(payload_of(await send(headers))[1])
    age = "UPDATE idempotency SET created_at = created_at - $2::interval WHERE key = $1"
    (key,) = headers.values()
    await ledger.run(age.replace("$2", "'23 hours'"), key)
    assert ids_of(payload_of(await send(headers))[1]) == first
    await ledger.run(age.replace("$2", "'2 hours'"), key)
    assert ids_of(payload_of(await send(headers, differently=True))[1]) != first


@pytest.mark.parametrize("key", ["", "x" * 201, "tab\tinside"])
async def test_a_bad_key_is_refused_and_nothing_is_done(
    owner: Caller, ledger: Ledger, key: str
) -> None:
    send = await tree_create(owner)
    before = await ledger.fingerprint()
    assert_refused(
        await send({"Idempotency-Key": key}),
        "INVALID_IDEMPOTENCY_KEY",
        "An Idempotency-Key has 1 to 200 printable characters.",
    )
    assert await ledger.fingerprint() == before


async def test_a_key_of_200_characters_is_taken(owner: Caller) -> None:
    send = await tree_create(owner)
    headers = {"Idempotency-Key": uuid.uuid4().hex.ljust(200, "x")}
    first, again = [ids_of(payload_of(await send(headers))[1]) for _ in range(2)]
    assert first == again


async def test_a_query_does_not_use_a_key_up(owner: Caller, ledger: Ledger) -> None:
    headers = keyed()
    before = await ledger.fingerprint()
    for query in ("{ viewer { roles } }", "{ viewer { user { name } } }"):
        assert (await owner.post(query, headers=headers)).status == 200
    assert await ledger.fingerprint() == before
    answer = await owner.upload(CARD, headers={**PREFLIGHT, **headers}, query=CARD_IMPORT)
    assert payload_of(answer)[1]["errors"] == []


async def test_a_key_works_for_a_mutation_asked_for_as_a_stream(owner: Caller) -> None:
    send = await tree_create(owner)
    headers = {**keyed(), "Accept": "text/event-stream"}
    first, again = [await send(headers) for _ in range(2)]
    assert first.body == again.body
    assert '"topic":"Once"' in first.body


async def test_a_key_in_a_handshake_is_no_key_of_a_sockets_operations(owner: Caller) -> None:
    """All operations of a socket would share it."""
    given = {"character": await owner.create_character(), "topic": "Once"}
    async with owner.socket(**keyed()) as socket:
        made = [await socket.ask(TREE_ASK, given, "TreeCreate") for _ in range(2)]
    assert len({each["treeCreate"]["tree"]["id"] for each in made}) == 2
