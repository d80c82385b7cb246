"""Make an agent of a kind that the core or a plugin has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.agents.base import Agent
from jackfield.agents.fncall import BasicAgent, FnCallAgent
from jackfield.config import AgentConfig
from jackfield.errors import BrokenPluginError
from jackfield.plugins.host import PluginHost, default_host

_CORE_KINDS: Mapping[str, type[Agent]] = {"basic": BasicAgent, "fncall": FnCallAgent}


def create_agent(
    kind: str | Mapping[str, Any] | AgentConfig, *, host: PluginHost | None = None, **options: Any
) -> Agent:
    """Make an agent.

    Args:
        kind: `basic`, `fncall`, the name or address of an installed kind (`assistant`), or a whole `AgentConfig`, also
            as a dict.
        host: Where names are looked up.
        options: What the kind's class takes; over those of a configuration.

    Raises:
        ConfigError: A key does not fit.
        PluginError: The kind, the model or a tool is not installed, or cannot be loaded.
    """
    host = host or default_host()
    if not isinstance(kind, str):
        config = AgentConfig.parse(kind, what="agent")
        given = {key: getattr(config, key) for key in config.model_fields_set - {"agent"}}
        return create_agent(config.agent, host=host, **{**given, **options})
    agent_class = _CORE_KINDS.get(kind) or host.load("agent", kind)
    if not (isinstance(agent_class, type) and issubclass(agent_class, Agent)):
        raise BrokenPluginError(f"agent kind {kind!r} is no subclass of jackfield.Agent")
    return agent_class(host=host, **options)
