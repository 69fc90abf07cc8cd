"""Calendars that users have made; those that come with the server are in code.

Source: spec aventuras, vault content storage and calendar systems.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Index

from db.columns import (
    Table,
    boolean_column,
    created_at_column,
    id_column,
    json_column,
    reference,
    text_column,
    time_column,
    version_column,
)
from db.ids import PREFIXES


@dataclass(frozen=True, slots=True)
class CalendarTier:
    """One unit of a calendar: its name, its least value, and what its values are called."""

    name: str
    start_value: int
    labels: list[str] | None


@dataclass(frozen=True, slots=True)
class CalendarEras:
    """What eras do to the display of a calendar."""

    flip_mode: str
    resets_on_flip: list[str]
    default_start_name: str
    preset_names: list[str]


class Calendar(Table, table=True):
    """A calendar of a user. Those of the server are values of this class with an id of their own,
    without a row and without times.
    """

    __tablename__ = "vault_calendars"
    __table_args__ = (Index(None, "owner_user_id", "created_at", "id"),)

    id: str = id_column()
    owner_user_id: str = reference("users.id")
    # A clone has the name of what it was made from.
    name: str = text_column()
    # As `services/calendars/model.py` reads and writes it: checked, in one form.
    definition: dict[str, Any] = json_column("definition_json")
    is_favorite: bool = boolean_column(default=False)
    created_at: datetime | None = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with the server: then its id has no prefix of ours."""
        return self.id.partition("_")[0] not in PREFIXES

    @property
    def base_unit_name(self) -> str:
        """What people call the smallest unit."""
        return str(self.definition["baseUnitName"])

    @property
    def seconds_per_base_unit(self) -> int:
        """How many seconds the smallest unit has."""
        return int(self.definition["secondsPerBaseUnit"])

    @property
    def display_format(self) -> str:
        """The template by which times are written."""
        return str(self.definition["displayFormat"])

    @property
    def example_start(self) -> dict[str, int]:
        """A value for each tier, by name: where stories may begin."""
        return dict(self.definition["exampleStartValue"])

    @property
    def tiers(self) -> list[CalendarTier]:
        """Its units from the largest to the smallest."""
        return [
            CalendarTier(each["name"], each["startValue"], each.get("labels"))
            for each in self.definition["tiers"]
        ]

    @property
    def eras(self) -> CalendarEras | None:
        """What its eras do; None where it has none."""
        eras = self.definition.get("eras")
        return eras and CalendarEras(
            eras["flipMode"],
            eras["resetsOnFlip"],
            eras["defaultStartName"],
            eras["presetNames"],
        )
