"""B5 at a small size: every name is found in every script, and what a person is shown of it."""

from __future__ import annotations

import pytest

from bench import names
from bench.report import table
from tests.bench.results import result


async def test_every_name_is_found_in_every_script(dsn: str) -> None:
    measured = await names.measure(dsn, 1, lambda _: None, passages=60, names=6)
    ours = {language: each["ours"] for language, each in measured["scripts"].items()}
    assert {each["recall"] for each in ours.values()} == {1.0}
    # A Thai name is as long as a sentence could be: most of it is enough.
    assert {each["precision"] for language, each in ours.items() if language != "Thai"} == {1.0}
    shown = table(result(B5=measured))
    assert "B5, 6 names in 60 texts of each script" in shown


@pytest.mark.parametrize("language", names.SCRIPTS)
def test_names_stand_in_the_texts(language: str) -> None:
    texts = names.texts_of(names.SCRIPTS[language], 90, 5)
    assert sum(len(texts.scan(each)) for each in texts.names) >= 30
