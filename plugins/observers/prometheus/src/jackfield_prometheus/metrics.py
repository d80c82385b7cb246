"""The metrics, one set per registry, with bounded label values."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

OTHER = "other"
"""The label value for all names beyond the limit."""
MAX_NAMES = {"agent": 100, "model": 100, "tool": 200, "error": 50}
_MAX_NAME_CHARS = 100
_SECONDS_OF_RUNS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1800)
_SECONDS_TO_FIRST_TOKEN = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 40, 60)
_SECONDS_OF_TOOLS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Labels:
    """Limits the number of values per label, because names come from users, servers and models.

    Every value takes up memory here and in Prometheus for as long as the process lives.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {label: {} for label in MAX_NAMES}

    def bounded(self, label: str, name: str, *, is_trusted: bool = True) -> str:
        """Return a label's value for a name: the name itself, or `other` once there are too many.

        Args:
            label: A key of `MAX_NAMES`.
            name: The name.
            is_trusted: False for a name that a model may have made up, which never becomes a new value.
        """
        known, name = self._known[label], name[:_MAX_NAME_CHARS]
        value = known.get(name)
        if value is not None:
            return value
        if not is_trusted or len(known) >= MAX_NAMES[label]:
            return OTHER
        # A lone surrogate cannot be written, and would make the whole page fail.
        return known.setdefault(name, name.encode("utf-8", "backslashreplace").decode())


class Metrics:
    """The metrics in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.labels = Labels()
        self.runs = Counter(
            "jackfield_runs", "Runs that have ended, by outcome.", ("agent", "outcome"), registry=registry
        )
        self.running = Gauge(
            "jackfield_runs_in_progress",
            "Runs that have begun and not ended.",
            ("agent",),
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.queued = Gauge(
            "jackfield_runs_queued",
            "Runs that wait for a free place in the server.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.run_seconds = Histogram(
            "jackfield_run_duration_seconds",
            "Time from the start of a run to its end.",
            ("agent",),
            registry=registry,
            buckets=_SECONDS_OF_RUNS,
        )
        self.tokens = Counter(
            "jackfield_tokens",
            "Tokens of answers, by type: input, output.",
            ("agent", "model", "type"),
            registry=registry,
        )
        self.cached_tokens = Counter(
            "jackfield_cached_tokens",
            "Input tokens that the provider read from its cache.",
            ("agent", "model"),
            registry=registry,
        )
        self.reasoning_tokens = Counter(
            "jackfield_reasoning_tokens", "Output tokens spent on reasoning.", ("agent", "model"), registry=registry
        )
        self.cost = Counter(
            "jackfield_cost", "Cost of answers, in the currency.", ("agent", "model", "currency"), registry=registry
        )
        self.unpriced = Counter(
            "jackfield_unpriced_answers", "Answers whose cost is unknown.", ("agent", "model"), registry=registry
        )
        self.answer_seconds = Histogram(
            "jackfield_answer_duration_seconds",
            "Time from a request to a model to the end of its answer, with all retries.",
            ("agent", "model"),
            registry=registry,
            buckets=_SECONDS_OF_RUNS,
        )
        self.first_token_seconds = Histogram(
            "jackfield_time_to_first_token_seconds",
            "Time from a request to a model to the first piece of its answer.",
            ("agent", "model"),
            registry=registry,
            buckets=_SECONDS_TO_FIRST_TOKEN,
        )
        self.retries = Counter("jackfield_retries", "Repeated requests to models.", ("agent",), registry=registry)
        self.calls = Counter(
            "jackfield_tool_calls", "Tool calls that have ended.", ("agent", "tool"), registry=registry
        )
        self.failures = Counter(
            "jackfield_tool_failures",
            "Tool calls that failed, by error.",
            ("agent", "tool", "error"),
            registry=registry,
        )
        self.call_seconds = Histogram(
            "jackfield_tool_duration_seconds",
            "Time of a tool call.",
            ("tool",),
            registry=registry,
            buckets=_SECONDS_OF_TOOLS,
        )


_lock = threading.Lock()
_by_registry: WeakKeyDictionary[CollectorRegistry, Metrics] = WeakKeyDictionary()


def metrics_of(registry: CollectorRegistry | None = None) -> Metrics:
    """Return the metrics in a registry, which accepts each name only once. Defaults to the default registry."""
    registry = REGISTRY if registry is None else registry
    with _lock:
        metrics = _by_registry.get(registry)
        if metrics is None:
            metrics = _by_registry[registry] = Metrics(registry)
    return metrics
