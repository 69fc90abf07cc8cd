"""The one row of a user: reading it, holding it, writing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import col

from db.reading import Reading, Writing, columns, param, statement
from db.tables import AppSettings
from services.access import Viewer, require_version, visible
from services.app_settings.seeds import first_profile
from services.shapes import same


async def find_settings(reading: Reading, viewer: Viewer) -> AppSettings | None:
    """What the viewer has set up; None for who is not signed in. Who has set up nothing has a
    narrative's profile without a model, and nothing else.
    """
    if viewer.user_id is None:
        return None
    return await reading.first(_own(), **viewer.parameters) or _untouched(viewer.user_id)


async def hold_settings(
    writing: Writing, viewer: Viewer, expected_version: int | None = None
) -> AppSettings:
    """The same, held against others who change it. Raises Forbidden (NOT_SIGNED_IN), Conflict."""
    user_id = viewer.signed_in_id
    await writing.run(_begin(), id=user_id, profiles=[first_profile(user_id)])
    settings = await writing.first(_held(), **viewer.parameters)
    assert settings is not None
    require_version(settings, expected_version, "input", "expectedVersion")
    return settings


async def write_settings(
    writing: Writing, settings: AppSettings, changes: Mapping[str, Any]
) -> AppSettings:
    """Change the row, which the caller holds, by the names of its attributes. What changes nothing
    counts as no change.
    """
    changed = {
        name: value for name, value in changes.items() if not same(getattr(settings, name), value)
    }
    if not changed:
        return settings
    updated = await writing.first(_update(tuple(sorted(changed))), of_id=settings.id, **changed)
    assert updated is not None
    return updated


def _untouched(user_id: str) -> AppSettings:
    return AppSettings(
        id=user_id,
        providers_json=[],
        profiles_json=[first_profile(user_id)],
        assignments_json={},
        default_provider_id=None,
        embedding_backend=None,
        embedding_model_id=None,
        embedding_provider_id=None,
        default_story_settings={},
        default_suggestion_categories={},
        default_calendar_id=None,
        appearance={},
        ui_language=None,
        onboarding_completed_at=None,
        diagnostics={},
        updated_at=None,
        version=1,
    )


@statement(AppSettings)
def _own() -> Any:
    return select(*columns(AppSettings)).where(visible(AppSettings))


@statement(AppSettings)
def _held() -> Any:
    return select(*columns(AppSettings)).where(visible(AppSettings)).with_for_update()


@statement(AppSettings)
def _begin() -> Any:
    return (
        insert(AppSettings)
        .values(
            {
                col(AppSettings.id): param("id"),
                col(AppSettings.profiles_json): param("profiles", JSONB()),
            }
        )
        .on_conflict_do_nothing(index_elements=["id"])
    )


@statement(AppSettings)
def _update(names: tuple[str, ...]) -> Any:
    changed = {
        getattr(AppSettings, name): param(name, getattr(AppSettings, name).type) for name in names
    }
    return (
        update(AppSettings)
        .where(col(AppSettings.id) == param("of_id"))
        .values(
            {
                **changed,
                col(AppSettings.updated_at): func.clock_timestamp(),
                col(AppSettings.version): col(AppSettings.version) + 1,
            }
        )
        .returning(*columns(AppSettings))
    )
