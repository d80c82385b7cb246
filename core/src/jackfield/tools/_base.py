"""The base class for tools, the context of a call, and call results."""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, cast

from typing_extensions import TypeVar

from jackfield._resources import RunResources
from jackfield.config import Config, Configured, Lang
from jackfield.errors import ToolArgumentError
from jackfield.events import RunEvent
from jackfield.messages import ContentItem, Message, read_arguments
from jackfield.plugins._protocol import Plugins
from jackfield.request import FunctionSchema
from jackfield.tools._safety import NO_SETTINGS, Safety, SafetySettings, Settable, claims_of, split_settings
from jackfield.tools._schema import ArgumentChecker, object_schema
from jackfield.tools._workspace import Workspace

if TYPE_CHECKING:
    from jackfield.descriptors import Texts

Deps = TypeVar("Deps", default=Any)

_log = logging.getLogger(__name__)

NO_ARGUMENTS: Mapping[str, object] = {"type": "object", "properties": {}, "required": []}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A call's result, plus metadata that is hidden from the model.

    Attributes:
        content: The result for the model: text, content items such as images, or a value to serialise as JSON.
        metadata: Details for people, such as the sandbox that ran the code. `ToolFinished` includes them.
    """

    content: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)


ToolOutput: TypeAlias = "str | list[ContentItem] | ToolResult | Any"


@dataclass(slots=True, eq=False)
class CallingRun:
    """The run that makes a call, for use by tools that run agents. `emit` receives the events of the nested runs."""

    emit: Callable[[RunEvent], None] = field(default=lambda _: None, kw_only=True)

    def of_call(self, call_id: str) -> CallingRun:  # noqa: ARG002 - for recorded runs
        """Return this run as the parent of one of its tool calls."""
        return self

    def surround_call(self, call_id: str, tool: str) -> AbstractContextManager[object]:  # noqa: ARG002 - as above
        """Return the context manager that the run's observers place around a call."""
        return nullcontext()

    def asker(self) -> Callable[..., Any] | None:
        """Return the function that answers questions during calls when there is no approval function, or None."""
        return None

    async def before_call(self) -> str:
        """Return the reason to give the model if the run must not make any more calls, otherwise ''.

        This method is called right before each tool call.
        """
        return ""


def _report_to_log(text: str) -> None:
    _log.debug("%s", text)


async def _deny(_: Mapping[str, object]) -> bool | Mapping[str, object]:
    return False


@dataclass(frozen=True, kw_only=True)  # with slots, Python 3.11 cannot make a `ToolContext[User](…)`
class ToolContext(Generic[Deps]):
    """The context of a call. In a `ToolContext[User]`, `deps` is a `User`.

    Attributes:
        run_id, call_id: The run's id and the call's id, or '' outside of a run.
        agent: The name of the agent that makes the call.
        messages: The conversation so far.
        files: Paths or URLs of files from the conversation and the agent. Trust each file only as far as its source.
        lang: The language of the conversation.
        workspace: The directory where tools may write files. Use `workspace` to resolve file names that come from a
            model.
        resources: A holder for resources that are closed when the run ends. `resources.editor` is the user's editor,
            which reads and writes files and runs commands, or None if no editor is connected.
        report: A function that reports the call's progress to people.
        ask: A function that asks for approval during the call. The user sees the function's argument instead of the
            call's arguments. The function returns False if no user can be asked. If `fills_forms` is True, a question
            may include a `form` (a JSON Schema), and the answer may be a dict of values.
        fills_forms: True if questions may include a `form`.
        deps: The run's `deps`, for the caller's own tools, or None if the caller passed none.
        run: The run that makes the call, or None outside of a run.
    """

    run_id: str = ""
    call_id: str = ""
    agent: str = ""
    messages: tuple[Message, ...] = ()
    files: tuple[str, ...] = ()
    lang: Lang = "en"
    workspace: Workspace = field(default_factory=Workspace)
    resources: RunResources = field(default_factory=RunResources)
    report: Callable[[str], None] = _report_to_log
    ask: Callable[[Mapping[str, object]], Awaitable[bool | Mapping[str, object]]] = _deny
    fills_forms: bool = False
    deps: Deps = cast(Any, None)  # noqa: RUF009 - a plain None
    run: CallingRun | None = None


class BaseTool(Configured, ABC):
    """Base class for tools. Subclasses set `name`, `description` and `parameters`, and define `call`.

    `call` may be an `async` method. A plain method runs in a worker thread. One instance serves several calls
    concurrently unless `concurrent` is False.

    Safety-relevant attributes (`needs_approval`, `effects`, `read_only`, `concurrent`, `timeout_s`, `file_access`,
    `idempotent`, `resumable`, `cacheable`) can be set in a descriptor, on the class, on the instance and in the
    settings. The strictest value applies, and `safety` returns it.

    Args:
        cfg, settings: The tool's settings; see `Configured`. Settings that the core handles (the names above and
            `approval`) are left out of `self.cfg` and `config_class`.

    Attributes:
        name: The name that the model uses: at most 64 letters, digits, `_` and `-`.
        description: The tool's purpose and when to use it, written for the model, as a string or a dict from language
            to string.
        parameters: JSON Schema (draft 2020-12) of the arguments, which must be an object. A list of
            `{"name", "type", "description", "required"}` dicts, as in Qwen-Agent, is also accepted.
        read_only: True if calls have no side effects.
        concurrent: True if a call may run concurrently with other calls in the same turn.
        timeout_s: Timeout for a call, in seconds. If None, the agent's default applies.
        needs_approval: True if a person must approve each call. Any value other than False counts as True.
        effects: The tool's effects: any of `network`, `files` and `processes`.
        file_access: True to receive the conversation's files in `ToolContext.files`.
        idempotent: True if repeating a call with the same `ToolContext.run_id` and `call_id` has no further effect. A
            call that failed or was interrupted by a crash can then be repeated.
        resumable: True if the tool records its own steps with the run. After an interruption, the same call continues
            where it stopped without repeating steps. `retried_calls` does not repeat a failed call. A resumed run asks
            before it repeats a call that is neither `idempotent`, `resumable` nor `read_only`.
        cacheable: True if the result may be reused for a while because it depends only on the arguments and settings,
            not on the caller or on files.
        params_as_text: True if `call` receives the arguments as JSON text, False if it receives a dict. If None, `call`
            receives text if `params` is annotated with plain `str`, otherwise a dict.
        raw_argument: The argument that receives the text when a model writes plain text instead of JSON. If '', such
            calls fail.
        schema_is_checked: True to skip the validation of `parameters`. Use this for cached tools that have already been
            validated, because validating 200 tools takes 130 ms.
        matches_patterns: True if the tool's own `parse_arguments` matches the patterns in `parameters`, which may then
            use any regular expression syntax. For tools created from functions, pydantic matches the patterns.
        origin: If the tool comes from a changing toolset, the toolset and the value of its `changes.version` when it
            returned the tool, otherwise None.
        host: The plugin host that resolves other components. If None, the default host is used.
    """

    name: str = ""
    schema_is_checked: bool = False
    matches_patterns: bool = False
    description: Texts = ""
    parameters: Mapping[str, Any] = NO_ARGUMENTS
    read_only: bool = False
    concurrent: bool = True
    timeout_s: float | None = None
    needs_approval: bool = False
    effects: frozenset[str] = frozenset()
    file_access: bool = False
    idempotent: bool = False
    resumable: bool = False
    cacheable: bool = False
    params_as_text: bool | None = None
    raw_argument: str = ""
    host: Plugins | None = None
    _checker: ArgumentChecker | None = None
    _converted: tuple[Any, Mapping[str, Any]] = ((), NO_ARGUMENTS)
    _settings: SafetySettings = NO_SETTINGS
    origin: tuple[Settable, int] | None = None

    def __init__(self, cfg: Config | Mapping[str, object] | None = None, **settings: Any) -> None:
        if isinstance(cfg, Config):
            super().__init__(cfg, **settings)
        else:
            self._settings, own = split_settings({**(cfg or {}), **settings}, name=self.name)
            super().__init__(own)

    def safety(self) -> Safety:
        """Return the safety rules for the tool's calls: the strictest values from its class, instance and settings.

        Raises:
            BrokenPluginError: An attribute has an invalid value.
        """
        return self._settings.apply(claims_of(self, name=self.name))

    @abstractmethod
    def call(
        self, params: str | Mapping[str, Any], *, context: ToolContext | None = None
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Run the tool and return its result.

        Args:
            params: The arguments. An agent passes a dict that matches `parameters`, or JSON text if `takes_text` is
                True. Other callers pass JSON text.
            context: The context of the call, or None outside of a run.

        Raises:
            ToolServiceError: The call failed. The model reads the error message.
        """

    def preview(self, arguments: Mapping[str, Any], *, workspace: Workspace) -> str:  # noqa: ARG002 - for overrides
        """Return a unified diff of the changes that a call would make to text files, or '' if there are none.

        The diff is shown to the person who approves the call. Overriding this method is optional. An override may
        block, but must have no side effects.

        Args:
            arguments: The call's validated arguments.
            workspace: The run's workspace.
        """
        return ""

    def with_origin(self, toolset: Settable, version: int) -> Self:
        """Return a copy that belongs to a changing toolset. Other agents may be using the original."""
        tool = copy.copy(self)
        tool.origin = (toolset, version)
        return tool

    def schema(self, lang: str = "en") -> FunctionSchema:
        """Return the tool's schema, as the model receives it."""
        from jackfield.descriptors import in_language  # an import of agents needs no plugin

        return {
            "name": self.name,
            "description": in_language(self.description, lang),
            "parameters": self._object_schema(),
        }

    @property
    def function(self) -> FunctionSchema:
        """The tool's schema in English, as the model receives it."""
        return self.schema()

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """Parse the arguments and validate them against `parameters`.

        Raises:
            ToolArgumentError: The arguments are not a JSON object, or do not match `parameters`. The message names the
                argument.
        """
        arguments = self._as_object(params)
        schema = self._object_schema()
        # A subclass may skip `__init__`, and an instance may get new parameters.
        if self._checker is None or self._checker.schema is not schema:
            self._checker = ArgumentChecker(self.name, schema)
        self._checker.check(arguments)
        return arguments

    def _verify_json_format_args(self, params: str | Mapping[str, object], strict_json: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """Call `parse_arguments`, under the name that Qwen-Agent uses."""
        return self.parse_arguments(params)

    @property
    def takes_text(self) -> bool:
        """True if `call` receives the arguments as JSON text."""
        if self.params_as_text is not None:
            return self.params_as_text is True
        return getattr(self.call, "__annotations__", {}).get("params") in ("str", str)

    def _object_schema(self) -> Mapping[str, object]:
        parameters: Any = self.parameters
        if isinstance(parameters, Mapping):
            return parameters
        if self._converted[0] is not parameters:
            self._converted = (parameters, object_schema(self.name, parameters))
        return self._converted[1]

    def _as_object(self, params: str | Mapping[str, object]) -> dict[str, object]:
        try:
            return read_arguments(self.name, params)
        except ToolArgumentError as error:
            if self.raw_argument and error.__cause__ is not None:
                return {self.raw_argument: params}
            raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class StandIn(BaseTool):
    """Proxy for another tool, such as a wrapped tool or an installed tool that has not been loaded yet."""

    @property
    @abstractmethod
    def is_loaded(self) -> bool:
        """True if the underlying tool is loaded. `safety` is complete only then."""

    @abstractmethod
    def load(self) -> BaseTool:
        """Load the underlying tool and return the tool to call, which may be the proxy itself."""

    @abstractmethod
    def claims(self) -> Safety:
        """Return the underlying tool's known safety attributes, ignoring this tool's settings."""

    def preview(self, arguments: Mapping[str, Any], *, workspace: Workspace) -> str:
        """Return the underlying tool's preview."""
        tool = self.load()
        return "" if tool is self else tool.preview(arguments, workspace=workspace)

    def safety(self) -> Safety:
        """Return the stricter values from the underlying tool's known attributes and this tool's settings."""
        return self._settings.apply(self.claims())
