"""Texts of stories in other languages."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import TranslationTarget
from resolvers import translations as resolve
from schema.base import (
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    row_type,
)
from schema.branch_rows import EXPECTED_HEAD, BranchNode

if TYPE_CHECKING:
    from schema.runs import Run
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyRun = Annotated["Run", strawberry.lazy("schema.runs")]

enum(
    TranslationTarget,
    ENTITY="A character, location, item or faction.",
    LORE="Something that is so in the world.",
    THREAD="A strand of the plot.",
    HAPPENING="Something that happened.",
    STORY_ENTRY="An entry of the story.",
    CHARACTER_RELATIONSHIP="What two characters are to each other.",
    CHAPTER="A chapter.",
)

KINDS = "Only texts of rows of these kinds; null for all."
FIELD = (
    "A field that holds text, such as name, or within the state of an entity visual.hair, traits.0 "
    "(the first of a list), condition; anything else is FIELD_NOT_TRANSLATABLE."
)


@strawberry.interface(description="A row of a branch whose texts can be said in other languages.")
class Translatable(BranchNode):
    """What types of such rows derive from."""

    translated: str | None = relation(
        resolve.translations_of_rows,
        "A text of this row in a language: its translation where there is one, else the text as "
        "it was written; null where there is no text.",
        arguments={
            "field": FIELD,
            "language": "By its ISO 639-1 code, such as ja; null for the text as it was written.",
        },
    )


@row_type
class Translation(BranchNode):
    """A text of one row in one language. It goes when the row goes."""

    target_kind: TranslationTarget = field("What kind of row it belongs to.")
    target: Translatable | None = relation(resolve.targets_of_translations, "The row.")
    language: str = field("The code of the language: ISO 639-1.")
    text: str = field("What the text is in this language.")
    created_at: datetime = field("When it was first said.")
    updated_at: datetime | None = field("When it was last changed.")
    # Last: below it the word `field` means this one.
    field: str = field("Which text of the row: retired_reason, visual.hair, traits.0.")


@described
class UntranslatedText:
    """A text of a row that is not said in a language yet."""

    target_kind: TranslationTarget = field("What kind of row it belongs to.")
    target: Translatable | None = relation(resolve.targets_of_translations, "The row.")
    text: str = field("The text as it was written.")
    # Last: below it the word `field` means this one.
    field: str = field("Which text of the row: retired_reason, visual.hair, traits.0.")


@described
class TranslationCoverage:
    """How many texts of the rows of one kind are said in a language."""

    kind: TranslationTarget = field("The kind of the rows.")
    total: int = field("How many texts they have.")
    translated: int = field("How many of these are said in the language.")
    missing: int = field("How many are not.")


@described_input
class TranslationSetInput:
    """A text of a row, said in another language."""

    target_id: strawberry.ID = field("The row, of whichever kind.")
    language: str = field("The code of the language: two small letters, as ISO 639-1 has them.")
    text: str = field("What the text is in this language; it takes the place of an earlier one.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)
    # Last: below it the word `field` means this one.
    field: str = field(FIELD)


@described
class TranslationSetPayload(Payload):
    """The translation."""

    translation: Translation | None = field("The translation.")
    branch: LazyBranch | None = field("The branch, with its new head.")


@described_input
class TranslationImportItem:
    """One text of a row, said in another language."""

    target_id: strawberry.ID = field("The row, of whichever kind; its own id will do.")
    text: str = field("What the text is in this language; it takes the place of an earlier one.")
    # Last: below it the word `field` means this one.
    field: str = field(FIELD)


@described_input
class TranslationImportInput:
    """Many texts of a branch, said in another language."""

    branch_id: strawberry.ID = field("The branch.")
    language: str = field("The code of the language: two small letters, as ISO 639-1 has them.")
    translations: list[TranslationImportItem] = field("The texts: 1,000 at most.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class TranslationImportPayload(Payload):
    """What the import did. Of errors, 50 are told at most."""

    created: int | None = field("How many texts had not been said in this language.")
    updated: int | None = field("How many had been said otherwise.")
    branch: LazyBranch | None = field("The branch, with its new head.")


@described_input
class TranslationRunInput:
    """Texts of a branch that a model is to say in another language."""

    branch_id: strawberry.ID = field("The branch.")
    language: str = field("The code of the language: two small letters, as ISO 639-1 has them.")
    kinds: list[TranslationTarget] | None = field(KINDS, default=None)
    model: str | None = field(
        "The model, as its provider names it; null for the server's.", default=None
    )


@described
class TranslationRunPayload(Payload):
    """The run that translates."""

    run: LazyRun | None = field("Queued already; follow it with runEvents.")


@described_input
class TranslationDeleteInput:
    """A translation to take away."""

    translation_id: strawberry.ID = field("The translation.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class TranslationDeletePayload(Payload):
    """What was taken away."""

    deleted_id: strawberry.ID | None = field("Id of the translation.")
    branch: LazyBranch | None = field("The branch, with its new head.")


@strawberry.type
class TranslationMutation:
    """Changes to translations."""

    translation_set: TranslationSetPayload = mutation(
        resolve.set_translation,
        input=TranslationSetInput,
        payload=TranslationSetPayload,
        description="Say a text of a row in another language.",
    )
    translation_import: TranslationImportPayload = mutation(
        resolve.import_translations,
        input=TranslationImportInput,
        payload=TranslationImportPayload,
        description="Say many texts of a branch in another language: one action, all or nothing.",
    )
    translation_run: TranslationRunPayload = mutation(
        resolve.run_translation,
        input=TranslationRunInput,
        payload=TranslationRunPayload,
        description="Start a run in which a model says what is not said in a language yet. What it "
        "misses can be had by another run.",
    )
    translation_delete: TranslationDeletePayload = mutation(
        resolve.delete_translation,
        input=TranslationDeleteInput,
        payload=TranslationDeletePayload,
        description="Take a translation away: the text shows as it was written again.",
    )
