"""What this distribution offers."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Truncation, plain and summarising, before anything is written in a model's own format."""
    return [
        ProcessorSpec(
            name="truncation",
            target="jackfield_truncation.processor:Truncation",
            config="jackfield_truncation.config:TruncationConfig",
            summary="Shortens old results and leaves out old turns where a request is longer than a model takes.",
            phase="context",
        ),
        ProcessorSpec(
            name="summarizing_truncation",
            target="jackfield_truncation.summarizing:SummarizingTruncation",
            config="jackfield_truncation.config:SummarizingConfig",
            summary="As truncation, with a short summary, written by a model, in the place of what is left out.",
            phase="context",
            before=("truncation",),
        ),
    ]
