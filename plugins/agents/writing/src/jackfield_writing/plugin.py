"""What this package offers."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook

_KINDS = (
    ("outline_writing", "OutlineWriting", "Writes the outline of a text."),
    ("expand_writing", "ExpandWriting", "Writes one section of an outline."),
    ("continue_writing", "ContinueWriting", "Continues a text."),
    ("write_from_scratch", "WriteFromScratch", "Writes an outline and then each of its sections."),
)


@hook.agents
def agents() -> list[AgentSpec]:
    """Agents that write."""
    return [
        *(
            AgentSpec(name=name, target=f"jackfield_writing.writers:{target}", summary=summary)
            for name, target, summary in _KINDS
        ),
        AgentSpec(
            name="article",
            target="jackfield_writing.article:ArticleAgent",
            summary="Writes from documents: continues a text, or writes a whole one.",
            effects=frozenset({"files", "network"}),
            requires=("agent.memory",),
        ),
    ]
