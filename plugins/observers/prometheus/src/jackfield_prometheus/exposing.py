"""Expose the metrics in Prometheus formats."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest, make_asgi_app
from prometheus_client.multiprocess import MultiProcessCollector

from jackfield_prometheus.metrics import metrics_of

_FOLDER_OF_PROCESSES = "PROMETHEUS_MULTIPROC_DIR"


def exposition(registry: CollectorRegistry | None = None) -> str:
    """See `jackfield_prometheus.exposition`."""
    return generate_latest(_registry_to_show(registry)).decode()


def metrics_app(registry: CollectorRegistry | None = None) -> Callable[..., Awaitable[None]]:
    """See `jackfield_prometheus.metrics_app`."""
    return make_asgi_app(_registry_to_show(registry))


def _registry_to_show(registry: CollectorRegistry | None) -> CollectorRegistry:
    metrics_of(registry)  # so that the metrics exist before the first run
    if registry is None and _FOLDER_OF_PROCESSES in os.environ:
        joined = CollectorRegistry()
        MultiProcessCollector(joined)  # type: ignore[no-untyped-call]
        return joined
    return REGISTRY if registry is None else registry
