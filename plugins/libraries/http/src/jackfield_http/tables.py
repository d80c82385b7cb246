"""Backends for protocols of JSON objects, described by tables.

`TableReader` has the tables for answers, `TableBackend` those for requests; only the history needs code.
A path leads to a value in an object: `choices.0.delta.content`.
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
"""A path, or several of which the first that leads to a value counts; '' for none."""

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
    """The places of a tool call, or of a piece of one.

    Attributes:
        calls: The path of a list of calls, or of a single one; '' if the object itself is one.
        index, id, name, arguments: Paths inside a call.
    """

    calls: Paths = ""
    index: Paths = "index"
    id: Paths = "id"
    name: Paths = "name"
    arguments: Paths = "arguments"


@dataclass(frozen=True, slots=True)
class UsageKeys:
    """The places of the token counts; see `Usage`. A missing total is the sum of prompt and completion."""

    prompt_tokens: Paths = ""
    completion_tokens: Paths = ""
    total_tokens: Paths = ""
    cached_tokens: Paths = ""
    cache_write_tokens: Paths = ""
    reasoning_tokens: Paths = ""


@dataclass(frozen=True, slots=True)
class ErrorKeys:
    """The places of an error in a refusal or in an answer.

    Attributes:
        error: The path of the error in an object. An answer has none there.
        message, code: Paths inside the error.
        classes: The classes of the codes that say more than the HTTP status.
    """

    error: Paths = "error"
    message: Paths = "message"
    code: Paths = "code"
    classes: Mapping[str, ErrorClass] = field(default_factory=dict)

    def refused(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """Return the error for a response with a status other than 2xx."""
        try:
            wire = json_value(body)
        except ValueError:  # such as a proxy's page
            wire = body.decode("utf-8", "replace")
        code, message = self._code_and_message(value_at(wire, self.error) or wire)
        error_class = self.classes.get(code) or class_of_status(status)
        return failures.refused(error_class, message, status=status, code=code)

    def in_answer(self, failures: Failures, error: object) -> ModelServiceError:
        """Return the error that arrived instead of the rest of an answer."""
        code, message = self._code_and_message(error)
        return failures.in_answer(self.classes.get(code, ModelOverloadedError), message, code=code)

    def _code_and_message(self, error: object) -> tuple[str, str]:
        if not isinstance(error, Mapping):
            return "", str(error)
        return str(value_at(error, self.code) or ""), str(value_at(error, self.message) or "")


@dataclass(frozen=True, slots=True)
class AnswerKeys:
    """The places of the parts of an answer in one object of it. An object has any of them, or none.

    Attributes:
        text, reasoning: The next piece of each.
        calls: The next pieces of tool calls.
        parts: A list of objects that are read like those of a stream.
        reason: The provider's word for why the answer ended.
        usage: The token counts.
        model, id, created: The model, the id and the Unix time of the answer.
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
    """Reads answers by tables. Override `read_object` for objects that no table can describe.

    Attributes:
        kind: The key whose value says which table describes an object; '' if `answers` has a single table.
        answers: The tables, by the value at `kind`; `""` for objects without that key. Objects of other kinds are
            ignored, because protocols grow.
        whole_answer: The table of an answer that is one object; None for the same tables.
        reasons: Jackfield's word for each reason why an answer ends; any other reason is `other`.
        errors: The places of errors.
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
        """True once a reason for the end has arrived."""
        return bool(self._reason)

    def read_object(self, wire: Wire, keys: AnswerKeys) -> list[ModelEvent]:
        """Return the events of one object of a stream, or of one part of an object."""
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
    """A model behind a protocol that tables describe. A backend defines the attributes and `body`.

    Attributes:
        base_url: The provider's address; a configuration may name another.
        path: The path of the endpoint, after the base URL.
        key_header: The header that carries the API key, with its value: `x-acme-key: {key}`.
        answer_reader: The reader of the answers and errors.
        options: The place of each option of Jackfield in the body. A request with any other option is refused.
    """

    base_url: ClassVar[str]
    path: ClassVar[str]
    key_header: ClassVar[str] = "authorization: Bearer {key}"
    answer_reader: ClassVar[type[TableReader]]
    options: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def body(self, request: ChatRequest) -> Wire:
        """Return the body of a request without the options: the model, the history, the tools, and `stream`."""

    def server(self) -> Server:
        """See `HTTPBackend`; the server needs a key."""
        url = self.configured_url() or self.base_url
        key = self.find_key(url, needed=True)
        name, _, value = self.key_header.partition(": ")
        return Server(url + self.path, {name: value.format(key=key.value)}, key)

    def post(self, request: ChatRequest, _: Server) -> Post:
        """Build the request: the body, the options in their places, and `extra_body`.

        Raises:
            UnsupportedInputError: The protocol has no place for an option.
        """
        body = self.body(request)
        for option, value in _options_of(request).items():
            if option not in self.options:
                raise UnsupportedInputError(f"{self.backend} has no {option}: leave it out for this model")
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
    """Return the value at the first path that leads to one; None without any."""
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
        raise TypeError(f"the text at {paths} is {type(text).__name__}")
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
