"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook


@hook.agents
def agents() -> list[AgentSpec]:
    """Return the agents that write texts."""
    return [
        AgentSpec(
            name="outline_writing",
            target="jackfield_writing.writers:OutlineWriting",
            summary="Writes the outline of a text.",
        ),
        AgentSpec(
            name="expand_writing",
            target="jackfield_writing.writers:ExpandWriting",
            summary="Writes one section of an outline.",
        ),
        AgentSpec(
            name="continue_writing",
            target="jackfield_writing.writers:ContinueWriting",
            summary="Continues a text.",
        ),
        AgentSpec(
            name="write_from_scratch",
            target="jackfield_writing.writers:WriteFromScratch",
            summary="Writes an outline and then each of its sections.",
        ),
        AgentSpec(
            name="article",
            target="jackfield_writing.article:ArticleAgent",
            summary="Writes from documents: continues a text, or writes a complete text.",
            effects=frozenset({"files", "network"}),
            requires=("agent.memory",),
        ),
    ]
