"""Who may see what: the one place that builds visibility.

`visible(table)` is a condition inside the query, so a hidden row is absent: it cannot be counted,
paged over or told apart from a row that does not exist.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from sqlalchemy import Boolean, ColumnElement, Text, exists, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.enums import RoleName, Visibility
from db.ids import MalformedId, parse_id
from db.reading import (
    Reading,
    Statement,
    Writing,
    any_of,
    columns,
    compile_statement,
    param,
    record_class,
)
from db.tables import (
    AppSettings,
    Asset,
    AuditEvent,
    Branch,
    BranchEvent,
    BranchRow,
    Calendar,
    Canonization,
    Casting,
    Chapter,
    Character,
    CharacterRelationship,
    Citation,
    Custodianship,
    Delta,
    EmbryoDraft,
    EntryAsset,
    EraFlip,
    Export,
    Form,
    FormAnchor,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    IdentityRecord,
    IdentityRecordVersion,
    ImportItem,
    ImportJob,
    Lore,
    Lorebook,
    LorebookEntry,
    MirrorTree,
    Petition,
    ProbeCapture,
    Run,
    RunEvent,
    RuntimeSeat,
    Story,
    StoryEntity,
    StoryEntry,
    Table,
    Thread,
    Translation,
    TreeEvent,
    TreeNode,
    TreeTransplant,
    User,
    VoiceProfile,
    World,
    WorldEntity,
    WorldMerge,
    WorldRelation,
)
from services.errors import Conflict, Forbidden, NotFound

TableRow = TypeVar("TableRow", bound=Table)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whoever asks; nobody in particular when `user_id` is None."""

    user_id: str | None
    roles: frozenset[RoleName] = field(default_factory=frozenset)

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the parameters that `visible` puts into statements."""
        return {"viewer": self.user_id, "sees_all_acts": RoleName.AUDITOR in self.roles}

    @property
    def signed_in_id(self) -> str:
        """The user's id; raises Forbidden with NOT_SIGNED_IN."""
        if self.user_id is None:
            raise Forbidden("Sign in first: send a bearer token.", "NOT_SIGNED_IN")
        return self.user_id


ANONYMOUS = Viewer(None)


def _viewer() -> ColumnElement[str]:
    return param("viewer")


def _of_character(character_id: Any) -> ColumnElement[bool]:
    owned = col(Character.custodian_user_id) == _viewer()
    return exists(select(1).where(col(Character.id) == character_id, owned))


def _of_tree(tree_id: Any) -> ColumnElement[bool]:
    return exists(
        select(1).where(col(MirrorTree.id) == tree_id, _of_character(col(MirrorTree.character_id)))
    )


def _of_node(node_id: Any) -> ColumnElement[bool]:
    return exists(select(1).where(col(TreeNode.id) == node_id, _of_tree(col(TreeNode.tree_id))))


def _of_record(record_id: Any) -> ColumnElement[bool]:
    return exists(
        select(1).where(
            col(IdentityRecord.id) == record_id, _of_character(col(IdentityRecord.character_id))
        )
    )


def _of_job(job_id: Any) -> ColumnElement[bool]:
    owned = col(ImportJob.owner_user_id) == _viewer()
    return exists(select(1).where(col(ImportJob.id) == job_id, owned))


def _of_lorebook(lorebook_id: Any) -> ColumnElement[bool]:
    owned = col(Lorebook.owner_user_id) == _viewer()
    return exists(select(1).where(col(Lorebook.id) == lorebook_id, owned))


def _of_subject() -> ColumnElement[bool]:
    """A run belongs to whom its character belongs, or its branch."""
    return or_(_of_character(col(Run.character_id)), _of_branch(col(Run.branch_id)))


def _of_run(run_id: Any) -> ColumnElement[bool]:
    return exists(select(1).where(col(Run.id) == run_id, _of_subject()))


def _of_branch(branch_id: Any) -> ColumnElement[bool]:
    owned = col(Story.owner_user_id) == _viewer()
    return exists(
        select(1).where(col(Branch.id) == branch_id, col(Story.id) == col(Branch.story_id), owned)
    )


def _of_story(story_id: Any) -> ColumnElement[bool]:
    owned = col(Story.owner_user_id) == _viewer()
    return exists(select(1).where(col(Story.id) == story_id, owned))


def _of_world(world_id: Any) -> ColumnElement[bool]:
    owned = col(World.owner_user_id) == _viewer()
    return exists(select(1).where(col(World.id) == world_id, owned))


# A private thing belongs to the user who governs its character; roles do not open it
# (spec soul-mirror, section 7: administrators do not see private originals).
_RULES: dict[type[Table], Callable[[], ColumnElement[bool]]] = {
    User: lambda: col(User.id) == _viewer(),
    AuditEvent: lambda: or_(
        col(AuditEvent.actor_user_id) == _viewer(), param("sees_all_acts", Boolean())
    ),
    EmbryoDraft: lambda: col(EmbryoDraft.owner_user_id) == _viewer(),
    Character: lambda: col(Character.custodian_user_id) == _viewer(),
    Custodianship: lambda: _of_character(col(Custodianship.character_id)),
    RuntimeSeat: lambda: _of_character(col(RuntimeSeat.character_id)),
    IdentityRecord: lambda: _of_character(col(IdentityRecord.character_id)),
    IdentityRecordVersion: lambda: _of_record(col(IdentityRecordVersion.identity_record_id)),
    FormAnchor: lambda: _of_character(col(FormAnchor.character_id)),
    Form: lambda: _of_character(col(Form.character_id)),
    VoiceProfile: lambda: _of_character(col(VoiceProfile.character_id)),
    Petition: lambda: _of_character(col(Petition.character_id)),
    Lorebook: lambda: col(Lorebook.owner_user_id) == _viewer(),
    LorebookEntry: lambda: _of_lorebook(col(LorebookEntry.lorebook_id)),
    Calendar: lambda: col(Calendar.owner_user_id) == _viewer(),
    AppSettings: lambda: col(AppSettings.id) == _viewer(),
    Asset: lambda: col(Asset.owner_user_id) == _viewer(),
    Story: lambda: col(Story.owner_user_id) == _viewer(),
    Branch: lambda: _of_story(col(Branch.story_id)),
    BranchEvent: lambda: _of_branch(col(BranchEvent.branch_id)),
    StoryEntry: lambda: _of_branch(col(StoryEntry.branch_id)),
    Chapter: lambda: _of_branch(col(Chapter.branch_id)),
    EraFlip: lambda: _of_branch(col(EraFlip.branch_id)),
    Delta: lambda: _of_branch(col(Delta.branch_id)),
    StoryEntity: lambda: _of_branch(col(StoryEntity.branch_id)),
    CharacterRelationship: lambda: _of_branch(col(CharacterRelationship.branch_id)),
    Lore: lambda: _of_branch(col(Lore.branch_id)),
    Thread: lambda: _of_branch(col(Thread.branch_id)),
    Happening: lambda: _of_branch(col(Happening.branch_id)),
    HappeningInvolvement: lambda: _of_branch(col(HappeningInvolvement.branch_id)),
    HappeningAwareness: lambda: _of_branch(col(HappeningAwareness.branch_id)),
    Translation: lambda: _of_branch(col(Translation.branch_id)),
    ProbeCapture: lambda: _of_branch(col(ProbeCapture.branch_id)),
    EntryAsset: lambda: _of_branch(col(EntryAsset.branch_id)),
    ImportJob: lambda: col(ImportJob.owner_user_id) == _viewer(),
    ImportItem: lambda: _of_job(col(ImportItem.import_job_id)),
    Export: lambda: (
        (col(Export.owner_user_id) == _viewer()) & (col(Export.expires_at) > func.clock_timestamp())
    ),
    MirrorTree: lambda: _of_character(col(MirrorTree.character_id)),
    TreeNode: lambda: _of_tree(col(TreeNode.tree_id)),
    TreeEvent: lambda: _of_tree(col(TreeEvent.tree_id)),
    TreeTransplant: lambda: _of_tree(col(TreeTransplant.new_tree_id)),
    Citation: lambda: _of_node(col(Citation.node_id)),
    Canonization: lambda: _of_tree(col(Canonization.tree_id)),
    World: lambda: col(World.owner_user_id) == _viewer(),
    WorldEntity: lambda: _of_world(col(WorldEntity.world_id)),
    WorldRelation: lambda: _of_world(col(WorldRelation.world_id)),
    WorldMerge: lambda: _of_world(col(WorldMerge.world_id)),
    Casting: lambda: _of_story(col(Casting.story_id)),
    Run: _of_subject,
    RunEvent: lambda: (
        _of_run(col(RunEvent.run_id)) & (col(RunEvent.visibility) != Visibility.INTERNAL.value)
    ),
}

_TABLES = {
    str(table.__tablename__): table
    for table in _RULES
    if "id" in table.model_fields or issubclass(table, BranchRow)
}


def visible(table: type[Table]) -> ColumnElement[bool]:
    """Rows of `table` that the viewer may see; the statement needs `Viewer.parameters`."""
    return _RULES[table]()


def among_own_runs() -> ColumnElement[bool]:
    """What `visible(Run)` says, so that all runs of a viewer are found by the indexes on what they
    are about: for lists of all of them, beside that rule, which alone would look at everybody's.
    """
    characters = select(col(Character.id)).where(visible(Character))
    branches = select(col(Branch.id)).where(visible(Branch))
    return or_(
        col(Run.character_id) == func.any(func.array(characters.scalar_subquery())),
        col(Run.branch_id) == func.any(func.array(branches.scalar_subquery())),
    )


def table_named(name: str) -> type[Table] | None:
    """The table whose rows have ids and a rule of visibility, by its name in the database."""
    return _TABLES.get(name)


@functools.cache
def _rows_by_ids(table: Any) -> Statement[Any]:
    wanted = select(*columns(table)).where(any_of(table.id, "ids"), visible(table))
    return compile_statement(wanted, record_class(table))


@functools.cache
def _branch_rows_by_ids(table: Any) -> Statement[Any]:
    wanted = (
        func.unnest(param("branch_ids", ARRAY(Text)), param("row_ids", ARRAY(Text)))
        .table_valued("branch_id", "id", name="wanted")
        .render_derived()
    )
    rows = (
        select(*columns(table))
        .select_from(wanted)
        .join(
            table,
            (col(table.branch_id) == wanted.c.branch_id) & (col(table.row_id) == wanted.c.id),
        )
        .where(visible(table))
    )
    return compile_statement(rows, record_class(table))


@functools.cache
def _row_held(table: Any) -> Statement[Any]:
    wanted = select(*columns(table)).where(col(table.id) == param("id"), visible(table))
    # Their keys never change: a fork that refers to a branch and its story need not wait for their
    # writers, nor they for it.
    held = wanted.with_for_update(key_share=table in (Branch, Story))
    return compile_statement(held, record_class(table))


async def rows_by_ids(
    reading: Reading, viewer: Viewer, table: type[TableRow], ids: Sequence[str]
) -> list[TableRow | None]:
    """The visible rows with these ids, in the order asked for, None where there is none. Rows of
    branches are named by both halves of their keys.
    """
    rows: list[Any]
    if issubclass(table, BranchRow):
        pairs = [each.partition(":") for each in dict.fromkeys(ids)]
        rows = await reading.all(
            _branch_rows_by_ids(table),
            branch_ids=[branch_id for branch_id, _, _ in pairs],
            row_ids=[row_id for _, _, row_id in pairs],
            **viewer.parameters,
        )
    else:
        rows = await reading.all(_rows_by_ids(table), ids=list(ids), **viewer.parameters)
    found = {row.id: row for row in rows}
    return [found.get(each) for each in ids]


def checked_id(text: str, table: type[Table]) -> str | None:
    """The id if it is well formed and leads into `table`, else None."""
    try:
        parsed = parse_id(text)
    except MalformedId:
        return None
    return parsed.id if parsed.table == table.__tablename__ else None


async def find_row(
    reading: Reading, viewer: Viewer, table: type[TableRow], id: str
) -> TableRow | None:
    """One visible row by an id as clients send it, or None: also for an id of another kind."""
    row_id = checked_id(id, table)
    if row_id is None:
        return None
    (row,) = await rows_by_ids(reading, viewer, table, [row_id])
    return row


async def require_row(
    reading: Reading, viewer: Viewer, table: type[TableRow], id: str, *path: str | int
) -> TableRow:
    """Like find_row, but raises NotFound with the path of the input field."""
    row = await find_row(reading, viewer, table, id)
    if row is None:
        raise NotFound(f"There is no such {table.__name__} for you.", path=path)
    return row


def row_id_in(branch_id: str, table: type[BranchRow], text: str, *path: str | int) -> str:
    """A row's own id, from an id as clients send it beside a branch: bare, or with that branch's
    before it. Raises NotFound for an id of another kind or branch; whether there is such a row is
    for the caller to see.
    """
    named = checked_id(text if ":" in text else f"{branch_id}:{text}", table)
    if named is None or not named.startswith(f"{branch_id}:"):
        raise NotFound(f"There is no such {table.__name__} in this branch.", path=path)
    return named.partition(":")[2]


async def hold_row(
    writing: Writing, viewer: Viewer, table: type[TableRow], id: str, *path: str | int
) -> TableRow:
    """Like require_row, but holds the row against other writers until the transaction ends."""
    row_id = checked_id(id, table)
    row = row_id and await writing.first(_row_held(table), id=row_id, **viewer.parameters)
    if not row:
        raise NotFound(f"There is no such {table.__name__} for you.", path=path)
    return cast("TableRow", row)


def require_version(row: Any, expected: int | None, *path: str | int) -> None:
    """Raises Conflict, with the present version in its message, when the row has another version
    than the caller has seen; None asks for nothing. Hold the row first.
    """
    if expected is not None and row.version != expected:
        raise Conflict(
            f"This was changed meanwhile: it has version {row.version}, not {expected}. "
            "Read it again.",
            path=path,
        )
