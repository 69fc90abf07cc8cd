"""What a model is told of how the character looks."""

from __future__ import annotations

import pytest

from db.enums import FormKind
from services import characters
from tests.services.runs.servers import Bench, ScriptedProvider, a_server

LOOKS = "How Ada looks: "


async def propose(bench: Bench, kind: FormKind, description: str) -> str:
    async with bench.database.writing() as writing:
        form = await characters.propose_form(
            writing,
            bench.viewer,
            bench.tree.character_id,
            kind=kind,
            name="A form",
            description=description,
            asset_ref=None,
        )
    return form.id


async def settle(bench: Bench, form_id: str) -> None:
    async with bench.database.writing() as writing:
        await characters.settle_form(writing, bench.viewer, form_id)


async def told(bench: Bench) -> str:
    """The system message of a run's request."""
    provider = ScriptedProvider()
    async with a_server(bench.dsn, provider):
        await bench.ended(await bench.ask())
    (answer,) = provider.answers
    system, *_ = answer.request.messages
    assert system.role == "system"
    return system.text


@pytest.mark.parametrize("kind", list(FormKind))
async def test_a_model_is_told_nothing_of_what_is_no_official_primary_form(
    bench: Bench, kind: FormKind
) -> None:
    """Rule F4."""
    form = await propose(bench, kind, "Wears a grey cloak.")
    if kind is FormKind.VARIANT:
        await settle(bench, form)
    assert "grey cloak" not in await told(bench)


async def test_a_model_is_told_the_official_primary_form_with_names_filled_in(bench: Bench) -> None:
    """Rule F4."""
    await settle(bench, await propose(bench, FormKind.PRIMARY, "Wears a grey cloak."))
    await settle(bench, await propose(bench, FormKind.PRIMARY, "{{char}} looks like {{user}}."))
    text = await told(bench)
    assert f"{LOOKS}Ada looks like owner." in text
    assert "grey cloak" not in text
