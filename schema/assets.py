"""Files of users, and the entries that show them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import AssetKind
from resolvers import assets as resolve
from schema.base import (
    Connection,
    Node,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    root_list,
    root_row,
    row_type,
)
from schema.branch_rows import EXPECTED_HEAD, BranchNode
from schema.wire.uploads import Upload

if TYPE_CHECKING:
    from schema.stories.entries import StoryEntry
    from schema.stories.rows import Branch

LazyEntry = Annotated["StoryEntry", strawberry.lazy("schema.stories.entries")]
LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]

enum(
    AssetKind,
    IMAGE="A picture.",
    AUDIO="Sound.",
    FILE="Any other file.",
)


@row_type
class Asset(Node):
    """A file, stored once for its owner whatever shows it."""

    kind: AssetKind = field("What it is.")
    mime_type: str = field("Its media type, told by its bytes; markup is text/plain.")
    size_bytes: int = field("How large it is.")
    content_hash: str = field("The SHA-256 of its bytes in hexadecimal.")
    url: str = field("Where its owner can download it, on this server.")
    created_at: datetime = field("When it was uploaded.")
    pending_delete_at: datetime | None = field(
        "Since when nothing shows it: some days later it is deleted. Null while something does."
    )


@row_type
class EntryAsset(BranchNode):
    """That an entry shows a file."""

    role: str = field("What for, in free words: generated_image, background, reference.")
    position: int = field("The order within the entry; equal ones by their ids.")
    entry: LazyEntry | None = relation(resolve.entries_of_links, "The entry that shows it.")
    asset: Asset | None = relation(
        resolve.assets_of_links, "The file; null where it was deleted before an undo."
    )


@strawberry.type
class AssetQuery:
    """Root fields about files."""

    asset: Asset | None = root_row(resolve.asset_by_id, "One file.")
    assets: Connection[Asset] = root_list(resolve.list_assets, "The viewer's files, newest first.")


@described_input
class AssetUploadInput:
    """A file to take in."""

    file: Upload = field("The file. What the client calls its type is not looked at.")
    kind: AssetKind | None = field(
        "FILE for a file that shall count as nothing else; otherwise its bytes say it.",
        default=None,
    )


@described
class AssetUploadPayload(Payload):
    """What became of it."""

    asset: Asset | None = field("The file: an older one of the viewer's with the same content.")


@described_input
class AssetDeleteInput:
    """A file to delete."""

    asset_id: strawberry.ID = field("The file.")


@described
class AssetDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the file.")


@described_input
class EntryAssetAttachInput:
    """A file that an entry shall show."""

    entry_id: strawberry.ID = field("The entry.")
    asset_id: strawberry.ID = field("The file.")
    role: str = field("What for, in free words: generated_image, background, reference.")
    position: int | None = field(
        "Its place in the order within the entry, from 0; behind all others unless given.",
        default=None,
    )
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntryAssetAttachPayload(Payload):
    """The link."""

    entry_asset: EntryAsset | None = field("What ties the two.")
    branch: LazyBranch | None = field("The branch, with its new head.")


@described_input
class EntryAssetDetachInput:
    """What an entry shall show no longer."""

    entry_asset_id: strawberry.ID = field("What ties the file to the entry.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntryAssetDetachPayload(Payload):
    """What was taken off."""

    deleted_id: strawberry.ID | None = field("Id of what tied the two.")
    branch: LazyBranch | None = field("The branch, with its new head.")


@strawberry.type
class AssetMutation:
    """Changes to files, and to what shows them."""

    asset_upload: AssetUploadPayload = mutation(
        resolve.upload_asset,
        input=AssetUploadInput,
        payload=AssetUploadPayload,
        description="Take a file in. It is deleted after some days in which nothing shows it.",
    )
    asset_delete: AssetDeletePayload = mutation(
        resolve.delete_asset,
        input=AssetDeleteInput,
        payload=AssetDeletePayload,
        description="Delete a file that nothing shows, at once.",
    )
    entry_asset_attach: EntryAssetAttachPayload = mutation(
        resolve.attach_asset,
        input=EntryAssetAttachInput,
        payload=EntryAssetAttachPayload,
        description="Have an entry show a file.",
    )
    entry_asset_detach: EntryAssetDetachPayload = mutation(
        resolve.detach_asset,
        input=EntryAssetDetachInput,
        payload=EntryAssetDetachPayload,
        description="Take a file off its entry.",
    )
