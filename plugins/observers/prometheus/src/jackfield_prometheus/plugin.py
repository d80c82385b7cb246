"""What this distribution offers. It is imported to describe, so it imports the standard library and the API only."""

from __future__ import annotations

from jackfield.plugins import ObserverSpec, hook


@hook.observers
def observers() -> list[ObserverSpec]:
    """The observer."""
    return [
        ObserverSpec(
            name="prometheus",
            target="jackfield_prometheus.observer:PrometheusObserver",
            summary="Counts runs, tokens, cost, first tokens and tool calls for Prometheus",
        )
    ]
