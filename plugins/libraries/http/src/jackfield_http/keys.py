"""Find a server's API key, and never send a key to a server it is not meant for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from pydantic import SecretStr

from jackfield.errors import ConfigError, MissingSecretError
from jackfield.settings import Settings


@dataclass(frozen=True, slots=True)
class KeyRule:
    """The servers, besides this machine, that may receive the API key in a variable.

    Attributes:
        variable: The key's environment variable, which is also its name under `[secrets]`. '' if there is none.
        hosts: The provider's own hosts, reached over https. A leading dot includes all subdomains.
        url_variable: The environment variable that may set another address, or '' if there is none.
    """

    variable: str
    hosts: tuple[str, ...] = ()
    url_variable: str = ""

    def allows(self, url: str | None) -> bool:
        """Return True if the key may be sent to `url`. None means the provider's own address."""
        if url is None or is_loopback(url) or is_at(url, self.hosts):
            return True
        # The user set this address together with the key.
        own_url = os.environ.get(self.url_variable) if self.url_variable else None
        return bool(own_url) and _same_server(url, str(own_url))


@dataclass(frozen=True, slots=True)
class FoundKey:
    """An API key for one server.

    Attributes:
        value: The key, or '' if there is none for this server.
        withheld: The reason why a key was not used, and how to fix it. '' if no key was withheld.
        variable: The key's environment variable, or '' if there is none.
    """

    value: str = field(default="", repr=False)
    withheld: str = ""
    variable: str = ""

    def or_missing(self, *, needed_by: str) -> str:
        """Return the API key, or raise an error if there is none for this server.

        Raises:
            MissingSecretError: No key is set.
            ConfigError: A key is set, but is not meant for this server.
        """
        if self.value:
            return self.value
        if self.withheld:
            raise ConfigError(f"{needed_by} needs a key, but {self.withheld}")
        raise MissingSecretError(self.variable, needed_by=needed_by)


def find_key(url: str | None, rule: KeyRule, *, configured: SecretStr | None, settings: Settings) -> FoundKey:
    """Find a server's API key: the configured one, or if allowed, the one from the environment or the user's file.

    Args:
        url: The server's address. None means the provider's own.
        rule: The variable that holds the key, and the servers that may receive it.
        configured: The key set next to the address, in settings or arguments. Such a key may be sent to any address.
        settings: The settings that hold the variable.

    Raises:
        ConfigError: The key contains characters that are not allowed in a header.
    """
    if configured and configured.get_secret_value():
        return FoundKey(key_for_header(configured.get_secret_value(), name="api_key"), variable=rule.variable)
    if not rule.variable or not settings.secret(rule.variable):
        return FoundKey(variable=rule.variable)
    if rule.allows(url):
        return FoundKey(key_for_header(settings.secret(rule.variable), name=rule.variable), variable=rule.variable)
    alternative = f", or {rule.url_variable} in the environment" if rule.url_variable else ""
    reason = (
        f"{rule.variable} is not sent to {urlsplit(url or '').hostname}, a host that was not configured together "
        f"with it: set api_key next to the URL{alternative}"
    )
    return FoundKey(withheld=reason, variable=rule.variable)


def key_for_header(key: str | None, *, name: str = "the key") -> str:
    """Return an API key stripped of surrounding whitespace, which copying may add, or '' for None.

    Args:
        key: The key.
        name: The setting or variable that holds the key, for the error.

    Raises:
        ConfigError: The key contains characters that are not allowed in a header. Unlike an HTTP library's error, this
            one does not show the key.
    """
    stripped = (key or "").strip()
    if not (stripped.isascii() and stripped.isprintable()):
        fault = "a non-ASCII character" if not stripped.isascii() else "a line break or control character"
        raise ConfigError(f"{name} contains {fault}, which no HTTP header can carry: copy the key again")
    return stripped


def is_loopback(url: str) -> bool:
    """Return True if a URL points to this machine, without resolving names."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_at(url: str, hosts: Sequence[str]) -> bool:
    """Return True if a URL is on one of the hosts, over https. A leading dot includes all subdomains."""
    parts = urlsplit(url)
    name = (parts.hostname or "").rstrip(".")
    return parts.scheme == "https" and any(name.endswith(host) if host[0] == "." else name == host for host in hosts)


def _same_server(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc.lower()) == (second.scheme, second.netloc.lower())
