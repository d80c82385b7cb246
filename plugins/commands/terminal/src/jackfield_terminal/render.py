"""Show a run in a terminal as it happens: the answer's text, and a line for each tool call and its result."""

from __future__ import annotations

import os
from typing import TextIO

from jackfield.agents import Event
from jackfield.cli import Terminal, printable, shown_text
from jackfield.events import (
    ApprovalNeeded,
    HistoryTrimmed,
    PluginEvent,
    ReasoningDelta,
    RetryScheduled,
    RunEvent,
    RunFinished,
    StreamReset,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)

_DIM, _PLAIN = "\033[2m", "\033[0m"
_WIDTH = 100

_ENDINGS = {
    "empty_reply": "the model gave an empty reply",
    "turn_limit": "stopped at the turn limit (--max-turns)",
    "tool_call_limit": "stopped at the limit of tool calls",
    "token_limit": "stopped at the token limit",
    "cost_limit": "stopped at the cost limit",
    "time_limit": "stopped at the time limit",
    "approval_needed": "paused: a tool call needs approval",
    "cancelled": "cancelled",
}


def in_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal, and nobody has asked for plain text. Source of the variable: no-color.org."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Renderer:
    """Writes events as people read them.

    Args:
        answers: Where the answer goes.
        notes: Where everything else goes: reasoning, tools, warnings.
        colour: Whether `notes` is a terminal that dims text.
    """

    def __init__(self, answers: TextIO, notes: TextIO, *, colour: bool) -> None:
        self._answers = answers
        self._notes = notes
        self._colour = colour
        self._open: TextIO | None = None  # the stream whose line is not finished
        self._last = ""  # the character it ends in

    def show(self, event: RunEvent) -> None:
        """Show one event."""
        match event.event:
            case TextDelta(text):
                self._write(self._answers, text)
            case ReasoningDelta(text):
                self._write(self._notes, text, dim=True)
            case RunFinished(stop_reason):
                self.end_line()
                if stop_reason in _ENDINGS:
                    self._note(f"! {_ENDINGS[stop_reason]}")
            case other:
                for line in _notes_on(other):
                    self._note(line)

    def end_line(self) -> None:
        """Finish a line that is not."""
        if self._open:
            self._open.write("\n")
            self._open.flush()
            self._open = None

    def _write(self, stream: TextIO, text: str, *, dim: bool = False) -> None:
        if self._open is not None and self._open is not stream:
            self.end_line()
        # What came before in this line: a joiner at the beginning of a piece belongs to it.
        shown = shown_text(text, self._last if self._open is stream else "")
        if dim and self._colour and isinstance(stream, Terminal):
            stream.styled(shown, before=_DIM, after=_PLAIN)
        else:
            stream.write(f"{_DIM}{shown}{_PLAIN}" if dim and self._colour else shown)
        stream.flush()
        self._last = text[-1:]
        self._open = None if text.endswith("\n") else stream

    def _note(self, text: str) -> None:
        self.end_line()
        self._write(self._notes, text, dim=True)
        self.end_line()


def _notes_on(event: Event) -> list[str]:
    """The lines that tell of an event, if anything does."""
    match event:
        case ToolStarted(_, _, call):
            return [f"→ {printable(call.name)} {_one_line(call.arguments)}"]
        case ToolProgress(_, _, text):
            return [f"  … {_one_line(text)}"]
        case ToolFinished(_, _, message, seconds, error, metadata):
            how = f"failed, {seconds:.1f} s" if error else f"{seconds:.1f} s"
            lines = [f"← {printable(message.name or '')} ({how}) {_one_line(message.get_text_content())}"]
            isolation = metadata.get("isolation")
            return [*lines, f"  isolation: {_one_line(str(isolation))}"] if isolation else lines
        case RetryScheduled(_, delay_s, error):
            return [f"! {_one_line(error)}; trying again in {delay_s:.1f} s"]
        case StreamReset():
            return ["! the answer begins again"]
        case ApprovalNeeded(calls):
            return [f"! needs approval: {', '.join(printable(call.name) for call in calls)}"]
        case HistoryTrimmed(dropped, shortened, before, after):
            what = f"{dropped} messages left out, {shortened} shortened (about {before} → {after} tokens)"
            return [f"! the conversation is too long: {what}"]
        case PluginEvent(_, data) if data.get("note"):
            return [f"! {printable(' '.join(str(data['note']).split()))}"]  # whole: it says what to do
        case _:
            return []


def _one_line(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= _WIDTH else line[:_WIDTH] + " …"
