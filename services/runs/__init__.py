"""Runs: asking a character, the work of answering, its log of events, and following it live."""

from services.runs.events import Event, StreamOpening
from services.runs.fencing import cancel_runs_of_character, end_fenced, hold_runs_in_work
from services.runs.following import follow_run
from services.runs.forgetting import forget_old_texts, forget_texts_of_character
from services.runs.records import (
    RUNS_OF_BRANCHES,
    cancel_run,
    close_run,
    count_by_status,
    list_runs,
)
from services.runs.replaying import texts_until
from services.runs.retrying import Retries, parts_of_answer
from services.runs.starting import (
    QUEUE_TOPIC,
    STANDARD,
    OpenRuns,
    ask_tree,
    continue_node,
    queue_run,
    regenerate_answer,
)
from services.runs.worker import ANSWERS, RunWorker
from services.runs.working import Asking, Means, Outcome, Said, Work

__all__ = [
    "ANSWERS",
    "QUEUE_TOPIC",
    "RUNS_OF_BRANCHES",
    "STANDARD",
    "Asking",
    "Event",
    "Means",
    "OpenRuns",
    "Outcome",
    "Retries",
    "RunWorker",
    "Said",
    "StreamOpening",
    "Work",
    "ask_tree",
    "cancel_run",
    "cancel_runs_of_character",
    "close_run",
    "continue_node",
    "count_by_status",
    "end_fenced",
    "follow_run",
    "forget_old_texts",
    "forget_texts_of_character",
    "hold_runs_in_work",
    "list_runs",
    "parts_of_answer",
    "queue_run",
    "regenerate_answer",
    "texts_until",
]
