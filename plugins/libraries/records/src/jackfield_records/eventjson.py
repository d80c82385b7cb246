"""Convert events to JSON and back.

An event is an object in which `event` is its class name and every other key is one of its fields. In a run, the event's
position comes first: `run_id`, `number`, `agent`, `depth`. `jackfield run --events` prints this format, and answer
caches store it.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from jackfield.events import AgentEvent, ModelEvent, RunEvent
from jackfield.messages import Message

Json: TypeAlias = dict[str, Any]
Event: TypeAlias = ModelEvent | AgentEvent

_PLACE = ("run_id", "number", "agent", "depth")


def event_to_json(event: Event, *, with_defaults: bool = True) -> Json:
    """Convert an event to a JSON object.

    Args:
        event: Any model or run event.
        with_defaults: True to include fields that have their default value.

    Raises:
        ValueError: The event contains a value that JSON cannot represent, such as in a plugin's `data` or `metadata`.
    """
    kind: type = type(event)
    json_event: Json = {"event": kind.__name__}
    for name, default in _fields_of(kind):
        value = getattr(event, name)
        if with_defaults or value != default:
            json_event[name] = value if type(value) is str else value_to_json(value)
    return json_event


def run_event_to_json(event: RunEvent) -> Json:
    """Convert a run's event, including its position, to a JSON object.

    Raises:
        ValueError: The event contains a value that JSON cannot represent.
    """
    return {name: getattr(event, name) for name in _PLACE} | event_to_json(event.event)


def value_to_json(value: object) -> object:
    """Convert a field's value to JSON types. Tuples become lists.

    Raises:
        ValueError: The value would be read back differently.
    """
    match value:
        case None | str() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case BaseModel():
            return value_to_json(value.model_dump(mode="json"))
        case list() | tuple():
            return [value_to_json(entry) for entry in value]
        case Mapping() if all(isinstance(name, str) for name in value):
            return {name: value_to_json(entry) for name, entry in value.items()}
    raise ValueError(f"a value of type {type(value).__name__} cannot be serialized as JSON")


def model_event_from_json(value: object) -> ModelEvent:
    """Convert a JSON object to a model event. Missing fields get their defaults.

    Raises:
        ValueError: The object is not a model event: its name, a field or a value's type is unknown.
    """
    event: ModelEvent = _read(value, _model_events())
    return event


def event_from_json(value: object) -> Event:
    """Convert a JSON object to a model or run event. Missing fields get their defaults.

    Raises:
        ValueError: The object is not an event: its name, a field or a value's type is unknown.
    """
    event: Event = _read(value, _all_events())
    return event


def run_event_from_json(value: object) -> RunEvent:
    """Convert a JSON object that includes a position to a run's event.

    Raises:
        ValueError: The object is not an event, or has no position.
    """
    rest = _object(value).copy()
    place = {name: rest.pop(name) for name in _PLACE if name in rest}
    event: RunEvent = _made(_kind(RunEvent), {**place, "event": rest})
    return event


def messages_from_json(value: object) -> tuple[Message, ...]:
    """Convert a list of JSON objects to messages.

    Raises:
        ValueError: The value is not a list of messages.
    """
    try:
        return tuple(Message(**_object(entry)) for entry in _list(value))
    except TypeError as error:  # a field named `self`
        raise ValueError(f"expected a message: {error}") from error


# --- writing ----------------------------------------------------------------------------------------------------------


@cache
def _fields_of(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return the names of an event's fields, each with its default or MISSING."""
    if kind is RunEvent:  # a named tuple, whose fields are all required
        return tuple((name, MISSING) for name in RunEvent._fields)
    return tuple(
        (field.name, field.default if field.default_factory is MISSING else field.default_factory())
        for field in fields(kind)
    )


# --- reading ----------------------------------------------------------------------------------------------------------

_Reader: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Kind:
    """An event class and the readers for its fields."""

    made: type
    readers: Mapping[str, _Reader]


@cache
def _model_events() -> dict[str, _Kind]:
    return {kind.__name__: _kind(kind) for kind in get_args(ModelEvent)}


@cache
def _all_events() -> dict[str, _Kind]:
    return _model_events() | {kind.__name__: _kind(kind) for kind in get_args(AgentEvent)}


@cache
def _kind(made: type) -> _Kind:
    return _Kind(made, {name: _reader(hint) for name, hint in get_type_hints(made).items()})


def _read(value: object, kinds: Mapping[str, _Kind]) -> Any:
    rest = _object(value).copy()
    name = rest.pop("event", None)
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"{name!r} is not a known event; available: {', '.join(kinds)}")
    return _made(kind, rest)


def _made(kind: _Kind, values: Json) -> Any:
    readers = kind.readers
    try:
        return kind.made(**{name: readers[name](value) for name, value in values.items()})
    except (KeyError, ValueError, TypeError) as error:
        # Looked up only now, because a cache hit may mean reading thousands of events.
        raise ValueError(_what_is_wrong(kind, values)) from error


def _what_is_wrong(kind: _Kind, values: Json) -> str:
    its_name = kind.made.__name__
    for name, value in values.items():
        if name not in kind.readers:
            return f"{its_name} has no field {name!r}; its fields are {', '.join(kind.readers)}"
        try:
            kind.readers[name](value)
        except ValueError as error:
            return f"{name!r} of {its_name}: {error}"
    missing = [repr(name) for name, default in _fields_of(kind.made) if default is MISSING and name not in values]
    return f"{its_name} needs {', '.join(missing)}"


def _reader(hint: object) -> _Reader:
    """Return the function that reads a field of this type.

    Raises:
        KeyError: A new event has a field type without a reader.
    """
    if hint == Event:
        return event_from_json
    if made := _OF_ORIGIN.get(get_origin(hint)):
        return made(*get_args(hint))
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return lambda value: hint(**_object(value))
    return _SCALARS[hint]


def _several_of(entries: object, _any_length: object) -> _Reader:
    read = _reader(entries)
    return lambda value: tuple(map(read, _list(value)))


def _optional(hint: object, _nothing_else: type[None]) -> _Reader:
    read = _reader(hint)
    return lambda value: None if value is None else read(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a string, got {_said(value)}")
    return value


def _whole_number(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"expected an integer, got {_said(value)}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {_said(value)}")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"expected a number, got {_said(value)}")
    return float(value)


def _word(value: object, words: tuple[str, ...]) -> str:
    for word in words:
        if value == word:
            return word
    raise ValueError(f"expected one of {', '.join(words)}, got {_said(value)}")


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {_said(value)}")
    return value


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {_said(value)}")
    return value


def _said(value: Any) -> str:
    return f"{value!r:.60}"


_SCALARS: dict[Any, _Reader] = {str: _text, int: _whole_number, float: _number, bool: _flag}
_OF_ORIGIN: Mapping[Any, Callable[..., _Reader]] = {
    Literal: lambda *words: lambda value: _word(value, words),
    Mapping: lambda *_: _object,
    types.UnionType: _optional,
    tuple: _several_of,
}
