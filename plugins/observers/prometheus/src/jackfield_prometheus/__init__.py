"""Prometheus metrics of runs.

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
    """Return the metrics of this process in Prometheus' text format, or of all processes in multiprocess mode.

    Args:
        registry: The registry to show; the default one of `prometheus_client` if None.
    """
    from jackfield_prometheus.exposing import exposition

    return exposition(registry)


def metrics_app(registry: CollectorRegistry | None = None) -> Callable[..., Awaitable[None]]:
    """Return an ASGI app that answers every GET with the metrics, to be mounted at `/metrics`.

    Args:
        registry: As for `exposition`.
    """
    from jackfield_prometheus.exposing import metrics_app

    return metrics_app(registry)


def set_queue_length(runs: int, registry: CollectorRegistry | None = None) -> None:
    """Set the number of queued runs in this process; called by a server of runs.

    Args:
        runs: The number of queued runs.
        registry: As for `exposition`.
    """
    from jackfield_prometheus.metrics import metrics_of

    metrics_of(registry).queued.set(runs)
