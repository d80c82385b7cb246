"""Replace values by placeholders while a model is asked, and put the values back into its answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from jackfield_redaction.arguments import quoted

PLACEHOLDER = re.compile(r"\[[A-Z][A-Z0-9_]{0,40}\]")
_BEGUN = re.compile(r"\[(?:[A-Z][A-Z0-9_]{0,40})?\Z")


class Vault:
    """Gives each distinct value of one request a placeholder, and remembers it.

    They are numbered in the order of the history, so that a history that grows keeps its placeholders. A placeholder
    that the texts already contain belongs to no value.

    Args:
        texts: All texts that the model will read.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._taken = {placeholder for text in texts for placeholder in PLACEHOLDER.findall(text)}
        self._by_value: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}
        self.values: dict[str, str] = {}

    def placeholder(self, kind: str, value: str) -> str:
        """Return the placeholder of a value."""
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
    """Puts values back into one text that arrives in pieces; it holds back no more than half a placeholder."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._rest = ""

    def feed(self, text: str) -> str:
        """Add text; return the decided part."""
        text = self._rest + text
        begun = _BEGUN.search(text, max(0, text.rfind("[")))
        self._rest = text[begun.start() :] if begun else ""
        return self._restored(text[: begun.start()] if begun else text)

    def finish(self) -> str:
        """Return the rest, which contains no placeholder."""
        rest, self._rest = self._rest, ""
        return rest

    def _restored(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda found: self._values.get(found[0], found[0]), text)


class ArgumentsRestorer:
    """Puts values back into the arguments of one call: escaped in JSON, unchanged in plain text."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._restorer: Restorer | None = None

    def feed(self, text: str) -> str:
        """Add a piece of the arguments; return the decided part."""
        if self._restorer is None:
            head = text.lstrip()
            if not head:
                return text
            is_json = head.startswith("{")
            values = {key: quoted(value) for key, value in self._values.items()} if is_json else self._values
            self._restorer = Restorer(values)
        return self._restorer.feed(text)

    def finish(self) -> str:
        """Return the rest."""
        return self._restorer.finish() if self._restorer else ""
