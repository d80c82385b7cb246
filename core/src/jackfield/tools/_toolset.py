"""A set of tools: one entry of an agent's `function_list` that stands for several tools.

The tools of a set are the same for every run, and then the agent has them from the start; or they follow from the run
(its user, its files, its language), and are made when it starts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, Union

from jackfield.config import Configured
from jackfield.events import PluginEvent
from jackfield.plugins._host import PluginHost
from jackfield.processors import Processor
from jackfield.tools._base import BaseTool, ToolContext
from jackfield.tools._safety import NO_SETTINGS, SafetySettings

ToolEntry: TypeAlias = Union[
    str, Mapping[str, Any], BaseTool, type[BaseTool], "Toolset", type["Toolset"], Callable[..., Any]
]
"""A tool: the name or address of an installed one, a dict with `name` and settings, a tool or its class, or a typed
function. Or a set of tools, in the same ways; a function is one with `toolset`."""


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
    """

    name: str = ""
    effects: Collection[str] | None = None
    host: PluginHost | None = None
    _settings: SafetySettings = NO_SETTINGS

    def fixed_tools(self) -> Sequence[ToolEntry] | None:
        """The tools, if every run has the same; None if `tools_of_run` must be asked. Asked once per agent.

        They may be sets themselves: some fixed, and some that are made for each run.
        """
        return None

    @abstractmethod
    async def tools_of_run(self, context: ToolContext[Any]) -> Sequence[ToolEntry]:
        """The tools of one run, asked when it starts, once.

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
