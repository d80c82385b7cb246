"""The components of this distribution. It is imported to describe them, so it imports only the API of plugins."""

from __future__ import annotations

from jackfield.plugins import ObserverSpec, hook


@hook.observers
def observers() -> list[ObserverSpec]:
    """Return the Prometheus observer's spec."""
    return [
        ObserverSpec(
            name="prometheus",
            target="jackfield_prometheus.observer:PrometheusObserver",
            summary="Counts runs, tokens, cost, first tokens and tool calls for Prometheus",
        )
    ]
