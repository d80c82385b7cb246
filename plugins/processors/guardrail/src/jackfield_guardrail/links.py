"""Find the hosts of links and images in an answer.

A browser fetches a page's images immediately, and a URL can carry any text, so a manipulated model can leak a
conversation through an image. Therefore anything that a browser or Markdown renderer might treat as a URL is checked,
and passes only if its host is listed or if it has no host.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from enum import IntEnum

from jackfield_guardrail.finding import Found

_WINDOW = 128

# Every opening contains one of these. Most texts have none, and need no further search.
_HINT = re.compile(r"\](?:\(|:)|=|[lL]\(|[/\\]{2}|:[/\\]|[wW]\.")
_OPENING = re.compile(
    r"""(?P<markdown>\][(:]\s{0,64}<?)
      | (?P<html>\b(?:src|href|srcset|action|formaction|poster|background|data|cite|ping)\s{0,8}=\s{0,8}["']?)
      | (?P<css>\burl\(\s{0,8}["']?)
      | (?P<bare>(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]{1,64}:[/\\]{2}
          | (?<=[A-Za-z0-9+.-]{32}):[/\\]{2}      # of no scheme that anybody knows
          | (?<![\w.])www\.(?=\w)
          | (?<![A-Za-z0-9/\\])[/\\]{2}(?=[^\s/\\]*[.@][^\s.]))""",
    re.VERBOSE | re.IGNORECASE,
)
# The context of an address determines its end. Ending it earlier than a browser would mean checking another host.
_UP_TO = {
    "<": re.compile(r"[^\n<>]*"),
    '"': re.compile(r'[^"]*'),
    "'": re.compile(r"[^']*"),
    "markdown": re.compile(r"[^\s)]*"),
    "html": re.compile(r"[^\s>]*"),
    "css": re.compile(r"[^\s)]*"),
    "bare": re.compile(r"\S*"),
}
_SHOWN = re.compile(r"""[^\s<>"'`)\]]*""")  # characters that readers treat as part of a bare address
_IGNORED = re.compile(r"[\t\r\n]")  # removed by browsers anywhere in an address
_STRIPPED = "".join(map(chr, range(33)))  # removed by browsers around an address
_HALF_AN_ENTITY = re.compile(r"&[#\w]*\Z")
_SCHEME = re.compile(r"([a-z0-9+.-]*):", re.IGNORECASE)
_MAY_BECOME_A_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*|/)?\Z", re.IGNORECASE)
_SERVER = re.compile(r"([^/?#]*)([/?#]?)")
_NAME = re.compile(r"[a-z0-9.-]*(?::\d+)?")
# Text after the name in a bare address that could still turn it into a different name. If only words follow, as in a
# Chinese sentence, only an ASCII name could do that; if a path follows, which could carry data, any name could.
_GOES_ON = {"": re.compile(r"[.:。．｡][a-z0-9]"), "/": re.compile(r"[.:。．｡]\w|[^\W_a-z0-9]")}
_RUNS = frozenset({"javascript", "vbscript", "file", "ftp", "ftps", "sftp", "ws", "wss", "blob", "filesystem"})


class _May(IntEnum):
    """Verdicts on an address, ordered from best to worst."""

    PASS = 1
    NOT_BE_TOLD = 2
    NOT_PASS = 3


class LinkFinder:
    """Finds links and images whose host is not listed.

    Args:
        hosts: The listed hosts, such as `www.example.org`, `*.example.org` for all its subdomains, or `localhost:8000`
            for this port only.
    """

    window = _WINDOW

    def __init__(self, hosts: Iterable[str]) -> None:
        listed = set(map(str.lower, hosts))
        below = {host for host in listed if host.startswith("*.")}
        self._exact = listed - below
        self._below = tuple(host[1:] for host in below)

    def find(self, text: str, start: int, *, complete: bool) -> Found | None:
        """Return the first address that is not listed, or is undecided because the text ends inside it."""
        while _HINT.search(text, start) and (opening := _OPENING.search(text, start)):
            found = self._behind(opening, text, complete=complete)
            if found is not None:
                return found
            start = opening.end()
        return None

    def _behind(self, opening: re.Match[str], text: str, *, complete: bool) -> Found | None:
        """Return the address after an opening, or None if the address may pass."""
        is_bare = opening.lastgroup == "bare"
        begins = opening.start() if is_bare else opening.end()
        taken = _taken(_up_to(opening), text, begins)
        goes_on = taken.end() == len(text) and not complete
        may = self._may(taken[0], opening.lastgroup or "", goes_on=goes_on)
        if may is _May.PASS:
            return None
        is_shown = is_bare and may is _May.NOT_PASS
        end = _taken(_SHOWN, text, begins).end() if is_shown else taken.end()
        return Found(opening.start(), max(end, opening.end()), begins - opening.start())

    def _may(self, address: str, kind: str, *, goes_on: bool) -> _May:
        """Judge an address by its most suspicious reading."""
        if kind == "markdown" and address.endswith("\\") and not goes_on:
            return _May.NOT_PASS  # the escaped character belongs to the address, whose end is then unknown here
        if goes_on:
            address = _HALF_AN_ENTITY.sub("", address)
        is_bare = kind == "bare"
        return max(self._reading(reading, is_bare=is_bare, goes_on=goes_on) for reading in _readings(address))

    def _reading(self, address: str, *, is_bare: bool, goes_on: bool) -> _May:
        if is_bare and address[:4].lower() == "www.":
            address = f"//{address}"
        if goes_on and _MAY_BECOME_A_SCHEME.match(address):
            return _May.NOT_BE_TOLD
        scheme = _SCHEME.match(address)
        if scheme is None:
            return self._server(address, is_bare=is_bare, goes_on=goes_on) if address.startswith("//") else _May.PASS
        return self._of_scheme(scheme[1].lower(), address[scheme.end() :], is_bare=is_bare, goes_on=goes_on)

    def _of_scheme(self, scheme: str, rest: str, *, is_bare: bool, goes_on: bool) -> _May:
        if scheme.endswith(("http", "https")):  # words directly before an address are not part of it
            return self._server(rest, is_bare=is_bare, goes_on=goes_on)
        if goes_on and len(rest) < len("image/"):
            return _May.NOT_BE_TOLD
        if scheme == "data":
            return _may_if(rest.lower().startswith("image/"))
        if scheme == "mailto":
            return self._mail(rest, goes_on=goes_on)
        return _may_if(not (scheme in _RUNS or rest.startswith("//")))

    def _mail(self, rest: str, *, goes_on: bool) -> _May:
        if goes_on:
            return _May.NOT_BE_TOLD
        return _may_if(self._is_listed(rest.partition("?")[0].rpartition("@")[2].lower()))

    def _server(self, rest: str, *, is_bare: bool, goes_on: bool) -> _May:
        server, end = _taken(_SERVER, rest.lstrip("/").lower()).groups()  # browsers ignore the number of slashes
        if goes_on and not end:
            return _May.NOT_BE_TOLD
        if "@" in server:  # a user name and password, an old way to hide the host of an address
            return _May.NOT_PASS
        if is_bare:
            server = _without_the_sentence(server, end)
        return _may_if(self._is_listed(server))

    def _is_listed(self, server: str) -> bool:
        server = server.rstrip(".")
        name, _, port = server.partition(":")
        name = name.rstrip(".")
        if server in self._exact:
            return True
        if port and not port.isdecimal():
            return False
        return name in self._exact or name[1:].endswith(self._below)  # at least one character precedes the ending


def _may_if(is_allowed: bool) -> _May:
    return _May.PASS if is_allowed else _May.NOT_PASS


def _up_to(opening: re.Match[str]) -> re.Pattern[str]:
    """Return the pattern that matches the rest of an address after an opening."""
    kind, mark = opening.lastgroup or "", opening[0][-1]
    return _UP_TO[mark if kind != "bare" and mark in "<\"'" else kind]


def _taken(pattern: re.Pattern[str], text: str, start: int = 0) -> re.Match[str]:
    """Match a pattern that always matches, even if only the empty string."""
    match = pattern.match(text, start)
    assert match is not None  # noqa: S101 - see above
    return match


def _readings(address: str) -> set[str]:
    """Return all readings of an address. Browsers treat a backslash as a slash, while Markdown may drop it."""
    readings: set[str] = set()
    for text in (address, html.unescape(address)):  # renderers that link bare addresses may not know entities
        shown = _IGNORED.sub("", text).strip(_STRIPPED)
        readings |= {shown.replace("\\", "/"), shown.replace("\\", "")}
    return readings


def _without_the_sentence(server: str, end: str) -> str:
    """Return a bare address's host without quotes, brackets and full stops that belong to the surrounding sentence."""
    name = _taken(_NAME, server)
    if server.endswith(("http:", "https:")):  # the next address, which is checked separately
        end = ""
    return server if _GOES_ON[end and "/"].search(server, name.end()) else name[0]
