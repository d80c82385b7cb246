"""What this package offers."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook


@hook.agents
def agents() -> list[AgentSpec]:
    """The agent kind `assistant`."""
    return [
        AgentSpec(
            name="assistant",
            target="jackfield_assistant.agent:Assistant",
            summary="Answers from documents and with tools: retrieves what fits the question, names its sources.",
            effects=frozenset({"files", "network"}),
            requires=("tool.retrieval",),
        )
    ]
