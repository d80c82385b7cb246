"""Show the progress of a build on a terminal line that is overwritten."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Self

from jackfield.messages import basename_of
from jackfield.retrieval import shown_path
from jackfield_knowledge import Progress

_PAUSE_S = 0.1  # faster updates would be unreadable and cost time
_BAR = 24


class ProgressLine:
    """Progress line on standard error, shown only in a terminal and cleared at the end."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._next_s = 0.0

    def __call__(self, progress: Progress) -> None:
        """Show the progress of reading files."""
        self._show(progress.done, progress.total, "files", shown_path(basename_of(progress.location)))

    def count(self, searcher: str, done: int, total: int) -> None:
        """Show how many chunks a searcher has indexed. May be called from any thread."""
        self._show(done, total, "chunks", searcher)

    def _show(self, done: int, total: int, unit: str, name: str) -> None:
        now = time.monotonic()
        if now < self._next_s:
            return
        self._next_s = now + _PAUSE_S
        filled = _BAR * done // max(1, total)
        bar = "#" * filled + "." * (_BAR - filled)
        self.say(f"[{bar}] {done} of {total} {unit}  {name}")

    def say(self, text: str) -> None:
        """Replace the line."""
        if self._is_shown:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{text[:width]}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Clear the line."""
        self.say("")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
