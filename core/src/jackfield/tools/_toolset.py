"""Toolsets, which are single entries in an agent's `function_list` that provide several tools.

Fixed tools are the same for every run, so the agent has them from the start. Other tools depend on the run (its user,
files or language) and are made when it starts.
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

    An agent copies a toolset that gets settings. All copies share this counter, so they must also share the object that
    holds the changing list.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0

    @property
    def version(self) -> int:
        """The number of changes reported so far."""
        return self._version

    def report(self) -> None:
        """Report a change. Runs with this toolset ask for its tools again before their next turn."""
        with self._lock:
            self._version += 1


class Toolset(Configured, ABC):
    """Base class of toolsets.

    Toolsets are created together with their agent, so creating one must be cheap and open nothing. Open resources for a
    run with `context.resources.get`, which closes them with the run.

    Args:
        cfg, settings: The toolset's settings; see `Configured`.

    Attributes:
        name: The toolset's name in error messages.
        host: The plugin host that resolves other components. If None, the default host is used.
        effects: The effects of the tools made for a run: any of `network`, `files`, `processes`. None means all.
        origin: See `BaseTool`.
        changes: A counter for toolsets whose tools may change, created in `__init__`. None for other toolsets.
    """

    name: str = ""
    effects: Collection[str] | None = None
    host: Plugins | None = None
    changes: ToolChanges | None = None
    _settings: SafetySettings = NO_SETTINGS
    origin: tuple[Settable, int] | None = None

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        """Return the tools that every run has, or None if they depend on the run. An agent calls this method once.

        Entries may themselves be toolsets, fixed or made for each run. If `changes` has counted a change since then,
        runs call `tools_of_run`, whose tools replace these.
        """
        return None

    @abstractmethod
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """Return the tools of one run.

        The method is called when the run starts, and again before a turn if `changes` has counted a change. The new
        tools then replace the previous ones.

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
        """Return a processor for the model requests of one run, for toolsets that change what the model sees.

        The method is called once, after `tools_of_run`, and only for toolsets without fixed tools.

        Args:
            context: The run's context, as for `tools_of_run`.
            reported: Earlier reports of plugins: those before the interruption if the run is resumed, otherwise those
                of the session's last run.
        """
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def toolset(
    function: Callable[[ToolContext[Any]], Sequence[ToolEntry] | Awaitable[Sequence[ToolEntry]]],
) -> Toolset:
    """Create a toolset from a function that takes a run's context and returns the run's tools.

    Nothing is registered: pass the toolset to an agent.
    """
    if not callable(function):
        raise ConfigError(f"@toolset belongs on a function that returns tools, not on {type(function).__name__}")
    return _FunctionToolset(function)


class _FunctionToolset(Toolset):
    """Toolset that gets each run's tools from a function."""

    def __init__(self, function: Callable[[ToolContext[Any]], Any]) -> None:
        super().__init__()
        self.name = function.__name__
        self._function = function

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """Call the function, in a worker thread unless it is async."""
        is_async = inspect.iscoroutinefunction(self._function)
        tools: Any = self._function(context) if is_async else await sync.in_worker(self._function, context)
        return cast("Sequence[ToolEntry]", await tools if inspect.isawaitable(tools) else tools)
