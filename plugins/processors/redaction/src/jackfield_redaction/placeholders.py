"""Replace values with placeholders in a request, and restore the values in the answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from jackfield_redaction.arguments import quoted

PLACEHOLDER = re.compile(r"\[[A-Z][A-Z0-9_]{0,40}\]")
_BEGUN = re.compile(r"\[(?:[A-Z][A-Z0-9_]{0,40})?\Z")


class Vault:
    """Assigns a placeholder to each distinct value in a request.

    Placeholders are numbered in the order of the history, so they stay the same as the history grows. A placeholder
    that already occurs in the texts is never assigned.

    Args:
        texts: All texts that the model will read.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._taken = {placeholder for text in texts for placeholder in PLACEHOLDER.findall(text)}
        self._by_value: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}
        self.values: dict[str, str] = {}

    def placeholder(self, kind: str, value: str) -> str:
        """Return the placeholder for a value."""
        known = self._by_value.get((kind, value))
        if known is None:
            known = self._by_value[kind, value] = self._next(kind)
            self.values[known] = value
        return known

    def _next(self, kind: str) -> str:
        while True:
            self._last[kind] = self._last.get(kind, 0) + 1
            placeholder = f"[{kind.upper()}_{self._last[kind]}]"
            if placeholder not in self._taken:
                return placeholder

    def __repr__(self) -> str:
        return f"<Vault of {len(self.values)} values>"


class Restorer:
    """Restores values in one streamed text. Only an incomplete placeholder is buffered."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._rest = ""

    def feed(self, text: str) -> str:
        """Add text and return the part that is now decided."""
        text = self._rest + text
        begun = _BEGUN.search(text, max(0, text.rfind("[")))
        self._rest = text[begun.start() :] if begun else ""
        return self._restored(text[: begun.start()] if begun else text)

    def finish(self) -> str:
        """Return the remaining text, which contains no placeholder."""
        rest, self._rest = self._rest, ""
        return rest

    def _restored(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda found: self._values.get(found[0], found[0]), text)


class ArgumentsRestorer:
    """Restores values in one call's arguments, escaping them if the arguments are JSON."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._restorer: Restorer | None = None

    def feed(self, text: str) -> str:
        """Add part of the arguments and return what is now decided."""
        if self._restorer is None:
            head = text.lstrip()
            if not head:
                return text
            is_json = head.startswith("{")
            values = {key: quoted(value) for key, value in self._values.items()} if is_json else self._values
            self._restorer = Restorer(values)
        return self._restorer.feed(text)

    def finish(self) -> str:
        """Return the remaining arguments."""
        return self._restorer.finish() if self._restorer else ""
