"""Reads lorebooks, those inside cards and those in files of their own, into one form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from services.cards import png, values
from services.cards.card import Findings
from services.cards.lore_shapes import as_book_entry, extensions_of
from services.cards.lorebook import Lorebook, LoreEntry, Recursion, split_keys
from services.cards.payload import begins_json, object_in_chunk, object_in_json
from services.cards.refusals import MAX_FILE_BYTES, refusal
from services.errors import Invalid

# The numbers of world info, in their order. (spec: sillytavern worldinfo, A)
LOGICS = ("and_any", "not_all", "not_any", "and_all")
POSITIONS = (
    "before_char",
    "after_char",
    "before_author_note",
    "after_author_note",
    "at_depth",
    "before_examples",
    "after_examples",
    "outlet",
)
DEFAULT_DEPTH = 4
DEFAULT_ORDER = 100
_SURE = 100

_NOVELAI_KEYWORD = "naidata"


def read_lorebook(book: dict[str, Any]) -> Lorebook:
    """Return the lorebook that a card holds in `fields["character_book"]`.

    Never refuses: what cannot be used is mended, each mend is a warning with a path in the book.
    (spec: sillytavern cards, 4, 8, 12 and rule 6)
    """
    found = Findings()
    entries = tuple(
        read_entry(entry, f"entries.{place}.", found) for place, entry in _entries_of(book, found)
    )
    name, description, scan_depth, token_budget, recursive = read_settings(book, found)
    return Lorebook(
        name=name,
        description=description,
        scan_depth=scan_depth,
        token_budget=token_budget,
        recursive=recursive,
        entries=entries,
        source=book,
        warnings=found.warnings(),
    )


def read_lorebook_file(content: bytes) -> Lorebook:
    """Read a lorebook from the bytes of a file of its own.

    Accepted are JSON of the V3 book file, world info, NovelAI, Agnai memory books and RisuAI, and
    a PNG with a NovelAI lorebook in it. Raises `Invalid` like `read_card`, and NOT_A_LOREBOOK.
    (spec: sillytavern cards, 10)
    """
    if len(content) > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // 1024 // 1024
        raise refusal("CARD_FILE_TOO_LARGE", f"The file is larger than {limit} MiB.")
    found = Findings()
    if content.startswith(png.SIGNATURE):
        source = _object_in_png(content, found)
    elif begins_json(content):
        source = object_in_json(content, found)
    else:
        raise _not_a_lorebook()
    book = _book_in(source)
    lorebook = read_lorebook(book)
    return replace(lorebook, warnings=found.warnings() + lorebook.warnings)


def _not_a_lorebook() -> Invalid:
    return refusal(
        "NOT_A_LOREBOOK",
        "The file is no lorebook. Accepted are JSON files of world info, V3 lorebooks, NovelAI, "
        "Agnai and RisuAI, and PNG files of NovelAI.",
    )


def _object_in_png(content: bytes, found: Findings) -> dict[str, Any]:
    for chunk in png.read_texts(content).chunks:
        if chunk.keyword == _NOVELAI_KEYWORD:
            return object_in_chunk(png.text_of(chunk), found)
    raise _not_a_lorebook()


def _book_in(source: dict[str, Any]) -> dict[str, Any]:
    """Return the object of a file that has the entries, or is the whole of a V3 book."""
    data = source.get("data")
    if source.get("spec") == "lorebook_v3" and isinstance(data, dict):
        return data
    if source.get("type") == "risu" and isinstance(data, list):
        return {**source, "entries": data}
    if isinstance(source.get("entries"), list | dict):
        return source
    raise _not_a_lorebook()


def _entries_of(book: dict[str, Any], found: Findings) -> Iterable[tuple[str, dict[str, Any]]]:
    entries = book.get("entries")
    if isinstance(entries, dict):
        # Whole numbers first, rising: the order in which other programs read such an object.
        places = sorted(entries, key=lambda key: (0, int(key)) if _is_index(key) else (1, 0))
        pairs: list[tuple[str, Any]] = [(place, entries[place]) for place in places]
    elif isinstance(entries, list):
        pairs = [(str(place), entry) for place, entry in enumerate(entries)]
    else:
        pairs = []
    for place, entry in pairs:
        if isinstance(entry, dict):
            yield place, entry
        else:
            found.add(
                "ENTRY_DROPPED", "The entry is not an object; it was left out.", f"entries.{place}"
            )


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) <= 10 and str(int(key)) == key


def read_settings(
    book: dict[str, Any], found: Findings
) -> tuple[str, str, int | None, int | None, bool | None]:
    """Return name, description, scan depth, token budget and recursion of a book."""

    def first(*names: str) -> Any:
        return next((book[name] for name in names if book.get(name) is not None), None)

    recursive = first("recursive_scanning", "recursiveScanning")
    return (
        values.text(first("name") or "", "name", found),
        values.text(first("description") or "", "description", found),
        values.whole(first("scan_depth", "scanDepth"), "scan_depth", found, least=0),
        values.whole(first("token_budget", "tokenBudget"), "token_budget", found, least=0),
        None
        if recursive is None
        else values.boolean(recursive, False, "recursive_scanning", found),
    )


def read_entry(source: dict[str, Any], path: str, found: Findings) -> LoreEntry:
    """Return one entry in our form; `path` is the place of the entry in the book, with a dot."""
    entry = as_book_entry(source)
    extensions = extensions_of(entry)

    def value_of(name: str) -> Any:
        # Some programs put at the root of an entry what others keep in its extensions.
        return extensions[name] if name in extensions else entry.get(name)

    def flag(value: Any, name: str, default: bool = False) -> bool:
        return values.boolean(value, default, path + name, found)

    def count(name: str, least: int = 0, most: int = values.MOST) -> int | None:
        return values.whole(value_of(name), path + name, found, least=least, most=most)

    def number(name: str, default: int, most: int = values.MOST) -> int:
        found_number = count(name, most=most)
        return default if found_number is None else found_number

    secondary_keys = _keys(entry.get("secondary_keys"), path + "secondary_keys", found)
    order = values.whole(entry.get("insertion_order"), path + "insertion_order", found)
    chance = number("probability", _SURE, most=_SURE)
    return LoreEntry(
        name=values.text(entry.get("name") or entry.get("comment") or "", path + "name", found),
        keys=_keys(entry.get("keys"), path + "keys", found),
        secondary_keys=secondary_keys if flag(entry.get("selective"), "selective") else (),
        selective_logic=_logic(value_of("selectiveLogic"), path + "selectiveLogic", found),
        constant=flag(entry.get("constant"), "constant"),
        position=_position(extensions, entry, path + "position", found),
        depth=number("depth", DEFAULT_DEPTH),
        insertion_order=DEFAULT_ORDER if order is None else order,
        probability=chance if flag(value_of("useProbability"), "useProbability", True) else _SURE,
        sticky=count("sticky"),
        cooldown=count("cooldown"),
        delay=count("delay"),
        recursion=Recursion(
            exclude=flag(value_of("exclude_recursion"), "exclude_recursion"),
            prevent=flag(value_of("prevent_recursion"), "prevent_recursion"),
            delay_until=_level(value_of("delay_until_recursion"), path, found),
        ),
        content=values.text(entry.get("content") or "", path + "content", found),
        # A folder of RisuAI holds other entries together and says nothing itself.
        enabled=flag(entry.get("enabled"), "enabled", True) and entry.get("mode") != "folder",
        source=source,
    )


def _keys(value: Any, path: str, found: Findings) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        found.add("TYPE_MENDED", "The keys are one text; it was split at its commas.", path)
        return tuple(split_keys(value))
    return tuple(values.texts(value, path, found))


def _logic(value: Any, path: str, found: Findings) -> str:
    number = values.whole(value, path, found)
    if number is None or 0 <= number < len(LOGICS):
        return LOGICS[number or 0]
    found.add("VALUE_DROPPED", "The logic of the secondary keys is not known.", path)
    return LOGICS[0]


def _position(extensions: dict[str, Any], entry: dict[str, Any], path: str, found: Findings) -> str:
    for value in (extensions.get("position"), entry.get("position")):
        number = values.number_of(value)
        if number is not None and number in range(len(POSITIONS)):
            return POSITIONS[int(number)]
        if value in ("before_char", "after_char"):
            return str(value)
        if value is not None and value != "":
            found.add("POSITION_UNKNOWN", "The position is not known; it was passed over.", path)
    return "after_char"


def _level(value: Any, path: str, found: Findings) -> int:
    if isinstance(value, bool):
        return int(value)
    return values.whole(value, path + "delay_until_recursion", found, least=0) or 0
