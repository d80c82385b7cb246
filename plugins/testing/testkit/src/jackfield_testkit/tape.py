"""Read and write cassettes: requests, events and errors as JSON, and the file format.

The file is one JSON object with each message, function and event on its own line, so that diffs are readable.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from jackfield import ChatRequest, ModelFacts, errors
from jackfield.errors import ConfigError, JackfieldError, ModelServiceError
from jackfield.events import FunctionCallDelta, ModelEvent, ModelFinished, ReasoningDelta, TextDelta
from jackfield.messages import Message
from jackfield.privatefiles import write_private
from jackfield_records.eventjson import event_to_json, model_event_from_json
from jackfield_testkit.redaction import Redaction, with_texts

VERSION = 2
_SHORT = 200  # in requests, longer media are replaced by their digest
_SURROGATE = re.compile("[\ud800-\udfff]")
# Options that only affect waiting or the caller do not change an answer, and headers contain API keys.
_LEFT_OUT = {
    "max_retries", "max_retry_delay", "request_timeout", "event_timeout", "deadline", "lang", "max_input_tokens",
    "extra_headers",
}  # fmt: skip
_ERROR_FACTS = ("backend", "code", "status", "retry_after_s", "request_id", "partial_text")
# Texts that are streamed, by the type of their events.
_IN_PIECES = {TextDelta.__name__: "text", ReasoningDelta.__name__: "text", FunctionCallDelta.__name__: "arguments"}
Json = dict[str, Any]


class CassetteError(JackfieldError):
    """A cassette cannot be read, or does not contain what was requested."""


@dataclass
class Call:
    """One request and its answer.

    Attributes:
        model: The model, as `backend:model`.
        request: The parts of the request that identify it.
        events: The events of the answer.
        error: The error that ended the answer, if any.
        left: True if the caller abandoned the answer.
        played: True if the answer was replayed.
    """

    model: str
    request: Json
    events: list[Json] = field(default_factory=list)
    error: Json | None = None
    left: bool = False
    played: bool = False

    @property
    def key(self) -> str:
        """The request's key."""
        return key_of(self.model, self.request)


def key_of(model: str, request: Json) -> str:
    """Return a request's key, which is the same for equivalent requests."""
    return json.dumps([model, request], sort_keys=True)


# --- requests -------------------------------------------------------------------------------------------------------


def request_json(request: ChatRequest, redaction: Redaction) -> Json:
    """Return the parts of a request that identify it: messages, functions and options."""
    config = request.config.model_dump(mode="json", exclude_defaults=True, exclude=_LEFT_OUT)
    asked: Json = {"messages": [_message_json(message) for message in request.messages]}
    if request.functions:
        asked["functions"] = [_plain(function) for function in request.functions]
    if config:
        asked["config"] = config
    redacted: Json = redaction.value(asked)
    return redacted


def _message_json(message: Message) -> Json:
    dumped = message.model_dump(mode="json", exclude={"extra"})
    dumped = {name: value for name, value in dumped.items() if value != ""}
    for name in ("content", "reasoning_content"):
        if isinstance(dumped.get(name), list):
            dumped[name] = [_item_json(item) for item in dumped[name]]
    return dumped | ({"function_id": message.function_id} if message.function_id else {})


def _item_json(item: Json) -> Json:
    return {kind: value if kind == "text" else with_texts(value, _by_content) for kind, value in item.items()}


def _by_content(text: str) -> str:
    """Identify a medium by its content and base name, independently of its directory and length."""
    if "://" not in text and not text.startswith("data:") and len(text) < 4096:
        path = Path(text)
        return f"{path.name} ({_digest(path.read_bytes())})" if path.is_file() else text
    return f"{text[:40]}… ({_digest(text.encode('utf-8', 'surrogatepass'))})" if len(text) > _SHORT else text


def _digest(content: bytes) -> str:
    return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()[:32]}"


def _plain(value: object) -> object:
    """Convert read-only mappings and tuples to plain JSON."""
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise CassetteError(f"{value!r:.100} cannot be recorded: not JSON-serializable") from None
    return value


# --- events ---------------------------------------------------------------------------------------------------------


def event_json(event: ModelEvent) -> Json:
    """Serialize an event as one object, omitting fields with default values.

    Raises:
        CassetteError: The event contains a value that JSON cannot represent.
    """
    try:
        return event_to_json(event, with_defaults=False)
    except ValueError as error:
        raise CassetteError(f"{event!r:.100} cannot be recorded: {error}") from error


def redact_events(events: Sequence[Json], redaction: Redaction) -> list[Json]:
    """Remove secrets from events, including secrets split across two events."""
    redacted = [redaction.value(event) for event in events]
    # The deltas of one kind form one text; each call has its own arguments.
    streams: dict[tuple[str, str, Any], list[int]] = {}
    for number, event in enumerate(events):
        name = _IN_PIECES.get(event["event"], "")
        if name in event:
            streams.setdefault((event["event"], name, event.get("index")), []).append(number)
    for (_, name, _), numbers in streams.items():
        pieces = redaction.pieces([events[number][name] for number in numbers])
        for number, piece in zip(numbers, pieces, strict=True):
            redacted[number][name] = piece
    return redacted


# --- errors ---------------------------------------------------------------------------------------------------------


def error_json(error: ModelServiceError, redaction: Redaction) -> Json:
    """Serialize an error with its facts. A plugin's error class is replaced by the core class it extends."""
    known = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == errors.__name__)
    facts = {name: getattr(error, name) for name in _ERROR_FACTS}
    entry = {"class": known, "message": error.message} | {k: v for k, v in facts.items() if v not in ("", None)}
    redacted: Json = redaction.value(entry)
    return redacted


def error_of(entry: Json) -> ModelServiceError:
    """Deserialize an error.

    Raises:
        ValueError: The object does not describe an error.
    """
    facts = dict(entry)
    name, message = facts.pop("class", None), facts.pop("message", "")
    error_class = getattr(errors, str(name), None)
    if not (isinstance(error_class, type) and issubclass(error_class, ModelServiceError)):
        raise ValueError(f"{name!r} is not a ModelServiceError of jackfield.errors")
    made: ModelServiceError = error_class(message, **facts)
    return made


# --- the file -------------------------------------------------------------------------------------------------------


def write_tape(path: Path, models: Mapping[str, ModelFacts], calls: Iterable[Call]) -> None:
    """Write a cassette atomically."""
    text = "\n".join(_lines(models, calls)) + "\n"
    # Models may send lone surrogates, which are invalid in UTF-8 but can be escaped in JSON.
    text = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    write_private(path, text)


def _lines(models: Mapping[str, ModelFacts], calls: Iterable[Call]) -> Iterator[str]:
    yield "{"
    yield f' "cassette": {VERSION},'
    yield ' "models": {'
    yield from _joined(f"  {_line(name)}: {_line(_told_facts(facts))}" for name, facts in sorted(models.items()))
    yield " },"
    yield ' "calls": ['
    yield from _joined("\n".join(_call_lines(call)) for call in calls)
    yield " ]"
    yield "}"


def _call_lines(call: Call) -> Iterator[str]:
    yield f'  {{"model": {_line(call.model)},'
    yield '   "request": {'
    yield from _joined(f"    {_line(name)}: {_entries(value, '     ')}" for name, value in call.request.items())
    yield "   },"
    ending = ['   "left": true'] if call.left else []
    ending += [f'   "error": {_line(call.error)}'] if call.error else []
    yield from _joined([f'   "events": {_entries(call.events, "    ")}', *ending])
    yield "  }"


def _entries(value: object, indent: str) -> str:
    """Format a list with one line per entry, and any other value on one line."""
    if not isinstance(value, list) or not value:
        return _line(value)
    return "[\n" + "\n".join(_joined(indent + _line(entry) for entry in value)) + "\n" + indent[1:] + "]"


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Add a comma to every line but the last."""
    waiting = None
    for line in lines:
        if waiting is not None:
            yield waiting + ","
        waiting = line
    if waiting is not None:
        yield waiting


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _told_facts(facts: ModelFacts) -> Json:
    default = asdict(ModelFacts())
    entry = {name: value for name, value in asdict(replace(facts, prices=())).items() if value != default[name]}
    rows = [row.model_dump(mode="json", exclude_defaults=True) for row in facts.prices]
    return {**entry, "prices": rows} if rows else entry


def read_tape(path: Path) -> tuple[dict[str, ModelFacts], list[Call]]:
    """Read a cassette.

    Raises:
        CassetteError: The cassette is missing, truncated, or contains an invalid entry, which the message names.
    """
    whole = _parsed(path)
    found = whole.get("cassette") if isinstance(whole, dict) else type(whole).__name__
    if found != VERSION:
        raise CassetteError(f"{path}: expected cassette version {VERSION}, found {found}; re-record the cassette")
    models = {name: _read_facts(path, name, entry) for name, entry in _section(path, whole, "models", dict).items()}
    calls = [_read_call(path, number, entry) for number, entry in enumerate(_section(path, whole, "calls", list), 1)]
    return models, calls


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CassetteError(f"no cassette {path}: record it with mode='record'") from None
    except json.JSONDecodeError as error:
        raise CassetteError(
            f"{path}, line {error.lineno}: the cassette is truncated or was edited incorrectly ({error.msg}); "
            f"fix that line, or re-record the cassette"
        ) from None
    except UnicodeDecodeError as error:
        raise CassetteError(f"{path} is not a cassette: not valid UTF-8 ({error})") from None


def _section(path: Path, whole: Json, name: str, wanted: type) -> Any:
    section = whole.get(name)
    if not isinstance(section, wanted):
        raise CassetteError(f"{path}: {name!r} must be a {wanted.__name__}, got {type(section).__name__}")
    return section


def _read_facts(path: Path, name: str, entry: object) -> ModelFacts:
    known = {one.name for one in fields(ModelFacts)}
    if not isinstance(entry, dict) or not known.issuperset(entry):
        raise CassetteError(f"{path}: the facts of model {name!r} may only contain {', '.join(sorted(known))}")
    if "prices" not in entry:
        return ModelFacts(**entry)
    from jackfield.prices import PriceRow

    what = f"{path}: the prices of model {name!r}"
    try:
        return ModelFacts(**{**entry, "prices": tuple(PriceRow.parse(row, what=what) for row in entry["prices"])})
    except (TypeError, ConfigError) as error:
        raise CassetteError(f"{what} are invalid: {error}") from None


def _read_call(path: Path, number: int, entry: Any) -> Call:
    where = f"{path}, call {number}"
    try:
        call = Call(**entry)
    except TypeError as error:
        raise CassetteError(f"{where}: must contain 'model', 'request' and 'events' ({error})") from None
    if [type(entry[name]) for name in ("model", "request")] != [str, dict] or type(call.events) is not list:
        raise CassetteError(f"{where}: 'model' must be a string, 'request' an object and 'events' a list")
    for place, event in enumerate(call.events, 1):
        _check(f"{where}, event {place}", event, model_event_from_json)
    if call.error is not None:
        _check(f"{where}, error", call.error, error_of)
    elif not call.left:
        _check_end(where, call)
    return call


def _check_end(where: str, call: Call) -> None:
    last = call.events[-1]["event"] if call.events else ""
    if last != ModelFinished.__name__:
        raise CassetteError(f"{where}: incomplete response: the last event must be 'ModelFinished', got {last!r}")


def _check(where: str, entry: Any, read: Any) -> None:
    try:
        read(entry)
    except (ValueError, TypeError, AttributeError) as error:
        raise CassetteError(f"{where}: {str(error).partition(chr(10))[0]}: {_line(entry)[:200]}") from None
