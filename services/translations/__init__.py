"""Texts of a branch in other languages: which fields have them, saying them, what is missing."""

from services.translations.fields import (
    FIELDS,
    STATE_FIELDS,
    TARGETS,
    kind_of,
    source_text,
    stored_field,
)
from services.translations.listing import TRANSLATIONS, TRANSLATIONS_OF_TARGETS
from services.translations.missing import (
    Coverage,
    UntranslatedText,
    count_untranslated,
    coverage_of_branches,
    untranslated_of_branches,
)
from services.translations.writing import (
    MAX_IMPORTED,
    Draft,
    Imported,
    Wording,
    delete_translation,
    import_translations,
    say_drafts,
    set_translation,
)

__all__ = [
    "FIELDS",
    "MAX_IMPORTED",
    "STATE_FIELDS",
    "TARGETS",
    "TRANSLATIONS",
    "TRANSLATIONS_OF_TARGETS",
    "Coverage",
    "Draft",
    "Imported",
    "UntranslatedText",
    "Wording",
    "count_untranslated",
    "coverage_of_branches",
    "delete_translation",
    "import_translations",
    "kind_of",
    "say_drafts",
    "set_translation",
    "source_text",
    "stored_field",
    "untranslated_of_branches",
]
