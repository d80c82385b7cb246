"""Show a run in a terminal as it happens: the answer's text, and a line for each tool call and result."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TextIO

from jackfield.agents import Event
from jackfield.cli import escape_line, width_of, wrap_line
from jackfield.events import (
    ApprovalNeeded,
    HandedOff,
    HistoryTrimmed,
    PluginEvent,
    PreparationProgress,
    ReasoningDelta,
    RetryScheduled,
    RunEvent,
    RunFinished,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
)
from jackfield.plurals import format_count
from jackfield_terminal.safe_text import Terminal, shown_text
from jackfield_terminal.word_wrap import WordWrapper

_DIM, _PLAIN = "\033[2m", "\033[0m"
_CLEAR = "\r\033[K"
_WIDTH = 100
_MAX_LAG_S = 1.0  # the longest wait of a question for the events before it

_ENDINGS = {
    "empty_reply": "the model gave an empty reply",
    "turn_limit": "stopped at the turn limit (--max-turns)",
    "tool_call_limit": "stopped at the limit of tool calls",
    "token_limit": "stopped at the token limit",
    "cost_limit": "stopped at the cost limit",
    "time_limit": "stopped at the time limit",
    "approval_needed": "paused: a tool call needs approval",
    "input_needed": "paused: it is your turn",
    "cancelled": "cancelled",
}


def can_format(stream: TextIO) -> bool:
    """Return True if the stream is a terminal that supports bold and dim text and cursor movement."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colour() -> bool:
    """Return False if the user has disabled colours; see no-color.org."""
    return not os.environ.get("NO_COLOR")


class RichAnswer(Protocol):
    """Renders an answer as it is being streamed."""

    def feed(self, text: str) -> None:
        """Append text to the answer."""

    def finish(self) -> None:
        """Show the rest. The next text starts another answer."""


class Renderer:
    """Writes events as readable text.

    Args:
        answers: The stream for answers.
        notes: The stream for everything else: reasoning, tools and warnings.
        dim: True if `notes` is a terminal that can dim text and clear lines. Only then is preparation progress shown.
        columns: Returns the width at which `notes` wraps, or 0 for no wrapping.
        rich: Renders answers instead of writing them to `answers`.
        quiet: True to show only answers and warnings.
    """

    def __init__(
        self,
        answers: TextIO,
        notes: TextIO,
        *,
        dim: bool,
        columns: Callable[[], int] = lambda: 0,
        rich: RichAnswer | None = None,
        quiet: bool = False,
    ) -> None:
        self._answers = answers
        self._notes = notes
        self._dim = dim
        self._columns = columns
        self._rich = rich
        self._quiet = quiet
        self._open: TextIO | Literal["rich", "progress"] | None = None  # the stream with an unfinished line
        self._last = ""  # the last character of that line
        self._words = WordWrapper()  # for reasoning
        self._shown_once: set[str] = set()  # the lines that must not be repeated
        # Approval questions and warnings come from other threads.
        self._lock = threading.RLock()
        self._calls: set[str] = set()  # the ids of calls whose turns have been shown
        self._has_new_calls = threading.Condition(self._lock)

    def show(self, event: RunEvent) -> None:
        """Show an event."""
        with self._lock:
            if isinstance(event.event, PreparationProgress):
                self._show_progress(f"{event.agent}: {event.event.text}" if event.depth else event.event.text)
            elif event.depth:  # a sub-agent, whose text is not the answer
                self._show_lines(event.event, agent=event.agent)
            else:
                self._show(event)
            if isinstance(event.event, TurnFinished):
                extras = [message.extra or {} for message in event.event.messages]
                self._calls.update(str(extra["function_id"]) for extra in extras if "function_id" in extra)
                self._has_new_calls.notify_all()

    def make_room(self, call_id: str) -> None:
        """End the current line before a question about a call, once all earlier events have been shown.

        A run is ahead of its events: the question is asked in the run's thread while events are still queued. The wait
        is limited, because the calls of a resumed run belong to an earlier one, whose events never arrive.
        """
        with self._lock:
            if call_id:
                self._has_new_calls.wait_for(lambda: call_id in self._calls, _MAX_LAG_S)
            self.end_line()

    def _show(self, event: RunEvent) -> None:
        match event.event:
            case TextDelta(text):
                self._answer(text)
            case ReasoningDelta(text):
                self._reason(text)
            case RunFinished(stop_reason):
                self.end_line()
                if stop_reason in _ENDINGS:
                    self.warn(_ENDINGS[stop_reason])
            case other:
                self._show_lines(other)

    def _show_lines(self, event: Event, *, agent: str = "") -> None:
        """Write the lines for an event, prefixed with the name of its sub-agent, if any."""
        name = escape_line(agent)
        for line in _lines_about(event):
            if line.is_warning:
                self.warn(f"{name}: {line.text}" if name else line.text, once=line.once)
            else:
                self.note(f"  {name} {line.text}" if name else line.text, once=line.once)

    def _show_progress(self, text: str) -> None:
        """Replace the progress line, which the next output clears."""
        if not self._dim or self._quiet:
            return
        if self._open != "progress":
            self.end_line()
        line = _cut_to_width(escape_line(text), max(1, (self._columns() or _WIDTH) - 1))
        _write_styled(self._notes, line, before=_CLEAR + _DIM, after=_PLAIN)
        self._notes.flush()
        self._open = "progress"

    def _answer(self, text: str) -> None:
        if self._rich is None:
            self._write(self._answers, text)
            return
        if self._open != "rich":
            self.end_line()
        self._rich.feed(text)
        self._open = "rich"

    def _reason(self, text: str) -> None:
        if self._quiet:
            return
        columns = self._columns()
        if not columns:
            self._write(self._notes, text, dim=True)
            return
        # Not `_write`, which would end the line and flush the buffered word.
        if self._open is not None and self._open is not self._notes:
            self.end_line()
        if wrapped := self._words.feed(text, columns):
            self._put(self._notes, wrapped, dim=True)

    def warn(self, text: str, *, once: bool = False) -> None:
        """Write a warning, even in quiet mode. The arguments are those of `note`."""
        self.note(f"! {text}", always=True, once=once)

    def note(self, text: str, *, always: bool = False, once: bool = False) -> None:
        """Write a line to the notes.

        Args:
            text: The line, already escaped with `escape_line`.
            always: True to write the line in quiet mode too.
            once: True to write the line only if it has not been written before.
        """
        if self._quiet and not always:
            return
        with self._lock:
            if once and text in self._shown_once:
                return
            if once:
                self._shown_once.add(text)
            self.end_line()
            columns = self._columns()
            lines = wrap_line(text, columns, indent="  ") if columns else [text]
            self._write(self._notes, "\n".join(lines), dim=True)
            self.end_line()

    def end_line(self) -> None:
        """End the current line if it is unfinished."""
        with self._lock:
            if word := self._words.finish(self._columns()):
                self._put(self._notes, word, dim=True)
            match self._open:
                case None:
                    return
                case "rich":
                    if self._rich is not None:
                        self._rich.finish()
                case "progress":
                    _write_styled(self._notes, "", before=_CLEAR, after="")
                    self._notes.flush()
                case stream:
                    stream.write("\n")
                    stream.flush()
            self._open = None

    def _write(self, stream: TextIO, text: str, *, dim: bool = False) -> None:
        if self._open is not stream:
            self.end_line()
            self._last = ""
        self._put(stream, text, dim=dim)

    def _put(self, stream: TextIO, text: str, *, dim: bool) -> None:
        # A joiner at the start of a piece belongs to the character before it.
        shown = shown_text(text, self._last)
        if dim and self._dim:
            _write_styled(stream, shown, before=_DIM, after=_PLAIN)
        else:
            stream.write(shown)
        stream.flush()
        self._last = text[-1:]
        self._open = None if text.endswith("\n") else stream


def _write_styled(stream: TextIO, text: str, *, before: str, after: str) -> None:
    """Write a text between two of our own control sequences."""
    if isinstance(stream, Terminal):
        stream.styled(text, before=before, after=after)
    else:
        stream.write(f"{before}{text}{after}")


def _cut_to_width(text: str, columns: int) -> str:
    """Truncate a text to fit on one line."""
    text = text[:columns]  # a character is one or two columns wide
    while width_of(text) > columns:
        text = text[:-1]
    return text


@dataclass(frozen=True, slots=True)
class _Line:
    """A line for the notes, already escaped.

    Attributes:
        text: The line.
        is_warning: True for a warning.
        once: True if the line is the same for every call of a tool and should be written only once.
    """

    text: str
    is_warning: bool = False
    once: bool = False


def _lines_about(event: Event) -> list[_Line]:
    """Return the lines to write for an event."""
    match event:
        case ToolStarted(_, _, call):
            return [_Line(f"→ {escape_line(call.name)} {_one_line(call.arguments)}")]
        case HandedOff(_, to):
            return [_Line(f"→ {escape_line(to)} takes over")]
        case ToolProgress(_, _, text):
            return [_Line(f"  … {_one_line(text)}")]
        case ToolFinished():
            return _lines_about_result(event)
        case RetryScheduled(_, delay_s, error):
            return [_Line(f"{_one_line(error)}; retrying in {delay_s:.1f} s", is_warning=True)]
        case StreamReset():
            return [_Line("the answer starts over", is_warning=True)]
        case ApprovalNeeded(calls):
            return [_Line(f"needs approval: {', '.join(escape_line(call.name) for call in calls)}", is_warning=True)]
        case HistoryTrimmed(dropped, shortened, before, after):
            change = (
                f"{format_count(dropped, 'message')} left out, {shortened} shortened (about {before} → {after} tokens)"
            )
            return [_Line(f"the conversation is too long: {change}", is_warning=True)]
        case PluginEvent(_, data) if data.get("note"):
            return [_Line(_whole_line(data["note"]), is_warning=True)]
        case _:
            return []


def _lines_about_result(event: ToolFinished) -> list[_Line]:
    name = escape_line(event.message.name or "")
    outcome = f"failed, {event.seconds:.1f} s" if event.error else f"{event.seconds:.1f} s"
    lines = [_Line(f"← {name} ({outcome}) {_one_line(event.message.get_text_content())}")]
    if isolation := event.metadata.get("isolation"):
        lines.append(_Line(f"  isolation of {name}: {_whole_line(isolation)}", once=True))
    if note := event.metadata.get("note"):
        lines.append(_Line(_whole_line(note), is_warning=True, once=True))
    return lines


def _whole_line(text: object) -> str:
    """Join a text into one line without truncating it, since it may contain instructions."""
    return escape_line(" ".join(str(text).split()))


def _one_line(text: str) -> str:
    line = escape_line(" ".join(text.split()))
    return line if len(line) <= _WIDTH else line[:_WIDTH] + " …"
