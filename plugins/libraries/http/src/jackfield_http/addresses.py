"""Check server URLs, and find the proxy that the environment configures for them."""

from __future__ import annotations

import importlib.util
import re
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from jackfield.errors import ConfigError

# No spaces and control characters, which a request cannot carry; no backslashes, which some libraries read as slashes.
_VISIBLE = re.compile(r"[!-\[\]-~]+")
_IN_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.]+(%[\w.%-]+)?\](:\d*)?")
# Nothing to escape, no dots to resolve, and no default port.
_PART_OF_A_PATH = r"/(?!\.)(?:[\w.~-]|%[0-9A-F]{2})+"
_PLAIN = re.compile(
    rf"https?://[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::(?!80\b|443\b|0)\d{{1,5}})?(?:{_PART_OF_A_PATH})*", re.ASCII
)
_NUMBERS = re.compile(r"\d+(\.\d+){3}", re.ASCII)
_MAX_NAME = 253
_MAX_LABEL = 63


@lru_cache(maxsize=64)
def has_server(url: str) -> bool:
    """Return True if a URL has a valid host and port, and only characters allowed in a request."""
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
    """Return True for a valid host name or IPv4 address."""
    if _NUMBERS.fullmatch(name):
        return _is_ip(name)
    return len(name) <= _MAX_NAME and all(0 < len(label) <= _MAX_LABEL for label in name.split("."))


def is_plain(url: str) -> bool:
    """Return True if every HTTP library sends the URL exactly as written."""
    return _PLAIN.fullmatch(url) is not None


def proxy_for(url: str) -> str | None:
    """Return the URL of the proxy that the environment configures for a server, or None.

    Raises:
        ConfigError: The proxy cannot be used. The message omits its URL, which may contain a password.
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
        raise ConfigError(
            f"{kind.upper()}_PROXY is set to a proxy that {problem}, or add the server's host to NO_PROXY"
        )
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
        problem = "" if scheme in ("http", "https") else "has an unsupported scheme: use http://, https:// or socks5://"
    if not problem and not has_server(proxy):
        problem = "has no valid address: use http://host:port"
    return problem
