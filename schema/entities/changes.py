"""Changes to a story's world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import EntityKind, EntityStatus, InjectionMode, ItemSlot
from resolvers import entities as resolve
from schema.base import Long, Payload, described, described_input, enum, field, mutation
from schema.branch_rows import EXPECTED_HEAD
from schema.deltas import RowChange
from schema.entities.rows import CharacterRelationship, StoryCharacter, StoryEntity, StoryItem

if TYPE_CHECKING:
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]

ENTITY = "The entity."
BRANCH = "The branch, with its new head."
ALSO_CHANGED = "The other entities that were changed in the same act: 200 at most."
NAME = "What it is called, 500 characters at most."
KEYWORDS = "Other names that it goes by, 50 at most."
TAGS = "Words by which people sort, 50 at most."
PRIORITY = "From 0 to 100: what comes first where not all fit into a prompt."
REASON = "Why it is gone, 500 characters at most; only of who is retired."
STATE = (
    "A patch: what is left out stays, null clears, lists are whole. Other entities are named by "
    "rowId or id. Items that come into a slot leave wherever they were. Keys of stackables are "
    "kept in lower case; of a count of 0 nothing is kept. lastSeenAt is not yours to write."
)

enum(
    ItemSlot,
    EQUIPPED="Worn or wielded.",
    INVENTORY="Carried besides.",
)


@described_input
class EntityCreateInput:
    """An entity to make."""

    branch_id: strawberry.ID = field("The branch.")
    kind: EntityKind = field("What it is; stays as it is.")
    name: str = field(NAME)
    description: str = field("Who or what it is, 50,000 characters at most.", default="")
    status: EntityStatus = field("Whether it has come into the story.", default=EntityStatus.ACTIVE)
    retired_reason: str | None = field(REASON, default=None)
    keywords: list[str] = field(KEYWORDS, default_factory=list)
    tags: list[str] = field(TAGS, default_factory=list)
    injection_mode: InjectionMode = field(
        "When it comes into a prompt.", default=InjectionMode.AUTO
    )
    priority: int = field(PRIORITY, default=50)
    state: JSON | None = field(STATE, default=None)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntityCreatePayload(Payload):
    """The new entity."""

    entity: StoryEntity | None = field(ENTITY)
    also_changed: list[StoryEntity] | None = field(ALSO_CHANGED)
    namesakes: list[StoryEntity] | None = field(
        "Others of its kind with the same name or one that holds it or lies in it: the same "
        "names first. 200 at most."
    )
    branch: LazyBranch | None = field(BRANCH)


@described_input
class EntityUpdateInput:
    """An entity to change; what is left out or null stays as it is."""

    entity_id: strawberry.ID = field(ENTITY)
    name: str | None = field(NAME, default=None)
    description: str | None = field("Who or what it is, 50,000 characters at most.", default=None)
    status: EntityStatus | None = field(
        "Whether it has come into the story, or gone. A place takes the places inside it along "
        "when it is retired.",
        default=None,
    )
    retired_reason: strawberry.Maybe[str | None] = field(REASON + " Null clears it.")
    keywords: list[str] | None = field(KEYWORDS, default=None)
    tags: list[str] | None = field(TAGS, default=None)
    injection_mode: InjectionMode | None = field("When it comes into a prompt.", default=None)
    priority: int | None = field(PRIORITY, default=None)
    state: JSON | None = field(STATE, default=None)
    clear_collision: bool = field(
        "Whether to say that it is no duplicate: takes the mark of it and of its pair away.",
        default=False,
    )
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntityUpdatePayload(Payload):
    """The changed entity."""

    entity: StoryEntity | None = field(ENTITY)
    also_changed: list[StoryEntity] | None = field(ALSO_CHANGED)
    branch: LazyBranch | None = field(BRANCH)


@described_input
class EntityRetireInput:
    """An entity that is gone for good."""

    entity_id: strawberry.ID = field(ENTITY)
    reason: str | None = field("Why, 500 characters at most.", default=None)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntityRetirePayload(Payload):
    """The retired entity."""

    entity: StoryEntity | None = field(ENTITY)
    also_changed: list[StoryEntity] | None = field(ALSO_CHANGED)
    branch: LazyBranch | None = field(BRANCH)


@described_input
class EntityDeleteInput:
    """An entity to delete."""

    entity_id: strawberry.ID = field(ENTITY)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntityDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the entity.")
    also_changed: list[StoryEntity] | None = field(ALSO_CHANGED)
    branch: LazyBranch | None = field(BRANCH)


@described_input
class EntityMergeInput:
    """Two entities that are one."""

    kept_id: strawberry.ID = field("The one that stays.")
    lost_id: strawberry.ID = field("The one that goes, of the same kind and branch.")
    dry_run: bool = field("Whether only to tell what would change.", default=False)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntityMergePayload(Payload):
    """What was merged, or would be."""

    entity: StoryEntity | None = field("The entity that stays.")
    also_changed: list[StoryEntity] | None = field(ALSO_CHANGED)
    changes: list[RowChange] | None = field(
        "What the merge changes, of a dry run too: entities, relationships, who took part and "
        "who knows, translations. 1,000 at most."
    )
    branch: LazyBranch | None = field(BRANCH)


@described_input
class ItemMoveInput:
    """Where an item goes: to a holder, to a place, or, with neither, nowhere in particular."""

    item_id: strawberry.ID = field("The item.")
    holder_id: strawberry.ID | None = field("The character that gets it.", default=None)
    slot: ItemSlot | None = field("How the character has it: INVENTORY unless given.", default=None)
    location_id: strawberry.ID | None = field("The place where it lies.", default=None)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class ItemMovePayload(Payload):
    """The moved item."""

    item: StoryItem | None = field("The item.")
    also_changed: list[StoryEntity] | None = field(ALSO_CHANGED)
    branch: LazyBranch | None = field(BRANCH)


@described_input
class StackablesTransferInput:
    """A quantity that goes from one character to another."""

    giver_id: strawberry.ID | None = field(
        "Who gives; without one it comes from nowhere in particular.", default=None
    )
    receiver_id: strawberry.ID | None = field(
        "Who gets it; without one it is used up.", default=None
    )
    key: str = field("What it is, 40 characters at most, in lower case or not: gold, arrows.")
    amount: Long = field("How much, 1 at least, and no more than the giver has.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class StackablesTransferPayload(Payload):
    """Who gave and who got."""

    giver: StoryCharacter | None = field("The character that gave.")
    receiver: StoryCharacter | None = field("The character that got it.")
    branch: LazyBranch | None = field(BRANCH)


@described_input
class RelationshipSetInput:
    """What one character sees in another one."""

    subject_id: strawberry.ID = field("The character that sees.")
    object_id: strawberry.ID = field("The character that is seen, of the same branch.")
    kind: str | None = field(
        "What it sees: brother, rival; 500 characters at most. Null or blank: nothing is known.",
        default=None,
    )
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class RelationshipSetPayload(Payload):
    """The relationship."""

    relationship: CharacterRelationship | None = field(
        "The relationship of the two; null where nothing of it is known any more."
    )
    branch: LazyBranch | None = field(BRANCH)


@described_input
class RelationshipDeleteInput:
    """A relationship to forget."""

    relationship_id: strawberry.ID = field("The relationship.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class RelationshipDeletePayload(Payload):
    """What was forgotten."""

    deleted_id: strawberry.ID | None = field("Id of the relationship.")
    branch: LazyBranch | None = field(BRANCH)


@strawberry.type
class EntityMutation:
    """Changes to a story's world."""

    entity_create: EntityCreatePayload = mutation(
        resolve.create_entity,
        input=EntityCreateInput,
        payload=EntityCreatePayload,
        description="Make a character, location, item or faction.",
    )
    entity_update: EntityUpdatePayload = mutation(
        resolve.update_entity,
        input=EntityUpdateInput,
        payload=EntityUpdatePayload,
        description="Change an entity, with whatever follows from it, in one act.",
    )
    entity_retire: EntityRetirePayload = mutation(
        resolve.retire_entity,
        input=EntityRetireInput,
        payload=EntityRetirePayload,
        description="Say that an entity is gone for good; a place with all places inside it. "
        "entityUpdate brings it back.",
    )
    entity_delete: EntityDeletePayload = mutation(
        resolve.delete_entity,
        input=EntityDeleteInput,
        payload=EntityDeletePayload,
        description="Delete an entity with its relationships, its parts in happenings, what it "
        "knows and its translations. What it held or placed is nowhere in particular then.",
    )
    entity_merge: EntityMergePayload = mutation(
        resolve.merge_entities,
        input=EntityMergeInput,
        payload=EntityMergePayload,
        description="Make two entities one. Undo parts them again.",
    )
    item_move: ItemMovePayload = mutation(
        resolve.move_item,
        input=ItemMoveInput,
        payload=ItemMovePayload,
        description="Move an item: away from wherever it is.",
    )
    stackables_transfer: StackablesTransferPayload = mutation(
        resolve.transfer_stackables,
        input=StackablesTransferInput,
        payload=StackablesTransferPayload,
        description="Move a quantity from one character to another.",
    )
    relationship_set: RelationshipSetPayload = mutation(
        resolve.set_relationship,
        input=RelationshipSetInput,
        payload=RelationshipSetPayload,
        description="Say what one character sees in another. What the other sees stays.",
    )
    relationship_delete: RelationshipDeletePayload = mutation(
        resolve.delete_relationship,
        input=RelationshipDeleteInput,
        payload=RelationshipDeletePayload,
        description="Forget what two characters are to each other.",
    )
