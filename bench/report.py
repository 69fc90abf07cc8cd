"""Prints a result for people."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def table(result: Json) -> str:
    """The result as lines of text."""
    workloads = dict(result["workloads"])
    fan_out, first_token = workloads.pop("W6", None), workloads.pop("W9", None)
    machine = result["machine"]
    lines = [
        f"{result['rounds']} rounds; {machine['cores']} cores, "
        f"load average {machine['load_average']}"
    ]
    if workloads:
        lines += ["", *_requests(result, workloads)]
    for subscribers, size in (fan_out or {}).items():
        lines += ["", *_fan_out(int(subscribers), size)]
    if first_token:
        lines += ["", *_first_token(first_token)]
    return "\n".join(lines)


def _requests(result: Json, workloads: Json) -> list[str]:
    """W1 and W2."""
    lines = [
        f"{result['nodes']:,} nodes, rounds of {result['seconds']:g} s, "
        f"{result['connections']} connections, load by {result['load_generator']}",
        f"{'':4} {'server':14} {'requests/s':>22} {'median ms':>10} {'p99 ms':>8} {'CPU ms':>8}",
    ]
    for name, workload in workloads.items():
        for server, figures in workload["servers"].items():
            processor = figures["processor_milliseconds"]
            shown = _spread(figures["requests_per_second"])
            lines.append(
                f"{name:4} {server:14} {shown:>22} {figures['median_milliseconds']['median']:10.2f}"
                f" {figures['p99_milliseconds']['median']:8.2f}"
                + (f" {processor['median']:8.2f}" if processor else "")
            )
    for name, workload in workloads.items():
        lines.append(
            f"{name}: {_ratios(workload)}; {workload['statements_per_request']:g} statements and "
            f"{workload['response_bytes']:,} bytes per request"
        )
    for name, growth in result.get("growth", {}).items():
        lines.append(
            f"{name} takes {growth['latency']:.2f} times as long on {growth['to']:,} nodes as on "
            f"{growth['from']:,}"
        )
    lines.append(_peak(result["peak_memory_mib"]))
    return lines


def _fan_out(subscribers: int, size: Json) -> list[str]:
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
