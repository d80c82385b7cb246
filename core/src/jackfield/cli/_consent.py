"""Ask a person at the terminal whether a file may have its effects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from jackfield.cli._terminal import printable
from jackfield.consent import Request, record_consent
from jackfield.errors import ConsentNeededError

Result = TypeVar("Result")


def with_consent(work: Callable[[], Result]) -> Result:
    """Do some work, and ask at the terminal for each file that needs consent. Consent is recorded for the next time.

    Raises:
        ConsentNeededError: There is no terminal to ask at, or the person said no.
    """
    asked: set[str] = set()
    while True:
        try:
            return work()
        except ConsentNeededError as error:
            request = error.request
            if not isinstance(request, Request) or request.content in asked or not _is_allowed(error):
                raise
            asked.add(request.content)
            record_consent(request)


def _is_allowed(error: ConsentNeededError) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    for line in error.lines[:-1]:
        sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.write("Allow this, until the file changes? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
