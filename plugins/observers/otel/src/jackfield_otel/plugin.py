"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ObserverSpec, hook


@hook.observers
def observers() -> list[ObserverSpec]:
    """Return the OpenTelemetry observer's spec."""
    return [
        ObserverSpec(
            name="otel",
            target="jackfield_otel.observer:OtelObserver",
            config="jackfield_otel.config:OtelConfig",
            summary="Traces runs, model calls, tools and searches for OpenTelemetry, with metrics",
        )
    ]
