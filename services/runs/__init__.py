"""Runs: asking a character, the work of answering, its log of events, and following it live."""

from services.runs.events import Event, StreamOpening
from services.runs.fencing import cancel_runs_of_character, end_fenced, hold_runs_in_work
from services.runs.following import follow_run
from services.runs.forgetting import forget_old_texts, forget_texts_of_character
from services.runs.records import cancel_run, count_by_status, list_runs
from services.runs.replaying import texts_until
from services.runs.retrying import Retries
from services.runs.starting import QUEUE_TOPIC, OpenRuns, ask_tree, continue_node, regenerate_answer
from services.runs.worker import Asking, RunWorker

__all__ = [
    "QUEUE_TOPIC",
    "Asking",
    "Event",
    "OpenRuns",
    "Retries",
    "RunWorker",
    "StreamOpening",
    "ask_tree",
    "cancel_run",
    "cancel_runs_of_character",
    "continue_node",
    "count_by_status",
    "end_fenced",
    "follow_run",
    "forget_old_texts",
    "forget_texts_of_character",
    "hold_runs_in_work",
    "list_runs",
    "regenerate_answer",
    "texts_until",
]
