"""Providers, profiles, assignments and defaults of a user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select
from sqlmodel import col

from db.engine import Database
from db.enums import Agent, EmbeddingBackend, ProfileKind, ProviderType, StructuredOutput
from db.reading import Writing, columns, param, statement
from db.tables import AppSettings
from services import app_settings, calendars, stories
from services.access import Viewer
from services.app_settings import PROVIDER_DEFAULTS
from services.app_settings.providers import MAX_CHOSEN_MODELS, MAX_MODELS, MAX_PROVIDERS
from services.errors import DomainError
from tests.conftest import People
from tests.factories import make_branch

KEY = "sk-a-key-that-nobody-sees"
Change = Callable[[Writing], Awaitable[Any]]


async def provider(
    writing: Writing, viewer: Viewer, type: ProviderType = ProviderType.ANTHROPIC, **given: Any
) -> str:
    values: dict[str, Any] = {
        "display_name": "Mine",
        "api_key": KEY,
        "endpoint": None,
        "favorite_model_ids": (),
        "custom_model_ids": (),
        "expected_version": None,
        **given,
    }
    _, made = await app_settings.create_provider(writing, viewer, type=type, **values)
    return made


async def profile(writing: Writing, viewer: Viewer, name: str = "Mine", **given: Any) -> str:
    _, made = await app_settings.create_profile(writing, viewer, {"name": name, **given}, None)
    return made


async def seen(database: Database, viewer: Viewer) -> AppSettings:
    async with database.reading() as reading:
        found = await app_settings.find_settings(reading, viewer)
    assert found is not None
    return found


@statement(AppSettings)
def _stored() -> Any:
    return select(*columns(AppSettings)).where(col(AppSettings.id) == param("user"))


async def stored(database: Database, viewer: Viewer) -> Any:
    async with database.reading() as reading:
        row = await reading.first(_stored(), user=viewer.user_id)
    return None if row is None else dict(row)  # type: ignore[call-overload]


async def refusal(database: Database, change: Change) -> tuple[str, tuple[str | int, ...]]:
    with pytest.raises(DomainError) as refused:
        async with database.writing() as writing:
            await change(writing)
    assert KEY not in refused.value.message
    return refused.value.code, refused.value.path


async def test_who_has_set_up_nothing_has_the_narratives_profile_and_nothing_else(
    database: Database, people: People
) -> None:
    """Rules Z1, Z5."""
    before = await seen(database, people.owner)
    assert (before.providers, before.assignments, before.default_provider_id) == ([], [], None)
    (narrative,) = before.profiles
    assert (narrative.kind, narrative.name, narrative.model) == ("narrative", "Narrative", None)
    assert (before.version, before.updated_at) == (1, None)
    assert await stored(database, people.owner) is None
    async with database.writing() as writing:
        await app_settings.update_settings(writing, people.owner, {"ui_language": "ja"}, 1)
    after = await seen(database, people.owner)
    assert (after.ui_language, after.version) == ("ja", 2)
    assert after.profiles == before.profiles
    assert (await seen(database, people.stranger)).ui_language is None
    async with database.reading() as reading:
        assert await app_settings.find_settings(reading, people.anonymous) is None


@pytest.mark.parametrize("type", ProviderType)
async def test_the_first_provider_is_the_default_and_brings_what_is_recommended_for_it(
    database: Database, people: People, type: ProviderType
) -> None:
    """Rules Z3, Z6."""
    endpoint = "http://127.0.0.1:1234/v1" if type is ProviderType.OPENAI_COMPATIBLE else None
    async with database.writing() as writing:
        first = await provider(writing, people.owner, type, endpoint=endpoint)
        second = await provider(writing, people.owner, ProviderType.OPENAI)
    found = await seen(database, people.owner)
    assert found.default_provider_id == first
    assert [each.id for each in found.providers] == [first, second]
    narrative, *others = found.profiles
    assert narrative.kind is ProfileKind.NARRATIVE
    defaults = PROVIDER_DEFAULTS.get(type)
    if defaults is None:
        assert (narrative.model, others, found.assignments) == (None, [], [])
        return
    assert narrative.model is not None
    assert (narrative.model.provider_id, narrative.model.model_id) == (
        first,
        defaults.narrative.model_id,
    )
    names = {each.id: each.name for each in others}
    assert {each.agent: names[each.profile_id] for each in found.assignments} == dict(
        defaults.assignments
    )
    assert set(defaults.assignments) == set(Agent)


async def test_profiles_that_somebody_made_are_not_replaced_by_a_first_provider(
    database: Database, people: People
) -> None:
    """Rule Z3."""
    async with database.writing() as writing:
        made = await profile(writing, people.owner)
        await provider(writing, people.owner)
    found = await seen(database, people.owner)
    assert [each.id for each in found.profiles][1:] == [made]
    assert found.assignments == []


async def test_a_key_is_stored_and_never_shown(database: Database, people: People) -> None:
    """Rule Z2."""
    async with database.writing() as writing:
        made = await provider(writing, people.owner)
        bare = await provider(writing, people.owner, api_key=None)
    found = await seen(database, people.owner)
    assert [each.has_key for each in found.providers] == [True, False]
    assert KEY not in repr([asdict(each) for each in found.providers])
    row = await stored(database, people.owner)
    assert [each["apiKey"] for each in row["providers_json"]] == [KEY, ""]
    changes: list[tuple[str, dict[str, Any], bool]] = [
        (made, {"api_key": None}, False),
        (made, {"api_key": "another"}, True),
        (made, {"display_name": "Work"}, True),
        (bare, {"api_key": KEY}, True),
    ]
    for provider_id, change, has_key in changes:
        async with database.writing() as writing:
            settings = await app_settings.update_provider(
                writing, people.owner, provider_id, change, None
            )
        shown = {each.id: each for each in settings.providers}[provider_id]
        assert shown.has_key is has_key
    async with database.reading() as reading:
        acts = await reading._connection.fetch(
            "SELECT action, subject_id, arguments_json FROM audit_events ORDER BY created_at, id"
        )
    assert [tuple(each) for each in acts] == [
        ("provider_created", made, {"type": "anthropic"}),
        ("provider_created", bare, {"type": "anthropic"}),
        ("provider_key_changed", made, {}),
        ("provider_key_changed", made, {}),
        ("provider_key_changed", bare, {}),
    ]


def model(id: str, **can: Any) -> Any:
    known = ("reasoning", "structured_output", "embedding", "embedding_dim")
    names = (*known, "matryoshka_supported", "matryoshka_dims")
    capabilities = SimpleNamespace(**{**dict.fromkeys(names), **can}) if can else None
    return SimpleNamespace(model_id=id, capabilities=capabilities)


async def test_what_a_provider_has_listed_is_kept_with_its_time(
    database: Database, people: People
) -> None:
    """Rule Z4."""
    async with database.writing() as writing:
        made = await provider(writing, people.owner, favorite_model_ids=["a"])
        listed = [model("a", embedding=True, embedding_dim=768, matryoshka_dims=[64]), model("b")]
        change: dict[str, Any] = {"cached_models": listed, "custom_model_ids": ["mine"]}
        settings = await app_settings.update_provider(writing, people.owner, made, change, None)
    (shown,) = settings.providers
    assert (shown.favorite_model_ids, shown.custom_model_ids) == (["a"], ["mine"])
    assert shown.cached_models is not None
    first, second = shown.cached_models
    assert (first.model_id, first.capabilities.embedding_dim, first.capabilities.reasoning) == (
        "a",
        768,
        None,
    )
    assert second.capabilities.matryoshka_dims is None
    assert shown.cached_at is not None
    async with database.writing() as writing:
        change = {"cached_models": None}
        settings = await app_settings.update_provider(writing, people.owner, made, change, None)
    assert (settings.providers[0].cached_models, settings.providers[0].cached_at) == (None, None)


WRONG_PROVIDERS: list[tuple[dict[str, Any], str, tuple[str | int, ...]]] = [
    ({"display_name": " "}, "TEXT_EMPTY", ("input", "displayName")),
    ({"api_key": ""}, "KEY_INVALID", ("input", "apiKey")),
    ({"api_key": f"{KEY} "}, "KEY_INVALID", ("input", "apiKey")),
    ({"api_key": f"{KEY}\n"}, "KEY_INVALID", ("input", "apiKey")),
    ({"api_key": f"ключ{KEY}"}, "KEY_INVALID", ("input", "apiKey")),
    ({"api_key": KEY * 30}, "KEY_INVALID", ("input", "apiKey")),
    ({"endpoint": "example.org"}, "ENDPOINT_INVALID", ("input", "endpoint")),
    ({"endpoint": "ftp://example.org"}, "ENDPOINT_INVALID", ("input", "endpoint")),
    ({"endpoint": "https://"}, "ENDPOINT_INVALID", ("input", "endpoint")),
    ({"endpoint": f"https://me:{KEY}@example.org"}, "ENDPOINT_INVALID", ("input", "endpoint")),
    ({"endpoint": f"https://example.org?key={KEY}"}, "ENDPOINT_INVALID", ("input", "endpoint")),
    ({"endpoint": "https://example.org:99999"}, "ENDPOINT_INVALID", ("input", "endpoint")),
    ({"endpoint": "https://[::1"}, "ENDPOINT_INVALID", ("input", "endpoint")),
    ({"endpoint": "https://" + "x" * 2_000}, "TEXT_TOO_LONG", ("input", "endpoint")),
    ({"favorite_model_ids": ["a", ""]}, "TEXT_EMPTY", ("input", "favoriteModelIds", 1)),
    (
        {"custom_model_ids": ["a"] * (MAX_CHOSEN_MODELS + 1)},
        "LIMIT_REACHED",
        ("input", "customModelIds"),
    ),
]


@pytest.mark.parametrize(("given", "code", "path"), WRONG_PROVIDERS)
async def test_a_provider_with_something_wrong_is_refused_whole(
    database: Database, people: People, given: dict[str, Any], code: str, path: tuple[Any, ...]
) -> None:
    """Rules Z2, Z4."""
    async with database.writing() as writing:
        made = await provider(writing, people.owner)
    before = await stored(database, people.owner)
    owner = people.owner
    for change in (
        lambda writing: provider(writing, owner, **given),
        lambda writing: app_settings.update_provider(writing, owner, made, given, None),
    ):
        assert await refusal(database, change) == (code, path)
    assert await stored(database, people.owner) == before


async def test_of_providers_and_models_there_is_a_most(database: Database, people: People) -> None:
    """Rule Z4."""
    owner = people.owner
    local = ProviderType.OPENAI_COMPATIBLE
    async with database.writing() as writing:
        made = [await provider(writing, owner) for _ in range(MAX_PROVIDERS)]
    assert await refusal(database, lambda writing: provider(writing, owner)) == (
        "LIMIT_REACHED",
        ("input",),
    )
    assert await refusal(database, lambda writing: provider(writing, people.stranger, local)) == (
        "ENDPOINT_REQUIRED",
        ("input", "endpoint"),
    )
    path = ("input", "cachedModels")
    for models, code, where in (
        ([model("x")] * (MAX_MODELS + 1), "LIMIT_REACHED", path),
        ([model("x"), model("")], "TEXT_EMPTY", (*path, 1, "modelId")),
        ([model("x", embedding_dim=0)], "OUT_OF_RANGE", (*path, 0, "capabilities")),
        ([model("x", matryoshka_dims=[1] * 51)], "OUT_OF_RANGE", (*path, 0, "capabilities")),
    ):
        change = {"cached_models": models}
        assert await refusal(
            database,
            lambda writing, change=change: app_settings.update_provider(
                writing, owner, made[0], change, None
            ),
        ) == (code, where)


async def test_a_provider_in_use_is_not_deleted_and_says_where(
    database: Database, people: People
) -> None:
    """Rule Z7."""
    owner = people.owner
    path = ("input", "providerId")
    async with database.writing() as writing:
        default = await provider(writing, owner)
        other = await provider(writing, owner)
        branch = await make_branch(writing, owner)
        change = {"embedding_backend": EmbeddingBackend.PROVIDER, "embedding_provider_id": other}
        await app_settings.update_settings(writing, owner, change, None)
        embeds = {"embeddingBackend": "provider", "embedding_provider_id": other}
        await stories.update_story(writing, owner, branch.story_id, {"settings": embeds})
        theirs = await provider(writing, people.stranger)

    async def told(provider_id: str) -> str:
        with pytest.raises(DomainError) as refused:
            async with database.writing() as writing:
                await app_settings.delete_provider(writing, owner, provider_id, None)
        assert (refused.value.code, refused.value.path) == ("PROVIDER_IN_USE", path)
        return refused.value.message

    assert await told(default) == (
        "This provider is in use: it is the default. Choose another one there first."
    )
    assert await told(other) == (
        "This provider is in use: it is the default for embedding; stories embed with it "
        f"({branch.story_id}). Choose another one there first."
    )
    async with database.writing() as writing:
        change = {"embedding_backend": EmbeddingBackend.LOCAL}
        await app_settings.update_settings(writing, owner, change, None)
    assert f"in use: stories embed with it ({branch.story_id})." in await told(other)
    for missing in (theirs, "x"):
        assert await refusal(
            database,
            lambda writing, missing=missing: app_settings.delete_provider(
                writing, owner, missing, None
            ),
        ) == ("NOT_FOUND", path)
    async with database.writing() as writing:
        back = {"settings": {"embeddingBackend": "local"}}
        await stories.update_story(writing, owner, branch.story_id, back)
        settings = await app_settings.delete_provider(writing, owner, other, None)
    assert [each.id for each in settings.providers] == [default]
    # What names it otherwise goes on naming it.
    assert settings.embedding_provider_id == other


async def test_what_names_a_deleted_provider_keeps_its_name(
    database: Database, people: People
) -> None:
    """Rules Z7, Z9."""
    owner = people.owner
    async with database.writing() as writing:
        await provider(writing, owner)
        other = await provider(writing, owner)
        ref = SimpleNamespace(provider_id=other, model_id="m")
        made = await profile(writing, owner, model=ref)
        await app_settings.assign_profile(writing, owner, Agent.RETRIEVAL, made, None)
        settings = await app_settings.delete_provider(writing, owner, other, None)
    (kept,) = [each for each in settings.profiles if each.id == made]
    assert kept.model is not None
    assert (kept.model.provider_id, kept.model.model_id) == (other, "m")
    choice = app_settings.resolve_model(settings, {}, Agent.RETRIEVAL)
    assert (choice.model, choice.profile, choice.failure) == (None, kept, "provider-missing")


async def test_the_narratives_profile_changes_and_stays(database: Database, people: People) -> None:
    """Rules Z5, Z8."""
    owner = people.owner
    async with database.writing() as writing:
        used = await provider(writing, owner)
    narrative = (await seen(database, owner)).profiles[0].id
    changes: dict[str, Any] = {
        "name": "Teller",
        "model": SimpleNamespace(provider_id=used, model_id="m"),
        "temperature": 2,
        "max_output": 1,
        "thinking": 0.5,
        "timeout": None,
        "custom_json": {"top_k": 3},
        "description": None,
    }
    async with database.writing() as writing:
        settings = await app_settings.update_profile(writing, owner, narrative, changes, None)
    assert asdict(settings.profiles[0]) == {
        "id": narrative,
        "kind": "narrative",
        "name": "Teller",
        "description": None,
        "model": {"provider_id": used, "model_id": "m"},
        "temperature": 2,
        "max_output": 1,
        "thinking": 0.5,
        "timeout": None,
        "structured_output": None,
        "custom_json": {"top_k": 3},
    }
    before = await stored(database, owner)
    for change in (
        lambda writing: app_settings.delete_profile(writing, owner, narrative, None),
        lambda writing: app_settings.update_profile(
            writing, owner, narrative, {"description": "x"}, None
        ),
        lambda writing: app_settings.update_profile(
            writing, owner, narrative, {"structured_output": StructuredOutput.AUTO}, None
        ),
        lambda writing: app_settings.assign_profile(
            writing, owner, Agent.CLASSIFIER, narrative, None
        ),
    ):
        code, _ = await refusal(database, change)
        assert code in {"NARRATIVE_STAYS", "NOT_OF_NARRATIVE", "WRONG_KIND"}
    assert await stored(database, owner) == before


WRONG_PROFILES: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({"name": ""}, "TEXT_EMPTY", ("input", "name")),
    ({"description": "x" * 2_001}, "TEXT_TOO_LONG", ("input", "description")),
    ({"temperature": 2.1}, "OUT_OF_RANGE", ("input", "temperature")),
    ({"temperature": -0.1}, "OUT_OF_RANGE", ("input", "temperature")),
    ({"max_output": 0}, "OUT_OF_RANGE", ("input", "maxOutput")),
    ({"thinking": -1}, "OUT_OF_RANGE", ("input", "thinking")),
    ({"timeout": 3_601}, "OUT_OF_RANGE", ("input", "timeout")),
    ({"custom_json": []}, "INVALID_SHAPE", ("input", "customJson")),
    ({"custom_json": {"x": 2**70}}, "INVALID_SHAPE", ("input", "customJson")),
    ({"custom_json": {"x": "y" * 17_000}}, "LIMIT_REACHED", ("input", "customJson")),
    (
        {"model": SimpleNamespace(provider_id="x", model_id="m")},
        "NOT_FOUND",
        ("input", "model", "providerId"),
    ),
]


@pytest.mark.parametrize(("given", "code", "path"), WRONG_PROFILES)
async def test_a_profile_with_something_wrong_is_refused_whole(
    database: Database, people: People, given: dict[str, Any], code: str, path: tuple[str, ...]
) -> None:
    """Rule Z8."""
    owner = people.owner
    async with database.writing() as writing:
        made = await profile(writing, owner)
    before = await stored(database, owner)
    values = {"name": "Mine", **given}
    for change in (
        lambda writing: app_settings.create_profile(writing, owner, values, None),
        lambda writing: app_settings.update_profile(writing, owner, made, given, None),
    ):
        assert await refusal(database, change) == (code, path)
    assert await stored(database, owner) == before


async def test_agents_that_used_a_deleted_profile_have_none(
    database: Database, people: People
) -> None:
    """Rule Z8."""
    owner = people.owner
    async with database.writing() as writing:
        kept, gone = await profile(writing, owner), await profile(writing, owner)
        for agent, used in ((Agent.CLASSIFIER, gone), (Agent.RETRIEVAL, kept)):
            await app_settings.assign_profile(writing, owner, agent, used, None)
        settings = await app_settings.delete_profile(writing, owner, gone, None)
        assert settings.assignments_json == {"retrieval": kept}
        settings = await app_settings.assign_profile(writing, owner, Agent.RETRIEVAL, None, None)
        assert settings.assignments == []
    for change in (
        lambda writing: app_settings.delete_profile(writing, owner, gone, None),
        lambda writing: app_settings.assign_profile(writing, owner, Agent.RETRIEVAL, gone, None),
        lambda writing: app_settings.update_profile(writing, owner, gone, {"name": "x"}, None),
    ):
        assert await refusal(database, change) == ("NOT_FOUND", ("input", "profileId"))


async def test_a_reset_replaces_every_profile_and_assignment(
    database: Database, people: People
) -> None:
    """Rule Z6."""
    owner = people.owner
    assert await refusal(
        database, lambda writing: app_settings.reset_profiles(writing, owner, None)
    ) == ("NO_PROVIDER", ("input",))
    async with database.writing() as writing:
        await provider(writing, owner)
        before = await app_settings.update_settings(writing, owner, {}, None)
        await profile(writing, owner)
        settings = await app_settings.reset_profiles(writing, owner, None)
        assert [each.name for each in settings.profiles] == [each.name for each in before.profiles]
        old, new = [{each.id for each in found.profiles} for found in (before, settings)]
        assert old.isdisjoint(new)
        assert {each.profile_id for each in settings.assignments} < new
        local = await provider(
            writing, owner, ProviderType.OPENAI_COMPATIBLE, endpoint="http://127.0.0.1/v1"
        )
        await app_settings.update_settings(writing, owner, {"default_provider_id": local}, None)
        settings = await app_settings.reset_profiles(writing, owner, None)
    (narrative,) = settings.profiles
    assert (narrative.kind, narrative.model, settings.assignments) == ("narrative", None, [])


async def test_defaults_of_new_stories_hold_only_what_was_set(
    database: Database, people: People
) -> None:
    """Rules Z10, Z11."""
    owner = people.owner
    palette = [
        {
            "id": "a",
            "label": "Run",
            "promptHint": "",
            "color": "red",
            "enabled": True,
            "order": 0,
        }
    ]
    steps: list[tuple[dict[str, Any], str, Any]] = [
        (
            {"default_story_settings": {"suggestionCount": 5, "translation": {"enabled": True}}},
            "default_story_settings",
            {"suggestionCount": 5, "translation": {"enabled": True}},
        ),
        (
            {"default_story_settings": {"suggestionCount": None, "protectedBuffer": 3}},
            "default_story_settings",
            {"translation": {"enabled": True}, "protectedBuffer": 3},
        ),
        ({"default_story_settings": None}, "default_story_settings", {}),
        (
            {"default_suggestion_categories": {"creative": palette}},
            "default_suggestion_categories",
            {"creative": palette},
        ),
        ({"appearance": {"density": "compact"}}, "appearance", {"density": "compact"}),
        (
            {"appearance": {"readerFontScale": 1.25}},
            "appearance",
            {"density": "compact", "readerFontScale": 1.25},
        ),
        ({"diagnostics": {"enabled": True}}, "diagnostics", {"enabled": True}),
        ({"default_calendar_id": "stardate"}, "default_calendar_id", "stardate"),
        ({"default_calendar_id": None}, "default_calendar_id", None),
        ({"embedding_model_id": "minilm"}, "embedding_model_id", "minilm"),
    ]
    for change, name, value in steps:
        async with database.writing() as writing:
            settings = await app_settings.update_settings(writing, owner, change, None)
        assert getattr(settings, name) == value
    assert settings.version == 1 + len(steps)
    async with database.writing() as writing:
        again = await app_settings.update_settings(writing, owner, steps[-1][0], settings.version)
        assert again.version == settings.version


async def test_the_introduction_is_finished_once(database: Database, people: People) -> None:
    """Rule Z10."""
    times = []
    for is_completed in (True, True, False, True):
        async with database.writing() as writing:
            change = {"onboarding_completed": is_completed}
            settings = await app_settings.update_settings(writing, people.owner, change, None)
        times.append(settings.onboarding_completed_at)
    first, second, none, again = times
    assert first is not None
    assert again is not None
    assert (second, none) == (first, None)
    assert again > first


WRONG_SETTINGS: list[tuple[dict[str, Any], str, tuple[str | int, ...]]] = [
    ({"default_provider_id": "x"}, "NOT_FOUND", ("input", "defaultProviderId")),
    ({"embedding_provider_id": "x"}, "NOT_FOUND", ("input", "embeddingProviderId")),
    (
        {"embedding_backend": EmbeddingBackend.PROVIDER},
        "EMBEDDING_PROVIDER_REQUIRED",
        ("input", "embeddingProviderId"),
    ),
    ({"embedding_model_id": ""}, "TEXT_EMPTY", ("input", "embeddingModelId")),
    ({"default_calendar_id": "x"}, "NOT_FOUND", ("input", "defaultCalendarId")),
    ({"ui_language": "EN"}, "LANGUAGE_INVALID", ("input", "uiLanguage")),
    ({"appearance": []}, "INVALID_SHAPE", ("input", "appearance")),
    ({"appearance": {"density": "x"}}, "INVALID_SHAPE", ("input", "appearance", "density")),
    ({"diagnostics": {"x": True}}, "INVALID_SHAPE", ("input", "diagnostics", "x")),
    (
        {"default_story_settings": {"suggestionCount": 7}},
        "INVALID_SHAPE",
        ("input", "defaultStorySettings", "suggestionCount"),
    ),
    (
        {"default_story_settings": {"models": {}}},
        "INVALID_SHAPE",
        ("input", "defaultStorySettings", "models"),
    ),
    (
        {"default_suggestion_categories": {"creative": [{}]}},
        "INVALID_SHAPE",
        ("input", "defaultSuggestionCategories", "creative", 0, "id"),
    ),
]


@pytest.mark.parametrize(("given", "code", "path"), WRONG_SETTINGS)
async def test_a_setting_that_is_wrong_is_refused_and_nothing_changes(
    database: Database, people: People, given: dict[str, Any], code: str, path: tuple[Any, ...]
) -> None:
    """Rules Z10, Z11."""
    assert await refusal(
        database,
        lambda writing: app_settings.update_settings(
            writing, people.owner, {"ui_language": "de", **given}, None
        ),
    ) == (code, path)
    assert await stored(database, people.owner) is None


async def test_somebody_elses_calendar_is_no_default(database: Database, people: People) -> None:
    """Rules Z1, Z10."""
    async with database.writing() as writing:
        theirs = await calendars.clone_calendar(writing, people.stranger, "stardate")
        mine = await calendars.clone_calendar(writing, people.owner, "stardate")
        change = {"default_calendar_id": mine.id}
        await app_settings.update_settings(writing, people.owner, change, None)
    change = {"default_calendar_id": theirs.id}
    assert await refusal(
        database,
        lambda writing: app_settings.update_settings(writing, people.owner, change, None),
    ) == ("NOT_FOUND", ("input", "defaultCalendarId"))


async def test_a_change_for_another_version_is_refused_by_every_mutation(
    database: Database, people: People
) -> None:
    """Rules Z1, Z12."""
    owner = people.owner
    async with database.writing() as writing:
        used = await provider(writing, owner)
        made = await profile(writing, owner)
    before = await stored(database, owner)

    def changes(viewer: Viewer, version: int | None) -> list[Change]:
        return [
            lambda writing: app_settings.update_settings(writing, viewer, {}, version),
            lambda writing: provider(writing, viewer, expected_version=version),
            lambda writing: app_settings.update_provider(writing, viewer, used, {}, version),
            lambda writing: app_settings.delete_provider(writing, viewer, used, version),
            lambda writing: app_settings.create_profile(writing, viewer, {"name": "x"}, version),
            lambda writing: app_settings.update_profile(writing, viewer, made, {}, version),
            lambda writing: app_settings.delete_profile(writing, viewer, made, version),
            lambda writing: app_settings.reset_profiles(writing, viewer, version),
            lambda writing: app_settings.assign_profile(
                writing, viewer, Agent.CLASSIFIER, made, version
            ),
        ]

    for change in changes(owner, 2):
        assert await refusal(database, change) == ("CONFLICT", ("input", "expectedVersion"))
    for change in changes(people.anonymous, None):
        assert await refusal(database, change) == ("NOT_SIGNED_IN", ())
    assert await stored(database, owner) == before
