"""Processors and call formats, which act between a caller and a backend.

A processor wraps one model call. Its two easy forms are a `Preprocessor`, which changes the request, and a
`Postprocessor`, which changes the stream. The law for all of them: cutting the stream elsewhere never changes the
folded result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from jackfield.config import Configured
from jackfield.descriptors import ComponentSpec, PostprocessorSpec, PreprocessorSpec, ProcessorSpec
from jackfield.errors import BrokenPluginError
from jackfield.events import ModelEvent, StreamReset
from jackfield.request import ChatRequest, with_media_noted
from jackfield.streams import closing

Phase = Literal["input", "context", "format", "transport", "output"]
"""The place in the chain, from the caller inwards; `output` is outermost again, for finished answers."""

CallNext: TypeAlias = Callable[[ChatRequest], AsyncIterator[ModelEvent]]


class Processor(Configured, ABC):
    """Wraps a model call. One instance serves all calls of a model, also at once: state belongs into `around`.

    `config_class` defines its settings; see `Configured`.

    Attributes:
        name: Its name, unique in a chain, to which `after` and `before` of other processors refer.
        phase: Its place in the chain.
        after, before: Names of processors of the same phase that come outside of this one, or inside.
        needs_text: It must see the contents of files, as one that hides values does: PDFs are then sent as text, even
            to a model that takes PDFs.
    """

    name: ClassVar[str]
    phase: ClassVar[Phase] = "context"
    after: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[tuple[str, ...]] = ()
    needs_text: ClassVar[bool] = False

    @abstractmethod
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Answer the request, usually by passing it (changed) to `call_next` and its events (changed) on."""

    async def aclose(self) -> None:
        """Close everything that calls opened; the processor may be used again, and then reopens it."""

    @classmethod
    def factory_of(cls, target: Any, spec: ComponentSpec) -> Any:
        """Return the callable that makes the processor of a descriptor: a function is wrapped first."""
        match spec:
            case PreprocessorSpec():
                return partial(FunctionPreprocessor, target, spec)
            case PostprocessorSpec():
                return partial(FunctionPostprocessor, target, spec)
        return target

    def wrap(self, call_next: CallNext) -> CallNext:
        """Bind `around` to the next part of the chain, which is composed of these functions once."""

        def ask(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            events = self.around(request, call_next)
            if not hasattr(events, "__aiter__"):
                raise _misfit(self, "around", events, "yield events, or be a plain `def` that returns them")
            return events

        return ask


class Preprocessor(Processor):
    """Changes the request and leaves the stream alone, so it costs nothing per event."""

    @abstractmethod
    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Return the request to send instead; the same object if nothing changes."""

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Pass the prepared request on."""
        prepared = self.prepare(request)
        if not isinstance(prepared, ChatRequest):
            raise _misfit(self, "prepare", prepared, "be a plain `def` that returns a ChatRequest")
        return call_next(prepared)


class StreamTransform(Protocol):
    """Rewrites one stream, event by event. It may hold text back, but must let go of all of it at `ModelFinished`."""

    def feed(self, event: ModelEvent) -> Iterable[ModelEvent]:
        """Return the events to pass on for `event`: none, the event itself, or others."""


class Postprocessor(Processor):
    """Changes the stream and leaves the request alone."""

    phase: ClassVar[Phase] = "output"

    @abstractmethod
    def start(self, request: ChatRequest) -> StreamTransform:
        """Return a new transform, for one answer."""

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Pass the rewritten stream on."""
        return transformed(call_next(request), lambda: self.start(request))


async def transformed(
    events: AsyncIterator[ModelEvent], start: Callable[[], StreamTransform]
) -> AsyncIterator[ModelEvent]:
    """Rewrite a stream by a transform; after a `StreamReset`, a new transform continues.

    Raises:
        BrokenPluginError: The transform returned something that cannot be iterated over.
    """
    transform = start()
    passed_on: Iterable[ModelEvent] = ()
    async with closing(events):
        try:
            async for event in events:
                if isinstance(event, StreamReset):
                    transform = start()
                    yield event
                    continue
                passed_on = transform.feed(event)
                for out in passed_on:
                    yield out
        except TypeError as error:  # looked into only now: a check would cost time for each event
            if hasattr(passed_on, "__iter__"):
                raise
            name, got = type(transform).__qualname__, type(passed_on).__name__
            raise BrokenPluginError(
                f"{name}.feed returned an object of type {got}: yield events, or return a list of them"
            ) from error


class FunctionPreprocessor(Preprocessor):
    """A function of a request as a processor; a plugin offers it by `@hook.preprocessors`."""

    def __init__(self, function: Callable[[ChatRequest], ChatRequest], spec: ProcessorSpec) -> None:
        self.prepared = function
        _place(self, spec)

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Return the request that the function makes of this one."""
        return self.prepared(request)


class FunctionPostprocessor(Postprocessor):
    """A function that returns transforms, as a processor; a plugin offers it by `@hook.postprocessors`."""

    def __init__(self, function: Callable[[ChatRequest], StreamTransform], spec: ProcessorSpec) -> None:
        self.started = function
        _place(self, spec)

    def start(self, request: ChatRequest) -> StreamTransform:
        """Return the transform that the function makes for the request."""
        return self.started(request)


def _misfit(processor: Processor, method: str, result: object, duty: str) -> BrokenPluginError:
    """Return the error for a method of a processor that returned something else."""
    if isinstance(result, Coroutine):
        result.close()  # else Python warns that it was never awaited
    name, got = getattr(processor, "name", type(processor).__name__), type(result).__name__
    return BrokenPluginError(f"processor {name!r} returned an object of type {got} from `{method}`, which must {duty}")


def _place(processor: Processor, spec: ProcessorSpec) -> None:
    """Set on an instance the attributes that other processors have in their class."""
    vars(processor).update(name=spec.name, phase=spec.phase, after=spec.after, before=spec.before)


class CallFormat(ABC):
    """Writes and reads tool calls as text, for models without native ones.

    Formats read incrementally, each character once. A native call that arrives while a format is active is honoured:
    its deltas pass through, with indices that do not collide with those of calls found in the text.
    """

    name: ClassVar[str]

    @abstractmethod
    def render(self, request: ChatRequest) -> ChatRequest:
        """Return the request with its tools, calls and results written as text, and without `functions`.

        It is called for every request, also one without functions: the history may hold calls.
        """

    @abstractmethod
    def reader(self, request: ChatRequest) -> StreamTransform:
        """Return a transform that finds calls in the text of one answer; `request` is the one before rendering."""


class CallFormatProcessor(Processor):
    """A call format as a processor."""

    name = "call_format"
    phase = "format"

    def __init__(self, call_format: CallFormat) -> None:
        self.call_format = call_format

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Render the request, read the answer."""
        rendered = self.call_format.render(_with_media_noted(request))
        if not request.functions or request.config.function_choice == "none":
            return call_next(rendered)
        return transformed(call_next(rendered), lambda: self.call_format.reader(request))


def _with_media_noted(request: ChatRequest) -> ChatRequest:
    """Replace media that the model does not take in results: once rendered, results look like a user's messages."""
    if not any(message.is_multimodal() for message in request.messages):
        return request
    return replace(request, messages=tuple(with_media_noted(message, request.facts) for message in request.messages))
