"""Relations of a story's world: who is where, what lies within what, who holds and sees what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import EntityKind, InjectionMode
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, CharacterRelationship, StoryEntity
from resolvers import branch_rows
from resolvers.context import Context
from services import entities as service
from services.text import refuse_unstorable


async def entities_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    filter: Any = None,
    search: str | None = None,
    as_of: Any = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[StoryEntity]]:
    """The entities of each branch, or those that are wanted."""
    refuse_unstorable(search, ("search",))
    kinds, statuses = (getattr(filter, each, None) for each in ("kinds", "statuses"))
    wanted = service.EntityFilter(
        kinds=None if kinds is None else tuple(kinds),
        statuses=None if statuses is None else tuple(statuses),
        search=search,
    )
    return await branch_rows.pages(
        context,
        service.ENTITIES_OF_BRANCHES,
        branches,
        page,
        as_of=as_of,
        keep=wanted.takes,
        **wanted.values,
    )


async def relationships_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    as_of: Any = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[CharacterRelationship]]:
    """What the characters of each branch are to each other."""
    return await branch_rows.pages(
        context, service.RELATIONSHIPS_OF_BRANCHES, branches, page, as_of=as_of
    )


async def _linked(
    context: Context, kind: EntityKind, rows: Sequence[Any], row_ids: Sequence[str | None]
) -> list[StoryEntity | None]:
    """What each row names, where it is of the kind that it should be."""
    found = await branch_rows.linked(context, StoryEntity, rows, row_ids)
    return [each if each is not None and each.kind == kind else None for each in found]


def _named(key: str, rows: Sequence[StoryEntity]) -> list[str | None]:
    return [each.state.get(key) for each in rows]


async def partners_of_entities(
    context: Context, entities: Sequence[StoryEntity]
) -> list[StoryEntity | None]:
    """The namesake that each entity may be a duplicate of."""
    return await branch_rows.linked(
        context, StoryEntity, entities, [each.name_collision_partner_id for each in entities]
    )


async def locations_of_characters(
    context: Context, characters: Sequence[StoryEntity]
) -> list[StoryEntity | None]:
    """Where each character is."""
    named = _named("current_location_id", characters)
    return await _linked(context, EntityKind.LOCATION, characters, named)


async def last_locations_of_characters(
    context: Context, characters: Sequence[StoryEntity]
) -> list[StoryEntity | None]:
    """Where each character was seen last."""
    seen = [each.state.get("lastSeenAt") or {} for each in characters]
    named = [each.get("locationId") for each in seen]
    return await _linked(context, EntityKind.LOCATION, characters, named)


async def factions_of_characters(
    context: Context, characters: Sequence[StoryEntity]
) -> list[StoryEntity | None]:
    """What each character belongs to."""
    named = _named("faction_id", characters)
    return await _linked(context, EntityKind.FACTION, characters, named)


async def _items(
    context: Context, slot: str, characters: Sequence[StoryEntity]
) -> list[list[StoryEntity]]:
    held = [each.state.get(slot, ()) for each in characters]
    found = await branch_rows.linked_lists(context, StoryEntity, characters, held)
    return [[each for each in items if each.kind == EntityKind.ITEM] for items in found]


async def equipped_items_of_characters(
    context: Context, characters: Sequence[StoryEntity]
) -> list[list[StoryEntity]]:
    """What each character wears and wields."""
    return await _items(context, "equipped_items", characters)


async def inventories_of_characters(
    context: Context, characters: Sequence[StoryEntity]
) -> list[list[StoryEntity]]:
    """What each character carries besides."""
    return await _items(context, "inventory", characters)


@dataclass(frozen=True, slots=True)
class RelationshipView:
    """A relationship, from where one of its two characters stands."""

    row: CharacterRelationship
    self_id: str

    @property
    def branch_id(self) -> str:
        """The branch of the relationship."""
        return self.row.branch_id

    @property
    def moment(self) -> Any:
        """The moment of the relationship."""
        return getattr(self.row, "moment", None)

    @property
    def is_first(self) -> bool:
        """Whether this character is the first of the pair."""
        return self.row.a_id == self.self_id

    @property
    def other_id(self) -> str:
        """The own id of the other character."""
        return self.row.b_id if self.is_first else self.row.a_id

    @property
    def self_to_other(self) -> str | None:
        """What this character sees in the other."""
        return self.row.kind if self.is_first else self.row.inverse_kind

    @property
    def other_to_self(self) -> str | None:
        """What the other sees in this one."""
        return self.row.inverse_kind if self.is_first else self.row.kind

    @property
    def relationship(self) -> CharacterRelationship:
        """The row."""
        return self.row


async def views_of_characters(
    context: Context, characters: Sequence[StoryEntity]
) -> list[list[RelationshipView]]:
    """The relationships of each character, oldest first."""
    found: list[list[CharacterRelationship]] = [[] for _ in characters]
    for listing in (service.RELATIONSHIPS_OF_FIRSTS, service.RELATIONSHIPS_OF_SECONDS):
        lists = await branch_rows.lists(context, listing, characters)
        for own, rows in zip(found, lists, strict=True):
            own += rows
    return [
        [
            RelationshipView(row, character.row_id)
            for row in sorted(rows, key=lambda each: (each.created_at, each.row_id))
        ][: branch_rows.MAX_LINKED]
        for character, rows in zip(characters, found, strict=True)
    ]


async def others_of_views(
    context: Context, views: Sequence[RelationshipView]
) -> list[StoryEntity | None]:
    """The other character of each view."""
    return await _linked(context, EntityKind.CHARACTER, views, [each.other_id for each in views])


async def firsts_of_relationships(
    context: Context, relationships: Sequence[CharacterRelationship]
) -> list[StoryEntity | None]:
    """The first character of each pair."""
    named = [each.a_id for each in relationships]
    return await _linked(context, EntityKind.CHARACTER, relationships, named)


async def seconds_of_relationships(
    context: Context, relationships: Sequence[CharacterRelationship]
) -> list[StoryEntity | None]:
    """The second character of each pair."""
    named = [each.b_id for each in relationships]
    return await _linked(context, EntityKind.CHARACTER, relationships, named)


async def parents_of_locations(
    context: Context, locations: Sequence[StoryEntity]
) -> list[StoryEntity | None]:
    """What each place lies in."""
    named = _named("parent_location_id", locations)
    return await _linked(context, EntityKind.LOCATION, locations, named)


async def children_of_locations(
    context: Context, locations: Sequence[StoryEntity]
) -> list[list[StoryEntity]]:
    """The places right inside each place."""
    return await branch_rows.lists(context, service.CHILDREN_OF_LOCATIONS, locations)


async def occupants_of_locations(
    context: Context, locations: Sequence[StoryEntity]
) -> list[list[StoryEntity]]:
    """The characters at each place."""
    return await branch_rows.lists(context, service.OCCUPANTS_OF_LOCATIONS, locations)


async def items_of_locations(
    context: Context, locations: Sequence[StoryEntity], *, page: PageRequest = FIRST_PAGE
) -> list[Page[StoryEntity]]:
    """What lies at each place."""
    return await branch_rows.pages(context, service.ITEMS_OF_LOCATIONS, locations, page)


async def _chains(
    context: Context, places: Sequence[tuple[StoryEntity, str]]
) -> list[list[service.Link]]:
    """Each place with all that is around it, the nearest first. A place is named by its own id,
    beside a row of the same branch and moment.
    """
    present = list(
        dict.fromkeys(
            f"{row.branch_id}:{row_id}"
            for row, row_id in places
            if getattr(row, "moment", None) is None
        )
    )
    stored: dict[str, list[service.Link]] = {}
    if present:
        async with context.reading() as reading:
            found = await service.chains_of_places(reading, context.viewer, present)
        stored = dict(zip(present, found, strict=True))
    chains = []
    for row, row_id in places:
        moment = getattr(row, "moment", None)
        if moment is None:
            chains.append(stored[f"{row.branch_id}:{row_id}"])
        else:
            then = await branch_rows.rows_at(context, moment, StoryEntity)
            chains.append(service.chain_among(then, row_id))
    return chains


async def paths_of_locations(
    context: Context, locations: Sequence[StoryEntity]
) -> list[list[StoryEntity]]:
    """The places around each place, the nearest first."""
    chains = await _chains(context, [(each, each.row_id) for each in locations])
    around = [[each.row_id for each in chain[1:]] for chain in chains]
    return await branch_rows.linked_lists(context, StoryEntity, locations, around)


@dataclass(frozen=True, slots=True)
class _BranchThen:
    """A branch, named as a parent of lists, at a moment or at present."""

    id: str
    moment: Any


async def injection_modes_of_locations(
    context: Context, locations: Sequence[StoryEntity]
) -> list[InjectionMode]:
    """The mode that holds for each place, those around it considered."""
    branches = [_BranchThen(each.branch_id, getattr(each, "moment", None)) for each in locations]
    distinct = list(dict.fromkeys(branches))
    pages = await branch_rows.pages(
        context,
        service.TELLING_ENTRIES_OF_BRANCHES,
        distinct,
        PageRequest(last=1),
        keep=service.is_telling,
    )
    # Where the story of each branch is: its own chain is asked for together with the others.
    places = {
        branch: page.nodes[-1].current_location_id
        for branch, page in zip(distinct, pages, strict=True)
        if page.nodes
    }
    here = [
        (row, place)
        for row, branch in zip(locations, branches, strict=True)
        if (place := places.get(branch)) is not None
    ]
    chains = await _chains(context, [*((each, each.row_id) for each in locations), *here])
    around = {
        (row.branch_id, getattr(row, "moment", None)): chain
        for (row, _), chain in zip(here, chains[len(locations) :], strict=True)
    }
    return [
        service.effective_mode(each, chain[1:], around.get((branch.id, branch.moment), []))
        for each, branch, chain in zip(locations, branches, chains, strict=False)
    ]


async def holders_of_items(
    context: Context, items: Sequence[StoryEntity]
) -> list[StoryEntity | None]:
    """The character that has each item."""
    present = [each for each in items if getattr(each, "moment", None) is None]
    holders: dict[str, str | None] = {}
    if present:
        async with context.reading() as reading:
            found = await service.holders_of_items(reading, context.viewer, present)
        holders = dict(zip([each.id for each in present], found, strict=True))
    held = []
    for item in items:
        moment = getattr(item, "moment", None)
        if moment is None:
            held.append(holders[item.id])
        else:
            then = await branch_rows.rows_at(context, moment, StoryEntity)
            held.append(service.holder_among(then.values(), item.row_id))
    return await _linked(context, EntityKind.CHARACTER, items, held)


async def locations_of_items(
    context: Context, items: Sequence[StoryEntity]
) -> list[StoryEntity | None]:
    """Where each item lies."""
    named = _named("at_location_id", items)
    return await _linked(context, EntityKind.LOCATION, items, named)


async def members_of_factions(
    context: Context, factions: Sequence[StoryEntity], *, page: PageRequest = FIRST_PAGE
) -> list[Page[StoryEntity]]:
    """The characters that belong to each faction."""
    return await branch_rows.pages(context, service.MEMBERS_OF_FACTIONS, factions, page)
