"""Find values in a call's arguments, which are streamed JSON."""

from __future__ import annotations

import json
import re

from jackfield_redaction.scanner import Finder, Replace, Scanner

_OUTSIDE = re.compile(r'[^"0-9-]+')
_NUMBER = re.compile(r"[0-9-][0-9.eE+-]{0,63}+")
_PLAIN = re.compile(r'[^"\\]+')
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)",
    re.DOTALL,
)
# The start of an incomplete escape: one without all its digits, or the first half of a surrogate pair.
_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)?\Z")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def quoted(text: str) -> str:
    """Return text as it appears between the quotes of a JSON string."""
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", inside)


class ArgumentsScanner:
    """Replaces values in one call's arguments without breaking the JSON.

    The scanner decodes each string before searching it, and searches numbers as well; a number with a match becomes a
    string. Arguments that do not start with an object are treated as plain text, because some models write code
    instead. Strings are re-encoded, so escapes may differ from the original.
    """

    def __init__(self, finder: Finder, replace: Replace) -> None:
        self._finder = finder
        self._replace = replace
        self._budget = finder.make_budget()  # shared by all strings, however many there are
        self._rest = ""  # an incomplete escape or number
        self._string: Scanner | None = None  # for the open string
        self._plain: Scanner | None = None  # for arguments that are not JSON
        self._begun = False

    def feed(self, text: str) -> str:
        """Add part of the arguments and return what is now decided."""
        if not self._begun:
            head = text.lstrip()
            if not head:
                return text
            self._begun = True
            if not head.startswith("{"):
                self._plain = Scanner(self._finder, self._replace, self._budget)
        if self._plain:
            return self._plain.feed(text)
        return self._advance(text, final=False)

    def finish(self) -> str:
        """Return the rest of the arguments, which may be incomplete."""
        if self._plain:
            return self._plain.finish()
        rest = self._advance("", final=True)
        return rest + quoted(self._string.finish()) if self._string else rest

    def _advance(self, text: str, *, final: bool) -> str:
        text = self._rest + text
        self._rest = ""
        place = 0
        pieces: list[str] = []
        while place < len(text):
            step = self._in_string if self._string else self._outside
            piece, after = step(text, place, final=final)
            if after == place:
                self._rest = text[place:]
                break
            pieces.append(piece)
            place = after
        return "".join(pieces)

    def _outside(self, text: str, place: int, *, final: bool) -> tuple[str, int]:
        """Take one step outside a string. Return the output and the new position, unchanged if more text is needed."""
        if text[place] == '"':
            self._string = Scanner(self._finder, self._replace, self._budget)
            return '"', place + 1
        number = _NUMBER.match(text, place)
        if number is None:
            end = _OUTSIDE.match(text, place)
            assert end is not None  # noqa: S101 - it takes all that the other two do not
            return end[0], end.end()
        if number.end() == len(text) and not final:
            return "", place
        scanner = Scanner(self._finder, self._replace, self._budget)
        replaced = scanner.feed(number[0]) + scanner.finish()
        return number[0] if replaced == number[0] else f'"{quoted(replaced)}"', number.end()

    def _in_string(self, text: str, place: int, *, final: bool) -> tuple[str, int]:
        """Take one step inside a string. Return the output and the new position, unchanged if more text is needed."""
        assert self._string is not None  # noqa: S101 - `_advance` sees to it
        if text[place] == '"':
            rest = quoted(self._string.finish())
            self._string = None
            return f'{rest}"', place + 1
        plain = _PLAIN.match(text, place)
        if plain:
            return quoted(self._string.feed(plain[0])), plain.end()
        if not final and _BEGUN.match(text, place):
            return "", place
        escape = _ESCAPE.match(text, place)
        raw = escape[0] if escape else text[place:]
        return quoted(self._string.feed(_unescaped(raw))), place + len(raw)


def _unescaped(raw: str) -> str:
    try:
        return str(json.loads(f'"{raw}"'))
    except ValueError:
        return raw  # not a JSON escape, so a literal backslash
