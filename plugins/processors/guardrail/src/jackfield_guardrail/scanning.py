"""Scan streamed text, and release it as soon as no later text can change the result.

Text is decided in blocks. A match in a block depends on the block, a little text before it, and a window of text after
it. All positions are counted from the start of the text, so the result does not depend on how the stream is split.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jackfield.errors import ConfigError
from jackfield_guardrail.finding import Finder, Found

BLOCK = 32
"""The number of characters decided at once, which delays a stream in addition to its windows."""

LONGEST = 2048
"""The maximum number of characters searched for one match, which bounds the work on hostile text."""

TEXT_S = 0.5
"""CPU seconds for all searches in one text, in addition to `CHARACTER_S`."""

CHARACTER_S = 20e-6
"""CPU seconds that each character adds for each watch; a typical watch takes a tenth of this."""

_BEFORE = 32  # characters before a block that a regular expression can look back at


@dataclass(frozen=True, slots=True)
class Watch:
    """A finder and the action to take on a match.

    Attributes:
        name: The name of the rule that the watch belongs to.
        finder: The finder to use.
        then: The action: `stop` ends the text there, `take` removes the match, and `count` only counts it.
        replacement: The text that replaces a removed match.
    """

    name: str
    finder: Finder
    then: Literal["stop", "take", "count"]
    replacement: str = ""


class Budget:
    """The CPU time allowed for searching one text, in proportion to its length."""

    def __init__(self) -> None:
        self._left_s = TEXT_S

    def add(self, characters: int, watches: int) -> None:
        """Add time for more text."""
        self._left_s += characters * watches * CHARACTER_S

    def spend(self, seconds: float, name: str) -> None:
        """Deduct the time of one search by the named watch.

        Raises:
            ConfigError: The budget is used up.
        """
        self._left_s -= seconds
        if self._left_s < 0:
            raise ConfigError(
                f"the rules of output_guardrail took too long on this text (last rule: {name!r}), so the rest was "
                "withheld: make repetitions possessive (`++`, `*+`), or alternatives mutually exclusive"
            )


class Scanner:
    """Scans one text.

    Args:
        watches: The watches to apply.
        budget: The remaining CPU time. If None, a new budget is created.

    Attributes:
        counts: The number of matches for each watch, by name.
        stopped: The name of the watch that stopped the scan, after which no more text is released.
    """

    def __init__(self, watches: Sequence[Watch], budget: Budget | None = None) -> None:
        self._watches = watches
        self._budget = budget or Budget()
        self._window = max((watch.finder.window for watch in watches), default=0)
        self._reach = self._window
        self._pieces: list[str] = []
        self._text = ""  # the undecided text, after a little decided text
        self._base = 0  # its start in the whole text
        self._place = 0  # the end of the decided part in the whole text
        self._arrived = 0
        self._seen: dict[str, int] = {}  # the position up to which counting watches have counted
        self.counts: Counter[str] = Counter()
        self.stopped = ""

    def feed(self, text: str) -> str:
        """Add text and return the part that is now decided."""
        if not self._watches:
            return text
        self._pieces.append(text)
        self._arrived += len(text)
        self._budget.add(len(text), len(self._watches))
        return self._advance(final=False) if self._arrived >= self._needed else ""

    def finish(self) -> str:
        """Return the remaining text after the last call of `feed`."""
        return self._advance(final=True)

    @property
    def _block_end(self) -> int:
        return (self._place // BLOCK + 1) * BLOCK

    @property
    def _needed(self) -> int:
        """The text length required before the next block can be decided."""
        return self._block_end + self._reach

    def _advance(self, *, final: bool) -> str:
        self._text = "".join((self._text, *self._pieces))
        self._pieces.clear()
        out: list[str] = []
        while not self.stopped and self._place < self._arrived and (final or self._arrived >= self._needed):
            out.append(self._decide_block(final=final))
        drop = max(0, self._place // BLOCK * BLOCK - _BEFORE) - self._base
        if drop > 0:
            self._text, self._base = self._text[drop:], self._base + drop
        return "".join(out)

    def _decide_block(self, *, final: bool) -> str:
        """Decide the current block, or request more text."""
        block_end = self._block_end
        first = max(0, block_end - BLOCK - _BEFORE)
        seen_end = min(self._arrived, self._needed)
        text = self._text[first - self._base : seen_end - self._base]
        whole = final and seen_end == self._arrived
        view = _View(text, first, block_end, self._budget, complete=whole, may_ask=self._reach < LONGEST)
        outcome = view.decide(self._watches, self._place, self._seen)
        if outcome is None:
            self._reach = min(2 * self._reach, LONGEST)
            return ""
        self._reach = self._window
        if outcome.cut:  # the match is too long to follow, and no answer is better than half of one
            self.stopped = outcome.cut
            return ""
        self.stopped = outcome.stopped
        if outcome.counts:
            self.counts.update(outcome.counts)
            self._seen.update(outcome.seen)
        self._place = outcome.place
        return "" if outcome.stopped else outcome.given


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result for a block.

    Attributes:
        given: The block's text to release.
        place: The end of the decided text. This is past the block if a removed match extends beyond it.
        counts: The number of matches.
        seen: For each counting watch, the position up to which it has counted.
        stopped: The name of the watch that stops the text here, or ''.
        cut: The name of a watch whose match is too long to follow, or ''.
    """

    given: str
    place: int
    counts: Counter[str]
    seen: dict[str, int]
    stopped: str
    cut: str


def _start(find: tuple[Found, Watch]) -> int:
    return find[0].start


_NOTHING: Counter[str] = Counter()


class _MoreNeededError(Exception):
    """A match extends to the end of the visible text."""


class _View:
    """A block with the visible text around it. Positions refer to the whole text."""

    def __init__(self, text: str, first: int, block_end: int, budget: Budget, *, complete: bool, may_ask: bool) -> None:
        self._budget = budget
        self._text = text
        self._first = first
        self._block_end = min(block_end, first + len(text))
        self._complete = complete
        self._may_ask = may_ask
        self._cut = ""

    def decide(self, watches: Sequence[Watch], place: int, seen: dict[str, int]) -> _Outcome | None:
        """Return the result for the block from `place` on, or None if more text is needed first."""
        try:
            hits = [watch for watch in watches if self._find(watch, place)]
            if not hits:  # nearly always
                return _Outcome(self._cut_out(place, self._block_end), self._block_end, _NOTHING, {}, "", "")
            stopped = self._first_stop(hits, place)
            counts, new_seen = self._counted(hits, place, seen)
            given, end, taken = self._without(hits, place)
        except _MoreNeededError:
            return None
        return _Outcome(given, end, counts + taken, new_seen, stopped, self._cut)

    def _find(self, watch: Watch, place: int) -> Found | None:
        """Return a watch's first match that starts in the block."""
        started_s = time.thread_time()
        found = watch.finder.find(self._text, place - self._first, complete=self._complete)
        self._budget.spend(time.thread_time() - started_s, watch.name)
        if found is None or found.start + self._first >= self._block_end:
            return None
        if found.end == len(self._text) and not self._complete:
            if self._may_ask:
                raise _MoreNeededError
            self._note_cut(watch)
        return Found(found.start + self._first, found.end + self._first, found.kept)

    def _note_cut(self, watch: Watch) -> None:
        if not self._cut and watch.then != "count":
            self._cut = watch.name

    def _finds(self, watches: Sequence[Watch], then: str, place: int) -> list[tuple[Found, Watch]]:
        """Return the first match of each watch with this action."""
        return [(found, watch) for watch in watches if watch.then == then and (found := self._find(watch, place))]

    def _first_stop(self, watches: Sequence[Watch], place: int) -> str:
        finds = self._finds(watches, "stop", place)
        return min(finds, key=_start)[1].name if finds else ""

    def _counted(
        self, watches: Sequence[Watch], place: int, seen: dict[str, int]
    ) -> tuple[Counter[str], dict[str, int]]:
        counts: Counter[str] = Counter()
        new_seen: dict[str, int] = {}
        for watch in watches:
            at = max(place, seen.get(watch.name, 0))
            while watch.then == "count" and at < self._block_end and (found := self._find(watch, at)):
                counts[watch.name] += 1
                at = new_seen[watch.name] = found.end
        return counts, new_seen

    def _without(self, watches: Sequence[Watch], place: int) -> tuple[str, int, Counter[str]]:
        """Return the block without removed matches, the end of the decided text, and the removals by watch."""
        out: list[str] = []
        counts: Counter[str] = Counter()
        while place < self._block_end:
            finds = self._finds(watches, "take", place)
            if not finds:
                out.append(self._cut_out(place, self._block_end))
                return "".join(out), self._block_end, counts
            found, watch = min(finds, key=_start)
            out += (self._cut_out(place, found.start + found.kept), watch.replacement)
            counts[watch.name] += 1
            place = found.end
        return "".join(out), place, counts

    def _cut_out(self, start: int, end: int) -> str:
        return self._text[start - self._first : end - self._first]
