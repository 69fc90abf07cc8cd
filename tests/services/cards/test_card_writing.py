"""Writing of cards: import, export, import gives the same, whatever the kinds of file."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cards import PICTURE_PATH, Card, CardFile, CardTarget, read_card, write_card
from services.cards.carried import DEFAULT_PICTURE
from services.cards.media import media_type_of
from services.cards.png import read_texts
from tests.services.cards.making import (
    MINIMAL_FIELDS,
    charx,
    chunk,
    encoded,
    png,
    read,
    real,
    text_chunk,
    v2,
    v3,
    with_files,
)

FULL = (CardTarget.JSON_V3, CardTarget.PNG, CardTarget.CHARX)
WITH_FILES = (CardTarget.PNG, CardTarget.CHARX)
V3_ONLY = {
    *("nickname", "group_only_greetings", "assets", "creator_notes_multilingual", "source"),
    *("creation_date", "modification_date"),
}
SPECS = ("spec", "spec_version")
REAL = (
    *("coding-sensei.v2.png", "amy.v3-in-chara.png", "two-chunks.png", "two-assets.charx"),
    *("minimal-v2.json", "minimal-v3.json", "with-lorebook-v3.json"),
)


def rewritten(card: Card, target: CardTarget) -> Card:
    return read_card(write_card(card.fields, card.source, card.files, target))


def objects_in_png(content: bytes) -> dict[str, Any]:
    """The JSON objects in the text chunks of a PNG, by keyword."""
    return {
        each.name: json.loads(base64.b64decode(each.body, validate=True))
        for each in read_texts(content).chunks
        if each.name in ("chara", "ccv3", "mirrorgraph-paths")
    }


def names_in_png(content: bytes) -> list[str]:
    return [each.name for each in read_texts(content).chunks]


def card_in_archive(content: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return json.loads(archive.read("card.json"))


def assert_survives(card: Card) -> None:
    """Through every kind of file and every two of them the card stays what it is."""
    for target in FULL:
        again = rewritten(card, target)
        assert again.fields == card.fields
        assert again.spec == "v3"
        if target in WITH_FILES:
            assert with_files(again) == with_files(card)
            for further in WITH_FILES:
                third = rewritten(again, further)
                assert third.fields == card.fields
                assert with_files(third) == with_files(card)
                assert root_of(third) == root_of(again)
    old = rewritten(card, CardTarget.JSON_V2)
    known = {key: value for key, value in card.fields.items() if key not in V3_ONLY}
    assert (old.spec, old.fields) == ("v2", {**known, "group_only_greetings": []})


def root_of(card: Card) -> dict[str, Any]:
    return {key: value for key, value in card.source.items() if key != "data"}


@pytest.mark.parametrize("name", REAL)
def test_a_real_card_survives_every_kind_of_file(name: str) -> None:
    """Rule K8."""
    card = read_card(real(name))
    assert_survives(card)
    for target in CardTarget:
        again = root_of(rewritten(card, target))
        for key, value in root_of(card).items():
            # Copies of fields are brought up: Amy's `creator` is empty at the root.
            assert key in SPECS or again[key] == card.fields.get(key, value)


def test_what_a_v2_and_a_v3_file_hold() -> None:
    """Rule K8."""
    fields = {**MINIMAL_FIELDS, "nickname": "M", "group_only_greetings": ["All!"], "x": {"y": 1}}
    content = write_card(fields, None, (), CardTarget.JSON_V3)
    assert json.loads(content) == {
        "spec": "chara_card_v3",
        "spec_version": "3.0",
        "data": fields,
    }
    kept = {k: v for k, v in fields.items() if k not in V3_ONLY}
    assert json.loads(write_card(fields, None, (), CardTarget.JSON_V2)) == {
        "spec": "chara_card_v2",
        "spec_version": "2.0",
        "data": kept,
    }


def test_a_png_holds_a_v2_and_a_v3_card() -> None:
    """Rule K8. Whatever it held before: the old chunks are gone."""
    old = png(text_chunk(b"chara", encoded(v2(name="Old"))), text_chunk(b"Title", b"Mira"))
    card = read_card(old)
    content = write_card({**card.fields, "name": "New"}, card.source, card.files, CardTarget.PNG)
    assert names_in_png(content) == ["Title", "chara", "ccv3"]
    data = {**MINIMAL_FIELDS, "name": "New"}
    v2_data = {key: value for key, value in data.items() if key not in V3_ONLY}
    assert objects_in_png(content) == {
        "chara": {"spec": "chara_card_v2", "spec_version": "2.0", "data": v2_data},
        "ccv3": {"spec": "chara_card_v3", "spec_version": "3.0", "data": data},
    }


def test_a_card_without_a_picture_gets_a_plain_one_that_is_none_of_its_files() -> None:
    card = read_card(json.dumps(v2()).encode())
    content = write_card(card.fields, card.source, (), CardTarget.PNG)
    assert content.startswith(DEFAULT_PICTURE[:-12])
    assert read_card(content).files == ()
    jpeg = CardFile("a.jpg", "image/jpeg", b"\xff\xd8\xff\xe0")
    again = read_card(write_card(card.fields, card.source, (jpeg,), CardTarget.PNG))
    assert again.files == (jpeg,)


def test_unknown_keys_survive_everywhere() -> None:
    """Rule K8."""
    entry = {
        "keys": ["sea"],
        "content": "Salt.",
        "extensions": {"mine": [1]},
        "entry_id": 5,
        "enabled": True,
        "insertion_order": 1,
        "secondary_keys": [],
        "constant": False,
    }
    source = v3(
        extensions={"chub": {"id": 1.5}, "fav": False},
        x={"deep": [None, 1, "é"]},
        assets=[{"type": "x_a", "uri": "https://a.b", "name": "a", "ext": "bin", "mine": 1}],
        character_book={"entries": [entry], "extensions": {"b": 1}, "mine": "x"},
    )
    source |= {"root_key": {"a": 1}, "chat": "Mira 1", "name": "Mira", "fav": True, "tags": []}
    card = read(source)
    for target in FULL:
        again = rewritten(card, target)
        assert again.fields == card.fields == {**MINIMAL_FIELDS, **source["data"]}
        written = {**entry, "use_regex": False}
        book = {**source["data"]["character_book"], "entries": [written]}
        assert again.source == {
            **source,
            "fav": False,
            "data": {**MINIMAL_FIELDS, **source["data"], "character_book": book},
        }


def test_unknown_keys_of_the_original_data_survive_where_fields_lack_them() -> None:
    source = v2(x=1, nickname=5)
    written = json.loads(write_card({"name": "Mira"}, source, (), CardTarget.JSON_V3))
    assert written["data"] == {**MINIMAL_FIELDS, "x": 1}


def test_copies_at_the_root_are_brought_up() -> None:
    """Other programs read a field there, so an old text must not stand there."""
    source = {
        "name": "Mira",
        "description": "old",
        "creatorcomment": "old",
        "talkativeness": "0.5",
        "avatar": "none",
        "first_mes": "old",
    }
    card = read(source)
    fields = {**card.fields, "description": "new", "creator_notes": "now", "first_mes": ""}
    content = write_card(fields, source, (), CardTarget.JSON_V2)
    again = read_card(content)
    assert (again.fields, again.warnings) == (fields, ())
    assert root_of(again) == {
        "spec": "chara_card_v2",
        "spec_version": "2.0",
        "name": "Mira",
        "description": "new",
        "creatorcomment": "now",
        "talkativeness": "0.5",
        "avatar": "none",
        "first_mes": "",
    }
    assert source["description"] == "old"


def test_the_date_of_the_change_is_the_callers() -> None:
    card = read(v3(modification_date=5, creation_date=4))
    for target in FULL:
        content = write_card(card.fields, card.source, (), target, modified_at=1_700_000_000)
        assert read_card(content).fields == {**card.fields, "modification_date": 1_700_000_000}
        assert rewritten(card, target).fields == card.fields
        again = write_card(card.fields, card.source, (), target, modified_at=1_700_000_000)
        assert again == content
    assert card.fields["modification_date"] == 5


def test_a_v2_copy_has_neither_decorators_nor_pattern_flags() -> None:
    """Rule K11."""
    entries = [{"keys": ["/a/"], "content": "@@depth 4\nSalt.", "use_regex": True}]
    card = read(v3(character_book={"entries": entries}))
    objects = objects_in_png(write_card(card.fields, card.source, (), CardTarget.PNG))
    (old,) = objects["chara"]["data"]["character_book"]["entries"]
    (new,) = objects["ccv3"]["data"]["character_book"]["entries"]
    assert (old["content"], "use_regex" in old) == ("Salt.", False)
    assert (new["content"], new["use_regex"]) == ("@@depth 4\nSalt.", True)


@pytest.mark.parametrize("name", REAL)
def test_no_plain_key_of_a_real_card_is_called_a_pattern(name: str) -> None:
    """Rule K11."""
    card = read_card(real(name))
    for target in CardTarget:
        data = rewritten(card, target).source["data"]
        for entry in data.get("character_book", {}).get("entries", []):
            assert entry.get("use_regex", False) is False


# Files


PICTURE = png()
OTHER = png(chunk(b"tIME", b"\7\xe8\1\1\0\0\0"))
CARRYING = png(text_chunk(b"chara", encoded(v2(name="Inner"))))


def icon(uri: str, name: str = "main", kind: str = "icon") -> dict[str, Any]:
    return {"type": kind, "uri": uri, "name": name, "ext": "png"}


def test_the_picture_of_a_png_is_an_icon_of_the_archive_and_back() -> None:
    """Rule K8."""
    card = read_card(png(text_chunk(b"chara", encoded(v2()))))
    content = write_card(card.fields, card.source, card.files, CardTarget.CHARX)
    assert card_in_archive(content)["data"]["assets"] == [icon(f"embeded://{PICTURE_PATH}")]
    assert_survives(card)


def test_the_icon_of_an_archive_carries_the_png() -> None:
    """Rule K8."""
    assets = [icon("embeded://a/Mira.png"), icon("embeded://joy.png", "joy", "emotion")]
    card = read_card(charx(v3(assets=assets), {"a/Mira.png": OTHER, "joy.png": PICTURE}))
    content = write_card(card.fields, card.source, card.files, CardTarget.PNG)
    assert names_in_png(content) == [
        "chara",
        "ccv3",
        "mirrorgraph-paths",
        "chara-ext-asset_:joy.png",
    ]
    objects = objects_in_png(content)
    assert objects["mirrorgraph-paths"] == {"": "a/Mira.png"}
    assert objects["ccv3"]["data"]["assets"] == [
        icon("ccdefault:"),
        icon("__asset:joy.png", "joy", "emotion"),
    ]
    assert_survives(card)


def test_paths_that_are_no_keyword_get_a_number() -> None:
    """Rule K8."""
    files = {
        "assets/" + "x" * 60: b"\0one",
        "未来.png": PICTURE,
        "a ": b"\0two",
        "1": b"\0three",
        "a" * 62: b"\0four",
    }
    card = read_card(charx(v3(assets=[icon("embeded://未来.png", "joy", "emotion")]), files))
    content = write_card(card.fields, card.source, card.files, CardTarget.PNG)
    assert names_in_png(content)[3:] == [
        f"chara-ext-asset_:{name}" for name in ("0", "2", "3", "1", "a" * 62)
    ]
    assert objects_in_png(content)["ccv3"]["data"]["assets"][0]["uri"] == "__asset:2"
    assert_survives(card)


JPEG = b"\xff\xd8\xff\xe0"


@pytest.mark.parametrize(
    ("assets", "files"),
    [
        (None, {}),
        (None, {PICTURE_PATH: PICTURE}),
        (None, {PICTURE_PATH: JPEG}),
        ([], {"a.png": PICTURE}),
        ([icon("ccdefault:")], {}),
        ([icon("ccdefault:")], {"a.png": PICTURE}),
        ([icon("embeded://gone.png")], {PICTURE_PATH: PICTURE, "a.png": PICTURE}),
        ([icon("embeded://gone.png")], {}),
        ([icon("embeded://a.png")], {"a.png": PICTURE, PICTURE_PATH: OTHER}),
        ([icon("embeded://a.png")], {"a.png": JPEG, PICTURE_PATH: OTHER}),
        ([icon("embeded://a.png")], {"a.png": JPEG}),
        ([icon("embeded://a.png")], {"a.png": DEFAULT_PICTURE}),
        ([icon("embeded://a.png")], {"a.png": CARRYING}),
        ([icon("embeded://a.png")], {"a.png": PICTURE + b"tail"}),
        ([icon("embeded://a.png")], {"a.png": PICTURE[:-3]}),
        ([icon("embeded://a.png"), icon("ccdefault:", "x")], {"a.png": PICTURE}),
        ([icon("embeded://a.png"), icon("embeded://a.png", "x")], {"a.png": PICTURE}),
        ([icon("embeded://a.png"), icon("embeded://a.png", "x", "background")], {"a.png": PICTURE}),
        ([icon("embeded://a.png", "x"), icon("embeded://b.png", "y")], {"b.png": PICTURE}),
        ([icon("embeded://a.png", "x"), icon("embeded://b.png")], {"a.png": OTHER, "b.png": JPEG}),
        ([icon(f"embeded://{PICTURE_PATH}", "x")], {PICTURE_PATH: PICTURE}),
        ([icon(f"embeded://{PICTURE_PATH}", "x", "emotion")], {PICTURE_PATH: PICTURE}),
        ([icon("https://a.b/c.png")], {"carrier.jpg": JPEG, "0": b""}),
    ],
)
def test_assets_and_files_survive(
    assets: list[dict[str, Any]] | None, files: dict[str, bytes]
) -> None:
    """Rule K8. Pictures that cannot carry a card, are meant twice, are missing, hold a card."""
    card = read_card(charx(v3() if assets is None else v3(assets=assets), files))
    assert with_files(card) == {path: (media_type_of(each), each) for path, each in files.items()}
    assert_survives(card)


CONTENTS = st.sampled_from([PICTURE, OTHER, JPEG, CARRYING, b"", b"\0x", b"{}"])
PATHS = st.sampled_from(["a.png", "b", "0", "1", "é.png", "x/" * 40 + "y", PICTURE_PATH])
URIS = PATHS.map(lambda path: "embeded://" + path) | st.sampled_from(["ccdefault:", "data:,x", ""])
ASSETS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["icon", "emotion"]),
        "uri": URIS,
        "name": st.sampled_from(["main", "x"]),
        "ext": st.just("png"),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(PATHS, CONTENTS, max_size=4), st.none() | st.lists(ASSETS, max_size=3))
def test_any_assets_and_files_survive(
    files: dict[str, bytes], assets: list[dict[str, Any]] | None
) -> None:
    """Rule K8."""
    assert_survives(read_card(charx(v3() if assets is None else v3(assets=assets), files)))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text("aé😀\n", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner, max_size=2),
    max_leaves=4,
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
FIELDS = st.fixed_dictionaries(
    {"name": st.just("Mira"), "description": TEXTS, "tags": st.lists(TEXTS.filter(str.strip))},
    optional={
        "nickname": TEXTS,
        "group_only_greetings": st.lists(TEXTS.filter(str.strip)),
        "creation_date": st.integers(0, 2**33),
        "extensions": st.dictionaries(TEXTS, JSON_VALUES, max_size=2),
        "unknown": JSON_VALUES,
    },
)


@settings(max_examples=60, deadline=None)
@given(FIELDS, st.dictionaries(st.sampled_from(["x", "y", "avatar"]), JSON_VALUES))
def test_any_fields_survive(fields: dict[str, Any], root: dict[str, Any]) -> None:
    """Rule K8."""
    card = read({**v3(**fields), **root})
    assert card.fields == {**MINIMAL_FIELDS, **fields}
    assert_survives(card)
    assert {k: v for k, v in root_of(rewritten(card, CardTarget.PNG)).items() if k in root} == root
