"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer redaction, which runs after every processor that adds text and before the call format."""
    return [
        ProcessorSpec(
            name="redaction",
            target="jackfield_redaction.processor:Redaction",
            config="jackfield_redaction.config:RedactionConfig",
            summary="Replaces personal data and API keys before a model is asked, and restores them in its answer.",
            phase="format",
            before=("call_format",),
        )
    ]
