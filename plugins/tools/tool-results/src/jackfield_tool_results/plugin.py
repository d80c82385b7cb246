"""Plugin hooks for the toolsets that wrap other tools."""

from __future__ import annotations

from jackfield.plugins import ToolsetSpec, hook


@hook.toolsets
def toolsets() -> list[ToolsetSpec]:
    """Provide the toolsets. Users list the tools to wrap in their settings."""
    return [
        ToolsetSpec(
            name="cached_results",
            target="jackfield_tool_results.cached:CachedResults",
            summary="Reuses a tool's result for the same arguments, for tools that allow it.",
            config="jackfield_tool_results.cached:CachedResultsConfig",
            required_by={"tools": "tool"},
            effects=frozenset({"files"}),
        ),
        ToolsetSpec(
            name="kept_results",
            target="jackfield_tool_results.kept:KeptResults",
            summary="Stores results that are too long for a model, and lets it read or search them in parts.",
            config="jackfield_tool_results.kept:KeptResultsConfig",
            required_by={"tools": "tool"},
        ),
        ToolsetSpec(
            name="retried_calls",
            target="jackfield_tool_results.retried:RetriedCalls",
            summary="Retries calls after temporary failures, for tools that are safe to retry.",
            config="jackfield_tool_results.retried:RetriedCallsConfig",
            required_by={"tools": "tool"},
        ),
    ]
