"""Check each request before a face sees it: its host, origin, size and token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from jackfield.servers import Receive, RequestRefusedError, Scope
from jackfield_serve.tokens import Tokens

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_EXTENSIONS = ("chrome-extension://", "moz-extension://", "safari-web-extension://")
_MAX_HEADERS = 100
_MAX_HEADER_BYTES = 32 << 10


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The checks for each request.

    Attributes:
        tokens: The tokens of clients. If None, clients need no token.
        owner: Returns the owner of a request, or None to refuse it. Replaces `tokens`.
        hosts: The host names by which clients reach the application. If empty, any name is allowed when requests are
            authenticated, and only local names otherwise.
        max_body_bytes: The maximum size of a request body.
    """

    tokens: Tokens | None = None
    owner: Callable[[Scope], str | None] | None = None
    hosts: frozenset[str] = frozenset()
    max_body_bytes: int

    def admit(self, scope: Scope, *, needs_owner: bool = True) -> str:
        """Check a request, and return its owner, or '' if it needs none.

        Args:
            scope: The request.
            needs_owner: False for paths that reveal nothing about agents and runs.

        Raises:
            RequestRefusedError: The request is refused. Only its headers have been read.
        """
        pairs: list[tuple[bytes, bytes]] = list(scope["headers"])
        if len(pairs) > _MAX_HEADERS or sum(len(name) + len(value) for name, value in pairs) > _MAX_HEADER_BYTES:
            raise _refused(
                431, "headers_too_large", "the request headers are too many or too large: send fewer or shorter headers"
            )
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}
        hosts = [value for name, value in pairs if name.lower() == b"host"]
        self._check_host(hosts[0].decode("latin-1") if len(hosts) == 1 else "", headers)
        owner = self._owner_of(scope, headers) if needs_owner else ""
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self.max_body_bytes:
            raise self._too_large()
        return owner

    def limit_body(self, receive: Receive) -> Receive:
        """Wrap `receive` to refuse bodies above the size limit."""
        size = 0

        async def limited() -> MutableMapping[str, Any]:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.max_body_bytes:
                raise self._too_large()
            return message

        return limited

    def _check_host(self, host: str, headers: Mapping[str, str]) -> None:
        """Refuse hosts that are not allowed, to prevent DNS rebinding, and pages from other origins."""
        allowed = self.hosts or (None if self.tokens or self.owner else LOOPBACK_HOSTS)
        if allowed is not None and _without_port(host) not in allowed:
            raise _refused(
                421, "host_not_allowed", "this host name is not allowed: start the server with --allow-host to allow it"
            )
        origin = headers.get("origin")
        if origin is not None and origin.startswith(_EXTENSIONS):
            # No page can claim such an origin, and no browser adds a token by itself, so the token decides.
            if self.tokens is None and self.owner is None:
                message = "browser extensions need a token: start the server with --token-file"
                raise _refused(403, "origin_not_allowed", message)
        elif origin is not None and _host_in(origin) != host.lower():
            raise _refused(403, "origin_not_allowed", "pages from other origins may not use this server")

    def _owner_of(self, scope: Scope, headers: Mapping[str, str]) -> str:
        if self.owner is not None:
            owner = self.owner(scope)
        elif self.tokens is not None:
            owner = self.tokens.owner_of(headers.get("authorization", ""))
        else:
            return ""
        if owner is None:
            raise _refused(
                401, "unauthorized", "missing or invalid token: send the header `Authorization: Bearer TOKEN`"
            )
        return owner

    def _too_large(self) -> RequestRefusedError:
        return _refused(
            413, "too_large", f"the request body is larger than {self.max_body_bytes} bytes: send a smaller request"
        )


def _refused(status: int, code: str, message: str) -> RequestRefusedError:
    return RequestRefusedError(message, status=status, code=code)


def _without_port(host: str) -> str:
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()


def _host_in(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
