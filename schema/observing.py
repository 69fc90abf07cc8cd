"""`/metrics` for Prometheus: what the wire counts, and the state of what the process shares."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, Gauge, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.responses import PlainTextResponse, Response

from db.enums import RunStatus
from resolvers.context import Engine
from schema.wire.documents import DocumentCache
from schema.wire.metrics import Metrics
from services import runs


class _CacheFigures(Collector):
    """What the document cache counts by itself."""

    def __init__(self, documents: DocumentCache) -> None:
        self._documents = documents

    def collect(self) -> Iterator[Metric]:
        """The figures of now."""
        cache, name = self._documents, "mirrorgraph_document_cache"
        yield GaugeMetricFamily(f"{name}_entries", "Documents in the cache.", len(cache))
        yield GaugeMetricFamily(f"{name}_bytes", "Their size in memory, estimated.", cache.bytes)
        yield CounterMetricFamily(
            f"{name}_hits", "Requests whose document was known.", value=cache.hits
        )
        yield CounterMetricFamily(
            f"{name}_misses", "Requests whose document was read anew.", value=cache.misses
        )


class Observation:
    """Looks at the process and its database when Prometheus asks."""

    def __init__(self, metrics: Metrics, documents: DocumentCache) -> None:
        self._registry = metrics.registry
        self._pool = self._gauge(
            "mirrorgraph_pool_connections", "Connections to the database.", "pool", "state"
        )
        self._runs = self._gauge("mirrorgraph_runs", "Runs by their state.", "state")
        self._working = self._gauge("mirrorgraph_running_runs", "Runs that this server works on.")
        self._waiting = self._gauge(
            "mirrorgraph_hub_subscriptions",
            "Who waits for an announcement: streams, sign-ins of streams, runs in work.",
        )
        self._registry.register(_CacheFigures(documents))

    def _gauge(self, name: str, description: str, *labels: str) -> Gauge:
        return Gauge(name, description, labels, registry=self._registry)

    async def _look(self, engine: Engine) -> None:
        for pool, (size, idle) in engine.database.pool_use().items():
            self._pool.labels(pool, "busy").set(size - idle)
            self._pool.labels(pool, "idle").set(idle)
        self._working.set(engine.worker.running_count)
        self._waiting.set(engine.hub.open_subscriptions)
        if not await engine.database.is_ready():
            self._runs.clear()  # no figures are better than old ones
            return
        async with engine.database.reading() as reading:
            counts = await runs.count_by_status(reading)
        for status in RunStatus:
            self._runs.labels(status.value).set(counts.get(status.value, 0))

    async def answer(self, engine: Engine) -> Response:
        """The figures of now, in Prometheus's text format."""
        await self._look(engine)
        return PlainTextResponse(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)
