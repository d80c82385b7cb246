"""Search a call's JSON arguments by decoded value, not by notation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jackfield.jsontext import dumps, loads_lenient
from jackfield_guardrail.scanning import Budget, Scanner, Watch


class ArgumentsScan:
    """Scans one call's arguments as a tool will read them: `\\u0068ttp` is `http`.

    Attributes:
        counts: The number of matches for each watch, by name.
        stopped: The name of the watch that stopped the scan, or '' if none did.
    """

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches
        self._budget = Budget()  # shared by all strings, however many there are
        self.counts: Counter[str] = Counter()
        self.stopped = ""

    def of(self, arguments: str) -> str:
        """Return the arguments without the removed matches. If nothing is removed, the text stays unchanged."""
        try:
            value = loads_lenient(arguments)
            changed = self._value(value)
        except (ValueError, RecursionError):  # not JSON, or nested too deeply for any tool, so it is scanned as text
            return self._text(arguments)
        # Numbers are searched as well, because `{"to": 4912345}` means the same as `{"to": "4912345"}`.
        return arguments if changed == value else dumps(changed)

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, dict):
            return {self._text(key): self._value(one) for key, one in value.items()}
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return self._number(value) if is_number else value

    def _number(self, value: object) -> object:
        text = self._text(repr(value))
        return value if text == repr(value) else text

    def _text(self, text: str) -> str:
        if self.stopped:
            return ""
        scanner = Scanner(self._watches, self._budget)
        given = scanner.feed(text) + scanner.finish()
        self.counts.update(scanner.counts)
        self.stopped = scanner.stopped
        return given
