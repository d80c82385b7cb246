"""Ask a person on the terminal whether a model's calls are allowed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from itertools import chain, starmap
from typing import Any

from jackfield import FunctionCall, ToolContext
from jackfield.cli import printable
from jackfield.streams import CancelToken

_POLL_S = 0.2  # how soon a cancelled run stops asking


def can_ask() -> bool:
    """Whether there is a terminal on which questions can be shown and answered."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


_ANSWERS = {"y": True, "yes": True, "a": True, "always": True, "n": False, "no": False}


class Asker:
    """Asks on the terminal before each call; `approve=` of an agent. An `always` holds as long as this object."""

    def __init__(self) -> None:
        self._always: set[str] = set()
        self._cancel: CancelToken | None = None
        self._before: Callable[[], None] = lambda: None

    def during(self, cancel: CancelToken, before: Callable[[], None]) -> None:
        """A run begins: whoever cancels it ends the question, too; `before` finishes a line that is not."""
        self._cancel, self._before = cancel, before

    def __call__(self, call: FunctionCall, _context: ToolContext) -> bool:
        """Whether the user allows the call, which is shown in full. The end of the input counts as a no."""
        if call.name in self._always:
            return True
        self._before()
        sys.stderr.write("\n".join(["", *lines_of_call(call), ""]))
        _forget_what_was_typed_before()
        while True:
            sys.stderr.write(f"Allow it? y(es), n(o), a(lways for {call.name}): ")
            sys.stderr.flush()
            line = self._line()
            if not line:
                sys.stderr.write("\n")
                return False
            answer = line.strip().lower()
            if answer in ("a", "always"):
                self._always.add(call.name)
            if answer in _ANSWERS:
                return _ANSWERS[answer]

    def _line(self) -> str:
        """A line that somebody types; '' at the end of the input, or once the run is cancelled."""
        if os.name != "posix":
            return sys.stdin.readline()
        import select

        # Not through `sys.stdin`: this thread may be given up while it waits, and must not eat the next line then.
        while not (self._cancel and self._cancel.cancelled):
            ready, _, _ = select.select([sys.stdin.fileno()], [], [], _POLL_S)
            if ready:
                return os.read(sys.stdin.fileno(), 4096).decode(errors="replace")
        return ""


def _forget_what_was_typed_before() -> None:
    """An answer is to the question that stands there, and not what was typed before anybody could read it."""
    if os.name == "posix":
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def lines_of_call(call: FunctionCall) -> list[str]:
    """The whole call in readable form: nothing is cut, and control characters are shown as escapes."""
    try:
        arguments: Any = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = call.arguments
    if not isinstance(arguments, dict):
        return [f"The model wants to call {printable(call.name)}:", *_block(str(arguments))]
    heading = f"The model wants to call {printable(call.name)}{':' if arguments else ', without arguments'}"
    return [heading, *chain.from_iterable(starmap(_lines_of_argument, arguments.items()))]


def _lines_of_argument(name: str, value: object) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        return [f"  {printable(name)}:", *_block(value)]
    return [f"  {printable(name)}: {printable(json.dumps(value, ensure_ascii=False))}"]


def _block(text: str) -> list[str]:
    # Each line has a mark before it: no text can look like a line of ours.
    return [f"    │ {printable(line)}" for line in text.split("\n")]
