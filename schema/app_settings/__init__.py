"""What users set up: providers and profiles, which agent uses which, defaults for new stories."""

from __future__ import annotations

from typing import cast

import strawberry

from resolvers import app_settings as resolve
from schema.app_settings.changes import AppSettingsMutation
from schema.app_settings.rows import AppSettings, ModelChoice
from schema.base import Info

__all__ = ["AppSettings", "AppSettingsMutation", "AppSettingsQuery", "ModelChoice"]


@strawberry.type
class AppSettingsQuery:
    """Root fields about settings."""

    @strawberry.field(description="What the viewer has set up; null for who is not signed in.")
    async def settings(self, info: Info) -> AppSettings | None:
        """What the viewer has set up."""
        return cast("AppSettings | None", await resolve.find_settings(info.context))
