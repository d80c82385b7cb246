"""What this package offers."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook


def _kind(name: str, target: str, summary: str) -> AgentSpec:
    effects = frozenset({"files", "network"})
    return AgentSpec(
        name=name,
        target=f"jackfield_assistant.{target}",
        summary=summary,
        effects=effects,
        requires=("tool.retrieval",),
    )


@hook.agents
def agents() -> list[AgentSpec]:
    """Agents that answer from documents."""
    return [
        _kind(
            "assistant",
            "agent:Assistant",
            "Answers from documents and with tools: retrieves what fits the question, names its sources.",
        ),
        _kind("doc_qa", "agent:DocQAAgent", "Answers from documents alone, in one turn and without tools."),
        _kind("memory", "memory:Memory", "Answers with the passages of documents that fit the question."),
        _kind(
            "parallel_doc_qa",
            "parallel:ParallelDocQA",
            "Has a model read each part of documents, many at a time, and answers from what they say.",
        ),
    ]
