"""Decide by IP address which servers may be contacted, because a name can resolve to anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, quote, urlsplit

from pydantic import Field, field_validator

from jackfield.config import Config
from jackfield_fetch.networks import Address, inner_address, is_public

MAX_URL_CHARS = 8192
"""The maximum URL length. Python takes quadratic time to split a hostile URL."""
_KEPT = "/%:@!$&'()*+,;=~"  # besides letters, digits and "_.-"
_HOST = re.compile(r"[^/@:*? ]+")


class FetchConfig(Config):
    """Rules for fetching: allowed servers, and limits on size and time."""

    allow: tuple[str, ...] = Field(
        default=(),
        description="Servers that may be contacted at private addresses: host names, IP addresses, networks",
    )
    max_bytes: int = Field(default=20 * 2**20, ge=1, description="Maximum body size in bytes, after decompression")
    timeout_s: float = Field(
        default=30.0, gt=0, description="Time limit of the whole fetch in seconds, including redirects"
    )
    max_redirects: int = Field(default=5, ge=0, description="Maximum number of redirects to follow")
    user_agent: str = Field(default="jackfield-fetch/0.1", min_length=1, description="User-Agent header of requests")

    @field_validator("allow")
    @classmethod
    def _are_servers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not (_HOST.fullmatch(name) or _is_network(name)):
                raise ValueError(
                    f"{name!r} is not a host, an IP address or a network: use a "
                    "value such as intranet.example or 10.0.0.0/8"
                )
        return names

    @field_validator("user_agent")
    @classmethod
    def _fits_a_header(cls, text: str) -> str:
        if not (text.isascii() and text.isprintable()):
            raise ValueError("a header may contain printable ASCII only")
        return text

    def allows(self, host: str, address: Address) -> bool:
        """Return True if a server may be contacted at the given address."""
        if is_public(address) or _plain(host) in self._hosts:
            return True
        meant = tuple(filter(None, (address, inner_address(address))))
        return any(one in network for network in self._networks for one in meant)

    @cached_property
    def _hosts(self) -> frozenset[str]:
        return frozenset(_plain(name) for name in self.allow if not _is_network(name))

    @cached_property
    def _networks(self) -> Sequence[IPv4Network | IPv6Network]:
        return tuple(ip_network(name, strict=False) for name in self.allow if _is_network(name))


def request_url(url: str) -> str:
    """Return a URL in the form that requests use: ASCII only, without a fragment.

    Raises:
        ValueError: The URL cannot be fetched. The message gives the reason, without quoting parts that may be secret.
    """
    if len(url) > MAX_URL_CHARS:
        raise ValueError(f"the URL is longer than {MAX_URL_CHARS:,} characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("the URL is not valid") from None
    _check(parts, url)
    where = f"{parts.scheme}://{_in_ascii(host)}" + (f":{port}" if port is not None else "")
    query = f"?{quote(parts.query, safe=_KEPT + '?[]')}" if parts.query else ""
    return where + quote(parts.path or "/", safe=_KEPT) + query


def _check(parts: SplitResult, url: str) -> None:
    if parts.scheme not in ("http", "https"):
        raise ValueError(
            f"only http and https URLs can be fetched, not {parts.scheme[:20] or 'a name without a scheme'!r}"
        )
    if not parts.hostname:
        raise ValueError("the URL has no host name")
    if "@" in parts.netloc:
        raise ValueError("the URL contains a user name or a password: remove them")
    if "\\" in url or not url.isprintable():  # a space is; any other white space is not
        raise ValueError("the URL contains a backslash or control characters: encode them as %5C, %0A and so on")


def _in_ascii(host: str) -> str:
    try:
        return f"[{host}]" if ":" in host else host.encode("idna").decode()
    except UnicodeError:
        raise ValueError("the host name is not valid") from None


def shown(url: str) -> str:
    """Return a URL for display: without query and user, which may hold keys, and short enough for one line."""
    try:
        parts = urlsplit(url[:MAX_URL_CHARS])
        where = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an invalid URL"
    text = f"{parts.scheme}://{where}{parts.path}" if where else url.partition("?")[0]
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:200]


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


def _is_network(name: str) -> bool:
    try:
        ip_network(name, strict=False)
    except ValueError:
        return False
    return True


def address_of(text: str) -> Address:
    """Parse an address from the resolver, dropping its zone id (`fe80::1%eth0`)."""
    return ip_address(text.partition("%")[0])
