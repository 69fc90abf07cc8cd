"""What a PNG carries in text chunks: cards, files, and the picture around them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from services.cards import png
from services.cards.assets import main_icon, path_in
from services.cards.card import PICTURE_PATH, CardFile, Findings
from services.cards.media import PNG, is_safe_path, media_type_of
from services.cards.payload import decode_base64, object_in_chunk, trimmed
from services.cards.refusals import (
    MAX_FILES,
    MAX_FILES_BYTES,
    files_too_large,
    too_many_files,
)
from services.errors import Invalid

# Best first. The two words of the specifications, then what other writers have used.
USUAL_KEYWORDS = ("ccv3", "chara")
KEYWORDS = (*USUAL_KEYWORDS, "chara_card_v3", "ccv2", "character", "charactercard", "card")
ASSET_KEYWORD = "chara-ext-asset_"
# Ours: an object from names of chunks to paths, for paths that are no keyword; the name "" means
# the picture itself. Other programs pass over it and find the files by the names of the chunks.
PATHS_KEYWORD = "mirrorgraph-paths"

# In an archive the card itself stands there.
CARD_PATH = "card.json"

# The carrier of a card that has no picture of its own; it is not taken for one when read again.
DEFAULT_PICTURE = png.plain_picture(width=32, height=48, grey=96)


@dataclass(frozen=True, slots=True)
class Carried:
    """What a PNG carries: files, the names that URIs give them, and where its picture stands.

    `carrier_path` is None when the picture is none of the files.
    """

    files: tuple[CardFile, ...]
    names: dict[str, str]
    carrier_path: str | None


def is_of_a_card(chunk: png.TextChunk) -> bool:
    """Whether a chunk belongs to a card, and not to the picture."""
    is_card = chunk.keyword in (*KEYWORDS, PATHS_KEYWORD)
    return is_card or chunk.keyword.startswith(ASSET_KEYWORD)


def is_usable_path(path: str, taken: Container[str]) -> bool:
    """Whether a file of a card may stand at the path."""
    return path not in taken and path.lower() != CARD_PATH and is_safe_path(path)


def files_in(
    content: bytes,
    texts: png.PngTexts,
    picture: bytes,
    fields: dict[str, Any],
    found: Findings,
) -> Carried:
    """Return the files of a PNG card; `picture` is the PNG without its card chunks.

    A file that cannot be read is left out with a warning. Raises `Invalid` CARD_TOO_MANY_FILES,
    CARD_FILES_TOO_LARGE, CARD_CHUNK_TOO_LARGE.
    """
    chunks = [chunk for chunk in texts.chunks if chunk.keyword.startswith(ASSET_KEYWORD)]
    if len(chunks) > MAX_FILES:
        raise too_many_files()
    paths = _paths_of(texts, found)
    files: dict[str, CardFile] = {}
    names: dict[str, str] = {}
    left = MAX_FILES_BYTES
    for number, chunk in enumerate(chunks):
        text = _text_of(chunk, found)
        if text is None:
            continue
        # Base64 is four letters for three bytes. The text is counted, for it was what took memory.
        left -= len(text) * 3 // 4
        if left < 0:
            raise files_too_large()
        file = decode_base64(text, Findings())
        name = chunk.name[len(ASSET_KEYWORD) :].removeprefix(":")
        path = paths.get(name, name)
        if not is_usable_path(path, files):
            path = _free_path(number, files)
            found.add("ASSET_RENAMED", f"A file inside the PNG got the path {path}.")
        files[path] = CardFile(path, media_type_of(file), file)
        names.setdefault(name, path)
        names.setdefault(path, path)
    carrier_path = _carrier_path(picture, paths, fields, names)
    if carrier_path is None:
        return Carried(tuple(files.values()), names, None)
    whole = CardFile(carrier_path, PNG, picture)
    return Carried((whole, *files.values()), {**names, carrier_path: carrier_path}, carrier_path)


def _paths_of(texts: png.PngTexts, found: Findings) -> dict[str, str]:
    for chunk in texts.chunks:
        if chunk.keyword == PATHS_KEYWORD:
            try:
                paths = object_in_chunk(png.text_of(chunk), Findings())
            except Invalid:
                found.add("ASSET_PATHS_UNREADABLE", "The paths of the files could not be read.")
                break
            return {name: path for name, path in paths.items() if isinstance(path, str)}
    return {}


def _text_of(chunk: png.TextChunk, found: Findings) -> bytes | None:
    try:
        return trimmed(png.text_of(chunk))
    except Invalid as error:
        if error.code != "BROKEN_CARD":
            raise
        found.add("ASSET_UNREADABLE", "A file inside the PNG could not be read; it was left out.")
        return None


def _free_path(number: int, taken: Container[str]) -> str:
    path = f"assets/other/{number}"
    while path in taken:
        path += "_"
    return path


def _carrier_path(
    picture: bytes, paths: dict[str, str], fields: dict[str, Any], names: dict[str, str]
) -> str | None:
    """Return where the picture stands among the files, None when it is no file of its own."""
    taken = set(names.values())
    if picture == DEFAULT_PICTURE or paths.get("") in taken:
        return None
    # A card that was once an archive names its icon by a path there: that icon is the picture.
    icon = main_icon(fields.get("assets") or [])
    meant = paths.get("") or (path_in(icon) if icon else None)
    if meant is not None and meant not in names and is_usable_path(meant, taken):
        return meant
    return PICTURE_PATH if PICTURE_PATH not in taken else _free_path(len(taken), taken)
