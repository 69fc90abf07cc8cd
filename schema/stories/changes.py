"""Making, changing, opening and deleting stories, and their branches as things."""

from __future__ import annotations

import strawberry
from strawberry.scalars import JSON

from db.enums import EntityKind, EntityStatus, InjectionMode, Narration, StoryMode, StoryStatus
from resolvers import stories as resolve
from schema.base import Payload, described, described_input, field, mutation
from schema.stories.rows import Branch, Story

TITLE = "Its title, 500 characters at most."
BLURB = "A blurb for people, which no model sees."
TAGS = "Words to find it by, 50 at most."
ACCENT = "A colour as #rrggbb; without one it follows from the mode."
MODE = "When it comes into a prompt."


@described_input
class StoryStyleInput:
    """A genre or a tone."""

    label: str = field("What it is called, 500 characters at most.")
    prompt_body: str = field("What a model is told of it; may be blank.", default="")


@described_input
class StoryDefinitionInput:
    """What a story is to be."""

    mode: StoryMode = field("How one takes part; stays as it is.")
    narration: Narration = field("In which person it is told.")
    genre: StoryStyleInput = field("Its genre.")
    tone: StoryStyleInput = field("Its tone.")
    setting: str = field("Its world, time and place, in prose; may be blank.", default="")
    lead_key: str | None = field(
        "The character who is played or tells it, by key. Adventures need one, and what is told "
        "in the first or second person.",
        default=None,
    )
    calendar_system_id: strawberry.ID | None = field(
        "The calendar that it counts by; the one chosen for new stories unless given.",
        default=None,
    )
    world_time_origin: JSON | None = field(
        "What time 0 is: a value for each tier of the calendar, by name; the calendar's "
        "exampleStart unless given.",
        default=None,
    )


@described_input
class CastMemberInput:
    """A character, location, item or faction that a story begins with."""

    key: str = field("A name of your own for it: used in this input, and answered with its id.")
    kind: EntityKind = field("What it is.")
    name: str = field("Its name, 500 characters at most.")
    description: str = field("Who or what it is, in prose.", default="")
    status: EntityStatus = field("Whether it is in the story.", default=EntityStatus.ACTIVE)
    parent_key: str | None = field("For a location: what it lies within.", default=None)
    location_key: str | None = field("For a character or an item: where it is.", default=None)
    faction_key: str | None = field("For a character: what it belongs to.", default=None)
    keywords: list[str] = field("Other names, 50 at most.", default_factory=list)
    tags: list[str] = field(TAGS, default_factory=list)
    injection_mode: InjectionMode = field(MODE, default=InjectionMode.AUTO)
    priority: int = field("Of 100: which comes first where not all fit.", default=50)
    state: JSON | None = field(
        "What else its kind has: traits, drives, voice, visual, stackables of a character, "
        "condition of a location or an item, standing and agenda of a faction.",
        default=None,
    )


@described_input
class StoryLoreInput:
    """Something that is so in the world of a new story."""

    key: str = field("A name of your own for it, answered with its id.")
    title: str = field("What it is about, 500 characters at most.")
    body: str = field("What is so.")
    category: str | None = field("What kind of thing it is, in your words.", default=None)
    keywords: list[str] = field("Words that lead to it, 50 at most.", default_factory=list)
    tags: list[str] = field(TAGS, default_factory=list)
    injection_mode: InjectionMode = field(MODE, default=InjectionMode.AUTO)
    priority: int = field("Of 100: the higher, the likelier it comes in.", default=50)


@described_input
class StoryOpeningInput:
    """How a story begins."""

    content: str = field("The text of the first entry.")
    scene_keys: list[str] = field(
        "Characters and items of the cast that are present, 200 at most; all active.",
        default_factory=list,
    )
    location_key: str | None = field("The active location of the scene.", default=None)
    model: str | None = field("The model that wrote it; left out for people.", default=None)


@described_input
class StoryCreateInput:
    """A story to make, with all that it begins with."""

    title: str = field(TITLE)
    definition: StoryDefinitionInput = field("What it is.")
    description: str = field(BLURB, default="")
    tags: list[str] = field(TAGS, default_factory=list)
    accent_color: str | None = field(ACCENT, default=None)
    is_draft: bool = field(
        "Whether it is not finished: it may lack its opening and its lead, until storyUpdate makes "
        "it active.",
        default=False,
    )
    cast: list[CastMemberInput] = field("Its actors, 500 at most.", default_factory=list)
    lore: list[StoryLoreInput] = field("What is so, 1,000 at most.", default_factory=list)
    opening: StoryOpeningInput | None = field("How it begins.", default=None)
    era_name: str | None = field(
        "What the time is called in which it begins, by a calendar that has eras.", default=None
    )
    world_id: strawberry.ID | None = field("The world that it is set in.", default=None)


@described
class KeyedId:
    """Which id something got."""

    key: str = field("The key that the input gave it.")
    id: strawberry.ID = field("Its id.")


@described
class StoryCreatePayload(Payload):
    """The new story."""

    story: Story | None = field("The story.")
    keys: list[KeyedId] | None = field("The ids of cast and lore, in the order of the input.")


@described_input
class StoryDefinitionUpdateInput:
    """What is to change of a definition."""

    narration: strawberry.Maybe[Narration] = field("In which person it is told.")
    lead_entity_id: strawberry.Maybe[strawberry.ID | None] = field(
        "A character of the branch that is open; null for none."
    )
    genre: strawberry.Maybe[StoryStyleInput] = field("Its genre, the whole of it.")
    tone: strawberry.Maybe[StoryStyleInput] = field("Its tone, the whole of it.")
    setting: strawberry.Maybe[str] = field("Its world, time and place.")
    calendar_system_id: strawberry.Maybe[strawberry.ID] = field(
        "Another calendar. Times of entries stay what they are, so that worldTimeOrigin must be "
        "given too."
    )
    world_time_origin: strawberry.Maybe[JSON] = field("What time 0 is, for each tier.")


@described_input
class StoryFirstEntryInput:
    """How a draft begins."""

    content: str = field("The text of the first entry.")
    scene_entity_ids: list[strawberry.ID] = field(
        "Characters and items of the branch that are present; all active.", default_factory=list
    )
    current_location_id: strawberry.ID | None = field(
        "The active location of the scene.", default=None
    )
    model: str | None = field("The model that wrote it; left out for people.", default=None)


@described_input
class StoryUpdateInput:
    """A story to change; what is left out stays as it is."""

    story_id: strawberry.ID = field("The story.")
    expected_version: int | None = field(
        "The version that the change was made for; any other is refused with CONFLICT.",
        default=None,
    )
    title: strawberry.Maybe[str] = field(TITLE)
    description: strawberry.Maybe[str] = field(BLURB)
    tags: strawberry.Maybe[list[str]] = field(TAGS)
    accent_color: strawberry.Maybe[str | None] = field(ACCENT)
    cover_asset_id: strawberry.Maybe[strawberry.ID | None] = field("An image of yours, or none.")
    world_id: strawberry.Maybe[strawberry.ID | None] = field("The world it is set in, or none.")
    status: strawberry.Maybe[StoryStatus] = field(
        "ACTIVE completes a draft; between ACTIVE and ARCHIVED it goes to and fro."
    )
    is_favorite: strawberry.Maybe[bool] = field("Whether it is marked.")
    definition: strawberry.Maybe[StoryDefinitionUpdateInput] = field("What it is.")
    settings: strawberry.Maybe[JSON] = field(
        "How it is written: only what changes. Null goes back to the server's default, arrays are "
        "replaced whole."
    )
    opening: StoryFirstEntryInput | None = field("How a draft begins that has none.", default=None)


@described
class StoryUpdatePayload(Payload):
    """The changed story."""

    story: Story | None = field("The story.")


@described_input
class StoryOpenInput:
    """A story that is opened."""

    story_id: strawberry.ID = field("The story.")
    branch_id: strawberry.ID | None = field(
        "At which of its branches; the last one unless given.", default=None
    )


@described
class StoryOpenPayload(Payload):
    """The opened story."""

    story: Story | None = field("The story.")


@described_input
class StoryDeleteInput:
    """A story to delete."""

    story_id: strawberry.ID = field("The story.")


@described
class StoryDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the story.")


@described_input
class BranchRenameInput:
    """A branch to rename."""

    branch_id: strawberry.ID = field("The branch.")
    name: str = field("Its new name, 500 characters at most.")


@described
class BranchRenamePayload(Payload):
    """The renamed branch."""

    branch: Branch | None = field("The branch.")


@described_input
class BranchDeleteInput:
    """A branch to delete."""

    branch_id: strawberry.ID = field("The branch: neither the only one nor the open one.")


@described
class BranchDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the branch.")
    story: Story | None = field("The story that it belonged to.")


@strawberry.type
class StoryMutation:
    """Changes to stories and to branches as things."""

    story_create: StoryCreatePayload = mutation(
        resolve.create_story,
        input=StoryCreateInput,
        payload=StoryCreatePayload,
        description="Make a story with its first branch, cast, lore and opening. None of that is "
        "in the log, so that none of it can be undone.",
    )
    story_update: StoryUpdatePayload = mutation(
        resolve.update_story,
        input=StoryUpdateInput,
        payload=StoryUpdatePayload,
        description="Change a story itself, for all of its branches.",
    )
    story_open: StoryOpenPayload = mutation(
        resolve.open_story,
        input=StoryOpenInput,
        payload=StoryOpenPayload,
        description="Note that a story was opened, and at which branch.",
    )
    story_delete: StoryDeletePayload = mutation(
        resolve.delete_story,
        input=StoryDeleteInput,
        payload=StoryDeletePayload,
        description="Delete a story with all of its branches. This cannot be undone.",
    )
    branch_rename: BranchRenamePayload = mutation(
        resolve.rename_branch,
        input=BranchRenameInput,
        payload=BranchRenamePayload,
        description="Give a branch another name.",
    )
    branch_delete: BranchDeletePayload = mutation(
        resolve.delete_branch,
        input=BranchDeleteInput,
        payload=BranchDeletePayload,
        description="Delete a branch with all that belongs to it. This cannot be undone; branches "
        "that were forked from it stay.",
    )
