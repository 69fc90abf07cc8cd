"""Who embeds a story, what is asked of them, and what is refused of what they give."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import EmbedderFailure, EmbeddingBackend
from services import embedding
from services.embedding import EmbedderFault, Embedders, vectors
from services.embedding.local import LOCAL_DIM, LOCAL_MODEL, is_installed
from tests.conftest import People
from tests.factories import make_branch
from tests.services.embedding.worlds import MODEL, Shelf, shelf


async def failure(one: Shelf, **changed: Any) -> EmbedderFailure | None:
    await one.choose(**changed)
    async with one.database.reading() as reading:
        found = await one.embedders.choices_of(reading, one.viewer, [one.branch.id])
    return found[one.branch.id].failure


async def test_a_story_that_nobody_embeds_says_why(database: Database, people: People) -> None:
    """Rule Y9."""
    async with shelf(database, people) as one:
        assert await failure(one) is None
        gone = {"embedding_provider_id": "provider_gone"}
        assert await failure(one, **gone) is EmbedderFailure.PROVIDER_MISSING
        back = {"embedding_provider_id": one.provider_id, "embedding_model_id": None}
        assert await failure(one, **back) is EmbedderFailure.MODEL_MISSING
        anthropic = "{0,type}"
        await one.value(
            "UPDATE app_settings SET providers = "
            f"jsonb_set(providers, '{anthropic}', '\"anthropic\"')"
        )
        unfit = {"embedding_model_id": MODEL}
        assert await failure(one, **unfit) is EmbedderFailure.PROVIDER_UNFIT
        local = {"embeddingBackend": "local"}
        assert await failure(one, **local) is EmbedderFailure.NOT_INSTALLED
        one.embedders = Embedders("local")
        # That of the provider is none of the server's.
        assert await failure(one) is EmbedderFailure.MODEL_MISSING
        assert await failure(one, embedding_model_id=None) is None


async def test_who_may_not_see_a_branch_has_no_embedder_for_it(
    database: Database, people: People
) -> None:
    """Rule Y9."""
    async with shelf(database, people) as one, database.reading() as reading:
        for viewer in (people.stranger, people.anonymous):
            assert await one.embedders.embedder_of(reading, viewer, one.branch.id) is None


async def test_vectors_are_cut_and_have_length_one(database: Database, people: People) -> None:
    """Rule Y10."""
    async with shelf(database, people, effectiveDim=2) as one:
        one.server.embed = lambda text: [3.0, 4.0, 12.0]
        embedder = await one.embedder()
        assert (embedder.model_id, embedder.dim) == (f"{one.model_id}@2", None)
        assert await embedder.embed(["x"], is_query=True) == [pytest.approx([0.6, 0.8])]
        assert embedder.dim == 2
        one.server.embed = lambda text: [5.0]
        with pytest.raises(EmbedderFault) as refused:
            await embedder.embed(["x"], is_query=True)
        assert refused.value.message == "The embedder gave a vector of 1 values instead of 2."


async def test_another_dimension_than_that_of_the_story_is_a_fault(
    database: Database, people: People
) -> None:
    """Rule Y10."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.sync()
        one.server.embed = lambda text: [1.0, 0.0]
        embedder = await one.embedder()
        assert embedder.dim == 26
        with pytest.raises(EmbedderFault):
            await embedder.embed(["x"], is_query=True)
        cached = '[{"id": "letters", "capabilities": {"embeddingDim": 3}}]'
        await one.value(
            "UPDATE app_settings SET providers = "
            f"jsonb_set(providers, '{{0,cachedModels}}', '{cached}')"
        )
        embedder = await one.embedder()
        with pytest.raises(EmbedderFault) as refused:
            await embedder.embed(["x"], is_query=True)
        assert "another dimension than 3" in refused.value.message


@pytest.mark.parametrize(
    "vector", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], []], ids=["zero", "nan", "inf", "none"]
)
def test_what_has_no_direction_is_no_vector(vector: list[float]) -> None:
    """Rule Y10."""
    with pytest.raises(EmbedderFault):
        vectors.cut(vector, None)
    with pytest.raises(EmbedderFault):
        vectors.checked([vector], 1, None)


def test_only_vectors_of_length_one_pass() -> None:
    """Rule Y10."""
    vectors.checked([[0.6, 0.8], [1.0004, 0.0]], 2, 2)
    for given_, count, dim in (([[0.6, 0.9]], 1, 2), ([[1.0]], 1, 2), ([], 1, 2), ([[1.0]], 2, 1)):
        with pytest.raises(EmbedderFault):
            vectors.checked(given_, count, dim)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=8).filter(lambda each: abs(each[0]) > 0.01),
    st.integers(1, 8),
)
def test_what_is_cut_points_where_its_beginning_pointed(values: list[float], dim: int) -> None:
    """Rule Y10."""
    found = vectors.cut(values, dim)
    kept = values[:dim]
    length = math.sqrt(math.fsum(each * each for each in kept))
    vectors.checked([found], 1, len(kept))
    assert [each * length for each in found] == pytest.approx(kept, abs=1e-9)


@pytest.mark.skipif(not is_installed(), reason="needs the local model, of Linux on x86-64")
async def test_the_local_model_knows_what_is_meant_in_several_languages(
    database: Database, people: People
) -> None:
    """Rules Y1, Y9."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    embedders = Embedders()
    async with database.reading() as reading:
        embedder = await embedders.embedder_of(reading, people.owner, branch.id)
        choices = await embedders.choices_of(reading, people.owner, [branch.id])
    assert embedder is not None
    assert (embedder.model_id, embedder.dim) == (LOCAL_MODEL, LOCAL_DIM)
    assert choices[branch.id].backend is EmbeddingBackend.LOCAL
    texts = [
        "The lighthouse keeper guards the light on the cliff",
        "A baker sells bread and cakes at the market",
        "El rey murió en la batalla",
    ]
    questions = {"灯塔看守人": 0, "パン屋": 1, "Пекарь и хлеб": 1, "the king died in battle": 2}
    kept = await embedder.embed(texts, is_query=False)
    asked = await embedder.embed(list(questions), is_query=True)

    def alike(one: list[float], other: list[float]) -> float:
        return math.fsum(a * b for a, b in zip(one, other, strict=True))

    nearest = [max(range(3), key=lambda at, q=each: alike(q, kept[at])) for each in asked]
    assert nearest == list(questions.values())
    embedders.close()


async def test_without_pgvector_the_server_searches_by_words(
    database: Database, people: People
) -> None:
    """Rule Y14."""
    async with database.writing() as writing:
        await writing._connection.execute(
            "DROP TABLE vectors; CREATE TABLE vectors (model_id varchar, dim int, "
            "text_hash varchar, embedding real[], PRIMARY KEY (model_id, dim, text_hash))"
        )
    async with shelf(database, people) as one:
        async with database.reading() as reading:
            assert not await embedding.has_vectors(reading)
        await one.write("Mira")
        assert await failure(one) is EmbedderFailure.NO_VECTORS
        async with database.reading() as reading:
            assert await one.embedders.embedder_of(reading, one.viewer, one.branch.id) is None
