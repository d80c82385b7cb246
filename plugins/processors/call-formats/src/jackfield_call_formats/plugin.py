"""Call formats provided by this package."""

from __future__ import annotations

from jackfield.plugins import CallFormatSpec, hook


@hook.call_formats
def call_formats() -> list[CallFormatSpec]:
    """Offer four call formats."""
    return [
        CallFormatSpec(
            name="nous",
            target="jackfield_call_formats.nous:NousFormat",
            summary="Calls as <tool_call> JSON (or XML) in the text, as Hermes and Qwen models are trained on.",
        ),
        CallFormatSpec(
            name="qwen",
            target="jackfield_call_formats.qwen:QwenFormat",
            summary="Calls as ✿FUNCTION✿ and ✿ARGS✿ in the text, as older Qwen models are trained on.",
        ),
        CallFormatSpec(
            name="qwen3_coder",
            target="jackfield_call_formats.qwen3_coder:Qwen3CoderFormat",
            summary="Calls as XML without escapes, as Qwen3-Coder and Qwen 3.5 are trained on.",
        ),
        CallFormatSpec(
            name="react",
            target="jackfield_call_formats.react:ReActFormat",
            summary="Calls as lines of Thought, Action and Action Input, for any model that can follow a pattern.",
        ),
    ]
