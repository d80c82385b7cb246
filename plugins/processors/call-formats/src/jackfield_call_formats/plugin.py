"""What this distribution offers."""

from __future__ import annotations

from jackfield.plugins import CallFormatSpec, hook


@hook.call_formats
def call_formats() -> list[CallFormatSpec]:
    """The format of Hermes, Qwen 2.5 and Qwen 3."""
    return [
        CallFormatSpec(
            name="nous",
            target="jackfield_call_formats.nous:NousFormat",
            summary="Calls as <tool_call> JSON (or XML) in the text, as Hermes and Qwen models are trained on.",
        )
    ]
