"""Resolve the entries of `function_list` to tools."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jackfield.errors import ConfigError, JackfieldError, ToolServiceError
from jackfield.plugins._known import known_with_key
from jackfield.plugins._protocol import Plugins
from jackfield.suggestions import list_names
from jackfield.tools._base import BaseTool
from jackfield.tools._failures import summarize
from jackfield.tools._foreign import EscapedError
from jackfield.tools._function_tool import tool
from jackfield.tools._plugin_tool import find_tool
from jackfield.tools._safety import split_settings, with_settings
from jackfield.tools._schema import check_tool_schema, object_schema
from jackfield.tools._toolset import ToolEntry, Toolset


def tools_of(entry: ToolEntry, host: Plugins) -> list[BaseTool | Toolset]:
    """Resolve an entry of `function_list` to tools. Toolsets that create tools for each run are returned unchanged.

    Raises:
        ConfigError: The entry is not a tool.
        PluginError: The tool is not installed or cannot be described.
        ToolServiceError: A toolset failed.
    """
    if isinstance(entry, type) and issubclass(entry, BaseTool | Toolset):
        entry = _make_instance(entry)
    if isinstance(entry, str | Mapping):
        return _find_installed(entry, host)
    if isinstance(entry, Toolset):
        entry.host = entry.host or host
        return _open_toolset(entry, host)
    if isinstance(entry, BaseTool):
        if not entry.schema_is_checked:
            schema = object_schema(entry.name, entry.parameters)
            check_tool_schema(entry.name, schema, ignore_patterns=entry.matches_patterns)
        return [entry]
    if callable(entry):
        return [tool(entry)]
    if hasattr(entry, "as_tool"):
        raise ConfigError(f"{entry!r} is an agent, not a tool: pass agent.as_tool()")
    raise ConfigError(
        f"{entry!r} is not a tool: pass a name, a dict with 'name', a BaseTool instance or class, or a typed function"
    )


def as_tool(entry: ToolEntry, host: Plugins) -> BaseTool:
    """Resolve an entry to a single tool.

    Raises:
        ConfigError: The entry is not a tool, or is a toolset with several tools.
        PluginError: The tool is not installed or cannot be described.
    """
    parts = tools_of(entry, host)
    if len(parts) == 1 and isinstance(parts[0], BaseTool):
        return parts[0]
    names = list_names([one.name for one in parts if isinstance(one, BaseTool)])
    hint = f"; specify one of its tools: {names}" if names else ""
    raise ConfigError(f"expected one tool, got a toolset{hint}")


def resolve_entries(toolset: Toolset, entries: object, host: Plugins) -> list[BaseTool | Toolset]:
    """Resolve the entries that a toolset returned, and apply the toolset's settings to the resulting tools.

    Raises:
        ConfigError: The entries are not a list of tools.
        PluginError, ToolServiceError: As for `tools_of`.
    """
    if isinstance(entries, str | bytes | Mapping) or not isinstance(entries, Iterable):
        raise ConfigError(f"toolset {toolset.name!r} must return a list of tools, got {type(entries).__name__}")
    return [with_settings(part, toolset._settings) for entry in entries for part in tools_of(entry, host)]


@contextmanager
def naming_toolset(toolset: Toolset) -> Iterator[None]:
    """Add the toolset's name to foreign errors that its code raises. Jackfield's own errors are left unchanged."""
    try:
        yield
    except JackfieldError:
        raise
    except Exception as error:  # noqa: BLE001 - raised again with the name of the toolset
        cause = error.error if isinstance(error, EscapedError) else error
        raise ToolServiceError(f"toolset {toolset.name!r} failed: {summarize(cause)}") from cause


def name_of_entry(entry: str | Mapping[str, Any]) -> str:
    """Return the name of the installed tool or toolset that an entry refers to, or '' if there is none.

    A dict without a name refers to a known toolset if only that toolset has one of the dict's settings.
    """
    if isinstance(entry, str):
        return entry
    return str(entry.get("name") or "") or known_with_key("tool", entry) or ""


def _find_installed(entry: str | Mapping[str, Any], host: Plugins) -> list[BaseTool | Toolset]:
    from jackfield.descriptors import ComponentSpec, ToolsetSpec  # an import of agents needs no plugin

    name = name_of_entry(entry)
    if not name:
        raise ConfigError("a tool specified as a dict needs a 'name' in addition to its settings")
    row = host.find("tool", name)
    spec = host.spec_of(row, ComponentSpec)
    if not isinstance(spec, ToolsetSpec):
        return [find_tool(entry, host)]
    cfg = dict(entry) if isinstance(entry, Mapping) else {}
    cfg.pop("name", None)
    if spec.tools:
        return [find_tool({**cfg, "name": f"{row.distribution}/{member}"}, host) for member in spec.tools]
    settings, own = split_settings(cfg, name=spec.name)
    toolset = host.make(row, own, Toolset)
    toolset.host, toolset.name = host, spec.name
    return _open_toolset(with_settings(toolset, settings), host)


def _open_toolset(toolset: Toolset, host: Plugins) -> list[BaseTool | Toolset]:
    changes = toolset.changes
    version = changes.version if changes is not None else 0  # read first, so that a concurrent change is noticed later
    with naming_toolset(toolset):
        fixed = toolset.fixed_tools()
    if fixed is None:
        return [toolset]
    parts = resolve_entries(toolset, fixed, host)
    if changes is None:
        return parts
    return [part.with_origin(toolset, version) if isinstance(part, BaseTool) else part for part in parts]


def _make_instance(tool_class: type[BaseTool] | type[Toolset]) -> BaseTool | Toolset:
    try:
        inspect.signature(tool_class).bind()
    except TypeError as error:
        raise ConfigError(
            f"tool {tool_class.__name__} cannot be created from its class alone ({error}): pass an instance"
        ) from None
    return tool_class()
