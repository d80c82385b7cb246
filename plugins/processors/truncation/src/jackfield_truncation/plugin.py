"""What this distribution offers."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Truncation, before anything is written in a model's own format."""
    return [
        ProcessorSpec(
            name="truncation",
            target="jackfield_truncation.processor:Truncation",
            config="jackfield_truncation.config:TruncationConfig",
            summary="Shortens old results and leaves out old turns where a request is longer than a model takes.",
            phase="context",
        )
    ]
