"""Toolsets: single entries of an agent's `function_list` that contain several tools.

Fixed tools are the same for every run, so the agent has them from the start. Other tools depend on the run (its user,
its files, its language), and are made when it starts.
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
"""A tool: the name or address of an installed tool, a dict with `name` and settings, a tool or its class, or a typed
function. Toolsets are passed in the same ways; `toolset` makes a toolset from a function."""


class ToolChanges:
    """Counts the changes of a toolset's tools, from any thread.

    An agent copies a toolset that gets settings. The copies share this object, and must also share the object that
    holds the changing list.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._version

    def report(self) -> None:
        """Report a change. Before their next turn, runs with this toolset ask for its tools again."""
        with self._lock:
            self._version += 1


class Toolset(Configured, ABC):
    """The base class of toolsets.

    Creating a toolset must be cheap and open nothing, because it happens when an agent is created. A toolset opens the
    resources of a run with `context.resources.get`; they are closed with the run.

    Args:
        cfg, settings: The toolset's settings; see `Configured`.

    Attributes:
        name: The toolset's name in errors.
        host: The host that looks other components up; None for the default host.
        effects: The effects of the tools that it makes for a run: any of `network`, `files`, `processes`. None for all.
        origin: See `BaseTool`.
        changes: The counter of a toolset whose tools may change, created in `__init__`; None for other toolsets.
    """

    name: str = ""
    effects: Collection[str] | None = None
    host: Plugins | None = None
    changes: ToolChanges | None = None
    _settings: SafetySettings = NO_SETTINGS
    origin: tuple[Settable, int] | None = None

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        """Return the tools that every run has; None if they depend on the run. An agent calls this once.

        Entries may be toolsets themselves, fixed or made for each run. If `changes` has counted a change since, runs
        call `tools_of_run`, whose tools replace these.
        """
        return None

    @abstractmethod
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """Return the tools of one run. Called when the run starts, and before a turn if `changes` has counted a change.

        Later tools replace earlier ones.

        Args:
            context: The context of a call: `deps`, `files`, `lang`, `messages`, the workspace, resources.

        Raises:
            JackfieldError: The tools are not available. The run ends with this error.
        """

    def processor_of_run(
        self,
        context: ToolContext[Any],  # noqa: ARG002 - for overrides
        reported: Sequence[PluginEvent],  # noqa: ARG002
    ) -> Processor | None:
        """Return the processor of the model's requests in one run, for toolsets that change what the model sees.

        Called once, after `tools_of_run`, for toolsets without fixed tools.

        Args:
            context: As for `tools_of_run`.
            reported: If the run is resumed, the reports of plugins before the interruption; otherwise the reports of
                the last run in the session.
        """
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def toolset(
    function: Callable[[ToolContext[Any]], Sequence[ToolEntry] | Awaitable[Sequence[ToolEntry]]],
) -> Toolset:
    """Make a toolset from a function that gets the context of a run and returns a list of tools for it.

    It registers nothing: pass the toolset to an agent.
    """
    if not callable(function):
        raise ConfigError(f"@toolset belongs on a function that returns tools, not on {type(function).__name__}")
    return _FunctionToolset(function)


class _FunctionToolset(Toolset):
    """A toolset whose function makes the tools of each run."""

    def __init__(self, function: Callable[[ToolContext[Any]], Any]) -> None:
        super().__init__()
        self.name = function.__name__
        self._function = function

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """Call the function; a plain one runs in a worker thread."""
        is_async = inspect.iscoroutinefunction(self._function)
        tools: Any = self._function(context) if is_async else await sync.in_worker(self._function, context)
        return cast("Sequence[ToolEntry]", await tools if inspect.isawaitable(tools) else tools)
