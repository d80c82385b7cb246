"""Read JSON that a model wrote, which is often not quite JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

MAX_REPAIR_CHARS = 200_000  # a longer text is not a slip of the pen
MAX_DEPTH = 100  # of brackets; what reads the values afterwards calls itself for each level, and Python ends at 1000
_MAX_TOKENS = 50_000  # that are looked at one by one: less than a tenth of a second


def loads_lenient(text: str) -> object:
    """Parse JSON as models write it: with raw newlines, single quotes, trailing commas, a code fence around it.

    Strict JSON is tried first, so well-formed text costs nothing extra and is never reinterpreted. Otherwise it is
    repaired if the meaning is clear. Nothing is guessed: not the end of a string with quotes in it, nor anything that
    was cut off. The text is one value; NaN and Infinity are not accepted. Work and memory grow linearly with the text.

    Raises:
        ValueError: The text is not JSON and cannot be repaired, or is too long or too deep to try.
    """
    unfenced = _without_fence(text)
    try:
        return _shallow(_strictly(unfenced), unfenced)
    except _TooDeepError:
        raise
    except ValueError as error:
        first_error = error
    except RecursionError:
        raise _TooDeepError from None
    # Words are not made into strings: only what means to be JSON is mended.
    if not unfenced.lstrip().startswith(("{", "[")):
        raise ValueError(f"not JSON: {first_error}") from first_error
    if len(unfenced) > MAX_REPAIR_CHARS:
        raise ValueError(f"not JSON, and too long to be repaired: {first_error}") from first_error
    try:
        return _Mender(unfenced).only_value()
    except _TooDeepError:
        raise
    except ValueError as error:
        raise ValueError(f"not JSON, and cannot be repaired ({error}): {first_error}") from first_error


def is_json(text: str) -> bool:
    """Whether a text is JSON without any repair, except for raw control characters in strings."""
    try:
        _shallow(_strictly(text), text)
    except (ValueError, RecursionError):
        return False
    return True


def dumps(value: object) -> str:
    """JSON as it is shown to a model: one line, other alphabets readable."""
    return json.dumps(value, ensure_ascii=False)


def _without_fence(text: str) -> str:
    """Take a Markdown code fence off, if the whole text stands in one."""
    body = text.strip()
    if not (body.startswith("```") and body.endswith("```") and len(body) >= 6):
        return text
    body = body[3:-3]
    head, newline, rest = body.partition("\n")
    # The rest of the opening line is a language name, unless it is the JSON itself.
    names_a_language = newline and head.strip().isalnum()
    return rest if names_a_language or not head.strip() else body


# --- what JSON is -----------------------------------------------------------------------------------------------------


class _TooDeepError(ValueError):
    def __init__(self) -> None:
        super().__init__(f"the JSON is nested too deeply: {MAX_DEPTH} levels are the most")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large for a number")
    return number


# strict=False lets raw control characters stand in strings: models write newlines into code arguments.
_strictly = json.JSONDecoder(strict=False, parse_constant=_no_constant, parse_float=_finite).decode


def _shallow(value: object, text: str) -> object:
    """The value, unless it is nested too deeply. With few brackets, which is usual, nothing is looked at."""
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise _TooDeepError
    return value


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    entries = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(entry, levels - 1) for entry in entries)


# --- what models make of it -------------------------------------------------------------------------------------------

# No part may be matched in two ways, and none is given back (`*+`): each character is looked at once.
_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<mark>[{}\[\],:])
      | "(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"
      | '(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'
      | “(?P<curly>[^”\\]*+(?:\\.[^”\\]*+)*+)”
      | (?P<word>[\w.+$-]++)
    )""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_END = ("end", "")

_Token = tuple[str, str]


class _Mender:
    """Reads the slips that models make, from left to right.

    They are: single or typographic quotes, names and Python's words without quotes, a comma before a closing bracket,
    closing brackets that are missing or too many, `\\'` and other escapes that JSON has not, words behind the value.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)

    def only_value(self) -> object:
        """The value; all that may follow are words and closing brackets."""
        value = self._value(depth=1)
        while self._next != _END:
            if self._next[0] not in ("word", "mark") or self._next[1] in ("{", "["):
                raise ValueError("there is more than one value")
            self._take()
        return value

    def _value(self, depth: int) -> object:
        match self._take():
            case ("mark", "{" | "[") if depth > MAX_DEPTH:
                raise _TooDeepError
            case ("mark", "{"):
                return dict(self._pairs(depth))
            case ("mark", "["):
                return list(self._entries(depth))
            case ("string", text):
                return _unescaped(text)
            case ("word", text):
                return _word(text)
            case (_, text):
                raise ValueError(f"a value is missing before {text!r}" if text else "a value is missing at the end")

    def _pairs(self, depth: int) -> Iterator[tuple[str, Any]]:
        while self._has_entry("}"):
            kind, text = self._take()
            if kind not in ("string", "word"):
                raise ValueError(f"a name is missing before {text!r}")
            if self._take() != ("mark", ":"):
                raise ValueError(f"there is no colon after the name {text[:40]!r}")
            yield _unescaped(text) if kind == "string" else text, self._value(depth + 1)
            self._end_entry()

    def _entries(self, depth: int) -> Iterator[object]:
        while self._has_entry("]"):
            yield self._value(depth + 1)
            self._end_entry()

    def _has_entry(self, closing: str) -> bool:
        """Whether something stands before the closing bracket, which is taken.

        Where another bracket closes what is around it, this one is missing.
        """
        if self._next == ("mark", closing):
            self._take()
            return False
        return self._next not in (_END, ("mark", "}"), ("mark", "]"))

    def _end_entry(self) -> None:
        if self._next == ("mark", ","):
            self._take()
            if self._next == _END:
                raise ValueError("it was cut off after a comma")
        elif self._next not in (_END, ("mark", "}"), ("mark", "]")):
            raise ValueError(f"there is no comma before {self._next[1][:40]!r}")

    def _take(self) -> _Token:
        token = self._next
        self._next = next(self._tokens, _END)
        return token


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    for _ in range(_MAX_TOKENS):
        found = _TOKEN.match(text, place)
        if found is None:
            if text[place:].strip():
                raise ValueError(f"a string is not closed, or there is an unexpected character, at {place}")
            break
        place = found.end()
        kind = found.lastgroup or ""
        yield (kind if kind in ("mark", "word") else "string"), found[kind]
    else:
        raise ValueError("it is too long to be repaired")
    yield _END


def _word(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return _strictly(text)
    raise ValueError(f"{text[:40]!r} has no quotes")


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    # Two halves of a pair are one character, as in JSON.
    return _PAIR.sub(_one_character, _ESCAPE.sub(_character, text))


def _character(escape: re.Match[str]) -> str:
    name = escape[1]
    if len(name) > 1:
        return chr(int(name[1:], 16))
    return _ESCAPED.get(name, escape[0])  # `\d` is meant as it stands


def _one_character(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
