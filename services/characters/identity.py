"""Identity records: who a character is, in signed versions that are chained to each other.

A version is issued when a character is activated and whenever its baseline changes. What is
private lies in its package, which erasure removes; the version itself holds digests and stays.
Source: spec soul-mirror, sections 0 and 1; glossary, sections 4 and 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Integer, and_, exists, func, literal, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.engine import IDENTITY_KEY, secret_key
from db.enums import CharacterStatus, ExportFormat, IdentitySection
from db.ids import new_id
from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import (
    Character,
    Export,
    IdentityPackage,
    IdentityRecord,
    IdentityRecordVersion,
    Petition,
)
from services.access import ANONYMOUS, Viewer, require_row, visible
from services.characters.sections import sections_of, written
from services.characters.signing import (
    Signer,
    canonical_json,
    digest_of,
    is_package_of,
    is_signed_by,
    package_of,
    signed_message,
)
from services.errors import Conflict, Invalid
from services.exports import safe_file_name, store_export

# Records that one step of the chore issues.
_STEP = 20

VERSIONS_OF_RECORDS = PagedList(
    "versions_of_records",
    IdentityRecordVersion,
    parent=col(IdentityRecordVersion.identity_record_id),
    sort=[SortKey(col(IdentityRecordVersion.version_no), is_descending=True)],
    where=lambda: visible(IdentityRecordVersion),
)


async def issue_identity_record(
    writing: Writing, viewer: Viewer, character: Character, petition: Petition | None
) -> IdentityRecordVersion:
    """The next version of a character's identity record, which is made where there is none.

    `character` is its row as it is from now on; `petition` is the confirmed act behind the version,
    None for the first one. Two at once get numbers one after the other.
    """
    record = await writing.first(
        _raise_version(), id=new_id("identity_records"), character_id=character.id
    )
    assert record is not None
    previous_digest = await writing.value(
        _digest_of_version(), record_id=record.id, before=record.version_no
    )
    petition_id = None if petition is None else petition.id
    sections = await sections_of(writing, character)
    package = package_of(
        sections,
        record_id=record.id,
        version_no=record.version_no,
        character_id=character.id,
        petition_id=petition_id,
        issued_at=written(await writing.value(_now())),
    )
    digest = digest_of(package["manifest"])
    signer = Signer(await secret_key(writing, IDENTITY_KEY))
    version = await writing.insert(
        IdentityRecordVersion,
        identity_record_id=record.id,
        version_no=record.version_no,
        digest=digest,
        previous_digest=previous_digest,
        signed_digest=signer.sign(
            signed_message(record.id, record.version_no, digest, previous_digest)
        ),
        signer=signer.public_key,
        petition_id=petition_id,
    )
    await writing.insert_many(IdentityPackage, [{"version_id": version.id, "package": package}])
    return version


async def issue_missing_records(writing: Writing) -> int:
    """Issue the first version for characters that were activated before there were records, some
    at a time; how many there were.
    """
    characters = await writing.all(_without_record())
    for character in characters:
        await issue_identity_record(writing, ANONYMOUS, character, None)
    return len(characters)


async def identity_signer(reading: Reading, viewer: Viewer) -> str:
    """The public key of this server's identity records, base64; every viewer may have it."""
    return Signer(await secret_key(reading, IDENTITY_KEY)).public_key


async def records_of_characters(
    reading: Reading, viewer: Viewer, character_ids: Sequence[str]
) -> dict[str, IdentityRecord]:
    """The identity record of each character, by the character's id."""
    rows = await reading.all(
        _records_of_characters(), character_ids=list(character_ids), **viewer.parameters
    )
    return {row.character_id: row for row in rows}


async def current_versions(
    reading: Reading, viewer: Viewer, record_ids: Sequence[str]
) -> dict[str, IdentityRecordVersion]:
    """The newest version of each record, by the record's id."""
    rows = await reading.all(_current_versions(), record_ids=list(record_ids), **viewer.parameters)
    return {row.identity_record_id: row for row in rows}


async def packages_of_versions(
    reading: Reading, viewer: Viewer, version_ids: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The package of each version, by the version's id; erased ones are missing."""
    rows: list[Any] = await reading.all(
        _packages_of_versions(), version_ids=list(version_ids), **viewer.parameters
    )
    return {row.version_id: row.package for row in rows}


async def authentic_versions(
    reading: Reading, viewer: Viewer, version_ids: Sequence[str]
) -> set[str]:
    """Those of the versions that are what this server once signed, recomputed from what is stored:
    signature, link to the version before, and package. An erased package is not missed.
    """
    signer = await identity_signer(reading, viewer)
    rows: list[Any] = await reading.all(
        _evidence(), version_ids=list(version_ids), **viewer.parameters
    )
    return {row.id for row in rows if _is_authentic(row, signer)}


def _is_authentic(row: Any, signer: str) -> bool:
    message = signed_message(
        row.identity_record_id, row.version_no, row.digest, row.previous_digest
    )
    is_linked = (row.previous_digest is None) == (row.version_no == 1)
    return (
        is_linked
        and row.previous_digest == row.digest_before
        and row.signer == signer
        and is_signed_by(signer, row.signed_digest, message)
        and (
            not row.has_package
            or is_package_of(
                row.digest,
                row.package,
                record_id=row.identity_record_id,
                version_no=row.version_no,
                character_id=row.character_id,
                petition_id=row.petition_id,
            )
        )
    )


async def export_identity(
    writing: Writing, viewer: Viewer, character_id: str, sections: Sequence[IdentitySection]
) -> Export:
    """A file of the newest version of an identity record with the sections that are asked for. The
    manifest states the digests of all, so the file can be checked without the others.

    Raises NotFound, Invalid (SECTIONS_EMPTY) and Conflict (IDENTITY_ERASED, NO_IDENTITY_RECORD).
    """
    if not sections:
        raise Invalid("Name at least one section.", "SECTIONS_EMPTY", ("input", "sections"))
    path = ("input", "characterId")
    character = await require_row(writing, viewer, Character, character_id, *path)
    record = (await records_of_characters(writing, viewer, [character.id])).get(character.id)
    if record is None:
        raise Conflict(
            "This character has no identity record yet: try again later.",
            "NO_IDENTITY_RECORD",
            path,
        )
    version = (await current_versions(writing, viewer, [record.id]))[record.id]
    package = (await packages_of_versions(writing, viewer, [version.id])).get(version.id)
    if package is None:
        raise Conflict("The package was erased with the character.", "IDENTITY_ERASED", path)
    wanted = {each.value: package["sections"][each.value] for each in sections}
    content = {
        "manifest": package["manifest"],
        "sections": wanted,
        "digest": version.digest,
        "previous_digest": version.previous_digest,
        "signature": version.signed_digest,
        "signer": version.signer,
    }
    return await store_export(
        writing,
        viewer,
        character.id,
        ExportFormat.IDENTITY_PACKAGE,
        safe_file_name(character.name, f"identity-{version.version_no}.json"),
        "application/json",
        canonical_json(content),
    )


@statement(object)
def _now() -> Any:
    return select(func.clock_timestamp())


@statement(IdentityRecord)
def _raise_version() -> Any:
    fresh = insert(IdentityRecord).values(
        id=param("id"), character_id=param("character_id"), version_no=literal(1)
    )
    return fresh.on_conflict_do_update(
        index_elements=["character_id"], set_={"version_no": col(IdentityRecord.version_no) + 1}
    ).returning(*columns(IdentityRecord))


@statement(IdentityRecordVersion)
def _digest_of_version() -> Any:
    return select(col(IdentityRecordVersion.digest)).where(
        col(IdentityRecordVersion.identity_record_id) == param("record_id"),
        col(IdentityRecordVersion.version_no) == param("before", Integer()) - 1,
    )


@statement(Character)
def _without_record() -> Any:
    return (
        select(*columns(Character))
        .where(
            col(Character.status) != CharacterStatus.PURGED.value,
            ~exists(select(1).where(col(IdentityRecord.character_id) == col(Character.id))),
        )
        .order_by(col(Character.id))
        .limit(_STEP)
        .with_for_update(skip_locked=True)
    )


@statement(IdentityRecord)
def _records_of_characters() -> Any:
    return select(*columns(IdentityRecord)).where(
        any_of(IdentityRecord.character_id, "character_ids"), visible(IdentityRecord)
    )


@statement(IdentityRecordVersion)
def _current_versions() -> Any:
    record = aliased(IdentityRecord)
    is_current = and_(
        col(record.id) == col(IdentityRecordVersion.identity_record_id),
        col(record.version_no) == col(IdentityRecordVersion.version_no),
    )
    return (
        select(*columns(IdentityRecordVersion))
        .join(record, is_current)
        .where(
            any_of(IdentityRecordVersion.identity_record_id, "record_ids"),
            visible(IdentityRecordVersion),
        )
    )


@statement(IdentityPackage)
def _packages_of_versions() -> Any:
    return (
        select(*columns(IdentityPackage))
        .join(
            IdentityRecordVersion, col(IdentityRecordVersion.id) == col(IdentityPackage.version_id)
        )
        .where(any_of(IdentityPackage.version_id, "version_ids"), visible(IdentityRecordVersion))
    )


@statement(IdentityRecordVersion)
def _evidence() -> Any:
    """Versions, each with its package, its character, and the digest of the version before."""
    record, before = aliased(IdentityRecord), aliased(IdentityRecordVersion)
    is_before = and_(
        col(before.identity_record_id) == col(IdentityRecordVersion.identity_record_id),
        col(before.version_no) == col(IdentityRecordVersion.version_no) - 1,
    )
    return (
        select(
            *columns(IdentityRecordVersion),
            col(record.character_id),
            col(before.digest).label("digest_before"),
            col(IdentityPackage.package).label("package"),
            col(IdentityPackage.version_id).is_not(None).label("has_package"),
        )
        .join(record, col(record.id) == col(IdentityRecordVersion.identity_record_id))
        .outerjoin(before, is_before)
        .outerjoin(
            IdentityPackage, col(IdentityPackage.version_id) == col(IdentityRecordVersion.id)
        )
        .where(any_of(IdentityRecordVersion.id, "version_ids"), visible(IdentityRecordVersion))
    )
