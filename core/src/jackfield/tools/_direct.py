"""Call a tool without an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield import sync
from jackfield._fitting import check_argument
from jackfield.plugins._host import checked_host
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
    """Call a tool as `call_tool` does, from code in an event loop."""
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
    """Call a tool once, as an agent does, but without asking for approval.

    Args:
        entry: A tool, the name of an installed tool, a typed function, …, as for an agent.
        arguments: The arguments by name, or the JSON text that a model would write.
        context: The context of the call: files, `deps`, the workspace, resources. The default is an empty context;
            resources that the tool opens in it are closed after the call.
        host: The host that looks names up.

    Returns:
        The tool's result, unchanged.

    Raises:
        ToolArgumentError: The arguments do not fit the tool.
        ToolServiceError: The tool failed.
        ConfigError, PluginError: See `as_tool`.
    """
    return sync.run(acall_tool(entry, arguments, context=context, host=host))
