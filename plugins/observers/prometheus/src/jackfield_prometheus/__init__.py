"""Prometheus metrics for runs.

`exposition` returns the metrics as text, and `metrics_app` serves them as an ASGI app. Importing this package loads
nothing; the functions load `prometheus_client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from prometheus_client import CollectorRegistry

__all__ = ["exposition", "metrics_app", "set_queue_length"]


def exposition(registry: CollectorRegistry | None = None) -> str:
    """Return this process's metrics in Prometheus text format, or those of all processes in multiprocess mode.

    Args:
        registry: The registry to expose. Defaults to the default registry of `prometheus_client`.
    """
    from jackfield_prometheus.exposing import exposition

    return exposition(registry)


def metrics_app(registry: CollectorRegistry | None = None) -> Callable[..., Awaitable[None]]:
    """Return an ASGI app that answers every GET request with the metrics. Mount it at `/metrics`.

    Args:
        registry: See `exposition`.
    """
    from jackfield_prometheus.exposing import metrics_app

    return metrics_app(registry)


def set_queue_length(runs: int, registry: CollectorRegistry | None = None) -> None:
    """Set the number of queued runs in this process. Called by servers that host runs.

    Args:
        runs: The number of queued runs.
        registry: See `exposition`.
    """
    from jackfield_prometheus.metrics import metrics_of

    metrics_of(registry).queued.set(runs)
