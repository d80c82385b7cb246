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
        description=f"Where the content of runs is recorded: nowhere, in spans, in events, or in both; if unset, "
        f"{CONTENT_VARIABLE} decides (default: nowhere)",
    )
    propagate: bool = Field(default=True, description="Send `traceparent` with requests to models and services")
    chunk_times: bool = Field(
        default=False,
        description="Measure the time between the chunks of an answer, which costs a measurement per chunk",
    )
