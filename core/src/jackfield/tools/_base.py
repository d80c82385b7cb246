"""A tool: what a model may call."""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeAlias, cast

from typing_extensions import TypeVar

from jackfield._resources import RunResources
from jackfield.config import Config, Configured, Lang
from jackfield.descriptors import Texts, in_language
from jackfield.errors import ToolArgumentError
from jackfield.events import RunEvent
from jackfield.messages import ContentItem, Message, read_arguments
from jackfield.plugins._host import PluginHost
from jackfield.request import FunctionSchema
from jackfield.tools._safety import NO_SETTINGS, Safety, SafetySettings, Settable, claims_of, split_settings
from jackfield.tools._schema import ArgumentChecker, object_schema
from jackfield.tools._workspace import Workspace

Deps = TypeVar("Deps", default=Any)

_log = logging.getLogger(__name__)

NO_ARGUMENTS: Mapping[str, object] = {"type": "object", "properties": {}, "required": []}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result that has more than the model reads.

    Attributes:
        content: For the model: a text, content items (images, say), or a value that becomes JSON.
        metadata: For people: which sandbox ran the code, how many hits there were. It is in `ToolFinished`.
    """

    content: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)


ToolOutput: TypeAlias = "str | list[ContentItem] | ToolResult | Any"


def _drop(_: RunEvent) -> None:
    """Outside of a turn, nobody reads it."""


@dataclass(slots=True, eq=False)
class CallingRun:
    """The run that makes a call, for tools that are agents themselves; `emit` takes the events of theirs."""

    emit: Callable[[RunEvent], None] = field(default=_drop, kw_only=True)

    def of_call(self, call_id: str) -> CallingRun:  # noqa: ARG002 - a run that records its agents needs it
        """Return the run at one of its tool calls."""
        return self

    async def before_call(self) -> str:
        """Confirm right before a call is made that the run may still act; '' if so, else the reason for the model."""
        return ""


def _report_to_log(text: str) -> None:
    _log.debug("%s", text)


async def _nobody_agrees(_: Mapping[str, object]) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(Generic[Deps]):
    """The context of a call, apart from its arguments. `ToolContext[User]` says that `deps` is a `User`.

    Attributes:
        run_id, call_id: Which call this is; '' outside of a run.
        agent: The agent that made the call.
        messages: The conversation so far.
        files: The files of the conversation and of the agent, as paths or URLs, as trustworthy as their source.
        lang: The language of the conversation.
        workspace: The folder where files may be written; use it for names that come from a model.
        resources: Resources opened here are closed when the run ends.
        report: Reports the progress of the call to people.
        ask: Asks for approval of something that comes up during the call, as before a call of a tool that needs it;
            the argument is shown in place of the call's arguments. False if nobody can be asked.
        deps: The `deps=` of the calling program, for its own tools; None if it passed nothing.
        run: The run that makes the call; None outside of one.
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
    ask: Callable[[Mapping[str, object]], Awaitable[bool]] = _nobody_agrees
    deps: Deps = cast(Any, None)  # noqa: RUF009 - a plain None
    run: CallingRun | None = None


class BaseTool(Configured, ABC):
    """The base class of tools: `name`, `description`, `parameters`, and `call`.

    `call` may be a plain function, which runs in a worker thread, or `async`. One instance serves many calls at once
    unless `concurrent` is False.

    Safety-relevant attributes (`needs_approval`, `effects`, `read_only`, `concurrent`, `timeout_s`, `file_access`,
    `idempotent`, `resumable`, `cacheable`) can be set in a descriptor, in the class, in the instance and in the
    settings. The strictest wins; `safety` has the result.

    Args:
        cfg, settings: Its settings, see `Configured`. Those that the core reads (the names above, and `approval`) are
            not in `self.cfg`, and not in its `config_class`.

    Attributes:
        name: What the model calls it; letters, digits, `_` and `-`, at most 64.
        description: What it does and when to use it, for the model; one text or one for each language.
        parameters: JSON Schema (draft 2020-12) of the arguments, an object. A list of
            `{"name", "type", "description", "required"}`, as in Qwen-Agent, works as well.
        read_only: Calling it changes nothing.
        concurrent: May run at the same time as other calls of the turn.
        timeout_s: How long one call may take; None for the agent's default.
        needs_approval: A person must agree to each call. Only False means that nobody must.
        effects: Its effects, of `network`, `files`, `processes`.
        file_access: Wants the files of the conversation in `ToolContext.files`; without it, there are none.
        idempotent: The same call made twice, with the same `ToolContext.run_id` and `call_id`, does no more than made
            once: one that failed, or that a crash interrupted, may be made again.
        resumable: The tool records its own steps with the run. After an interruption, the same call continues there and
            repeats no step. This says nothing about a call that has failed: `retried_calls` does not repeat it. A
            resumed run asks before it repeats a call that is neither `idempotent`, `resumable` nor `read_only`.
        cacheable: The result follows from the arguments and the settings, not from who asks or from files, and may be
            given again for a while.
        params_as_text: True: `call` gets the arguments as JSON text; False: as a dict; None: as text if its
            `params` are annotated with `str` and nothing else.
        raw_argument: The argument that gets the text if a model writes plain text instead of JSON; '' to refuse that.
        schema_is_checked: `parameters` were checked before, as those of tools that are kept between starts; making an
            agent with 200 tools would check them for 130 ms.
        matches_patterns: The tool's own `parse_arguments` matches the patterns in `parameters`, so they may be in the
            syntax of any engine. Tools made of functions leave them to pydantic.
        origin: The set that gave the tool and may change, with the version of its `changes` then; None for all others.
        host: Where to look up other components; None for the default one.
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
    host: PluginHost | None = None
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
        """The rules for its calls: the strictest of its class, its instance and its settings.

        Raises:
            BrokenPluginError: One of the attributes cannot be understood.
        """
        return self._settings.applied_to(claims_of(self, name=self.name))

    @abstractmethod
    def call(
        self, params: str | Mapping[str, Any], *, context: ToolContext | None = None
    ) -> ToolOutput | Awaitable[ToolOutput]:
        """Do the work.

        Args:
            params: The arguments: a dict that fits `parameters` when an agent calls, or JSON text of one if the tool
                `takes_text`; JSON text from other callers.
            context: The run; None when called outside of one.

        Raises:
            ToolServiceError: It failed; the text is for the model.
        """

    def given_by(self, toolset: Settable, version: int) -> Self:
        """Copy the tool as one of a set that may change; others may have the same tool without the set."""
        tool = copy.copy(self)
        tool.origin = (toolset, version)
        return tool

    def schema(self, lang: str = "en") -> FunctionSchema:
        """The tool as a model sees it."""
        return {
            "name": self.name,
            "description": in_language(self.description, lang),
            "parameters": self._object_schema(),
        }

    @property
    def function(self) -> FunctionSchema:
        """The tool as a model sees it, in English."""
        return self.schema()

    def parse_arguments(self, params: str | Mapping[str, object]) -> dict[str, Any]:
        """The arguments as a dict that fits `parameters`.

        Raises:
            ToolArgumentError: They are not a JSON object, or do not fit; the text names the argument.
        """
        arguments = self._as_object(params)
        schema = self._object_schema()
        # A class may skip `__init__`, and an instance may get new parameters.
        if self._checker is None or self._checker.schema is not schema:
            self._checker = ArgumentChecker(self.name, schema)
        self._checker.check(arguments)
        return arguments

    def _verify_json_format_args(self, params: str | Mapping[str, object], strict_json: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """As `parse_arguments`, by the name that tools written for Qwen-Agent know."""
        return self.parse_arguments(params)

    @property
    def takes_text(self) -> bool:
        """Whether `call` gets the arguments as JSON text."""
        if self.params_as_text is not None:
            return self.params_as_text is True
        return getattr(self.call, "__annotations__", {}).get("params") in ("str", str)

    def _object_schema(self) -> Mapping[str, object]:
        given: Any = self.parameters
        if isinstance(given, Mapping):
            return given
        if self._converted[0] is not given:
            self._converted = (given, object_schema(self.name, given))
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
    """A tool in the place of another one, which may not be loaded yet: of an installed tool, or around any."""

    @property
    @abstractmethod
    def is_loaded(self) -> bool:
        """Whether the other tool is there, so that `safety` knows all."""

    @abstractmethod
    def load(self) -> BaseTool:
        """What is called instead of this one, which may be this one."""

    @abstractmethod
    def claims(self) -> Safety:
        """What is known of the other tool, before the settings of this one."""

    def safety(self) -> Safety:
        """The stricter of what is known of the other tool, and the settings."""
        return self._settings.applied_to(self.claims())
