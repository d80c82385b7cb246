"""Links and images in an answer: which hosts they lead to.

A picture that a page shows is fetched at once, with all that its address says: a model that was talked into it can
carry out of a conversation what it knows. So everything that a browser, or a renderer of Markdown, may take for an
address is looked at, and passes only if its host is listed, or if it has none.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from enum import Enum

from jackfield_guardrail.finding import Found

_WINDOW = 128

# A part of every opening: most texts have none, and are done with this.
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
# How far an address goes is said by what it stands in. To end it sooner than a browser would is to see another host.
_UP_TO = {
    "<": re.compile(r"[^\n<>]*"),
    '"': re.compile(r'[^"]*'),
    "'": re.compile(r"[^']*"),
    "markdown": re.compile(r"[^\s)]*"),
    "html": re.compile(r"[^\s>]*"),
    "css": re.compile(r"[^\s)]*"),
    "bare": re.compile(r"\S*"),
}
_SHOWN = re.compile(r"""[^\s<>"'`)\]]*""")  # of a bare address: what a reader takes for it
_IGNORED = re.compile(r"[\t\r\n]")  # by browsers, wherever it stands in an address
_STRIPPED = "".join(map(chr, range(33)))  # by browsers, around an address
_HALF_AN_ENTITY = re.compile(r"&[#\w]*\Z")
_SCHEME = re.compile(r"([a-z0-9+.-]*):", re.IGNORECASE)
_MAY_BECOME_A_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*|/)?\Z", re.IGNORECASE)
_SERVER = re.compile(r"([^/?#]*)([/?#]?)")
_NAME = re.compile(r"[a-z0-9.-]*(?::\d+)?")
# After the name in a bare address: what could still make it another name. Where nothing follows but words, as in a
# Chinese sentence, only a name in ASCII could; where a path follows, so that something could be carried, any could.
_GOES_ON = {"": re.compile(r"[.:。．｡][a-z0-9]"), "/": re.compile(r"[.:。．｡]\w|[^\W_a-z0-9]")}
_RUNS = frozenset({"javascript", "vbscript", "file", "ftp", "ftps", "sftp", "ws", "wss", "blob", "filesystem"})


class _May(Enum):
    """Whether an address may pass."""

    PASS = 1
    NOT_PASS = 2
    NOT_BE_TOLD = 3


class LinkFinder:
    """Looks for links and images whose host is not listed.

    Args:
        hosts: Which are: `www.example.org`, `*.example.org` for all below it, `localhost:8000` for one port alone.
    """

    window = _WINDOW

    def __init__(self, hosts: Iterable[str]) -> None:
        listed = [host.lower() for host in hosts]
        self._exact = frozenset(host for host in listed if not host.startswith("*."))
        self._below = tuple(host[1:] for host in listed if host.startswith("*."))

    def find(self, text: str, start: int, *, complete: bool) -> Found | None:
        """The first that is not listed, or that cannot be told yet because the text ends in it."""
        while _HINT.search(text, start) and (opening := _OPENING.search(text, start)):
            kind = opening.lastgroup or ""
            mark = opening[0][-1]
            begins = opening.start() if kind == "bare" else opening.end()
            match = _UP_TO[mark if kind != "bare" and mark in "<\"'" else kind].match(text, begins)
            assert match is not None  # noqa: S101 - it takes nothing, too
            may = self._may(match[0], kind, goes_on=match.end() == len(text) and not complete)
            if may is not _May.PASS:
                is_shown = kind == "bare" and may is _May.NOT_PASS
                end = _end_of_what_is_shown(text, begins) if is_shown else match.end()
                return Found(opening.start(), max(end, opening.end()), begins - opening.start())
            start = opening.end()
        return None

    def _may(self, address: str, kind: str, *, goes_on: bool) -> _May:
        """Whether an address may pass; the worst of its readings counts."""
        if kind == "markdown" and address.endswith("\\") and not goes_on:
            return _May.NOT_PASS  # what it protects belongs to the address, which then has no end that is known here
        if goes_on:
            address = _HALF_AN_ENTITY.sub("", address)
        readings = {
            reading
            for text in (address, html.unescape(address))  # who makes links of bare addresses may not know entities
            for reading in _readings(_IGNORED.sub("", text).strip(_STRIPPED))
        }
        answers = {self._reading(reading, is_bare=kind == "bare", goes_on=goes_on) for reading in readings}
        return next((may for may in (_May.NOT_PASS, _May.NOT_BE_TOLD) if may in answers), _May.PASS)

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
        if scheme.endswith(("http", "https")):  # words that stand directly before one are no part of it
            return self._server(rest, is_bare=is_bare, goes_on=goes_on)
        if goes_on and len(rest) < len("image/"):
            return _May.NOT_BE_TOLD
        if scheme == "data":
            return _May.PASS if rest.lower().startswith("image/") else _May.NOT_PASS
        if scheme == "mailto":
            return self._mail(rest, goes_on=goes_on)
        return _May.NOT_PASS if scheme in _RUNS or rest.startswith("//") else _May.PASS

    def _mail(self, rest: str, *, goes_on: bool) -> _May:
        if goes_on:
            return _May.NOT_BE_TOLD
        return _May.PASS if self._is_listed(rest.partition("?")[0].rpartition("@")[2].lower()) else _May.NOT_PASS

    def _server(self, rest: str, *, is_bare: bool, goes_on: bool) -> _May:
        match = _SERVER.match(rest.lstrip("/").lower())  # browsers do not count the slashes
        assert match is not None  # noqa: S101 - it takes nothing, too
        server, end = match.groups()
        if goes_on and not end:
            return _May.NOT_BE_TOLD
        if "@" in server:  # a name and a password: an old way to hide where an address leads
            return _May.NOT_PASS
        if is_bare:  # a sentence goes on behind it: quotes, brackets, a full stop
            name = _NAME.match(server)
            assert name is not None  # noqa: S101 - it takes nothing, too
            if server.endswith(("http:", "https:")):  # the next address, which is looked at by itself
                end = ""
            if not _GOES_ON[end and "/"].search(server, name.end()):
                server = name[0]
        return _May.PASS if self._is_listed(server) else _May.NOT_PASS

    def _is_listed(self, server: str) -> bool:
        server = server.rstrip(".")
        name, _, port = server.partition(":")
        name = name.rstrip(".")
        if server in self._exact or (name in self._exact and (not port or port.isdecimal())):
            return True
        return any(name.endswith(ending) and len(name) > len(ending) for ending in self._below) and (
            not port or port.isdecimal()
        )


def _readings(address: str) -> tuple[str, str]:
    """How an address may be read: a backslash is a slash to a browser, and less than that to Markdown."""
    return address.replace("\\", "/"), address.replace("\\", "")


def _end_of_what_is_shown(text: str, begins: int) -> int:
    shown = _SHOWN.match(text, begins)
    return shown.end() if shown else begins
