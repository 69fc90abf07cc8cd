"""CharX archives: what is read of them, and what hostile ones are refused for."""

from __future__ import annotations

import io
import json
import random
import stat
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from services.cards import read_card
from tests.services.cards.making import (
    MINIMAL_FIELDS,
    charx,
    encoded,
    found,
    png,
    refused,
    text_chunk,
    v2,
    v3,
    with_files,
    zipped,
)

SMILE = png()
MEBIBYTE = 1024 * 1024


def test_a_charx_with_all_its_files() -> None:
    """Rules K1, K7. Listed or not, and JSON of other programs too."""
    files = {
        "assets/emotion/images/smile.png": SMILE,
        "assets/other/song.mp3": b"ID3song",
        "x_meta/1.json": b'{"a": 1}',
        "module.risum": b"\0module",
        "überall/未来.txt": "é".encode(),
    }
    card = read_card(charx(v3(), files))
    assert (card.container, card.spec, card.fields) == ("charx", "v3", MINIMAL_FIELDS)
    assert card.source == v3()
    assert with_files(card) == {
        "assets/emotion/images/smile.png": ("image/png", SMILE),
        "assets/other/song.mp3": ("audio/mpeg", b"ID3song"),
        "x_meta/1.json": ("application/json", b'{"a": 1}'),
        "module.risum": ("application/octet-stream", b"\0module"),
        "überall/未来.txt": ("text/plain", "é".encode()),
    }
    assert found(card) == [("MODULE_NOT_READ", "")]


def test_a_v2_card_in_a_charx() -> None:
    card = read_card(charx(v2()))
    assert (card.container, card.spec, card.fields) == ("charx", "v2", MINIMAL_FIELDS)
    assert (card.files, card.warnings) == ((), ())


@pytest.mark.parametrize("scheme", ["embeded://", "embedded://", "Embeded://", "__asset:"])
def test_every_spelling_of_a_uri_becomes_one(scheme: str) -> None:
    """Rule K8."""
    asset = {"type": "emotion", "uri": f"{scheme}a/smile.png", "name": "smile", "x": 1}
    gone = {"type": "emotion", "uri": f"{scheme}a/gone.png", "name": "gone"}
    card = read_card(charx(v3(assets=[asset, gone]), {"a/smile.png": SMILE}))
    assert card.fields["assets"] == [{**asset, "uri": "embeded://a/smile.png"}, gone]
    assert card.source["data"]["assets"] == [asset, gone]


def test_a_charx_behind_a_jpeg() -> None:
    """Rule K1."""
    front = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 20
    card = read_card(charx(v3(), {"a.png": SMILE}, front))
    assert (card.container, card.warnings) == ("charx", ())
    assert with_files(card) == {"a.png": ("image/png", SMILE), "carrier.jpg": ("image/jpeg", front)}


def test_a_charx_behind_any_bytes() -> None:
    card = read_card(charx(v3(), front=b"\x7fELF installer"))
    assert (card.container, card.files) == ("charx", ())
    assert [(each.code, each.message) for each in card.warnings] == [
        ("LEADING_BYTES", "14 bytes before the archive were ignored.")
    ]
    assert read_card(charx(v3(), front=SMILE)).container == "charx"


def test_offsets_counted_from_the_start_of_the_file() -> None:
    card = charx(v3(), front=b"installer")
    directory = card.index(b"PK\1\2")
    moved = bytearray(card)
    struct.pack_into("<I", moved, directory + 42, 9)
    struct.pack_into("<I", moved, card.index(b"PK\5\6") + 16, directory)
    assert found(read_card(bytes(moved))) == [("LEADING_BYTES", "")]


def test_an_archive_with_only_a_png_card() -> None:
    carrier = png(text_chunk(b"chara", encoded(v2())))
    content = zipped({"cards/mira.png": carrier, "other.png": SMILE, "note.txt": b"hi"})
    card = read_card(content)
    assert (card.container, card.spec, card.fields) == ("png_text", "v2", MINIMAL_FIELDS)
    assert with_files(card) == {
        "assets/icon/images/main.png": ("image/png", SMILE),
        "other.png": ("image/png", SMILE),
        "note.txt": ("text/plain", b"hi"),
    }
    assert found(card) == [("CARD_IN_ARCHIVE", "")]


def test_an_archive_without_a_card() -> None:
    assert refused(zipped({"manifest.json": b"{}", "a.png": SMILE})) == "NO_CARD"
    assert refused(zipped({"folder/card.json": json.dumps(v3()).encode()})) == "NO_CARD"
    assert refused(zipped({})) == "NO_CARD"


def test_an_archive_inside_a_picture_inside_an_archive_is_not_opened() -> None:
    """An archive can be made to hold itself."""
    assert refused(zipped({"a.png": charx(v3(), front=SMILE)})) == "NO_CARD"


def test_the_card_of_an_archive_is_refused_like_another() -> None:
    assert refused(charx(v3(name=""))) == "CARD_NAME_MISSING"
    assert refused(zipped({"card.json": b"rcc||rccv1||abc"})) == "ENCRYPTED_CARD"
    assert refused(zipped({"card.json": b"no json"})) == "BROKEN_CARD"


def test_a_second_card_in_another_spelling_is_left_out() -> None:
    card = read_card(charx(v3(), {"Card.JSON": b"{}"}))
    assert (card.files, found(card)) == ((), [("ASSET_IGNORED", "")])


# Archives that are not what they say


def test_sizes_given_after_the_content_are_read() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: Any) -> int:
            raise io.UnsupportedOperation

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("card.json", json.dumps(v3()))
        archive.writestr("a.png", SMILE)
    content = pipe.getvalue()
    assert b"PK\x07\x08" in content
    assert with_files(read_card(content)) == {"a.png": ("image/png", SMILE)}


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "../outside", "a/../../outside", "a/..", "./a", "a//b", "a\\b", "C:/a"),
        *("c:a", "a\nb", "a\x7f", "a\0b", "x" * 501, "..", "/"),
    ],
)
def test_a_path_that_leads_elsewhere(path: str) -> None:
    """Rule K9."""
    placeholder = "p" * len(path.encode())
    content = charx(v3(), {placeholder: b"x"})
    assert content.count(placeholder.encode()) == 2
    renamed = content.replace(placeholder.encode(), path.encode())
    assert refused(renamed) == "UNSAFE_CHARX"


def test_folders_are_left_out() -> None:
    card = read_card(charx(v3(), {"assets/": b"", "assets/a.png": SMILE}))
    assert list(with_files(card)) == ["assets/a.png"]


def test_one_path_twice() -> None:
    """Rule K9."""
    content = charx(v3(), {"a.png": SMILE, "b.png": b"other"}).replace(b"b.png", b"a.png")
    assert refused(content) == "UNSAFE_CHARX"


def test_a_link() -> None:
    """Rule K9."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("card.json", json.dumps(v3()))
        link = zipfile.ZipInfo("a.png")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert refused(written.getvalue()) == "UNSAFE_CHARX"


def changed(content: bytes, *changes: tuple[bytes, int, str, int]) -> bytes:
    """The archive with numbers written over in its last header of a kind (`PK..`)."""
    copy = bytearray(content)
    for signature, offset, form, number in changes:
        struct.pack_into(form, copy, content.rindex(signature) + offset, number)
    return bytes(copy)


LOCAL, CENTRAL, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
# Stored, so that sizes are what they seem.
STORED = zipped(
    {"card.json": json.dumps(v3()).encode(), "a.bin": b"x" * 1000}, method=zipfile.ZIP_STORED
)
PACKED = charx(v3(), {"a.bin": b"x" * 100_000})


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (changed(STORED, (CENTRAL, 8, "<H", 0x1)), "ENCRYPTED_CARD"),
        (changed(STORED, (CENTRAL, 8, "<H", 0x40)), "ENCRYPTED_CARD"),
        (changed(STORED, (CENTRAL, 10, "<H", 12)), "BROKEN_CHARX"),
        (changed(STORED, (CENTRAL, 10, "<H", 99)), "BROKEN_CHARX"),
        (changed(STORED, (CENTRAL, 16, "<I", 1)), "BROKEN_CHARX"),
        (changed(STORED, (CENTRAL, 24, "<I", 10)), "BROKEN_CHARX"),
        (changed(STORED, (CENTRAL, 24, "<I", 1001)), "BROKEN_CHARX"),
        (changed(STORED, (CENTRAL, 24, "<I", 33 * MEBIBYTE)), "CARD_FILES_TOO_LARGE"),
        (changed(STORED, (CENTRAL, 20, "<I", 2000)), "BROKEN_CHARX"),
        (changed(STORED, (CENTRAL, 42, "<I", 0)), "UNSAFE_CHARX"),
        (changed(STORED, (CENTRAL, 42, "<I", 30)), "UNSAFE_CHARX"),
        (changed(STORED, (CENTRAL, 42, "<I", 0x7FFFFFFF)), "BROKEN_CHARX"),
        (changed(STORED, (LOCAL, 26, "<H", 0)), "BROKEN_CHARX"),
        (changed(STORED, (LOCAL, 0, "<I", 0)), "BROKEN_CHARX"),
        (changed(STORED, (END, 12, "<I", 10)), "BROKEN_CHARX"),
        (changed(STORED, (END, 16, "<I", 0xFFFFFFF)), "UNSAFE_CHARX"),
        (changed(PACKED, (CENTRAL, 24, "<I", 10)), "BROKEN_CHARX"),
        (changed(PACKED, (CENTRAL, 24, "<I", 100_001)), "BROKEN_CHARX"),
        (changed(PACKED, (CENTRAL, 20, "<I", 5)), "BROKEN_CHARX"),
        (PACKED[:-30], "BROKEN_CHARX"),
        (PACKED[: len(PACKED) // 2], "BROKEN_CHARX"),
        (b"PK\3\4rest", "BROKEN_CHARX"),
        (b"PK\3\4" + b"\0" * 18 + b"PK\5\6", "BROKEN_CHARX"),
    ],
)
def test_an_archive_that_is_not_what_it_says(content: bytes, code: str) -> None:
    """Rule K9."""
    assert refused(content) == code


def test_zip64_is_read_where_python_reads_it() -> None:
    written = io.BytesIO()
    with (
        zipfile.ZipFile(written, "w") as archive,
        archive.open("card.json", "w", force_zip64=True) as entry,
    ):
        entry.write(json.dumps(v3()).encode())
    assert read_card(written.getvalue()).fields == MINIMAL_FIELDS


# Limits


def test_all_files_of_an_archive_inflated() -> None:
    """Rule K9."""
    card = json.dumps(v3()).encode()
    most = 32 * MEBIBYTE - len(card)
    full = zipped({"card.json": card, "a.bin": bytes(most)})
    assert len(read_card(full).files[0].content) == most
    assert refused(zipped({"card.json": card, "a.bin": bytes(most + 1)})) == "CARD_FILES_TOO_LARGE"


def test_a_bomb_that_says_it_is_small_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule K9."""
    largest = 0
    read = zipfile.ZipExtFile.read

    def watched(self: zipfile.ZipExtFile, length: int | None = -1) -> bytes:
        nonlocal largest
        content = read(self, length)
        largest = max(largest, len(content))
        return content

    monkeypatch.setattr(zipfile.ZipExtFile, "read", watched)
    bomb = charx(v3(), {"a.bin": bytes(64 * MEBIBYTE)})
    assert refused(bomb) == "CARD_FILES_TOO_LARGE"
    assert largest == 0
    assert refused(changed(bomb, (CENTRAL, 24, "<I", 10))) == "BROKEN_CHARX"
    assert largest == len(json.dumps(v3()))


@pytest.mark.parametrize("said", [None, 3])
def test_number_of_files(said: int | None) -> None:
    """Rule K9. What the end of the archive says of the number plays no part."""

    def archive(count: int) -> bytes:
        content = charx(v3(), {str(number): b"" for number in range(count - 1)})
        return changed(content, (END, 10, "<H", count if said is None else said))

    assert len(read_card(archive(1000)).files) == 999
    assert refused(archive(1001)) == "CARD_TOO_MANY_FILES"


CODES = {
    *("BROKEN_CHARX", "UNSAFE_CHARX", "ENCRYPTED_CARD", "CARD_TOO_MANY_FILES", "NO_CARD"),
    *("CARD_FILES_TOO_LARGE", "BROKEN_CARD", "NOT_A_CARD", "UNSUPPORTED_CARD_CONTAINER"),
}


def flipped(content: bytearray, dice: random.Random) -> None:
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)


def overwritten(content: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(content) - 4)
    content[start : start + 4] = dice.choice([b"\xff" * 4, b"\0" * 4, b"PK\1\2", b"PK\5\6"])


def cut(content: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(content))
    del content[start : start + dice.choice([1, 22, 46, len(content)])]


@pytest.mark.parametrize("mutate", [flipped, overwritten, cut])
def test_a_damaged_archive_gives_a_card_or_a_refusal(
    mutate: Callable[[bytearray, random.Random], None],
) -> None:
    dice = random.Random(1)
    whole = charx(v3(), {"a.png": SMILE, "x/b.json": b"{}"}, front=b"\xff\xd8\xff\xe0")
    outcomes = set()
    for _ in range(400):
        content = bytearray(whole)
        mutate(content, dice)
        try:
            outcomes.add(read_card(bytes(content)).container)
        except Exception as error:
            outcomes.add(getattr(error, "code", repr(error)))
    assert outcomes <= {"charx", *CODES}
    assert {"charx", "BROKEN_CHARX"} <= outcomes
