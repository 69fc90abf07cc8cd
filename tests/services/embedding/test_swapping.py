"""Another model for a story: beside the old one, then instead of it, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from db.engine import Database
from db.enums import EmbeddingBackend, ProviderType
from db.reading import Reading, Writing
from db.tables import Story
from services import app_settings, embedding
from services.access import require_row
from services.embedding import EmbedderFault, Progress, swapping
from services.errors import Conflict, DomainError, Invalid, NotFound
from tests.conftest import People
from tests.services.embedding.worlds import MODEL, Shelf, shelf

NEW = "words"


async def story_of(one: Shelf) -> Story:
    async with one.database.reading() as reading:
        return await require_row(reading, one.viewer, Story, one.branch.story_id)


async def start(one: Shelf, writing: Writing, **changes: Any) -> Story:
    wanted: dict[str, Any] = {
        "backend": EmbeddingBackend.PROVIDER,
        "model_name": NEW,
        "provider_id": one.provider_id,
        **changes,
    }
    return await embedding.start_swap(
        writing, one.viewer, one.embedders, one.branch.story_id, **wanted
    )


async def begin(one: Shelf) -> Story:
    async with one.database.writing() as writing:
        return await start(one, writing)


async def resume(one: Shelf) -> Story:
    return await embedding.continue_swap(
        one.database, one.viewer, one.embedders, one.branch.story_id
    )


async def cancel(one: Shelf) -> Story:
    async with one.database.writing() as writing:
        return await embedding.cancel_swap(writing, one.viewer, one.embedders, one.branch.story_id)


async def models(one: Shelf) -> dict[str, int]:
    """How many rows point at vectors of each model."""
    async with one.database.writing() as writing:
        rows = await writing._connection.fetch(
            "SELECT split_part(model_id, ':', 2) AS model, count(*) FROM embeddings GROUP BY 1"
        )
    return {row["model"]: row["count"] for row in rows}


async def progress(one: Shelf, reading: Reading) -> Progress:
    story_id = one.branch.story_id
    found = await embedding.progress_of(reading, one.viewer, {story_id: f"{one.provider_id}:{NEW}"})
    return found[story_id]


async def test_the_new_model_takes_over_when_it_has_every_row(
    database: Database, people: People
) -> None:
    """Rule Y11."""
    async with shelf(database, people) as one:
        mira = await one.write("Mira")
        await one.write("Odo")
        await one.sync()
        started = await begin(one)
        assert {k: v for k, v in started.settings.items() if k.startswith("embedding_swap")} == {
            "embedding_swap_target": NEW,
            "embedding_swap_backend": "provider",
            "embedding_swap_provider_id": one.provider_id,
            "embedding_swap_source_dim": 26,
        }
        # The old one is used until then.
        assert (await one.embedder()).model_id == one.model_id
        async with database.reading() as reading:
            assert await progress(one, reading) == Progress(rows=2, stale=0, staged=0)
        await one.change(mira["id"], name="Mirabel")
        async with database.reading() as reading:
            assert await progress(one, reading) == Progress(rows=2, stale=1, staged=0)
        done = await resume(one)
        assert done.settings == {
            "embeddingBackend": "provider",
            "embedding_provider_id": one.provider_id,
            "embedding_model_id": NEW,
        }
        assert (await models(one), await one.stale()) == ({NEW: 2}, set())
        assert (await one.embedder()).model_id == f"{one.provider_id}:{NEW}"
        assert await one.sync() == 0


async def test_a_swap_goes_on_where_it_was_cut_off(
    database: Database, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules Y11, Y12."""
    monkeypatch.setattr(swapping, "_STEP", 1)
    async with shelf(database, people) as one:
        for name in ("Ada", "Odo", "Mira"):
            await one.write(name)
        await one.sync()
        await begin(one)
        asked = len(one.asked)
        one.server.embed = lambda text: [0.0] if len(one.asked) == asked + 2 else [1.0, 1.0]
        with pytest.raises(EmbedderFault) as refused:
            await resume(one)
        assert refused.value.details == {"reason": "call", "staleCount": 2}
        assert await models(one) == {MODEL: 3, NEW: 1}
        async with database.reading() as reading:
            assert (await progress(one, reading)).staged == 1
        await resume(one)
        # One that was done, one that failed, and the two that were left.
        assert [len(each) for each in one.asked[asked:]] == [1, 1, 1, 1]
        assert await models(one) == {NEW: 3}


async def test_a_row_without_a_new_vector_keeps_the_old_model(
    database: Database, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule Y11."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.sync()
        await begin(one)
        monkeypatch.setattr(swapping, "_SECONDS", 0.0)
        story = await resume(one)
        assert story.settings["embedding_model_id"] == MODEL
        assert story.settings["embedding_swap_target"] == NEW
        assert await models(one) == {MODEL: 1}


async def test_a_swap_that_is_given_up_leaves_everything_as_it_was(
    database: Database, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule Y12."""
    monkeypatch.setattr(swapping, "_STEP", 1)
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.write("Odo")
        await one.sync()
        before = (await story_of(one)).settings
        await begin(one)
        asked = len(one.asked)
        one.server.embed = lambda text: [1.0] if len(one.asked) == asked + 1 else [0.0]
        with pytest.raises(EmbedderFault):
            await resume(one)
        assert await models(one) == {MODEL: 2, NEW: 1}
        assert (await cancel(one)).settings == before
        assert (await models(one), await one.stale()) == ({MODEL: 2}, set())
        assert await one.sync() == 0


async def test_what_cannot_be_is_refused_and_changes_nothing(
    database: Database, people: People
) -> None:
    """Rules Y11, Y12, Y13."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.sync()
        before = await story_of(one)
        path = ("input", "modelId")
        for changes, code in (
            ({"model_name": MODEL}, "SAME_EMBEDDER"),
            ({"provider_id": "provider_gone"}, "EMBEDDER_MISSING"),
            ({"backend": EmbeddingBackend.LOCAL}, "EMBEDDER_MISSING"),
            ({"model_name": " "}, "TEXT_EMPTY"),
        ):
            async with database.writing() as writing:
                with pytest.raises(Invalid) as refused:
                    await start(one, writing, **changes)
            assert (refused.value.code, refused.value.path) == (code, path)
        for act in (resume, cancel):
            with pytest.raises(Conflict) as conflict:
                await act(one)
            assert (conflict.value.code, conflict.value.path) == ("NO_SWAP", ("input", "storyId"))
        assert await story_of(one) == before
        marked = await begin(one)
        for again in (begin, relabelled):
            with pytest.raises(Conflict) as conflict:
                await again(one)
            assert conflict.value.code == "SWAP_RUNNING"
        # Nobody writes the marks by hand.
        with pytest.raises(Invalid) as refused:
            await one.choose(embedding_swap_target=None)
        assert (refused.value.code, refused.value.path) == (
            "FIELD_READ_ONLY",
            ("input", "settings", "embedding_swap_target"),
        )
        one.viewer = people.stranger
        for hidden in (begin, resume, cancel, relabelled):
            with pytest.raises(NotFound):
                await hidden(one)
        one.viewer = people.owner
        assert await story_of(one) == marked


async def test_a_provider_that_is_to_take_over_is_not_deleted(
    database: Database, people: People
) -> None:
    """Rule Y12."""
    async with shelf(database, people) as one:
        other = await another_provider(one)
        async with database.writing() as writing:
            await start(one, writing, provider_id=other)
        async with database.writing() as writing:
            with pytest.raises(DomainError) as refused:
                await app_settings.delete_provider(writing, one.viewer, other, None)
        assert refused.value.code == "PROVIDER_IN_USE"
        await cancel(one)
        async with database.writing() as writing:
            await app_settings.delete_provider(writing, one.viewer, other, None)


async def another_provider(one: Shelf) -> str:
    async with one.database.writing() as writing:
        _, provider_id = await app_settings.create_provider(
            writing,
            one.viewer,
            type=ProviderType.OPENAI_COMPATIBLE,
            display_name="Another",
            api_key=None,
            endpoint=one.server.openai_base_url,
            favorite_model_ids=[],
            custom_model_ids=[],
            expected_version=None,
        )
    return provider_id


async def relabelled(one: Shelf) -> Story:
    async with one.database.writing() as writing:
        return await embedding.relabel(
            writing,
            one.viewer,
            one.embedders,
            one.branch.story_id,
            model_name=NEW,
            provider_id=one.provider_id,
        )


async def test_vectors_count_as_those_of_another_name_for_the_same_model(
    database: Database, people: People
) -> None:
    """Rule Y13."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.write("Odo")
        await one.sync()
        pointers = await one.pointers()
        story = await relabelled(one)
        assert story.settings["embedding_model_id"] == NEW
        assert (await models(one), await one.pointers()) == ({NEW: 2}, pointers)
        assert (await one.sync(), len(one.asked)) == (0, 1)


async def test_another_model_in_the_settings_embeds_everything_at_the_next_sync(
    database: Database, people: People
) -> None:
    """Rule Y4."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.sync()
        await one.choose(embedding_model_id=NEW)
        assert (await one.stale(), await one.sync()) == (set(), 1)
        assert await models(one) == {MODEL: 1, NEW: 1}


async def test_a_missing_embedder_is_told_when_a_swap_goes_on(
    database: Database, people: People
) -> None:
    """Rule Y9."""
    async with shelf(database, people) as one:
        await begin(one)
        await one.value("UPDATE app_settings SET providers = '[]'")
        with pytest.raises(EmbedderFault) as refused:
            await resume(one)
        assert refused.value.details == {"reason": "init"}
        # It can be given up all the same.
        assert "embedding_swap_target" not in (await cancel(one)).settings
