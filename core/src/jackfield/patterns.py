"""Match untrusted regular expressions in linear time.

Python's `re` backtracks: `^(a+)+$` takes hours on fifty characters and cannot be interrupted. This module uses Rust's
`regex` engine, which ships with pydantic and never backtracks. ECMA-262 syntax, which JSON Schema uses, is translated
to Rust syntax.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

MAX_PATTERN_CHARS = 10_000
MAX_REPEATS = 1000
"""The maximum number of repeats in a pattern, where nested repeats multiply."""
MAX_STEPS = 50 * MAX_REPEATS
"""The maximum number of steps of a pattern with its repeats written out; see `count_steps`."""

_TOKEN = re.compile(
    r"""\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})  # a surrogate pair
      | (?P<braced>\\[pPu]\{[^{}]*\})
      | \\c(?P<control>[A-Za-z])
      | \\(?P<escape>.)
      | (?P<group>\((?:\?(?:<?[=!]|P?<\w+>|[a-zA-Z-]*[:)]|.?))?)
      | (?P<repeat>[*+?]|\{(?P<least>[0-9]+)(?P<comma>,(?P<most>[0-9]*))?\})
      | (?P<any>.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_STEP = re.compile(
    r"""\\.                                        # an escape
      | \[\^?\]?(?:\\.|[^\]\\])*+\]?+              # a class; a bracket that comes first in it does not close it
      | (?P<comment>\(\?\#[^)]*+\)?+)
      | (?P<open>\((?:\?(?:[:=!>|]|<[=!]|P?<\w+>))?)
      | (?P<close>\))
      | (?P<uncounted>[*+?])
      | \{(?P<bounds>\s*+[0-9]*+\s*+(?:,\s*+[0-9]*+\s*+)?+)\}
      | .""",
    re.VERBOSE | re.DOTALL,
)
_VERBOSE = re.compile(r"\(\?[a-zA-Z0-9-]*x")
_FLAGS = re.compile(r"\(\?[ims]*(?:-[ims]+)?[:)]")
_NAMED = re.compile(r"\(\?P?<[A-Za-z_]\w*>", re.ASCII)
# The classes of ECMA-262 are ASCII. Those of Rust cover every alphabet, and a hundred of them take 10 MB.
_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
    "b": r"(?-u:\b)",
    "B": r"(?-u:\B)",
}
_PLAIN_ESCAPES = {"0": r"\x00", "Z": r"\z", "/": "/"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class PatternError(ValueError):
    """A regular expression cannot be used. The message gives the reason and says what to write instead."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled regular expression that matches in linear time.

    Attributes:
        text: The expression as written.
        size: The maximum number of steps per character.
    """

    text: str
    size: int
    _validator: Any = field(repr=False, compare=False)
    _conditions: tuple[_Lookahead, ...] = ()

    def occurs_in(self, text: str) -> bool:
        """Return True if the pattern matches anywhere in the text."""
        if not text.isascii():  # Rust has no lone surrogates
            text = _SURROGATE.sub("\ufffd", text)
        matches: bool = self._validator.isinstance_python(text)
        return matches and all(one.holds_for(text) for one in self._conditions)


@dataclass(frozen=True, slots=True)
class _Lookahead:
    """A condition that the start of a text must, or must not, match a pattern."""

    pattern: Pattern
    is_wanted: bool

    def holds_for(self, text: str) -> bool:
        return self.pattern.occurs_in(text) == self.is_wanted


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> Pattern:
    """Compile an untrusted ECMA-262 regular expression.

    `$` only matches at the end, and `\\d`, `\\w` and `\\b` are ASCII-only. Python's `(?P<name>…)` and `\\Z` are
    accepted as well. Lookaheads directly after a leading `^`, as in `^(?=.*[A-Z])(?!.*\\.\\.)…`, become separate
    patterns.

    Raises:
        PatternError: The expression is not valid, is too large, or contains a backreference or any other lookaround. No
            engine can match such expressions in bounded time.
    """
    from pydantic import StringConstraints, TypeAdapter

    if len(text) > MAX_PATTERN_CHARS:
        raise PatternError(f"the pattern is {len(text):,} characters long; the limit is {MAX_PATTERN_CHARS:,}")
    if _SURROGATE.search(text):
        raise PatternError("the pattern contains a lone surrogate: use the complete character")
    lookaheads, rest = _split_lookaheads(text)
    conditions = tuple(_Lookahead(compile_pattern(f"^(?:{inner})"), is_wanted) for is_wanted, inner in lookaheads)
    translation = _Translation(rest)
    translated = translation.run()
    try:
        validator = TypeAdapter(Annotated[str, StringConstraints(pattern=translated)]).validator
    except Exception as error:  # noqa: BLE001 - pydantic has no public name for the engine's error
        reason = str(error).rstrip().rpartition("\n")[2].strip().removeprefix("error: ").rstrip(".")
        reason = reason.removeprefix("SchemaError: ")
        raise PatternError(f"unsupported pattern {_shown(text)}: {reason}") from None
    size = translation.size + sum(one.pattern.size for one in conditions)
    return Pattern(text, size, validator, conditions)


def count_steps(text: str) -> int:
    """Return the number of steps of a backtracking engine's pattern with its counted repeats written out.

    The `regex` package compiles `a{4000000}` to four million steps, which take a gigabyte. Check this number against
    `MAX_STEPS` before you compile an untrusted pattern for such an engine.
    """
    if _VERBOSE.search(text):  # comments and blanks hide what a repeat applies to, so assume the most
        counts = [_times(token["bounds"]) for token in _STEP.finditer(text) if token["bounds"]]
        return len(text) * math.prod(max(count, 1) for count in counts)
    sizes = [0]  # of the open groups
    last = 0  # the size of the part that a repeat would apply to
    for token in _STEP.finditer(text):
        if token["open"]:
            sizes.append(0)
            last = 0
        elif token["close"]:
            last = sizes.pop() if len(sizes) > 1 else 0
            sizes[-1] += last
        elif token["bounds"]:
            times = max(_times(token["bounds"]), 1)
            sizes[-1] += last * (times - 1)
            last *= times
        elif not (token["uncounted"] or token["comment"]):
            last = 1
            sizes[-1] += 1
    return sum(sizes)


def _times(bounds: str) -> int:
    """Return the larger of the numbers in `{…}`, of which only twenty digits count: Python refuses thousands."""
    return max(int(bound.strip().lstrip("0")[:20] or "0") for bound in bounds.split(","))


def _split_lookaheads(text: str) -> tuple[list[tuple[bool, str]], str]:
    """Split `^(?=a)(?!b)c` into `[(True, "a"), (False, "b")]` and `^c`.

    All parts apply to the start of the text, so each part can be matched separately. If `c` has alternatives or a
    lookahead is repeated, the parts cannot be matched separately, and the pattern is not split.
    """
    lookaheads, at = [], 1
    while text.startswith("^") and text.startswith(("(?=", "(?!"), at):
        end = _find_outside_groups(text, ")", at + 3)
        if text[end + 1 : end + 2] in ("*", "+", "?", "{"):
            return [], text
        lookaheads.append((text[at + 2] == "=", text[at + 3 : end]))
        at = end + 1
    if not lookaheads or at > len(text) or _find_outside_groups(text, "|", at) < len(text):
        return [], text
    return lookaheads, f"^{text[at:]}"


def _find_outside_groups(text: str, sign: str, start: int) -> int:
    """Return the index of a character outside escapes, classes and inner groups, or the text's length if not found."""
    at, depth, in_class = start, 0, False
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif in_class:
            in_class = text[at] != "]"
        elif depth == 0 and text[at] == sign:
            return at
        elif text[at] == "[":
            in_class = True
        else:
            depth += (text[at] == "(") - (text[at] == ")")
        at += 1
    return len(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:100] + "…")


class _Translation:
    """Translates an ECMA-262 pattern to Rust syntax and measures its size."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._out: list[str] = []
        self._sizes = [0]  # sizes of the open groups
        self._last = 0  # the size of the part that a repeat would apply to
        self._repeats = 0  # after the last piece: 1 for a repeat, 2 with the `?` that makes it lazy

    @property
    def size(self) -> int:
        return sum(self._sizes) + 1

    def run(self) -> str:
        at = 0
        while at < len(self._text):
            if self._text[at] == "[":
                at = self._character_class(at)
                continue
            token = _TOKEN.match(self._text, at)
            if token is None:
                raise self._refusal("trailing backslash")
            at = token.end()
            self._take(token)
            if self.size > MAX_STEPS:
                raise self._refusal("too large")
        return "".join(self._out)

    def _take(self, token: re.Match[str]) -> None:
        if token["repeat"]:
            self._repeat(token)
            return
        self._repeats = 0
        if token["group"]:
            self._open(token["group"])
        elif token["any"] == ")":
            if len(self._sizes) > 1:
                self._last = self._sizes.pop()
                self._sizes[-1] += self._last
            self._out.append(")")
        else:
            self._piece(self._literal(token) if token["any"] is None else _unspecial(token["any"]))

    def _piece(self, written: str) -> None:
        self._out.append(written)
        self._last = 1
        self._sizes[-1] += 1

    def _literal(self, token: re.Match[str]) -> str:
        if token["high"]:
            return _joined(token["high"], token["low"])
        if token["braced"]:
            return token["braced"]
        if token["control"]:
            return f"\\x{ord(token['control'].upper()) - 64:02x}"
        escape = token["escape"]
        if escape in "123456789k":
            raise self._refusal("backreferences cannot be matched in bounded time: remove the backreference")
        return _CLASSES.get(escape) or _escaped(escape)

    def _open(self, written: str) -> None:
        if written in ("(?=", "(?!", "(?<=", "(?<!"):
            raise self._refusal(f"the lookaround {written}…) cannot be matched in bounded time")
        is_known = written in ("(", "(?:") or _FLAGS.fullmatch(written) or _NAMED.fullmatch(written)
        if not is_known:
            raise self._refusal(f"{written!r} is not supported: use (…), (?:…) or (?<name>…)")
        self._out.append(written)
        if not written.endswith(")"):
            if len(self._sizes) > 100:
                raise self._refusal("groups are nested more than 100 levels deep")
            self._sizes.append(0)

    def _repeat(self, token: re.Match[str]) -> None:
        is_lazy = token["repeat"] == "?" and self._repeats == 1
        if self._repeats and not is_lazy:
            raise self._refusal(f"{token['repeat']!r} follows another quantifier: put the quantified part in a group")
        self._repeats += 1
        self._out.append(token["repeat"])
        if token["least"]:
            bounds = (token["least"], token["most"] or "0")
            times = max(int(bound.lstrip("0")[:6] or "0") for bound in bounds)
            if times > MAX_REPEATS:
                raise self._refusal(f"repeat count exceeds {MAX_REPEATS}: use minLength and maxLength")
            self._sizes[-1] += self._last * max(times - 1, 0)

    def _character_class(self, start: int) -> int:
        """Translate `[…]` and return the index after it."""
        out, at = ["["], start + 1
        if self._text.startswith("^", at):
            out.append("^")
            at += 1
        first = at
        while at < len(self._text):
            if self._text[at] == "]":
                if at == first:
                    self._repeats = 0
                    self._piece(r"[\s\S]" if out[-1] == "^" else r"[^\s\S]")  # ECMA-262: anything or nothing
                    return at + 1
                self._repeats = 0
                self._piece("".join([*out, "]"]))
                return at + 1
            token = _TOKEN.match(self._text, at)
            if token is None:
                break
            if token["escape"] or token["high"] or token["control"] or token["braced"]:
                out.append(self._in_class(token))
                at = token.end()
            else:
                out.append(self._own_sign(at, first))
                at += 1
        raise self._refusal("unclosed '['")

    def _own_sign(self, at: int, first: int) -> str:
        """Escape a character that is only special in Rust's classes. A `-` next to a class such as `\\w` is literal."""
        sign = self._text[at]
        if sign == "-":
            beside_class = self._text[max(at - 2, first) : at] in _SETS or self._text[at + 1 : at + 3] in _SETS
            is_range = at > first and self._text[at + 1 : at + 2] != "]" and not beside_class
            return "-" if is_range else r"\-"
        return f"\\{sign}" if sign in "[&~^#" else sign

    def _in_class(self, token: re.Match[str]) -> str:
        if token["escape"] == "b":
            return r"\x08"
        if token["escape"] in ("B", "Z"):
            raise self._refusal(f"\\{token['escape']} is not allowed in a character class")
        if token["escape"] in ("d", "w"):
            return _CLASSES[token["escape"]][1:-1]
        return self._literal(token)

    def _refusal(self, reason: str) -> PatternError:
        return PatternError(f"unsupported pattern {_shown(self._text)}: {reason}")


_SETS = frozenset(rf"\{sign}" for sign in "dDwWsS")


def _unspecial(sign: str) -> str:
    """Escape a `{` that does not start a repetition. ECMA-262 and Python treat it as a literal."""
    return f"\\{sign}" if sign in "{}]" else sign


def _escaped(escape: str) -> str:
    if escape in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[escape]
    return f"\\{escape}" if escape.isascii() else escape


def _joined(high: str, low: str) -> str:
    return f"\\x{{{0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00:x}}}"
