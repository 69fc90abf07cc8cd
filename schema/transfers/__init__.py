"""Transfers: cards and lorebooks that come in, and files that go out."""

from __future__ import annotations

import strawberry

from resolvers import transfers as resolve
from schema.base import Connection, root_list
from schema.transfers.changes import TransferMutation
from schema.transfers.rows import ImportItem, ImportJob

__all__ = ["ImportItem", "ImportJob", "TransferMutation", "TransferQuery"]


@strawberry.type
class TransferQuery:
    """Root fields about imports."""

    import_jobs: Connection[ImportJob] = root_list(
        resolve.list_imports, "The viewer's imports, newest first."
    )
