"""What the server tells Prometheus of its operations and streams.

Labels take values from fixed sets alone: nothing that a client can choose becomes a label.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)

from schema.wire.errors import Refused

# The time at which each series began is a series of its own otherwise.
disable_created_metrics()  # type: ignore[no-untyped-call]

# How an operation can end.
OUTCOMES = ("ok", "partial", "failed", "refused", "timeout", "cancelled")

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The counters of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.operations = Counter(
            "mirrorgraph_operations",
            "Operations that have ended; a subscription when its stream has.",
            ["kind", "outcome"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "mirrorgraph_operation_seconds",
            "How long operations took; of subscriptions each event that was executed.",
            ["kind"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.refusals = Counter(
            "mirrorgraph_refusals",
            "Requests that were refused, and operations that were stopped, by the error's code.",
            ["code"],
            registry=self.registry,
        )
        self.running = Gauge(
            "mirrorgraph_running_operations",
            "Operations that have begun and not ended; subscriptions are live ones.",
            ["kind"],
            registry=self.registry,
        )
        self.connections = Gauge(
            "mirrorgraph_connections",
            "Open connections that carry streams.",
            ["transport"],
            registry=self.registry,
        )
        for kind in ("query", "mutation", "subscription"):
            self.seconds.labels(kind)
            self.running.labels(kind)
            for outcome in OUTCOMES:
                self.operations.labels(kind, outcome)
        for transport in ("websocket", "sse", "multipart"):
            self.connections.labels(transport)

    def count(self, refused: Refused) -> None:
        """Count a refusal, once however often this is called."""
        if not refused.is_counted:
            refused.is_counted = True
            self.refusals.labels(refused.code).inc()
