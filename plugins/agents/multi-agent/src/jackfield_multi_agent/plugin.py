"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook


@hook.agents
def agents() -> list[AgentSpec]:
    """Return the agents that combine other agents."""
    return [
        AgentSpec(
            name="router",
            target="jackfield_multi_agent.router:Router",
            summary="Hands each conversation to the most suitable agent, or answers itself.",
            effects=frozenset({"files", "network"}),  # with `rag_cfg`, the `memory` agent reads its documents
        ),
        AgentSpec(
            name="group_chat",
            target="jackfield_multi_agent.group:GroupChat",
            summary="Lets agents and people talk to each other in turns.",
        ),
        AgentSpec(
            name="group_chat_auto_router",
            target="jackfield_multi_agent.choosing:GroupChatAutoRouter",
            summary="Chooses the next speaker of a group chat.",
        ),
        AgentSpec(
            name="group_chat_creator",
            target="jackfield_multi_agent.creating:GroupChatCreator",
            summary="Designs a group chat from a user's description.",
        ),
        AgentSpec(
            name="user",
            target="jackfield_multi_agent.user:UserAgent",
            summary="Represents a person in a conversation of agents.",
        ),
        AgentSpec(
            name="human_simulator",
            target="jackfield_multi_agent.simulating:HumanSimulator",
            summary="Proposes a user's next message.",
        ),
        AgentSpec(
            name="dialogue_simulator",
            target="jackfield_multi_agent.simulating:DialogueSimulator",
            summary="Lets a simulated user talk to an assistant.",
        ),
    ]
