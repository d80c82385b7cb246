"""Base for agents that combine other, uniquely named agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jackfield.agents import Agent
from jackfield.config import checked_list
from jackfield.errors import ConfigError
from jackfield_multi_agent.user import UserAgent


class MultiAgentHub:
    """Mixin for agents that combine other agents.

    Attributes:
        agents: The combined agents in order, each with a unique name.
    """

    agents: tuple[Agent, ...]

    @property
    def agent_names(self) -> list[str]:
        """The names of all agents."""
        return [agent.name or "" for agent in self.agents]

    @property
    def nonuser_agents(self) -> list[Agent]:
        """All agents that do not represent people."""
        return [agent for agent in self.agents if not isinstance(agent, UserAgent)]


def check_agents(agents: Iterable[object], what: str) -> tuple[Agent, ...]:
    """Validate a hub's agents and return them as a tuple.

    Raises:
        ConfigError: There are no agents, an entry is not an agent, or an agent's name is missing or not unique.
    """
    checked: dict[str, Agent] = {}
    for agent in checked_list(agents, "agents", "agents"):
        if not isinstance(agent, Agent):
            hint = ": in a file, specify the agent kind, as in `agent: fncall`" if isinstance(agent, Mapping) else ""
            raise ConfigError(f"agents of {what} must be agents, got {type(agent).__name__}{hint}")
        if not agent.name:
            raise ConfigError(f"each agent of {what} needs a name: pass name= to {type(agent).__name__}")
        if agent.name in checked:
            raise ConfigError(f"two agents in {what} are named {agent.name!r}: rename one of them")
        checked[agent.name] = agent
    if not checked:
        raise ConfigError(f"{what} needs at least one agent")
    return tuple(checked.values())


def described(agents: Iterable[Agent]) -> str:
    """Describe each agent on a line of its own."""
    return "\n".join(
        f"- {agent.name}: {agent.description}" if agent.description else f"- {agent.name}" for agent in agents
    )
