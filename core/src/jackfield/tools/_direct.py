"""Call a tool without an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield import sync
from jackfield._fitting import check_argument
from jackfield.plugins._protocol import Plugins
from jackfield.tools._base import ToolContext
from jackfield.tools._entries import as_tool
from jackfield.tools._foreign import run_tool
from jackfield.tools._toolset import ToolEntry


async def acall_tool(
    entry: ToolEntry,
    arguments: str | Mapping[str, Any] | None = None,
    *,
    context: ToolContext[Any] | None = None,
    host: Plugins | None = None,
) -> Any:
    """Call a tool from async code; see `call_tool`."""
    from jackfield.plugins._host import checked_host  # an import of agents needs no plugin

    check_argument("context", context, ToolContext | None, "a ToolContext")
    tool = as_tool(entry, checked_host(host))
    own: ToolContext[Any] = ToolContext()
    async with own.resources:
        checked = tool.parse_arguments(arguments or {})
        return await run_tool(tool, checked, context or own)


def call_tool(
    entry: ToolEntry,
    arguments: str | Mapping[str, Any] | None = None,
    *,
    context: ToolContext[Any] | None = None,
    host: Plugins | None = None,
) -> Any:
    """Call a tool once as an agent would, but without asking for approval.

    Args:
        entry: The tool, in any form that an agent accepts, such as an installed tool's name or a typed function.
        arguments: A mapping from names to arguments, or JSON text as a model would write it.
        context: The context of the call, with files, `deps`, workspace and resources. If None, an empty context is
            used, and its resources are closed after the call.
        host: The plugin host that resolves names.

    Returns:
        The tool's result, unchanged.

    Raises:
        ToolArgumentError: The arguments do not match the tool's parameters.
        ToolServiceError: The tool failed.
        ConfigError, PluginError: The tool cannot be resolved; see `as_tool`.
    """
    return sync.run(acall_tool(entry, arguments, context=context, host=host))
