"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook


@hook.agents
def agents() -> list[AgentSpec]:
    """Return the `react` agent."""
    return [
        AgentSpec(
            name="react",
            target="jackfield_react.agent:ReActChat",
            summary="Calls tools in plain words, with any model: thought, action, observation, answer.",
            requires=("call_format.react",),
        )
    ]
