"""End a text where a stop text begins, wherever the pieces are cut."""

from __future__ import annotations

import re
from collections.abc import Sequence


class StopCutter:
    """Lets text through up to the first stop text. What may be the beginning of one waits for more.

    Attributes:
        stopped: Whether one was found; it and what follows are gone.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._pattern = re.compile("|".join(map(re.escape, self._stops))) if self._stops else None
        self._held = ""
        self.stopped = False

    def feed(self, piece: str) -> str:
        """What of the text is certain to be none of a stop text."""
        if self.stopped:
            return ""
        if self._pattern is None:
            return piece
        text = self._held + piece
        match = self._pattern.search(text)
        if match:
            self.stopped, self._held = True, ""
            return text[: match.start()]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What waited in vain."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of the text begin the stop text; less than all of it."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
