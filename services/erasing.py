"""Erasing: what private text is left of a character that has died goes, and tombstones stay.

Everything goes in one transaction and in the order of the specification: the authority first, then
vectors, caches, derived views, and candidates for talk that the character begins. A noun that keeps
text of a character adds a step here, be it in its own table or in another one. Append-only records
hold no private text and stay as they are.
Source: spec soul-mirror, section 10; glossary, section 13.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Text, case, cast, column, delete, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import col

from db.enums import CharacterStatus, CitationTarget, TreeEventType
from db.reading import Writing, any_of, param, statement
from db.tables import (
    AuditEvent,
    Casting,
    Character,
    Citation,
    EmbryoDraft,
    Export,
    Form,
    FormAnchor,
    Idempotency,
    IdentityPackage,
    IdentityRecord,
    IdentityRecordVersion,
    ImportJob,
    Lorebook,
    MirrorTree,
    Petition,
    Run,
    TreeNode,
    VoiceProfile,
)
from services import characters, mirrors, runs, searching, seats
from services.access import Viewer, hold_row, require_row
from services.accounts import record_act
from services.endings import archive_if_due
from services.errors import Conflict, Invalid

_CHARACTER = ("input", "characterId")
_NO_BRIEF = dict.fromkeys(
    ("action", "target", "purpose", "data_involved", "consequence", "reversibility"), ""
)

# Erases something of the character, whom the caller holds; how many rows. The values are those of
# `_belongings`.
Step = Callable[[Writing, dict[str, Any]], Awaitable[int]]


async def erase_character(
    writing: Writing, viewer: Viewer, character_id: str, name: str
) -> Character:
    """Erase everything that a dead character and its user have said, and who it was. `name` must be
    the character's: this cannot be taken back.

    Raises NotFound, Conflict (CHARACTER_NOT_DECEASED) and Invalid (CONFIRMATION_REQUIRED).
    """
    character = await hold_row(writing, viewer, Character, character_id, *_CHARACTER)
    character = await archive_if_due(writing, viewer, character.id)
    if character.status != CharacterStatus.DECEASED:
        raise Conflict(
            f"Only a deceased character can be erased: this one is {character.status}.",
            "CHARACTER_NOT_DECEASED",
            _CHARACTER,
        )
    if name != character.name:
        raise Invalid(
            "Confirm with the character's name, letter by letter.",
            "CONFIRMATION_REQUIRED",
            ("input", "name"),
        )
    # What a server should still work on ends here, and with it the streams of it.
    await seats.empty_seat(writing, viewer, character.id)
    belongings = await _belongings(writing, viewer, character)
    counts = {name: await erase(writing, belongings) for name, erase in STEPS}
    await characters.end_custodianship(writing, viewer, character.id)
    await record_act(writing, viewer, "data_erased", character.id, counts)
    return await require_row(writing, viewer, Character, character.id)


def _trees() -> Any:
    return select(col(MirrorTree.id)).where(col(MirrorTree.character_id) == param("character_id"))


def _is_of_book() -> Any:
    return or_(
        col(Lorebook.character_id) == param("character_id"),
        col(Lorebook.embryo_draft_id) == param("draft_id"),
    )


@statement(object)
def _books() -> Any:
    return select(col(Lorebook.id).label("id"), col(Lorebook.import_job_id).label("job_id")).where(
        _is_of_book()
    )


@statement(object)
def _job_of_draft() -> Any:
    return select(col(EmbryoDraft.import_job_id)).where(col(EmbryoDraft.id) == param("draft_id"))


@statement(object)
def _jobs_on_record() -> Any:
    # A book that was deleted does not name its import any more; the record of acts still does.
    arguments = col(AuditEvent.arguments)
    return select(arguments["import_job_id"].astext.label("job_id")).where(
        col(AuditEvent.actor_user_id) == param("viewer"),
        col(AuditEvent.action) == "lorebook_imported",
        arguments["character_id"].astext == param("character_id"),
    )


async def _belongings(writing: Writing, viewer: Viewer, character: Character) -> dict[str, Any]:
    """What the steps go by: ids of the character and of what it came from, and whose it was."""
    draft_id = character.embryo_draft_id
    whose = {"viewer": viewer.signed_in_id, "character_id": character.id, "draft_id": draft_id}
    books: list[Any] = await writing.all(_books(), **whose)
    on_record: list[Any] = await writing.all(_jobs_on_record(), **whose)
    jobs = {each.job_id for each in (*books, *on_record)}
    jobs.add(await writing.value(_job_of_draft(), **whose))
    job_ids = [each for each in jobs if each is not None]
    named = [character.id, draft_id, *job_ids, *(each.id for each in books)]
    return {
        **whose,
        "job_ids": job_ids,
        "text_hashes": await searching.hashes_of_character(writing, viewer, character.id),
        "patterns": [f'%"{each}"%' for each in named if each is not None],
    }


def _step(build: Callable[[], Any]) -> Step:
    """A step that is one statement."""
    prepared = statement(object)(build)

    async def erase(writing: Writing, belongings: dict[str, Any]) -> int:
        return await writing.run(prepared(), **belongings)

    return erase


@_step
def _erase_nodes() -> Any:
    return (
        update(TreeNode)
        .where(col(TreeNode.tree_id).in_(_trees()), col(TreeNode.erased_at).is_(None))
        .values(content="", reasoning=None, erased_at=func.now())
    )


@_step
def _erase_citations() -> Any:
    nodes = select(col(TreeNode.id)).where(col(TreeNode.tree_id).in_(_trees()))
    # A node's id stays; how another source is called is the user's own text.
    is_node = col(Citation.target_kind) == CitationTarget.TEXT_RANGE.value
    return (
        update(Citation)
        .where(col(Citation.node_id).in_(nodes), col(Citation.erased_at).is_(None))
        .values(
            quote="",
            source_id=case((is_node, col(Citation.source_id)), else_=None),
            erased_at=func.now(),
        )
    )


@statement(MirrorTree)
def _erase_topics() -> Any:
    return (
        update(MirrorTree)
        .where(col(MirrorTree.character_id) == param("character_id"))
        .values(topic="", updated_at=func.now(), version=col(MirrorTree.version) + 1)
        .returning(col(MirrorTree.id).label("id"))
    )


async def _erase_trees(writing: Writing, belongings: dict[str, Any]) -> int:
    trees = await writing.all(_erase_topics(), **belongings)
    for tree in trees:
        await mirrors.note_change(writing, tree.id, TreeEventType.TREE_ERASED)
    return len(trees)


async def _erase_event_texts(writing: Writing, belongings: dict[str, Any]) -> int:
    return await runs.forget_texts_of_character(writing, belongings["character_id"])


@_step
def _erase_runs() -> Any:
    # What a provider says of its trouble may quote what it was asked.
    return (
        update(Run)
        .where(col(Run.character_id) == param("character_id"), col(Run.error_message).is_not(None))
        .values(error_message=None)
    )


@_step
def _erase_identity_packages() -> Any:
    versions = (
        select(col(IdentityRecordVersion.id))
        .join(IdentityRecord)
        .where(col(IdentityRecord.character_id) == param("character_id"))
    )
    return delete(IdentityPackage).where(col(IdentityPackage.version_id).in_(versions))


@_step
def _erase_form_anchors() -> Any:
    return delete(FormAnchor).where(col(FormAnchor.character_id) == param("character_id"))


@_step
def _erase_forms() -> Any:
    return delete(Form).where(col(Form.character_id) == param("character_id"))


@_step
def _erase_voices() -> Any:
    return delete(VoiceProfile).where(col(VoiceProfile.character_id) == param("character_id"))


@_step
def _erase_lorebooks() -> Any:
    return delete(Lorebook).where(_is_of_book())


@_step
def _erase_castings() -> Any:
    # Whom it played; what it played stays.
    return delete(Casting).where(col(Casting.character_id) == param("character_id"))


@_step
def _erase_petitions() -> Any:
    return (
        update(Petition)
        .where(col(Petition.character_id) == param("character_id"))
        .values(brief_json=_NO_BRIEF, arguments_json={})
    )


@_step
def _erase_exports() -> Any:
    return delete(Export).where(
        or_(
            col(Export.subject_ref) == param("character_id"),
            col(Export.subject_ref) == param("draft_id"),
        )
    )


@_step
def _erase_who_it_was() -> Any:
    return (
        update(Character)
        .where(col(Character.id) == param("character_id"))
        .values(
            name="",
            identity_baseline_json={},
            embryo_draft_id=None,
            status=CharacterStatus.PURGED.value,
            erased_at=func.now(),
            updated_at=func.now(),
            version=col(Character.version) + 1,
        )
    )


@_step
def _erase_draft() -> Any:
    return delete(EmbryoDraft).where(col(EmbryoDraft.id) == param("draft_id"))


@_step
def _erase_imports() -> Any:
    return delete(ImportJob).where(any_of(ImportJob.id, "job_ids"))


@_step
def _erase_kept_answers() -> Any:
    # Of the answers that are kept for repeats only the ids of rows stay.
    pair = func.jsonb_each(col(Idempotency.answer)).table_valued(
        column("key", Text), column("value", JSONB)
    )
    ids_only = (
        select(func.jsonb_object_agg(pair.c.key, pair.c.value))
        .select_from(pair)
        .where(func.jsonb_typeof(pair.c.value) == "string")
        .scalar_subquery()
    )
    return (
        update(Idempotency)
        .where(
            col(Idempotency.actor_user_id) == param("viewer"),
            cast(col(Idempotency.answer), Text).like(func.any(param("patterns", ARRAY(Text)))),
        )
        .values(answer_json=func.coalesce(ids_only, literal({}, JSONB)))
    )


async def _erase_words(writing: Writing, belongings: dict[str, Any]) -> int:
    return await searching.forget_words(writing, belongings["text_hashes"])


async def _nothing_yet(writing: Writing, belongings: dict[str, Any]) -> int:
    """For what this server does not keep yet, so that its place in the order is taken."""
    return 0


# In the order of the specification; the part before the dot is its name there.
STEPS: tuple[tuple[str, Step], ...] = (
    ("authority.tree_nodes", _erase_nodes),
    ("authority.citations", _erase_citations),
    ("authority.mirror_trees", _erase_trees),
    ("authority.run_event_texts", _erase_event_texts),
    ("authority.runs", _erase_runs),
    ("authority.identity_packages", _erase_identity_packages),
    ("authority.form_anchors", _erase_form_anchors),
    ("authority.forms", _erase_forms),
    ("authority.voice_profiles", _erase_voices),
    ("authority.lorebooks", _erase_lorebooks),
    ("authority.castings", _erase_castings),
    ("authority.confirmations", _erase_petitions),
    ("authority.characters", _erase_who_it_was),
    ("authority.embryo_drafts", _erase_draft),
    ("authority.import_jobs", _erase_imports),
    ("vectors", _nothing_yet),
    ("caches.search_texts", _erase_words),
    ("caches.idempotency", _erase_kept_answers),
    ("caches.exports", _erase_exports),
    ("derived_views", _nothing_yet),
    ("proactive_candidates", _nothing_yet),
)
