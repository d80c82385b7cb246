"""Ask the user on the terminal to approve a model's calls."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from jackfield import FunctionCall, ToolContext
from jackfield.cli import escape_line
from jackfield.streams import CancelToken

_POLL_S = 0.2  # the delay after which a cancelled run stops asking


def can_ask() -> bool:
    """Return True if a terminal is available to show questions and read answers."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


_ANSWERS = {"y": True, "yes": True, "a": True, "always": True, "n": False, "no": False}


class Asker:
    """Approval callback (`approve=`) that asks on the terminal before each call and remembers "always"."""

    def __init__(self) -> None:
        self._always: set[str] = set()
        self._cancel: CancelToken | None = None
        self._make_room: Callable[[str], None] = lambda _: None
        self._is_on_line = False  # the cursor is after the question
        self._lock = threading.Lock()

    def start_run(self, cancel: CancelToken, make_room: Callable[[str], None]) -> None:
        """Prepare for a run.

        Args:
            cancel: The token whose cancellation ends a pending question.
            make_room: Prepares the screen for a question about the call with the given id.
        """
        self._cancel, self._make_room = cancel, make_room

    def __call__(self, call: FunctionCall, context: ToolContext) -> bool:
        """Show the complete call, and return True if the user allows it. End of input counts as a denial."""
        if call.name in self._always:
            return True
        self._make_room(context.call_id)
        sys.stderr.write("\n".join(["", *describe_call(call), ""]))
        _discard_typed_input()
        while True:
            with self._lock:
                self._is_on_line = True
                sys.stderr.write(f"Allow it? y(es), n(o), a(lways for {call.name}): ")
                sys.stderr.flush()
            line = self._read_line()
            if not line:
                self.end_line()
                return False
            self._is_on_line = False
            answer = line.strip().lower()
            if answer in ("a", "always"):
                self._always.add(call.name)
            if answer in _ANSWERS:
                return _ANSWERS[answer]

    def end_line(self) -> None:
        """Terminate the line of an unanswered question. Call this before other output, as the run may be cancelled."""
        with self._lock:
            if self._is_on_line:
                self._is_on_line = False
                sys.stderr.write("\n")
                sys.stderr.flush()

    def _read_line(self) -> str:
        """Read a line; '' at end of input or when the run is cancelled."""
        if os.name != "posix":
            return sys.stdin.readline()
        import select

        # Not through `sys.stdin`: this thread may be abandoned while it waits, and must not consume the next line.
        while not (self._cancel and self._cancel.cancelled):
            ready, _, _ = select.select([sys.stdin.fileno()], [], [], _POLL_S)
            if ready:
                return os.read(sys.stdin.fileno(), 4096).decode(errors="replace")
        return ""


def _discard_typed_input() -> None:
    """Discard input typed before the question appeared, so it cannot be taken as the answer."""
    if os.name == "posix":
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def describe_call(call: FunctionCall) -> list[str]:
    """Format a call without truncating anything, with control characters escaped."""
    try:
        arguments: Any = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = call.arguments
    if not isinstance(arguments, dict):
        return [f"The model wants to call {escape_line(call.name)}:", *_block(str(arguments))]
    lines = [f"The model wants to call {escape_line(call.name)}{':' if arguments else ', without arguments'}"]
    for name, value in arguments.items():
        if isinstance(value, str) and "\n" in value:
            lines += [f"  {escape_line(name)}:", *_block(value)]
        else:
            lines.append(f"  {escape_line(name)}: {escape_line(json.dumps(value, ensure_ascii=False))}")
    return lines


def _block(text: str) -> list[str]:
    # The prefix keeps a text from imitating our own lines.
    return [f"    │ {escape_line(line)}" for line in text.split("\n")]
