"""What is embedded of a branch follows its texts, whatever happens to them."""

from __future__ import annotations

import asyncio

import pytest

from db.engine import Database
from db.enums import SearchKind
from services import deltas, embedding
from services.embedding import EmbedderFault, storing
from tests.conftest import People
from tests.scripted_provider import Script
from tests.services.embedding.worlds import shelf


async def test_only_what_changed_is_embedded_and_once_for_each_text(
    database: Database, people: People
) -> None:
    """Rules Y1, Y2, Y4."""
    async with shelf(database, people) as one:
        mira = await one.write("Mira", "The smith.")
        await one.write("Odo")
        twin = await one.write("Mira", "The smith.")
        assert await one.stale() == {"Mira", "Odo"}
        assert await one.sync() == 3
        # Its text is name, blank, description, also where there is none.
        assert [sorted(each) for each in one.asked] == [["Mira The smith.", "Odo "]]
        assert one.server.requests[0].headers["authorization"] == "Bearer sk-of-letters"
        assert (await one.stale(), await one.vectors()) == (set(), 2)
        pointers = await one.pointers()
        assert pointers[mira["id"]] == pointers[twin["id"]]
        assert (await one.sync(), len(one.asked)) == (0, 1)
        # Columns that are not embedded change nothing.
        await one.change(mira["id"], tags=["smith"], priority=7)
        assert (await one.stale(), await one.sync(), len(one.asked)) == (set(), 0, 1)


async def test_flags_follow_edits_undo_and_deletion(database: Database, people: People) -> None:
    """Rules Y2, Y4."""
    async with shelf(database, people) as one:
        mira = await one.write("Mira")
        await one.sync()
        await one.change(mira["id"], name="Mirabel")
        assert await one.stale() == {"Mirabel"}
        await one.change(mira["id"], name="Mira")
        assert await one.stale() == set()
        await one.change(mira["id"], name="Mirabel")
        await one.undo()
        assert (await one.stale(), len(one.asked)) == (set(), 1)
        await one.delete(mira["id"])
        assert await one.pointers() == {}
        await one.undo()
        assert await one.stale() == {"Mira"}
        # Its vector is still there: nothing is asked for.
        assert (await one.sync(), await one.stale(), len(one.asked)) == (1, set(), 1)


async def test_a_fork_points_at_the_vectors_of_its_parent(
    database: Database, people: People
) -> None:
    """Rule Y5."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.write("Odo")
        await one.sync()
        entry_id = await one.value(
            "SELECT id FROM story_entries WHERE branch_id = $1", one.branch.id
        )
        # What was made since the opening is no part of a fork there; so plant two first.
        async with database.writing(sees_one_state=True) as writing:
            await writing._connection.execute("DELETE FROM deltas")
            fork = await deltas.fork_branch(
                writing, one.viewer, one.branch.id, f"{one.branch.id}:{entry_id}", "Other"
            )
        fork_id = fork.branch.id
        assert await one.pointers(fork_id) == await one.pointers()
        assert (await one.sync(fork_id), len(one.asked), await one.vectors()) == (0, 1, 2)


async def test_an_edit_during_the_embedding_is_not_taken_for_embedded(
    database: Database, people: People
) -> None:
    """Rule Y3."""
    async with shelf(database, people) as one:
        mira = await one.write("Mira")
        await one.write("Odo")
        one.server.script = Script(fault="hang")
        running = asyncio.create_task(one.sync())
        await one.server.received(1)
        await one.change(mira["id"], name="Mirabel")
        one.server.script = Script()
        one.server.resume()
        # Odo first, then Mira, whose new text was embedded in a second round.
        assert await running == 2
        assert [sorted(each) for each in one.asked] == [["Mira ", "Odo "], ["Mirabel "]]
        assert await one.stale() == set()


async def test_a_failure_leaves_all_rows_as_they_were(database: Database, people: People) -> None:
    """Rules Y3, Y9."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.write("Odo")
        one.server.script = Script(fault="status", status=500)
        with pytest.raises(EmbedderFault) as refused:
            await one.sync()
        assert (refused.value.code, refused.value.is_retryable) == ("EMBEDDER_FAILED", True)
        assert refused.value.details == {"reason": "call", "staleCount": 2}
        # Once more, and no oftener.
        assert len(one.asked) == 2
        assert (await one.stale(), await one.pointers()) == ({"Mira", "Odo"}, {})
        one.server.script = Script(fault="status", status=401)
        with pytest.raises(EmbedderFault):
            await one.sync()
        assert len(one.asked) == 3
        one.server.script = Script()
        assert (await one.sync(), await one.stale()) == (2, set())


async def test_what_was_embedded_before_a_failure_is_not_embedded_again(
    database: Database, people: People
) -> None:
    """Rule Y3."""
    async with shelf(database, people) as one:
        for number in range(70):
            await one.write(f"Guard {number}")
        broken = [0.0]
        one.server.embed = lambda text: broken if len(one.asked) > 1 else [1.0, 2.0]
        with pytest.raises(EmbedderFault):
            await one.sync()
        assert (len(await one.stale()), await one.vectors()) == (70, 64)
        one.server.embed = lambda text: [2.0, 1.0]
        assert await one.sync() == 70
        assert [len(each) for each in one.asked] == [64, 6, 6]
        assert await one.vectors() == 70


async def test_vectors_that_no_row_has_are_swept(database: Database, people: People) -> None:
    """Rule Y6."""
    async with shelf(database, people) as one:
        mira = await one.write("Mira")
        await one.write("Odo")
        await one.sync()
        await one.change(mira["id"], name="Mirabel")
        await one.sync()
        sweeper = storing.VectorSweeper()
        async with database.writing() as writing:
            assert [await sweeper.sweep(writing) for _ in range(2)] == [1, 0]
        assert await one.vectors() == 2
        # What is gone all the same is embedded again when the branch next changes.
        await one.value("DELETE FROM vectors")
        await one.change(mira["id"], name="Mira")
        assert (await one.sync(), await one.vectors()) == (2, 2)


async def test_the_nearest_rows_are_those_of_an_exact_scan(
    database: Database, people: People
) -> None:
    """Rules Y7, Y8."""
    async with shelf(database, people) as one:
        names = ["anna", "annab", "bbbb", "zzz", "annabb"]
        rows = {name: (await one.write(name))["id"] for name in names}
        await one.sync()
        embedder = await one.embedder()
        (question,) = await embedder.embed(["annab "], is_query=True)

        async def nearest(limit: int = 10, *, exclude_stale: bool = True) -> list[str]:
            async with database.reading() as reading:
                found = await embedding.nearest_rows(
                    reading,
                    one.branch.id,
                    embedder.model_id,
                    26,
                    question,
                    list(embedding.KINDS),
                    limit,
                    exclude_stale=exclude_stale,
                )
            assert [each.similarity for each in found] == sorted(
                (each.similarity for each in found), reverse=True
            )
            assert {each.kind for each in found} == {SearchKind.ENTITY}
            by_id = {row_id: name for name, row_id in rows.items()}
            return [by_id[each.row_id] for each in found]

        assert await nearest() == ["annab", "annabb", "anna", "bbbb", "zzz"]
        assert await nearest(2) == ["annab", "annabb"]
        await one.change(rows["annabb"], name="annabbq")
        assert await nearest(2) == ["annab", "anna"]
        assert await nearest(2, exclude_stale=False) == ["annab", "annabb"]
        async with database.reading() as reading:
            near, none = await embedding.neighbours_of_rows(
                reading,
                one.viewer,
                [
                    (one.branch.id, rows["annab"], embedder.model_id),
                    (one.branch.id, "char_gone", embedder.model_id),
                ],
                2,
            )
            vectors = await embedding.vectors_of_rows(
                reading, one.branch.id, embedder.model_id, 26, [rows["annab"], "char_gone"]
            )
        assert [each.row_id for each in near] == [rows["anna"], rows["bbbb"]]
        assert none == []
        assert vectors == {rows["annab"]: pytest.approx(question, abs=1e-6)}
