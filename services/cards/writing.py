"""Writes a card as a file of one of four kinds."""

from __future__ import annotations

import base64
import io
import itertools
import zipfile
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from services.cards import png
from services.cards.assets import CARRIER, DEFAULT_ASSET, EMBEDDED, find_picture, is_icon, path_in
from services.cards.card import PICTURE_PATH, CardFile
from services.cards.carried import (
    ASSET_KEYWORD,
    CARD_PATH,
    DEFAULT_PICTURE,
    PATHS_KEYWORD,
    is_of_a_card,
)
from services.cards.lore_writing import as_json
from services.cards.media import PNG
from services.cards.objects import object_of_v2, object_of_v3
from services.errors import Invalid

# An archive holds a time for each file; one for all keeps the bytes the same.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)

_ASSET_NAME = ASSET_KEYWORD + ":"
_LONGEST_NAME = png.MAX_KEYWORD_LENGTH - len(_ASSET_NAME)


class CardTarget(StrEnum):
    """The kinds of files that a card can be written as."""

    JSON_V2 = "json_v2"
    JSON_V3 = "json_v3"
    PNG = "png"
    CHARX = "charx"


def write_card(
    fields: dict[str, Any],
    source: dict[str, Any] | None,
    files: Iterable[CardFile],
    target: CardTarget,
    *,
    modified_at: int | None = None,
) -> bytes:
    """Return the bytes of a card file; the same values always give the same bytes.

    `fields` is what the character is now, in the shape of `Card.fields`; `source` is the original
    it came from, for what stands outside of `data`, None when it never was a card. `modified_at`
    (Unix seconds) becomes the `modification_date`, which stays as it is when None. JSON carries no
    files. (spec: sillytavern cards, rules 7 and 8)
    """
    fields = fields if modified_at is None else {**fields, "modification_date": modified_at}
    match target:
        case CardTarget.JSON_V2:
            return as_json(object_of_v2(fields, source))
        case CardTarget.JSON_V3:
            return as_json(object_of_v3(fields, source))
        case CardTarget.PNG:
            return _png(fields, source, list(files))
        case CardTarget.CHARX:
            return _archive(fields, source, list(files))


def _archive(fields: dict[str, Any], source: dict[str, Any] | None, files: list[CardFile]) -> bytes:
    uris = {file.path: EMBEDDED + file.path for file in files}
    assets = _assets(fields, uris)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        contents = {CARD_PATH: as_json(object_of_v3({**fields, **assets}, source))}
        contents |= {file.path: file.content for file in files}
        for path, content in contents.items():
            entry = zipfile.ZipInfo(path, _ZIP_TIME)
            entry.create_system = 3  # Unix, wherever this runs
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return written.getvalue()


def _png(fields: dict[str, Any], source: dict[str, Any] | None, files: list[CardFile]) -> bytes:
    picture = find_picture(fields, files)
    carrier = _carrier_of(picture)
    # Whether the picture is told whole by carrying the card, and needs no chunk of its own.
    is_whole = (
        picture is not None and carrier == picture.content and _only_icons_mean(picture, fields)
    )
    chunked = [file for file in files if not (is_whole and file is picture)]
    meant = {path_in(asset) for asset in fields.get("assets") or []}
    names = _names_of([file.path for file in chunked], meant)
    paths = {name: path for path, name in names.items() if name != path}
    if picture is not None and carrier is not None:
        paths[""] = picture.path

    uris = {path: "__asset:" + name for path, name in names.items()}
    if picture is not None and is_whole:
        uris[picture.path] = CARRIER
    assets = _assets(fields, uris)
    objects = {
        "chara": object_of_v2(fields, source),
        "ccv3": object_of_v3({**fields, **assets}, source),
    }
    if paths and (assets or paths != {"": PICTURE_PATH}):
        objects[PATHS_KEYWORD] = paths
    texts = [(name, base64.b64encode(as_json(value))) for name, value in objects.items()]
    texts += [(_ASSET_NAME + names[file.path], base64.b64encode(file.content)) for file in chunked]
    return png.with_texts(carrier or DEFAULT_PICTURE, texts)


def _carrier_of(picture: CardFile | None) -> bytes | None:
    """Return the picture without card chunks, None where it cannot carry a card."""
    if picture is None or picture.media_type != PNG:
        return None
    try:
        texts = png.read_texts(picture.content)
    except Invalid:
        return None
    carrier = png.without(picture.content, texts, is_of_a_card)
    return None if carrier == DEFAULT_PICTURE else carrier


def _only_icons_mean(picture: CardFile, fields: dict[str, Any]) -> bool:
    """Whether `ccdefault:`, which is for icons, can stand for all that assets say of a picture."""
    assets = fields.get("assets") or []
    are_icons = all(is_icon(asset) for asset in assets if path_in(asset) == picture.path)
    is_default_free = not any(asset.get("uri") == CARRIER for asset in assets)
    return are_icons and (picture.path == PICTURE_PATH or is_default_free)


def _names_of(paths: list[str], meant: set[str | None]) -> dict[str, str]:
    """Return a name that a chunk can bear for each path: the path itself where it can.

    Other names are numbers, none of which is a path or is `meant` by an asset.
    """
    taken = {*paths, *meant}
    numbers = (str(number) for number in itertools.count() if str(number) not in taken)
    return {path: path if _is_name(path) else next(numbers) for path in paths}


def _is_name(path: str) -> bool:
    is_latin = path.isascii() and path.isprintable()
    return is_latin and path == path.strip() and len(path) <= _LONGEST_NAME


def _assets(fields: dict[str, Any], uris: dict[str, str]) -> dict[str, Any]:
    """Return the assets with the URIs that the files have in a container, or nothing.

    Where a picture stands at `PICTURE_PATH` an icon must lead to it, if only by there being no
    list at all and the picture carrying the card.
    """
    picture_uri = uris.get(PICTURE_PATH)
    assets = [_with_uri(asset, uris) for asset in fields.get("assets") or []]
    has_main = any(is_icon(asset) and asset.get("name") == "main" for asset in assets)
    is_implied = picture_uri == CARRIER and not assets
    if picture_uri is not None and not has_main and not is_implied:
        assets.insert(0, {**DEFAULT_ASSET, "uri": picture_uri})
    return {"assets": assets} if assets else {}


def _with_uri(asset: dict[str, Any], uris: dict[str, str]) -> dict[str, Any]:
    path = path_in(asset)
    if is_icon(asset) and asset.get("uri") == CARRIER:
        path = PICTURE_PATH
    return {**asset, "uri": uris[path]} if path in uris else asset
