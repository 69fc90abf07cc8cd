"""Brings the JSON object of a V1, V2 or V3 card into the one V3-shaped form.

Which keys the form has is told at `Card`. How single values are mended is in `values`.
"""

from __future__ import annotations

from typing import Any

from services.cards import values
from services.cards.card import Findings
from services.cards.other_shapes import OLD_NAMES, fill_from_old_names
from services.cards.refusals import MAX_GREETINGS, refusal

TEXTS = (
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "creator",
    "character_version",
)
GREETINGS = ("alternate_greetings", "group_only_greetings")
REQUIRED = (*TEXTS, *GREETINGS, "tags", "extensions")
DATES = ("creation_date", "modification_date")
V3_ONLY = (
    "nickname",
    "group_only_greetings",
    "assets",
    "creator_notes_multilingual",
    "source",
    *DATES,
)
KNOWN = frozenset((*REQUIRED, *V3_ONLY, "character_book"))

_SPECS = {"chara_card_v2": "v2", "chara_card_v3": "v3"}
_NEWEST_VERSION = 3.0

ROOT_EXTENSIONS = ("talkativeness", "fav")


def normalise(source: dict[str, Any], found: Findings) -> tuple[str, dict[str, Any]]:
    """Return the card's spec (`v1`, `v2`, `v3`) and its fields; `source` is left as it is.

    Raises `Invalid`: CARD_NAME_MISSING, CARD_TOO_MANY_GREETINGS, NOT_A_CARD (a lorebook).
    (spec: sillytavern cards, rules 4 and 5)
    """
    _refuse_lorebook(source)
    data = source.get("data")
    if isinstance(data, dict) and ("spec" in source or not KNOWN.isdisjoint(data)):
        spec = _spec_of(source, data, found)
        given, prefix = _with_root_copies(source, data, found), "data."
    else:
        if "spec" in source:
            message = "The card has no data object; its fields were read from the root."
            found.add("DATA_MISSING", message, "data")
        spec = "v1"
        given, prefix = _from_root(source, found), ""
    fields = _fields(values.copied(given), prefix, found)
    if not any(letter.isprintable() and not letter.isspace() for letter in fields["name"]):
        raise refusal("CARD_NAME_MISSING", "The card gives no name for its character.")
    if sum(len(fields[key]) for key in GREETINGS) > MAX_GREETINGS:
        message = f"The card has more than {MAX_GREETINGS} alternate and group greetings."
        raise refusal("CARD_TOO_MANY_GREETINGS", message)
    return spec, fields


def _refuse_lorebook(source: dict[str, Any]) -> None:
    # A world-info file has a name and often a description, so these two prove nothing.
    is_card_by_shape = not source.keys().isdisjoint(
        ("spec", "data", "char_name", "personality", "scenario", "first_mes", "mes_example")
    )
    is_book_by_shape = "entries" in source and not is_card_by_shape
    if source.get("spec") == "lorebook_v3" or is_book_by_shape:
        raise refusal("NOT_A_CARD", "The file is a lorebook, not a character card.")


def _spec_of(source: dict[str, Any], data: dict[str, Any], found: Findings) -> str:
    spec = source.get("spec")
    version = values.number_of(source.get("spec_version"))
    known = _SPECS.get(spec.strip().lower()) if isinstance(spec, str) else None
    if known is None:
        is_v3 = not data.keys().isdisjoint(V3_ONLY) or (version is not None and version >= 3)
        known = "v3" if is_v3 else "v2"
        if spec is None:
            message = f"The card does not say its spec; by its shape it is {known}."
            found.add("SPEC_MISSING", message, "spec")
        else:
            message = f"The card names a spec that is not known; it was read as {known}."
            found.add("SPEC_UNKNOWN", message, "spec")
    if version is not None and version > _NEWEST_VERSION:
        message = "The card is of a newer version; what is known of it was read."
        found.add("SPEC_VERSION_NEWER", message, "spec_version")
    elif source.get("spec_version") != {"v2": "2.0", "v3": "3.0"}[known]:
        message = f"The spec_version does not say {known} in the usual way; it was ignored."
        found.add("SPEC_VERSION_UNUSUAL", message, "spec_version")
    return known


def _with_root_copies(
    source: dict[str, Any], data: dict[str, Any], found: Findings
) -> dict[str, Any]:
    """Return `data`, completed from the copies that many programs keep at the root.

    `data` wins; what it lacks is taken from the root, and a text that differs is told.
    """
    given = dict(data)
    copies = {OLD_NAMES["creatorcomment"]: source.get("creatorcomment"), **source}
    for key in REQUIRED:
        root_value = copies.get(key)
        if root_value is None or root_value == "":
            continue
        if given.get(key) is None:
            given[key] = root_value
            message = "The field is missing in data; it was taken from the root of the card."
            found.add("FILLED_FROM_ROOT", message, f"data.{key}")
        elif key in TEXTS and isinstance(root_value, str) and root_value != given[key]:
            message = "The root of the card holds another text; the one in data was taken."
            found.add("ROOT_DIFFERS", message, f"data.{key}")
    return given


def _from_root(source: dict[str, Any], found: Findings) -> dict[str, Any]:
    """Return the fields of a card that keeps them at the root.

    Other root keys belong to the program that wrote the file and stay in the source only.
    """
    given = {key: value for key, value in source.items() if key in KNOWN}
    fill_from_old_names(given, source, found)
    if given.get("extensions") is None:
        extensions = {key: source[key] for key in ROOT_EXTENSIONS if key in source}
        if extensions:
            given["extensions"] = extensions
    return given


def _fields(given: dict[str, Any], prefix: str, found: Findings) -> dict[str, Any]:
    fields: dict[str, Any] = {
        key: values.text(given.get(key, ""), prefix + key, found) for key in TEXTS
    }
    for key in GREETINGS:
        fields[key] = values.texts(given.get(key, []), prefix + key, found)
    fields["tags"] = values.texts(given.get("tags", []), prefix + "tags", found, separator=",")
    fields["extensions"] = values.extensions(
        given.get("extensions", {}), prefix + "extensions", found
    )

    for key, value in given.items():
        path = prefix + key
        if key in REQUIRED:
            continue
        if key in KNOWN and value is None:
            found.add("NULL_VALUE", "The value is null; the field was left out.", path)
        elif key == "nickname":
            fields[key] = values.text(value, path, found)
        elif key == "source":
            fields[key] = values.texts(value, path, found)
        elif key in DATES:
            values.keep(fields, key, values.seconds(value, path, found))
        elif key == "assets":
            values.keep(fields, key, values.assets(value, path, found))
        elif key == "character_book":
            values.keep(fields, key, values.book(value, path, found))
        elif key == "creator_notes_multilingual":
            values.keep(fields, key, values.mapping(value, path, found))
        else:
            fields[key] = value
    return fields
