"""The spans of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import _logs as logs
from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from jackfield.events import ModelFinished, RunEvent, RunStarted, ToolFinished, TurnFinished
from jackfield.messages import FunctionCall, Usage
from jackfield.request import ChatRequest
from jackfield.work import Work
from jackfield_otel import names
from jackfield_otel.content import Content, as_attribute
from jackfield_otel.measuring import Instruments
from jackfield_otel.pauses import Pauses


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The destinations for spans, metrics and events, and the rules for texts."""

    tracer: Tracer
    instruments: Instruments
    logger: logs.Logger
    content: Content
    pauses: Pauses
    chunk_times: bool = False


class Inside:
    """Makes a context current. Entered and exited repeatedly, once per event."""

    __slots__ = ("_token", "context")

    _token: Any

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> None:
        self._token = contexts.attach(self.context)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not GeneratorExit:  # the garbage collector closes it, in another context
            contexts.detach(self._token)


class RunTrace:
    """The spans of a run, from its first to its last event.

    The root span is the agent's. Model requests and tool calls are its children, or children of the span of an agent
    that has taken over the conversation. All open spans end with the run.

    Attributes:
        inside: Makes the run's current span active. Entered around the run's work.
    """

    def __init__(
        self, event: RunEvent, started: RunStarted, agent: object, to: Telemetry, links: Sequence[Link]
    ) -> None:
        self._to, self._run_id, self._agent = to, event.run_id, event.agent
        self._model, self._provider = _model_of(agent)
        self._started = time.perf_counter()
        self._outer = contexts.get_current()
        attributes: dict[str, Any] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.AGENT_NAME: self._agent,
            names.RUN_ID: self._run_id,
            names.DEPTH: event.depth,
        }
        if self._model:
            attributes[names.REQUEST_MODEL], attributes[names.PROVIDER] = self._model, self._provider
        if description := getattr(agent, "description", ""):
            attributes[names.AGENT_DESCRIPTION] = str(description)
        self._root = to.tracer.start_span(
            f"{names.INVOKE_AGENT} {self._agent}",
            self._outer,
            SpanKind.INTERNAL,
            attributes,
            links,
        )
        if to.content.on_spans and self._root.is_recording():
            self._write(self._root, names.SYSTEM_INSTRUCTIONS, to.content.instructions(started.messages))
            self._write(self._root, names.INPUT_MESSAGES, to.content.input(started.messages))
        self._speaker: Span = self._root
        self._context = set_span_in_context(self._root, self._outer)
        self.inside = Inside(self._context)
        self._session = ""
        self._chat: _Chat | None = None
        self._calls: dict[str, _Call] = {}
        self._tools: frozenset[str] = frozenset(getattr(agent, "function_map", ()))
        self._waiting: list[str] = []

    # --- the run ---

    @property
    def is_sampled(self) -> bool:
        """True if the run's span is recorded and exported."""
        return self._root.get_span_context().trace_flags.sampled

    @property
    def root_context(self) -> Context:
        """The context that contains the run's span."""
        return set_span_in_context(self._root, self._outer)

    def note_session(self, session: str) -> None:
        """Record the conversation that the run belongs to."""
        if session and not self._session:
            self._session = session
            self._root.set_attribute(names.CONVERSATION, session)

    def hand_over(self, to: str) -> None:
        """Begin the span of an agent that takes over the conversation."""
        self._end_speaker()
        root = set_span_in_context(self._root, self._outer)
        attributes = {names.OPERATION: names.INVOKE_AGENT, names.AGENT_NAME: to, names.RUN_ID: self._run_id}
        self._agent = to
        self._speaker = self._to.tracer.start_span(f"{names.INVOKE_AGENT} {to}", root, SpanKind.INTERNAL, attributes)
        self._context = self.inside.context = set_span_in_context(self._speaker, self._outer)

    def note(self, event: str, **facts: str | int | float | bool) -> None:
        """Add an event to the current span."""
        span = self._speaker if self._chat is None else self._chat.span
        span.add_event(event, facts)

    def wait_for(self, keys: Sequence[str]) -> None:
        """Record the calls that the run is going to wait for."""
        self._waiting += keys

    def end(self, stop_reason: str, error: str, text: str, usage: Usage | None) -> None:
        """End all spans of the run.

        Args:
            stop_reason: The reason why the run ended.
            error: The class of the error that ended the run, or ''.
            text: The error's message.
            usage: The usage of all turns, or None if unknown.
        """
        cause = error or stop_reason
        if self._chat is not None:
            self._end_chat(self._chat, error=cause, text=text)
        for call_id in list(self._calls):
            self._end_call(self._calls.pop(call_id), cause)
        self._end_speaker()
        root = self._root
        root.set_attribute(names.STOP_REASON, stop_reason)
        if usage is not None:
            root.set_attributes(_usage_attributes(usage))
        if error:
            self._fail(root, error, text)
        if stop_reason != "finished":
            self._to.pauses.remember([self._run_id, *self._waiting], root.get_span_context())
        root.end()
        attributes = {
            names.OPERATION: names.INVOKE_AGENT,
            names.AGENT_NAME: self._agent,
            names.STOP_REASON: stop_reason,
        }
        if error:
            attributes[names.ERROR_TYPE] = error
        self._to.instruments.record_run(attributes, time.perf_counter() - self._started)

    def write_answer(self, messages: Sequence[Any], stop_reason: str) -> None:
        """Write the run's last answer to its span, if texts belong there."""
        if self._to.content.on_spans and self._root.is_recording():
            self._write(self._root, names.OUTPUT_MESSAGES, self._to.content.output(messages[-1:], stop_reason))

    def _end_speaker(self) -> None:
        if self._speaker is not self._root:
            self._speaker.end()
            self._speaker = self._root

    # --- answers ---

    def begin_turn(self) -> None:
        """Begin the span of a model request."""
        if self._chat is not None:  # the usual loop ends each turn, but other agent kinds may not
            self._end_chat(self._chat)
        attributes: dict[str, Any] = {
            names.OPERATION: names.CHAT,
            names.AGENT_NAME: self._agent,
            names.STREAM: True,
        }
        if self._model:
            attributes[names.REQUEST_MODEL], attributes[names.PROVIDER] = self._model, self._provider
        if self._session:
            attributes[names.CONVERSATION] = self._session
        span = self._to.tracer.start_span(
            f"{names.CHAT} {self._model}".rstrip(), self._context, SpanKind.CLIENT, attributes
        )
        self._chat = _Chat(span, time.perf_counter(), model=self._model, provider=self._provider)
        self.inside.context = set_span_in_context(span, self._context)

    def see_request(self, request: ChatRequest) -> None:
        """Record the request's attributes."""
        self._tools = frozenset(function["name"] for function in request.functions)
        chat = self._chat
        if chat is None:
            return
        backend, _, host = request.server.partition("@")
        provider = names.provider_of(backend) if backend else chat.provider
        attributes = _option_attributes(request)
        if (request.model, provider) != (chat.model, chat.provider):  # for an agent that has taken over
            chat.model, chat.provider = request.model, provider
            chat.span.update_name(f"{names.CHAT} {chat.model}".rstrip())
            attributes |= {names.REQUEST_MODEL: chat.model, names.PROVIDER: chat.provider}
        if host:
            chat.server = _server_attributes(host)
            attributes |= chat.server
        if self._to.content:
            chat.request = request
        if attributes:
            chat.span.set_attributes(attributes)

    def see_piece(self) -> None:
        """Record the arrival of a chunk of the answer."""
        chat = self._chat
        if chat is None:
            return
        if chat.first is None:
            chat.first = chat.last = time.perf_counter()
        elif self._to.chunk_times:
            now = time.perf_counter()
            chat.gaps.append(now - chat.last)
            chat.last = now

    def reset_answer(self) -> None:
        """Discard the chunk times so far, because the answer starts over."""
        if self._chat is not None:
            self._chat.first = None
            self._chat.gaps.clear()
        self.note(names.RESET_EVENT)

    def see_finish(self, finished: ModelFinished) -> None:
        """Record the end of an answer."""
        if self._chat is not None:
            self._chat.finished = finished

    def end_turn(self, turn: TurnFinished) -> None:
        """End the span of the model request."""
        if self._chat is not None:
            self._end_chat(self._chat, turn=turn)

    def _end_chat(self, chat: _Chat, *, turn: TurnFinished | None = None, error: str = "", text: str = "") -> None:
        self._chat, self.inside.context = None, self._context
        usage = Usage() if turn is None else turn.usage
        attributes = chat.response_attributes()
        if turn is not None:
            attributes |= _usage_attributes(usage)
        chat.span.set_attributes(attributes)
        self._write_chat(chat, turn, attributes)
        if error:
            self._fail(chat.span, error, text)
        chat.span.end()
        labels: dict[str, Any] = {
            names.OPERATION: names.CHAT, names.PROVIDER: chat.provider, names.REQUEST_MODEL: chat.model, **chat.server,
        }  # fmt: skip
        if names.RESPONSE_MODEL in attributes:
            labels[names.RESPONSE_MODEL] = attributes[names.RESPONSE_MODEL]
        if error:
            labels[names.ERROR_TYPE] = error
        self._to.instruments.record_answer(labels, time.perf_counter() - chat.started, chat.seconds_to_first(), usage)
        self._to.instruments.record_chunks(labels, chat.gaps)

    def _write_chat(self, chat: _Chat, turn: TurnFinished | None, facts: dict[str, Any]) -> None:
        """Write a request's and its answer's texts to spans and events, depending on the mode."""
        content, request = self._to.content, chat.request
        if request is None:
            return
        texts: dict[str, Any] = {
            names.SYSTEM_INSTRUCTIONS: content.instructions(request.messages),
            names.INPUT_MESSAGES: content.input(request.messages),
            names.TOOL_DEFINITIONS: content.definitions(request.functions),
        }
        if turn is not None:
            reason = "" if chat.finished is None else chat.finished.reason
            texts[names.OUTPUT_MESSAGES] = content.output(turn.messages, reason)
        if content.on_spans:
            for name, value in texts.items():
                self._write(chat.span, name, value)
        if content.on_events:
            attributes = {
                names.OPERATION: names.CHAT, names.PROVIDER: chat.provider, names.REQUEST_MODEL: chat.model, **facts,
            }  # fmt: skip
            attributes |= {name: value for name, value in texts.items() if value}
            context = set_span_in_context(chat.span, self._context)
            self._to.logger.emit(
                logs.LogRecord(
                    timestamp=time.time_ns(), context=context, event_name=names.DETAILS_EVENT, attributes=attributes
                )
            )

    # --- tools ---

    def inside_call(self, call_id: str, name: str) -> Inside:
        """Return a context in which a call's span is current. The call may begin before its `ToolStarted` is seen."""
        return Inside(set_span_in_context(self._call(call_id, name).span, self._context))

    def begin_call(self, call_id: str, call: FunctionCall) -> None:
        """Begin a call's span and record its arguments."""
        span = self._call(call_id, call.name).span
        if self._to.content.on_spans and span.is_recording():
            span.set_attribute(names.TOOL_ARGUMENTS, self._to.content.text(call.arguments))

    def end_call(self, result: ToolFinished) -> None:
        """End a call's span. A refused call has no span yet, so one is created."""
        call = self._calls.pop(result.call_id, None) or self._begin_call(result.call_id, result.message.name or "")
        if self._to.content.on_spans and call.span.is_recording():
            call.span.set_attribute(names.TOOL_RESULT, self._to.content.text(result.message.get_text_content()))
        self._end_call(call, result.error, result.message.get_text_content() if result.error else "")

    def _call(self, call_id: str, name: str) -> _Call:
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = self._begin_call(call_id, name)
        return call

    def _begin_call(self, call_id: str, name: str) -> _Call:
        tool = name if name in self._tools else names.UNKNOWN_TOOL
        attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: tool,
            names.TOOL_TYPE: "function",
            names.TOOL_CALL_ID: _exportable(call_id),
            names.AGENT_NAME: self._agent,
        }
        span = self._to.tracer.start_span(f"{names.EXECUTE_TOOL} {tool}", self._context, SpanKind.INTERNAL, attributes)
        return _Call(span, tool, time.perf_counter())

    def _end_call(self, call: _Call, error: str, text: str = "") -> None:
        labels = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: call.tool}
        if error:
            self._fail(call.span, error, text)
            labels[names.ERROR_TYPE] = error
        call.span.end()
        self._to.instruments.record_call(labels, time.perf_counter() - call.started)

    # --- searches ---

    def inside_search(self, work: Work) -> WorkSpan:
        """Return a context manager for a search's span."""
        query = work.facts.get("query")
        is_shown = self._to.content.on_spans and isinstance(query, str)
        return WorkSpan(
            work,
            self._to,
            name=f"{names.RETRIEVAL} {work.name}",
            kind=SpanKind.INTERNAL,
            labels={names.OPERATION: names.RETRIEVAL, names.DATA_SOURCE: work.name},
            more={names.QUERY_TEXT: self._to.content.text(str(query))} if is_shown else {},
            results={"passages": names.PASSAGES, "documents": names.DOCUMENTS},
        )

    def inside_embedding(self, work: Work) -> WorkSpan:
        """Return a context manager for the span of a request to an embedder."""
        model, texts = _exportable(str(work.facts.get("model", ""))), work.facts.get("texts")
        return WorkSpan(
            work,
            self._to,
            name=f"{names.EMBEDDINGS} {model}".rstrip(),
            kind=SpanKind.CLIENT,
            labels={
                names.OPERATION: names.EMBEDDINGS,
                names.PROVIDER: names.provider_of(work.name),
                names.REQUEST_MODEL: model,
            },
            more={names.TEXTS: texts} if isinstance(texts, int) else {},
            results={"dimension": names.DIMENSION, "prompt_tokens": names.INPUT_TOKENS},
        )

    # --- parts ---

    def _write(self, span: Span, name: str, value: list[Any]) -> None:
        if value:
            span.set_attribute(name, as_attribute(value))

    def _fail(self, span: Span, error: str, text: str) -> None:
        """Mark a span as failed. The error's message may quote the conversation, so it counts as content."""
        _fail(span, error, text, self._to.content)


class WorkSpan:
    """Wraps work in a span and measures it.

    Args:
        work: The work.
        to: The destinations.
        name, kind: The span's name and kind.
        labels: Attributes of both the span and its metrics.
        more: Additional attributes of the span only.
        results: The attributes for values that the work adds to its `facts`, keyed by fact.
    """

    __slots__ = ("_inside", "_kind", "_labels", "_more", "_name", "_results", "_span", "_started", "_to", "_work")

    _span: Span
    _inside: Inside
    _started: float

    def __init__(
        self,
        work: Work,
        to: Telemetry,
        *,
        name: str,
        kind: SpanKind,
        labels: Mapping[str, str],
        more: Mapping[str, str | int],
        results: Mapping[str, str],
    ) -> None:
        self._work, self._to = work, to
        self._name, self._kind, self._labels, self._more, self._results = name, kind, labels, more, results

    def __enter__(self) -> None:
        self._started = time.perf_counter()
        attributes = {**self._labels, **self._more}
        self._span = self._to.tracer.start_span(self._name, None, self._kind, attributes)
        self._inside = Inside(set_span_in_context(self._span))
        self._inside.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside.__exit__(kind, error, trace)
        for fact, attribute in self._results.items():
            value = self._work.facts.get(fact)
            if isinstance(value, int):
                self._span.set_attribute(attribute, value)
        labels = dict(self._labels)
        if error is not None:
            labels[names.ERROR_TYPE] = type(error).__name__
            _fail(self._span, type(error).__name__, str(error), self._to.content)
        self._span.end()
        tokens = self._work.facts.get("prompt_tokens")
        usage = Usage(prompt_tokens=tokens if isinstance(tokens, int) else 0)
        self._to.instruments.record_answer(labels, time.perf_counter() - self._started, None, usage)


@dataclass(slots=True)
class _Chat:
    """A model request in progress. Times are performance counter values, in seconds."""

    span: Span
    started: float
    model: str
    provider: str
    server: dict[str, Any]
    first: float | None
    last: float
    gaps: list[float]
    finished: ModelFinished | None
    request: ChatRequest | None

    def __init__(self, span: Span, started: float, *, model: str, provider: str) -> None:
        self.span, self.started, self.model, self.provider = span, started, model, provider
        self.server, self.first, self.finished, self.request = {}, None, None, None
        self.last, self.gaps = 0.0, []

    def seconds_to_first(self) -> float | None:
        return None if self.first is None else self.first - self.started

    def response_attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        first_s = self.seconds_to_first()
        if first_s is not None:
            attributes[names.TIME_TO_FIRST_CHUNK] = first_s
        if self.finished is not None:
            attributes[names.FINISH_REASONS] = [self.finished.reason]
            if self.finished.model:
                attributes[names.RESPONSE_MODEL] = _exportable(self.finished.model)
            if self.finished.response_id:
                attributes[names.RESPONSE_ID] = _exportable(self.finished.response_id)
        return attributes


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool call in progress."""

    span: Span
    tool: str
    started: float


def _model_of(agent: object) -> tuple[str, str]:
    """Return an agent's model and provider, or '' for both if it has none."""
    llm = getattr(agent, "llm", None)
    if llm is None:
        return "", ""
    return str(llm.config.model), names.provider_of(str(llm.backend))


def _server_attributes(host: str) -> dict[str, Any]:
    parts = urlsplit(f"//{host}")
    try:
        port = parts.port
    except ValueError:
        port = None
    attributes: dict[str, Any] = {names.SERVER_ADDRESS: parts.hostname or host}
    return attributes if port is None else {**attributes, names.SERVER_PORT: port}


def _option_attributes(request: ChatRequest) -> dict[str, Any]:
    config = request.config
    options = {
        names.TEMPERATURE: config.temperature,
        names.TOP_P: config.top_p,
        names.TOP_K: config.top_k,
        names.MAX_TOKENS: config.max_tokens,
        names.SEED: config.seed,
        names.FREQUENCY_PENALTY: config.frequency_penalty,
        names.PRESENCE_PENALTY: config.presence_penalty,
        names.REASONING_LEVEL: config.reasoning_effort,
        names.STOP_SEQUENCES: list(config.stop) or None,
        names.OUTPUT_TYPE: "json" if config.response_format else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _usage_attributes(usage: Usage) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        names.INPUT_TOKENS: usage.prompt_tokens,
        names.OUTPUT_TOKENS: usage.completion_tokens,
    }
    if usage.cached_tokens:
        attributes[names.CACHE_READ_TOKENS] = usage.cached_tokens
    if usage.cache_write_tokens:
        attributes[names.CACHE_WRITE_TOKENS] = usage.cache_write_tokens
    if usage.reasoning_tokens:
        attributes[names.REASONING_TOKENS] = usage.reasoning_tokens
    if usage.cost is not None:
        attributes[names.COST], attributes[names.CURRENCY] = float(usage.cost), usage.currency or ""
    return attributes


def _fail(span: Span, error: str, text: str, content: Content) -> None:
    span.set_attribute(names.ERROR_TYPE, error)
    span.set_status(Status(StatusCode.ERROR, content.text(text) if content.on_spans and text else None))


def _exportable(text: str) -> str:
    """Return a text that can be exported. A lone surrogate would make the whole batch fail."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
