"""Find the tools that an entry means."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jackfield.descriptors import ComponentSpec, ToolsetSpec
from jackfield.errors import ConfigError, JackfieldError, ToolServiceError
from jackfield.plugins._host import PluginHost
from jackfield.plugins._known import known_with_key
from jackfield.suggestions import list_names
from jackfield.tools._base import BaseTool
from jackfield.tools._failures import shown
from jackfield.tools._foreign import Escaped
from jackfield.tools._function_tool import tool
from jackfield.tools._plugin_tool import find_tool
from jackfield.tools._safety import split_settings, with_settings
from jackfield.tools._schema import check_tool_schema, object_schema
from jackfield.tools._toolset import ToolEntry, Toolset


def tools_of(entry: ToolEntry, host: PluginHost) -> list[BaseTool | Toolset]:
    """The tools that an entry of `function_list` stands for. A set that is made for each run stays a set.

    Raises:
        ConfigError: It cannot be a tool.
        PluginError: No such tool is installed, or it cannot be described.
        ToolServiceError: A set failed.
    """
    if isinstance(entry, type) and issubclass(entry, BaseTool | Toolset):
        entry = _instance_of(entry)
    if isinstance(entry, str | Mapping):
        return _installed(entry, host)
    if isinstance(entry, Toolset):
        entry.host = entry.host or host
        return _parts_of_set(entry, host)
    if isinstance(entry, BaseTool):
        if not entry.schema_is_checked:
            schema = object_schema(entry.name, entry.parameters)
            check_tool_schema(entry.name, schema, ignore_patterns=entry.matches_patterns)
        return [entry]
    if callable(entry):
        return [tool(entry)]
    raise ConfigError(
        f"{entry!r} is not a tool: pass a name, a dict with 'name', a BaseTool, its class, or a typed function"
    )


def as_tool(entry: ToolEntry, host: PluginHost) -> BaseTool:
    """The tool that an entry means.

    Raises:
        ConfigError: It cannot be a tool, or is a set of several.
        PluginError: No such tool is installed, or it cannot be described.
    """
    parts = tools_of(entry, host)
    if len(parts) == 1 and isinstance(parts[0], BaseTool):
        return parts[0]
    names = list_names([one.name for one in parts if isinstance(one, BaseTool)])
    raise ConfigError(f"this is a set of tools, where one tool is needed{names and f'; name one of them: {names}'}")


def parts_of(one: Toolset, entries: object, host: PluginHost) -> list[BaseTool | Toolset]:
    """The tools that the entries of a set stand for, with the settings that were given for the whole set.

    Raises:
        ConfigError: They are not a list of tools.
        PluginError, ToolServiceError: As `tools_of`.
    """
    if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Iterable):
        raise ConfigError(f"the set of tools {one.name!r} must give a list of tools, not {type(entries).__name__}")
    return [with_settings(part, one._settings) for entry in entries for part in tools_of(entry, host)]


@contextmanager
def blaming(one: Toolset) -> Iterator[None]:
    """What goes wrong in the code of a set is raised with its name; errors of ours are raised as they are."""
    try:
        yield
    except JackfieldError:
        raise
    except Exception as error:  # noqa: BLE001 - raised again, with the name of the set
        cause = error.error if isinstance(error, Escaped) else error
        raise ToolServiceError(f"the set of tools {one.name!r} failed: {shown(cause)}") from cause


def name_of_entry(entry: str | Mapping[str, Any]) -> str:
    """The name of the installed tool or set that an entry means; '' if it has none.

    A dict without one means the known set that alone has one of its settings.
    """
    if isinstance(entry, str):
        return entry
    return str(entry.get("name") or "") or known_with_key("tool", entry) or ""


def _installed(entry: str | Mapping[str, Any], host: PluginHost) -> list[BaseTool | Toolset]:
    name = name_of_entry(entry)
    if not name:
        raise ConfigError("a tool given as a dict needs a 'name' next to its settings")
    row = host.find("tool", name)
    spec = host.spec_of(row, ComponentSpec)
    if not isinstance(spec, ToolsetSpec):
        return [find_tool(entry, host)]
    cfg = dict(entry) if isinstance(entry, Mapping) else {}
    cfg.pop("name", None)
    if spec.tools:
        return [find_tool({**cfg, "name": f"{row.distribution}/{member}"}, host) for member in spec.tools]
    settings, own = split_settings(cfg, name=spec.name)
    made = host.make(row, own, Toolset)
    made.host, made.name = host, spec.name
    return _parts_of_set(with_settings(made, settings), host)


def _parts_of_set(one: Toolset, host: PluginHost) -> list[BaseTool | Toolset]:
    version = one.changes.version if one.changes is not None else 0  # first: a change meanwhile is asked for
    with blaming(one):
        fixed = one.fixed_tools()
    if fixed is None:
        return [one]
    parts = parts_of(one, fixed, host)
    if one.changes is None:
        return parts
    return [part.given_by(one, version) if isinstance(part, BaseTool) else part for part in parts]


def _instance_of(tool_class: type[BaseTool] | type[Toolset]) -> BaseTool | Toolset:
    try:
        inspect.signature(tool_class).bind()
    except TypeError as error:
        raise ConfigError(
            f"tool {tool_class.__name__} cannot be made from its class alone ({error}): pass an instance"
        ) from None
    return tool_class()
