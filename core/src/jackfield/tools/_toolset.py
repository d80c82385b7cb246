"""Toolsets, which are single entries in an agent's `function_list` that provide several tools.

Fixed tools are the same for every run, so the agent has them from the start. Other tools depend on the run (its user,
files or language) and are created when the run starts.
"""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, Union, cast

from jackfield import sync
from jackfield.config import Configured
from jackfield.errors import ConfigError
from jackfield.events import PluginEvent
from jackfield.plugins._protocol import Plugins
from jackfield.processors import Processor
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._safety import NO_SETTINGS, SafetySettings, Settable

ToolEntry: TypeAlias = Union[
    str, Mapping[str, Any], BaseTool, type[BaseTool], "Toolset", type["Toolset"], Callable[..., Any]
]
"""A tool: the name or address of an installed tool, a dict of `name` and settings, a tool or its class, or a typed
function. Toolsets can be passed in the same forms; `toolset` creates one from a function."""


class ToolChanges:
    """Thread-safe counter of changes to a toolset's tools.

    Agents copy toolsets to apply settings. All copies share this counter, so they must also share the object that holds
    the changing list of tools.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0

    @property
    def version(self) -> int:
        """The number of changes reported so far."""
        return self._version

    def report(self) -> None:
        """Report a change. Runs that use this toolset query its tools again before their next turn."""
        with self._lock:
            self._version += 1


class Toolset(Configured, ABC):
    """Base class for toolsets.

    Toolsets are created together with their agent, so creating a toolset must be cheap and must not open resources. Use
    `context.resources.get` to open resources for a run. These resources are closed when the run ends.

    Args:
        cfg, settings: The toolset's settings; see `Configured`.

    Attributes:
        name: The toolset's name in error messages.
        host: The plugin host that resolves other components. If None, the default host is used.
        effects: The effects of the tools created for a run: any of `network`, `files` and `processes`. None means all
            effects.
        origin: See `BaseTool`.
        changes: If the toolset's tools may change, a counter of changes that `__init__` creates, otherwise None.
    """

    name: str = ""
    effects: Collection[str] | None = None
    host: Plugins | None = None
    changes: ToolChanges | None = None
    _settings: SafetySettings = NO_SETTINGS
    origin: tuple[Settable, int] | None = None

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        """Return the tools that every run has, or None if they depend on the run. Agents call this method once.

        Entries may themselves be toolsets, fixed or created for each run. After a change is reported to `changes`, runs
        call `tools_of_run` and replace these tools.
        """
        return None

    @abstractmethod
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """Return the tools of one run.

        This method is called when the run starts, and again before a turn if a change has been reported to `changes`.
        The new tools then replace the previous ones.

        Args:
            context: The run's context: `deps`, `files`, `lang`, `messages`, workspace and resources.

        Raises:
            JackfieldError: The tools are not available. The run ends with this error.
        """

    def processor_of_run(
        self,
        context: ToolContext[Any],  # noqa: ARG002 - for overrides
        reported: Sequence[PluginEvent],  # noqa: ARG002
    ) -> Processor | None:
        """Return a processor for a run's model requests, for toolsets that change what the model sees.

        This method is called once, after `tools_of_run`, and only for toolsets without fixed tools.

        Args:
            context: The run's context, as for `tools_of_run`.
            reported: Earlier events from plugins. If the run is resumed, these are the events before the interruption,
                otherwise the events of the session's last run.
        """
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def toolset(
    function: Callable[[ToolContext[Any]], Sequence[ToolEntry] | Awaitable[Sequence[ToolEntry]]],
) -> Toolset:
    """Create a toolset from a function that takes a run's context and returns the run's tools.

    To use the toolset, pass it to an agent.
    """
    if not callable(function):
        raise ConfigError(f"@toolset can only decorate a function that returns tools, got {type(function).__name__}")
    return _FunctionToolset(function)


class _FunctionToolset(Toolset):
    """Toolset that gets each run's tools from a function."""

    def __init__(self, function: Callable[[ToolContext[Any]], Any]) -> None:
        super().__init__()
        self.name = function.__name__
        self._function = function

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """Call the function. A plain function runs in a worker thread."""
        is_async = inspect.iscoroutinefunction(self._function)
        tools: Any = self._function(context) if is_async else await sync.in_worker(self._function, context)
        return cast("Sequence[ToolEntry]", await tools if inspect.isawaitable(tools) else tools)
