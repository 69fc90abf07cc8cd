"""What users set up: the look-up and the mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.enums import Agent
from db.tables import AppSettings, Story
from resolvers.context import Context
from resolvers.inputs import given
from services import app_settings as service
from services.errors import Forbidden


async def find_settings(context: Context) -> AppSettings | None:
    """What the viewer has set up."""
    async with context.reading() as reading:
        return await service.find_settings(reading, context.viewer)


async def models_of_stories(
    context: Context, stories: Sequence[Story], *, agent: Agent | None = None
) -> list[service.ModelChoice]:
    """Which model each story asks, by what its owner has set up."""
    settings = await find_settings(context)
    if settings is None:
        raise Forbidden("Sign in first: send a bearer token.", "NOT_SIGNED_IN")
    return [
        service.resolve_model(settings, each.settings.get("models", {}), agent) for each in stories
    ]


async def update_settings(context: Context, input: Any) -> dict[str, Any]:
    """Change defaults, looks and diagnostics."""
    changes = given(
        input,
        "default_provider_id",
        "embedding_backend",
        "embedding_model_id",
        "embedding_provider_id",
        "default_story_settings",
        "default_suggestion_categories",
        "default_calendar_id",
        "appearance",
        "ui_language",
        "onboarding_completed",
        "diagnostics",
    )
    async with context.writing() as change:
        settings = await service.update_settings(
            change.writing, context.viewer, changes, input.expected_version
        )
        return change.answer(settings=settings)


async def create_provider(context: Context, input: Any) -> dict[str, Any]:
    """Set up a provider."""
    async with context.writing() as change:
        settings, provider_id = await service.create_provider(
            change.writing,
            context.viewer,
            type=input.type,
            display_name=input.display_name,
            api_key=input.api_key,
            endpoint=input.endpoint,
            favorite_model_ids=input.favorite_model_ids,
            custom_model_ids=input.custom_model_ids,
            expected_version=input.expected_version,
        )
        return change.answer(provider_id=provider_id, settings=settings)


async def update_provider(context: Context, input: Any) -> dict[str, Any]:
    """Change a provider."""
    changes = given(
        input,
        "display_name",
        "api_key",
        "endpoint",
        "favorite_model_ids",
        "custom_model_ids",
        "cached_models",
    )
    async with context.writing() as change:
        settings = await service.update_provider(
            change.writing, context.viewer, input.provider_id, changes, input.expected_version
        )
        return change.answer(settings=settings)


async def delete_provider(context: Context, input: Any) -> dict[str, Any]:
    """Delete a provider."""
    async with context.writing() as change:
        settings = await service.delete_provider(
            change.writing, context.viewer, input.provider_id, input.expected_version
        )
        return change.answer(deleted_id=str(input.provider_id), settings=settings)


async def create_profile(context: Context, input: Any) -> dict[str, Any]:
    """Make a profile of agents."""
    values = {"name": input.name, **given(input, *_PROFILE_FIELDS)}
    async with context.writing() as change:
        settings, profile_id = await service.create_profile(
            change.writing, context.viewer, values, input.expected_version
        )
        return change.answer(profile_id=profile_id, settings=settings)


async def update_profile(context: Context, input: Any) -> dict[str, Any]:
    """Change a profile."""
    changes = given(input, "name", *_PROFILE_FIELDS)
    async with context.writing() as change:
        settings = await service.update_profile(
            change.writing, context.viewer, input.profile_id, changes, input.expected_version
        )
        return change.answer(settings=settings)


async def delete_profile(context: Context, input: Any) -> dict[str, Any]:
    """Delete a profile of agents."""
    async with context.writing() as change:
        settings = await service.delete_profile(
            change.writing, context.viewer, input.profile_id, input.expected_version
        )
        return change.answer(deleted_id=str(input.profile_id), settings=settings)


async def reset_profiles(context: Context, input: Any) -> dict[str, Any]:
    """Put what is recommended in the place of all profiles and assignments."""
    async with context.writing() as change:
        settings = await service.reset_profiles(
            change.writing, context.viewer, input.expected_version
        )
        return change.answer(settings=settings)


async def assign_profile(context: Context, input: Any) -> dict[str, Any]:
    """Have an agent use a profile, or none."""
    async with context.writing() as change:
        settings = await service.assign_profile(
            change.writing, context.viewer, input.agent, input.profile_id, input.expected_version
        )
        return change.answer(settings=settings)


_PROFILE_FIELDS = (
    "description",
    "model",
    "temperature",
    "max_output",
    "thinking",
    "timeout",
    "structured_output",
    "custom_json",
)
