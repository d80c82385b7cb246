"""The settings of the OpenTelemetry observer."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from jackfield.config import Config

ContentMode: TypeAlias = Literal["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"]
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class OtelConfig(Config):
    """The settings of `otel`."""

    content: ContentMode | None = Field(
        default=None,
        description=f"Where texts of runs are written: nowhere, to spans, to events, or to both; unset: as the "
        f"variable {CONTENT_VARIABLE} says, and nowhere without it",
    )
    propagate: bool = Field(default=True, description="Send `traceparent` with the requests to models and services")
    chunk_times: bool = Field(
        default=False, description="Measure the time between the pieces of answers; it costs a measurement for each"
    )
