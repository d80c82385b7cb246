"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook


@hook.agents
def agents() -> list[AgentSpec]:
    """Return the `tir_math` agent."""
    return [
        AgentSpec(
            name="tir_math",
            target="jackfield_math.agent:TIRMathAgent",
            summary="Solves problems with Python: the model reasons and writes code blocks that run immediately.",
            requires=("tool.code_interpreter",),
        )
    ]
