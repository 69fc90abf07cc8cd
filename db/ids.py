"""Identifiers: the one registry of prefixes, making new ids and reading given ones.

An id is `{prefix}_{body}`. The body is a ULID in tables of the soul-mirror specification and a UUID
in tables of the Aventuras specification. Rows of a branch are named `{branch id}:{row id}` outside.
Source: glossary, section 12.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from enum import Enum

from ulid import ULID
from uuid_utils import uuid7


class Body(Enum):
    """What stands behind the prefix."""

    ULID = "ulid"
    UUID = "uuid"


@dataclass(frozen=True, slots=True)
class Prefix:
    """One line of the registry."""

    text: str
    table: str
    body: Body
    in_branch: bool = False


@dataclass(frozen=True, slots=True)
class ParsedId:
    """A well-formed id: its table, the row's own id, and the branch of a row that has one."""

    table: str
    row_id: str
    branch_id: str | None = None

    @property
    def id(self) -> str:
        """The id in full, as it was sent."""
        return self.row_id if self.branch_id is None else f"{self.branch_id}:{self.row_id}"


class MalformedId(ValueError):
    """The text is no id of this server; the message says what is wrong."""


_ULID_TABLES = {
    # accounts
    "user": "users",
    "cred": "credentials",
    "sess": "login_sessions",
    "dom": "domains",
    "role": "roles",
    "rasg": "role_grants",
    "perm": "permissions",
    "pref": "preferences",
    "sett": "settings",
    "audit": "audit_events",
    "idem": "idempotency",
    "obx": "outbox",
    # characters
    "soul": "characters",
    "embryo": "embryo_drafts",
    "cust": "custodianships",
    "seat": "runtime_seats",
    "idr": "identity_records",
    "idv": "identity_record_versions",
    "fanc": "form_anchors",
    "form": "forms",
    "voice": "voice_profiles",
    # mirrors
    "tree": "mirror_trees",
    "node": "tree_nodes",
    "cite": "citations",
    "canon": "canonizations",
    "graft": "tree_transplants",
    # memories
    "mem": "memories",
    "mtrg": "memory_triggers",
    "mvec": "memory_embeddings",
    "frec": "factual_records",
    # covenants
    "cov": "covenants",
    "cevt": "covenant_events",
    # worlds
    "world": "persistent_worlds",
    "went": "world_entities",
    "wrel": "world_relations",
    "wmrg": "world_merges",
    "cast": "castings",
    # lorebooks
    "lbk": "lorebooks",
    "lbe": "lorebook_entries",
    # runs
    "revt": "run_events",
    # capabilities
    "cap": "capabilities",
    "mand": "mandates",
    "conf": "confirmations",
    "tcall": "tool_calls",
    "evd": "evidence",
    "mcp": "mcp_servers",
    "skill": "skills",
    "dev": "devices",
    "dgr": "device_grants",
    # prompts
    "persona": "user_personas",
    "preset": "generation_presets",
    "itpl": "instruct_templates",
    "qr": "quick_replies",
    "anote": "author_notes",
    # transfers
    "ijob": "import_jobs",
    "iitem": "import_items",
    "export": "exports",
}

_UUID_TABLES = {
    "story": "stories",
    "br": "branches",
    "run": "runs",
    "act": "actions",
    "prof": "profiles",
    "prov": "providers",
    "pack": "vault_packs",
    "cal": "vault_calendars",
    "scen": "vault_scenarios",
    "tmpl": "vault_character_templates",
    "asset": "assets",
}

_BRANCH_TABLES = {
    "entry": "story_entries",
    "chap": "chapters",
    "era": "branch_era_flips",
    "dlt": "deltas",
    "char": "entities",
    "loc": "entities",
    "item": "entities",
    "fact": "entities",
    "rel": "character_relationships",
    "lore": "lore",
    "thr": "threads",
    "hap": "happenings",
    "hinv": "happening_involvements",
    "haw": "happening_awareness",
    "tr": "translations",
    "evec": "embeddings",
    "probe": "probe_captures",
    "ast": "entry_assets",
}

PREFIXES: dict[str, Prefix] = {
    **{text: Prefix(text, table, Body.ULID) for text, table in _ULID_TABLES.items()},
    **{text: Prefix(text, table, Body.UUID) for text, table in _UUID_TABLES.items()},
    **{text: Prefix(text, table, Body.UUID, True) for text, table in _BRANCH_TABLES.items()},
}

_PREFIXES_OF_TABLE: dict[str, list[Prefix]] = {}
for _prefix in PREFIXES.values():
    _PREFIXES_OF_TABLE.setdefault(_prefix.table, []).append(_prefix)

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def new_id(table: str, prefix: str | None = None) -> str:
    """A fresh id for a row of `table`; `prefix` chooses where a table has several (entities)."""
    choices = _PREFIXES_OF_TABLE[table]
    if prefix is not None:
        choices = [each for each in choices if each.text == prefix]
    (chosen,) = choices
    body = str(ULID()) if chosen.body is Body.ULID else str(uuid7())
    return f"{chosen.text}_{body}"


def parse_id(text: str) -> ParsedId:
    """Read an id as clients send it; raises MalformedId."""
    branch_text, colon, row_text = text.rpartition(":")
    prefix, row_id = _parse_single(row_text)
    if colon:
        branch, branch_id = _parse_single(branch_text)
        if branch.table != "branches" or not prefix.in_branch:
            raise MalformedId("Two ids joined by a colon name a branch and a row of that branch.")
        return ParsedId(prefix.table, row_id, branch_id)
    if prefix.in_branch:
        raise MalformedId(
            f"Rows of {prefix.table} belong to a branch: write its id and a colon first."
        )
    return ParsedId(prefix.table, row_id)


def _parse_single(text: str) -> tuple[Prefix, str]:
    head, underscore, body = text.partition("_")
    prefix = PREFIXES.get(head)
    if not underscore or prefix is None:
        raise MalformedId("An id begins with a known prefix and an underscore, like node_01H….")
    if prefix.body is Body.ULID:
        if not _ULID.fullmatch(body):
            raise MalformedId(f"After {head}_ stands a ULID of 26 upper-case characters.")
        return prefix, text
    try:
        is_canonical = str(uuid.UUID(body)) == body
    except ValueError:
        is_canonical = False
    if not is_canonical:
        raise MalformedId(f"After {head}_ stands a UUID in lower case with hyphens.")
    return prefix, text
