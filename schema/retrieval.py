"""What a prompt of a branch would carry and why, and captures of what a retrieval saw."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, cast

import strawberry
from strawberry.scalars import JSON

from db.enums import CaptureMode, DropReason, FloorReason, ProbeFailure, QuerySlot, SearchKind
from resolvers import retrieval as resolve
from resolvers.branch_rows import branches_of_rows
from schema.base import (
    Info,
    Node,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    root_row,
    row_type,
)
from schema.branch_rows import BranchNode

if TYPE_CHECKING:
    from schema.stories.entries import StoryEntry
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyEntry = Annotated["StoryEntry", strawberry.lazy("schema.stories.entries")]

enum(
    QuerySlot,
    ACTION="What the reader does.",
    DIGEST="Who and what is there, what goes on, the era.",
    SUMMARY="What the last entry that a model wrote says of itself.",
    DIRECT="What that entry asks for: three at most, which count as one.",
)
enum(
    FloorReason,
    SCENE="It is present.",
    LOCATION="The story is there.",
    ACTIVE_THREAD="It goes on.",
    ALWAYS="Its mode is ALWAYS.",
)
enum(
    DropReason,
    PRE_FILTERED="It was not among the 200 best of its kind.",
    BELOW_THRESHOLD="It matters too little, or came behind one that does.",
    OVER_BUDGET="What was left of the budget was too small for it.",
    CANDIDATE_TOO_LARGE="The whole budget is too small for it.",
    NOT_DROPPED="It is seated.",
)
enum(
    ProbeFailure,
    INIT="The model could not begin.",
    CALL="A call of the model failed.",
)
enum(
    CaptureMode,
    LIGHT="Scores and prices: budgets and the floor of scores can be simulated.",
    DEEP="With the vectors, which takes some forty times the space: any score can be simulated.",
)

TEXT = "All that a prompt says of it, which is what it is priced by."
TOKENS = "What it takes, in estimated tokens, with what stands around it."


@described
class RetrievalQuery:
    """A text that rows are compared with."""

    slot: QuerySlot = field("What it is made of.")
    text: str = field("The text.")
    weight: float = field("How much it counts, of 1; 0 without a vector.")
    tokens: int = field("Its estimated tokens.")
    has_vector: bool = field("Whether the model gave a vector for it.")


@described
class RetrievalFloorRow:
    """A row that is in the prompt whatever is asked for."""

    kind: SearchKind = field("Its kind.")
    row_id: strawberry.ID = field("Its own id.")
    node: BranchNode | None = field("The row.")
    name: str = field("What people call it.")
    reason: FloorReason = field("Why it is there.")
    text: str = field(TEXT)
    tokens: int = field(TOKENS)


@described
class RetrievalKeywordRow:
    """A row that a keyword seated, without asking how similar it is."""

    kind: SearchKind = field("Its kind.")
    row_id: strawberry.ID = field("Its own id.")
    node: BranchNode | None = field("The row.")
    name: str = field("What people call it.")
    depth: int = field(
        "0 where what the reader does or the last entries name it, else through how many other "
        "such rows it was found."
    )
    text: str = field(TEXT)
    tokens: int = field(TOKENS)


@described
class RetrievalCandidate:
    """A row that was ranked, its score with all parts, and what became of it."""

    row_id: strawberry.ID = field("Its own id.")
    node: BranchNode | None = field("The row; null where it is gone by now.")
    name: str = field("What people called it.")
    text: str | None = field("All that a prompt says of it; null where it was not priced.")
    tokens: int | None = field("What it takes; null where it was not priced.")
    similarities: list[float | None] = field(
        "The cosine with each query, in their order; null where a query has no vector."
    )
    blend: float = field("The similarities as one, by the weights of the queries.")
    recency: float = field("What chapters have left of it, of 1.")
    pin: float = field("How firmly it is held, of 1.")
    age: int = field("In chapters.")
    keyword_bonus: float = field("What a keyword added.")
    is_in_seated_chapter: bool = field("Whether it happened in a chapter that is seated.")
    is_common: bool = field("Whether everybody knows of it.")
    is_revived: bool = field("Whether it was so similar that it came back from fading.")
    score: float = field("How much it matters.")
    mmr: float | None = field(
        "That, less its likeness to those picked before it; null where it was not priced."
    )
    rank: int | None = field("Its place in the order of picking; null where it was not priced.")
    drop: DropReason = field("Why it is not in the prompt.")


@described
class RetrievalPool:
    """The rows of one kind, and what became of the kind's budget."""

    kind: SearchKind = field("The kind.")
    budget: int = field("Tokens that the story has for this kind.")
    injected_tokens: int = field("Those that rows take which keywords seated.")
    tokens_used: int = field("Those that are taken in all.")
    pool_size: int = field("How many rows were ranked.")
    stale_count: int = field("How many rows were left out because they wait to be embedded.")
    seated: list[RetrievalCandidate] = field("Those in the prompt, in the order of picking.")
    dropped: list[RetrievalCandidate] = field("The others, the best first; 200 at most.")


@described
class RetrievalRedundancy:
    """How much of what is near a direct query is in the prompt anyway."""

    text: str = field("The query.")
    ratio: float = field("The share of the nearest rows that the floor has.")
    counted: int = field("How many nearest rows there were, 10 at most.")


@described
class RetrievalPreview:
    """What the prompt of the next turn would carry of a branch, and why."""

    branch: LazyBranch = field("The branch.")
    queries: list[RetrievalQuery] = field("What is asked for, 6 at most.")
    buffer_entries: int = field("How many of the last entries are there word for word.")
    buffer_tokens: int = field("Their estimated tokens.")
    floor: list[RetrievalFloorRow] = field(
        "Rows that are there whatever is asked for, 200 at most."
    )
    floor_tokens: int = field("What all of these take.")
    injected: list[RetrievalKeywordRow] = field("Rows that keywords seated, 200 at most.")
    pools: list[RetrievalPool] = field("What was ranked, kind by kind.")
    redundancy: list[RetrievalRedundancy] = field("For each direct query.")
    model_id: str | None = field("The model that compares; null where there is none.")
    failure: ProbeFailure | None = field("Why nothing could be compared, where a model failed.")
    warnings: list[str] = field(
        "For programs: NOTHING_COMPARED, NOTHING_SEATED_… and STALE_… with a kind."
    )


@row_type
class ProbeCapture(Node):
    """What a retrieval saw, chose and dropped: kept to find out why."""

    branch: LazyBranch | None = relation(branches_of_rows, "The branch.")
    target_entry: LazyEntry | None = relation(
        resolve.target_entries_of_captures, "The entry that it was for; null where it is gone."
    )
    captured_at: datetime = field("When.")
    capture_mode: CaptureMode = field("How much it keeps.", name="mode")
    embedding_model_id: str | None = field("The model that compared.")
    failure_reason: ProbeFailure | None = field("Why nothing was compared; null where it was.")
    payload_size: int = field("Bytes of what it holds, uncompressed.")
    payload: JSON | None = relation(
        resolve.payloads_of_captures, "What it holds; null where that cannot be read any more."
    )
    is_corrupt: bool = relation(
        resolve.corruption_of_captures, "Whether what it holds cannot be read any more."
    )


@described
class SimulatedPool:
    """The rows of one kind, as other parameters would have chosen them."""

    kind: SearchKind = field("The kind.")
    budget: int = field("Tokens for this kind.")
    injected_tokens: int = field("Those that rows take which keywords seated.")
    tokens_used: int = field("Those that would be taken in all.")
    seated: list[RetrievalCandidate] = field("Those that would be in the prompt.")
    dropped: list[RetrievalCandidate] = field("The others; 200 at most.")
    added: list[RetrievalCandidate] = field("Those that were not in the prompt, and would be.")
    removed: list[RetrievalCandidate] = field("Those that were in the prompt, and would not be.")


@described
class ProbeSimulation:
    """What a captured retrieval would have chosen with other parameters."""

    is_same: bool = field("Whether it would have chosen the same rows.")
    pools: list[SimulatedPool] = field("Kind by kind.")


@described_input
class SlotWeightsInput:
    """How much each query counts; the shares of absent ones go to the others."""

    action: float | None = field("What the reader does: 0.3.", default=None)
    digest: float | None = field("Where the story stands: 0.25.", default=None)
    summary: float | None = field("What the last entry says of itself: 0.2.", default=None)
    direct: float | None = field("What the last entry asks for: 0.25.", default=None)


@described_input
class ByKindInput:
    """A number for each kind; what is left out stays as it was."""

    entity: float | None = field("Of entities.", default=None)
    lore: float | None = field("Of lore.", default=None)
    thread: float | None = field("Of threads.", default=None)
    chapter: float | None = field("Of chapters.", default=None)
    happening: float | None = field("Of happenings.", default=None)


@described_input
class BudgetsInput:
    """Tokens for each kind; what is left out stays as it was."""

    entity: int | None = field("For entities.", default=None)
    lore: int | None = field("For lore.", default=None)
    thread: int | None = field("For threads.", default=None)
    chapter: int | None = field("For chapters.", default=None)
    happening: int | None = field("For happenings.", default=None)


@described_input
class PinInput:
    """How firmly a row is held, in place of its own pin."""

    row_id: strawberry.ID = field("The row's own id.")
    pin: float = field("From 0 to 1.")


@described_input
class ProbeParametersInput:
    """Other parameters; what is left out is as it was captured. All but the first two need a deep
    capture.
    """

    budgets: BudgetsInput | None = field("Tokens by kind.", default=None)
    score_floor: float | None = field("Below which nothing is seated: 0.15.", default=None)
    weights: SlotWeightsInput | None = field("Of the queries.", default=None)
    fades: ByKindInput | None = field("How fast kinds fade by chapters.", default=None)
    pin_factors: ByKindInput | None = field("How much a pin lifts kinds.", default=None)
    pins: list[PinInput] | None = field("Pins of single rows, 200 at most.", default=None)
    keyword_bonus: float | None = field("What a keyword adds: 0.1.", default=None)
    revival: float | None = field("From which similarity on rows come back: 0.85.", default=None)
    chapter_boost: float | None = field("Of happenings in seated chapters: 1.3.", default=None)
    diversity: float | None = field("The share of the score in picking: 0.75.", default=None)


@strawberry.type
class ProbeQuery:
    """Root fields about retrieval."""

    probe_capture: ProbeCapture | None = root_row(resolve.capture_by_id, "One capture.")

    @strawberry.field(
        description="What the prompt of the next turn would carry of a branch, and why. It asks "
        "the story's embedder for vectors, also of rows that wait for one."
    )
    async def retrieval_preview(
        self,
        info: Info,
        branch_id: Annotated[strawberry.ID, strawberry.argument(description="The branch.")],
        text: Annotated[
            str | None,
            strawberry.argument(
                description="What the reader does; unless given, the action at the end of the "
                "story, if there is one."
            ),
        ] = None,
    ) -> RetrievalPreview:
        """What a prompt would carry."""
        shown = await resolve.preview(info.context, branch_id, text)
        return cast("RetrievalPreview", shown)

    @strawberry.field(
        description="What a capture would have chosen with other parameters; without any, what it "
        "chose. Writes nothing."
    )
    async def probe_simulation(
        self,
        info: Info,
        capture_id: Annotated[strawberry.ID, strawberry.argument(description="The capture.")],
        parameters: Annotated[
            ProbeParametersInput | None,
            strawberry.argument(description="What is to be other than it was."),
        ] = None,
    ) -> ProbeSimulation:
        """A simulation."""
        shown = await resolve.simulate(info.context, capture_id, parameters)
        return cast("ProbeSimulation", shown)


@described_input
class RetrievalProbeInput:
    """A retrieval to capture."""

    branch_id: strawberry.ID = field("The branch.")
    text: str | None = field(
        "What the reader does; unless given, the action at the end of the story, if there is one.",
        default=None,
    )
    mode: CaptureMode = field("How much to keep.", default=CaptureMode.LIGHT)


@described
class RetrievalProbePayload(Payload):
    """What was kept."""

    capture: ProbeCapture | None = field("The capture.")


@described_input
class ProbeCaptureDeleteInput:
    """A capture to delete."""

    capture_id: strawberry.ID = field("The capture.")


@described
class ProbeCaptureDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the deleted capture.")


@described_input
class ProbeCapturesDeleteInput:
    """A story whose captures are to be deleted."""

    story_id: strawberry.ID = field("The story.")


@described
class ProbeCapturesDeletePayload(Payload):
    """What was deleted."""

    deleted_ids: list[strawberry.ID] | None = field("Ids of the deleted captures, 100 at most.")


@strawberry.type
class RetrievalMutation:
    """Capturing what a retrieval sees."""

    retrieval_probe: RetrievalProbePayload = mutation(
        resolve.probe,
        input=RetrievalProbeInput,
        payload=RetrievalProbePayload,
        description="Retrieve as for a prompt and keep what was seen, chosen and dropped. Only "
        "where diagnostics and the story's probe are on (PROBE_OFF); a story keeps its 100 newest "
        "captures. Where the embedder fails, that is what is kept.",
    )
    probe_capture_delete: ProbeCaptureDeletePayload = mutation(
        resolve.delete_capture,
        input=ProbeCaptureDeleteInput,
        payload=ProbeCaptureDeletePayload,
        description="Delete a capture, also one that cannot be read any more.",
    )
    probe_captures_delete: ProbeCapturesDeletePayload = mutation(
        resolve.delete_captures,
        input=ProbeCapturesDeleteInput,
        payload=ProbeCapturesDeletePayload,
        description="Delete all captures of a story.",
    )
