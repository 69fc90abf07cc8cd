"""Runs: asking a character, the work of answering, its log of events, and following it live."""

from services.runs.events import Event, StreamOpening
from services.runs.following import follow_run
from services.runs.records import cancel_run, count_by_status, list_runs, texts_until
from services.runs.starting import ask_tree, continue_node, regenerate_answer
from services.runs.worker import RunWorker

__all__ = [
    "Event",
    "RunWorker",
    "StreamOpening",
    "ask_tree",
    "cancel_run",
    "continue_node",
    "count_by_status",
    "follow_run",
    "list_runs",
    "regenerate_answer",
    "texts_until",
]
