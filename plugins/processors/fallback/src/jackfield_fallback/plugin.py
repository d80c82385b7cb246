"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer the fallback, which runs before a request is converted to a model's own format."""
    return [
        ProcessorSpec(
            name="fallback",
            target="jackfield_fallback.processor:Fallback",
            config="jackfield_fallback.config:FallbackConfig",
            summary="Asks another model when one cannot answer, by the cause of its failure.",
            phase="format",
            after=("redaction",),
            before=("call_format",),
            effects=frozenset({"network"}),
        )
    ]
