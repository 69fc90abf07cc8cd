"""Providers of a user: which there are, and their keys. A key is only ever written here.

Source: spec aventuras, provider instances; provider deletion semantics.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import or_, select
from sqlmodel import col

from db.enums import EmbeddingBackend, ProviderType
from db.ids import new_id
from db.reading import Writing, param, statement
from db.tables import AppSettings, Story
from services.access import Viewer, visible
from services.accounts import record_act
from services.app_settings.holding import hold_settings, write_settings
from services.app_settings.seeds import first_profile, seeded
from services.errors import Conflict, Invalid, LimitReached, NotFound
from services.text import MAX_LINE, MAX_REFERENCE, checked_lines, checked_text

MAX_PROVIDERS = 50
MAX_MODELS = 2_000
MAX_CHOSEN_MODELS = 200
MAX_DIMENSIONS = 50
MAX_DIMENSION = 100_000
_KEY = re.compile(r"[!-~]{1,500}")
_PATH = ("input", "providerId")
# Stories that are named when a provider is in use.
_NAMED = 5


async def create_provider(
    writing: Writing,
    viewer: Viewer,
    *,
    type: ProviderType,
    display_name: str,
    api_key: str | None,
    endpoint: str | None,
    favorite_model_ids: Sequence[str],
    custom_model_ids: Sequence[str],
    expected_version: int | None,
) -> tuple[AppSettings, str]:
    """Set up a provider; its id too. The first one is the default from then on, and who has made no
    profiles of their own gets those that are recommended for it.

    Raises Invalid (TEXT_…, KEY_INVALID, ENDPOINT_INVALID, ENDPOINT_REQUIRED), LimitReached,
    Conflict.
    """
    settings = await hold_settings(writing, viewer, expected_version)
    if len(settings.providers_json) >= MAX_PROVIDERS:
        raise LimitReached(f"Set up {MAX_PROVIDERS} providers at most.", path=("input",))
    provider = {
        "id": new_id("providers"),
        "type": type,
        **_checked(
            type,
            {
                "display_name": display_name,
                "api_key": api_key,
                "endpoint": endpoint,
                "favorite_model_ids": favorite_model_ids,
                "custom_model_ids": custom_model_ids,
            },
        ),
    }
    changes: dict[str, Any] = {"providers_json": [*settings.providers_json, provider]}
    if settings.default_provider_id is None:
        changes["default_provider_id"] = provider["id"]
        if settings.profiles_json == [first_profile(settings.id)]:
            profiles, assignments = seeded(provider)
            changes |= {"profiles_json": profiles, "assignments_json": assignments}
    settings = await write_settings(writing, settings, changes)
    await record_act(writing, viewer, "provider_created", provider["id"], {"type": type})
    return settings, str(provider["id"])


async def update_provider(
    writing: Writing,
    viewer: Viewer,
    provider_id: str,
    changes: Mapping[str, Any],
    expected_version: int | None,
) -> AppSettings:
    """Change a provider; `changes` has new values by the names of `create_provider`, and
    `cached_models`. Raises NotFound, and what `create_provider` raises.
    """
    settings = await hold_settings(writing, viewer, expected_version)
    before = require_provider(settings, provider_id, *_PATH)
    checked = _checked(before["type"], changes)
    after = {key: value for key, value in {**before, **checked}.items() if value is not None}
    providers = [after if each is before else each for each in settings.providers_json]
    settings = await write_settings(writing, settings, {"providers_json": providers})
    if after["apiKey"] != before["apiKey"]:
        await record_act(writing, viewer, "provider_key_changed", provider_id)
    return settings


async def delete_provider(
    writing: Writing, viewer: Viewer, provider_id: str, expected_version: int | None
) -> AppSettings:
    """Delete a provider that nothing has as its default and with which no story embeds. Profiles
    and stories that name it otherwise keep its name, and fail when they are used.

    Raises NotFound, Conflict (PROVIDER_IN_USE, and that of another version).
    """
    settings = await hold_settings(writing, viewer, expected_version)
    gone = require_provider(settings, provider_id, *_PATH)
    uses = await _uses(writing, viewer, settings, provider_id)
    if uses:
        raise Conflict(
            f"This provider is in use: {'; '.join(uses)}. Choose another one there first.",
            "PROVIDER_IN_USE",
            _PATH,
        )
    providers = [each for each in settings.providers_json if each is not gone]
    settings = await write_settings(writing, settings, {"providers_json": providers})
    await record_act(writing, viewer, "provider_deleted", provider_id)
    return settings


def find_provider(settings: AppSettings, provider_id: str) -> dict[str, Any] | None:
    """A provider as it is stored, with its key."""
    return next((each for each in settings.providers_json if each["id"] == provider_id), None)


def require_provider(settings: AppSettings, provider_id: str, *path: str | int) -> dict[str, Any]:
    """Like find_provider, but raises NotFound with the path of the input field."""
    found = find_provider(settings, provider_id)
    if found is None:
        raise NotFound("You have set up no such provider.", path=path)
    return found


async def _uses(
    writing: Writing, viewer: Viewer, settings: AppSettings, provider_id: str
) -> list[str]:
    """What keeps a provider from being deleted, in words."""
    uses = []
    if settings.default_provider_id == provider_id:
        uses.append("it is the default")
    if (
        settings.embedding_provider_id == provider_id
        and settings.embedding_backend == EmbeddingBackend.PROVIDER
    ):
        uses.append("it is the default for embedding")
    rows = await writing.all(_embedding_stories(), provider_id=provider_id, **viewer.parameters)
    if rows:
        more = " and others" if len(rows) > _NAMED else ""
        uses.append(f"stories embed with it ({', '.join(row.id for row in rows[:_NAMED])}{more})")
    return uses


def _checked(type: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of a provider as it is stored; None takes a key away."""
    found: dict[str, Any] = {}
    if "display_name" in given:
        found["displayName"] = checked_text(
            given["display_name"], "input", "displayName", max_length=MAX_LINE
        )
    if "api_key" in given:
        found["apiKey"] = _checked_key(given["api_key"])
    if "endpoint" in given:
        found["endpoint"] = _checked_endpoint(type, given["endpoint"])
    for name, key in (
        ("favorite_model_ids", "favoriteModelIds"),
        ("custom_model_ids", "customModelIds"),
    ):
        if name in given:
            found[key] = checked_lines(given[name], "input", key, most=MAX_CHOSEN_MODELS)
    if "cached_models" in given:
        models = given["cached_models"]
        found["cachedModels"] = None if models is None else _checked_models(models)
        found["cachedAt"] = None if models is None else int(time.time())
    return found


def _checked_key(key: str | None) -> str:
    # What is wrong with a key is told without a letter of it.
    if key is not None and not _KEY.fullmatch(key):
        raise Invalid(
            "A key has 1 to 500 printable characters of ASCII and no spaces.",
            "KEY_INVALID",
            ("input", "apiKey"),
        )
    return key or ""


def _checked_endpoint(type: str, endpoint: str | None) -> str | None:
    path = ("input", "endpoint")
    if endpoint is None:
        if type == ProviderType.OPENAI_COMPATIBLE:
            raise Invalid("Say at which address it is.", "ENDPOINT_REQUIRED", path)
        return None
    checked_text(endpoint, *path, max_length=MAX_REFERENCE)
    try:
        parts = urlsplit(endpoint)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    # A key in an address would be shown with it.
    if not is_address or "@" in parts.netloc or parts.query or parts.fragment:
        raise Invalid(
            "An endpoint is like https://example.org/v1: without a name, a password, ? or #.",
            "ENDPOINT_INVALID",
            path,
        )
    return endpoint


def _checked_models(models: Sequence[Any]) -> list[dict[str, Any]]:
    path = ("input", "cachedModels")
    if len(models) > MAX_MODELS:
        raise LimitReached(f"Give {MAX_MODELS:,} models at most.", path=path)
    return [_checked_model(each, (*path, index)) for index, each in enumerate(models)]


def _checked_model(model: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": checked_text(model.model_id, *path, "modelId", max_length=MAX_LINE)
    }
    can = model.capabilities
    if can is not None:
        dims = can.matryoshka_dims or []
        sizes = [*dims, *([can.embedding_dim] if can.embedding_dim is not None else [])]
        if len(dims) > MAX_DIMENSIONS or not all(0 < each <= MAX_DIMENSION for each in sizes):
            raise Invalid(
                f"A dimension is 1 to {MAX_DIMENSION:,}; give {MAX_DIMENSIONS} at most.",
                "OUT_OF_RANGE",
                (*path, "capabilities"),
            )
        values = {
            "reasoning": can.reasoning,
            "structuredOutput": can.structured_output,
            "embedding": can.embedding,
            "embeddingDim": can.embedding_dim,
            "matryoshkaSupported": can.matryoshka_supported,
            "matryoshkaDims": can.matryoshka_dims,
        }
        found["capabilities"] = {key: each for key, each in values.items() if each is not None}
    return found


@statement(Story)
def _embedding_stories() -> Any:
    settings = col(Story.settings)
    return (
        select(col(Story.id).label("id"))
        .where(
            visible(Story),
            or_(
                *(
                    (settings[provider].astext == param("provider_id"))
                    & (settings[backend].astext == EmbeddingBackend.PROVIDER.value)
                    for provider, backend in (
                        ("embedding_provider_id", "embeddingBackend"),
                        ("embedding_swap_provider_id", "embedding_swap_backend"),
                    )
                )
            ),
        )
        .order_by(col(Story.created_at), col(Story.id))
        .limit(_NAMED + 1)
    )
