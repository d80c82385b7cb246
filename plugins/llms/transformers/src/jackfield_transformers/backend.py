"""Call Hugging Face transformers models that run in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import ClassVar, TypeAlias

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import BrokenPluginError, ModelRequestError, ModelTimeoutError
from jackfield.events import ModelEvent, PreparationProgress
from jackfield.models import BaseChatModel
from jackfield.plugins import Plugins
from jackfield.processors import CallFormat, Processor, transformed
from jackfield.request import ChatRequest, ModelFacts
from jackfield.streams import closing
from jackfield_transformers.answer import AnswerReader, Reading
from jackfield_transformers.config import TransformersConfig
from jackfield_transformers.errors import BACKEND, translate_answering
from jackfield_transformers.generation import generate
from jackfield_transformers.loading import LoadedModel, context_of_folder, load
from jackfield_transformers.writing import write

KEY_VARIABLE = "HF_TOKEN"
DEFAULT_MAX_TOKENS = 2048

_Item: TypeAlias = ModelEvent | BaseException | None
"""An event or error from the generating thread, or None at the end."""


class TransformersChat(BaseChatModel):
    """Chat model in this process. The model is loaded at the first call, and calls are answered one at a time.

    Generation may run ahead of the reader, up to the end of the answer. If the reader leaves early, generation stops at
    the next token.
    """

    backend: ClassVar[str] = BACKEND
    config_class: ClassVar[type[LLMConfig]] = TransformersConfig
    config: TransformersConfig

    def __init__(
        self,
        config: LLMConfig | Mapping[str, object],
        *,
        processors: Sequence[Processor] | None = None,
        host: Plugins | None = None,
    ) -> None:
        super().__init__(config, processors=processors, host=host)
        self._models: dict[str, LoadedModel] = {}
        self._loading = threading.Lock()
        self._context_of_folder: int | None = None
        self._has_read_folder = False

    @property
    def facts(self) -> ModelFacts:
        """The model's facts, overridden by the configuration.

        For a directory, they are known immediately; for a model from the hub, only after loading.
        """
        loaded = self._models.get(self.config.model)
        return ModelFacts(
            context_tokens=loaded.context_tokens if loaded else self._context_before_loading(),
            native_tools=self.config.native_tools,
            images=self.config.images,
            json_schema=False,
            thoughts_in_text=self.config.reasoning is not False,
            reasoning=loaded.thinks if loaded else bool(self.config.reasoning),
        )

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Generate an answer in a separate thread, and yield its events."""
        self._check(request)
        events = self._generate(request)
        if request.functions and request.config.function_choice != "none":
            call_format = self._call_format()
            events = transformed(events, lambda: call_format.reader(request))
        async with closing(events):
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Release the model. A call in progress can still finish, and the next call loads the model again."""
        self._models = {}
        await super().aclose()

    # --- one call ---

    def _check(self, request: ChatRequest) -> None:
        """Refuse options that no model of this backend supports, before loading a model."""
        wanted = request.config.response_format
        if wanted is not None and wanted.get("type") != "text":
            raise ModelRequestError(
                f"{BACKEND}: this backend cannot enforce a response_format: describe the format in the prompt instead, "
                f"or use `parse`, which does so",
                backend=BACKEND,
            )
        if not request.functions:
            return
        if not self.config.native_tools:
            raise ModelRequestError(
                f"{BACKEND}: native tool calls were requested, but native_tools is false: set native_tools to true, "
                f"or remove use_raw_api and fncall_prompt_type 'native'",
                backend=BACKEND,
            )
        if request.config.function_choice not in ("auto", "none"):
            raise ModelRequestError(
                f"{BACKEND}: a chat template cannot force a call (function_choice "
                f"{request.config.function_choice!r}): set native_tools to false, so that the call format forces it",
                backend=BACKEND,
            )

    async def _generate(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        loaded = self._models.get(request.model)
        if loaded is None:
            yield PreparationProgress(f"loading {request.model}")
            loaded = await sync.shared_in_worker(self._load, request.model)
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[_Item] = asyncio.Queue()
        left = threading.Event()

        def put(item: _Item) -> None:
            try:
                loop.call_soon_threadsafe(items.put_nowait, item)
            except RuntimeError:  # the loop is closed, so there is no reader
                left.set()

        def work() -> None:
            try:
                self._answer(loaded, request, put, left)
            except BaseException as error:  # noqa: BLE001 - re-raised by the caller
                put(error)
            else:
                put(None)

        sync.in_background(work).add_done_callback(partial(_put_refusal, put))
        try:
            while (item := await _next(items, request.config.request_timeout)) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            left.set()
            item = None  # the error and this frame would form a cycle that holds the model

    def _answer(
        self, loaded: LoadedModel, request: ChatRequest, put: Callable[[_Item], None], left: threading.Event
    ) -> None:
        """Generate an answer in this thread, after earlier calls have ended; stop when `left` is set."""
        with loaded.turn, translate_answering(loaded.name):
            if left.is_set():
                return
            prompt = write(loaded, request, self.config.chat_template_kwargs)
            reader = AnswerReader(loaded.text_of, self._reading(loaded, request, prompt.opens_thought))

            def listen(tokens: Sequence[int]) -> bool:
                for token in tokens:
                    for event in reader.feed(token):
                        put(event)
                return reader.complete or left.is_set()

            longest = request.config.max_tokens or DEFAULT_MAX_TOKENS
            if loaded.context_tokens is not None:
                longest = min(longest, loaded.context_tokens - prompt.tokens)
            generate(loaded, prompt.inputs, request.config, max_new_tokens=longest, listener=listen)
            for event in reader.finish(loaded.name, prompt.tokens):
                put(event)

    def _reading(self, loaded: LoadedModel, request: ChatRequest, opens_thought: bool) -> Reading:
        # Special tokens have no text to search for.
        special = dict(zip(loaded.tokenizer.all_special_tokens, loaded.tokenizer.all_special_ids, strict=True))
        return Reading(
            end_tokens=loaded.end_tokens | {special[stop] for stop in request.config.stop if stop in special},
            stops=request.config.stop,
            thoughts=loaded.thinks,
            inside_thought=opens_thought or bool(request.config.thought_in_content),
        )

    def _call_format(self) -> CallFormat:
        name = self.config.tool_call_format
        call_format = self.host.load_row(self.host.find("call_format", name))()
        if not isinstance(call_format, CallFormat):
            raise BrokenPluginError(f"call format {name!r} is not a jackfield.processors.CallFormat")
        return call_format

    # --- the first call ---

    def _load(self, name: str) -> LoadedModel:
        with self._loading:
            loaded = self._models.get(name)
            if loaded is None:
                configured = self.config.api_key.get_secret_value() if self.config.api_key else None
                key = configured or self.host.settings.secret(KEY_VARIABLE) or ""
                loaded = self._models[name] = load(name, self.config, key=key.strip())
            return loaded

    def _context_before_loading(self) -> int | None:
        if self.config.context_tokens is not None:
            return self.config.context_tokens
        if not self._has_read_folder:
            self._context_of_folder = context_of_folder(self.config.model)
            self._has_read_folder = True
        return self._context_of_folder


async def _next(items: asyncio.Queue[_Item], timeout_s: float | None) -> _Item:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            return await items.get()
    raise ModelTimeoutError(
        f"{BACKEND}: no new token within {timeout_s:g} s (including the wait for other calls): "
        "increase request_timeout",
        backend=BACKEND,
    )


def _put_refusal(put: Callable[[_Item], None], done: Future[None]) -> None:
    error = done.exception()
    if error is not None:  # no thread could be started, so `work` did not report it
        put(error)
