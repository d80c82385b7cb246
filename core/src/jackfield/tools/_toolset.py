"""Sets of tools: one entry of an agent's `function_list` that contains several tools.

The tools of a set may be the same for every run; then the agent has them from the start. Others depend on the run (its
user, its files, its language), and are made when it starts.
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
"""A tool: the name or address of an installed one, a dict with `name` and settings, a tool or its class, or a typed
function. A set of tools is given in the same ways; `toolset` makes one from a function."""


class ToolChanges:
    """Counts the changes of a set's tools, from any thread.

    An agent copies a set that gets settings. The copies share this object, and must also share the object that holds
    the changing list.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._version

    def report(self) -> None:
        """Report a change. Runs that have the set ask for its tools again before their next turn."""
        with self._lock:
            self._version += 1


class Toolset(Configured, ABC):
    """The base class of sets of tools.

    Making one must be cheap and open nothing, because it happens when an agent is made. A set opens the resources of a
    run with `context.resources.get`; they are closed with the run.

    Args:
        cfg, settings: Its settings, see `Configured`.

    Attributes:
        name: Its name in errors.
        host: The host that looks other components up; None for the default one.
        effects: The effects of the tools that it makes for a run, of `network`, `files`, `processes`; None for any.
        origin: See `BaseTool`.
        changes: The counter of a set whose tools may change, made in `__init__`; None for other sets.
    """

    name: str = ""
    effects: Collection[str] | None = None
    host: Plugins | None = None
    changes: ToolChanges | None = None
    _settings: SafetySettings = NO_SETTINGS
    origin: tuple[Settable, int] | None = None

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        """Return the tools that every run has; None if they depend on the run. An agent asks once.

        They may be sets themselves, fixed or made for each run. If `changes` has counted a change since, runs ask
        `tools_of_run`, and its tools replace these.
        """
        return None

    @abstractmethod
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """Return the tools of one run, when it starts, and again before a turn if `changes` has counted a change.

        Later tools replace earlier ones.

        Args:
            context: The context, as a tool gets it: `deps`, `files`, `lang`, `messages`, the workspace, resources.

        Raises:
            JackfieldError: There are no tools for this run; the run ends with this error.
        """

    def processor_of_run(
        self,
        context: ToolContext[Any],  # noqa: ARG002 - for those that need it
        reported: Sequence[PluginEvent],  # noqa: ARG002
    ) -> Processor | None:
        """Return the processor around the model's requests in one run, for sets that change what the model sees.

        Sets that have no fixed tools are asked once, after `tools_of_run`.

        Args:
            context: As for `tools_of_run`.
            reported: The reports of plugins before the run was interrupted, if it is resumed; otherwise those of the
                last run of its session.
        """
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def toolset(
    function: Callable[[ToolContext[Any]], Sequence[ToolEntry] | Awaitable[Sequence[ToolEntry]]],
) -> Toolset:
    """Make a set of tools from a function that gets the context of a run, and returns a list of tools for it.

    It registers nothing: pass the set to an agent.
    """
    if not callable(function):
        raise ConfigError(f"@toolset belongs on a function that returns tools, not on {type(function).__name__}")
    return _FunctionToolset(function)


class _FunctionToolset(Toolset):
    """A set whose function makes the tools of each run."""

    def __init__(self, function: Callable[[ToolContext[Any]], Any]) -> None:
        super().__init__()
        self.name = function.__name__
        self._function = function

    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """Call the function; a plain one runs in a worker thread."""
        is_async = inspect.iscoroutinefunction(self._function)
        tools: Any = self._function(context) if is_async else await sync.in_worker(self._function, context)
        return cast("Sequence[ToolEntry]", await tools if inspect.isawaitable(tools) else tools)
