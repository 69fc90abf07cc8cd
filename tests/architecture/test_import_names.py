"""Law 10: no installed distribution claims the names under which our packages are imported."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

from tests.architecture.sources import LAYERS


def claims(installed: Iterable[Distribution]) -> list[str]:
    """Distributions that bring a module or package of one of our names."""
    found = set()
    for each in installed:
        tops = {
            path.parts[0].removesuffix(".py") if len(path.parts) == 1 else path.parts[0]
            for path in each.files or ()
        }
        tops |= set((each.read_text("top_level.txt") or "").split())
        found |= {f"{each.name} brings {name}" for name in tops & set(LAYERS)}
    return sorted(found)


def test_nothing_installed_takes_our_names() -> None:
    assert claims(distributions()) == []


def test_a_distribution_that_takes_a_name_is_noticed(tmp_path: Path) -> None:
    for name, record, top_level in (
        ("one", "db/__init__.py,,\none.py,,\n", ""),
        ("two", "services.py,,\nlib/schema/__init__.py,,\n", ""),
        ("three", "three.py,,\n", "three\nresolvers\n"),
    ):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "RECORD").write_text(record)
        (folder / "top_level.txt").write_text(top_level)
        for line in record.splitlines():
            file = tmp_path / line.partition(",")[0]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    assert claims(distributions(path=[str(tmp_path)])) == [
        "one brings db",
        "three brings resolvers",
        "two brings services",
    ]
