"""Deciding petitions: what was asked for is done in the transaction that approves it, or never.

Source: spec soul-mirror, section 6; glossary, section 4 (petition).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from db.enums import PetitionDecision, PetitionKind, PetitionStatus
from db.reading import Writing
from db.tables import Petition
from services import characters, endings
from services.access import Viewer
from services.petitions import hold_pending, settle_petition

# Does what a petition asks for; it and its character are held. What it raises refuses the approval,
# and the petition waits on.
Act: TypeAlias = Callable[[Writing, Viewer, Petition], Awaitable[object]]

# The kinds that can be asked for; a new one is one line.
ACTS: Mapping[PetitionKind, Act] = {
    PetitionKind.DEATH: endings.carry_out_death,
    PetitionKind.SOUL_FORGING: characters.forge_soul,
}


async def decide_petition(
    writing: Writing, viewer: Viewer, petition_id: str, decision: PetitionDecision
) -> Petition:
    """Approve or deny a petition; it is returned as it was settled.

    Of two decisions at once the first holds. Raises NotFound, Conflict (PETITION_DECIDED,
    PETITION_EXPIRED), and what the act raises.
    """
    petition = await hold_pending(writing, viewer, petition_id, "input", "petitionId")
    if decision is PetitionDecision.DENY:
        return await settle_petition(writing, viewer, petition, PetitionStatus.DENIED)
    approved = await settle_petition(writing, viewer, petition, PetitionStatus.APPROVED)
    await ACTS[PetitionKind(petition.kind)](writing, viewer, approved)
    return approved
