"""Whether a URL can lead to a server, and which proxy the environment puts before it."""

from __future__ import annotations

import importlib.util
import re
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from jackfield.errors import ConfigError

# No space and no control character, which cannot be in a request; no backslash, which others take for a slash.
_VISIBLE = re.compile(r"[!-\[\]-~]+")
_IN_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.]+(%[\w.%-]+)?\](:\d*)?")
# Nothing to escape, no dots to resolve, and no port that goes without saying.
_PART_OF_A_PATH = r"/(?!\.)(?:[\w.~-]|%[0-9A-F]{2})+"
_PLAIN = re.compile(
    rf"https?://[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::(?!80\b|443\b|0)\d{{1,5}})?(?:{_PART_OF_A_PATH})*", re.ASCII
)
_NUMBERS = re.compile(r"\d+(\.\d+){3}", re.ASCII)
_MAX_NAME = 253
_MAX_LABEL = 63


@lru_cache(maxsize=64)
def has_server(url: str) -> bool:
    """Whether a URL names a host and a port that can be connected to, and nothing that no request can carry."""
    if not _VISIBLE.fullmatch(url):
        return False
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or port == 0:
        return False
    address = parts.netloc.rpartition("@")[2]
    if "[" in address or "]" in address:
        return _IN_BRACKETS.fullmatch(address) is not None
    return _is_host(host.removesuffix("."))


def _is_host(name: str) -> bool:
    """Whether a name can be that of a host, or is an address of four numbers."""
    if _NUMBERS.fullmatch(name):
        return _is_ip(name)
    return len(name) <= _MAX_NAME and all(0 < len(label) <= _MAX_LABEL for label in name.split("."))


def is_plain(url: str) -> bool:
    """Whether every library sends a URL as it is written: nothing in it is to be escaped, left out or resolved."""
    return _PLAIN.fullmatch(url) is not None


def proxy_for(url: str) -> str | None:
    """The URL of the proxy that the environment names for a server; None for none.

    Raises:
        ConfigError: There is one that cannot be used. Nothing of its URL is shown: a password may be in it.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    kind = parts.scheme if proxies.get(parts.scheme) else "all"
    proxy = proxies.get(kind)
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if problem := _problem_of(proxy):
        raise ConfigError(f"{kind.upper()}_PROXY names a proxy that {problem}, or put the server's host into NO_PROXY")
    return proxy


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _problem_of(proxy: str) -> str:
    scheme = proxy.partition("://")[0].lower()
    if scheme in ("socks5", "socks5h"):
        installed = importlib.util.find_spec("socksio") is not None
        problem = "" if installed else 'speaks SOCKS: pip install "jackfield-http[socks]"'
    else:
        problem = "" if scheme in ("http", "https") else "is of an unsupported kind: use http://, https:// or socks5://"
    if not problem and not has_server(proxy):
        problem = "is not the address of a server: write http://host:port"
    return problem
