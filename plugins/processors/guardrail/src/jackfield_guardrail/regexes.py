"""Reject regular expressions that are too slow for untrusted text."""

from __future__ import annotations

import re
from dataclasses import dataclass

import regex as regexes

from jackfield.patterns import MAX_STEPS, count_steps

_MANY = 10  # counted repeats above this multiply beyond the bounds of a window
_TOKEN = re.compile(
    r"""\\.                                    # an escape
      | \[\^?\]?(?:\\.|[^\]\\])*\]             # a class; a bracket that comes first in it does not close it
      | \(\?\#[^)]*\)                          # a comment
      | (?P<open>\((?:\?(?P<kind>P?<?[^\W\d]\w*>|P=\w+|P>\w+|[:>=!]|<[=!]|[aiLmsux-]+[:)]|\(\w+\)))?)
      | (?P<close>\))
      | (?P<repeat>(?:[*+?]|\{(?P<least>\d*)(?P<comma>,)?(?P<most>\d*)\})(?P<suffix>[?+])?)
      | .""",
    re.VERBOSE | re.DOTALL,
)


def fault_of_regex(regex: str) -> str:
    """Return the reason to reject a regular expression, or '' if it is acceptable.

    Expressions are rejected if Python cannot compile them or would need a lot of memory to do so, if they match the
    empty string, or if they nest repeats, because hostile text doubles the time of nested repeats with each character.
    Other slow expressions are stopped during the search.
    """
    if count_steps(regex) > MAX_STEPS:
        return "the pattern contains too many repetitions: lower the numbers in {…}"
    try:
        compiled = re.compile(regex)
        regexes.compile(regex, regexes.VERSION0)
    except (re.error, regexes.error, RecursionError, OverflowError):
        return "not a valid Python regular expression"
    if compiled.match(""):
        return "the pattern matches the empty string, so it would match everywhere"
    if _repeats_repeats(regex):
        return (
            "the pattern repeats a group that contains a repeat, which could run forever on hostile input: "
            "make the inner repeat possessive (`++`, `*+`), or the group atomic (`(?>…)`)"
        )
    return ""


def _repeats_repeats(regex: str) -> bool:
    """Return True if an unbounded repeat contains another one that can backtrack."""
    groups = [_Group()]
    before = False  # True if the last token contains a repeat
    for token in _TOKEN.finditer(regex):
        repeats, before = before, False
        if _opens_a_group(token):
            groups.append(_Group(is_atomic=token["kind"] == ">"))
        elif token["close"] and len(groups) > 1:
            before = groups.pop().gives_back
            groups[-1].has_repeat |= before
        elif _gives_back(token):
            if repeats:
                return True
            groups[-1].has_repeat = True
    return False


@dataclass(slots=True)
class _Group:
    """An open group."""

    is_atomic: bool = False
    has_repeat: bool = False

    @property
    def gives_back(self) -> bool:
        """True if the group contains a repeat that can backtrack."""
        return self.has_repeat and not self.is_atomic


def _gives_back(token: re.Match[str]) -> bool:
    """Return True if the token is an unbounded repeat that can backtrack."""
    return bool(token["repeat"]) and token["suffix"] != "+" and _is_long(token)


def _opens_a_group(token: re.Match[str]) -> bool:
    """Return True if the token opens a group, which a later token closes. Global flags are a single token."""
    kind = token["kind"] or ""
    return bool(token["open"]) and (kind.startswith("(") or not kind.endswith(")"))


def _is_long(repeat: re.Match[str]) -> bool:
    if repeat["repeat"][0] != "{":
        return repeat["repeat"][0] != "?"
    if not repeat["comma"]:
        return int(repeat["least"] or 0) > _MANY
    return not repeat["most"] or int(repeat["most"]) > _MANY
