"""The base class for all agents."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypedDict, Unpack, cast, get_args, get_type_hints
from weakref import WeakKeyDictionary

from jackfield import sync
from jackfield._fitting import check_argument, check_count, check_seconds, fits
from jackfield._frames import ForgetLocals
from jackfield._resources import RunResources
from jackfield._secretsources import StatesSecrets
from jackfield.agents import _asking as asking
from jackfield.agents._asking import KnownOptions, RunOptions
from jackfield.agents._files import attach_files, check_files, files_in, save_attached
from jackfield.agents._loop import Loop
from jackfield.agents._missing import NameAllMissing, complete_error
from jackfield.agents._qwen import QwenMethods
from jackfield.config import Adjustable, GenerateConfig, Lang, Limits, LLMConfig, checked_list
from jackfield.errors import BrokenPluginError, ConfigError
from jackfield.events import AgentEvent, HandedOff, ModelEvent, RunEvent, RunFailed, RunFinished, RunStarted
from jackfield.messages import (
    Message,
    Messages,
    as_messages,
    refuse_empty_question,
    want_dicts,
    with_system_text,
    without_system_text,
)
from jackfield.models._base import BaseChatModel
from jackfield.models._factory import get_chat_model
from jackfield.plugins._protocol import Plugins
from jackfield.request import FunctionSchema, GenerateOptions, language_of
from jackfield.results import Output, Way
from jackfield.runs._calls import open_calls
from jackfield.runs._observers import Observer, Observers, SurroundedEvents, load_observers
from jackfield.runs._run import AgentLike, Event, Handoff, ParentRun, Recorder, Run, RunConfig, new_run_id
from jackfield.runs._view import Response, RunView
from jackfield.streams import CancelToken, closing
from jackfield.suggestions import suggest
from jackfield.tools._base import BaseTool, Deps, ToolContext
from jackfield.tools._entries import name_of_entry, tools_of
from jackfield.tools._executor import DEFAULT_TIMEOUT_S, ToolExecutor
from jackfield.tools._rules import NO_RULES, Approval, Approve, Ask, Decision, Denial, read_approval
from jackfield.tools._toolbox import Toolbox, add_tool, sources_of
from jackfield.tools._toolset import ToolEntry, Toolset
from jackfield.tools._workspace import Workspace

if TYPE_CHECKING:
    from jackfield.answers import Form
    from jackfield.stores import Store

LEFT_TEXT = "the run was abandoned before it ended"


class AgentOptions(TypedDict, total=False):
    """Keyword-only options for `Agent`, for use by subclasses that forward them."""

    suggestions: Sequence[str]
    adjustable: Sequence[Adjustable]
    models: Sequence[str]
    files: Sequence[str] | None
    limits: Limits | Mapping[str, object] | None
    approve: Approval | None
    forbid: Collection[str]
    extra_generate_cfg: GenerateOptions
    tool_timeout_s: float
    workspace: Workspace | str | None
    observers: Sequence[str | Observer]
    handoffs: Sequence[AgentLike | Handoff]
    store: str | Mapping[str, object] | Store | None
    host: Plugins | None


class InitSignature:
    """Descriptor that makes `inspect.signature` and `help` show the signature of a class's `__init__`."""

    def __get__(self, _: object, owner: type[object]) -> inspect.Signature:
        signature = inspect.signature(owner.__init__)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


class Agent(QwenMethods, StatesSecrets, Generic[Deps]):
    """Base class for all agent kinds. Subclasses define `events`, or `_run` as in Qwen-Agent.

    Agents do not store conversations. Each run receives its messages as an argument, so one agent can serve many runs
    concurrently.

    With `Agent[User]`, type checkers require the `deps` of every run to be a `User`.

    Args:
        function_list: The agent's tools. Each entry is the name or address of an installed tool, a dict with `name` and
            settings, a tool or its class, a typed function, or a toolset in any of these forms.
        llm: The agent's model: `"backend:model"`, a configuration, or a model object.
        system_message: The agent's system message, which precedes any system message from the caller.
        name, description: The agent's name and purpose, for people and for other agents.
        suggestions: Opening questions to suggest on the web page.
        adjustable: Model options that users may change on the web page: `temperature`, `top_p`, `max_tokens`, `seed`.
        models: Other models that users may choose on the web page, as `backend:model`.
        files: Paths of files to send in full with the first question. Agent kinds that read files themselves, such as
            `assistant`, search the files instead.
        limits: Limits that apply to each run.
        approve: A function that approves or denies each call that needs approval, a rule that selects those calls, or
            both: `{"ask": "read_only", "by": function}`. The function receives the exact call that will be made.
            Returning True allows the call. Returning False denies the call. Raising an exception also denies the call,
            with the exception's text as the reason. Any other value ends the run with an error. Without a function, the
            run pauses. The rules are `"ask"` (all calls), `"read_only"` (all calls except those of read-only tools) and
            `{"allow": ["search_*"]}` (all calls except those of matching tools). Without a rule, each tool determines
            whether its calls need approval.
        forbid: Effects (`network`, `files`, `processes`) that the agent's tools must not have. Calls to tools with
            these effects are denied. The model, processors, observers, the store and searches of `files` are not
            restricted.
        extra_generate_cfg: Model options that override the model's own.
        tool_timeout_s: Default timeout for tools that do not set their own, in seconds.
        workspace: The directory where the tools write files.
        observers: Observers, or the names of installed observers, to notify of every event in addition to the enabled
            observers. Subagents notify their own observers.
        handoffs: Agents to which the model can hand the conversation over.
        store: The store that records runs so that they can be resumed: a store, the name of an installed store, or a
            dict with `name` and settings. If None, nothing is recorded.
        host: The plugin host that resolves names.

    Raises:
        ConfigError: Two tools have the same name, an entry is not a tool, or the agent lists itself as a hand-off.
        PluginError: A tool or the model is not installed, or cannot be described.
    """

    supports_handoff: ClassVar[bool] = False
    """True if agents of this kind can have `handoffs`, which requires a model that calls tools, as in `FnCallAgent`."""

    run_options: ClassVar[type] = RunOptions
    """The options for runs of this kind and their types: `RunOptions`, or a `TypedDict` that extends it. Parameters of
    `_run` are added."""

    resumable: bool = False
    """True if interrupted runs can be resumed, because `events` continues after `Run.start`, as `Loop` does. A subclass
    that overrides `events` must set this again."""

    answers_by_tool: bool = False
    """True if a call of the output tool can be the answer, because `events` runs one `Loop` with the agent's model. A
    subclass that overrides `events` must set this again."""

    passes_events: ClassVar[bool] = False
    """True if `events` forwards all events of subagents unchanged and counts none of them, as `Loop` does. These events
    then reach the caller directly. A subclass that overrides `events` must set this again."""

    reads_files: ClassVar[bool] = False
    """True if agents of this kind read `ToolContext.files` themselves, like `assistant`, which searches them. Their
    models receive only the names of attached files. Models of other kinds receive the content."""

    kind: str = ""
    """The kind passed to `create_agent`, or '' if the class was instantiated directly."""

    if not TYPE_CHECKING:  # `Agent[User]` is for type checkers only

        def __class_getitem__(cls, _deps: object) -> type[Agent]:
            return cls

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Only the class that wrote `events` can make claims about it.
        defining = next(base for base in cls.__mro__ if "events" in vars(base))
        cls.resumable = vars(defining).get("resumable") is True
        cls.answers_by_tool = vars(defining).get("answers_by_tool") is True
        cls.passes_events = vars(defining).get("passes_events") is True

    __signature__ = InitSignature()  # `__new__` would hide the signature

    def __new__(cls, *args: Any, **options: Any) -> Self:  # noqa: ARG004 - `__init__` reads them
        check_options(cls, options)
        return super().__new__(cls)

    def __init__(
        self,
        function_list: Iterable[ToolEntry] | None = None,
        llm: str | Mapping[str, object] | LLMConfig | BaseChatModel | None = None,
        system_message: str | None = "",
        name: str | None = None,
        description: str | None = None,
        *,
        suggestions: Sequence[str] = (),
        adjustable: Sequence[Adjustable] = (),
        models: Sequence[str] = (),
        files: Sequence[str] | None = None,
        limits: Limits | Mapping[str, object] | None = None,
        approve: Approval | None = None,
        forbid: Collection[str] = (),
        extra_generate_cfg: GenerateOptions = None,
        tool_timeout_s: float = DEFAULT_TIMEOUT_S,
        workspace: Workspace | str | None = None,
        observers: Sequence[str | Observer] = (),
        handoffs: Sequence[AgentLike | Handoff] = (),
        store: str | Mapping[str, object] | Store | None = None,
        host: Plugins | None = None,
    ) -> None:
        from jackfield.plugins._host import checked_host  # an import of agents needs no plugin

        self._check_kind()
        self.host = checked_host(host)
        parts = {
            "llm": llm, "function_list": function_list, "observers": observers, "store": store, "handoffs": handoffs,
            "files": () if self.reads_files else files,
        }  # fmt: skip
        with ForgetLocals(), NameAllMissing("fncall", parts, self.host):  # arguments may include an API key
            self.llm = None if llm is None else get_chat_model(llm, host=self.host)
            _check_texts(system_message=system_message, name=name, description=description)
            self.system_message = system_message or ""
            self.name = name
            self.description = description or ""
            self.suggestions = _read_suggestions(suggestions)
            self.adjustable = _read_adjustable(adjustable)
            self.models = _read_models(models, has_model=llm is not None)
            self.files = _read_paths(files)
            self.limits = Limits.parse(limits, what="limits")
            rules, self.approve = read_approval(approve, forbid)
            self.extra_generate_cfg = GenerateConfig.parse(extra_generate_cfg, what="extra_generate_cfg")
            check_argument("workspace", workspace, Workspace | str | PathLike | None, "a folder or a Workspace")
            self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
            self.observers = load_observers(checked_list(observers, "observers", "names"), self.host)
            self.store: Store | None = None
            if store is not None:
                from jackfield.stores import load_store

                self.store = load_store(store, self.host)
            self.function_map: dict[str, BaseTool] = {}
            self.toolsets: list[Toolset] = []  # only toolsets that make their tools for each run
            self.handoffs: tuple[Handoff, ...] = ()
            entries = [*checked_list(() if function_list is None else function_list, "function_list", "tools")]
            if handoffs != ():
                from jackfield.agents._handoffs import check_handoffs, transfer_tools

                self.handoffs = check_handoffs(handoffs, self)
                entries += transfer_tools(self.handoffs)
            for entry in entries:
                self._init_tool(entry)
            self._check_parts()
            self._sources = sources_of(self.function_map.values())
        check_seconds("tool_timeout_s", tool_timeout_s)
        self.executor = ToolExecutor(self.function_map, timeout_s=tool_timeout_s, approve=self.approve, rules=rules)
        self._schemas: dict[str, tuple[FunctionSchema, ...]] = {}

    def _check_kind(self) -> None:
        if type(self).events is Agent.events and type(self)._run is Agent._run:
            raise TypeError(f"{type(self).__name__} must define `events` or `_run`")

    def _check_parts(self) -> None:
        """Raise ConfigError if this kind of agent does not support an option."""
        if self.handoffs and not self.supports_handoff:
            raise ConfigError(f"{type(self).__name__} does not support handoffs: omit `handoffs`")
        if self.toolsets and type(self)._run is not Agent._run:
            raise ConfigError(
                f"{type(self).__name__} defines `_run`, so it cannot use toolset {self.toolsets[0].name!r}, which "
                "creates tools for each run"
            )

    # --- for subclasses to override ---

    def events(self, run: Run) -> AsyncIterator[Event]:
        """Yield the events of a run that follow `RunStarted`, ending with `RunFinished`."""
        return self._events_of_lists(run)

    # --- running ---

    async def astream(
        self,
        messages: Messages,
        *,
        lang: Lang | None = None,
        cancel: CancelToken | None = None,
        resources: RunResources | None = None,
        resume: bool | Mapping[str, Decision] = False,
        approve: Approve | None = None,
        ask: Ask | None = None,
        deps: Deps | None = None,
        config: RunConfig = None,
        output: Output[Any] | Form[Any] = None,
        way: Way | None = None,
        attempts: int = 3,
        parent: ParentRun | None = None,
        session: str = "",
        run_id: str | None = None,
        **options: Any,
    ) -> AsyncIterator[RunEvent]:
        """Run the agent and yield each event with its run id, number, agent and depth. For plain events, use `stream`.

        Args:
            messages: A question, or the conversation, oldest message first. If the conversation ends with pending
                calls, for example because an earlier run paused, the run pauses again unless `resume` is set.
            lang: The language for text that the agent adds. If None, the language is detected from the messages.
            cancel: A token to stop the run from another task or thread. The run then ends with `cancelled` and a valid
                history.
            resources: A holder for tool resources that should outlive the run. The caller must close it.
            resume: True to run the pending calls at the end of the conversation. Calls that need approval still require
                approval. To approve or deny calls, pass a mapping from call id to True, False or `Denial(reason)`.
            approve: A function that replaces the agent's own `approve` for this run.
            ask: A function that answers questions raised during calls (`ToolContext.ask`) if there is no `approve`. The
                function returns a decision, or values for the question's form. Calls that need approval still pause the
                run.
            deps: A value for tools, available as `ToolContext.deps`, such as a connection or the current user.
            config: Model options for this run, such as `{"temperature": 0}`, or a function that returns the options for
                each turn. Run options override `extra_generate_cfg` and also apply to agents that take over the run,
                but not to agents that run as tools.
            output: The output type: a pydantic model, any other type that pydantic can validate, or a JSON Schema.
                Answers that do not match are returned to the model with the validation errors.
            way: The strategy for making the model follow `output`; see `BaseChatModel.parse`. Defaults to the strictest
                strategy that the model supports. `RunResult.way` reports the strategy used.
            attempts: The maximum number of attempts to get an answer that matches `output`.
            parent: The parent run, which waits for this one. The parent's limits apply to both runs; see `run_below`.
            session: The run's conversation in the agent's store.
            run_id: The id of a recorded run, which resumes where its record ends. Leave `messages` empty, and pass
                decisions about pending calls as `resume`.
            options: Additional options that the agent kind declares in `run_options`.

        Raises:
            ConfigError: The agent kind does not support an option, its value or `way`, an option in `config` is
                unknown, or `output` is neither a type nor a JSON Schema.
            InvalidAnswerError: No answer matched `output`.
            StoreError: The run cannot be recorded, has no record to resume from, or is locked by another process.
            JackfieldError: The run failed. The last event was `RunFailed`.
        """
        self._check_options(options)
        _check_run(
            cancel=cancel,
            resources=resources,
            resume=resume,
            approve=approve,
            ask=ask,
            attempts=attempts,
            session=session,
            run_id=run_id,
        )
        if deps is None:
            self._refuse_missing_deps()
        events_of = self._events_of(output, way=way, attempts=attempts)
        async with RunResources() if resources is None else nullcontext(resources) as opened:
            recorder = self._recorder_of(run_id, parent)
            asked = _read_messages(messages, is_question=parent is None)
            history = with_system_text(asked, self.system_message, first=True)
            history = history if run_id else await self._with_files(history)
            recorded = None if recorder is None else await recorder.load(run_id, history)
            if recorded is not None:
                history = recorded.messages
                asked = without_system_text(history, self.system_message)
            await self._save_attached(history, opened)
            seconds = self.limits.seconds
            run = self._new_run(
                history,
                lang or language_of(history),
                resources=opened,
                run_id=run_id,
                config=config,
                # The caller's language wins. A processor may correct a detected language.
                config_lang=lang,
                deps=deps,
                asked=asked,
                approve=approve,
                ask=ask,
                rules=NO_RULES if parent is None else parent.run.rules_below,
                resume=resume is not False,
                answers=resume if isinstance(resume, Mapping) else {},
                session=session,
                options=options,
                parent=parent,
                cancel=cancel,
                ends_at=None if seconds is None else asyncio.get_running_loop().time() + seconds,
                passes_events=output is None and self.passes_events and not self.handoffs,
                observers=self.observers,
            )
            if recorded is None:
                _check_answers(run)
            else:  # the store knows all calls of the run, and checks the decisions itself
                run = recorded.resume(run)
                if run.later_parts:  # their events are counted as they arrive
                    run = replace(run, passes_events=False)
            self.observers.prepare(self, run.id, run.trace)
            places = _Places(run, self._label, self.observers)
            try:
                yield places.of(RunStarted(run.messages))
                steps = recorder.record(events_of, run, recorded) if recorder else events_of(run)
                places.surrounded = self.observers.surround_events(steps, run.id, run.session)
                async with closing(places.surrounded or steps) as events:
                    async for event in events:
                        # Events of subagents already have a place and their own observers.
                        yield event if isinstance(event, RunEvent) else places.of(event)
                places.check_end(type(self).__name__)
            except Exception as error:  # noqa: BLE001 - raised again
                complete = complete_error(error, self, kind=self.kind, files=self.files)
                yield places.of(RunFailed(str(complete), type(complete).__name__))
                raise complete  # noqa: B904 - with the error as its cause, or the error itself
            except BaseException as error:
                # The run was cancelled, or its reader left. Observers must still release the run.
                if not isinstance(places.last, RunFinished):
                    places.of(RunFailed(LEFT_TEXT, type(error).__name__))
                raise
            finally:
                if parent is not None:
                    parent.settle(run)

    def _refuse_missing_deps(self) -> None:
        for agent, name, wanted in self._needed_deps:
            raise ConfigError(
                f"agent {agent!r} needs deps: its tool {name!r} takes a ToolContext[{wanted}]. Pass deps= to the run, "
                f"or annotate ToolContext[{wanted} | None] if the tool does not require deps"
            )

    @cached_property
    def _needed_deps(self) -> list[tuple[str, str, str]]:
        """Return (agent, tool, type) for each tool that needs `deps`, including the tools of reachable agents."""
        from jackfield.agents._subagents import reachable_agents
        from jackfield.tools._deps import needed_deps

        return [
            (agent.name or type(agent).__name__, name, wanted)
            for agent in reachable_agents(self)
            for name, wanted in needed_deps(getattr(agent, "function_map", {}).values()).items()
        ]

    def _events_of(
        self, output: Output[Any] | Form[Any], *, way: Way | None, attempts: int
    ) -> Callable[[Run], AsyncIterator[Event]]:
        """Return a function that yields a run's events. With `output`, the run ends with validated data."""
        if output is None:
            if way is not None:
                raise ConfigError(f"way={way!r} has no effect without output=: pass output= as well, or omit way")
            return self.events
        from jackfield.agents._structured import choose_way, end_in_data
        from jackfield.answers import form_of

        return partial(end_in_data, self, form_of(output), way=choose_way(self, way), attempts=attempts)

    async def _with_files(self, history: tuple[Message, ...]) -> tuple[Message, ...]:
        """Check that all files exist, and attach the agent's files unless the agent kind reads them itself."""
        if self.files or any(not isinstance(message.content, str) for message in history):
            await sync.in_worker(partial(check_files, self.files, history, agent=self._label))
        return history if self.reads_files else attach_files(history, self.files)

    async def _save_attached(self, history: tuple[Message, ...], resources: RunResources) -> None:
        """Save files embedded in the user's messages if a reachable agent has tools or reads files itself."""
        if self._has_readers and any(not isinstance(message.content, str) for message in history):
            await save_attached(history, resources)

    @cached_property
    def _has_readers(self) -> bool:
        from jackfield.agents._subagents import reachable_agents

        agents = reachable_agents(self)
        return any(
            getattr(agent, name, None) for agent in agents for name in ("reads_files", "function_map", "toolsets")
        )

    def _check_options(self, options: Mapping[str, object]) -> None:
        """Raise ConfigError if runs of this agent kind do not support an option or its value."""
        if not options:
            return
        self._check_config(cast(RunConfig, options.get("config")))
        known = {*self.run_options.__annotations__}
        if type(self)._run is not Agent._run:
            known |= {*self._options_of_lists(options)}
        for name in sorted(options.keys() - known - _INTERNAL_OPTIONS):
            hint = suggest(name, known | {"history", "output"})
            raise ConfigError(f"runs of agent {self._label!r} have no option {name!r}{hint}")
        own = options.keys() & self.run_options.__annotations__.keys() - RunOptions.__annotations__.keys()
        hints = get_type_hints(self.run_options) if own else {}
        for name in sorted(own):
            if not fits(options[name], hints[name]):
                wanted = getattr(hints[name], "__name__", hints[name])
                got = type(options[name]).__name__
                raise ConfigError(f"run option {name!r} of agent {self._label!r} must be {wanted}, got {got}")

    def _check_config(self, config: RunConfig) -> RunConfig:
        if config is None:
            return None
        if not callable(config):
            return GenerateConfig.parse(config, what="config")
        if type(self)._run is not Agent._run:
            raise ConfigError(f"{type(self).__name__} defines `_run`, so `config` cannot be a callable: pass a dict")
        return config

    async def arun(self, messages: Messages, **options: Unpack[KnownOptions[Deps]]) -> Response:
        """Run the agent from async code and return the complete response.

        If the messages are dicts, the response consists of dicts. Options are the same as for `astream`.
        `Response.stop_reason` says why the run ended.
        """
        finished: RunFinished | None = None
        async for placed in self.astream(messages, **options):
            if isinstance(placed.event, RunFinished):  # the last `RunFinished` belongs to this run
                finished = placed.event
        return Response.at_end(cast(RunFinished, finished), dicts=want_dicts(messages))

    def run(self, messages: Messages, **options: Unpack[KnownOptions[Deps]]) -> sync.Stream[Response]:
        """Run the agent and stream the growing response. Each item contains the entire response so far.

        Items are dicts if the messages are dicts, and the last one has a `stop_reason`. Options are the same as for
        `astream`. A consumer that is slower than the run receives fewer, longer items. Leaving the loop early
        cancels the run. To also wait until the run has closed its resources, call `close` or use a `with` block.
        """
        self._check_options(options)  # fail now, not when the first item is requested
        view = RunView(self.name)
        dicts = want_dicts(messages)

        def lists(batches: Iterator[list[RunEvent]]) -> Iterator[Response]:
            for batch in batches:
                changed = [view.feed(event) for event in batch]
                if any(changed):
                    yield view.response(dicts=dicts)

        return sync.stream(self.astream(messages, **options), lists)

    def run_nonstream(self, messages: Messages, **options: Unpack[KnownOptions[Deps]]) -> Response:
        """Run the agent from synchronous code and return the complete response; see `arun`."""
        return sync.run(self.arun(messages, **options))

    # Functions that wrap `astream`, bound as methods.
    stream, aask, ask = asking.stream, asking.aask, asking.ask
    aresume, resume = asking.aresume, asking.resume

    def as_tool(
        self, *, name: str | None = None, description: str | None = None, timeout_s: float | None = None
    ) -> BaseTool:
        """Return the agent as a tool for another agent. The tool's only input is the text of the request.

        The agent's events appear in the calling agent's run, one level deeper. The agent's usage counts against the
        limits of both agents, except for the limit on turns. The calling agent's `approve` function approves or denies
        the agent's calls. Without `approve`, calls that need approval pause the entire run if it is recorded.

        Args:
            name, description: The tool's name and description. Default to the agent's own.
            timeout_s: Timeout for a call, in seconds. Defaults to the calling agent's `tool_timeout_s`.

        Raises:
            ConfigError: The agent's name or description is missing, or is not valid for a tool.
        """
        from jackfield.agents._subagents import AgentTool

        return AgentTool(self, name=name, description=description, timeout_s=timeout_s)

    def web(
        self,
        *,
        address: str = "127.0.0.1",
        port: int = 8000,
        store: str | None = None,
        token_file: str | PathLike[str] | None = None,
        open_browser: bool = True,
    ) -> None:
        """Serve a web page for chatting with the agent.

        Stop the server with Ctrl-C, or by interrupting the notebook cell.

        Args:
            address: The address to listen on. An address that other machines can reach requires a `token_file`.
            port: The port to listen on. 0 picks a free one.
            store: The name of the store for conversations, such as `"sqlite"`. If None, conversations are kept in
                memory.
            token_file: A file with one access token per line, optionally followed by its owner's name.
            open_browser: True to open the page in a browser if a desktop is available.

        Raises:
            ConfigError: An argument is not valid, or the server cannot listen on the address.
            PluginError: `jackfield-web` is not installed.
        """
        check_argument("address", address, str, "a host address such as 127.0.0.1")
        check_argument("port", port, int, "a number from 0 to 65535")
        check_argument("store", store, str | None, "the name of a store")
        check_argument("token_file", token_file, str | PathLike | None, "a path")
        check_argument("open_browser", open_browser, bool, "True or False")
        if not 0 <= port <= 65535:
            raise ConfigError(f"port must be between 0 and 65535, got {port}")
        words = [f"--host={address}", f"--port={port}"]
        words += [] if store is None else [f"--store={store}"]
        words += [] if token_file is None else [f"--token-file={os.fspath(token_file)}"]
        words += [] if open_browser else ["--no-browser"]
        run = self.host.load_row(self.host.find("command", "web"))
        run(words, agents={self._label: self})

    # --- parts ---

    @property
    def _label(self) -> str:
        return self.name or type(self).__name__

    @property
    def model(self) -> BaseChatModel:
        """The agent's model.

        Raises:
            ConfigError: The agent has no model.
        """
        if self.llm is None:
            raise ConfigError(f"agent {self._label} has no model: pass llm='backend:model'")
        return self.llm

    def function_schemas(self, lang: Lang) -> tuple[FunctionSchema, ...]:
        """Return the schemas of the agent's tools, as the model receives them."""
        if lang not in self._schemas:
            self._schemas[lang] = tuple(entry.schema(lang) for entry in self.function_map.values())
        return self._schemas[lang]

    @cached_property
    def _recorder(self) -> Recorder:
        if self.store is None:
            raise ConfigError(
                f"runs of agent {self._label!r} are not recorded: pass a store to the agent, such as store='sqlite'"
            )
        return self.store.recorder(self)

    def _recorder_of(self, run_id: str | None, parent: ParentRun | None) -> Recorder | None:
        """Return a run's recorder, from the recorded parent run if there is one, or from the agent's store."""
        if run_id is None and parent is not None:
            inside = parent.recorder(self._label, resumable=self.resumable)
            if inside is not None:
                return inside
        return None if run_id is None and self.store is None else self._recorder

    def make_loop(self, *, functions: Sequence[FunctionSchema], toolbox: Toolbox | None = None) -> Loop:
        """Create the loop that alternates between the agent's model and its tools.

        Args:
            functions: Schemas of the tools that the model can call.
            toolbox: Additional tools created for this run. Pass `run.toolbox`.
        """
        return Loop(
            model=self.model,
            functions=functions,
            toolbox=toolbox,
            executor=self.executor,
            approve=self.approve,
            name=self.name,
            reads_files=self.reads_files,
        )

    def _init_tool(self, entry: ToolEntry) -> None:
        parts = tools_of(entry, self.host)
        name = getattr(entry, "name", "") or (name_of_entry(entry) if isinstance(entry, str | Mapping) else "")
        where = f", one of them in toolset {name!r}" if len(parts) > 1 and name else ""
        for made in parts:
            if isinstance(made, BaseTool):
                add_tool(made, self.function_map, where=where)
            else:
                self.toolsets.append(made)

    def make_run(
        self,
        history: tuple[Message, ...],
        lang: Lang,
        *,
        resources: RunResources | None = None,
        cancel: CancelToken | None = None,
        deps: Deps | None = None,
        config: RunConfig = None,
        **options: Any,
    ) -> Run:
        """Create a run without starting it. Arguments are the same as for `astream`.

        Raises:
            MissingFileError: One of the agent's files does not exist.
        """
        check_files(self.files, (), agent=self._label)
        if not self.reads_files:
            history = attach_files(history, self.files)
        return self._new_run(
            history, lang, resources=resources, cancel=cancel, deps=deps, config=config, options=options
        )

    def _new_run(
        self,
        history: tuple[Message, ...],
        lang: Lang,
        *,
        resources: RunResources | None,
        deps: Deps | None,
        config: RunConfig,
        config_lang: Lang | None = None,
        run_id: str | None = None,
        **fields: Any,
    ) -> Run:
        """Create a run from these fields and the agent's own settings."""
        config = self._check_config(config)
        run_id = run_id or new_run_id()
        resources = resources or RunResources()
        context: ToolContext[Any] = ToolContext(
            run_id=run_id,
            agent=self.name or "",
            files=tuple(dict.fromkeys((*self.files, *files_in(history, resources.attached)))),
            lang=lang,
            workspace=self.workspace,
            resources=resources,
            deps=deps,
        )
        model_config = self.extra_generate_cfg
        if not callable(config):
            model_config = model_config.merged(config)
        if config_lang:
            model_config = model_config.merged({"lang": config_lang})
        return Run(
            id=run_id,
            agent=self,
            messages=history,
            lang=lang,
            limits=self.limits,
            config=model_config if model_config.model_fields_set else None,
            caller_config=config,
            context=context,
            toolbox=self._toolbox(replace(context, messages=history)) if self.toolsets or self._sources else None,
            **fields,
        )

    def _toolbox(self, context: ToolContext[Any]) -> Toolbox:
        return Toolbox(
            self.toolsets,
            self.function_map,
            context,
            host=self.host,
            timeout_s=self.executor.timeout_s,
            sources=[replace(source) for source in self._sources],
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or ''} llm={self.llm!r} tools={list(self.function_map)}>"


def _read_messages(messages: Messages, *, is_question: bool) -> tuple[Message, ...]:
    asked = as_messages(messages)
    if is_question:
        refuse_empty_question(asked)
    return asked


def _check_texts(**texts: object) -> None:
    for name, text in texts.items():
        check_argument(name, text, str | None, "a string")


def _read_suggestions(suggestions: Sequence[str]) -> tuple[str, ...]:
    texts = tuple(checked_list(suggestions, "suggestions", "strings"))
    for text in texts:
        check_argument("each of suggestions", text, str, "a string")
    return texts


def _read_adjustable(adjustable: Sequence[Adjustable]) -> tuple[Adjustable, ...]:
    names = tuple(checked_list(adjustable, "adjustable", "names of options"))
    for name in names:
        if name not in get_args(Adjustable):
            raise ConfigError(f"adjustable: unknown option {name!r}; use {', '.join(get_args(Adjustable))}")
    return names


def _read_models(models: Sequence[str], *, has_model: bool) -> tuple[str, ...]:
    names = tuple(checked_list(models, "models", "models"))
    for name in names:
        check_argument("each of models", name, str, "a string such as 'backend:model'")
        if ":" not in name:
            raise ConfigError(f"models: {name!r} has no backend; add one, as in openai:{name}")
    if names and not has_model:
        raise ConfigError("`models` lists alternatives to `llm`: set `llm` as well, or omit `models`")
    return names


def _read_paths(files: Sequence[str] | None) -> tuple[str, ...]:
    paths = tuple(checked_list(() if files is None else files, "files", "paths"))
    for path in paths:
        check_argument("each of files", path, str | PathLike, "a path")
    return tuple(map(str, paths))


def _check_run(
    *,
    cancel: object,
    resources: object,
    resume: object,
    approve: object,
    ask: object,
    attempts: object,
    session: object,
    run_id: object,
) -> None:
    """Raise ConfigError if a run option has the wrong type."""
    if cancel is not None:
        check_argument("cancel", cancel, CancelToken, "a CancelToken")
    if resources is not None:
        check_argument("resources", resources, RunResources, "RunResources")
    check_count("attempts", attempts)
    check_argument("session", session, str, "a string")
    if run_id is not None:
        check_argument("run_id", run_id, str, "the ID of a recorded run, such as result.run_id")
    if resume is not False and resume is not True:
        wanted = "True, or {call_id: True or False} for the calls in result.waiting"
        check_argument("resume", resume, Mapping[str, bool | Denial], wanted)
    if ask is not None and not callable(ask):
        raise ConfigError(f"the run option `ask` must be a function, got {type(ask).__name__}")
    if approve is not None and not callable(approve):
        raise ConfigError(
            f"the run option `approve` must be a function, got {type(approve).__name__}: pass rules such as 'ask' to "
            "the agent"
        )


def _check_answers(run: Run) -> None:
    """Raise ConfigError if a decision refers to a call that is not pending."""
    if not run.answers or run.parent is not None:
        return
    waiting = {call.call_id: call.call.name for call in open_calls([*run.messages, *run.start.made])}
    for part in run.later_parts:
        waiting |= {call.call_id: call.call.name for call in open_calls([*run.messages, *part.start.made])}
        waiting |= dict.fromkeys(part.answers, "")
    for call_id in run.answers:
        # Ids of a subagent's calls begin with the id of the call that runs it.
        if not any(call_id == one or call_id.startswith(f"{one}/") for one in waiting):
            calls = ", ".join(f"{one!r} ({name})" for one, name in waiting.items()) or "none, so omit resume"
            raise ConfigError(f"resume: call {call_id!r} is not pending; pending calls: {calls}")


def options_of_kind(kind: type[Agent]) -> frozenset[str] | None:
    """Return the keyword arguments that an agent kind accepts, or None if it accepts any."""
    if kind not in _OPTIONS:
        named = dict(inspect.signature(kind.__init__).parameters)
        rest = [named.pop(name) for name, parameter in [*named.items()] if parameter.kind is parameter.VAR_KEYWORD]
        others = AgentOptions.__annotations__.keys() if rest else ()
        takes_any = bool(rest) and "AgentOptions" not in str(rest[0].annotation)
        _OPTIONS[kind] = None if takes_any else frozenset({*list(named)[1:], *others})
    return _OPTIONS[kind]


_OPTIONS: WeakKeyDictionary[type[Agent], frozenset[str] | None] = WeakKeyDictionary()


def check_options(kind: type[Agent], options: Collection[str]) -> None:
    """Raise TypeError for keyword arguments that an agent kind does not accept."""
    known = options_of_kind(kind) if options else None
    if known is not None:
        for name in options:
            if name not in known:
                raise TypeError(f"{kind.__name__} has no option {name!r}{suggest(name, known)}")


class _Places:
    """Adds the run's id, number, agent and depth to events, and sends the events to observers.

    Attributes:
        last: The most recent event.
        surrounded: The event stream, if any observer wraps the run.
    """

    def __init__(self, run: Run, agent: str, observers: Observers) -> None:
        self._run_id, self._depth, self._agent = run.id, run.depth, agent
        self._number = 0
        self._tell = observers.tell if observers else None
        self.last: ModelEvent | AgentEvent | None = None
        self.surrounded: SurroundedEvents[Event] | None = None

    def of(self, event: ModelEvent | AgentEvent) -> RunEvent:
        """Return the event wrapped with its run id, number, agent and depth."""
        if type(event) is HandedOff:
            self._agent = event.to
        self.last = event
        if self.surrounded is not None:
            self.surrounded.follow(event)
        self._number += 1
        placed = RunEvent(self._run_id, self._number, self._agent, self._depth, event)
        if self._tell is not None:
            self._tell(placed)
        return placed

    def check_end(self, kind: str) -> None:
        """Raise BrokenPluginError unless the last event was `RunFinished`."""
        if not isinstance(self.last, RunFinished):
            raise BrokenPluginError(f"{kind} ended without RunFinished, which must be the last event of its `events`")


# Set by the code that runs agents, never by a caller.
_INTERNAL_OPTIONS = frozenset({"output", "parent"})
