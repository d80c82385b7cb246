"""Ask for consent to a file's effects in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from jackfield.cli._terminal import escape_line
from jackfield.consent import Request, record_consent
from jackfield.errors import ConsentNeededError

Result = TypeVar("Result")


def with_consent(work: Callable[[], Result]) -> Result:
    """Call `work`, and ask in the terminal for consent to each file that needs it. Consent is recorded.

    Raises:
        ConsentNeededError: There is no terminal, or the user declined.
    """
    asked: set[str] = set()
    while True:
        try:
            return work()
        except ConsentNeededError as error:
            request = error.request
            if not isinstance(request, Request) or request.content in asked or not _ask_user(error):
                raise
            asked.add(request.content)
            record_consent(request)


def _ask_user(error: ConsentNeededError) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    for line in error.lines[:-1]:
        sys.stderr.write(f"{escape_line(line)}\n")
    sys.stderr.write("Allow this until the file changes? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
