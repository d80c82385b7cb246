"""The events of an answer as bytes, and back.

A list of lists, the first entry of which says the kind. There is nothing in it but JSON: reading a file that somebody
else has written runs no code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from jackfield.events import (
    FunctionCallDelta,
    HistoryTrimmed,
    MediaDelta,
    ModelEvent,
    ModelFinished,
    PluginEvent,
    ReasoningDelta,
    RetryScheduled,
    StreamReset,
    TextDelta,
    UsageReported,
)
from jackfield.messages import FINISH_REASONS, ContentItem, Usage


def encode(events: Iterable[ModelEvent]) -> bytes:
    """The events as bytes.

    Raises:
        ValueError: An event holds what JSON cannot, or is of a kind that is not known here.
    """
    try:
        return json.dumps([_written(event) for event in events], separators=(",", ":")).encode("ascii")
    except (TypeError, RecursionError) as error:
        raise ValueError(f"an event is no JSON: {error}") from error


def decode(content: bytes) -> list[ModelEvent]:
    """The events that `encode` wrote.

    Raises:
        ValueError: These are no events.
    """
    try:
        return [_read(*entry) for entry in json.loads(content)]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        # What is wrong may quote the conversation, and this text is logged.
        raise ValueError(f"these are no events ({type(error).__name__})") from error


def _written(event: ModelEvent) -> list[Any]:  # noqa: C901 - one case for each event
    match event:
        case TextDelta(text):
            return ["text", text]
        case FunctionCallDelta():
            return ["call", event.index, event.id, event.name, event.arguments]
        case ReasoningDelta(text):
            return ["reasoning", text]
        case MediaDelta(item):
            return ["media", item.model_dump(mode="json")]
        case UsageReported(usage):
            return ["usage", usage.model_dump(mode="json")]
        case ModelFinished():
            head = ["finished", event.reason, event.model, event.response_id, event.created]
            return [*head, _plain(event.data), event.provider_reason]
        case RetryScheduled():
            return ["retry", event.attempt, event.delay_s, event.error]
        case StreamReset(reason):
            return ["reset", reason]
        case HistoryTrimmed():
            return ["trimmed", event.dropped, event.shortened, event.tokens_before, event.tokens_after]
        case PluginEvent():
            return ["plugin", event.name, _plain(event.data)]
    raise ValueError(f"an event of type {type(event).__name__} is not known")


def _read(kind: str, *values: Any) -> ModelEvent:  # noqa: C901 - as above
    match kind:
        case "text":
            return TextDelta(*values)
        case "call":
            return FunctionCallDelta(*values)
        case "reasoning":
            return ReasoningDelta(*values)
        case "media":
            return MediaDelta(ContentItem(**values[0]))
        case "usage":
            return UsageReported(Usage(**values[0]))
        case "finished":
            return _finished(*values)
        case "retry":
            return RetryScheduled(*values)
        case "reset":
            return StreamReset(*values)
        case "trimmed":
            return HistoryTrimmed(*values)
        case "plugin":
            return PluginEvent(*values)
    raise ValueError(f"no event is called {kind!r}")


def _finished(reason: Any, *values: Any) -> ModelFinished:
    if reason not in FINISH_REASONS:
        raise ValueError(f"no answer ends with {reason!r}")
    return ModelFinished(reason, *values)


def _plain(value: Any) -> Any:
    """What JSON gives back as it was: a tuple or a key that is no text would come back as something else."""
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"a value of type {type(value).__name__} is no JSON")
