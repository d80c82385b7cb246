"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer the rate limits, which run close to the backend and inside retries, so that every attempt counts."""
    return [
        ProcessorSpec(
            name="rate_limits",
            target="jackfield_rate_limits.processor:RateLimits",
            config="jackfield_rate_limits.config:RateLimitsConfig",
            summary="Limits requests and tokens per minute, and concurrent calls.",
            phase="transport",
            after=("retry",),
            effects=frozenset({"files"}),
        )
    ]
