"""The calendars that come with the server, by their fixed ids.

Where the sources contradict one another, docs/calendars.md says what was taken.
Source: spec aventuras, calendar systems, presets.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from db.tables import Calendar
from services.calendars.model import read_definition, written

_MONTHS = [
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
]
_MIDNIGHT = {"hour": 0, "minute": 0, "second": 0}
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def _constant(value: int) -> dict[str, Any]:
    return {"kind": "constant", "value": value}


def _tier(name: str, start: int, length: int | None = None, **more: Any) -> dict[str, Any]:
    rollover = {"rollover": _constant(length)} if length else {}
    return {"name": name, "startValue": start, **rollover, **more}


_GREGORIAN = {
    "baseUnitName": "second",
    "secondsPerBaseUnit": 1,
    "tiers": [
        _tier("year", 1),
        _tier("month", 1, 12, labels=_MONTHS),
        _tier(
            "day",
            1,
            rollover={
                "kind": "table",
                "indexedBy": "month",
                "values": [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31],
                "leap": {
                    "indexedBy": "year",
                    "atIndex": 2,
                    "conditions": [{"every": 4}, {"every": 100, "exclude": True}, {"every": 400}],
                },
            },
            # The first day of the year 1 is a Monday.
            subdivisions=[{"name": "weekday", "labels": _DAYS}],
        ),
        _tier("hour", 0, 24),
        _tier("minute", 0, 60),
        _tier("second", 0, 60),
    ],
}

_DEFINITIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "earth-gregorian": (
        "Earth (Gregorian)",
        {
            **_GREGORIAN,
            "exampleStartValue": {"year": 2024, "month": 1, "day": 1, **_MIDNIGHT},
            "displayFormat": (
                "{{ monthName }} {{ day }}, "
                "{% if year < 1 %}{{ 1 | minus: year }} BC{% else %}{{ year }} AD{% endif %} "
                "{{ hour | pad }}:{{ minute | pad }}"
            ),
        },
    ),
    "tolkien-shire": (
        "Shire Reckoning",
        {
            "baseUnitName": "day",
            "secondsPerBaseUnit": 86_400,
            "tiers": [
                _tier("year", 1),
                _tier(
                    "month",
                    0,
                    15,
                    labels=[
                        *("2 Yule", "Afteryule", "Solmath", "Rethe", "Astron", "Thrimidge"),
                        *("Forelithe", "Lithedays", "Afterlithe", "Wedmath", "Halimath"),
                        *("Winterfilth", "Blotmath", "Foreyule", "1 Yule"),
                    ],
                ),
                _tier(
                    "day",
                    1,
                    rollover={
                        "kind": "table",
                        "indexedBy": "month",
                        "values": [1, *[30] * 6, 3, *[30] * 6, 1],
                        "leap": {
                            "indexedBy": "year",
                            "atIndex": 7,
                            "conditions": [{"every": 4}, {"every": 100, "exclude": True}],
                        },
                    },
                    subdivisions=[
                        {
                            "name": "weekday",
                            "labels": [
                                *("Sterday", "Sunday", "Monday", "Trewsday"),
                                *("Hevensday", "Mersday", "Highday"),
                            ],
                            # Midyear's Day has no day of the week.
                            "skipWhen": [{"month": 7, "day": 2}],
                        }
                    ],
                ),
            ],
            "exampleStartValue": {"year": 1, "month": 0, "day": 1},
            "displayFormat": (
                "{{ day }} {{ monthName }} SR {{ year }}"
                "{% if weekdayName %} ({{ weekdayName }}){% endif %}"
            ),
        },
    ),
    "mayan-long-count": (
        "Mayan Long Count",
        {
            "baseUnitName": "kin",
            "secondsPerBaseUnit": 86_400,
            "tiers": [
                _tier("baktun", 0),
                _tier("katun", 0, 20),
                _tier("tun", 0, 20),
                _tier("winal", 0, 18),
                _tier("kin", 0, 20),
            ],
            "exampleStartValue": {"baktun": 13, "katun": 0, "tun": 0, "winal": 0, "kin": 0},
            "displayFormat": "{{ baktun }}.{{ katun }}.{{ tun }}.{{ winal }}.{{ kin }}",
        },
    ),
    "stardate": (
        "Stardate",
        {
            "baseUnitName": "stardate",
            "secondsPerBaseUnit": 86_400,
            "tiers": [_tier("count", 0)],
            "exampleStartValue": {"count": 41_000},
            "displayFormat": "Stardate {{ count }}",
        },
    ),
    "fantasy-12-30": (
        "Twelve Months of Thirty Days",
        {
            "baseUnitName": "day",
            "secondsPerBaseUnit": 86_400,
            "tiers": [
                _tier("year", 1),
                _tier(
                    "month",
                    0,
                    13,
                    labels=[
                        *("Frostmoon", "Stormgale", "Greenmark", "Bloomfall", "Suntide"),
                        *("Highmark", "Goldenharp", "Hearthbreath", "Wanedusk", "Witherlight"),
                        *("Stillmark", "Yulehearth", "Outdays"),
                    ],
                ),
                _tier(
                    "day",
                    1,
                    rollover={"kind": "table", "indexedBy": "month", "values": [*[30] * 12, 5]},
                    subdivisions=[
                        {
                            "name": "weekday",
                            "labels": [
                                *("Firstday", "Secondday", "Thirdday"),
                                *("Fourthday", "Fifthday", "Sixthday"),
                            ],
                        }
                    ],
                ),
            ],
            "exampleStartValue": {"year": 1, "month": 0, "day": 1},
            "displayFormat": "{{ weekdayName }}, {{ day }} {{ monthName }}, year {{ year }}",
        },
    ),
    "imperial-japan": (
        "Imperial Japan",
        {
            **_GREGORIAN,
            "exampleStartValue": {"year": 1868, "month": 10, "day": 23, **_MIDNIGHT},
            "displayFormat": (
                "{{ era }} {{ eraYear }}, {{ monthName }} {{ day }} "
                "{{ hour | pad }}:{{ minute | pad }}"
            ),
            "eras": {
                "flipMode": "display-label",
                "defaultStartName": "Meiji",
                "presetNames": ["Taisho", "Showa", "Heisei", "Reiwa"],
            },
        },
    ),
    "warhammer-imperial": (
        "Imperial Dating",
        {
            "baseUnitName": "fraction",
            "secondsPerBaseUnit": 86_400,
            "tiers": [_tier("year", 0), _tier("fraction", 0, 1_000)],
            "exampleStartValue": {"year": 0, "fraction": 0},
            "displayFormat": "0.{{ fraction | pad: 3 }}.{{ year | pad: 3 }}.{{ era }}",
            "eras": {
                "flipMode": "elapsed-from-flip",
                "resetsOnFlip": ["year", "fraction"],
                "defaultStartName": "M40",
                "presetNames": ["M41", "M42"],
            },
        },
    ),
}

BUILT_INS: Mapping[str, Calendar] = MappingProxyType(
    {
        own_id: Calendar(
            id=own_id,
            name=name,
            definition=written(read_definition(definition)),
            is_favorite=False,
            created_at=None,
            version=1,
        )
        for own_id, (name, definition) in _DEFINITIONS.items()
    }
)
