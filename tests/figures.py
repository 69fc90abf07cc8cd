"""Prometheus's text format, read for comparison."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

# Name and labels of a series, as `name{label=value,...}` with the labels in order.
Figures = dict[str, float]


def read_figures(text: str) -> Figures:
    """Every sample by its series."""
    return {
        series(sample.name, **sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def series(name: str, **labels: str) -> str:
    """How a series is called here."""
    listed = ",".join(f"{label}={labels[label]}" for label in sorted(labels))
    return f"{name}{{{listed}}}" if listed else name


def changes(before: Figures, after: Figures, *prefixes: str) -> Figures:
    """By how much the series have changed whose names begin so; all of them without prefixes.

    What stayed the same is left out.
    """
    differences = {
        name: after.get(name, 0) - before.get(name, 0)
        for name in sorted({*before, *after})
        if name.startswith(prefixes or "")
    }
    return {name: by for name, by in differences.items() if by}
