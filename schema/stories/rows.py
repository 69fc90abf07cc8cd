"""What stories are made of. Lists of a branch that belong to other nouns are one line each here."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import Narration, SearchMode, StoryMode, StoryStatus
from resolvers import app_settings as resolve_settings
from resolvers import deltas as resolve_deltas
from resolvers import embedding as resolve_embedding
from resolvers import entities as resolve_entities
from resolvers import plot as resolve_plot
from resolvers import retrieval as resolve_retrieval
from resolvers import runs as resolve_runs
from resolvers import stories as resolve
from resolvers import translations as resolve_translations
from resolvers import worlds as resolve_worlds
from resolvers.stories import chapters as resolve_chapters
from resolvers.stories import entries as resolve_entries
from resolvers.stories import eras as resolve_eras
from schema.base import Connection, Node, described, enum, field, relation, row_type
from schema.branch_rows import BranchConnection, branch_list
from schema.deltas import Delta, DeltaFilter
from schema.embedding import StoryEmbedder
from schema.entities import EntityFilter
from schema.graphs import (
    BRANCH_CENTRALITY,
    BRANCH_COMMUNITIES,
    BRANCH_GRAPH,
    BRANCH_PATHS,
    Graph,
    GraphCentrality,
    GraphCommunities,
    GraphPath,
)
from schema.plot import HappeningFilter, LoreFilter, ThreadFilter
from schema.searching import BRANCH_SEARCH, SearchResult
from schema.stories.chapters import Chapter, OpenRegion
from schema.stories.entries import EntryFilter, StoryEntry
from schema.stories.eras import EraFlip

if TYPE_CHECKING:
    from schema.app_settings import ModelChoice
    from schema.assets import Asset
    from schema.calendars import Calendar
    from schema.entities import CharacterRelationship, StoryEntity
    from schema.plot import Happening, Lore, Thread
    from schema.retrieval import ProbeCapture
    from schema.runs import Run
    from schema.translations import Translation, TranslationCoverage, UntranslatedText
    from schema.worlds import Casting, World

LazyEntity = Annotated["StoryEntity", strawberry.lazy("schema.entities")]
LazyRelationship = Annotated["CharacterRelationship", strawberry.lazy("schema.entities")]
LazyLore = Annotated["Lore", strawberry.lazy("schema.plot")]
LazyThread = Annotated["Thread", strawberry.lazy("schema.plot")]
LazyHappening = Annotated["Happening", strawberry.lazy("schema.plot")]
LazyUntranslated = Annotated["UntranslatedText", strawberry.lazy("schema.translations")]
LazyCoverage = Annotated["TranslationCoverage", strawberry.lazy("schema.translations")]
LazyTranslation = Annotated["Translation", strawberry.lazy("schema.translations")]
LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyCapture = Annotated["ProbeCapture", strawberry.lazy("schema.retrieval")]
LazyRun = Annotated["Run", strawberry.lazy("schema.runs")]
LazyAsset = Annotated["Asset", strawberry.lazy("schema.assets")]
LazyModelChoice = Annotated["ModelChoice", strawberry.lazy("schema.app_settings")]
LazyWorld = Annotated["World", strawberry.lazy("schema.worlds")]
LazyCasting = Annotated["Casting", strawberry.lazy("schema.worlds")]
LazyCalendar = Annotated["Calendar", strawberry.lazy("schema.calendars")]

enum(
    StoryStatus,
    DRAFT="Not finished: it may lack its opening or its lead.",
    ACTIVE="It can be read and written.",
    ARCHIVED="Put away.",
)
enum(
    StoryMode,
    ADVENTURE="One plays the lead.",
    CREATIVE="One writes the story from outside.",
)
enum(
    Narration,
    FIRST="As I.",
    SECOND="As you.",
    THIRD="As he, she or they.",
)


@described
class StoryStyle:
    """A genre or a tone."""

    label: str = field("What it is called.")
    prompt_body: str = field("What a model is told of it.")


@described
class StoryDefinition:
    """What a story is, in all of its branches."""

    mode: StoryMode = field("How one takes part; the same for its life.")
    narration: Narration = field("In which person it is told.")
    genre: StoryStyle = field("Its genre.")
    tone: StoryStyle = field("Its tone.")
    setting: str = field("Its world, time and place, in prose.")
    calendar_system_id: strawberry.ID = field("The calendar that it counts by.")
    world_time_origin: JSON = field("What time 0 is: a value for each tier of the calendar.")
    lead_entity: LazyEntity | None = relation(
        resolve.leads_of_definitions,
        "Who is played or tells it, in the branch that is open; null where it has no lead, or this "
        "branch does not have that character.",
    )


@described
class ClassifierStatus:
    """How far facts have been taken from the text of a branch, in the background."""

    state: str = field("One of idle, running, retrying and failed-persistent.")
    processed_through: int = field("The position of the last entry that was read; 0 for none.")
    last_success_at: datetime | None = field("When it last went well.")
    last_error: str | None = field("What went wrong last.")
    retry_count: int = field("How often it was tried again.")


@row_type
class Story(Node):
    """A story: what it is and how it is written. Its text and its world are in its branches."""

    title: str = field("Its title.")
    description: str = field("A blurb for people; no model sees it.")
    tags: list[str] = field("Words to find it by.")
    accent_color: str | None = field("Its colour as #rrggbb; null follows from the mode.")
    cover_asset: LazyAsset | None = relation(resolve.covers_of_stories, "Its picture.")
    status: StoryStatus = field("How far it has come.")
    is_favorite: bool = field("Whether its owner has marked it.")
    definition: StoryDefinition = field("What it is.")
    settings: JSON = relation(
        resolve.settings_of_stories,
        "How it is written, with the server's defaults for what nobody has set.",
    )
    calendar: LazyCalendar | None = relation(
        resolve.calendars_of_stories, "The calendar that it counts by."
    )
    model_of: LazyModelChoice = relation(
        resolve_settings.models_of_stories,
        "Which model is asked: the story's own, else that of its owner's profile.",
        arguments={"agent": "For an agent; for the story itself unless given."},
    )
    embedder: StoryEmbedder = relation(
        resolve_embedding.embedders_of_stories,
        "How its texts are embedded, so that they are found by what they mean.",
    )
    branches: Connection[LazyBranch] = relation(
        resolve.branches_of_stories, "Its branches, oldest first."
    )
    current_branch: LazyBranch | None = relation(
        resolve.current_branches_of_stories, "The branch that is open."
    )
    world: LazyWorld | None = relation(
        resolve_worlds.worlds_of_rows, "The world that it is set in, if in any."
    )
    castings: Connection[LazyCasting] = relation(
        resolve_worlds.castings_of_stories, "Who plays whom, and who is drawn from a world."
    )
    created_at: datetime = field("When it was made.")
    updated_at: datetime | None = field(
        "When the story itself was last changed; null before. Not when a branch was."
    )
    last_opened_at: datetime = field("When it was last opened, or made.")
    version: int = field("Counts the changes of the story itself, from 1.")


@row_type
class Branch(Node):
    """A line of a story that stands on its own, with a world and a history of its own."""

    name: str = field("Its name.")
    story: Story | None = relation(resolve.stories_of_branches, "The story.")
    head: int = field("The position of its newest change in the log; 0 where there is none.")
    last_event_seq: int = field("Number of its last event: give it to branchEvents as after.")
    can_undo: bool = relation(
        resolve.undoability_of_branches,
        "Whether there is something to undo: not what the classifier does in the background.",
    )
    can_redo: bool = relation(
        resolve.redoability_of_branches, "Whether there is something undone to do again."
    )
    parent: LazyBranch | None = relation(
        resolve.parents_of_branches, "What it was forked from; null where that was deleted."
    )
    fork_entry: StoryEntry | None = relation(
        resolve.fork_entries_of_branches,
        "The last entry that it has in common with its parent, as it stands here.",
    )
    children: Connection[LazyBranch] = relation(
        resolve.children_of_branches, "What was forked from it, oldest first."
    )
    classifier: ClassifierStatus = field(
        "How far facts have been taken from its text.", name="classifierStatus"
    )
    created_at: datetime = field("When it was made.")
    search_modes: list[SearchMode] = relation(
        resolve_embedding.search_modes_of_branches, "How it can be searched here."
    )
    deltas: Connection[Delta] = relation(
        resolve_deltas.deltas_of_branches,
        "Its log: every change that can be taken back, newest first.",
        arguments={"filter": "Which are wanted; all unless given."},
        types={"filter": DeltaFilter | None},
    )
    entries: BranchConnection[StoryEntry] = branch_list(
        resolve_entries.entries_of_branches,
        "Its text, in the order in which it is read.",
        arguments={"filter": "Which are wanted; all unless given."},
        types={"filter": EntryFilter | None},
    )
    chapters: BranchConnection[Chapter] = branch_list(
        resolve_chapters.chapters_of_branches, "Its closed chapters, in the order of the text."
    )
    open_region: OpenRegion = relation(
        resolve_chapters.open_regions_of_branches, "What belongs to no chapter yet."
    )
    era_flips: BranchConnection[EraFlip] = branch_list(
        resolve_eras.flips_of_branches, "When its eras begin, earliest first: 200 at most."
    )
    entities: BranchConnection[LazyEntity] = branch_list(
        resolve_entities.entities_of_branches,
        "The actors of its world, oldest first.",
        arguments={
            "filter": "Which are wanted; all unless given.",
            "search": "Only those with this in their name, without regard to case and accents.",
        },
        types={"filter": EntityFilter | None},
    )
    relationships: BranchConnection[LazyRelationship] = branch_list(
        resolve_entities.relationships_of_branches,
        "What its characters are to each other, oldest first.",
    )
    lore: BranchConnection[LazyLore] = branch_list(
        resolve_plot.lore_of_branches,
        "What is so in its world, oldest first.",
        arguments={
            "filter": "Which is wanted; all unless given.",
            "perspective": "A character: only what it knows. All unless given.",
        },
        types={"filter": LoreFilter | None, "perspective": strawberry.ID | None},
    )
    threads: BranchConnection[LazyThread] = branch_list(
        resolve_plot.threads_of_branches,
        "The strands of its plot, oldest first.",
        arguments={"filter": "Which are wanted; all unless given."},
        types={"filter": ThreadFilter | None},
    )
    happenings: BranchConnection[LazyHappening] = branch_list(
        resolve_plot.happenings_of_branches,
        "What happened, goes on or is to come, in the order it was written down.",
        arguments={
            "filter": "Which are wanted; all unless given.",
            "perspective": "A character: only those of which it knows. All unless given.",
        },
        types={"filter": HappeningFilter | None, "perspective": strawberry.ID | None},
    )
    search: SearchResult = BRANCH_SEARCH
    graph: Graph = BRANCH_GRAPH
    paths: list[GraphPath] = BRANCH_PATHS
    communities: GraphCommunities = BRANCH_COMMUNITIES
    centrality: GraphCentrality = BRANCH_CENTRALITY
    translations: BranchConnection[LazyTranslation] = branch_list(
        resolve_translations.translations_of_branches,
        "Its texts in other languages, oldest first.",
        arguments={"language": "Only those in this language."},
    )
    untranslated: Connection[LazyUntranslated] = relation(
        resolve_translations.untranslated_of_branches,
        "Its texts that are not said in a language yet: by kinds, then by ids of rows, then by "
        "fields.",
        arguments={
            "language": "By its ISO 639-1 code, such as ja.",
            "kinds": "Only texts of rows of these kinds.",
        },
    )
    translation_coverage: list[LazyCoverage] = relation(
        resolve_translations.coverages_of_branches,
        "How much of it is said in a language, for each kind of row.",
        arguments={"language": "By its ISO 639-1 code, such as ja."},
    )
    translation_runs: Connection[LazyRun] = relation(
        resolve_runs.runs_of_branches, "The runs that translate it, newest first."
    )
    probe_captures: Connection[LazyCapture] = relation(
        resolve_retrieval.captures_of_branches,
        "What retrievals in it were captured, newest first.",
    )
