"""The metrics defined by the semantic conventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from opentelemetry.metrics import Histogram, MeterProvider, get_meter

from jackfield.messages import Usage
from jackfield_otel import names

Attributes: TypeAlias = Mapping[str, str | int | float | bool]
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_CHUNK = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_TOKENS = tuple(4**power for power in range(14))


class Instruments:
    """The histograms, created once per observer."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = get_meter(names.SCOPE, meter_provider=provider)

        def histogram(name: str, unit: str, description: str, boundaries: tuple[float, ...]) -> Histogram:
            return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=boundaries)

        self._tokens = histogram(names.TOKEN_USAGE, "{token}", "Tokens of a request and its answer", _TOKENS)
        self._operation = histogram(names.OPERATION_DURATION, "s", "Time of a request to a model", _SECONDS)
        self._first = histogram(names.FIRST_CHUNK_METRIC, "s", "Time to the first piece of an answer", _FIRST_CHUNK)
        self._chunk = histogram(names.EACH_CHUNK_METRIC, "s", "Time between two pieces of an answer", _FIRST_CHUNK)
        self._tool = histogram(names.TOOL_DURATION, "s", "Time of a tool call", _SECONDS)
        self._agent = histogram(names.AGENT_DURATION, "s", "Time of a run of an agent", _SECONDS)

    def record_answer(self, attributes: Attributes, seconds: float, first_s: float | None, usage: Usage) -> None:
        """Record a model request, whether answered or failed, or a document search, which has no usage."""
        self._operation.record(seconds, attributes)
        if first_s is not None:
            self._first.record(first_s, attributes)
        for kind, tokens in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
            if tokens:
                self._tokens.record(tokens, {**attributes, names.TOKEN_TYPE: kind})

    def record_chunks(self, attributes: Attributes, seconds: Sequence[float]) -> None:
        """Record the times between an answer's chunks."""
        for one in seconds:
            self._chunk.record(one, attributes)

    def record_call(self, attributes: Attributes, seconds: float) -> None:
        """Record a tool call."""
        self._tool.record(seconds, attributes)

    def record_run(self, attributes: Attributes, seconds: float) -> None:
        """Record a run."""
        self._agent.record(seconds, attributes)
