"""What this distribution offers."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """The guardrail, outside of everything that changes an answer."""
    return [
        ProcessorSpec(
            name="output_guardrail",
            target="jackfield_guardrail.processor:OutputGuardrail",
            config="jackfield_guardrail.config:GuardrailConfig",
            summary="Checks answers by rules that block, replace, redact, ask again or note, before anybody gets them.",
            phase="output",
        )
    ]
