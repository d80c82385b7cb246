"""Agents that coordinate other agents.

Importing this package is cheap: each class is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_multi_agent.choosing import GroupChatAutoRouter
    from jackfield_multi_agent.creating import GroupChatCreator, group_config
    from jackfield_multi_agent.group import GroupChat
    from jackfield_multi_agent.hub import MultiAgentHub
    from jackfield_multi_agent.router import Router
    from jackfield_multi_agent.simulating import DialogueSimulator, HumanSimulator
    from jackfield_multi_agent.user import UserAgent

__all__ = [
    "DialogueSimulator",
    "GroupChat",
    "GroupChatAutoRouter",
    "GroupChatCreator",
    "HumanSimulator",
    "MultiAgentHub",
    "Router",
    "UserAgent",
    "group_config",
]

_MODULES = {
    "DialogueSimulator": "simulating",
    "GroupChat": "group",
    "GroupChatAutoRouter": "choosing",
    "GroupChatCreator": "creating",
    "HumanSimulator": "simulating",
    "MultiAgentHub": "hub",
    "Router": "router",
    "UserAgent": "user",
    "group_config": "creating",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
