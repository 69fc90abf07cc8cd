"""Prints a result for people."""

from __future__ import annotations

from typing import Any


def table(result: dict[str, Any]) -> str:
    """The result as lines of text."""
    lines = [
        f"{result['nodes']:,} nodes, {result['rounds']} rounds of {result['seconds']:g} s, "
        f"{result['connections']} connections, load by {result['load_generator']}; "
        f"{result['machine']['cores']} cores, load average {result['machine']['load_average']}",
        "",
        f"{'':4} {'server':14} {'requests/s':>22} {'median ms':>10} {'p99 ms':>8} {'CPU ms':>8}",
    ]
    for name, workload in result["workloads"].items():
        for server, figures in workload["servers"].items():
            rate = figures["requests_per_second"]
            processor = figures["processor_milliseconds"]
            shown = f"{rate['median']:.0f} ({rate['least']:.0f} to {rate['most']:.0f})"
            lines.append(
                f"{name:4} {server:14} {shown:>22} {figures['median_milliseconds']['median']:10.2f}"
                f" {figures['p99_milliseconds']['median']:8.2f}"
                + (f" {processor['median']:8.2f}" if processor else "")
            )
    lines.append("")
    for name, workload in result["workloads"].items():
        ratios = [
            f"{value:.2f} of {key.removeprefix('vs_')}"
            for key, value in workload.items()
            if key.startswith("vs_") and isinstance(value, float)
        ]
        lines.append(
            f"{name}: {', '.join(ratios)}; {workload['statements_per_request']:g} statements and "
            f"{workload['response_bytes']:,} bytes per request"
        )
    for name, growth in result.get("growth", {}).items():
        lines.append(
            f"{name} takes {growth['latency']:.2f} times as long on {growth['to']:,} nodes as on "
            f"{growth['from']:,}"
        )
    memory = ", ".join(f"{name} {value}" for name, value in result["peak_memory_mib"].items())
    lines.append(f"peak memory in MiB: {memory}")
    return "\n".join(lines)
