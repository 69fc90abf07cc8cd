"""Runs: generations, and their events as they happen."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

import strawberry
from strawberry.scalars import JSON

from db.enums import (
    ContextOmission,
    ContextPartKind,
    RunKind,
    RunStatus,
    TextChannel,
    TranslationTarget,
)
from resolvers import mirrors as resolve_mirrors
from resolvers import runs as resolve
from schema.base import (
    Connection,
    Info,
    Node,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    root_list,
    root_row,
    row_type,
)
from schema.characters import Character
from schema.mirrors import MirrorTree, TreeNode
from schema.translations import KINDS

if TYPE_CHECKING:
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]

enum(
    RunKind,
    FOREGROUND="Somebody waits for it.",
    BACKGROUND_DELEGATED="It was entrusted to the character.",
    TRANSLATION="It says texts of a branch in another language.",
)
enum(
    RunStatus,
    QUEUED="Waits for a server, and for its character's seat if it has one.",
    RUNNING="Being worked on.",
    AWAITING_CONFIRMATION="Waits for the user to decide.",
    SUCCEEDED="Ended well.",
    FAILED="Ended with an error; what was said so far is kept.",
    CANCELLED="Was stopped; what was said so far is kept.",
)
enum(
    ContextPartKind,
    IDENTITY="Who the character is; told twice where its card wants something said last.",
    FORBIDDEN_ZONE="What the character never does.",
    FORM="How the character looks.",
    PERSONA="Who the user is.",
    MEMORY="Something that the character remembers; `ref` is the memory.",
    CITATION="Something quoted in the talk; `ref` is the citation.",
    EXAMPLES="How the character talks.",
    GREETING="What the character says first of all.",
    EARLIER_TALK="Nodes further back, summed up.",
    QUESTION="A question of the talk; `ref` is the node.",
    ANSWER="An answer of the talk; `ref` is the node.",
)
enum(
    ContextOmission,
    OVER_BUDGET="There was no room for it.",
    EMPTY="It has no text.",
    ERASED="Its text was erased.",
)


@described
class ContextPart:
    """Something that a model was given, or would have been."""

    kind: ContextPartKind = field("What it is.")
    ref: strawberry.ID | None = field(
        "The id it had: for `node(id:)`. Null where it has none, or where several are summed up."
    )
    tokens: int = field("How long it is: an estimate.")
    is_carried: bool = field("Whether the model was given it.")
    reason: ContextOmission | None = field("Why it was not.")
    count: int = field("How many things are summed up here; 1 if it stands for itself.")


@described
class RunContext:
    """What a model was given, as numbers and references. Tokens are estimates."""

    budget: int = field("The tokens that it may have: the answer's are not among them.")
    tokens: int = field("The tokens of the parts that are carried.")
    parts: list[ContextPart] = field("Its parts in the order of the prompt, 500 at most.")


@described
class RunError:
    """Why a run failed."""

    code: str = field("For programs: upper case and stable.")
    message: str = field("For people: what to do.")


@described
class RunProgress:
    """How far a translation is, counted in texts."""

    done: int = field("How many are said by now.")
    total: int = field("How many there were to be said when it began.")
    missed: int = field("How many it could not say: another run may.")


@row_type
class Run(Node):
    """One generation: an answer that grows in a tree, or a translation of texts of a branch."""

    kind: RunKind = field("On whose behalf it works, or what at.")
    status: RunStatus = field("Where it stands.")
    provider: str = field("Which provider answers.")
    model: str | None = field("The model, as its provider names it.")
    last_seq: int = field("Number of the last stored event.")
    texts_until_seq: int | None = field(
        "Once the texts of the events are erased: the number behind which the run can still be "
        "followed. Null while all of them are kept."
    )
    attempts: int = field("How often the provider was asked.")
    context: RunContext | None = field("What the model was given; null until that is known.")
    usage: JSON | None = field("Tokens as the provider counted them.")
    finish_reason: str | None = field("Why the model stopped: stop, length, refused or other.")
    error: RunError | None = field("Why it failed.")
    is_cancel_requested: bool = field("Whether somebody asked to stop it.")
    created_at: datetime = field("When it was asked for.")
    started_at: datetime | None = field("When a server took it up.")
    ended_at: datetime | None = field("When it ended.")
    language: str | None = field("Into which language it translates: ISO 639-1.")
    target_kinds: list[TranslationTarget] | None = field(KINDS)
    progress: RunProgress | None = field(
        "How far the translation is; null until it has begun, and where nothing is translated."
    )
    character: Character | None = relation(
        resolve.characters_of_runs, "Who speaks; null where something is translated."
    )
    tree: MirrorTree | None = relation(
        resolve_mirrors.trees_of_nodes, "The tree it grows; null where something is translated."
    )
    branch: LazyBranch | None = relation(
        resolve.branches_of_runs, "What it translates; null where it answers."
    )
    question: TreeNode | None = relation(resolve.questions_of_runs, "What it answers.")
    node: TreeNode | None = relation(
        resolve.nodes_of_runs, "The answer; null until a server took the run up."
    )


@strawberry.interface(description="One thing that happened in a run.")
class RunEvent:
    """Its number, and when it happened."""

    seq: int = field("Rises within the run; pass the last one you saw as `after` to go on.")
    at: datetime = field("When.")


def _event_type(event_type: str) -> Any:
    def declare(cls: type[Any]) -> Any:
        cls.is_type_of = lambda event, _info: event.type == event_type
        return described(cls)

    return declare


@_event_type("stream_opened")
class StreamOpened(RunEvent):
    """The first thing on a stream, and no event of the run: events behind `seq` follow."""

    run: Run | None = relation(resolve.runs_of_events, "The run as it is now.")
    text: str = relation(
        resolve.texts_of_openings,
        "The text up to `seq`, for a client that has lost it: pieces that follow go behind it.",
        arguments={"channel": "Which stream of text."},
    )


@_event_type("run_started")
class RunStarted(RunEvent):
    """A server has taken the run up."""

    run: Run | None = relation(resolve.runs_of_events, "The run.")


@_event_type("phase_started")
class PhaseStarted(RunEvent):
    """A phase of the work begins."""

    name: str = field("The phase: context or answer, or translation.")


@_event_type("text_delta")
class TextDelta(RunEvent):
    """A piece of text."""

    channel: TextChannel = field("Which stream it belongs to.")
    text: str = field("The piece; join the pieces of a channel in order.")
    target_id: strawberry.ID = field("The node that the text is for.")


@_event_type("phase_finished")
class PhaseFinished(RunEvent):
    """A phase of the work is done."""

    name: str = field("The phase: context or answer, or translation.")


@_event_type("run_warning")
class RunWarning(RunEvent):
    """Something that did not stop the run."""

    code: str = field("For programs: upper case and stable.")
    message: str = field("For people.")
    subject_id: strawberry.ID | None = field(
        "The row whose text could not be said, for `node(id:)`; null where it is about none."
    )
    # Last: below it the word `field` means this one.
    field: str | None = field("Which text of that row.")


@_event_type("run_progressed")
class RunProgressed(RunEvent):
    """Some more texts are said, or were missed: what is said can be read from now on."""

    done: int = field("How many are said by now.")
    total: int = field("How many there were to be said when the run began.")
    missed: int = field("How many could not be said.")


@_event_type("run_finished")
class RunFinished(RunEvent):
    """The run has ended; no event follows."""

    status: RunStatus = field("How it ended.")
    error: RunError | None = relation(resolve.errors_of_events, "Why it failed.")
    node: TreeNode | None = relation(resolve.nodes_of_events, "The answer that it left.")


EVENT_TYPES = (
    StreamOpened,
    RunStarted,
    PhaseStarted,
    TextDelta,
    PhaseFinished,
    RunWarning,
    RunProgressed,
    RunFinished,
)


@described_input
class RunCancelInput:
    """A run to stop."""

    run_id: strawberry.ID = field("The run.")


@described
class RunCancelPayload(Payload):
    """The run that was asked to stop."""

    run: Run | None = field("The run; its text so far is kept.")


@strawberry.type
class RunQuery:
    """Root fields about runs."""

    run: Run | None = root_row(resolve.run_by_id, "One run.")
    runs: Connection[Run] = root_list(
        resolve.list_runs, "Runs of the viewer's characters and branches, newest first."
    )


@strawberry.type
class RunMutation:
    """Changes to runs."""

    run_cancel: RunCancelPayload = mutation(
        resolve.cancel_run,
        input=RunCancelInput,
        payload=RunCancelPayload,
        description="Stop a run. Hanging up a subscription does not.",
    )


@strawberry.type
class RunSubscription:
    """Streams about runs."""

    @strawberry.subscription(
        description="The events of a run: StreamOpened, then those stored behind `after`, then "
        "live ones, each once and in order; completes after RunFinished."
    )
    async def run_events(
        self,
        info: Info,
        run_id: Annotated[strawberry.ID, strawberry.argument(description="The run.")],
        after: Annotated[
            int | None,
            strawberry.argument(description="Number of the last event seen; 0 or null for all."),
        ] = None,
    ) -> AsyncGenerator[RunEvent, None]:
        """The events of a run."""
        events = resolve.run_events(info.context, run_id, after)
        return cast("AsyncGenerator[RunEvent, None]", events)
