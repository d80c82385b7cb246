"""Load a service's agents from objects, files or modules, as copies that record in the service's store."""

from __future__ import annotations

import copy
import importlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeAlias

from jackfield.agents import Agent, AgentLike, AgentTool, create_agent
from jackfield.answers import form_of
from jackfield.config import GenerateConfig
from jackfield.errors import ConfigError
from jackfield.messages import FunctionCall
from jackfield.models import get_chat_model
from jackfield.plugins import Plugins
from jackfield.tools import BaseTool
from jackfield_records.recording import AgentRecorder, recorder_of
from jackfield_serving.clienttools import ClientTools
from jackfield_serving.recording import ServedStore
from jackfield_serving.requests import Request
from jackfield_serving.views import AgentInfo, ToolInfo

AgentSource: TypeAlias = "Agent[Any] | str | PathLike[str]"
"""An agent, the path of an agent file, or an agent in a module as `module:name`."""
_log = logging.getLogger("jackfield.serving")
_FILES = (".yaml", ".yml", ".toml", ".json")


@dataclass(frozen=True, slots=True)
class ServedAgent:
    """An agent in a service: a copy that records in the service's store.

    Attributes:
        name: The agent's name in the service.
        agent: The copy.
        recorder: The recorder for its runs.
    """

    name: str
    agent: Agent[Any]
    recorder: AgentRecorder
    _with_models: dict[str, ServedAgent] = field(default_factory=dict, repr=False, compare=False)

    @property
    def takes_client_tools(self) -> bool:
        """True if runs can have tools of their own, and can continue after a pause."""
        return self.agent.resumable

    def with_client_tools(self, tools: ClientTools) -> Agent[Any]:
        """Return the agent with a client's tools added, for one run.

        Raises:
            ConfigError: This kind of agent does not support tools for a single run.
        """
        if not self.takes_client_tools:
            raise ConfigError(f"agent {self.name!r} does not accept client tools: remove them")
        agent = copy.copy(self.agent)
        agent.toolsets = [*agent.toolsets, tools]
        return agent

    def with_model(self, model: str) -> ServedAgent:
        """Return the agent with another of its models, or itself for ''.

        Raises:
            ConfigError: The agent does not offer this model, or the model's settings are incomplete.
            PluginError: The model's backend is not installed.
        """
        if not model:
            return self
        if model not in self.agent.models:
            offered = ", ".join(self.agent.models) or "none"
            raise ConfigError(f"agent {self.name!r} does not offer model {model!r}; available: {offered}")
        if model not in self._with_models:
            agent = copy.copy(self.agent)
            agent.llm = get_chat_model(model, host=agent.host)
            vars(agent).pop("_recorder", None)  # it names the other model
            self._with_models[model] = ServedAgent(self.name, agent, recorder_of(agent, self.recorder.store))
        return self._with_models[model]

    def check(self, request: Request) -> None:
        """Reject a request that the agent cannot serve.

        Raises:
            ConfigError: The agent does not have the called tool or takes no client tools, a client tool's name is
                taken, a schema is invalid, or a model option is unknown.
        """
        if request.call is not None and request.call.name not in self.agent.function_map:
            raise ConfigError(f"agent {self.name!r} has no tool {request.call.name!r}: call one of the agent's tools")
        if request.client_tools:
            tools = ClientTools(request.client_tools, {})
            names = [*self.agent.function_map, *tools.names]
            if twice := {name for name in tools.names if names.count(name) > 1}:
                raise ConfigError(
                    f"tool name {min(twice)!r} is already in use by the agent or another client tool: "
                    "rename the client tool"
                )
            self.with_client_tools(tools)
        if request.config:
            GenerateConfig.parse(request.config, what="config")
        if request.output is not None:
            form_of(request.output)

    def info(self) -> AgentInfo:
        """Return the agent's description for clients."""
        llm = self.agent.llm
        facts = None if llm is None else llm.facts
        return AgentInfo(
            name=self.name,
            description=self.agent.description,
            model=self.recorder.model.partition(" ")[0],
            images=facts is not None and facts.images,
            audio=facts is not None and facts.audio,
            video=facts is not None and facts.video,
            files=facts is not None and (facts.files or self.agent.reads_files),
            tools=tuple(self.agent.function_map),
            takes_client_tools=self.takes_client_tools,
            takes_output=llm is not None,
            workspace=str(self.agent.workspace.root.absolute()),
            suggestions=self.agent.suggestions,
            models=self.agent.models,
            adjustable={name: getattr(self.agent.extra_generate_cfg, name) for name in self.agent.adjustable},
        )


def describe_tool(tool: BaseTool) -> ToolInfo:
    """Return a tool's description for clients."""
    schema = tool.schema()
    return ToolInfo(
        name=tool.name,
        description=schema.get("description", ""),
        parameters=schema.get("parameters", {}),
        read_only=tool.safety().read_only,
    )


class AgentInfos(Mapping[str, AgentInfo]):
    """The descriptions of a service's agents, created on access because faces look up names all the time."""

    def __init__(self, agents: Mapping[str, ServedAgent]) -> None:
        self._agents = agents

    def __getitem__(self, name: str) -> AgentInfo:
        return self._agents[name].info()

    def __contains__(self, name: object) -> bool:
        return name in self._agents

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)


def serve_agent(
    name: str,
    source: AgentSource,
    store: ServedStore,
    *,
    host: Plugins | None = None,
    trust: bool = False,
    run_s: float | None = None,
) -> ServedAgent:
    """Create a served agent from an object, a file or a module. Its runs take at most `run_s` seconds.

    Raises:
        ConfigError: There is no such file, module or name, or it is not an agent.
        ConsentNeededError: The file has effects that the user has not agreed to.
        PluginError: Something the agent needs is not installed.
    """
    agent = copy.copy(source if isinstance(source, Agent) else load_agent(source, host=host, trust=trust))
    agent.store = store
    if run_s is not None:
        seconds = run_s if agent.limits.seconds is None else min(run_s, agent.limits.seconds)
        agent.limits = agent.limits.model_copy(update={"seconds": seconds})
    vars(agent).pop("_recorder", None)  # it was made for another store
    return ServedAgent(name, agent, recorder_of(agent, store))


def load_agent(source: str | PathLike[str], *, host: Plugins | None = None, trust: bool = False) -> Agent[Any]:
    """Load an agent from a file or a module (`module:name`).

    Args:
        source: The path of a YAML, TOML or JSON file, or a module and a name in it.
        host: The plugin host that resolves names in the file.
        trust: True if the caller vouches for the file.

    Raises:
        ConfigError: There is no such file, module or name, or it is not an agent.
        ConsentNeededError: The file has effects that the user has not agreed to.
        PluginError: Something the agent needs is not installed.
    """
    text = str(source)
    if isinstance(source, str) and not text.endswith(_FILES) and ":" in text:
        return _load_from_module(text)
    from jackfield_agent_files.files import load_agent_config

    return create_agent(load_agent_config(text, trust=trust), host=host)


def preview_call(agent: AgentLike, call: FunctionCall, path: str = "") -> str:
    """Return the changes a call would make to text files as a unified diff, or '' if there is nothing to show.

    Args:
        agent: The run's agent.
        call: The call.
        path: The names of the nested agents, down to the one that makes the call, as in `WaitingCall.agent`. If the
            path matches several agents whose files differ, there is no preview.
    """
    able = {id(one): one for one in _agents_at(agent, path) if isinstance(one, Agent) and call.name in one.function_map}
    previews = {_preview(one, call) for one in able.values()}
    return previews.pop() if len(previews) == 1 else ""


def files_of(agent: AgentLike) -> tuple[str, ...]:
    """Return the `files` of an agent and of all agents below it, without duplicates: paths, folders and patterns."""
    reachable = _with_handoffs(agent)
    for one in reachable:
        for _, asked in _agents_asked_by(one):
            reachable += [other for other in _with_handoffs(asked) if not any(other is known for known in reachable)]
    return tuple(dict.fromkeys(file for one in reachable for file in getattr(one, "files", ())))


def _agents_at(agent: AgentLike, path: str) -> Iterator[AgentLike]:
    """Yield the agents that a path may refer to. A hand-off target has the same path as the agent that hands over."""
    if path:
        for name, asked in _agents_asked_by(agent):
            if path == name or path.startswith(f"{name}/"):
                yield from _agents_at(asked, path[len(name) + 1 :])
    else:
        yield from _with_handoffs(agent)


def _agents_asked_by(agent: AgentLike) -> Iterator[tuple[str, AgentLike]]:
    """Yield the agents that an agent or its hand-off targets can ask, with their names in a path."""
    for one in _with_handoffs(agent):
        for tool in getattr(one, "function_map", {}).values():
            if isinstance(tool, AgentTool):
                yield tool.name, tool.agent
        for member in getattr(one, "agents", ()):
            yield member.name or type(member).__name__, member


def _with_handoffs(agent: AgentLike) -> list[AgentLike]:
    reachable = [agent]
    for one in reachable:
        others = (handoff.agent for handoff in getattr(one, "handoffs", ()))
        reachable += [other for other in others if not any(other is known for known in reachable)]
    return reachable


def _preview(agent: Agent[Any], call: FunctionCall) -> str:
    tool = agent.function_map[call.name]
    try:
        preview = tool.preview(tool.parse_arguments(call.arguments), workspace=agent.workspace)
    except Exception:  # noqa: BLE001 - a tool of any plugin; without a preview, the arguments are shown
        _log.warning("cannot preview a call to %s", call.name, exc_info=True)
        return ""
    return preview.encode("utf-8", "replace").decode()


def _load_from_module(source: str) -> Agent[Any]:
    module, _, name = source.partition(":")
    if not module or module.startswith("."):
        raise ConfigError(f"cannot load agent {source!r}: give the module's full name, as in app.agents:helper")
    try:
        value: object = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cannot load agent {source!r}: {error}; use module:name, as in app.agents:helper") from error
    if not isinstance(value, Agent):
        raise ConfigError(f"{source} must be an agent, got {type(value).__name__}")
    return value


def check_names(agents: Mapping[str, object]) -> None:
    """Reject a service without agents, or with an empty agent name.

    Raises:
        ConfigError: There are no agents, or one has no name.
    """
    if not agents or not all(agents):
        raise ConfigError("a service needs named agents, as in Serving({'helper': agent})")
