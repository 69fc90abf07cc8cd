"""Law 5: visibility is built in one place and sits inside the service's query; every service
function takes the viewer.
"""

from __future__ import annotations

import ast
import importlib
from typing import Any

import pytest
from sqlalchemy import ColumnElement
from sqlalchemy.dialects import postgresql

from db.paging import PagedList
from db.reading import record_class
from db.tables import Table, User
from services.access import ANONYMOUS, visible
from tests.architecture.declared import table_classes, types
from tests.architecture.sources import Source, imports, method_calls, snippet, sources
from tests.architecture.world import World

# Service functions that reach the database for nobody in particular, and why they may. Resolvers
# may call none of them: an operation always has a viewer.
WITHOUT_VIEWER = {
    # How a viewer becomes known at all.
    "services.accounts.find_sign_in",
    # The operator's command line, and signing in at start in local mode.
    "services.accounts.ensure_user",
    "services.accounts.grant_role",
    "services.accounts.issue_token",
    "services.accounts.revoke_tokens",
    # Is the server new? Asked once at start, before anybody is served.
    "services.demo.is_empty",
    # Carries a topic, never a row.
    "services.hub.announce",
    # The operator's figures: numbers, no rows.
    "services.runs.records.count_by_status",
    # Work on a tree that their caller holds, who has checked the viewer.
    "services.mirrors.growing.add_version",
    "services.mirrors.growing.move_working_entry",
    # Where a branch stands that their caller holds, who has checked the viewer.
    "services.scenes.narrative_tail",
    "services.scenes.ends_of",
    "services.scenes.head_turn",
    "services.scenes.tail_scene",
    # Deletes branches that its caller holds, who has checked the viewer.
    "services.stories.changing.drop_branches",
    # Write rows of a world that their caller holds, who has checked the viewer.
    "services.worlds.entities.write_aliases",
    "services.worlds.relations.replace_relations",
    # Writes settings that its caller holds, who has checked the viewer.
    "services.app_settings.holding.write_settings",
    # Whether anything at all shows files whose links their caller has changed.
    "services.assets.settling.settle_references",
    # Logs what its caller has done, in the same transaction.
    "services.mirrors.changes.note_change",
    # The worker acts for a run, whose asker was checked when it was queued.
    "services.runs.records.take_next_run",
    "services.runs.records.store_events",
    "services.runs.records.end_run",
    "services.runs.records.close_run",
    "services.runs.records.renew_leases",
    "services.runs.records.is_cancel_requested",
    # What an identity record says of a character that its caller holds.
    "services.characters.sections.sections_of",
    # By the clock, for everybody.
    "services.exports.forget_old_exports",
    "services.characters.identity.issue_missing_records",
    "services.petitions.expire_petitions",
    # By the clock, for everybody; and with all else of a character, by who may erase it.
    "services.runs.forgetting.forget_old_texts",
    "services.runs.forgetting.forget_texts_of_character",
    "services.runs.recovering.recover_lost_run",
    "services.runs.recovering.expire_all_leases",
    # Ends runs that their caller holds, who has checked the viewer.
    "services.runs.recovering.end_abandoned",
    "services.runs.fencing.end_fenced",
    # The clock's acts, not anybody's.
    "services.endings.archive_deceased",
}
# The parts of searching look into branches and stories that were found for the viewer; vectors
# and words are those of a text, whoever has it.
SEARCHING = {
    "services.embedding.nearest.nearest_rows",
    "services.embedding.nearest.vectors_of_rows",
    "services.embedding.remembered.matrix_of",
    "services.embedding.storing.copy_vectors",
    "services.embedding.storing.has_vectors",
    "services.embedding.storing.keep_vectors",
    "services.embedding.storing.kept_hashes",
    "services.embedding.syncing.embed_texts",
    "services.searching.texts.forget_words",
    "services.searching.texts.keep_words",
    "services.searching.texts.matches_in",
    "services.searching.texts.note_deletion",
}
# The parts of the log work on a branch that their caller holds, or reads after it was found for the
# viewer.
INNER = {
    "services.deltas.applying.apply_reversal",
    "services.deltas.applying.apply_rows",
    "services.deltas.applying.clamp_watermark",
    "services.deltas.applying.mark_stale",
    "services.deltas.applying.patch_log",
    "services.deltas.applying.prune",
    "services.deltas.applying.settle_head",
    "services.deltas.applying.take_notices",
    "services.deltas.closing.close",
    "services.deltas.closing.close_over",
    "services.deltas.closing.keep_ties",
    "services.deltas.embedding.embedded_hashes",
    "services.deltas.embedding.branches_to_embed",
    "services.deltas.embedding.forget_models",
    "services.deltas.embedding.mark_fresh",
    "services.deltas.embedding.note_embedded",
    "services.deltas.embedding.rename_model",
    "services.deltas.embedding.texts_to_embed",
    "services.deltas.embedding.vector_state",
    "services.deltas.embedding.forget_embeddings",
    "services.deltas.events.note_event",
    "services.deltas.looking_back.images_before",
    "services.deltas.reversing.compute",
    "services.deltas.reversing.drop_loose_ends",
    "services.deltas.rows.all_images",
    "services.deltas.rows.change_images",
    "services.deltas.rows.ids_naming",
    "services.deltas.rows.images_by_ids",
    "services.deltas.rows.images_naming",
    "services.deltas.rows.put_images",
    "services.deltas.rows.take_rows",
    "services.deltas.selecting.cut_behind",
    "services.deltas.selecting.deletes_of",
    "services.deltas.selecting.deltas_behind",
    "services.deltas.selecting.deltas_of_action",
    "services.deltas.selecting.deltas_of_actions",
    "services.deltas.selecting.deltas_of_rows",
    "services.deltas.selecting.edits_of_rows",
    "services.deltas.selecting.facts_about",
    "services.deltas.selecting.logged_behind",
    "services.deltas.selecting.made_behind",
    "services.deltas.selecting.newest_undoable",
    "services.deltas.undoing.newest_step",
    "services.deltas.unlogged.drop_branches",
    "services.deltas.unlogged.plant_rows",
    "services.deltas.unlogged.uproot_rows",
    "services.deltas.writing.forget_redo",
    "services.past.images_at",
}
WITHOUT_VIEWER |= INNER | SEARCHING
HANDLES = {"Reading", "Writing", "Database"}
OWNERS = {"custodian_user_id", "owner_user_id"}


def functions_without_viewer(source: Source) -> list[str]:
    """Public async functions that get a handle of the database and no viewer."""
    found = []
    for node in source.tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_"):
            given = {
                each.arg: ast.unparse(each.annotation)
                for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                if each.annotation is not None
            }
            if HANDLES & set(given.values()) and given.get("viewer") != "Viewer":
                found.append(f"{source.name}.{node.name}")
    return found


def own_comparisons(source: Source) -> list[str]:
    """Conditions on who owns something."""
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Compare):
            operands: list[ast.expr] = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_condition = node.func.attr in {"in_", "not_in", "is_", "is_not", "filter_by"}
            keywords = [ast.Name(each.arg or "") for each in node.keywords]
            operands = [node.func.value, *node.args, *keywords] if is_condition else []
        else:
            continue
        # Only what a comparison is made of: `col(Table.owner)`, not a whole query that is compared.
        named = {_column(operand) for operand in operands} & OWNERS
        found += [source.at(node, f"compares {name}") for name in sorted(named)]
    return found


def _column(operand: ast.expr) -> str:
    if isinstance(operand, ast.Call) and operand.args:
        operand = operand.args[0]
    if isinstance(operand, ast.Attribute):
        return operand.attr
    return operand.id if isinstance(operand, ast.Name) else ""


def calls_without_viewer(source: Source) -> list[str]:
    """Calls and imports of service functions that ask for no viewer."""
    names = {each.rpartition(".")[2] for each in WITHOUT_VIEWER}
    found = [source.at(call, f"calls {name}") for call, name in method_calls(source)]
    found = [each for each in found if each.rpartition(" ")[2] in names]
    return found + [
        source.at(each.node, f"imports {each.name}")
        for each in imports(source)
        if each.name in names and each.top == "services"
    ]


def typed_tables() -> list[type[Table]]:
    """Tables whose rows the API shows: a type or an interface has the table class's name."""
    return [table for name, table in table_classes().items() if name in types()]


def paged_lists() -> list[tuple[str, PagedList[Any]]]:
    """Every list that a service offers page by page."""
    return [
        (f"{source.name}.{name}", value)
        for source in sources("services")
        for name, value in vars(importlib.import_module(source.name)).items()
        if isinstance(value, PagedList)
    ]


def text_of(condition: ColumnElement[bool]) -> str:
    return str(condition.compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]


def is_bounded_by_rule(listing: PagedList[Any]) -> bool:
    """Whether the rule of the table is part of the list's condition."""
    return text_of(visible(listing.table)) in text_of(listing._where())


def test_every_table_that_is_shown_has_a_rule() -> None:
    assert typed_tables()
    for table in typed_tables():
        assert "viewer" in text_of(visible(table)), table.__name__


def test_a_table_without_a_rule_is_noticed() -> None:
    with pytest.raises(KeyError):
        visible(type("Unruled", (), {}))  # type: ignore[arg-type]


@pytest.mark.parametrize("table", typed_tables(), ids=lambda table: str(table.__name__))
async def test_strangers_and_nobody_see_nothing_of_the_owner(
    world: World, table: type[Table]
) -> None:
    own = await world.rows(table, world.owner)
    assert own, f"let tests/architecture/world.py make rows of {table.__name__}"
    strangers = await world.rows(table, world.stranger)
    assert [row for row in strangers if row in own] == []
    assert [row for row in strangers if not isinstance(row, record_class(User))] == []
    assert await world.rows(table, ANONYMOUS) == []


def test_the_rule_is_part_of_every_list() -> None:
    assert paged_lists()
    assert [name for name, listing in paged_lists() if not is_bounded_by_rule(listing)] == []


def test_a_list_without_the_rule_is_noticed() -> None:
    (_, listing), *_ = paged_lists()
    assert is_bounded_by_rule(PagedList("sample", listing.table, sort=listing.sort)) is False


def test_every_service_function_takes_the_viewer() -> None:
    found = {name for source in sources("services") for name in functions_without_viewer(source)}
    assert found == WITHOUT_VIEWER


def test_a_function_without_viewer_is_noticed() -> None:
    text = (
        "async def list_runs(reading: Reading, request: PageRequest): ...\n"
        "async def end(*, writing: Writing, viewer: str): ...\n"
        "async def find(reading: Reading, viewer: Viewer): ...\n"
        "async def _inner(reading: Reading): ...\n"
        "async def follow(database: Database):\n    yield 1\n"
    )
    assert functions_without_viewer(snippet(text)) == [
        "services.sample.list_runs",
        "services.sample.end",
        "services.sample.follow",
    ]


def test_resolvers_call_nothing_that_asks_for_no_viewer() -> None:
    assert [each for source in sources("resolvers") for each in calls_without_viewer(source)] == []


def test_a_resolver_that_goes_around_the_viewer_is_noticed() -> None:
    text = (
        "from services.mirrors import move_working_entry\n"
        "async def move(context):\n    await service.move_working_entry(context, 1)\n"
    )
    assert calls_without_viewer(snippet(text, "resolvers.sample")) == [
        "resolvers.sample:3: calls move_working_entry",
        "resolvers.sample:1: imports move_working_entry",
    ]


def test_owners_are_compared_in_one_place() -> None:
    found = {
        source.name
        for source in sources("schema", "resolvers", "services")
        if own_comparisons(source)
    }
    assert found == {"services.access"}


def test_a_comparison_elsewhere_is_noticed() -> None:
    text = (
        "select(Character).where(col(Character.custodian_user_id) == param('viewer'))\n"
        "mine = viewer.user_id != draft.owner_user_id\n"
        "query.where(Character.custodian_user_id.in_(ids))\n"
        "users = [each.custodian_user_id for each in characters]\n"
        "writing.insert(Character, custodian_user_id=viewer.signed_in_id)\n"
    )
    assert sorted(own_comparisons(snippet(text))) == [
        "services.sample:1: compares custodian_user_id",
        "services.sample:2: compares owner_user_id",
        "services.sample:3: compares custodian_user_id",
    ]
