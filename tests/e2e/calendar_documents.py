"""What front ends ask about calendars."""

from __future__ import annotations

CALENDAR_CHANGES = """
fragment CalendarParts on Calendar { id name isBuiltIn isFavorite displayFormat version }
mutation CalendarCreate($name: String!, $definition: JSON!) {
  calendarCreate(input: { name: $name, definition: $definition }) {
    calendar { ...CalendarParts } errors { code message path }
  }
}
mutation CalendarClone($calendar: ID!) {
  calendarClone(input: { calendarId: $calendar }) {
    calendar { ...CalendarParts } errors { code message path }
  }
}
mutation CalendarUpdate($input: CalendarUpdateInput!) {
  calendarUpdate(input: $input) {
    calendar { ...CalendarParts } errors { code message path }
  }
}
mutation CalendarDelete($calendar: ID!) {
  calendarDelete(input: { calendarId: $calendar }) { deletedId errors { code message path } }
}
"""

CALENDARS = """
query Calendars {
  calendars { nodes { id name isBuiltIn isFavorite version } totalCount }
  builtInCalendars { id isBuiltIn }
}
query Calendar($id: ID!) {
  calendar(id: $id) {
    id name isBuiltIn isFavorite definition baseUnitName secondsPerBaseUnit exampleStart
    displayFormat createdAt version tiers { name startValue labels }
    eras { flipMode resetsOnFlip defaultStartName presetNames }
  }
}
query Rendered($id: ID!, $times: [Long!]!, $origin: JSON, $flips: [EraFlipInput!]) {
  calendar(id: $id) {
    render(worldTimes: $times, origin: $origin, flips: $flips) {
      worldTime label era eraYear isFallback warning { code message }
      tiers { name value label } subdivisions { name value label }
    }
  }
}
query WorldTime($id: ID!, $tiers: JSON!, $origin: JSON) {
  calendar(id: $id) { worldTimeOf(tiers: $tiers, origin: $origin) }
}
"""

DAYS = {
    "baseUnitName": "day",
    "secondsPerBaseUnit": 86_400,
    "tiers": [{"name": "day", "startValue": 1}],
    "exampleStartValue": {"day": 1},
    "displayFormat": "day {{ day }}",
}
