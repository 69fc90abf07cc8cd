"""Gathers what a run's model is asked: reads it as the one who asked may see it."""

from __future__ import annotations

from db.reading import Reading
from db.tables import Character, Run, TreeNode, User
from services import characters, mirrors
from services.access import Viewer, require_row
from services.providers import Request
from services.runs.prompting import Assembly, assemble, character_sheet

# The nodes, from the end of the talk, whose citations are looked up.
CITING_NODES = 200


async def build_request(
    reading: Reading, viewer: Viewer, run: Run, budget: int
) -> tuple[Request | None, Assembly]:
    """The request of an open run within `budget` tokens, None where what must stay does not fit;
    and what it was put together from. Raises NotFound when the character is out of sight.
    """
    assert run.character_id is not None
    character = await require_row(reading, viewer, Character, run.character_id)
    user = await require_row(reading, viewer, User, run.requested_by_user_id)
    assert run.question_node_id is not None  # what an open run works on is not pruned
    node = await require_row(reading, viewer, TreeNode, run.question_node_id)
    path = await mirrors.talk_to_node(reading, viewer, node)
    citations = await mirrors.citations_of_nodes(
        reading, viewer, [each.id for each in path[-CITING_NODES:]]
    )
    forms = await characters.primary_forms_of_characters(reading, viewer, [character.id])
    form = forms.get(character.id)
    assembly = assemble(
        character,
        path,
        user.name,
        budget=budget,
        form=form.description if form else None,
        citations=citations,
    )
    if assembly.messages is None:
        return None, assembly
    request = Request(
        model=run.model,
        messages=assembly.messages,
        character=character_sheet(character, user.name),
        seed=run.seed,
        max_tokens=None,
    )
    return request, assembly
