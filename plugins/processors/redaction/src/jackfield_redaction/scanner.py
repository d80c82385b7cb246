"""Find values in streamed text."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import translate

import regex as regexes

from jackfield.errors import ConfigError
from jackfield_redaction.config import ALL_KINDS, PatternConfig, RedactionConfig
from jackfield_redaction.detectors import CANDIDATE, CANDIDATE_REACH, DETECTORS, LOOKBEHIND, TRIGGER, Detector

Replace = Callable[[str, str], str]
"""Returns the replacement for a kind and a value."""

MATCH_S = 0.02
"""CPU seconds for a custom pattern at one position; a typical one takes microseconds."""
TEXT_S = 0.3
"""CPU seconds for all custom patterns in one text, in addition to `CHARACTER_S`."""

CHARACTER_S = 20e-6
"""CPU seconds that each character adds for each pattern."""

_TRIES = 3  # a busy machine may stall for longer than `MATCH_S` while the clock runs on
_PLACES = 16  # positions tried between two clock readings, each of which takes as long as a pattern
_LONG = 64  # text that only starts like a value never has a longer reach


@dataclass(frozen=True, slots=True)
class _Value:
    """The position and kind of a value."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Undecided:
    """A possible value at `start` that depends on text yet to arrive. `detector` is waiting for that text."""

    start: int
    detector: Detector | None = None


@dataclass(frozen=True, slots=True)
class _Pattern:
    name: str
    regex: regexes.Pattern[str]
    max_length: int


class Budget:
    """The CPU time that custom patterns may spend on one text, in proportion to its length."""

    def __init__(self, patterns: int) -> None:
        self._patterns = patterns
        self._left_s = TEXT_S
        self._places = 0
        self._since_s = 0.0

    def add(self, characters: int) -> None:
        """Add time for more text."""
        self._left_s += self._patterns * characters * CHARACTER_S

    def start(self) -> None:
        """Start the timer."""
        self._since_s = time.thread_time()

    def count_place(self) -> None:
        """Count a position that was tried, and check the time at intervals."""
        self._places += 1
        if self._places % _PLACES == 0:
            self.check()

    def check(self) -> None:
        """Deduct the time since `start` or the last check.

        Raises:
            ConfigError: The budget is used up.
        """
        now_s = time.thread_time()
        self._left_s -= now_s - self._since_s
        self._since_s = now_s
        if self._left_s < 0:
            raise ConfigError(
                "the redaction patterns took too long on this text, so the rest was withheld: make their quantifiers "
                "possessive (`++`, `*+`), or reduce max_length"
            )


class Finder:
    """Finds values. Immutable once created from the settings."""

    def __init__(self, config: RedactionConfig) -> None:
        kinds = ALL_KINDS if config.kinds is None else config.kinds
        self._patterns = tuple(map(_compiled, config.patterns))
        self._kept = re.compile("|".join(map(translate, config.keep)), re.IGNORECASE) if config.keep else None
        self._by_first: dict[str, tuple[Detector, ...]] = {}
        for detector in DETECTORS:
            if detector.kind in kinds:
                for character in detector.first:
                    self._by_first[character] = (*self._by_first.get(character, ()), detector)

    def is_kept(self, value: str) -> bool:
        """Return True if the settings exempt this value."""
        return bool(self._kept and self._kept.match(value))

    def make_budget(self) -> Budget:
        """Create the budget for one text."""
        return Budget(len(self._patterns))

    def next_value(self, text: str, place: int, budget: Budget, *, final: bool) -> _Value | _Undecided | None:
        """Return the first value at or after `place`, or None. Set `final` if the text is complete.

        Raises:
            ConfigError: A pattern takes too long at one position, or the patterns together take too long for this text.
        """
        if not self._patterns:
            return self._next_value(text, place, budget, final=final)
        budget.start()
        found = self._next_value(text, place, budget, final=final)
        budget.check()
        return found

    def _next_value(self, text: str, place: int, budget: Budget, *, final: bool) -> _Value | _Undecided | None:
        candidate = self._next_candidate(text, place)
        while place < len(text):
            found = None
            if self._patterns:
                found = self._pattern_at(text, place, final=final)
                budget.count_place()
            if found is None and not self._patterns:
                place = candidate
            if found is None and place == candidate < len(text):
                found = self._kind_at(text, place, final=final)
                candidate = self._next_candidate(text, place + 1)
            if found is not None:
                return found
            place += 1
        return None

    def _next_candidate(self, text: str, place: int) -> int:
        """Return the next position where a built-in kind may start, or the end of the text."""
        while self._by_first:
            trigger = TRIGGER.search(text, place)
            nearest = trigger.start() if trigger else len(text)
            candidate = CANDIDATE.search(text, max(place, nearest - CANDIDATE_REACH))
            if candidate is None:
                break
            if text[candidate.start()] in self._by_first:
                return candidate.start()
            place = candidate.start() + 1
        return len(text)

    def _pattern_at(self, text: str, place: int, *, final: bool) -> _Value | _Undecided | None:
        for pattern in self._patterns:
            if not final and len(text) - place < pattern.max_length:
                return _Undecided(place)
            before = max(0, place - LOOKBEHIND)
            found = _match(pattern, text[before : place + pattern.max_length], place - before)
            if found and found[0]:
                return _Value(pattern.name, place, place + len(found[0]))
        return None

    def _kind_at(self, text: str, place: int, *, final: bool) -> _Value | _Undecided | None:
        for detector in self._by_first[text[place]]:
            reach = detector.reach.match(text, place)
            if reach is None:
                continue
            if reach.end() == len(text) and not final:
                return _Undecided(place, detector)
            end = detector.measure(text, place, reach.end())
            if end:
                return _Value(detector.kind, place, end)
        return None


def _compiled(pattern: PatternConfig) -> _Pattern:
    return _Pattern(pattern.name, regexes.compile(pattern.regex, regexes.VERSION0), pattern.max_length)


def _match(pattern: _Pattern, text: str, place: int) -> regexes.Match[str] | None:
    for _ in range(_TRIES):
        try:
            return pattern.regex.match(text, place, timeout=MATCH_S)
        except TimeoutError:
            continue
    raise ConfigError(
        f"the pattern {pattern.name!r} took more than {1000 * MATCH_S:g} ms on {len(text)} characters, so nothing "
        f"was passed on: make its repetitions possessive (`++`, `*+`), or reduce max_length"
    )


class Scanner:
    """Replaces the values in one text.

    Text is released as soon as it can no longer become part of a value. The overall output does not depend on how the
    text is split.

    Args:
        finder: The finder to use.
        replace: Returns the replacement for a value.
        budget: The remaining CPU time. If None, a new budget is created.
    """

    def __init__(self, finder: Finder, replace: Replace, budget: Budget | None = None) -> None:
        self._finder = finder
        self._replace = replace
        self._budget = budget or finder.make_budget()
        self._text = ""  # undecided text, after a few decided characters
        self._place = 0  # the start of the undecided part in it
        self._waiting: Detector | None = None  # the detector whose long value may continue
        self._seen = 0  # the end of the known part of that value

    def feed(self, text: str) -> str:
        """Add text and return the part that is now decided."""
        self._text += text
        self._budget.add(len(text))
        if self._waiting and self._goes_on(self._waiting):
            return ""
        return self._advance(final=False)

    def finish(self) -> str:
        """Return the remaining text."""
        return self._advance(final=True)

    def _goes_on(self, detector: Detector) -> bool:
        # Without this, every delta would cause a long value to be read again from its start.
        assert detector.ends is not None  # noqa: S101 - `_wait_for` sees to it
        if len(self._text) - self._place >= detector.longest or detector.ends.search(self._text, self._seen):
            return False
        self._seen = len(self._text)
        return True

    def _advance(self, *, final: bool) -> str:
        text, given = self._text, self._place
        place = given
        pieces: list[str] = []
        self._waiting = None
        while True:
            found = self._finder.next_value(text, place, self._budget, final=final)
            if not isinstance(found, _Value):
                break
            place = found.end
            value = text[found.start : place]
            if not self._finder.is_kept(value):
                pieces += (text[given : found.start], self._replace(found.kind, value))
                given = place
        decided = len(text) if found is None else found.start
        pieces.append(text[given:decided])
        if found:
            self._wait_for(found)
        first = max(0, decided - LOOKBEHIND)
        self._text, self._place, self._seen = text[first:], decided - first, len(text) - first
        return "".join(pieces)

    def _wait_for(self, undecided: _Undecided) -> None:
        detector = undecided.detector
        if detector and detector.ends and len(self._text) - undecided.start > _LONG:
            self._waiting = detector


def replace_in(text: str, finder: Finder, replace: Replace) -> str:
    """Return a complete text with its values replaced, or the same object if there are none."""
    scanner = Scanner(finder, replace)
    replaced = scanner.feed(text) + scanner.finish()
    return text if replaced == text else replaced
