"""Create agents of any kind that the core or a plugin provides."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Literal, TypeAlias, Unpack, overload

from jackfield._frames import ForgetLocals
from jackfield.agents._base import Agent, AgentOptions
from jackfield.agents._configs import AgentConfig, is_agent
from jackfield.agents._fncall import BasicAgent, FnCallAgent
from jackfield.agents._missing import NameAllMissing
from jackfield.config import Config, LLMConfig, checked_list
from jackfield.errors import BrokenPluginError, ConfigError, PluginNotFoundError
from jackfield.models._base import BaseChatModel
from jackfield.plugins import Plugins
from jackfield.runs._run import AgentLike, Handoff
from jackfield.suggestions import close_names, suggest
from jackfield.tools._toolset import ToolEntry

_PLAIN: Mapping[str, Any] = {"int": int, "float": int | float, "str": str, "bool": bool, "None": NoneType}
_CORE_KINDS: Mapping[str, type[Agent]] = {"basic": BasicAgent, "fncall": FnCallAgent}


class CreateOptions(AgentOptions, total=False):
    """Options for `create_agent`: the options common to all agents, and the fields of `AgentConfig`.

    Some kinds have more options. To have additional options type-checked, use the class directly:
    `from jackfield_assistant import Assistant`.
    """

    function_list: Iterable[ToolEntry] | None
    llm: str | Mapping[str, object] | LLMConfig | BaseChatModel | None
    system_message: str | None
    name: str | None
    description: str | None
    rag_cfg: Mapping[str, object] | Config | None


@overload
def create_agent(kind: Literal["basic"], **options: Unpack[CreateOptions]) -> BasicAgent: ...
@overload
def create_agent(kind: Literal["fncall"], **options: Unpack[CreateOptions]) -> FnCallAgent: ...
@overload
def create_agent(kind: str | Mapping[str, object] | AgentConfig, **options: Unpack[CreateOptions]) -> Agent: ...
def create_agent(
    kind: str | Mapping[str, object] | AgentConfig, *, host: Plugins | None = None, **options: Any
) -> Agent:
    """Create an agent.

    Args:
        kind: `basic`, `fncall`, the name or address of an installed kind such as `assistant`, or a complete
            configuration as an `AgentConfig` or a dict.
        host: The plugin host that resolves names.
        options: Keyword arguments for the kind's class, which override the configuration.

    Raises:
        ConfigError: A setting is not valid.
        PluginError: The kind, the model or a tool is not installed, or cannot be loaded.
    """
    from jackfield.plugins._host import checked_host  # an import of agents needs no plugin

    with ForgetLocals():  # arguments may include an API key
        return _created(kind, checked_host(host), options)


def _created(kind: str | Mapping[str, object] | AgentConfig, host: Plugins, options: Mapping[str, object]) -> Agent:
    if not isinstance(kind, str | Mapping | AgentConfig):
        raise ConfigError(f"kind must be a name such as 'fncall', a dict or an AgentConfig, got {type(kind).__name__}")
    if not isinstance(kind, str):
        return _from_config(AgentConfig.parse(kind, what=_label(kind)), host, options)
    with NameAllMissing(kind, options, host):
        agent = _made_of_kind(kind, host, options)
    agent.kind = kind
    return agent


def _made_of_kind(kind: str, host: Plugins, options: Mapping[str, object]) -> Agent:
    agent_class = _CORE_KINDS.get(kind) or _loaded(kind, host)
    if not (isinstance(agent_class, type) and issubclass(agent_class, Agent)):
        raise BrokenPluginError(f"agent kind {kind!r} is not a subclass of jackfield.Agent")
    _check_options(kind, agent_class, options)
    return agent_class(host=host, **_with_agents(options, host))


def _label(kind: Mapping[str, object] | AgentConfig) -> str:
    return f"agent {dict(kind).get('name') or ''}".rstrip()


def _from_config(config: AgentConfig, host: Plugins, options: Mapping[str, object]) -> Agent:
    given = {
        key: getattr(config, key) for key in config.model_fields_set - {"agent", "options", "prompt"}
    } | config.options
    return _created(config.agent, host, {**given, **options})


def _loaded(kind: str, host: Plugins) -> object:
    if kind.endswith((".yaml", ".yml", ".toml", ".json")):
        raise ConfigError(f"{kind!r} is a file, not an agent kind: use create_agent(load_agent_config({kind!r}))")
    try:
        return host.load_row(host.find("agent", kind))
    except PluginNotFoundError as error:
        if not close_names(kind, _CORE_KINDS):
            raise
        raise PluginNotFoundError(f"{error}{suggest(kind, _CORE_KINDS)}", component=error.component) from None


def _with_agents(options: Mapping[str, object], host: Plugins) -> dict[str, Any]:
    """Create the agents that options describe as data. Inner agents default to the outer agent's model."""
    around = {} if options.get("llm") is None else {"llm": options["llm"]}

    def inside(entry: Mapping[str, object]) -> Agent:
        return _created(entry, host, {} if entry.get("llm") else around)

    return {key: _IN_OPTIONS.get(key, _made)(value, inside) for key, value in options.items()}


_Inside: TypeAlias = Callable[[Mapping[str, object]], Agent]


def _made(value: Any, inside: _Inside) -> Any:
    if isinstance(value, list | tuple) and any(map(is_agent, value)):
        return [_made(entry, inside) for entry in value]
    return inside(value) if is_agent(value) else value


def _tools(entries: Any, inside: _Inside) -> list[ToolEntry]:
    listed = checked_list(entries or (), "function_list", "tools")
    return [inside(entry).as_tool() if is_agent(entry) else entry for entry in listed]


def _handoffs(entries: Any, inside: _Inside) -> list[AgentLike | Handoff]:
    listed = checked_list(entries or (), "handoffs", "agents")
    return [_handoff(entry, inside) if isinstance(entry, Mapping) else entry for entry in listed]


_IN_OPTIONS: Mapping[str, Callable[[Any, _Inside], Any]] = {"function_list": _tools, "handoffs": _handoffs}


def _handoff(entry: Mapping[str, object], inside: _Inside) -> Handoff:
    history = entry.get("history", "all")
    if history not in ("all", "question"):
        raise ConfigError(f"a handoff's history must be 'all' or 'question', got {history!r}")
    return Handoff(inside({key: value for key, value in entry.items() if key != "history"}), history)


def _check_options(kind: str, agent_class: type[Agent], options: Mapping[str, object]) -> None:
    """Raise ConfigError for options that the kind does not accept. Kinds that accept any option check them later."""
    named = dict(inspect.signature(agent_class).parameters)
    rest = [named.pop(name) for name, parameter in [*named.items()] if parameter.kind is parameter.VAR_KEYWORD]
    if rest and "AgentOptions" not in str(rest[0].annotation):
        return
    takes = [*named, *(AgentOptions.__annotations__.keys() - {"host"} if rest else ())]
    own = ", ".join(sorted(named.keys() - CreateOptions.__annotations__.keys())) or "none"
    for name, value in options.items():
        if name not in takes:
            raise ConfigError(
                f"agent kind {kind!r} has no option {name!r}{suggest(name, sorted(takes))} (its own options: {own})"
            )
        if name in named:
            _check_type(f"option {name!r} of agent kind {kind!r}", value, str(named[name].annotation).split(" | "))


def _check_type(what: str, value: object, types: Sequence[str]) -> None:
    """Raise ConfigError if all `types` are built-in types and the value matches none of them."""
    if not any(isinstance(value, _PLAIN.get(one, object)) for one in types):
        raise ConfigError(f"{what} must be {' or '.join(types)}, got {type(value).__name__}")
