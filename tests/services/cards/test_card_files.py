"""The files that come with a PNG card, what each of them is, and which one shows the character."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

from services.cards import PICTURE_PATH, CardFile, find_picture, read_card
from services.cards.media import media_type_of
from tests.services.cards.making import (
    MINIMAL_FIELDS,
    charx,
    chunk,
    encoded,
    found,
    png,
    refused,
    text_chunk,
    v2,
    v3,
    with_files,
)

MEBIBYTE = 1024 * 1024
PICTURE = png()
CARRIER = ("image/png", PICTURE)
DEFAULT = {"type": "icon", "uri": "ccdefault:", "name": "main", "ext": "png"}


def asset_chunk(name: str, content: bytes, separator: str = "_:") -> bytes:
    keyword = f"chara-ext-asset{separator}{name}".encode("latin-1")
    return text_chunk(keyword, base64.b64encode(content))


def test_the_picture_is_kept_without_the_chunks_of_the_card() -> None:
    """Rule K7. What else a picture says of itself stays, and what follows its end goes."""
    title = text_chunk(b"Title", b"A drawing of Mira")
    data = chunk(b"zTXt", b"parameters\0\0" + zlib.compress(b"steps: 20"))
    for keyword in (
        b"chara",
        b"CCV3",
        b"chara_card_v3",
        b"ccv2",
        b"character",
        b"mirrorgraph-paths",
    ):
        content = png(title, text_chunk(b"chara", encoded(v2())), text_chunk(keyword, b"x"), data)
        card = read_card(content + b"tail")
        assert with_files(card) == {PICTURE_PATH: ("image/png", png(title, data))}


def test_files_in_chunks() -> None:
    """Rule K7. A name may follow the colon or the underscore; case counts, compression is read."""
    assets = [
        {"type": "emotion", "uri": "__asset:0", "name": "joy", "ext": "webp"},
        {"type": "x_song", "uri": "__asset:Music/A.mp3", "name": "song", "ext": "mp3"},
        {"type": "icon", "uri": "https://a.b/c.png", "name": "other", "ext": "png"},
    ]
    packed = zlib.compress(base64.b64encode(b"{}"))
    card = read_card(
        png(
            asset_chunk("0", b"RIFF\0\0\0\0WEBPjoy"),
            asset_chunk("Music/A.mp3", b"ID3song", separator="_"),
            chunk(b"zTXt", b"chara-ext-asset_:packed.json\0\0" + packed),
            text_chunk(b"ccv3", encoded(v3(assets=assets))),
        )
    )
    assert with_files(card) == {
        PICTURE_PATH: CARRIER,
        "0": ("image/webp", b"RIFF\0\0\0\0WEBPjoy"),
        "Music/A.mp3": ("audio/mpeg", b"ID3song"),
        "packed.json": ("application/json", b"{}"),
    }
    assert [asset["uri"] for asset in card.fields["assets"]] == [
        "embeded://0",
        "embeded://Music/A.mp3",
        "https://a.b/c.png",
    ]
    assert card.warnings == ()


@pytest.mark.parametrize("name", ["../up", "/root", "a\\b", "", "card.json", "a/./b", "a\x80\x01"])
def test_a_name_that_is_no_path_is_replaced(name: str) -> None:
    """Rule K9."""
    assets = [{"type": "other", "uri": f"__asset:{name}", "name": "x", "ext": "bin"}]
    card = read_card(
        png(asset_chunk(name, b"\0one"), text_chunk(b"ccv3", encoded(v3(assets=assets))))
    )
    assert with_files(card) == {
        PICTURE_PATH: CARRIER,
        "assets/other/0": ("application/octet-stream", b"\0one"),
    }
    assert found(card) == [("ASSET_RENAMED", "")]
    assert card.fields["assets"][0]["uri"] == "embeded://assets/other/0"


def test_of_two_files_with_one_name_both_are_kept_and_the_first_is_meant() -> None:
    assets = [{"type": "other", "uri": "__asset:a", "name": "x", "ext": "bin"}]
    card = read_card(
        png(
            asset_chunk("a", b"\0one"),
            asset_chunk("assets/other/2", b"\0two"),
            asset_chunk("a", b"\0three"),
            text_chunk(b"ccv3", encoded(v3(assets=assets))),
        )
    )
    assert [(file.path, file.content) for file in card.files[1:]] == [
        ("a", b"\0one"),
        ("assets/other/2", b"\0two"),
        ("assets/other/2_", b"\0three"),
    ]
    assert card.fields["assets"][0]["uri"] == "embeded://a"
    assert found(card) == [("ASSET_RENAMED", "")]


def test_a_file_that_cannot_be_read_is_left_out_with_a_warning() -> None:
    broken = chunk(b"zTXt", b"chara-ext-asset_:0\0\0" + b"no zlib")
    card = read_card(png(broken, text_chunk(b"chara", encoded(v2()))))
    assert with_files(card) == {PICTURE_PATH: CARRIER}
    assert found(card) == [("ASSET_UNREADABLE", "")]


def test_the_default_asset_says_nothing_beside_a_picture() -> None:
    """Rule K8."""
    for assets in ([DEFAULT], []):
        card = read_card(png(text_chunk(b"ccv3", encoded(v3(assets=assets)))))
        assert card.fields == MINIMAL_FIELDS
        assert card.source == v3(assets=assets)
        no_picture = read_card(json.dumps(v3(assets=assets)).encode())
        assert no_picture.fields == {**MINIMAL_FIELDS, "assets": assets}


def test_an_icon_that_an_archive_had_is_the_picture_of_the_png() -> None:
    """Rule K8."""
    icon = {"type": "icon", "uri": "embeded://a/mira.png", "name": "main", "ext": "png"}
    other = {"type": "icon", "uri": "embeded://a/other.png", "name": "other", "ext": "png"}
    card = read_card(png(text_chunk(b"ccv3", encoded(v3(assets=[other, icon])))))
    assert with_files(card) == {"a/mira.png": CARRIER}
    assert card.fields["assets"] == [other, icon]
    assert find_picture(card.fields, card.files) == card.files[0]

    unsafe = [{**icon, "uri": "embeded://../mira.png"}]
    card = read_card(png(text_chunk(b"ccv3", encoded(v3(assets=unsafe)))))
    assert with_files(card) == {PICTURE_PATH: CARRIER}
    assert card.fields["assets"] == unsafe


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (charx(v3(assets=[{"type": "x_a", "uri": "embeded://gone.png"}])), "data.assets"),
        (
            json.dumps(v3(assets=[{"type": "x_a", "uri": "__asset:gone.png"}])).encode(),
            "data.assets",
        ),
        (b'{"name": "Mira", "assets": [{"uri": "embedded://gone.png"}]}', "assets"),
    ],
)
def test_an_asset_whose_file_did_not_come_is_told(content: bytes, path: str) -> None:
    card = read_card(content)
    assert [(each.code, each.message, each.path) for each in card.warnings] == [
        ("ASSET_MISSING", "The file gone.png of an asset did not come with the card.", path)
    ]


def test_paths_that_cannot_be_read_are_told() -> None:
    card = read_card(
        png(text_chunk(b"mirrorgraph-paths", b"e30"), text_chunk(b"chara", encoded(v2())))
    )
    assert found(card) == []
    card = read_card(
        png(text_chunk(b"mirrorgraph-paths", b"W10="), text_chunk(b"chara", encoded(v2())))
    )
    assert found(card) == [("ASSET_PATHS_UNREADABLE", "")]


# Limits


def test_number_of_files_in_chunks() -> None:
    """Rule K9."""
    card = text_chunk(b"chara", encoded(v2()))
    files = [asset_chunk(str(number), b"") for number in range(1001)]
    assert len(read_card(png(card, *files[:1000])).files) == 1001
    assert refused(png(card, *files)) == "CARD_TOO_MANY_FILES"


def test_bytes_of_files_in_chunks() -> None:
    """Rule K9."""
    card = text_chunk(b"chara", encoded(v2()))

    def packed(name: int, letters: int) -> bytes:
        head = f"chara-ext-asset_:{name}".encode() + b"\0\0"
        return chunk(b"zTXt", head + zlib.compress(b"A" * letters, 1))

    whole = [packed(name, 8 * MEBIBYTE) for name in range(5)]
    last = 8 * MEBIBYTE // 3
    most = read_card(png(card, *whole, packed(5, last)))
    assert sum(len(file.content) for file in most.files[1:]) == 32 * MEBIBYTE - 1
    assert refused(png(card, *whole, packed(5, last + 2))) == "CARD_FILES_TOO_LARGE"
    assert refused(png(card, packed(0, 8 * MEBIBYTE + 1))) == "CARD_CHUNK_TOO_LARGE"


# What a file is


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (PICTURE, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
        (b"RIFF\0\0\0\0ACON", "application/octet-stream"),
        (b"\0\0\0\x20ftypavif", "image/avif"),
        (b"\0\0\0\x20ftypisom", "video/mp4"),
        (b"OggS\0", "audio/ogg"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"\x1aE\xdf\xa3", "video/webm"),
        (b"wOF2", "font/woff2"),
        (b"%PDF-1.7", "application/pdf"),
        (b"PK\3\4", "application/zip"),
        (b' {"a": 1}', "application/json"),
        (b"\xef\xbb\xbf[1]", "application/json"),
        (b"\xff{}", "application/octet-stream"),
        ("über".encode(), "text/plain"),
        ("é".encode() * 4000, "text/plain"),
        (b"a" + "é".encode() * 4000, "text/plain"),
        (b"a\0b", "application/octet-stream"),
        (b"", "application/octet-stream"),
        # Markup is text: nothing here may be run by a browser.
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "text/plain"),
        (b"<!doctype html><script>", "text/plain"),
    ],
)
def test_what_a_file_is_by_its_bytes(content: bytes, media_type: str) -> None:
    assert media_type_of(content) == media_type


def icon(uri: str, name: str = "main", kind: str = "icon") -> dict[str, Any]:
    return {"type": kind, "uri": uri, "name": name, "ext": "png"}


FILES = [
    CardFile("a.png", "image/png", b"a"),
    CardFile("b.webp", "image/webp", b"b"),
    CardFile("c.mp3", "audio/mpeg", b"c"),
]


@pytest.mark.parametrize(
    ("assets", "has_carrier", "picture"),
    [
        ([icon("embeded://b.webp"), icon("embeded://a.png", "x")], True, "b.webp"),
        ([icon("embeded://a.png", "x"), icon("__asset:b.webp")], True, "b.webp"),
        ([icon("embeded://a.png", "x"), icon("embeded://b.webp", "y")], False, "a.png"),
        ([icon("ccdefault:"), icon("embeded://a.png", "x")], True, PICTURE_PATH),
        ([icon("ccdefault:"), icon("embeded://a.png", "x")], False, "a.png"),
        ([icon("embeded://gone.png")], True, PICTURE_PATH),
        ([icon("embeded://c.mp3")], True, PICTURE_PATH),
        ([icon("embeded://a.png", kind="background")], True, PICTURE_PATH),
        ([icon("embeded://a.png", kind="background")], False, None),
        ([{"type": "icon"}], False, None),
        (None, True, PICTURE_PATH),
        (None, False, None),
    ],
)
def test_which_file_shows_the_character(
    assets: list[dict[str, Any]] | None, has_carrier: bool, picture: str | None
) -> None:
    files = [*FILES, CardFile(PICTURE_PATH, "image/png", PICTURE)][: 4 if has_carrier else 3]
    shown = find_picture({"assets": assets} if assets else {}, files)
    assert (shown.path if shown else None) == picture


def test_assets_of_strange_types_are_no_files() -> None:
    assets = [{"type": ["icon"], "uri": 7}, {"type": "icon", "uri": None}, {"x": {}}]
    card = read_card(charx(v3(assets=assets), {"a.png": PICTURE}))
    assert card.fields["assets"] == assets
    assert find_picture(card.fields, card.files) is None
