"""A set of tools: one entry of an agent's `function_list` that stands for several tools.

The tools of a set are the same for every run, and then the agent has them from the start; or they follow from the run
(its user, its files, its language), and are made when it starts.
"""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, Union, cast

from jackfield import sync
from jackfield.config import Configured
from jackfield.events import PluginEvent
from jackfield.plugins._host import PluginHost
from jackfield.processors import Processor
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._safety import NO_SETTINGS, SafetySettings, Settable

ToolEntry: TypeAlias = Union[
    str, Mapping[str, Any], BaseTool, type[BaseTool], "Toolset", type["Toolset"], Callable[..., Any]
]
"""A tool: the name or address of an installed one, a dict with `name` and settings, a tool or its class, or a typed
function. Or a set of tools, in the same ways; a function is one with `toolset`."""


class ToolChanges:
    """Counts the changes of a set's tools, from any thread.

    An agent copies a set that gets settings. The copies share this object; the set must keep its changing list in an
    object that copies share, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._version

    def report(self) -> None:
        """Report a change: runs that have the set ask it for its tools again before their next turn."""
        with self._lock:
            self._version += 1


class Toolset(Configured, ABC):
    """The base class of sets of tools.

    Making one must be cheap, and reach nothing: it happens when an agent is made. What a set opens for a run, it opens
    with `context.resources.get`, and it is closed with the run.

    Args:
        cfg, settings: Its settings, see `Configured`.

    Attributes:
        name: What it is called in errors.
        host: Where to look up other components; None for the default one.
        effects: What the tools that it makes for a run may do, of `network`, `files`, `processes`; None for anything.
        origin: As that of a tool, see `BaseTool`.
        changes: For a set whose tools may change, made in `__init__`; None for all others.
    """

    name: str = ""
    effects: Collection[str] | None = None
    host: PluginHost | None = None
    changes: ToolChanges | None = None
    _settings: SafetySettings = NO_SETTINGS
    origin: tuple[Settable, int] | None = None

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        """The tools, if every run has the same; None if `tools_of_run` must be asked. Asked once per agent.

        They may be sets themselves: some fixed, and some that are made for each run. If `changes` has counted a change
        since, runs ask `tools_of_run`, and its tools replace these.
        """
        return None

    @abstractmethod
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """The tools of one run, asked when it starts, and again before a turn if `changes` has counted a change.

        The tools of the second answer replace those of the first.

        Args:
            context: As a tool gets it: `deps`, `files`, `lang`, `messages`, the workspace, resources.

        Raises:
            JackfieldError: There are no tools for this run; the run ends with this error.
        """

    def processor_of_run(
        self,
        context: ToolContext[Any],  # noqa: ARG002 - for those that need it
        reported: Sequence[PluginEvent],  # noqa: ARG002
    ) -> Processor | None:
        """What acts around each question of one run to its model, for sets that change what the model sees.

        It is asked once, after `tools_of_run`, of sets that have no fixed tools.

        Args:
            context: As for `tools_of_run`.
            reported: What plugins have reported in the run before it was interrupted, if it goes on; else what they
                reported in the last run of its session.
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
