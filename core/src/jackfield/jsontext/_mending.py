"""Repair JSON written by models, which is often malformed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jackfield.jsontext._strict import MAX_DEPTH, TooDeepError, loads_strict

MAX_REPAIR_CHARS = 200_000  # models do not write longer arguments by mistake
_MAX_TOKENS = 50_000  # all tokens together take less than a tenth of a second


def mend(text: str, error: ValueError) -> object:
    """Parse malformed JSON if its meaning is unambiguous.

    The parser never guesses, for example where a string with unescaped quotes ends or what a truncated part contained.
    The text must contain exactly one value. NaN and Infinity are not accepted. Time and memory are linear in the text's
    length.

    Args:
        text: The text.
        error: The strict parser's error.

    Raises:
        ValueError: The text cannot be repaired, or it is too long or too deeply nested to try.
    """
    unfenced = _without_fence(text)
    if unfenced is not text:
        try:
            return loads_strict(unfenced)
        except TooDeepError:
            raise
        except ValueError as inside:
            error = inside
    if not unfenced.lstrip().startswith(("{", "[")):  # plain words are not repaired into strings
        raise ValueError(f"not valid JSON: {error}") from error
    if len(unfenced) > MAX_REPAIR_CHARS:
        raise ValueError(f"not valid JSON, and too long to repair: {error}") from error
    try:
        return _Mender(unfenced).only_value()
    except TooDeepError:
        raise
    except ValueError as problem:
        raise ValueError(f"not valid JSON, and could not be repaired ({problem}): {error}") from error


def _without_fence(text: str) -> str:
    """Strip a Markdown code fence that surrounds the entire text."""
    body = text.strip()
    if not (body.startswith("```") and body.endswith("```") and len(body) >= 6):
        return text
    body = body[3:-3]
    head, newline, rest = body.partition("\n")
    # The rest of the opening line is a language name, unless it is the JSON itself.
    names_a_language = newline and head.strip().isalnum()
    return rest if names_a_language or not head.strip() else body


# No part can match in two ways, and quantifiers are possessive (`*+`), so each character is read once.
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
    """Left-to-right parser for JSON with the mistakes that models make.

    The parser accepts single or typographic quotes, unquoted names and Python constants, a comma before a closing
    bracket, missing or surplus closing brackets, `\\'` and other escapes that JSON does not define, and words after the
    value.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)

    def only_value(self) -> object:
        """Read one value. Only words and closing brackets may follow the value."""
        value = self._value(depth=1)
        while self._next != _END:
            if self._next[0] not in ("word", "mark") or self._next[1] in ("{", "["):
                raise ValueError("more than one value")
            self._take()
        return value

    def _value(self, depth: int) -> object:
        match self._take():
            case ("mark", "{" | "[") if depth > MAX_DEPTH:
                raise TooDeepError
            case ("mark", "{"):
                return dict(self._pairs(depth))
            case ("mark", "["):
                return list(self._entries(depth))
            case ("string", text):
                return _unescape(text)
            case ("word", text):
                return _read_word(text)
            case (_, text):
                raise ValueError(f"missing value before {text!r}" if text else "missing value at the end")

    def _pairs(self, depth: int) -> Iterator[tuple[str, Any]]:
        while self._has_entry("}"):
            kind, text = self._take()
            if kind not in ("string", "word"):
                raise ValueError(f"missing name before {text!r}")
            if self._take() != ("mark", ":"):
                raise ValueError(f"missing colon after the name {text[:40]!r}")
            yield _unescape(text) if kind == "string" else text, self._value(depth + 1)
            self._end_entry()

    def _entries(self, depth: int) -> Iterator[object]:
        while self._has_entry("]"):
            yield self._value(depth + 1)
            self._end_entry()

    def _has_entry(self, closing: str) -> bool:
        """Return True if another entry precedes the closing bracket. Otherwise, consume the bracket.

        If the next bracket closes an outer value instead, `closing` is assumed to be missing.
        """
        if self._next == ("mark", closing):
            self._take()
            return False
        return self._next not in (_END, ("mark", "}"), ("mark", "]"))

    def _end_entry(self) -> None:
        if self._next == ("mark", ","):
            self._take()
            if self._next == _END:
                raise ValueError("truncated after a comma")
        elif self._next not in (_END, ("mark", "}"), ("mark", "]")):
            raise ValueError(f"missing comma before {self._next[1][:40]!r}")

    def _take(self) -> _Token:
        token = self._next
        self._next = next(self._tokens, _END)
        return token


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    for _ in range(_MAX_TOKENS):
        match = _TOKEN.match(text, position)
        if match is None:
            if text[position:].strip():
                raise ValueError(f"unterminated string or unexpected character at position {position}")
            break
        position = match.end()
        kind = match.lastgroup or ""
        yield (kind if kind in ("mark", "word") else "string"), match[kind]
    else:
        raise ValueError("too long to repair")
    yield _END


def _read_word(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return loads_strict(text)
    raise ValueError(f"{text[:40]!r} is not quoted")


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # As in JSON, two surrogates in a row are one character.
    return _PAIR.sub(_join_surrogates, _ESCAPE.sub(_read_escape, text))


def _read_escape(escape: re.Match[str]) -> str:
    name = escape[1]
    if len(name) > 1:
        return chr(int(name[1:], 16))
    return _ESCAPED.get(name, escape[0])  # unknown escapes such as `\d` are kept


def _join_surrogates(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
