"""What this package offers."""

from __future__ import annotations

from jackfield.plugins import AgentSpec, hook

_KINDS = (
    ("router", "router:Router", "Hands each conversation to the agent that fits, or answers itself."),
    ("group_chat", "group:GroupChat", "Lets agents and people talk with each other, in turns."),
    ("group_chat_auto_router", "choosing:GroupChatAutoRouter", "Says who speaks next in a group chat."),
    ("group_chat_creator", "creating:GroupChatCreator", "Designs a group chat after a user's wish."),
    ("user", "user:UserAgent", "Stands for a person in a conversation of agents."),
    ("human_simulator", "simulating:HumanSimulator", "Says what a user could say next."),
    ("dialogue_simulator", "simulating:DialogueSimulator", "Lets a simulated user and an assistant talk."),
)


@hook.agents
def agents() -> list[AgentSpec]:
    """Agents that bring others together."""
    return [
        AgentSpec(name=name, target=f"jackfield_multi_agent.{target}", summary=summary)
        for name, target, summary in _KINDS
    ]
