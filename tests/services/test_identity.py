"""Identity records: versions that can be checked, by this server and by anybody."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import orjson
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from db.engine import IDENTITY_KEY, Database, secret_key
from db.enums import IdentitySection, Realm
from db.tables import Character, IdentityRecordVersion
from services import characters, mirrors
from services.characters import signing
from services.errors import Conflict, Invalid
from services.exports import find_export
from tests.conftest import People
from tests.factories import make_answer, make_tree
from tests.services.identities import (
    authentic,
    bare,
    everything,
    forged,
    made,
    packages_of,
    versions_of,
)

ALL_SECTIONS = list(IdentitySection)


# --- issuing --------------------------------------------------------------------------------------


async def test_activation_issues_the_first_version(database: Database, people: People) -> None:
    """Rules N1, N2."""
    character = await made(database, people.owner)
    (version,) = await versions_of(database, people.owner, character)
    assert (version.version_no, version.previous_digest, version.petition_id) == (1, None, None)
    (package,) = await packages_of(database, people.owner, character)
    manifest, sections = package["manifest"], package["sections"]
    assert {
        key: value for key, value in manifest.items() if key not in ("issued_at", "sections")
    } == {
        "format": "mirrorgraph-identity-record/1",
        "record_id": version.identity_record_id,
        "version_no": 1,
        "character_id": character.id,
        "petition_id": None,
    }
    assert list(sections) == ["data", "identity", "runtime_state"]
    salts = {section.pop("salt") for section in sections.values()}
    assert {len(salt) for salt in salts} == {32}
    assert len(salts) == 3
    assert sections["identity"].pop("activated_at") == character.created_at.isoformat(
        timespec="microseconds"
    )
    custody_since = datetime.fromisoformat(sections["identity"].pop("custody_since"))
    assert custody_since >= character.created_at
    assert sections["identity"] == {
        "name": "Ada",
        "origin": "original",
        "baseline": character.identity_baseline,
    }
    references = sections["data"]["references"]
    assert references.pop("embryo_draft") == character.embryo_draft_id
    assert references.pop("custodianship").startswith("cust_")
    assert references.pop("runtime_seat").startswith("seat_")
    assert sections["data"] == {
        "counts": {
            "mirror_trees": 0,
            "tree_nodes": 0,
            "canonizations": 0,
            "lorebooks": 0,
            "forms": 0,
            "voice_profiles": 0,
        },
        "references": {"form_anchor": None, "primary_form": None},
    }
    assert sections["runtime_state"] == {"status": "active", "version": 1, "seat_epoch": 1}
    assert await authentic(database, people.owner, character) == [True]


async def test_the_data_section_counts_what_there_is(database: Database, people: People) -> None:
    """Rule N2."""
    character = await made(database, people.owner)
    async with database.writing() as writing:
        for index in range(2):
            tree = await make_tree(writing, people.owner, character, f"Topic {index}")
            question = await mirrors.add_question(writing, people.owner, tree.id, None, "Well?")
            answer = await make_answer(writing, question)
        await mirrors.canonize_path(writing, people.owner, answer.id, Realm.REALITY)
        await make_tree(writing, people.owner)  # with another character
    await forged(database, people.owner, character, {"personality": "calm"})
    package = (await packages_of(database, people.owner, character))[-1]
    assert package["sections"]["data"]["counts"] == {
        "mirror_trees": 2,
        "tree_nodes": 4,
        "canonizations": 1,
        "lorebooks": 0,
        "forms": 0,
        "voice_profiles": 0,
    }


async def test_a_character_from_before_there_were_records_gets_one(
    database: Database, people: People
) -> None:
    """Rule N1."""
    character = await made(database, people.owner)
    async with database.writing() as writing:
        await writing._connection.execute("SET session_replication_role = replica")
        for table in ("identity_packages", "identity_record_versions", "identity_records"):
            await writing._connection.execute(f"DELETE FROM {table}")
        await writing._connection.execute("SET session_replication_role = origin")
    async with database.reading() as reading:
        assert await characters.records_of_characters(reading, people.owner, [character.id]) == {}
    with pytest.raises(Conflict) as refused:
        async with database.writing() as writing:
            await characters.export_identity(writing, people.owner, character.id, ALL_SECTIONS)
    assert refused.value.code == "NO_IDENTITY_RECORD"
    async with database.writing() as writing:
        assert await characters.issue_missing_records(writing) == 1
        assert await characters.issue_missing_records(writing) == 0
    assert await authentic(database, people.owner, character) == [True]


async def test_versions_that_are_issued_at_once_stand_in_one_chain(
    database: Database, people: People
) -> None:
    """Rule N1."""
    character = await made(database, people.owner)

    async def issue() -> None:
        async with database.writing() as writing:
            await characters.issue_identity_record(writing, people.owner, character, None)

    await asyncio.gather(*(issue() for _ in range(4)))
    versions = await versions_of(database, people.owner, character)
    assert [each.version_no for each in versions] == [1, 2, 3, 4, 5]
    assert [each.previous_digest for each in versions[1:]] == [
        each.digest for each in versions[:-1]
    ]
    assert await authentic(database, people.owner, character) == [True] * 5


# --- checking -------------------------------------------------------------------------------------


@dataclass
class Intruder:
    """Somebody with SQL, and what they know of a character's newest version."""

    connection: Any
    version: IdentityRecordVersion
    package: dict[str, Any]
    seed: bytes

    async def replace_package(self, package: Any) -> None:
        await self.connection.execute(
            "UPDATE identity_packages SET package_json = $2 WHERE version_id = $1",
            self.version.id,
            orjson.dumps(package).decode(),
        )

    async def add_version(self, *, seed: bytes | None = None, **changed: Any) -> None:
        """A further version, signed with `seed` where it is given, else with the server's own key;
        `changed` are columns that are not as they should be.
        """
        signer = signing.Signer(seed or self.seed)
        facts = {**self.package["manifest"], "version_no": self.version.version_no + 1}
        del facts["format"], facts["sections"]
        package = signing.package_of(self.package["sections"], **facts)
        row = {
            "id": "idv_01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "identity_record_id": self.version.identity_record_id,
            "version_no": facts["version_no"],
            "digest": signing.digest_of(package["manifest"]),
            "previous_digest": self.version.digest,
            "petition_id": None,
            "signer": signer.public_key,
            **changed,
        }
        row.setdefault(
            "signed_digest",
            signer.sign(
                signing.signed_message(
                    row["identity_record_id"],
                    row["version_no"],
                    row["digest"],
                    row["previous_digest"],
                )
            ),
        )
        await self.connection.execute(
            f"INSERT INTO identity_record_versions ({', '.join(row)})"
            f" VALUES ({', '.join(f'${place}' for place in range(1, len(row) + 1))})",
            *row.values(),
        )
        await self.connection.execute(
            "INSERT INTO identity_packages VALUES ($1, $2)",
            row["id"],
            orjson.dumps(package).decode(),
        )


@pytest.fixture
async def attacked(database: Database, people: People) -> AsyncIterator[tuple[Character, Intruder]]:
    """A character with two versions, and an intruder."""
    character = await made(database, people.owner)
    await forged(database, people.owner, character, {"personality": "calm"})
    *_, version = await versions_of(database, people.owner, character)
    *_, package = await packages_of(database, people.owner, character)
    async with database.reading() as reading:
        seed = await secret_key(reading, IDENTITY_KEY)
    async with bare(database) as connection:
        yield character, Intruder(connection, version, package, seed)


def with_section(package: dict[str, Any], section: str, **changed: Any) -> dict[str, Any]:
    sections = {**package["sections"], section: {**package["sections"][section], **changed}}
    return {**package, "sections": sections}


TAMPERED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a name": lambda package: with_section(package, "identity", name="Eve"),
    "a baseline": lambda package: with_section(package, "identity", baseline={}),
    "a count": lambda package: with_section(package, "data", counts={}),
    "a status": lambda package: with_section(package, "runtime_state", status="purged"),
    "a salt": lambda package: with_section(package, "data", salt=""),
    "a section with a new digest": lambda package: signing.package_of(
        with_section(package, "identity", name="Eve")["sections"],
        **{k: v for k, v in package["manifest"].items() if k not in ("format", "sections")},
    ),
    "another section": lambda package: {
        **package,
        "sections": {**package["sections"], "more": {}},
    },
    "a section less": lambda package: {
        **package,
        "sections": {k: v for k, v in package["sections"].items() if k != "data"},
    },
    "no manifest": lambda package: {"sections": package["sections"]},
    "no sections": lambda package: {"manifest": package["manifest"]},
    "another manifest": lambda package: {**package, "manifest": {"sections": {}}},
    "nothing": lambda package: None,
    "a text": lambda package: "package",
    "a list": lambda package: [package],
}


@pytest.mark.parametrize("what", TAMPERED)
async def test_a_package_that_was_tampered_with_is_not_authentic(
    database: Database, people: People, attacked: tuple[Character, Intruder], what: str
) -> None:
    """Rule N3."""
    character, intruder = attacked
    await intruder.replace_package(TAMPERED[what](intruder.package))
    assert await authentic(database, people.owner, character) == [True, False]
    await intruder.replace_package(intruder.package)
    assert await authentic(database, people.owner, character) == [True, True]


async def test_a_version_that_the_key_made_is_authentic(
    database: Database, people: People, attacked: tuple[Character, Intruder]
) -> None:
    """Whoever has the key can do this: what follows fails for its own reason alone."""
    character, intruder = attacked
    facts = intruder.package["manifest"]["petition_id"]
    await intruder.add_version(petition_id=facts)
    assert await authentic(database, people.owner, character) == [True, True, True]


FORGED: dict[str, Callable[[Intruder], dict[str, Any]]] = {
    "another digest": lambda _: {"digest": hashlib.sha256(b"").hexdigest()},
    "a chain that is broken": lambda _: {"previous_digest": hashlib.sha256(b"").hexdigest()},
    "a chain that begins anew": lambda _: {"previous_digest": None},
    "a gap in the numbers": lambda _: {"version_no": 9},
    "no petition": lambda _: {"petition_id": None},
    "another key": lambda _: {"seed": bytes(32)},
    "another key under the server's name": lambda intruder: {
        "seed": bytes(32),
        "signer": signing.Signer(intruder.seed).public_key,
    },
    "an older signature": lambda intruder: {"signed_digest": intruder.version.signed_digest},
    "no signature": lambda _: {"signed_digest": ""},
    "a signature that is none": lambda _: {"signed_digest": "signed!"},
    "a key that is none": lambda _: {"signer": "key"},
}


@pytest.mark.parametrize("what", FORGED)
async def test_a_version_that_was_forged_is_not_authentic(
    database: Database, people: People, attacked: tuple[Character, Intruder], what: str
) -> None:
    """Rule N3."""
    character, intruder = attacked
    petition_id = intruder.package["manifest"]["petition_id"]
    await intruder.add_version(**{"petition_id": petition_id, **FORGED[what](intruder)})
    assert await authentic(database, people.owner, character) == [True, True, False]


@pytest.mark.parametrize(
    "change",
    ["UPDATE identity_record_versions SET digest = ''", "DELETE FROM identity_record_versions"],
)
async def test_the_database_refuses_to_change_a_version(
    attacked: tuple[Character, Intruder], change: str
) -> None:
    """Rule N1."""
    with pytest.raises(asyncpg.PostgresError) as refused:
        await attacked[1].connection.execute(change)
    assert refused.value.sqlstate == "MG001"


async def test_a_version_whose_package_was_erased_keeps_its_place(
    database: Database, people: People, attacked: tuple[Character, Intruder]
) -> None:
    """Rule N4."""
    character, intruder = attacked
    await intruder.connection.execute("DELETE FROM identity_packages")
    assert await packages_of(database, people.owner, character) == [None, None]
    assert await authentic(database, people.owner, character) == [True, True]
    before = await everything(database)
    with pytest.raises(Conflict) as refused:
        async with database.writing() as writing:
            await characters.export_identity(writing, people.owner, character.id, ALL_SECTIONS)
    assert (refused.value.code, refused.value.path) == (
        "IDENTITY_ERASED",
        ("input", "characterId"),
    )
    assert await everything(database) == before


async def test_records_are_seen_by_the_custodian_alone(database: Database, people: People) -> None:
    character = await made(database, people.owner)
    (version,) = await versions_of(database, people.owner, character)
    for viewer in (people.stranger, people.anonymous):
        async with database.reading() as reading:
            assert await characters.records_of_characters(reading, viewer, [character.id]) == {}
            assert (
                await characters.current_versions(reading, viewer, [version.identity_record_id])
                == {}
            )
            assert await characters.packages_of_versions(reading, viewer, [version.id]) == {}
            assert await characters.authentic_versions(reading, viewer, [version.id]) == set()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(json_values)
def test_canonical_json_is_what_the_standard_library_writes(value: Any) -> None:
    """Rule N2."""
    try:
        written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        expected = written.encode()
    except UnicodeEncodeError:
        return  # half of a surrogate pair, which is refused at every entrance
    assert signing.canonical_json(value) == expected
    assert json.loads(expected) == value


@given(json_values, json_values)
def test_equal_values_have_equal_digests_and_others_have_not(one: Any, other: Any) -> None:
    """Rule N2."""
    try:
        digests = [signing.digest_of(each) for each in (one, other)]
    except TypeError:
        return
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (digests[0] == digests[1]) == same


# --- exports --------------------------------------------------------------------------------------


def check_file(content: bytes) -> dict[str, Any]:
    """What docs/identity.md says, with nothing but the standard library and `cryptography`."""

    def digest(value: Any) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    file: dict[str, Any] = json.loads(content)
    manifest = file["manifest"]
    assert digest(manifest) == file["digest"]
    for name, section in file["sections"].items():
        assert digest(section) == manifest["sections"][name]
    lines = [
        "mirrorgraph-identity-record/1",
        manifest["record_id"],
        str(manifest["version_no"]),
        file["digest"],
        file["previous_digest"] or "-",
    ]
    message = "".join(line + "\n" for line in lines).encode("ascii")
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(file["signer"]))
    key.verify(base64.b64decode(file["signature"]), message)
    return file


@pytest.mark.parametrize(
    "sections",
    [
        ALL_SECTIONS,
        [IdentitySection.IDENTITY],
        [IdentitySection.DATA, IdentitySection.RUNTIME_STATE],
    ],
    ids=["all", "identity", "without identity"],
)
async def test_a_file_can_be_checked_by_anybody(
    database: Database, people: People, sections: list[IdentitySection]
) -> None:
    """Rules N2, N5."""
    character = await made(database, people.owner, "魂镜")
    await forged(database, people.owner, character, {"personality": "calm \u2028 \x7f \U0001f600"})
    async with database.writing() as writing:
        export = await characters.export_identity(writing, people.owner, character.id, sections)
        found = await find_export(writing, people.owner, export.id)
        signer = await characters.identity_signer(writing, people.anonymous)
    assert found is not None
    _, content = found
    assert (export.format, export.file_name, export.media_type, export.subject_ref) == (
        "identity_package",
        "魂镜.identity-2.json",
        "application/json",
        character.id,
    )
    file = check_file(content)
    assert file["signer"] == signer
    assert set(file["sections"]) == {each.value for each in sections}
    assert set(file["manifest"]["sections"]) == {"identity", "data", "runtime_state"}
    assert file["manifest"]["version_no"] == 2
    if IdentitySection.IDENTITY not in sections:
        assert "魂镜".encode() not in content
    # What was changed in it is noticed.
    for place in ("digest", "signature", "previous_digest"):
        other = {**file, place: file[place][::-1]}
        with pytest.raises((AssertionError, InvalidSignature, ValueError)):
            check_file(json.dumps(other).encode())


async def test_an_export_names_a_section(database: Database, people: People) -> None:
    """Rule N5."""
    character = await made(database, people.owner)
    before = await everything(database)
    with pytest.raises(Invalid) as refused:
        async with database.writing() as writing:
            await characters.export_identity(writing, people.owner, character.id, [])
    assert (refused.value.code, refused.value.path) == ("SECTIONS_EMPTY", ("input", "sections"))
    assert await everything(database) == before


async def test_the_key_is_one_for_all_servers_and_stays_secret(
    database: Database, people: People, dsn: str
) -> None:
    """Rule N6."""
    character = await made(database, people.owner)
    (version,) = await versions_of(database, people.owner, character)
    async with database.reading() as reading:
        seed = await secret_key(reading, IDENTITY_KEY)
        signer = await characters.identity_signer(reading, people.anonymous)
    assert len(seed) == 32
    assert version.signer == signer == signing.Signer(seed).public_key
    await database.load_secrets()
    async with database.reading() as reading:
        assert await secret_key(reading, IDENTITY_KEY) == seed
    async with database.writing() as writing:
        export = await characters.export_identity(writing, people.owner, character.id, ALL_SECTIONS)
        found = await find_export(writing, people.owner, export.id)
    assert found is not None
    shown = repr(signing.Signer(seed)).encode() + found[1]
    for secret in (seed, seed.hex().encode(), base64.b64encode(seed)):
        assert secret not in shown
