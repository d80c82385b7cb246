"""Build backends for JSON protocols from declarative tables.

`TableReader` has the tables for responses, `TableBackend` those for requests; only the history needs code. A path leads
to a value in an object: `choices.0.delta.content`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from jackfield.errors import ModelOverloadedError, ModelServiceError, UnsupportedInputError
from jackfield.events import ModelEvent, ModelFinished, ReasoningDelta, TextDelta, UsageReported
from jackfield.messages import FINISH_REASONS, FinishReason, Usage
from jackfield.request import ChatRequest
from jackfield_http.answers import AnswerReader, Wire, arguments_of, count_of
from jackfield_http.backend import Exchange, HTTPBackend
from jackfield_http.calls import Calls
from jackfield_http.failures import ErrorClass, Failures, class_of_status
from jackfield_http.jsonbytes import json_bytes, json_value
from jackfield_http.server import Post, Server

Paths: TypeAlias = str | tuple[str, ...]
"""A path, or several, of which the first that leads to a value is used. '' for none."""

_OPTIONS = (
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "max_tokens",
    "seed",
    "reasoning_effort",
    "response_format",
)


@dataclass(frozen=True, slots=True)
class CallKeys:
    """The paths of a tool call or a fragment of one.

    Attributes:
        calls: The path of a call or a list of calls, or '' if the object itself is a call.
        index, id, name, arguments: Paths within a call.
    """

    calls: Paths = ""
    index: Paths = "index"
    id: Paths = "id"
    name: Paths = "name"
    arguments: Paths = "arguments"


@dataclass(frozen=True, slots=True)
class UsageKeys:
    """The paths of the token counts; see `Usage`. A missing total is computed as prompt plus completion."""

    prompt_tokens: Paths = ""
    completion_tokens: Paths = ""
    total_tokens: Paths = ""
    cached_tokens: Paths = ""
    cache_write_tokens: Paths = ""
    reasoning_tokens: Paths = ""


@dataclass(frozen=True, slots=True)
class ErrorKeys:
    """The paths of an error in a refusal or in a response.

    Attributes:
        error: The path of the error object, which is absent from successful responses.
        message, code: Paths within the error.
        classes: Error classes by code, for codes that are more specific than the HTTP status.
    """

    error: Paths = "error"
    message: Paths = "message"
    code: Paths = "code"
    classes: Mapping[str, ErrorClass] = field(default_factory=dict)

    def refused(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """Return the error for a response with a non-2xx status."""
        try:
            wire = json_value(body)
        except ValueError:  # such as a proxy's page
            wire = body.decode("utf-8", "replace")
        code, message = self._code_and_message(value_at(wire, self.error) or wire)
        error_class = self.classes.get(code) or class_of_status(status)
        return failures.refused(error_class, message, status=status, code=code)

    def in_answer(self, failures: Failures, error: object) -> ModelServiceError:
        """Return the error that arrived in place of the rest of an answer."""
        code, message = self._code_and_message(error)
        return failures.in_answer(self.classes.get(code, ModelOverloadedError), message, code=code)

    def _code_and_message(self, error: object) -> tuple[str, str]:
        if not isinstance(error, Mapping):
            return "", str(error)
        return str(value_at(error, self.code) or ""), str(value_at(error, self.message) or "")


@dataclass(frozen=True, slots=True)
class AnswerKeys:
    """The paths of an answer's parts in one response object, which may have any of them or none.

    Attributes:
        text, reasoning: The next fragment of each.
        calls: The next fragments of tool calls.
        parts: A list of objects to be read like those of a stream.
        reason: The provider's finish reason.
        usage: The token counts.
        model, id, created: The answer's model, id and Unix time.
    """

    text: Paths = ""
    reasoning: Paths = ""
    calls: CallKeys | None = None
    parts: Paths = ""
    reason: Paths = ""
    usage: UsageKeys | None = None
    model: Paths = ""
    id: Paths = ""
    created: Paths = ""


class TableReader(AnswerReader):
    """Reads responses as described by tables. Override `read_object` for objects that no table can describe.

    Attributes:
        kind: The key whose value selects an object's table, or '' if `answers` has a single table.
        answers: The tables by value of `kind`, with `""` for objects without that key. Objects of other kinds are
            ignored, because protocols grow.
        whole_answer: The table for a response that is a single object. None to use `answers`.
        reasons: Jackfield's finish reason for each of the provider's. Any other reason becomes `other`.
        errors: The paths of errors.
    """

    kind: ClassVar[str] = ""
    answers: ClassVar[Mapping[str, AnswerKeys]]
    whole_answer: ClassVar[AnswerKeys | None] = None
    reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType({reason: reason for reason in FINISH_REASONS})
    errors: ClassVar[ErrorKeys] = ErrorKeys()
    _has_usage: ClassVar[bool]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        tables = [*cls.answers.values(), *([cls.whole_answer] if cls.whole_answer else [])]
        paths: list[Paths] = [path for keys in tables for path in (keys.text, keys.reasoning)]
        paths += [keys.calls.arguments for keys in tables if keys.calls]
        cls.texts = frozenset(path.rpartition(".")[2] for each in paths for path in _each(each))
        cls._has_usage = any(keys.usage for keys in tables)

    def __init__(self, failures: Failures, *, patience_s: float | None = None) -> None:
        super().__init__(failures, patience_s=patience_s)
        self._calls = Calls()
        self._counts: dict[str, Any] = {}
        self._reason = ""
        self._model = ""
        self._id: str | None = None
        self._created: int | None = None

    @property
    def complete(self) -> bool:
        """True once a finish reason has arrived."""
        return bool(self._reason)

    def read_object(self, wire: Wire, keys: AnswerKeys) -> list[ModelEvent]:
        """Return the events for one object of a stream, or one part of an object."""
        events: list[ModelEvent] = []
        if reasoning := _text_at(wire, keys.reasoning):
            events.append(ReasoningDelta(reasoning))
        if text := _text_at(wire, keys.text):
            events.append(TextDelta(text))
        if keys.calls is not None:
            calls = value_at(wire, keys.calls.calls) if keys.calls.calls else wire
            events += [self._call(call, keys.calls) for call in (calls if isinstance(calls, list) else [calls]) if call]
        for part in value_at(wire, keys.parts) or ():
            events += self._read_part(part)
        self._note_end(wire, keys)
        return events

    def read_event(self, wire: Wire) -> list[ModelEvent]:
        if error := value_at(wire, self.errors.error):
            raise self.errors.in_answer(self.failures, error)
        events = self._read_part(wire)
        if self.end_mark is None and self._reason and (self._counts or not self._has_usage):
            self.done = True
        return events

    def read_whole(self, wire: Wire) -> list[ModelEvent]:
        if self.whole_answer is None or value_at(wire, self.errors.error):
            return self.read_event(wire)
        return self.read_object(wire, self.whole_answer)

    def last_events(self) -> Iterator[ModelEvent]:
        if self._counts:
            total = self._counts.get("prompt_tokens", 0) + self._counts.get("completion_tokens", 0)
            yield UsageReported(Usage(**{"total_tokens": total, **self._counts}))
        reason = self.reasons.get(self._reason, "other")
        yield ModelFinished(reason, self._model, self._id, self._created, provider_reason=self._reason)

    def _read_part(self, wire: Wire) -> list[ModelEvent]:
        kind = str(wire.get(self.kind, ""))
        keys = self.answers.get(kind)
        if keys is not None:
            return self.read_object(wire, keys)
        if not kind:
            raise ValueError(f"an object without {self.kind!r}")
        return []

    def _call(self, call: Wire, keys: CallKeys) -> ModelEvent:
        call_id, name = str(value_at(call, keys.id) or ""), str(value_at(call, keys.name) or "")
        arguments = arguments_of(value_at(call, keys.arguments))
        return self._calls.add_piece(value_at(call, keys.index), call_id, name, arguments)

    def _note_end(self, wire: Wire, keys: AnswerKeys) -> None:
        self._reason = str(value_at(wire, keys.reason) or self._reason)
        self._model = str(value_at(wire, keys.model) or self._model)
        self._id = value_at(wire, keys.id) or self._id
        self._created = count_of(value_at(wire, keys.created)) or self._created
        if keys.usage is not None:
            for count in fields(keys.usage):
                value = value_at(wire, getattr(keys.usage, count.name))
                if value is not None:
                    self._counts[count.name] = count_of(value)


class TableBackend(HTTPBackend[Server]):
    """A model behind a protocol that tables describe. Subclasses define the attributes and `body`.

    Attributes:
        base_url: The provider's address, which a configuration may override.
        path: The endpoint's path, after the base URL.
        key_header: The header that carries the API key, with its value: `x-acme-key: {key}`.
        answer_reader: The reader for responses and errors.
        options: The path of each Jackfield option in the body. Requests with any other option are refused.
    """

    base_url: ClassVar[str]
    path: ClassVar[str]
    key_header: ClassVar[str] = "authorization: Bearer {key}"
    answer_reader: ClassVar[type[TableReader]]
    options: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def body(self, request: ChatRequest) -> Wire:
        """Return the request body without the options: the model, the history, the tools, and `stream`."""

    def server(self) -> Server:
        """See `HTTPBackend`. The server requires a key."""
        url = self.configured_url() or self.base_url
        key = self.find_key(url, needed=True)
        name, _, value = self.key_header.partition(": ")
        return Server(url + self.path, {name: value.format(key=key.value)}, key)

    def post(self, request: ChatRequest, _: Server) -> Post:
        """Build the request from the body, the options at their paths, and `extra_body`.

        Raises:
            UnsupportedInputError: The protocol does not support an option.
        """
        body = self.body(request)
        for option, value in _options_of(request).items():
            if option not in self.options:
                raise UnsupportedInputError(f"{self.backend} does not support {option}: remove it for this model")
            _put(body, self.options[option], value)
        if "stop" in self.options and request.config.stop and request.config.send_stop:
            _put(body, self.options["stop"], list(request.config.stop))  # else Jackfield itself cuts the answer there
        return Post(json_bytes(body | request.config.extra_body))

    def reader(self, exchange: Exchange[Server]) -> TableReader:
        """See `HTTPBackend`."""
        return self.answer_reader(exchange.failures, patience_s=exchange.patience_s)

    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """See `HTTPBackend`."""
        return self.answer_reader.errors.refused(failures, status, body)


def value_at(wire: object, paths: Paths) -> Any:
    """Return the value at the first path that has one, else None."""
    for path in _each(paths):
        value = wire
        for key in path.split("."):
            if isinstance(value, Mapping):
                value = value.get(key)
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            else:
                value = None
        if value is not None:
            return value
    return None


def _each(paths: Paths) -> tuple[str, ...]:
    if isinstance(paths, str):
        return (paths,) if paths else ()
    return paths


def _text_at(wire: Wire, paths: Paths) -> str:
    text = value_at(wire, paths)
    if text is not None and not isinstance(text, str):
        raise TypeError(f"expected a string at {paths}, got {type(text).__name__}")
    return text or ""


def _options_of(request: ChatRequest) -> dict[str, object]:
    """Return the options that are set, except for `stop`."""
    config = request.config
    names = (*_OPTIONS, "parallel_function_calls") if request.functions else _OPTIONS
    return {name: getattr(config, name) for name in names if getattr(config, name) is not None}


def _put(body: Wire, path: str, value: object) -> None:
    *parents, key = path.split(".")
    for parent in parents:
        body = body.setdefault(parent, {})
    body[key] = value
