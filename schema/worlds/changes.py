"""Changes to worlds and to what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import EntityStatus, MergeEffect, WorldEntityKind
from resolvers.worlds import changing as resolve
from schema.base import Long, Payload, described, described_input, field, mutation
from schema.branch_rows import EXPECTED_HEAD
from schema.worlds.rows import (
    Casting,
    LazyStoryEntity,
    World,
    WorldEntity,
    WorldMerge,
    WorldRelation,
)

if TYPE_CHECKING:
    from schema.stories.changes import KeyedId
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyKeyedId = Annotated["KeyedId", strawberry.lazy("schema.stories.changes")]
EXPECTED_VERSION = "The version that the change was made for; any other is refused with CONFLICT."
NAME = "What it is called, 500 characters at most."
BACKGROUND = "What it is like, in prose; may be blank."
RULES = "What holds in it: 50 texts of 500 characters at most."
DESCRIPTION = "Who or what it is, in prose; may be blank."
ALIASES = "Other names, 50 at most."
TAGS = "Words by which people sort it, 50 at most."
ATTRIBUTES = "Whatever is to be kept of it: an object of 100,000 bytes at most."
SOURCES = "Where it is told, 50 at most."
KIND = "What kind of relation it is, in free words."
LABEL = "What is said of it."
WEIGHT = "How strong it is: above 0; 1 unless said otherwise."
DIRECTED = "Whether it matters which way it leads; it does unless said otherwise."
FROM = "From when on it holds, in seconds; always unless given."
UNTIL = "Before when it holds, in seconds; for good unless given."
CONFIDENCE = "How sure it is, from 0 to 1."


@described_input
class WorldCreateInput:
    """A world to make."""

    name: str = field(NAME)
    background: str = field(BACKGROUND, default="")
    rules: list[str] = field(RULES, default_factory=list)


@described
class WorldCreatePayload(Payload):
    """The new world."""

    world: World | None = field("The world.")


@described_input
class WorldUpdateInput:
    """A world to change; what is left out stays as it is."""

    world_id: strawberry.ID = field("The world.")
    expected_version: int | None = field(EXPECTED_VERSION, default=None)
    name: strawberry.Maybe[str] = field(NAME)
    background: strawberry.Maybe[str] = field(BACKGROUND)
    rules: strawberry.Maybe[list[str]] = field(RULES)


@described
class WorldUpdatePayload(Payload):
    """The changed world."""

    world: World | None = field("The world.")


@described_input
class WorldDeleteInput:
    """A world to delete."""

    world_id: strawberry.ID = field("The world.")


@described
class WorldDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the world.")


@described_input
class WorldEntityCreateInput:
    """Somebody or something to put into a world."""

    world_id: strawberry.ID = field("The world.")
    kind: WorldEntityKind = field("What it is.")
    name: str = field(NAME)
    description: str = field(DESCRIPTION, default="")
    aliases: list[str] = field(ALIASES, default_factory=list)
    tags: list[str] = field(TAGS, default_factory=list)
    attributes: JSON | None = field(ATTRIBUTES, default=None)
    sources: list[str] = field(SOURCES, default_factory=list)


@described
class WorldEntityCreatePayload(Payload):
    """The new entity."""

    world_entity: WorldEntity | None = field("The entity.")


@described_input
class WorldEntityUpdateInput:
    """An entity to change; what is left out stays as it is, lists are whole."""

    world_entity_id: strawberry.ID = field("The entity.")
    expected_version: int | None = field(EXPECTED_VERSION, default=None)
    kind: strawberry.Maybe[WorldEntityKind] = field("What it is.")
    name: strawberry.Maybe[str] = field(NAME)
    description: strawberry.Maybe[str] = field(DESCRIPTION)
    aliases: strawberry.Maybe[list[str]] = field(ALIASES)
    tags: strawberry.Maybe[list[str]] = field(TAGS)
    attributes: strawberry.Maybe[JSON] = field(ATTRIBUTES)
    sources: strawberry.Maybe[list[str]] = field(SOURCES)


@described
class WorldEntityUpdatePayload(Payload):
    """The changed entity."""

    world_entity: WorldEntity | None = field("The entity.")


@described_input
class WorldEntityDeleteInput:
    """An entity to delete, with its relations."""

    world_entity_id: strawberry.ID = field("The entity.")


@described
class WorldEntityDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the entity.")


@described_input
class WorldRelationSetInput:
    """What one entity is to another. A relation with the same ends, kind and beginning is changed,
    and what is left out of it stays.
    """

    source_id: strawberry.ID = field("The entity that it leads from.")
    target_id: strawberry.ID = field("The entity that it leads to, in the same world.")
    kind: str = field(KIND)
    label: strawberry.Maybe[str | None] = field(LABEL)
    weight: strawberry.Maybe[float] = field(WEIGHT)
    is_directed: strawberry.Maybe[bool] = field(DIRECTED)
    valid_from: strawberry.Maybe[Long | None] = field(FROM)
    valid_until: strawberry.Maybe[Long | None] = field(UNTIL)
    confidence: strawberry.Maybe[float | None] = field(CONFIDENCE)
    sources: strawberry.Maybe[list[str]] = field(SOURCES)


@described
class WorldRelationSetPayload(Payload):
    """The relation."""

    relation: WorldRelation | None = field("The relation.")


@described_input
class WorldRelationDeleteInput:
    """A relation to delete."""

    relation_id: strawberry.ID = field("The relation.")


@described
class WorldRelationDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the relation.")


@described_input
class WorldSourceRemoveInput:
    """A source to take back from all that names it in a world."""

    world_id: strawberry.ID = field("The world.")
    source: str = field("The source, as it was given.")


@described
class WorldSourceRemovePayload(Payload):
    """What became of what named the source."""

    world: World | None = field("The world.")
    entities_changed: int | None = field("How many entities do not name it any more.")
    relations_changed: int | None = field("How many relations stay, told by other sources.")
    relations_deleted: int | None = field("How many relations were told nowhere else and went.")


@described_input
class WorldEntityUpsertInput:
    """An entity that is to be there. Where it is, aliases and sources are added to it, and what
    else is given replaces what it says.
    """

    key: str = field("A name of your own for it: used in this input, and answered with its id.")
    kind: WorldEntityKind = field("What it is.")
    name: str = field("Its name, by which it is found: without regard to case and accents.")
    description: str | None = field(DESCRIPTION, default=None)
    aliases: list[str] | None = field(ALIASES, default=None)
    tags: list[str] | None = field(TAGS, default=None)
    attributes: JSON | None = field(ATTRIBUTES, default=None)
    sources: list[str] | None = field(SOURCES, default=None)


@described_input
class WorldRelationUpsertInput:
    """A relation that is to be there. Where one has the same ends, kind and beginning, sources are
    added to it, and what else is given replaces what it says.
    """

    source_key: str = field("The key of the entity that it leads from.")
    target_key: str = field("The key of the entity that it leads to.")
    kind: str = field(KIND)
    label: str | None = field(LABEL, default=None)
    weight: float | None = field(WEIGHT, default=None)
    is_directed: bool | None = field(DIRECTED, default=None)
    valid_from: Long | None = field(FROM, default=None)
    valid_until: Long | None = field(UNTIL, default=None)
    confidence: float | None = field(CONFIDENCE, default=None)
    sources: list[str] | None = field(SOURCES, default=None)


@described_input
class WorldUpsertInput:
    """Entities and relations that are to be there: all of them are written, or none."""

    world_id: strawberry.ID = field("The world.")
    entities: list[WorldEntityUpsertInput] = field("The entities, 1,000 at most.")
    relations: list[WorldRelationUpsertInput] = field(
        "The relations between them, 5,000 at most.", default_factory=list
    )


@described
class UpsertCounts:
    """What has become of many rows."""

    created: int = field("How many were made.")
    updated: int = field("How many were changed.")
    unchanged: int = field("How many were as they are to be.")


@described
class WorldUpsertPayload(Payload):
    """What has become of what was given."""

    world: World | None = field("The world.")
    keys: list[LazyKeyedId] | None = field("The ids of the entities, in the order of the input.")
    entities: UpsertCounts | None = field("What has become of the entities.")
    relations: UpsertCounts | None = field("What has become of the relations.")


@described_input
class WorldEntityMergeInput:
    """Two entities of a kind that are one."""

    kept_id: strawberry.ID = field("The one that stays, and gets what it has not.")
    merged_id: strawberry.ID = field("The one that goes.")
    dry_run: bool = field("Whether only to tell what would change.", default=False)


@described
class WorldMergeChange:
    """What becomes of one row."""

    effect: MergeEffect = field("What becomes of it.")
    id: strawberry.ID = field("Its id.")


@described
class WorldEntityMergePayload(Payload):
    """The entity that stays."""

    world_entity: WorldEntity | None = field("The entity that stays.")
    merge: WorldMerge | None = field("The merge, which can be taken back; null after a dry run.")
    changes: list[WorldMergeChange] | None = field("What has changed, or would.")


@described_input
class WorldEntityUnmergeInput:
    """A merge to take back."""

    merge_id: strawberry.ID = field("The merge.")


@described
class WorldEntityUnmergePayload(Payload):
    """Both entities again."""

    kept: WorldEntity | None = field("The entity that had stayed.")
    merged: WorldEntity | None = field("The entity that had gone.")
    merge: WorldMerge | None = field("The merge.")


@described_input
class WorldEntityCastInput:
    """Somebody or something of a world to bring into a branch of a story."""

    world_entity_id: strawberry.ID = field("A character, location, item or faction of a world.")
    branch_id: strawberry.ID = field("The branch.")
    name: str | None = field("What it is called there; as in the world unless given.", default=None)
    description: str | None = field(
        "Who or what it is there; as in the world unless given.", default=None
    )
    status: EntityStatus = field("Whether it is in the story.", default=EntityStatus.ACTIVE)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class WorldEntityCastPayload(Payload):
    """The entity of the story."""

    entity: LazyStoryEntity | None = field("The entity, with the aliases as keywords.")
    casting: Casting | None = field("That it was drawn from the world.")
    branch: LazyBranch | None = field("The branch, with its new head.")


@described_input
class CastingCreateInput:
    """Who plays an entity of a story, or what it was drawn from: one of the two."""

    entity_id: strawberry.ID = field("The entity, in any branch of the story.")
    character_id: strawberry.ID | None = field(
        "The character who plays it, which is a character.", default=None
    )
    world_entity_id: strawberry.ID | None = field(
        "What it was drawn from, of the same kind.", default=None
    )


@described
class CastingCreatePayload(Payload):
    """The casting."""

    casting: Casting | None = field("The casting.")


@described_input
class CastingDeleteInput:
    """A casting to take back."""

    casting_id: strawberry.ID = field("The casting.")


@described
class CastingDeletePayload(Payload):
    """What was taken back."""

    deleted_id: strawberry.ID | None = field("Id of the casting.")


@strawberry.type
class WorldMutation:
    """Changes to worlds."""

    world_create: WorldCreatePayload = mutation(
        resolve.create_world,
        input=WorldCreateInput,
        payload=WorldCreatePayload,
        description="Make a world.",
    )
    world_update: WorldUpdatePayload = mutation(
        resolve.update_world,
        input=WorldUpdateInput,
        payload=WorldUpdatePayload,
        description="Change a world.",
    )
    world_delete: WorldDeletePayload = mutation(
        resolve.delete_world,
        input=WorldDeleteInput,
        payload=WorldDeletePayload,
        description="Delete a world with all that is in it. Stories that are set in it stay.",
    )
    world_upsert: WorldUpsertPayload = mutation(
        resolve.upsert,
        input=WorldUpsertInput,
        payload=WorldUpsertPayload,
        description="Put many entities and relations into a world at once: what is there is found "
        "by its name or an alias, and nothing is written where anything is refused.",
    )
    world_entity_create: WorldEntityCreatePayload = mutation(
        resolve.create_world_entity,
        input=WorldEntityCreateInput,
        payload=WorldEntityCreatePayload,
        description="Put somebody or something into a world.",
    )
    world_entity_update: WorldEntityUpdatePayload = mutation(
        resolve.update_world_entity,
        input=WorldEntityUpdateInput,
        payload=WorldEntityUpdatePayload,
        description="Change an entity of a world.",
    )
    world_entity_delete: WorldEntityDeletePayload = mutation(
        resolve.delete_world_entity,
        input=WorldEntityDeleteInput,
        payload=WorldEntityDeletePayload,
        description="Delete an entity of a world with its relations, and with what was found to "
        "be it. What stories have drawn from it stays in them.",
    )
    world_entity_merge: WorldEntityMergePayload = mutation(
        resolve.merge_world_entities,
        input=WorldEntityMergeInput,
        payload=WorldEntityMergePayload,
        description="Make two entities of a world one: names, relations and castings go over to "
        "the one that stays. worldEntityUnmerge takes it back.",
    )
    world_entity_unmerge: WorldEntityUnmergePayload = mutation(
        resolve.unmerge_world_entities,
        input=WorldEntityUnmergeInput,
        payload=WorldEntityUnmergePayload,
        description="Take a merge back, as long as nothing that it made was changed since.",
    )
    world_entity_cast: WorldEntityCastPayload = mutation(
        resolve.cast_world_entity,
        input=WorldEntityCastInput,
        payload=WorldEntityCastPayload,
        description="Draw one of a story's cast from a world: an entity with the same name and "
        "description, and the record of where it comes from.",
    )
    world_relation_set: WorldRelationSetPayload = mutation(
        resolve.set_relation,
        input=WorldRelationSetInput,
        payload=WorldRelationSetPayload,
        description="Say what one entity of a world is to another.",
    )
    world_relation_delete: WorldRelationDeletePayload = mutation(
        resolve.delete_relation,
        input=WorldRelationDeleteInput,
        payload=WorldRelationDeletePayload,
        description="Delete a relation.",
    )
    world_source_remove: WorldSourceRemovePayload = mutation(
        resolve.remove_source,
        input=WorldSourceRemoveInput,
        payload=WorldSourceRemovePayload,
        description="Take a source back: nothing names it any more, and relations that were told "
        "nowhere else go.",
    )
    casting_create: CastingCreatePayload = mutation(
        resolve.create_casting,
        input=CastingCreateInput,
        payload=CastingCreatePayload,
        description="Write down who plays an entity of a story, or what it was drawn from.",
    )
    casting_delete: CastingDeletePayload = mutation(
        resolve.delete_casting,
        input=CastingDeleteInput,
        payload=CastingDeletePayload,
        description="Take a casting back; both sides stay as they are.",
    )
