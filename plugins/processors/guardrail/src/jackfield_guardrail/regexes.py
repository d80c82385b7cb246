"""Regular expressions that come from the operator and meet texts that come from anybody: which ones are refused."""

from __future__ import annotations

import re

_MANY = 10  # repeats of a repeat, from here on, multiply to more than a window bounds
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
    """Why a regular expression is refused, '' if it is not.

    Besides what Python cannot read, and what matches the empty text, that is a repeat inside of a repeat: on a hostile
    text such a one takes time that doubles with each character, and nothing can stop it.
    """
    try:
        compiled = re.compile(regex)
    except (re.error, RecursionError, OverflowError):
        return "it is no regular expression that Python's re can read"
    if compiled.match(""):
        return "it matches the empty text, so it would match everywhere"
    if _repeats_repeats(regex):
        return (
            "it repeats a group in which something is repeated, and a hostile text could make that take for ever: "
            "make the inner repeat possessive (`++`, `*+`), or the group atomic (`(?>…)`)"
        )
    return ""


def _repeats_repeats(regex: str) -> bool:
    """Whether an unbounded repeat stands around another that can give back what it took."""
    inside = [False]  # for each open group, whether there is a repeat in it
    atomic = [False]
    before = False  # whether there is a repeat in the piece that was read last
    for token in _TOKEN.finditer(regex):
        repeats, before = before, False
        if _opens_a_group(token):
            inside.append(False)
            atomic.append(token["kind"] == ">")
        elif token["close"] and len(inside) > 1:
            keeps = atomic.pop()
            before = inside.pop() and not keeps
            inside[-1] = inside[-1] or before
        elif token["repeat"] and _is_long(token) and token["suffix"] != "+":
            if repeats:
                return True
            inside[-1] = True
    return False


def _opens_a_group(token: re.Match[str]) -> bool:
    """Whether a group begins here: flags for the whole, and references, stand in parentheses, too."""
    kind = token["kind"] or ""
    return bool(token["open"]) and not (kind.endswith(")") or kind.startswith("P="))


def _is_long(repeat: re.Match[str]) -> bool:
    if repeat["repeat"][0] != "{":
        return repeat["repeat"][0] != "?"
    if not repeat["comma"]:
        return int(repeat["least"] or 0) > _MANY
    return not repeat["most"] or int(repeat["most"]) > _MANY
