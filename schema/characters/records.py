"""Identity records, as they can be read."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from resolvers import characters as resolve
from schema.base import Connection, Node, field, relation, row_type

if TYPE_CHECKING:
    from schema.characters.rows import Character
    from schema.petitions import Petition

LazyCharacter = Annotated["Character", strawberry.lazy("schema.characters.rows")]
LazyPetition = Annotated["Petition", strawberry.lazy("schema.petitions")]


@row_type
class IdentityRecord(Node):
    """The verifiable history of who a character is."""

    version_no: int = field("Number of the newest version.")
    created_at: datetime = field("When it was begun.")
    character: LazyCharacter | None = relation(resolve.characters_of_records, "Who it is about.")
    current: IdentityRecordVersion | None = relation(
        resolve.current_versions_of_records, "The newest version."
    )
    versions: Connection[IdentityRecordVersion] = relation(
        resolve.versions_of_records, "All versions, newest first."
    )


@row_type
class IdentityRecordVersion(Node):
    """One version of who a character is, signed and chained to the one before; it never changes.

    How to check one without this server: docs/identity.md.
    """

    version_no: int = field("Counts from 1 within the record.")
    digest: str = field("SHA-256 of the package's manifest, in hexadecimal.")
    previous_digest: str | None = field(
        "The digest of the version before; null for the first version."
    )
    signature: str = field("Ed25519 over both digests and the number, in base64.")
    signer: str = field("The public key to check it with, in base64.")
    created_at: datetime = field("When it was issued.")
    is_authentic: bool = relation(
        resolve.authentic_flags_of_versions,
        "Whether it is what this server once signed: its signature, its link to the version "
        "before and its package, computed anew from what is stored.",
    )
    package: JSON | None = relation(
        resolve.packages_of_versions,
        "What it states: a manifest, and the sections identity, data and runtime_state; null when "
        "it was erased.",
    )
    petition: LazyPetition | None = relation(
        resolve.petitions_of_versions, "The approved act behind it; null for the first version."
    )
    record: IdentityRecord | None = relation(resolve.records_of_versions, "Whose version it is.")
