"""Trial talk with drafts: what is told, what is kept, and that nothing else comes of it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from db.engine import Database, open_database
from db.enums import EmbryoStatus, Origin, TextChannel
from db.tables import EmbryoDraft, RehearsalTurn
from services import characters
from services.access import Viewer, find_row, require_row
from services.errors import Conflict, DomainError, Invalid, LimitReached, NotFound, Unavailable
from services.providers import (
    Finished,
    ProviderError,
    ProviderSettings,
    TextPart,
    make_provider,
)
from services.rehearsing import RehearsalDelta, RehearsalFinished, Rehearsals
from tests.conftest import People
from tests.e2e.ledgers import Ledger
from tests.factories import ALL_POINTS
from tests.services.runs.servers import PATIENCE, STOP, ScriptedProvider, until
from tests.services.test_drafts import TURN, a_draft, read

Events = list[RehearsalDelta | RehearsalFinished]


def rehearsals(
    database: Database, provider: Any = None, *, most: int = 8, budget: int = 8_192
) -> Rehearsals:
    return Rehearsals(database, provider or ScriptedProvider(), most=most, budget=budget)


async def talk(open_: Rehearsals, viewer: Viewer, id: str, text: str = "Who are you?") -> Events:
    """All that one turn gives."""
    async with (
        asyncio.timeout(PATIENCE),
        contextlib.aclosing(open_.rehearse(viewer, id, text)) as events,
    ):
        return [event async for event in events]


async def refusal_of(work: Any) -> DomainError:
    with pytest.raises(DomainError) as caught:
        await work
    return caught.value


def told(error: DomainError) -> tuple[type[DomainError], str, tuple[str | int, ...]]:
    return type(error), error.code, error.path


async def test_a_turn_is_told_in_pieces_and_then_kept(database: Database, people: People) -> None:
    """Rule C9."""
    embryo = await a_draft(database, people.owner)
    *pieces, last = await talk(rehearsals(database), people.owner, embryo.id)
    assert pieces == [
        RehearsalDelta(TextChannel.REASONING, "Hm."),
        RehearsalDelta(TextChannel.TEXT, "Yes"),
        RehearsalDelta(TextChannel.TEXT, ", always."),
    ]
    assert isinstance(last, RehearsalFinished)
    assert last.turn == RehearsalTurn(
        "Who are you?", "Yes, always.", "scripted-model-1", last.turn.at
    )
    found = await read(database, people.owner, embryo.id)
    assert last.embryo == found
    assert found.rehearsal == [last.turn]
    assert (found.status, found.version) == (EmbryoStatus.REHEARSING, 2)


async def test_a_draft_that_is_ready_stays_so_when_it_is_talked_with(
    database: Database, people: People
) -> None:
    """Rule C8."""
    embryo = await a_draft(database, people.owner)
    async with database.writing() as writing:
        await characters.update_embryo(writing, people.owner, embryo.id, confirmed=ALL_POINTS)
    last = (await talk(rehearsals(database), people.owner, embryo.id))[-1]
    assert isinstance(last, RehearsalFinished)
    assert last.embryo.status == EmbryoStatus.READY


async def test_trial_talk_leaves_no_trace_but_in_the_draft(
    database: Database, people: People
) -> None:
    """Rule C9."""
    embryo = await a_draft(database, people.owner)
    before = await Ledger(database.dsn).fingerprint()
    open_ = rehearsals(database)
    await talk(open_, people.owner, embryo.id)
    await talk(open_, people.owner, embryo.id)
    await refusal_of(talk(open_, people.stranger, embryo.id))
    failing = rehearsals(database, ScriptedProvider(ProviderError("REFUSED", "", retryable=False)))
    await refusal_of(talk(failing, people.owner, embryo.id))
    after = await Ledger(database.dsn).fingerprint()
    assert {name for name in after if after[name] != before[name]} == {"embryo_drafts"}
    assert len((await read(database, people.owner, embryo.id)).rehearsal) == 2


async def test_the_model_is_told_who_it_is_to_be_and_the_talk_so_far(
    database: Database, people: People
) -> None:
    """Rule C9."""
    embryo = await a_draft(
        database, people.owner, nickname="R", personality="{{char}} likes {{user}}."
    )
    provider = ScriptedProvider()
    open_ = rehearsals(database, provider)
    await talk(open_, people.owner, embryo.id, "First?")
    await talk(open_, people.owner, embryo.id, "Second, {{char}}?")
    request = provider.answers[-1].request
    system, *spoken = [(each.role, each.text) for each in request.messages]
    assert system[0] == "system"
    for expected in ("You are R.", "Guards the bridge.", "R likes owner.", "- Leaving the bridge."):
        assert expected in system[1]
    assert spoken == [
        ("user", "First?"),
        ("assistant", "Yes, always."),
        ("user", "Second, R?"),
    ]
    assert request.character.name == "R"


async def test_what_does_not_fit_is_not_asked(database: Database, people: People) -> None:
    embryo = await a_draft(database, people.owner)
    provider = ScriptedProvider()
    error = await refusal_of(
        talk(rehearsals(database, provider, budget=5), people.owner, embryo.id)
    )
    assert told(error) == (Invalid, "CONTEXT_TOO_LONG", ("text",))
    assert provider.answers == []


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "TEXT_EMPTY"), (" ", "TEXT_EMPTY"), ("a\0", "INVALID_TEXT")],
)
async def test_what_is_said_is_checked(
    database: Database, people: People, text: str, code: str
) -> None:
    embryo = await a_draft(database, people.owner)
    provider = ScriptedProvider()
    error = await refusal_of(talk(rehearsals(database, provider), people.owner, embryo.id, text))
    assert told(error) == (Invalid, code, ("text",))
    assert provider.answers == []


async def test_what_cannot_be_stored_is_left_out_of_pieces_and_answer(
    database: Database, people: People
) -> None:
    embryo = await a_draft(database, people.owner)
    parts = [TextPart("text", "a\0b"), TextPart("text", "\0"), TextPart("text", "\ud800"), STOP]
    *pieces, last = await talk(
        rehearsals(database, ScriptedProvider(*parts)), people.owner, embryo.id
    )
    assert [each.text for each in pieces if isinstance(each, RehearsalDelta)] == ["ab", "?"]
    assert isinstance(last, RehearsalFinished)
    assert last.turn.answer == "ab?"


@pytest.mark.parametrize("retryable", [True, False])
async def test_a_provider_that_fails_is_told_by_its_code(
    database: Database, people: People, retryable: bool
) -> None:
    """Rule C11."""
    embryo = await a_draft(database, people.owner)
    trouble = ProviderError("PROVIDER_ERROR", "It broke.", retryable=retryable)
    provider = ScriptedProvider(TextPart("text", "Ye"), trouble)
    open_ = rehearsals(database, provider)
    error = await refusal_of(talk(open_, people.owner, embryo.id))
    assert told(error) == (Unavailable, "PROVIDER_ERROR", ())
    assert (error.message, error.is_retryable) == ("It broke.", retryable)
    assert open_.running_count == 0
    assert await read(database, people.owner, embryo.id) == embryo


async def test_a_refusal_at_the_end_keeps_nothing(database: Database, people: People) -> None:
    """Rule C11."""
    embryo = await a_draft(database, people.owner)
    provider = ScriptedProvider(TextPart("text", "Ye"), Finished("refused", None, None))
    error = await refusal_of(talk(rehearsals(database, provider), people.owner, embryo.id))
    assert (error.code, error.is_retryable) == ("REFUSED", False)
    assert await read(database, people.owner, embryo.id) == embryo


async def test_a_mistake_of_ours_is_not_hidden(database: Database, people: People) -> None:
    embryo = await a_draft(database, people.owner)
    with pytest.raises(ZeroDivisionError):
        await talk(
            rehearsals(database, ScriptedProvider(ZeroDivisionError())), people.owner, embryo.id
        )
    assert await read(database, people.owner, embryo.id) == embryo


async def test_a_silent_provider_runs_into_the_time_out_of_runs(
    database: Database, people: People
) -> None:
    """Rule C11."""
    embryo = await a_draft(database, people.owner)
    demo = make_provider(ProviderSettings("demo", demo_rate=0, first_token_timeout=0.02))
    error = await refusal_of(
        talk(rehearsals(database, demo), people.owner, embryo.id, "[demo: fault=silence]")
    )
    assert (error.code, error.is_retryable) == ("TIMED_OUT", True)
    assert await read(database, people.owner, embryo.id) == embryo


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "closed"])
async def test_hanging_up_ends_it_and_keeps_nothing(
    database: Database, people: People, is_cancelled: bool
) -> None:
    """Rule C10."""
    embryo = await a_draft(database, people.owner)
    provider = ScriptedProvider(is_held=True)
    open_ = rehearsals(database, provider)
    if is_cancelled:
        listening = asyncio.create_task(talk(open_, people.owner, embryo.id))
        answer = await provider.begun()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    else:
        events = open_.rehearse(people.owner, embryo.id, "Who are you?")
        first = asyncio.ensure_future(anext(events))
        answer = await provider.begun()
        answer.script.put_nowait(TextPart("text", "Ye"))
        assert await first == RehearsalDelta(TextChannel.TEXT, "Ye")
        await events.aclose()
    assert open_.running_count == 0
    await until(lambda: not answer.is_open)
    assert await read(database, people.owner, embryo.id) == embryo
    provider.is_held = False
    assert len(await talk(open_, people.owner, embryo.id)) == 4


async def test_a_draft_is_talked_with_by_one_at_a_time(database: Database, people: People) -> None:
    """Rule C10."""
    embryo, other = [await a_draft(database, people.owner) for _ in range(2)]
    provider = ScriptedProvider(is_held=True)
    open_ = rehearsals(database, provider)
    first = asyncio.create_task(talk(open_, people.owner, embryo.id))
    answer = await provider.begun()
    error = await refusal_of(talk(open_, people.owner, embryo.id))
    assert told(error) == (Conflict, "REHEARSAL_RUNNING", ("embryoId",))
    for viewer in (people.stranger, people.anonymous):
        error = await refusal_of(talk(open_, viewer, embryo.id))
        assert told(error) == (NotFound, "NOT_FOUND", ("embryoId",))
    provider.is_held = False
    assert len(await talk(open_, people.owner, other.id)) == 4
    answer.script.put_nowait(STOP)
    (finished,) = await first
    assert isinstance(finished, RehearsalFinished)
    assert len(await talk(open_, people.owner, embryo.id)) == 4


async def test_whoever_hears_of_the_end_may_go_on_at_once(
    database: Database, people: People
) -> None:
    """Rule C10."""
    embryo = await a_draft(database, people.owner)
    open_ = rehearsals(database)
    async with contextlib.aclosing(
        open_.rehearse(people.owner, embryo.id, "Who are you?")
    ) as events:
        while not isinstance(await anext(events), RehearsalFinished):
            pass
        assert len(await talk(open_, people.owner, embryo.id)) == 4


async def test_a_server_has_so_many_rehearsals_at_once(database: Database, people: People) -> None:
    """Rule C10."""
    drafts = [await a_draft(database, people.owner) for _ in range(3)]
    provider = ScriptedProvider(is_held=True)
    open_ = rehearsals(database, provider, most=2)
    listening = [asyncio.create_task(talk(open_, people.owner, each.id)) for each in drafts[:2]]
    await provider.begun(2)
    error = await refusal_of(talk(open_, people.owner, drafts[2].id))
    assert told(error) == (Unavailable, "TOO_MANY_REHEARSALS", ())
    assert error.is_retryable
    for answer in provider.answers:
        answer.script.put_nowait(STOP)
    assert [len(events) for events in await asyncio.gather(*listening)] == [1, 1]
    provider.is_held = False
    assert len(await talk(open_, people.owner, drafts[2].id)) == 4


@pytest.mark.parametrize("end", ["activated", "abandoned", "filled"])
async def test_a_draft_that_changed_its_state_meanwhile_keeps_nothing(
    database: Database, people: People, end: str
) -> None:
    """Rule C10."""
    embryo = await a_draft(database, people.owner)
    provider = ScriptedProvider(is_held=True)
    open_ = rehearsals(database, provider)
    listening = asyncio.create_task(talk(open_, people.owner, embryo.id))
    answer = await provider.begun()
    async with database.writing() as writing:
        if end == "activated":
            await characters.activate_embryo(writing, people.owner, embryo.id, ALL_POINTS)
        elif end == "abandoned":
            await characters.abandon_embryo(writing, people.owner, embryo.id)
        else:  # by another server
            for _ in range(characters.MAX_REHEARSAL):
                await characters.add_rehearsal_turn(writing, people.owner, embryo.id, TURN)
    before = await Ledger(database.dsn).fingerprint()
    answer.script.put_nowait(STOP)
    assert (
        told(await refusal_of(listening))
        == {
            "activated": (Conflict, "ALREADY_ACTIVATED", ("embryoId",)),
            "abandoned": (NotFound, "NOT_FOUND", ("embryoId",)),
            "filled": (LimitReached, "REHEARSAL_FULL", ("embryoId",)),
        }[end]
    )
    assert await Ledger(database.dsn).fingerprint() == before


async def test_a_change_of_the_draft_meanwhile_is_not_lost(
    database: Database, people: People
) -> None:
    embryo = await a_draft(database, people.owner)
    provider = ScriptedProvider(is_held=True)
    listening = asyncio.create_task(talk(rehearsals(database, provider), people.owner, embryo.id))
    answer = await provider.begun()
    async with database.writing() as writing:
        await characters.update_embryo(
            writing, people.owner, embryo.id, identity={"name": "Knight"}, confirmed=ALL_POINTS
        )
    answer.script.put_nowait(STOP)
    (finished,) = await listening
    found = await read(database, people.owner, embryo.id)
    assert isinstance(finished, RehearsalFinished)
    assert found == finished.embryo
    assert found.provisional_identity["name"] == "Knight"
    assert (found.status, found.version) == (EmbryoStatus.READY, 3)


@pytest.mark.parametrize("state", ["issued", "full"])
async def test_nothing_is_asked_for_a_draft_that_could_not_keep_it(
    database: Database, people: People, state: str
) -> None:
    """Rule C10."""
    embryo = await a_draft(database, people.owner)
    async with database.writing() as writing:
        if state == "issued":
            await characters.activate_embryo(writing, people.owner, embryo.id, ALL_POINTS)
        else:
            for _ in range(characters.MAX_REHEARSAL):
                await characters.add_rehearsal_turn(writing, people.owner, embryo.id, TURN)
    provider = ScriptedProvider()
    error = await refusal_of(talk(rehearsals(database, provider), people.owner, embryo.id))
    assert (
        told(error)
        == {
            "issued": (Conflict, "ALREADY_ACTIVATED", ("embryoId",)),
            "full": (LimitReached, "REHEARSAL_FULL", ("embryoId",)),
        }[state]
    )
    assert provider.answers == []


async def test_no_connection_is_held_while_the_provider_answers(
    database: Database, people: People
) -> None:
    """Rule C9: with one connection for each purpose, others still read and write."""
    embryo = await a_draft(database, people.owner)
    provider = ScriptedProvider(is_held=True)
    narrow = await open_database(database.dsn, pool_size=1, statement_timeout=10)
    try:
        listening = asyncio.create_task(talk(rehearsals(narrow, provider), people.owner, embryo.id))
        answer = await provider.begun()
        async with asyncio.timeout(PATIENCE):
            async with narrow.writing() as writing:
                await characters.create_embryo(
                    writing, people.owner, Origin.ORIGINAL, {"name": "Meanwhile"}
                )
            async with narrow.reading() as reading:
                await require_row(reading, people.owner, EmbryoDraft, embryo.id)
        answer.script.put_nowait(STOP)
        assert len(await listening) == 1
    finally:
        await narrow.close()


async def test_a_stop_of_the_server_ends_every_rehearsal(
    database: Database, people: People
) -> None:
    """Rule C11."""
    embryo = await a_draft(database, people.owner)
    provider = ScriptedProvider(is_held=True)
    open_ = rehearsals(database, provider)
    listening = asyncio.create_task(talk(open_, people.owner, embryo.id))
    answer = await provider.begun()
    await open_.drain()
    assert not answer.is_open
    for late in (listening, talk(open_, people.owner, embryo.id)):
        error = await refusal_of(late)
        assert told(error) == (Unavailable, "SERVER_STOPPING", ())
        assert error.is_retryable
    async with database.reading() as reading:
        assert await find_row(reading, people.owner, EmbryoDraft, embryo.id) == embryo
