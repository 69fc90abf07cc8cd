"""Voices: permissions to clone, what proves them, and the voice that is spoken with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import CharacterStatus, VoiceSource
from db.paging import PageRequest
from db.reading import Writing
from db.tables import Character, VoiceProfile
from services import characters
from services.access import Viewer, find_row
from services.errors import Conflict, DomainError, Invalid, NotFound
from services.text import MAX_LINE, MAX_REFERENCE
from tests.conftest import People
from tests.factories import make_character
from tests.trees import fetch, refused, run_sql, until_somebody_waits

REF = "contract 2024/117, signed by M. Okafor"
SOON = timedelta(hours=1)
VOICE_PATH = ("input", "voiceId")


@pytest.fixture
async def character(database: Database, people: People) -> Character:
    async with database.writing() as writing:
        return await make_character(writing, people.owner)


async def added(
    database: Database,
    viewer: Viewer,
    character: Character,
    source_kind: VoiceSource = VoiceSource.CLONED,
) -> VoiceProfile:
    async with database.writing() as writing:
        return await characters.add_voice(
            writing,
            viewer,
            character.id,
            name="Low and dry",
            source_kind=source_kind,
            source_ref="voices/low.wav",
        )


async def authorized(
    database: Database,
    viewer: Viewer,
    voice: VoiceProfile,
    ref: str = REF,
    expires_at: datetime | None = None,
) -> VoiceProfile:
    async with database.writing() as writing:
        return await characters.authorize_clone(
            writing, viewer, voice.id, authorization_ref=ref, expires_at=expires_at
        )


async def done(
    database: Database,
    act: Callable[[Writing, Viewer, str], Awaitable[Any]],
    viewer: Viewer,
    voice: VoiceProfile,
) -> Any:
    async with database.writing() as writing:
        return await act(writing, viewer, voice.id)


async def voice_now(database: Database, viewer: Viewer, voice: VoiceProfile) -> VoiceProfile | None:
    async with database.reading() as reading:
        return await find_row(reading, viewer, VoiceProfile, voice.id)


async def current_of(database: Database, viewer: Viewer, character: Character) -> str | None:
    async with database.reading() as reading:
        found = await characters.current_voices_of_characters(reading, viewer, [character.id])
    return found[character.id].id if found else None


async def expire(database: Database, voice: VoiceProfile) -> None:
    """Let the permission run out."""
    sql = "UPDATE voice_profiles SET expires_at = clock_timestamp() WHERE id = $1"
    await run_sql(database, sql, voice.id)


async def acts_on(database: Database, voice: VoiceProfile) -> list[str]:
    sql = "SELECT action FROM audit_events WHERE subject_id = $1 ORDER BY created_at, id"
    return [action for (action,) in await fetch(database, sql, voice.id)]


@pytest.mark.parametrize(
    ("source_kind", "is_usable"), [("stock", True), ("designed", True), ("cloned", False)]
)
async def test_a_cloned_voice_alone_needs_a_permission(
    database: Database, people: People, character: Character, source_kind: str, is_usable: bool
) -> None:
    """Rule F6."""
    voice = await added(database, people.owner, character, VoiceSource(source_kind))
    assert (voice.name, voice.source_ref) == ("Low and dry", "voices/low.wav")
    assert (voice.is_usable, voice.has_authorization, voice.is_current) == (is_usable, False, False)
    assert (voice.authorization_hint, voice.authorized_at, voice.expires_at) == (None, None, None)
    assert await acts_on(database, voice) == ["voice_added"]
    if is_usable:
        await refused(
            database,
            Invalid,
            "VOICE_NOT_CLONED",
            VOICE_PATH,
            lambda writing: characters.authorize_clone(
                writing, people.owner, voice.id, authorization_ref=REF, expires_at=None
            ),
        )


async def test_a_permission_makes_a_cloned_voice_usable_until_it_runs_out(
    database: Database, people: People, character: Character
) -> None:
    """Rule F6."""
    until = datetime.now(UTC) + SOON
    voice = await authorized(
        database, people.owner, await added(database, people.owner, character), expires_at=until
    )
    assert (voice.is_usable, voice.has_authorization, voice.version) == (True, True, 2)
    assert (voice.expires_at, voice.authorized_by_user_id) == (until, people.owner.user_id)
    assert voice.authorized_at is not None
    assert (await done(database, characters.select_voice, people.owner, voice)).is_current
    assert await current_of(database, people.owner, character) == voice.id
    await expire(database, voice)
    now = await voice_now(database, people.owner, voice)
    assert now is not None
    assert (now.is_usable, now.has_authorization, now.is_current) == (False, True, True)
    assert await current_of(database, people.owner, character) is None
    # A new one makes it usable again, without an end.
    assert (await authorized(database, people.owner, voice, "letter of consent")).is_usable
    assert await current_of(database, people.owner, character) == voice.id
    assert await acts_on(database, voice) == [
        "voice_added",
        "clone_authorized",
        "voice_selected",
        "clone_authorized",
    ]


async def test_a_voice_without_a_permission_that_holds_is_not_spoken_with(
    database: Database, people: People, character: Character
) -> None:
    """Rule F6."""
    never = await added(database, people.owner, character)
    over = await authorized(database, people.owner, await added(database, people.owner, character))
    await expire(database, over)
    for voice in (never, over):
        await refused(
            database,
            Conflict,
            "CLONE_NOT_AUTHORIZED",
            VOICE_PATH,
            lambda writing, voice=voice: characters.select_voice(writing, people.owner, voice.id),
        )


@pytest.mark.parametrize("status", list(CharacterStatus))
async def test_a_permission_is_taken_back_at_once_whatever_state_the_character_is_in(
    database: Database, people: People, character: Character, status: CharacterStatus
) -> None:
    """Rules F5, F7."""
    voice = await authorized(database, people.owner, await added(database, people.owner, character))
    await done(database, characters.select_voice, people.owner, voice)
    await run_sql(database, "UPDATE characters SET status = $1", status)
    revoked = await done(database, characters.revoke_clone, people.owner, voice)
    assert (revoked.is_usable, revoked.has_authorization, revoked.is_current) == (
        False,
        False,
        False,
    )
    assert await current_of(database, people.owner, character) is None
    kept = "SELECT count(*) FROM voice_profiles v WHERE v::text LIKE '%Okafor%'"
    assert await fetch(database, kept) == [(0,)]
    assert (await acts_on(database, voice))[-1] == "clone_revoked"
    await refused(
        database,
        Conflict,
        "CLONE_NOT_AUTHORIZED",
        VOICE_PATH,
        lambda writing: characters.revoke_clone(writing, people.owner, voice.id),
    )


async def test_a_voice_whose_permission_is_taken_back_meanwhile_is_not_chosen(
    database: Database, people: People, character: Character
) -> None:
    """Rule F7."""
    voice = await authorized(database, people.owner, await added(database, people.owner, character))
    async with database.writing() as writing:
        await characters.revoke_clone(writing, people.owner, voice.id)
        choosing = asyncio.ensure_future(
            done(database, characters.select_voice, people.owner, voice)
        )
        await until_somebody_waits(database)
    (result,) = await asyncio.gather(choosing, return_exceptions=True)
    assert isinstance(result, Conflict)
    assert result.code == "CLONE_NOT_AUTHORIZED"


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        (REF, "…afor"),
        ("123456789abc", "…9abc"),
        ("123456789", "…9"),
        ("12345678", "…"),
        ("1", "…"),
    ],
)
async def test_what_proves_a_permission_is_masked(
    database: Database, people: People, character: Character, ref: str, hint: str
) -> None:
    """Rule F8."""
    voice = await added(database, people.owner, character)
    assert (await authorized(database, people.owner, voice, ref)).authorization_hint == hint


async def test_reading_what_proves_a_permission_is_an_act(
    database: Database, people: People, character: Character
) -> None:
    """Rule F8."""
    voice = await added(database, people.owner, character)
    await refused(
        database,
        Conflict,
        "CLONE_NOT_AUTHORIZED",
        VOICE_PATH,
        lambda writing: characters.read_authorization(writing, people.owner, voice.id),
    )
    await authorized(database, people.owner, voice)
    read = await done(database, characters.read_authorization, people.owner, voice)
    assert read.authorization_ref == REF
    assert (await acts_on(database, voice))[-1] == "clone_authorization_read"
    told = "SELECT count(*) FROM audit_events a WHERE a::text LIKE '%Okafor%'"
    assert await fetch(database, told) == [(0,)]


EAST = timezone(timedelta(hours=14))
BAD_TIMES = {
    "over": datetime.now(UTC) - SOON,
    "without a zone": datetime(2999, 1, 1),
    "before all time": datetime(1, 1, 1, tzinfo=EAST),
    "the last one": datetime.max.replace(tzinfo=UTC),
    "after all time": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14))),
}


@pytest.mark.parametrize("name", BAD_TIMES)
async def test_a_permission_cannot_end_at_a_time_that_is_none(
    database: Database, people: People, character: Character, name: str
) -> None:
    voice = await added(database, people.owner, character)
    await refused(
        database,
        Invalid,
        "INVALID_TIME",
        ("input", "expiresAt"),
        lambda writing: characters.authorize_clone(
            writing, people.owner, voice.id, authorization_ref=REF, expires_at=BAD_TIMES[name]
        ),
    )


async def test_the_end_of_a_permission_is_kept_in_utc(
    database: Database, people: People, character: Character
) -> None:
    voice = await added(database, people.owner, character)
    last = datetime(9999, 12, 31, 23, 59, 59, 999998, tzinfo=UTC)
    for given_time, kept in (
        (datetime(2999, 1, 1, 14, tzinfo=EAST), datetime(2999, 1, 1, tzinfo=UTC)),
        (last, last),
    ):
        await authorized(database, people.owner, voice, expires_at=given_time)
        now = await voice_now(database, people.owner, voice)
        assert now is not None
        assert now.expires_at == kept


BAD_TEXTS = [
    ("add", {"name": ""}, "TEXT_EMPTY", "name"),
    ("add", {"name": "x" * (MAX_LINE + 1)}, "TEXT_TOO_LONG", "name"),
    ("add", {"source_ref": " "}, "TEXT_EMPTY", "sourceRef"),
    ("add", {"source_ref": "x" * (MAX_REFERENCE + 1)}, "TEXT_TOO_LONG", "sourceRef"),
    ("authorize", {"authorization_ref": " "}, "TEXT_EMPTY", "authorizationRef"),
    (
        "authorize",
        {"authorization_ref": "x" * (MAX_REFERENCE + 1)},
        "TEXT_TOO_LONG",
        "authorizationRef",
    ),
]


@pytest.mark.parametrize(("act", "values", "code", "field"), BAD_TEXTS)
async def test_a_bad_text_is_refused_with_its_field(
    database: Database,
    people: People,
    character: Character,
    act: str,
    values: dict[str, Any],
    code: str,
    field: str,
) -> None:
    voice = await added(database, people.owner, character)
    new = {"name": "Low", "source_kind": VoiceSource.STOCK, "source_ref": None}

    async def work(writing: Writing) -> None:
        if act == "add":
            await characters.add_voice(writing, people.owner, character.id, **{**new, **values})
        else:
            await characters.authorize_clone(
                writing, people.owner, voice.id, expires_at=None, **values
            )

    await refused(database, Invalid, code, ("input", field), work)


async def test_a_character_speaks_with_one_voice(
    database: Database, people: People, character: Character
) -> None:
    """Rule F9."""
    one, two = [await added(database, people.owner, character, VoiceSource.STOCK) for _ in range(2)]
    assert await current_of(database, people.owner, character) is None
    one = await done(database, characters.select_voice, people.owner, one)
    assert (one.is_current, one.version) == (True, 2)
    # Choosing it again changes nothing.
    assert await done(database, characters.select_voice, people.owner, one) == one
    assert await acts_on(database, one) == ["voice_added", "voice_selected"]
    await done(database, characters.select_voice, people.owner, two)
    assert await current_of(database, people.owner, character) == two.id
    earlier = await voice_now(database, people.owner, one)
    assert earlier is not None
    assert (earlier.is_current, earlier.version) == (False, 3)
    with pytest.raises(asyncpg.UniqueViolationError, match="uq_voice_profiles_current"):
        await run_sql(database, "UPDATE voice_profiles SET is_current = true")


async def test_of_two_voices_chosen_at_once_the_later_one_is_spoken_with(
    database: Database, people: People, character: Character
) -> None:
    """Rule F9."""
    one, two = [await added(database, people.owner, character, VoiceSource.STOCK) for _ in range(2)]
    async with database.writing() as writing:
        await characters.select_voice(writing, people.owner, one.id)
        choosing = asyncio.ensure_future(done(database, characters.select_voice, people.owner, two))
        await until_somebody_waits(database)
    await choosing
    assert await current_of(database, people.owner, character) == two.id


async def test_a_removed_voice_is_gone_with_its_permission(
    database: Database, people: People, character: Character
) -> None:
    voice = await authorized(database, people.owner, await added(database, people.owner, character))
    other = await added(database, people.owner, character)
    await done(database, characters.select_voice, people.owner, voice)
    left = await done(database, characters.remove_voice, people.owner, voice)
    assert left.id == character.id
    assert await voice_now(database, people.owner, voice) is None
    assert await current_of(database, people.owner, character) is None
    assert await fetch(database, "SELECT id FROM voice_profiles") == [(other.id,)]
    assert (await acts_on(database, voice))[-1] == "voice_removed"


Work = Callable[[Writing, Viewer], Awaitable[Any]]


async def works(
    database: Database, people: People, character: Character
) -> dict[str, tuple[str, Work]]:
    """Everything that is done with voices, with the field that names what it is done to."""
    voice = await authorized(database, people.owner, await added(database, people.owner, character))

    def on_voice(act: Callable[..., Awaitable[Any]], **values: Any) -> tuple[str, Work]:
        return "voiceId", lambda writing, viewer: act(writing, viewer, voice.id, **values)

    return {
        "add": (
            "characterId",
            lambda writing, viewer: characters.add_voice(
                writing,
                viewer,
                character.id,
                name="Low",
                source_kind=VoiceSource.STOCK,
                source_ref=None,
            ),
        ),
        "authorize": on_voice(
            characters.authorize_clone, authorization_ref="another", expires_at=None
        ),
        "select": on_voice(characters.select_voice),
        "remove": on_voice(characters.remove_voice),
        "revoke": on_voice(characters.revoke_clone),
        "read": on_voice(characters.read_authorization),
    }


@pytest.mark.parametrize("status", [each for each in CharacterStatus if each != "active"])
async def test_the_voices_of_a_character_that_does_not_live_can_only_be_read_and_revoked(
    database: Database, people: People, character: Character, status: CharacterStatus
) -> None:
    """Rule F5."""
    every = await works(database, people, character)
    await run_sql(database, "UPDATE characters SET status = $1", status)
    for name in ("add", "authorize", "select", "remove"):
        field, work = every[name]
        await refused(
            database,
            Conflict,
            "CHARACTER_READ_ONLY",
            ("input", field),
            lambda writing, work=work: work(writing, people.owner),
        )
    for name in ("read", "revoke"):
        async with database.writing() as writing:
            await every[name][1](writing, people.owner)


async def test_voices_are_their_custodians_alone(
    database: Database, people: People, character: Character
) -> None:
    """Rules C3, F8."""
    every = await works(database, people, character)
    await run_sql(database, "UPDATE voice_profiles SET is_current = true")
    listed = characters.VOICES_OF_CHARACTERS
    for viewer in (people.stranger, people.anonymous):
        for field, work in every.values():
            await refused(
                database,
                NotFound,
                "NOT_FOUND",
                ("input", field),
                lambda writing, work=work, viewer=viewer: work(writing, viewer),
            )
        async with database.reading() as reading:
            (page,) = await listed.pages(
                reading, [character.id], PageRequest(), **viewer.parameters
            )
        assert page.nodes == []
        assert await current_of(database, viewer, character) is None


async def test_voices_are_listed_oldest_first(
    database: Database, people: People, character: Character
) -> None:
    made = [await added(database, people.owner, character, each) for each in VoiceSource]
    async with database.reading() as reading:
        (page,) = await characters.VOICES_OF_CHARACTERS.pages(
            reading, [character.id], PageRequest(first=2), **people.owner.parameters
        )
    assert page.nodes == made[:2]
    assert page.has_next_page


ACTS = ("add stock", "add cloned", "authorize", "revoke", "select", "remove")
STEPS = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 10_000)), max_size=25)


@given(steps=STEPS)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_whatever_is_done_at_most_one_voice_is_spoken_with_and_it_is_allowed(
    database: Database, people: People, steps: list[tuple[str, int]]
) -> None:
    """Rules F6, F7, F9. Compared with a plain model: by id whether cloned, whether allowed."""
    owner = people.owner
    cloned: dict[str, bool] = {}
    allowed: set[str] = set()
    current: str | None = None
    async with database.writing() as writing:
        character = await make_character(writing, owner)
        for name, place in steps:
            if name.startswith("add"):
                kind = VoiceSource(name.partition(" ")[2])
                voice = await characters.add_voice(
                    writing, owner, character.id, name="V", source_kind=kind, source_ref=None
                )
                cloned[voice.id] = kind is VoiceSource.CLONED
                continue
            if not cloned:
                continue
            on = list(cloned)[place % len(cloned)]
            try:
                if name == "authorize":
                    await characters.authorize_clone(
                        writing, owner, on, authorization_ref=REF, expires_at=None
                    )
                elif name == "revoke":
                    await characters.revoke_clone(writing, owner, on)
                elif name == "select":
                    await characters.select_voice(writing, owner, on)
                else:
                    await characters.remove_voice(writing, owner, on)
                refusal = None
            except DomainError as error:
                refusal = error.code
            assert (
                refusal
                == {
                    "authorize": None if cloned[on] else "VOICE_NOT_CLONED",
                    "revoke": None if on in allowed else "CLONE_NOT_AUTHORIZED",
                    "select": None if not cloned[on] or on in allowed else "CLONE_NOT_AUTHORIZED",
                    "remove": None,
                }[name]
            )
            if refusal is not None:
                continue
            if name == "authorize":
                allowed.add(on)
            elif name == "select":
                current = on
            else:
                allowed.discard(on)
                current = None if current == on else current
                if name == "remove":
                    del cloned[on]
        found = await characters.current_voices_of_characters(writing, owner, [character.id])
        rows = await writing._connection.fetch(
            "SELECT id, authorization_ref FROM voice_profiles WHERE character_id = $1",
            character.id,
        )
    assert [each.id for each in found.values()] == ([current] if current else [])
    assert {row["id"] for row in rows} == set(cloned)
    assert {row["id"] for row in rows if row["authorization_ref"]} == allowed
