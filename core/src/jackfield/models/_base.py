"""The base class for models. Backends define `stream`, and all methods that call the model are built on it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from jackfield._frames import ForgetLocals
from jackfield._secretsources import StatesSecrets
from jackfield.config import GenerateConfig, Lang, LLMConfig, checked_list
from jackfield.defaults import CALL_FORMAT
from jackfield.errors import BrokenPluginError, ConfigError, UnsupportedInputError
from jackfield.events import ModelEvent
from jackfield.media import without_foreign_paths
from jackfield.messages import FUNCTION, SYSTEM, Message, Messages, ModelResponse, as_messages
from jackfield.models._asking import Asking
from jackfield.models._fold import Fold
from jackfield.models._qwen import QwenAgentMethods
from jackfield.models._retry import Retry
from jackfield.models._thoughts import ThoughtSeparator
from jackfield.plugins._acting import acting
from jackfield.plugins._protocol import Plugins
from jackfield.processors import CallFormat, CallFormatProcessor, CallNext, Processor, in_order
from jackfield.request import (
    ChatRequest,
    FileUse,
    FunctionSchema,
    GenerateOptions,
    ModelFacts,
    language_of,
    with_media_noted,
)
from jackfield.streams import closing

if TYPE_CHECKING:
    from jackfield.plugins._catalog import Row

NATIVE = "native"
_TEXT_ONLY = ModelFacts(native_tools=False)


class BaseChatModel(Asking, QwenAgentMethods, StatesSecrets, ABC):
    """Base class for backends. A backend sets `backend` and `facts` and defines `stream`.

    Backends must not connect or import an SDK before the first call. One instance serves many concurrent calls from any
    thread and any event loop.

    Args:
        config: The model, its server, and generation options.
        processors: The complete processor chain except the call format, replacing the configured processors and
            `Retry`.
        host: The plugin host that resolves processors and call formats. Defaults to the installed plugins.
    """

    backend: ClassVar[str]
    config_class: ClassVar[type[LLMConfig]] = LLMConfig

    def __init__(
        self,
        config: LLMConfig | Mapping[str, object],
        *,
        processors: Sequence[Processor] | None = None,
        host: Plugins | None = None,
    ) -> None:
        with ForgetLocals():  # arguments may include an API key
            self.config = self.config_class.parse(config, what=f"configuration of {self.backend}")
        self._replacing_processors = processors
        self._additional_processors: Sequence[Processor] = ()
        self._host = host
        self._processors: list[Processor] | None = None  # made at the first request
        self._chains: dict[str, CallNext] = {}
        self._chains_lock = threading.RLock()

    @property
    def facts(self) -> ModelFacts:
        """The model's capabilities. By default, the model supports text only, and its prompt describes the tools."""
        return _TEXT_ONLY

    @property
    def server_name(self) -> str:
        """The server's name in limits, prices and caches: the backend, plus the server's host if an address is set.

        Override this property if the backend can also read the server's address from the environment.
        """
        return name_of_server(self.backend, self.config.server_url)

    @abstractmethod
    def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Answer one request. Implement this method as an async generator that yields `ModelFinished` last.

        Closing the generator early must release the connection.

        Raises:
            ModelServiceError: The server or the connection failed.
        """

    async def aclose(self) -> None:
        """Close all resources that calls opened. The model remains usable. Overrides must call this method."""
        for processor in self._processors or ():
            await processor.aclose()

    @property
    def address(self) -> str:
        """The backend and model name, such as `openai:gpt-x`."""
        return f"{self.backend}:{self.config.model}"

    # --- asking ---

    def astream(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] = (),
        *,
        config: GenerateOptions = None,
        metadata: Mapping[str, object] | None = None,
        lang: Lang | None = None,
        around: Sequence[Processor] = (),
        files: FileUse = "read",
    ) -> AsyncIterator[ModelEvent]:
        """Yield the events of one answer after all processors have handled them.

        Args:
            messages: A question, or a whole conversation, oldest message first.
            functions: Schemas of the tools that the model can call.
            config: Options for this request, which override the model's options.
            metadata: Metadata for processors; see `ChatRequest`.
            lang: The language for text that Jackfield adds, unless `config` sets one. If None, the language is
                detected.
            around: Additional processors for this answer, which wrap all others.
            files: How to handle attached files; see `FileUse`.

        Raises:
            ValueError: The request is inconsistent: for example, it has two system messages or requires an unknown
                function.
            UnsupportedInputError: An attached file cannot be read.
        """
        request = self.make_request(messages, functions, config=config, metadata=metadata, lang=lang, files=files)
        if not around:
            return self._chain(request)(request)

        def ask(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            return self._chain(request)(request)  # `around` may have added the first tool

        call_next: CallNext = ask
        for processor in reversed(around):
            call_next = processor.wrap(call_next)
        return call_next(request)

    async def acomplete(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] = (),
        *,
        config: GenerateOptions = None,
    ) -> ModelResponse:
        """Return one complete answer. Errors carry the text received so far in `partial_text`."""
        answer = Fold(self.backend)
        with answer.reading_from(self.address):
            async with closing(self.astream(messages, functions, config=config)) as events:
                async for event in events:
                    answer.feed(event)
        return answer.response()

    def make_request(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] = (),
        *,
        config: GenerateOptions = None,
        metadata: Mapping[str, object] | None = None,
        lang: Lang | None = None,
        files: FileUse = "read",
    ) -> ChatRequest:
        """Return the request that `astream` would send into the processor chain."""
        history = without_foreign_paths(as_messages(messages))
        if not history:
            raise ConfigError("messages cannot be empty: pass at least one question")
        if [message.role for message in history].count(SYSTEM) > 1:
            raise ConfigError("there are two system messages: merge them into one at the start")
        merged = self.config.generate_cfg.merged(config)
        schemas = tuple(_unwrap_schema(function) for function in checked_list(functions, "functions", "schemas"))
        _check_choice(merged.function_choice, schemas)
        return ChatRequest(
            model=self.config.model,
            messages=history,
            functions=schemas,
            config=merged,
            lang=merged.lang or lang or language_of(history),
            metadata=metadata or {},
            facts=self.facts,
            server=self.server_name,
            files=files,
        )

    # --- the chain ---

    def call_format_name(self, config: GenerateConfig) -> str:
        """Return `native`, or the name of the call format that describes tools to this model."""
        if config.use_raw_api:
            return NATIVE
        return config.fncall_prompt_type or (NATIVE if self.facts.native_tools else CALL_FORMAT)

    def processors(self, config: GenerateConfig | None = None) -> list[Processor]:
        """Return the processor chain for a request with tools, outermost first."""
        return self._ordered_processors(self.call_format_name(config or self.config.generate_cfg))

    def _ordered_processors(self, format_name: str) -> list[Processor]:
        processors = list(self._own_processors())
        if format_name != NATIVE:
            call_format = self.host.load_row(self.host.find("call_format", format_name))()
            if not isinstance(call_format, CallFormat):
                raise BrokenPluginError(f"call format {format_name!r} is not a jackfield.processors.CallFormat")
            processors.append(CallFormatProcessor(call_format))
        return in_order(processors, self.host.settings.order)

    def _own_processors(self) -> Sequence[Processor]:
        """Return this model's processors. Each processor is created once, so all call formats share its state."""
        with self._chains_lock:
            if self._processors is None:
                if self._replacing_processors is not None:
                    processors = list(self._replacing_processors)
                else:
                    processors = [*load_processors(self.config.processors, self.host), Retry()]
                self._processors = [*processors, *self._additional_processors]
            return self._processors

    def _use_processors(self, processors: Sequence[Processor], *, add: bool) -> None:
        """Replace the configured processors and `Retry` with `processors`, or add `processors` to them.

        Raises:
            RuntimeError: The model has already been used.
        """
        with self._chains_lock:
            if self._processors is not None:
                raise RuntimeError(f"{self.address} has already been used, so its processors can no longer be changed")
            if add:
                self._additional_processors = tuple(processors)
            else:
                self._replacing_processors = tuple(processors)

    def _chain(self, request: ChatRequest) -> CallNext:
        # A request without tools works even if no call format is installed.
        format_name = self.call_format_name(request.config) if _has_tools(request) else NATIVE
        chain = self._chains.get(format_name)
        if chain is None:
            from jackfield.attachments import read_files_before, refuse_file, send_as_text  # for requests only

            with self._chains_lock:
                processors = self._ordered_processors(format_name)
                chain, are_files_read = self._send, False
                for processor in reversed(processors):
                    if not are_files_read and processor.phase in ("output", "input"):
                        # Read files after the processor with the parsers, before those that count and hide text.
                        chain, are_files_read = read_files_before(chain, refuse_file), True
                    chain = processor.wrap(chain)
                if not are_files_read:
                    chain = read_files_before(chain, refuse_file)
                if any(processor.needs_text for processor in processors):
                    chain = send_as_text(chain)
                self._chains[format_name] = chain
        return chain

    def _send(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Call the backend, which is the innermost step of the chain."""
        if any(message.is_multimodal() for message in request.itemized):
            messages = tuple(self._without_unsupported(message) for message in request.messages)
            request = replace(request, messages=messages)
        config = request.config
        stops = [text for text in config.stop if text]
        if config.stop and not config.send_stop:
            request = replace(request, config=config.model_copy(update={"stop": ()}))
        events = self.stream(request)
        if request.facts.prices:
            from jackfield.prices import add_costs

            events = add_costs(events, request.facts.prices)
        if config.thought_in_content is not False and self.facts.thoughts_in_text:
            events = ThoughtSeparator(events, inside=config.thought_in_content is True)
        if not stops:
            return events
        from jackfield.models._stops import until_stop

        return until_stop(stops, events)

    def _without_unsupported(self, message: Message) -> Message:
        """Replace unsupported media in tool results with text notes.

        Raises:
            UnsupportedInputError: A user's message contains unsupported media.
        """
        message = with_media_noted(message, self.facts)
        for item in message.items:
            if not self.facts.takes(item.type):
                # A backend for many models cannot know each model's abilities.
                settable = item.type in type(self.config).model_fields
                hint = f"; if this model does, set {item.type}: true in its configuration" if settable else ""
                raise UnsupportedInputError(
                    f"{self.address} does not support {item.type} input: use a model that does, or remove the "
                    f"{item.type} input{hint}",
                    backend=self.backend,
                )
        return message

    @property
    def host(self) -> Plugins:
        """The plugin host, which resolves processors and call formats and provides the settings."""
        from jackfield.plugins._host import default_host  # an import of agents needs no plugin

        return self._host or default_host()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"


def make_processors(entries: Sequence[Processor | str | Mapping[str, object]], host: Plugins) -> list[Processor]:
    """Create the processors that a caller passes or names. No defaults are added.

    Raises:
        ConfigError: An entry has no name, or its settings are not valid.
        PluginError: A processor is not installed or cannot be loaded.
    """
    return [
        _check_name(entry) if isinstance(entry, Processor) else host.make(*_find_processor(entry, host), Processor)
        for entry in checked_list(entries, "processors", "processors or their names")
    ]


def _check_name(processor: Processor) -> Processor:
    if not hasattr(processor, "name"):
        raise ConfigError(f"processor {type(processor).__name__} has no name: set `name` in its class")
    return processor


def load_processors(entries: Sequence[str | Mapping[str, object]], host: Plugins) -> list[Processor]:
    """Create the configured processors, the processors enabled in the settings, and the default chain.

    Raises:
        ConfigError: An entry has no name, or its settings are not valid.
        PluginError: A processor is not installed or cannot be loaded. Processors are never skipped, because they may
            protect the user.
    """
    settings = dict(_find_processor(entry, host) for entry in entries)
    for row in acting(host, "processor", named=settings):
        settings[row] = host.settings.options_of("processor", row.address)
    return [host.make(row, cfg, Processor) for row, cfg in settings.items()]


def _find_processor(entry: str | Mapping[str, object], host: Plugins) -> tuple[Row, Mapping[str, object]]:
    """Resolve a configuration entry to its processor and settings."""
    if not isinstance(entry, str | Mapping):
        raise ConfigError(f"{entry!r} is not a processor: pass a name, a dict with 'name', or a Processor instance")
    cfg = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = cfg.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError("a processor specified as a dict needs a 'name' in addition to its settings")
    return host.find("processor", name), cfg


def name_of_server(backend: str, url: str | None) -> str:
    """Return a server's backend and host, such as `openai@127.0.0.1:8000`, without URL parts that may contain API keys.

    Raises:
        ConfigError: The address is not a valid URL.
    """
    try:
        host = urlsplit(url or "").netloc.rpartition("@")[2]
    except ValueError:
        raise ConfigError("the server URL is not valid: use the form http://host:port/path") from None
    return f"{backend}@{host}" if host else backend


def _has_tools(request: ChatRequest) -> bool:
    """Return True if the request offers tools, or its history contains calls."""
    return bool(request.functions) or any(
        message.function_call or message.role == FUNCTION for message in request.messages
    )


def _unwrap_schema(function: FunctionSchema) -> FunctionSchema:
    """Return the function schema without OpenAI's `{"type": "function", "function": …}` wrapper."""
    if not isinstance(function, Mapping):
        got = type(function).__name__
        raise ConfigError(f"functions must be a list of schemas, such as [tool.function], but contains {got}")
    inner = function.get("function", function)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise ConfigError("a function needs a 'name' next to 'description' and 'parameters'")
    return inner


def _check_choice(choice: str, functions: Sequence[FunctionSchema]) -> None:
    choices = ("auto", "none", "required")
    names = [function["name"] for function in functions]
    if choice not in choices and choice not in names:
        listed = ", ".join((*choices, *names))
        raise ConfigError(f"unknown function_choice {choice!r}; available: {listed}")
