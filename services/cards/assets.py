"""Which file an asset of a card means: one spelling of URIs for all containers.

The list of assets stands in the fields of a card; the files stand beside them. (spec: V3, assets)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from services.cards.card import PICTURE_PATH, CardFile, Findings

EMBEDDED = "embeded://"
CARRIER = "ccdefault:"
# `embeded://` is how the specification spells it; the others are what programs write.
_SCHEMES = (EMBEDDED, "embedded://", "__asset:")

# What a card without a list of assets has by the specification: its picture.
DEFAULT_ASSET = {"type": "icon", "uri": CARRIER, "name": "main", "ext": "png"}

_MAX_NAME_TOLD = 100


def path_in(asset: dict[str, Any]) -> str | None:
    """Return what an asset's URI calls a file that comes with the card, None for other URIs."""
    uri = asset.get("uri")
    if isinstance(uri, str):
        for scheme in _SCHEMES:
            if uri[: len(scheme)].lower() == scheme:
                return uri[len(scheme) :]
    return None


def is_icon(asset: dict[str, Any]) -> bool:
    """Whether the asset is a picture of the character."""
    return asset.get("type") == "icon"


def main_icon(assets: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the icon called `main`, or the first icon, or None."""
    icons = [asset for asset in assets if is_icon(asset)]
    return next((icon for icon in icons if icon.get("name") == "main"), icons[0] if icons else None)


def settle(
    fields: dict[str, Any],
    names: Mapping[str, str],
    carrier_path: str | None,
    found: Findings,
    path: str,
) -> None:
    """Give the assets in `fields` the one spelling of URIs that `Card` promises.

    `names` leads from what URIs call files to their paths; `carrier_path` is where the picture
    stands that carries the card, None when there is none; `path` is where the list stands in the
    card. The default asset is left out where the picture stands at `PICTURE_PATH`, since then a
    missing list says the same.
    """
    if "assets" not in fields:
        return
    for asset in fields["assets"]:
        name = path_in(asset)
        if name is not None and name not in names:
            message = f"The file {name[:_MAX_NAME_TOLD]} of an asset did not come with the card."
            found.add("ASSET_MISSING", message, path)
    has_picture = PICTURE_PATH in names.values()
    settled = [_settled(asset, names, carrier_path) for asset in fields["assets"]]
    if has_picture:
        settled = [asset for asset in settled if asset != DEFAULT_ASSET]
    if settled or not has_picture:
        fields["assets"] = settled
    else:
        del fields["assets"]


def _settled(
    asset: dict[str, Any], names: Mapping[str, str], carrier_path: str | None
) -> dict[str, Any]:
    name = path_in(asset)
    path = names.get(name) if name is not None else None
    if path is None and is_icon(asset) and asset.get("uri") == CARRIER:
        path = carrier_path
    if path is None:
        return asset
    is_picture = is_icon(asset) and path == PICTURE_PATH
    return {**asset, "uri": CARRIER if is_picture else EMBEDDED + path}


def find_picture(fields: dict[str, Any], files: Collection[CardFile]) -> CardFile | None:
    """Return the file that shows the character, None when there is none.

    It is the icon called `main` (or the first icon where none is), else the picture at
    `PICTURE_PATH`, else the first icon whose file is there.
    """
    by_path = {file.path: file for file in files if file.media_type.startswith("image/")}
    assets = fields.get("assets") or []
    main = main_icon(assets)
    wanted = [main] if main else []
    wanted += [DEFAULT_ASSET, *(asset for asset in assets if is_icon(asset))]
    for asset in wanted:
        path = PICTURE_PATH if asset.get("uri") == CARRIER else path_in(asset)
        if path in by_path:
            return by_path[path]
    return None
