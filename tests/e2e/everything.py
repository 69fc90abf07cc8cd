"""Every mutation, aimed at somebody's things, and the path of what it does not find."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.asset_documents import ASSET_CHANGES, ASSET_PATHS, asset_inputs
from tests.e2e.calendar_documents import CALENDAR_CHANGES
from tests.e2e.callers import CHANGES, CHECKLIST, EMBRYO_ACTIVATE, TREE_ASK, Json
from tests.e2e.draft_documents import DRAFT_CHANGES
from tests.e2e.embedding_documents import EMBEDDING_CHANGES, EMBEDDING_PATHS, embedding_inputs
from tests.e2e.ending_documents import ENDING_CHANGES, SEAT_CHANGES
from tests.e2e.entity_documents import ENTITY_CHANGES, ENTITY_PATHS, entity_inputs
from tests.e2e.entry_documents import TEXT_CHANGES, TEXT_PATHS, text_inputs
from tests.e2e.form_documents import ANCHOR, FORM, FORM_CHANGES, VOICE_CHANGES
from tests.e2e.history_documents import CARRYING
from tests.e2e.identity_documents import IDENTITY_CHANGES
from tests.e2e.plot_documents import PLOT_CHANGES, PLOT_PATHS, plot_inputs
from tests.e2e.retrieval_documents import PROBES
from tests.e2e.settings_documents import SETTING_CHANGES, SETTING_PATHS, setting_inputs
from tests.e2e.story_documents import STORY_CHANGES
from tests.e2e.transfer_documents import TRANSFER_CHANGES
from tests.e2e.tree_documents import TREE_CHANGES, TREE_RULES
from tests.e2e.ways_back_documents import WAY_OPERATIONS, WAYS_BACK
from tests.e2e.world_documents import WORLD_CHANGES, WORLD_PATHS, world_inputs


def changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Every mutation aimed at things, whose ids are given by their kinds."""
    return {
        "embryoActivate": (
            EMBRYO_ACTIVATE,
            {"id": ids["EmbryoDraft"], "confirmed": CHECKLIST},
            None,
        ),
        "embryoUpdate": (
            DRAFT_CHANGES,
            {"embryo": ids["EmbryoDraft"], "identity": {"name": "Not mine"}},
            "EmbryoUpdate",
        ),
        "embryoAbandon": (DRAFT_CHANGES, {"embryo": ids["EmbryoDraft"]}, "EmbryoAbandon"),
        "embryoRehearsalClear": (
            DRAFT_CHANGES,
            {"embryo": ids["EmbryoDraft"]},
            "EmbryoRehearsalClear",
        ),
        "treeCreate": (
            TREE_ASK,
            {"character": ids["Character"], "topic": "Not mine"},
            "TreeCreate",
        ),
        "treeAsk": (
            TREE_ASK,
            {"tree": ids["MirrorTree"], "parent": ids["TreeNode"], "text": "Not mine?"},
            "TreeAsk",
        ),
        "answerRegenerate": (CHANGES, {"question": ids["question"]}, "AnswerRegenerate"),
        "nodeAdopt": (CHANGES, {"node": ids["TreeNode"]}, "NodeAdopt"),
        "runCancel": (CHANGES, {"run": ids["Run"]}, "RunCancel"),
        "nodeContinue": (TREE_CHANGES, {"node": ids["TreeNode"]}, "NodeContinue"),
        "nodeEdit": (TREE_RULES, {"node": ids["TreeNode"], "text": "Not mine."}, "NodeEdit"),
        "nodeCite": (
            TREE_CHANGES,
            {
                "node": ids["TreeNode"],
                "source": ids["question"],
                "target": {"start": 0, "end": 4},
            },
            "NodeCite",
        ),
        "pathCanonize": (
            TREE_RULES,
            {"endpoint": ids["TreeNode"], "scope": "REALITY"},
            "PathCanonize",
        ),
        "nodeCorrect": (
            TREE_CHANGES,
            {"node": ids["TreeNode"], "text": "Not mine."},
            "NodeCorrect",
        ),
        "treeTransplant": (
            TREE_RULES,
            {"node": ids["TreeNode"], "topic": "Not mine"},
            "TreeTransplant",
        ),
        "treePrune": (TREE_CHANGES, {"tree": ids["MirrorTree"], "dryRun": False}, "TreePrune"),
        **_outward_changes(ids),
        **_endings(ids),
        **_identity_changes(ids),
        **_transfer_changes(ids),
        **_calendar_changes(ids),
        **_story_changes(ids),
        **_asset_changes(ids),
        **_setting_changes(ids),
        **_embedding_changes(ids),
        **_plot_changes(ids),
        **_entity_changes(ids),
        **_text_changes(ids),
        **_ways_back(ids),
        **_world_changes(ids),
        "changeCarry": (
            CARRYING,
            {"from": ids["Branch"], "to": ids["Branch"], "row": ids["Lore"]},
            "ChangeCarry",
        ),
        "retrievalProbe": (PROBES, {"branch": ids["Branch"]}, "RetrievalProbe"),
        "probeCaptureDelete": (PROBES, {"capture": ids["ProbeCapture"]}, "ProbeCaptureDelete"),
        "probeCapturesDelete": (PROBES, {"story": ids["Story"]}, "ProbeCapturesDelete"),
    }


def _calendar_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of calendars; new ones are taken from everybody."""
    calendar = {"calendar": ids["Calendar"]}
    update = {"input": {"calendarId": ids["Calendar"], "name": "Not mine"}}
    return {
        "calendarClone": (CALENDAR_CHANGES, calendar, "CalendarClone"),
        "calendarUpdate": (CALENDAR_CHANGES, update, "CalendarUpdate"),
        "calendarDelete": (CALENDAR_CHANGES, calendar, "CalendarDelete"),
    }


def _asset_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of files; new ones are taken from everybody."""
    return {
        operation[0].lower() + operation[1:]: (ASSET_CHANGES, {"input": given}, operation)
        for operation, given in asset_inputs(ids).items()
    }


def _setting_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of settings that name something; others are for everybody."""
    return {
        operation[0].lower() + operation[1:]: (SETTING_CHANGES, {"input": given}, operation)
        for operation, given in setting_inputs(ids).items()
    }


def _embedding_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of how a story is embedded."""
    return {
        operation[0].lower() + operation[1:]: (EMBEDDING_CHANGES, {"input": given}, operation)
        for operation, given in embedding_inputs(ids).items()
    }


def _plot_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of lore, threads, happenings and translations."""
    return {
        operation[0].lower() + operation[1:]: (PLOT_CHANGES, {"input": given}, operation)
        for operation, given in plot_inputs(ids).items()
    }


def _entity_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of characters, locations, items, factions and relationships."""
    return {
        operation[0].lower() + operation[1:]: (ENTITY_CHANGES, {"input": given}, operation)
        for operation, given in entity_inputs(ids).items()
    }


def _world_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of worlds that outlast stories; new ones are taken from everybody."""
    return {
        operation[0].lower() + operation[1:]: (WORLD_CHANGES, {"input": given}, operation)
        for operation, given in world_inputs(ids).items()
    }


def _text_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of entries, chapters and eras."""
    return {
        operation[0].lower() + operation[1:]: (TEXT_CHANGES, {"input": given}, operation)
        for operation, given in text_inputs(ids).items()
    }


def _ways_back(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Undo, redo, rollback, forks."""
    given = {"branch": ids["Branch"], "entry": ids["StoryEntry"], "name": "Not mine"}
    return {
        operation[0].lower() + operation[1:]: (WAYS_BACK, given, operation)
        for operation in WAY_OPERATIONS
    }


def _story_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of stories and of branches as things; new ones are taken from everybody."""
    story, branch = {"story": ids["Story"]}, {"branch": ids["Branch"]}
    update = {"input": {"storyId": ids["Story"], "title": "Not mine"}}
    return {
        "storyUpdate": (STORY_CHANGES, update, "StoryUpdate"),
        "storyOpen": (STORY_CHANGES, story, "StoryOpen"),
        "storyDelete": (STORY_CHANGES, story, "StoryDelete"),
        "branchRename": (STORY_CHANGES, {**branch, "name": "Not mine"}, "BranchRename"),
        "branchDelete": (STORY_CHANGES, branch, "BranchDelete"),
    }


def _endings(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of seats and of the ends of lives."""
    character = {"character": ids["Character"]}
    held = {**character, "holder": "Not mine", "epoch": 1}
    return {
        "seatAcquire": (SEAT_CHANGES, {**character, "holder": "Not mine"}, "SeatAcquire"),
        "seatRenew": (SEAT_CHANGES, held, "SeatRenew"),
        "seatRelease": (SEAT_CHANGES, character, "SeatRelease"),
        "seatMigrate": (SEAT_CHANGES, character, "SeatMigrate"),
        "seatHandover": (SEAT_CHANGES, held, "SeatHandover"),
        "deathRequest": (ENDING_CHANGES, {**character, "purpose": "Not mine."}, "DeathRequest"),
        "deathRevoke": (ENDING_CHANGES, character, "DeathRevoke"),
        "dataErase": (ENDING_CHANGES, {**character, "name": "Not mine"}, "DataErase"),
    }


def _outward_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of forms and voices."""
    character, form, voice = ids["Character"], {"form": ids["Form"]}, {"voice": ids["VoiceProfile"]}
    new_voice = {"characterId": character, "name": "Not mine", "sourceKind": "STOCK"}
    return {
        "formAnchorSet": (
            FORM_CHANGES,
            {"input": {"characterId": character, **ANCHOR}},
            "FormAnchorSet",
        ),
        "formPropose": (FORM_CHANGES, {"input": {"characterId": character, **FORM}}, "FormPropose"),
        "formSettle": (FORM_CHANGES, form, "FormSettle"),
        "formReject": (FORM_CHANGES, form, "FormReject"),
        "formRetire": (FORM_CHANGES, form, "FormRetire"),
        "voiceAdd": (VOICE_CHANGES, {"input": new_voice}, "VoiceAdd"),
        "voiceAuthorizeClone": (
            VOICE_CHANGES,
            {**voice, "ref": "Not mine"},
            "VoiceAuthorizeClone",
        ),
        "voiceRevokeClone": (VOICE_CHANGES, voice, "VoiceRevokeClone"),
        "voiceAuthorizationRead": (VOICE_CHANGES, voice, "VoiceAuthorizationRead"),
        "voiceSelect": (VOICE_CHANGES, voice, "VoiceSelect"),
        "voiceRemove": (VOICE_CHANGES, voice, "VoiceRemove"),
    }


def _identity_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of identity and petitions."""
    character = ids["Character"]
    given = {"characterId": character, "identity": {"name": "Not mine"}, "purpose": "None"}
    return {
        "identityChange": (IDENTITY_CHANGES, {"input": given}, "IdentityChange"),
        "identityExport": (IDENTITY_CHANGES, {"character": character}, "IdentityExport"),
        "petitionDecide": (
            IDENTITY_CHANGES,
            {"petition": ids["Petition"], "decision": "DENY"},
            "PetitionDecide",
        ),
    }


def _transfer_changes(ids: Mapping[str, str]) -> dict[str, tuple[str, Json, str | None]]:
    """Those of lorebooks and exports; files are taken from everybody."""
    entry = ids["LorebookEntry"]
    review: Json = {"entries": [entry], "decision": "REJECT"}
    update = {"input": {"entryId": entry, "content": "Not mine."}}
    return {
        "cardExport": (TRANSFER_CHANGES, {"character": ids["Character"]}, "CardExport"),
        "lorebookEntryReview": (TRANSFER_CHANGES, review, "LorebookEntryReview"),
        "lorebookEntryUpdate": (TRANSFER_CHANGES, update, "LorebookEntryUpdate"),
        "lorebookDelete": (TRANSFER_CHANGES, {"lorebook": ids["Lorebook"]}, "LorebookDelete"),
    }


PATHS = {
    **{each: ["input", field] for each, field in {**ASSET_PATHS, **SETTING_PATHS}.items()},
    **{
        mutation: ["input", field]
        for mutation, field in {**PLOT_PATHS, **TEXT_PATHS, **ENTITY_PATHS, **WORLD_PATHS}.items()
    },
    **{each[0].lower() + each[1:]: ["input", "branchId"] for each in WAY_OPERATIONS},
    **{mutation: ["input", field] for mutation, field in EMBEDDING_PATHS.items()},
    "changeCarry": ["input", "fromBranchId"],
    "retrievalProbe": ["input", "branchId"],
    "probeCaptureDelete": ["input", "captureId"],
    "probeCapturesDelete": ["input", "storyId"],
    "storyUpdate": ["input", "storyId"],
    "storyOpen": ["input", "storyId"],
    "storyDelete": ["input", "storyId"],
    "branchRename": ["input", "branchId"],
    "branchDelete": ["input", "branchId"],
    "calendarClone": ["input", "calendarId"],
    "calendarUpdate": ["input", "calendarId"],
    "calendarDelete": ["input", "calendarId"],
    "cardExport": ["input", "characterId"],
    "lorebookEntryReview": ["input", "entryIds", "0"],
    "lorebookEntryUpdate": ["input", "entryId"],
    "lorebookDelete": ["input", "lorebookId"],
    "seatAcquire": ["input", "characterId"],
    "seatRenew": ["input", "characterId"],
    "seatRelease": ["input", "characterId"],
    "seatMigrate": ["input", "characterId"],
    "seatHandover": ["input", "characterId"],
    "deathRequest": ["input", "characterId"],
    "deathRevoke": ["input", "characterId"],
    "dataErase": ["input", "characterId"],
    "identityChange": ["input", "characterId"],
    "identityExport": ["input", "characterId"],
    "petitionDecide": ["input", "petitionId"],
    "embryoActivate": ["input", "embryoId"],
    "embryoUpdate": ["input", "embryoId"],
    "embryoAbandon": ["input", "embryoId"],
    "embryoRehearsalClear": ["input", "embryoId"],
    "treeCreate": ["input", "characterId"],
    "treeAsk": ["input", "treeId"],
    "answerRegenerate": ["input", "questionId"],
    "nodeAdopt": ["input", "nodeId"],
    "runCancel": ["input", "runId"],
    "nodeContinue": ["input", "nodeId"],
    "nodeEdit": ["input", "nodeId"],
    "nodeCite": ["input", "nodeId"],
    "pathCanonize": ["input", "endpointId"],
    "nodeCorrect": ["input", "nodeId"],
    "treeTransplant": ["input", "nodeId"],
    "treePrune": ["input", "treeId"],
    "formAnchorSet": ["input", "characterId"],
    "formPropose": ["input", "characterId"],
    "formSettle": ["input", "formId"],
    "formReject": ["input", "formId"],
    "formRetire": ["input", "formId"],
    "voiceAdd": ["input", "characterId"],
    "voiceAuthorizeClone": ["input", "voiceId"],
    "voiceRevokeClone": ["input", "voiceId"],
    "voiceAuthorizationRead": ["input", "voiceId"],
    "voiceSelect": ["input", "voiceId"],
    "voiceRemove": ["input", "voiceId"],
}
