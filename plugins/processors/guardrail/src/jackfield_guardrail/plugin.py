"""Components provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer the guardrail, which wraps every processor that changes an answer."""
    return [
        ProcessorSpec(
            name="output_guardrail",
            target="jackfield_guardrail.processor:OutputGuardrail",
            config="jackfield_guardrail.config:GuardrailConfig",
            summary="Checks answers against rules that block, replace, redact, ask again or note.",
            phase="output",
            effects=frozenset({"network"}),  # a rule may have a model judge
        )
    ]
