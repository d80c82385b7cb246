"""Expose this process's run metrics to Prometheus, if the `prometheus` observer is installed."""

from __future__ import annotations

import threading
from typing import Protocol, cast

from jackfield import sync
from jackfield.plugins import Plugins
from jackfield.servers import RequestRefusedError

OBSERVER = "prometheus"
_ENABLE = "jackfield plugins enable observer.jackfield-prometheus/prometheus"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics(Protocol):
    """The observer's interface for reading metrics."""

    def exposition(self) -> str:
        """Return the metrics in Prometheus text format."""

    def set_queue_length(self, runs: int) -> None:
        """Set the number of queued runs."""


class MetricsPage:
    """The page `/metrics`. The observer is loaded at the first request.

    Args:
        host: The plugin host that provides the observer.
        is_counted: True if an observer counts the server's runs.
    """

    def __init__(self, host: Plugins, *, is_counted: bool = True) -> None:
        self._host, self._is_counted = host, is_counted
        self._lock = threading.Lock()
        self._metrics: Metrics | None = None

    async def read(self, *, queued: int) -> bytes:
        """Return the page.

        Args:
            queued: The number of queued runs.

        Raises:
            RequestRefusedError: The observer is not installed, must not load, or does not count runs.
        """
        return await sync.in_worker(self._read, queued)

    def _read(self, queued: int) -> bytes:
        with self._lock:
            if self._metrics is None:
                self._metrics = self._load()
        self._metrics.set_queue_length(queued)
        return self._metrics.exposition().encode()

    def _load(self) -> Metrics:
        if OBSERVER not in self._host.names("observer"):
            raise RequestRefusedError(
                f"metrics are not available: run `pip install jackfield-prometheus` and `{_ENABLE}`, then "
                "restart the server",
                status=404,
                code="not_found",
            )
        if not self._is_counted:
            raise RequestRefusedError(
                f"this server does not count runs: run `{_ENABLE}`, then restart the server",
                status=404,
                code="not_found",
            )
        return cast(Metrics, self._host.load_row(self._host.find("observer", OBSERVER))())
