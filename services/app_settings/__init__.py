"""What a user sets up: providers and their keys, profiles, which agent uses which, and defaults for
new stories.

Source: spec aventuras, app settings storage.
"""

from services.app_settings.changing import update_settings
from services.app_settings.holding import find_settings
from services.app_settings.profiles import (
    assign_profile,
    create_profile,
    delete_profile,
    reset_profiles,
    update_profile,
)
from services.app_settings.providers import create_provider, delete_provider, update_provider
from services.app_settings.resolving import ModelChoice, resolve_model
from services.app_settings.seeds import PROVIDER_DEFAULTS

__all__ = [
    "PROVIDER_DEFAULTS",
    "ModelChoice",
    "assign_profile",
    "create_profile",
    "create_provider",
    "delete_profile",
    "delete_provider",
    "find_settings",
    "reset_profiles",
    "resolve_model",
    "update_profile",
    "update_provider",
    "update_settings",
]
