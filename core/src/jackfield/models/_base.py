"""A model: one abstract method, `stream`, and everything that can be asked of it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar
from urllib.parse import urlsplit

from jackfield._frames import ForgetLocals
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
from jackfield.models._thoughts import WithThoughtsApart
from jackfield.plugins._acting import acting
from jackfield.plugins._catalog import Row
from jackfield.plugins._host import default_host
from jackfield.plugins._protocol import Plugins
from jackfield.processors import CallFormat, CallFormatProcessor, CallNext, Processor, in_order
from jackfield.request import ChatRequest, FunctionSchema, GenerateOptions, ModelFacts, language_of, with_media_noted
from jackfield.secrets import StatesSecrets
from jackfield.streams import closing

NATIVE = "native"


class BaseChatModel(Asking, QwenAgentMethods, StatesSecrets, ABC):
    """The base class of backends.

    A backend sets `backend` and `facts` and defines `stream`. It makes no connection and imports no SDK before the
    first call. One instance serves many calls at once, from any thread and any event loop.

    Args:
        config: Which model, where, and how.
        processors: The whole chain except for the call format, instead of the configured processors and `Retry`.
        host: Where processors and call formats are looked up.
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
        with ForgetLocals():  # a key may be among them
            self.config = self.config_class.parse(config, what=f"configuration of {self.backend}")
        self._given_processors = processors
        self._more_processors: Sequence[Processor] = ()
        self._given_host = host
        self._own_processors: list[Processor] | None = None
        self._chains: dict[str, CallNext] = {}
        self._chains_lock = threading.RLock()

    @property
    def facts(self) -> ModelFacts:
        """The model's abilities: text only, unless a backend states more. Tools are then described in the text."""
        return ModelFacts(native_tools=False)

    @property
    def server_name(self) -> str:
        """The server's name for limits, prices and caches: the backend, and the host of its server if one is set.

        A backend that also takes an address from the environment overrides this.
        """
        return name_of_server(self.backend, self.config.server_url)

    @abstractmethod
    def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Answer one request: an async generator of events, the last of which is `ModelFinished`.

        Closing the generator early gives the connection back. Errors are `ModelServiceError`s.
        """

    async def aclose(self) -> None:
        """Close what calls opened; the model may be used again, and reopens it. An override must call this one."""
        for processor in self._own_processors or ():
            await processor.aclose()

    @property
    def address(self) -> str:
        """The model's backend and its name there, `openai:gpt-x`."""
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
    ) -> AsyncIterator[ModelEvent]:
        """The events of one answer, after all processors; those of `around` act on this answer alone, outside of them.

        Raises:
            ValueError: The request makes no sense: two system messages, a chosen function that does not exist.
        """
        request = self.make_request(messages, functions, config=config, metadata=metadata, lang=lang)
        ask = self._chain(request)
        for processor in reversed(around):
            ask = processor.wrap(ask)
        return ask(request)

    async def acomplete(
        self,
        messages: Messages,
        functions: Sequence[FunctionSchema] = (),
        *,
        config: GenerateOptions = None,
    ) -> ModelResponse:
        """One whole answer. An error carries, as `partial_text`, what had arrived."""
        answer = Fold(self.backend)
        with answer.gathering(self.address):
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
    ) -> ChatRequest:
        """The request that a call with these arguments sends into the chain."""
        history = without_foreign_paths(as_messages(messages))
        if not history:
            raise ConfigError("Messages can not be empty.")
        if sum(message.role == SYSTEM for message in history) > 1:
            raise ConfigError("there are two system messages: join them into one, at the front")
        merged = self.config.generate_cfg.merged(config)
        schemas = tuple(map(_unwrapped, functions))
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
        )

    # --- the chain ---

    def call_format_name(self, config: GenerateConfig) -> str:
        """How tools are described to this model: `native`, or the name of a call format; from the configuration, else
        the facts."""
        if config.use_raw_api:
            return NATIVE
        return config.fncall_prompt_type or (NATIVE if self.facts.native_tools else CALL_FORMAT)

    def processors(self, config: GenerateConfig | None = None) -> list[Processor]:
        """The chain, from the caller inwards, of a request with tools."""
        return self._in_order(self.call_format_name(config or self.config.generate_cfg))

    def _in_order(self, format_name: str) -> list[Processor]:
        chosen = list(self._chosen())
        if format_name != NATIVE:
            chosen.append(CallFormatProcessor(self._load_call_format(format_name)))
        return in_order(chosen, self.host.settings.order)

    def _chosen(self) -> Sequence[Processor]:
        """The processors of this model, made once: what they keep is the same whatever the call format."""
        with self._chains_lock:
            if self._own_processors is None:
                if self._given_processors is not None:
                    chosen = list(self._given_processors)
                else:
                    chosen = [*load_processors(self.config.processors, self.host), Retry()]
                self._own_processors = [*chosen, *self._more_processors]
            return self._own_processors

    def _take_processors(self, processors: Sequence[Processor], *, add: bool) -> None:
        """Take these processors in place of the configured ones and `Retry`, or besides what there is.

        Raises:
            RuntimeError: The model has been asked already.
        """
        with self._chains_lock:
            if self._own_processors is not None:
                raise RuntimeError(f"{self.address} has already been asked, so its processors can no longer change")
            if add:
                self._more_processors = tuple(processors)
            else:
                self._given_processors = tuple(processors)

    def _chain(self, request: ChatRequest) -> CallNext:
        # Without tools there is nothing for a call format to write, so none has to be installed.
        format_name = self.call_format_name(request.config) if _has_tools(request) else NATIVE
        chain = self._chains.get(format_name)
        if chain is None:
            with self._chains_lock:
                chain = self._send
                for processor in reversed(self._in_order(format_name)):
                    chain = processor.wrap(chain)
                self._chains[format_name] = chain
        return chain

    def _send(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        if any(message.is_multimodal() for message in request.messages):
            request = replace(request, messages=tuple(map(self._acceptable, request.messages)))
        config = request.config
        stops = [text for text in config.stop if text]
        if config.stop and not config.send_stop:
            request = replace(request, config=config.model_copy(update={"stop": ()}))
        events = self.stream(request)
        if config.thought_in_content is not False and self.facts.thoughts_in_text:
            events = WithThoughtsApart(events, inside=config.thought_in_content is True)
        if not stops:
            return events
        from jackfield.models._stops import until_stop

        return until_stop(stops, events)

    def _acceptable(self, message: Message) -> Message:
        """The message as this model takes it.

        Raises:
            UnsupportedInputError: A user sends what it does not take.
        """
        acceptable = with_media_noted(message, self.facts)
        refused = next((item.type for item in acceptable.items if not self.facts.takes(item.type)), None)
        if refused:
            # A backend for many models cannot know what each of them takes.
            settable = refused in type(self.config).model_fields
            more = f"; if this one does, its configuration needs {refused}: true" if settable else ""
            raise UnsupportedInputError(
                f"{self.address} does not take {refused} input: use a model that does, or leave it out{more}",
                backend=self.backend,
            )
        return acceptable

    @property
    def host(self) -> Plugins:
        """Where processors, call formats and settings are looked up."""
        return self._given_host or default_host()

    def _load_call_format(self, name: str) -> CallFormat:
        made = self.host.load_row(self.host.find("call_format", name))()
        if not isinstance(made, CallFormat):
            raise BrokenPluginError(f"call format {name!r} is not a jackfield.processors.CallFormat")
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"


def processors_of(entries: Sequence[Processor | str | Mapping[str, object]], host: Plugins) -> list[Processor]:
    """Only the processors that a caller passes or names.

    Raises:
        ConfigError: An entry has no name, or settings that do not fit.
        PluginError: One is not installed, or cannot be loaded.
    """
    return [
        entry if isinstance(entry, Processor) else host.make(*_named(entry, host), Processor)
        for entry in checked_list(entries, "processors", "processors or their names")
    ]


def _named(entry: str | Mapping[str, object], host: Plugins) -> tuple[Row, Mapping[str, object]]:
    """The processor that an entry of a configuration names, and its settings."""
    cfg = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = cfg.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError("a processor given as a dict needs a 'name' next to its settings")
    return host.find("processor", name), cfg


def load_processors(entries: Sequence[str | Mapping[str, object]], host: Plugins) -> list[Processor]:
    """The processors that a configuration names, those that the settings enable, and the default chain.

    Raises:
        ConfigError: An entry has no name, or settings that do not fit.
        PluginError: One is not installed, or cannot be loaded. It may be there for protection, so none is skipped.
    """
    chosen = dict(_named(entry, host) for entry in entries)
    for row in acting(host, "processor", named=chosen):
        chosen[row] = host.settings.options_of("processor", row.address)
    return [host.make(row, cfg, Processor) for row, cfg in chosen.items()]


def name_of_server(backend: str, url: str | None) -> str:
    """A server's backend and host, without the parts that may hold API keys: `openai@127.0.0.1:8000`.

    Raises:
        ConfigError: The address is not a valid URL.
    """
    try:
        host = urlsplit(url or "").netloc.rpartition("@")[2]
    except ValueError:
        raise ConfigError("the address of the server is not a valid URL: write http://host:port/path") from None
    return f"{backend}@{host}" if host else backend


def _has_tools(request: ChatRequest) -> bool:
    """Whether a request offers tools, or its history has calls of some."""
    return bool(request.functions) or any(
        message.function_call or message.role == FUNCTION for message in request.messages
    )


def _unwrapped(function: FunctionSchema) -> FunctionSchema:
    """A function's schema out of the `{"type": "function", "function": …}` that OpenAI puts around it."""
    inner = function.get("function", function)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise ConfigError("a function needs a 'name', next to 'description' and 'parameters'")
    return inner


def _check_choice(choice: str, functions: Sequence[FunctionSchema]) -> None:
    names = [function["name"] for function in functions]
    if choice not in ("auto", "none", "required", *names):
        listed = ", ".join(("auto", "none", "required", *names))
        raise ConfigError(f"function_choice {choice!r} is not one of the choices: {listed}")
