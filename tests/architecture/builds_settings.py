"""What no module may do: settings at import. For test_settings.py alone."""

from db.settings import Settings

SETTINGS = Settings()
