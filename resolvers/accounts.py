"""Accounts: the viewer, and the record of acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from db.enums import RoleName
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import AuditEvent, User
from resolvers.context import Context
from services import accounts as service
from services.access import Viewer


@dataclass(frozen=True, slots=True)
class ViewerRow:
    """The viewer as the API shows it."""

    viewer: Viewer

    @property
    def roles(self) -> list[RoleName]:
        """The viewer's roles in a fixed order."""
        return sorted(self.viewer.roles)


def viewer(context: Context) -> ViewerRow:
    """Whoever asks."""
    return ViewerRow(context.viewer)


async def users_of_viewers(context: Context, viewers: Sequence[ViewerRow]) -> list[User | None]:
    """The account of each viewer."""
    return await context.many(User, [each.viewer.user_id for each in viewers])


async def audit_events_of_viewers(
    context: Context,
    viewers: Sequence[ViewerRow],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[AuditEvent]]:
    """The acts that each viewer may read, newest first."""
    async with context.reading() as reading:
        acts = await service.list_acts(reading, context.viewer, page)
    return [acts for _ in viewers]
