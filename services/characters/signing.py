"""How an identity record is digested, signed and checked. Pure: it knows neither rows nor viewers.

docs/identity.md states the same for whoever checks a record without this server.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT = "mirrorgraph-identity-record/1"


def canonical_json(value: Any) -> bytes:
    """The one way to write a value: keys sorted, no blanks, UTF-8 unescaped.

    For what packages hold (keys in ASCII, texts, whole numbers) this is RFC 8785.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical JSON, in lower-case hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def signed_message(
    record_id: str, version_no: int, digest: str, previous_digest: str | None
) -> bytes:
    """What is signed of a version: five lines in ASCII."""
    lines = [FORMAT, record_id, str(version_no), digest, previous_digest or "-"]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


class Signer:
    """The server's Ed25519 key; `seed` are its 32 secret bytes, of which nothing is shown."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @property
    def public_key(self) -> str:
        """The public key's 32 bytes in base64."""
        return base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, message: bytes) -> str:
        """The signature in base64."""
        return base64.b64encode(self._key.sign(message)).decode()


def is_signed_by(public_key: str, signature: str, message: bytes) -> bool:
    """Whether the signature is that key's for that message; False for what is neither."""
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        key.verify(base64.b64decode(signature, validate=True), message)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def package_of(
    sections: Mapping[str, Mapping[str, Any]], **facts: str | int | None
) -> dict[str, Any]:
    """A package: the sections, and a manifest that holds the digest of each beside `facts`."""
    digests = {name: digest_of(section) for name, section in sections.items()}
    return {"manifest": {"format": FORMAT, **facts, "sections": digests}, "sections": sections}


def is_package_of(digest: str, package: Any, **facts: str | int | None) -> bool:
    """Whether a package, as it is stored, has that digest and states these facts, and whether all
    of its sections have the digests that its manifest states.
    """
    match package:
        case {"manifest": {"sections": dict(digests)} as manifest, "sections": dict(sections)}:
            return (
                digest_of(manifest) == digest
                and manifest == {**manifest, "format": FORMAT, **facts}
                and digests == {name: digest_of(section) for name, section in sections.items()}
            )
    return False
