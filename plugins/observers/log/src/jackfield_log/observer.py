"""Log the steps of runs through `logging`, without secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Literal, TypeAlias

from jackfield.events import (
    ApprovalDecided,
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    ModelFinished,
    PluginEvent,
    PreparationProgress,
    RetryScheduled,
    RunEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    StreamReset,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from jackfield.messages import Message, Usage
from jackfield.runs import Observer
from jackfield.secrets import Secrets, hide_in_addresses, secrets_of

LOGGER = "jackfield.runs"
"""The name of the logger that receives all lines."""

_PARENT_LOGGERS = (LOGGER, "jackfield")
_MARGIN_CHARS = 4096  # characters read beyond the cut, so that a secret spanning the cut is recognised
_PLAIN = re.compile(r"[\w.:/@+\-\[\]]+")
_LEVELS = {"info": logging.INFO, "debug": logging.DEBUG}

Value: TypeAlias = str | int | float


@dataclass(slots=True)
class _RunNotes:
    """A run's data for later log lines.

    Attributes:
        started, turn_started: Monotonic clock times, in seconds.
        model: The model that gave the last answer.
        turns, tool_calls: The counts so far.
        preparation: The last reported preparation step.
        is_new_step: True if that step has just begun.
    """

    started: float
    turn_started: float
    model: str = ""
    turns: int = 0
    tool_calls: int = 0
    preparation: str = ""
    is_new_step: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """A log line.

    Attributes:
        level: The `logging` level.
        step: The step, in human-readable form.
        facts: Names, figures and short texts.
        details: Texts from the conversation, shown only at level `debug`.
    """

    level: int
    step: str
    facts: Mapping[str, Value]
    details: Mapping[str, str] = field(default_factory=dict)


class LogObserver(Observer):
    """Logs one line per step to the logger `jackfield.runs`.

    Args:
        level: The minimum level. A level that the program sets on `jackfield.runs` or `jackfield` takes precedence.
        format: The line format. With either format, records carry the same data as a dict in their `jackfield`
            attribute.
        max_chars: The maximum length of a quoted text, in characters.
    """

    name: ClassVar[str] = "log"

    def __init__(
        self,
        level: Literal["info", "debug"] = "info",
        format: Literal["text", "json"] = "text",  # noqa: A002 - the name of the setting
        max_chars: int = 300,
    ) -> None:
        self._level = _LEVELS[level]
        self._writes_json = format == "json"
        self._max_chars = max_chars
        self._logger = logging.getLogger(LOGGER)
        self._runs: dict[str, _RunNotes] = {}
        self._secrets: Secrets | None = None
        self._lock = threading.Lock()

    def prepare(self, agent: object) -> None:
        """Collect the secrets of the agent, the environment and the user's settings."""
        with self._lock:
            if self._secrets is None:
                host = getattr(agent, "host", None)
                self._secrets = secrets_of(settings=getattr(host, "settings", None))
            self._secrets.include(agent)

    def observe(self, event: RunEvent) -> None:
        """Log an event, unless it is a delta."""
        if getattr(event.event, "is_delta", True):  # an event of a later version may not state it
            return
        notes = self._notes_of(event)
        line = _line_of(event, notes)
        if isinstance(event.event, RunFinished | RunFailed):
            self._runs.pop(event.run_id, None)
        if line is not None and line.level >= self._least_level():
            self._write(event, line)

    def _notes_of(self, event: RunEvent) -> _RunNotes:
        now = time.monotonic()
        notes = self._runs.get(event.run_id)
        if notes is None:
            notes = _RunNotes(now, now)
            if isinstance(event.event, RunStarted):  # a run whose beginning is unseen may have no end either
                self._runs[event.run_id] = notes
        match event.event:
            case PreparationProgress(step=step):
                notes.preparation, notes.is_new_step = step, step != notes.preparation
            case TurnStarted():
                notes.turn_started = now
            case ModelFinished(model=model):
                notes.model = model
            case TurnFinished():
                notes.turns += 1
            case ToolFinished():
                notes.tool_calls += 1
        return notes

    def _least_level(self) -> int:
        for name in _PARENT_LOGGERS:
            if level := logging.getLogger(name).level:
                return level
        return self._level

    def _write(self, event: RunEvent, line: _Line) -> None:
        facts: dict[str, Value] = {"step": line.step, "run": event.run_id, "agent": event.agent}
        if event.depth:
            facts["depth"] = event.depth
        facts |= line.facts
        if self._least_level() <= logging.DEBUG:
            facts |= line.details
        clean = {key: self._clean(value) if isinstance(value, str) else value for key, value in facts.items()}
        record = self._logger.makeRecord(LOGGER, line.level, "(jackfield)", 0, "", (), None, extra={"jackfield": clean})
        level = record.levelname.lower()
        if self._writes_json:
            stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
            record.msg = json.dumps({"time": stamp, "level": level, **clean})
        else:
            record.msg = _text_line(clean)
        # Not `log()`, because the root's level, `WARNING` by default, says nothing about this log.
        if _is_taken(self._logger, record.levelno):
            self._logger.handle(record)
        else:
            stamp = "" if self._writes_json else f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {level} "
            sys.stderr.write(f"{stamp}{record.msg}\n")

    def _clean(self, text: str) -> str:
        """Return a text with secrets hidden, truncated to `max_chars`."""
        text = text[: self._max_chars + _MARGIN_CHARS]
        with self._lock:
            if self._secrets is None:
                self._secrets = secrets_of()
            hidden = self._secrets.hide(text)
        hidden = hide_in_addresses(hidden)
        return hidden if len(hidden) <= self._max_chars else f"{hidden[: self._max_chars]} …"


def _line_of(event: RunEvent, notes: _RunNotes) -> _Line | None:
    """Return the line for an event, or None if the event is not logged."""
    return _line_of_run(event, notes) or _line_of_call(event) or _line_of_model(event)


def _line_of_run(event: RunEvent, notes: _RunNotes) -> _Line | None:
    now = time.monotonic()
    facts: dict[str, Value]
    match event.event:
        case RunStarted(messages=messages):
            details = {"question": messages[-1].get_text_content()} if messages else {}
            return _Line(logging.INFO, "run started", {"messages": len(messages)}, details)
        case PreparationProgress() as progress:
            facts = {"work": progress.step, **_named("item", progress.item)}
            if progress.total:
                facts |= {"done": progress.done, "total": progress.total}
            # A folder may have many files, so their names are details.
            return _Line(logging.INFO if notes.is_new_step else logging.DEBUG, "preparation", facts)
        case TurnFinished(turn=turn, messages=messages, usage=usage):
            facts = {"turn": turn, **_named("model", notes.model), **_usage_facts(usage)}
            facts["seconds"] = round(now - notes.turn_started, 3)
            return _Line(logging.INFO, "turn", facts, _answer_details(messages))
        case HandedOff(by=by, to=to):
            return _Line(logging.INFO, "hand-off", {"by": by, "to": to})
        case RunFinished(stop_reason=reason, messages=messages, usage=usage):
            facts = {"stop_reason": reason, "turns": notes.turns, "tool_calls": notes.tool_calls, **_usage_facts(usage)}
            facts["seconds"] = round(now - notes.started, 3)
            return _Line(logging.INFO, "run finished", facts, _answer_details(messages[-1:]))
        case RunFailed(error=error, kind=kind):
            facts = {"kind": kind, "error": error, "seconds": round(now - notes.started, 3)}
            return _Line(logging.ERROR, "run failed", facts)
    return None


def _line_of_call(event: RunEvent) -> _Line | None:
    facts: dict[str, Value]
    match event.event:
        case ToolStarted(call_id=call_id, call=call):
            facts = {"tool": call.name, "call": call_id}
            return _Line(logging.DEBUG, "tool started", facts, {"arguments": call.arguments})
        case ToolFinished(call_id=call_id, message=message, seconds=seconds, error=error):
            facts = {
                "tool": message.name or "",
                "call": call_id,
                "seconds": round(seconds, 3),
                **_named("error", error),
            }
            level = logging.WARNING if error else logging.INFO
            return _Line(level, "tool", facts, {"result": message.get_text_content()})
        case ApprovalNeeded(calls=calls):
            details = {f"arguments_{number}": call.arguments for number, call in enumerate(calls, start=1)}
            return _Line(logging.INFO, "approval needed", {"tools": ",".join(call.name for call in calls)}, details)
        case ApprovalDecided(call_id=call_id, call=call, allowed=allowed, by=by):
            facts = {"tool": call.name, "call": call_id, "allowed": "yes" if allowed else "no", "by": by}
            return _Line(logging.INFO, "approval", facts, {"arguments": call.arguments})
    return None


def _line_of_model(event: RunEvent) -> _Line | None:
    facts: dict[str, Value]
    match event.event:
        case RetryScheduled(attempt=attempt, delay_s=delay_s, error=error):
            facts = {"attempt": attempt, "delay_s": round(delay_s, 3), "error": error}
            return _Line(logging.WARNING, "retry", facts)
        case StreamReset(reason=reason):
            return _Line(logging.WARNING, "answer restarted", {"reason": reason})
        case HistoryTrimmed(dropped=dropped, shortened=shortened, tokens_before=before, tokens_after=after):
            facts = {"dropped": dropped, "shortened": shortened, "tokens_before": before, "tokens_after": after}
            return _Line(logging.INFO, "history trimmed", facts)
        case PluginEvent(name=name, data=data):
            return _Line(logging.DEBUG, "report", {"name": name}, {"data": repr(dict(data))})
    return None


def _named(key: str, value: str) -> dict[str, Value]:
    return {key: value} if value else {}


def _usage_facts(usage: Usage) -> dict[str, Value]:
    facts: dict[str, Value] = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    cost = "unknown" if usage.cost is None else f"{usage.cost} {usage.currency or ''}".strip()
    return {**facts, "cost": cost}


def _answer_details(messages: tuple[Message, ...]) -> dict[str, str]:
    text = "".join(message.get_text_content() for message in messages)
    return {"text": text} if text else {}


def _text_line(facts: Mapping[str, Value]) -> str:
    """Format a line as `step: key=value …`. Values that are not plain are quoted as in JSON."""
    return f"{facts['step']}: {' '.join(_pairs(facts))}"


def _pairs(facts: Mapping[str, Value]) -> Iterator[str]:
    for key, value in facts.items():
        text = str(value)
        if key != "step" and text:
            yield f"{key}={text if _PLAIN.fullmatch(text) else _quoted(text)}"


def _quoted(text: str) -> str:
    """Quote a text so that it stays on one line and cannot control a terminal."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in quoted)


def _is_taken(logger: logging.Logger, level: int) -> bool:
    """Return True if a handler accepts records of this level."""
    current: logging.Logger | None = logger
    while current is not None:
        if any(handler.level <= level for handler in current.handlers):
            return True
        current = current.parent if current.propagate else None
    return False
