"""Report everything that an agent is missing in one error: API keys, and packages with one install command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from jackfield.errors import JackfieldError, MissingSecretError, PluginNotFoundError
from jackfield.plugins._protocol import Plugins
from jackfield.runs._run import AgentLike


@dataclass(frozen=True, eq=False)
class NameAllMissing:
    """Context manager that extends a `PluginNotFoundError` with everything else that the agent is missing.

    Args:
        kind: The agent's kind.
        options: The agent's options. Options that are already objects, such as a model, are skipped.
        host: The plugin host, which provides the installed plugins.
    """

    kind: str
    options: Mapping[str, object]
    host: Plugins

    def __enter__(self) -> None:
        """Do nothing, because all work happens on exit."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, PluginNotFoundError) and (complete := self.complete(error)) is not error:
            raise complete

    def complete(self, error: PluginNotFoundError) -> PluginNotFoundError:
        """Return an error that also lists the other missing components, or `error` itself if there are none."""
        from jackfield.agents._components import config_of, missing_components  # only needed for errors

        first = _innermost(error)
        try:
            missing = missing_components(config_of(self.kind, self.options), self.host)
        except JackfieldError:  # another option is wrong too, which will be reported once the plugin is installed
            missing = {}
        text = _text(first, missing)
        if text == str(error):
            return error
        complete = PluginNotFoundError(text, component=first.component)
        complete.__cause__ = first
        return complete


def complete_error(error: BaseException, agent: AgentLike, *, kind: str, files: Sequence[str]) -> BaseException:
    """Return a run's error, extended with everything that the agent is missing."""
    match error:
        case PluginNotFoundError():
            return NameAllMissing(kind or "fncall", {**_options_of(agent), "files": files}, agent.host).complete(error)
        case MissingSecretError(others=()):
            others = [text for text in unset_secrets(agent) if error.variable not in text.split()]
            if others:
                complete = MissingSecretError(error.variable, needed_by=error.needed_by, others=others)
                complete.__cause__ = error
                return complete
    from jackfield.plugins._misfits import explain_error  # only needed for errors

    return explain_error(error)


def _options_of(agent: AgentLike) -> dict[str, object]:
    """Return the agent's options that name components."""
    from jackfield.tools._plugin_tool import PluginTool

    tools = [tool for tool in agent.function_map.values() if isinstance(tool, PluginTool)]
    return {"function_list": [{**tool.cfg, "name": tool.name} for tool in tools]}


def unset_secrets(agent: AgentLike) -> list[str]:
    """List the API keys that an agent needs and that are not set, as `VARIABLE (kind 'name')`.

    The list includes the keys of agents that the agent can call or hand over to. Models with their own server address
    are omitted, because such servers may not need a key.
    """
    from jackfield.agents._subagents import reachable_agents
    from jackfield.descriptors import ComponentSpec
    from jackfield.secrets import is_secret
    from jackfield.tools._plugin_tool import PluginTool

    texts: dict[str, None] = {}
    for one in reachable_agents(agent):
        parts = [
            (tool.row, tool.cfg) for tool in getattr(one, "function_map", {}).values() if isinstance(tool, PluginTool)
        ]
        model = getattr(one, "llm", None)
        if model is not None and not model.config.server_url:  # the user's own server may need no key
            with suppress(JackfieldError):
                parts.append((agent.host.find("llm", model.config.model_type or model.backend), {}))
        for row, settings in parts:
            variables = agent.host.spec_of(row, ComponentSpec).secrets
            has_key = any(is_secret(name, value) for name, value in settings.items())
            if variables and not has_key and not any(map(agent.host.settings.secret, variables)):
                texts[f"{' or '.join(variables)} ({row.kind} {row.name!r})"] = None
    return list(texts)


def _innermost(error: PluginNotFoundError) -> PluginNotFoundError:
    """Return the original error, which concerns one component. The errors of outer agents extend it."""
    while isinstance(error.__cause__, PluginNotFoundError):
        error = error.__cause__
    return error


def _text(first: PluginNotFoundError, missing: Mapping[str, str]) -> str:
    others = {component: package for component, package in missing.items() if component != first.component}
    if not others:
        return str(first)
    command = f"pip install {' '.join(sorted(set(missing.values())))}"
    if first.component in missing:
        return f"not installed: {_list(missing)}. Install everything that this agent is missing: {command}"
    return f"{first}. The agent also needs {_list(others)}, not installed: {command}"


def _list(components: Iterable[str]) -> str:
    return ", ".join(f"{kind} {name!r}" for kind, _, name in (one.partition(".") for one in components))
