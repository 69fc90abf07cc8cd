"""Runs in which a model says texts of a branch in another language: queuing one, and its work."""

from services.translating.starting import start_translation
from services.translating.working import Translating

__all__ = ["Translating", "start_translation"]
