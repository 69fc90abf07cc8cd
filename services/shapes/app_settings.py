"""The JSON of what a user sets up for the pages. Source: spec aventuras, app_settings diagram."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from services.shapes.entries import ABSENT

Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Appearance(_Closed):
    """How the pages look. Names of themes and colours are the front end's."""

    themeId: Name = Field(default=ABSENT)
    readerFontScale: Annotated[float, Field(ge=0.25, le=4)] = Field(default=ABSENT)
    showJumpToBottom: bool = Field(default=ABSENT)
    accentOverride: Name = Field(default=ABSENT)
    density: Literal["default", "compact", "regular", "comfortable"] = Field(default=ABSENT)
    readerRailCollapsed: bool = Field(default=ABSENT)


class Diagnostics(_Closed):
    """What is noted to find mistakes; the second only counts while the first is on."""

    enabled: bool = Field(default=ABSENT)
    debug_level_enabled: bool = Field(default=ABSENT)
