"""Processors and toolset provided by this package."""

from __future__ import annotations

from jackfield.plugins import ProcessorSpec, ToolsetSpec, hook


@hook.processors
def processors() -> list[ProcessorSpec]:
    """Offer plain and summarising truncation, which run before messages are converted to a model's own format."""
    return [
        ProcessorSpec(
            name="truncation",
            target="jackfield_truncation.processor:Truncation",
            config="jackfield_truncation.config:TruncationConfig",
            summary="Shortens old results and drops old turns if a request is longer than a model takes.",
            phase="context",
        ),
        ProcessorSpec(
            name="summarizing_truncation",
            target="jackfield_truncation.summarizing:SummarizingTruncation",
            config="jackfield_truncation.config:SummarizingConfig",
            summary="Like truncation, but replaces dropped turns with a short summary written by a model.",
            phase="context",
            before=("truncation",),
            effects=frozenset({"network"}),  # `llm` may be another model
        ),
    ]


@hook.toolsets
def toolsets() -> list[ToolsetSpec]:
    """Offer compaction, which is listed among an agent's tools."""
    return [
        ToolsetSpec(
            name="compaction",
            target="jackfield_truncation.compaction:Compaction",
            summary="Replaces the older part of long runs with a summary, and lets the model read that part again.",
            config="jackfield_truncation.config:CompactionConfig",
            effects=frozenset({"network"}),  # as above
        )
    ]
