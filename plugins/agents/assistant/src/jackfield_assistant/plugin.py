"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook


@hook.agents
def agents() -> list[AgentSpec]:
    """Return the agents that answer from documents."""
    return [
        AgentSpec(
            name="assistant",
            target="jackfield_assistant.agent:Assistant",
            summary="Answers from documents and with tools: retrieves relevant passages and cites its sources.",
            effects=frozenset({"files", "network"}),
            requires=("tool.retrieval",),
        ),
        AgentSpec(
            name="doc_qa",
            target="jackfield_assistant.agent:DocQAAgent",
            summary="Answers from documents alone, in one turn and without tools.",
            effects=frozenset({"files", "network"}),
            requires=("tool.retrieval",),
        ),
        AgentSpec(
            name="memory",
            target="jackfield_assistant.memory:Memory",
            summary="Answers with the document passages that are relevant to the question.",
            effects=frozenset({"files", "network"}),
            requires=("tool.retrieval",),
        ),
        AgentSpec(
            name="parallel_doc_qa",
            target="jackfield_assistant.parallel:ParallelDocQA",
            summary="Has a model read all parts of the documents in parallel, and answers from the findings.",
            effects=frozenset({"files", "network"}),
            requires=("tool.retrieval",),
        ),
        AgentSpec(
            name="dialogue_retrieval",
            target="jackfield_assistant.dialogue:DialogueRetrievalAgent",
            summary="Answers from long conversations: searches earlier messages like a document.",
            effects=frozenset({"files", "network"}),
            requires=("tool.retrieval",),
        ),
        AgentSpec(
            name="memo",
            target="jackfield_assistant.memo:MemoAssistant",
            summary="Remembers facts about the user.",
            effects=frozenset({"files", "network"}),
            requires=("tool.retrieval", "tool.storage"),
        ),
        AgentSpec(
            name="virtual_memory",
            target="jackfield_assistant.virtual:VirtualMemoryAgent",
            summary="Lets the model search documents, and collects passages in the system message.",
            effects=frozenset({"files", "network"}),
            requires=("tool.retrieval",),
        ),
    ]
