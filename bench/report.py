"""Prints a result for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def table(result: Json) -> str:
    """The result as lines of text."""
    measured = result["workloads"]
    requests = {name: each for name, each in measured.items() if name not in _SHOWN}
    machine = result["machine"]
    lines = [
        f"{result['rounds']} rounds; {machine['cores']} cores, "
        f"load average {machine['load_average']}"
    ]
    if requests:
        lines += ["", *_requests(result, requests)]
    for name, show in _SHOWN.items():
        if name in measured:
            lines += ["", *show(measured[name])]
    return "\n".join(lines)


def _requests(result: Json, workloads: Json) -> list[str]:
    """W1 and W2."""
    lines = [
        f"{result['nodes']:,} nodes, rounds of {result['seconds']:g} s, "
        f"{result['connections']} connections, load by {result['load_generator']}",
        _OF_SERVERS,
    ]
    for name, workload in workloads.items():
        lines += _servers(name, workload)
    for name, workload in workloads.items():
        lines.append(
            f"{name}: {_ratios(workload)}; {workload['statements_per_request']:g} statements and "
            f"{workload['response_bytes']:,} bytes per request"
        )
    lines.append(_peak(result["peak_memory_mib"]))
    return lines


_OF_SERVERS = (
    f"{'':4} {'server':14} {'requests/s':>22} {'median ms':>10} {'p99 ms':>8} {'CPU ms':>8}"
)


def _servers(name: str, workload: Json) -> list[str]:
    lines = []
    for server, figures in workload["servers"].items():
        processor = figures["processor_milliseconds"]
        shown = _spread(figures["requests_per_second"])
        lines.append(
            f"{name:4} {server:14} {shown:>22} {figures['median_milliseconds']['median']:10.2f}"
            f" {figures['p99_milliseconds']['median']:8.2f}"
            + (f" {processor['median']:8.2f}" if processor else "")
        )
    return lines


def _branch_pages(figures: Json) -> list[str]:
    """W3."""
    return [
        f"W3, pages of a branch of {figures['rows']:,} rows: {_ratios(figures)}; "
        f"{figures['response_bytes']:,} bytes per request",
        _OF_SERVERS,
        *_servers("W3", figures),
    ]


def _searches(figures: Json) -> list[str]:
    """W5."""
    lines = [f"W5, hybrid searches of a branch, {figures['vectors']}"]
    for share, part in figures["shares"].items():
        times = part["milliseconds"]
        lines.append(
            f"{'':4} {share:>6} ({part['rows']:,} rows): recall {part['recall']:.3f}, "
            f"{_milliseconds(times['request'])}, {part['vs_statement']:.2f} times the bare "
            f"statement's {_milliseconds(times['statement'])}; by meaning alone "
            f"{_milliseconds(times['by_meaning'])}, {part['by_meaning_vs_statement']:.2f} times"
        )
    return lines


def _vectors(figures: Json) -> list[str]:
    """B4."""
    lines = [f"B4, the {figures['nearest']} nearest rows of a branch, by its share of all vectors"]
    for cloud, measured in figures["clouds"].items():
        lines.append(
            f"{'':4} {cloud}: the index takes {measured['index_seconds']:g} s and "
            f"{measured['index_mib']:g} MiB"
        )
        for share, parts in measured["shares"].items():
            lines += [
                f"{'':8} {share:>6} {name:32} recall {each['recall']:.3f}, "
                f"{each['fewest_rows']:3} rows at least, {_milliseconds(each['milliseconds'])}, "
                f"first {each['first_milliseconds']:.1f} ms"
                for name, each in parts.items()
            ]
    return lines


def _growth(figures: Json) -> list[str]:
    """W10."""
    lines = ["W10, growth"]
    for name, each in figures.items():
        times = ", ".join(
            f"{int(size):,} rows {_milliseconds(taken)}"
            for size, taken in each["milliseconds"].items()
        )
        grown = ", ".join(f"{value:.2f} times" for value in each["latency"].values())
        lines.append(f"{'':4} {name}: {times}; {grown}")
    return lines


def _fan_out(sizes: Json) -> list[str]:
    """W6."""
    lines: list[str] = []
    for subscribers, size in sizes.items():
        lines += ["", *_fan_out_to(int(subscribers), size)]
    return lines[1:]


def _fan_out_to(subscribers: int, size: Json) -> list[str]:
    """W6 at one size."""
    lines = [
        f"W6, {subscribers:,} subscribers: {size['events']} events as fast as can be, then "
        f"{size['paced_events']} of them, {size['paced_events_per_second']} a second",
        f"{'':4} {'server':14} {'deliveries/s':>22} {'CPU ms/1000':>12} {'client CPU':>11}"
        f" {'KiB each':>9} | {'paced: to last, ms':>20} {'p99':>8} {'first to last':>14}"
        f" {'p99':>8}",
    ]
    for server, figures in size["servers"].items():
        cost, paced = figures["processor_seconds_per_1000"], figures["paced"]
        memory = figures["resident_kib_per_subscriber"]
        delay, apart = paced["to_last_milliseconds"], paced["first_to_last_milliseconds"]
        lines.append(
            f"{'':4} {server:14} {_spread(figures['deliveries_per_second']):>22}"
            f" {cost['median'] * 1e3 if cost else float('nan'):12.1f}"
            f" {figures['generator_core_share']['median']:11.0%}"
            f" {float('nan') if memory is None else memory:9.0f} |"
            f" {delay['median']['median']:20.1f} {delay['p99']['median']:8.1f}"
            f" {apart['median']['median']:14.1f} {apart['p99']['median']:8.1f}"
        )
    lines.append(f"{'':4} {_ratios(size)}; {_peak(size['peak_memory_mib'])}")
    return lines


def _first_token(figures: Json) -> list[str]:
    """W9."""
    lines = [
        f"W9, {figures['runs']} first tokens of a provider that takes "
        f"{figures['provider_milliseconds']:g} ms; milliseconds beside those, median (p99)",
        f"{'':4} {'client':14} {'added':>16} {'until asked':>16} {'until shown':>16}"
        f" {'since taken up':>16}",
    ]
    for client, measured in figures["servers"].items():
        shown = [
            f"{each['median']['median']:.1f} ({each['p99']:.1f})" for each in measured.values()
        ]
        lines.append(" ".join((f"{'':4} {client:14}", *(f"{each:>16}" for each in shown))))
    return lines


def _neighbourhoods(figures: Json) -> list[str]:
    """W4."""
    return [
        f"W4, neighbourhoods of depth 3 in {figures['entities']:,} entities and "
        f"{figures['relations']:,} relations: {_beside_bare(figures)}"
    ]


def _fork(figures: Json) -> list[str]:
    """W7."""
    return [f"W7, a fork of a branch of {figures['rows']:,} rows: {_beside_bare(figures)}"]


def _rollback(figures: Json) -> list[str]:
    """W8."""
    return [
        f"W8, {figures['deltas']:,} changes rolled back in a branch of {figures['rows']:,} rows: "
        f"{_beside_bare(figures)}"
    ]


def _beside_bare(figures: Json) -> str:
    """Both sides of W7 or W8."""
    ours, bare = (figures["seconds"][side] for side in ("services", "bare_sql"))
    return (
        f"{ours['median'] * 1e3:.0f} ms, {figures['vs_bare_sql']:.2f} times the bare statements' "
        f"{bare['median'] * 1e3:.0f} ms (rounds: "
        f"{', '.join(f'{each:.2f}' for each in figures['vs_bare_sql_rounds'])})"
    )


def _forks(grid: Json) -> list[str]:
    """B6."""
    lines = [
        "B6, forks by entries of the story and place; what somebody who writes to the parent waits",
        f"{'':4} {'entries':>8} {'at':8} {'rows':>8} {'seconds':>9} {'writes':>8}"
        f" {'p99 ms':>8} {'longest':>8}",
    ]
    for entries, places in grid.items():
        for place, figures in places.items():
            waits = figures["writer_waits_milliseconds"]
            lines.append(
                f"{'':4} {int(entries):8,} {place:8} {figures['rows']:8,}"
                f" {figures['seconds']['median']:9.3f} {waits['writes']:8,} {waits['p99']:8.1f}"
                f" {waits['longest']:8.1f}"
            )
    return lines


def _ways_back(figures: Json) -> list[str]:
    """B7."""
    one = figures["one_turn"]
    lines = [
        f"B7, a branch of {figures['rows']:,} rows: one turn undone in "
        f"{_milliseconds(one['undo_milliseconds'])}, redone in "
        f"{_milliseconds(one['redo_milliseconds'])}",
        f"{'':4} {'turns':>8} {'rollback s':>11} {'undo s':>9} {'redo s':>9} {'actions':>8}",
    ]
    for turns, each in figures["turns"].items():
        lines.append(
            f"{'':4} {int(turns):8,} {each['rollback_seconds']['median']:11.3f}"
            f" {each['undo_seconds']['median']:9.3f} {each['redo_seconds']['median']:9.3f}"
            f" {each['steps']:8,}"
        )
    return lines


def _past(figures: Json) -> list[str]:
    """B10."""
    return [
        f"B10, {figures['entities']:,} entities as of an entry, {figures['deltas']:,} changes; "
        f"{figures['moments_equal_to_replay']:,} moments equal to the replay",
        *(
            f"{'':4} {int(distance):8,} entries back: {_milliseconds(each)}"
            for distance, each in figures["milliseconds_by_distance"].items()
        ),
    ]


def _leaks(figures: Json) -> list[str]:
    """B2."""
    return [
        f"B2, {figures['questions']:,} questions as of entries: {figures['texts_known']:,} texts, "
        f"{figures['texts_known_too_early']:,} of them known too early",
        *(
            f"{'':4} {name:16} {_milliseconds(each)}"
            for name, each in figures["milliseconds"].items()
        ),
    ]


def _perspectives(figures: Json) -> list[str]:
    """B3."""
    learned = ", ".join(f"{way} {count:,}" for way, count in figures["learned"].items())
    return [
        f"B3, {figures['questions']:,} questions of characters: {figures['facts_shown']:,} facts "
        f"shown, {figures['facts_shown_but_unknown']:,} of them not known, "
        f"{figures['facts_known_but_not_shown']:,} known and not shown; learned: {learned}",
        *(
            f"{'':4} {name:16} {_milliseconds(each['of_one'])}; of everything "
            f"{_milliseconds(each['of_all'])}, p95 {each['p95_vs_unfiltered']:.2f} times as long"
            for name, each in figures["fields"].items()
        ),
    ]


def _walks(figures: Json) -> list[str]:
    """B8."""
    lines = [
        "B8, walks that find what networkx finds, milliseconds: median (p95); bare statements by "
        "level and along all paths",
        f"{'':4} {'graph':28} {'depth':>5} {'walk':>18} {'by level':>18} {'by paths':>18}",
    ]
    for name, ground in figures["walks"].items():
        for depth, each in ground["depths"].items():
            sides = [each, each.get("by_level"), each.get("by_paths")]
            shown = [_beside(side) for side in sides]
            lines.append(" ".join((f"{'':4} {name:28} {depth:>5}", *(f"{x:>18}" for x in shown))))
    for name, kinds in figures["paths"].items():
        told = ", ".join(f"{kind} {_milliseconds(each)}" for kind, each in kinds.items())
        lines.append(f"{'':4} {name:28} paths: {told}")
    for name, each in figures["requests"].items():
        told = f"depth {each['depth']}, {each['first']:,} nodes: {_milliseconds(each)}"
        lines.append(f"{'':4} {name:28} request, {told}")
    return lines


def _beside(times: Json | None) -> str:
    if times is None:
        return ""
    given_up = "given up" if times.get("given_up") else ""
    return given_up or f"{times['median']:.1f} ({times['p95']:.1f})"


def _names(figures: Json) -> list[str]:
    """B5."""
    lines = [f"B5, {figures['names']} names in {figures['passages']:,} texts of each script"]
    for language, parts in figures["scripts"].items():
        lines += [
            f"{'':4} {language:9} {name:9} recall {each['recall']:.3f}, precision "
            f"{each['precision']:.3f}, {_milliseconds(each['milliseconds'])}"
            + (
                f"; built in {each['seconds_to_build']:g} s, {each['bytes'] / 2**20:.0f} MiB"
                if "bytes" in each
                else ""
            )
            for name, each in parts.items()
        ]
    return lines


def _communities(figures: Json) -> list[str]:
    """B9."""
    return [
        f"B9, communities; the same in {figures['orders']} orders of the rows",
        *(
            f"{'':4} {name:18} {each['nodes']:6,} nodes, {each['edges']:6,} edges:"
            f" {each['seconds']['median']:6.2f} s, {each['iterations']:3} iterations,"
            f" {each['communities']:5,} communities, modularity {each['modularity']:.3f}"
            + (f", index {each['adjusted_rand_index']:.3f}" if each["adjusted_rand_index"] else "")
            for name, each in figures["graphs"].items()
        ),
    ]


# All but W1 and W2, in the order in which they are shown.
_SHOWN: dict[str, Callable[[Json], list[str]]] = {
    "W3": _branch_pages,
    "W4": _neighbourhoods,
    "W5": _searches,
    "W6": _fan_out,
    "W7": _fork,
    "W8": _rollback,
    "W9": _first_token,
    "W10": _growth,
    "B2": _leaks,
    "B3": _perspectives,
    "B4": _vectors,
    "B5": _names,
    "B6": _forks,
    "B7": _ways_back,
    "B8": _walks,
    "B9": _communities,
    "B10": _past,
}


def _milliseconds(times: Json) -> str:
    return f"{times['median']:.1f} ms (p95 {times['p95']:.1f})"


def _spread(of: Json) -> str:
    return f"{of['median']:.0f} ({of['least']:.0f} to {of['most']:.0f})"


def _ratios(workload: Json) -> str:
    ratios = [
        f"{value:.2f} of the CPU of {key.removeprefix('processor_vs_')}"
        if key.startswith("processor_")
        else f"{value:.2f} of {key.removeprefix('vs_')}"
        for key, value in workload.items()
        if key.startswith(("vs_", "processor_vs_")) and isinstance(value, float)
    ]
    return ", ".join(ratios)


def _peak(memory: Json) -> str:
    return "peak memory in MiB: " + ", ".join(f"{name} {value}" for name, value in memory.items())
