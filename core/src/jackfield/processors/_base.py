"""Processors and call formats, which sit between callers and backends.

A processor wraps one model call. There are two simpler forms: a `Preprocessor` only changes the request, and a
`Postprocessor` only changes the stream. All processors follow one rule: chunk boundaries never change the folded
result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from jackfield.config import Configured
from jackfield.errors import BrokenPluginError
from jackfield.events import ModelEvent, StreamReset
from jackfield.request import ChatRequest, with_media_noted
from jackfield.streams import closing

if TYPE_CHECKING:
    from jackfield.descriptors import ComponentSpec, ProcessorSpec

Phase = Literal["input", "context", "format", "transport", "output"]
"""The position in the chain, from the caller inwards, except `output`, which is outermost to see finished answers."""

CallNext: TypeAlias = Callable[[ChatRequest], AsyncIterator[ModelEvent]]


class Processor(Configured, ABC):
    """Wrapper around model calls. One instance serves all calls of a model, including concurrent calls.

    Keep the state of each call inside `around`. `config_class` defines the settings; see `Configured`.

    Attributes:
        name: The processor's name, unique within a chain. The `after` and `before` of other processors refer to it.
        phase: The processor's position in the chain.
        after, before: Names of processors in the same phase that must be outside (`after`) or inside (`before`) this
            processor.
        needs_text: True if the processor must see file contents, for example to hide values. PDFs are then sent as text
            even if the model accepts PDFs.
    """

    name: ClassVar[str]
    phase: ClassVar[Phase] = "context"
    after: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[tuple[str, ...]] = ()
    needs_text: ClassVar[bool] = False

    @abstractmethod
    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Handle the request. Usually, change the request, pass it to `call_next`, and yield the resulting events."""

    async def aclose(self) -> None:
        """Close all resources that calls opened. A later call reopens them."""

    @classmethod
    def factory_of(cls, target: Any, spec: ComponentSpec) -> Any:
        """Return the callable that creates a descriptor's processor. Plain functions are wrapped first."""
        from jackfield.descriptors import PostprocessorSpec, PreprocessorSpec  # an import of agents needs no plugin

        match spec:
            case PreprocessorSpec():
                return partial(FunctionPreprocessor, target, spec)
            case PostprocessorSpec():
                return partial(FunctionPostprocessor, target, spec)
        return target

    def wrap(self, call_next: CallNext) -> CallNext:
        """Bind `around` to the next element in the chain. The chain is composed only once."""

        def ask(request: ChatRequest) -> AsyncIterator[ModelEvent]:
            events = self.around(request, call_next)
            if not hasattr(events, "__aiter__"):
                raise _misfit(
                    self, "around", events, "yield events, or be a plain `def` that returns an async iterator of events"
                )
            return events

        return ask


class Preprocessor(Processor):
    """Processor that changes the request but not the stream, and adds no cost per event."""

    @abstractmethod
    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Return the request to send. If nothing changes, return the same object."""

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Send the prepared request."""
        prepared = self.prepare(request)
        if not isinstance(prepared, ChatRequest):
            raise _misfit(self, "prepare", prepared, "be a plain `def` that returns a ChatRequest")
        return call_next(prepared)


class StreamTransform(Protocol):
    """Protocol for rewriting a stream event by event.

    Text may be buffered, but no longer than until `ModelFinished`.
    """

    def feed(self, event: ModelEvent) -> Iterable[ModelEvent]:
        """Return the events that replace `event`. The result may be empty, or include `event` itself."""


class Postprocessor(Processor):
    """Processor that changes the stream but not the request."""

    phase: ClassVar[Phase] = "output"

    @abstractmethod
    def start(self, request: ChatRequest) -> StreamTransform:
        """Return a new transform for one answer."""

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Yield the rewritten stream."""
        return transformed(call_next(request), lambda: self.start(request))


async def transformed(
    events: AsyncIterator[ModelEvent], start: Callable[[], StreamTransform]
) -> AsyncIterator[ModelEvent]:
    """Rewrite a stream with a transform. After each `StreamReset`, start a new transform.

    Raises:
        BrokenPluginError: The transform returned something that is not iterable.
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
        except TypeError as error:  # checked only here, because checking each event would cost time
            if hasattr(passed_on, "__iter__"):
                raise
            name, got = type(transform).__qualname__, type(passed_on).__name__
            raise BrokenPluginError(
                f"{name}.feed returned an object of type {got}, but must yield events or return a list of events"
            ) from error


class FunctionPreprocessor(Preprocessor):
    """Processor created from a function that changes a request.

    Plugins provide such functions with `@hook.preprocessors`.
    """

    def __init__(self, function: Callable[[ChatRequest], ChatRequest], spec: ProcessorSpec) -> None:
        self.prepared = function
        _place(self, spec)

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Call the function with the request."""
        return self.prepared(request)


class FunctionPostprocessor(Postprocessor):
    """Processor created from a function that returns transforms.

    Plugins provide such functions with `@hook.postprocessors`.
    """

    def __init__(self, function: Callable[[ChatRequest], StreamTransform], spec: ProcessorSpec) -> None:
        self.started = function
        _place(self, spec)

    def start(self, request: ChatRequest) -> StreamTransform:
        """Call the function with the request to get a transform."""
        return self.started(request)


def _misfit(processor: Processor, method: str, result: object, duty: str) -> BrokenPluginError:
    """Return the error for a processor method that returned the wrong type."""
    if isinstance(result, Coroutine):
        result.close()  # otherwise Python warns that it was never awaited
    name, got = getattr(processor, "name", type(processor).__name__), type(result).__name__
    return BrokenPluginError(f"processor {name!r} returned an object of type {got} from `{method}`, which must {duty}")


def _place(processor: Processor, spec: ProcessorSpec) -> None:
    """Set instance attributes that other processors define on their class."""
    vars(processor).update(name=spec.name, phase=spec.phase, after=spec.after, before=spec.before)


class CallFormat(ABC):
    """Format for writing tool calls as text, for models without native tool calls.

    Formats parse incrementally and read each character once. If native calls arrive while a format is active, their
    deltas are forwarded, with indices that do not collide with the indices of calls in the text.
    """

    name: ClassVar[str]

    @abstractmethod
    def render(self, request: ChatRequest) -> ChatRequest:
        """Return the request without `functions`, and with its tools, calls and results written as text.

        This method is called for every request, even without functions, because the history may contain calls.
        """

    @abstractmethod
    def reader(self, request: ChatRequest) -> StreamTransform:
        """Return a transform that finds calls in an answer's text. `request` is the request before rendering."""


class CallFormatProcessor(Processor):
    """Processor that applies a call format."""

    name = "call_format"
    phase = "format"

    def __init__(self, call_format: CallFormat) -> None:
        self.call_format = call_format

    def around(self, request: ChatRequest, call_next: CallNext) -> AsyncIterator[ModelEvent]:
        """Render the request and parse the calls in the answer."""
        rendered = self.call_format.render(_with_media_noted(request))
        if not request.functions or request.config.function_choice == "none":
            return call_next(rendered)
        return transformed(call_next(rendered), lambda: self.call_format.reader(request))


def _with_media_noted(request: ChatRequest) -> ChatRequest:
    """Replace unsupported media in tool results with notes. Rendering makes the results look like user messages."""
    if not any(message.is_multimodal() for message in request.messages):
        return request
    return replace(request, messages=tuple(with_media_noted(message, request.facts) for message in request.messages))
