"""Tools without an agent, and sets of tools without a class: `call_tool` and `toolset` of `jackfield.tools`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from jackfield import sync
from jackfield.plugins import PluginHost, default_host
from jackfield.tools import ToolContext, ToolEntry, Toolset, as_tool, output_of


async def acall_tool(
    entry: ToolEntry,
    arguments: str | Mapping[str, Any] | None = None,
    *,
    context: ToolContext[Any] | None = None,
    host: PluginHost | None = None,
) -> Any:
    """The same as `call_tool`, for code in an event loop."""
    made = as_tool(entry, host or default_host())
    own: ToolContext[Any] = ToolContext()
    async with own.resources:
        checked = made.parse_arguments(arguments or {})
        return await output_of(made, checked, context or own)


def call_tool(
    entry: ToolEntry,
    arguments: str | Mapping[str, Any] | None = None,
    *,
    context: ToolContext[Any] | None = None,
    host: PluginHost | None = None,
) -> Any:
    """Call a tool once, as an agent does, but without asking for approval.

    Args:
        entry: As for an agent: a tool, the name of an installed one, a typed function, …
        arguments: By name, or as the JSON text that a model would write.
        context: The context that it gets: files, `deps`, the workspace, resources. Without one, it gets an empty
            context, and what it opens is closed when it has answered.
        host: Where names are looked up.

    Returns:
        The tool's result, unchanged.

    Raises:
        ToolArgumentError: The arguments do not fit.
        ToolServiceError: The tool failed.
        ConfigError, PluginError: See `as_tool`.
    """
    return sync.run(acall_tool(entry, arguments, context=context, host=host))


def toolset(
    function: Callable[[ToolContext[Any]], Sequence[ToolEntry] | Awaitable[Sequence[ToolEntry]]],
) -> Toolset:
    """Make a set of tools from a function that gets the context of a run, and returns a list of tools for it.

    It registers nothing: pass the set to an agent.
    """
    return _FunctionToolset(function)


class _FunctionToolset(Toolset):
    """A set that a function makes for each run; made by `toolset`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.name = function.__name__
        self._function = function

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """What the function gives; a plain one runs in a worker thread."""
        is_async = inspect.iscoroutinefunction(self._function)
        made: Any = self._function(context) if is_async else await sync.in_worker(self._function, context)
        return cast("Sequence[ToolEntry]", await made if inspect.isawaitable(made) else made)
