"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import ObserverSpec, hook


@hook.observers
def observers() -> list[ObserverSpec]:
    """Return the log observer's spec."""
    return [
        ObserverSpec(
            name="log",
            target="jackfield_log.observer:LogObserver",
            config="jackfield_log.config:LogConfig",
            summary="Logs each step of a run with its tokens and seconds",
        )
    ]
