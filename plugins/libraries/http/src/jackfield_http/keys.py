"""Which API key may go to which server: a key that is set for one provider must not reach every address."""

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
    """Where the API key in a variable may be sent, besides this machine.

    Attributes:
        variable: The environment variable of the key, or its name under `[secrets]`; '' if there is none.
        hosts: The provider's own hosts, reached over https; a leading dot includes all subdomains.
        url_variable: The environment variable that may give another address; '' if there is none.
    """

    variable: str
    hosts: tuple[str, ...] = ()
    url_variable: str = ""

    def allows(self, url: str | None) -> bool:
        """Whether the key may be sent to `url`; None is the provider's own address."""
        if url is None or is_loopback(url) or is_at(url, self.hosts):
            return True
        together = os.environ.get(self.url_variable) if self.url_variable else None
        return bool(together) and _same_server(url, str(together))


@dataclass(frozen=True, slots=True)
class FoundKey:
    """An API key for one server.

    Attributes:
        value: The key, '' if there is none for this server.
        withheld: Why a key that is set was not used, and what to do; '' if no key was withheld.
        variable: The environment variable that it may be set in; '' if there is none.
    """

    value: str = field(default="", repr=False)
    withheld: str = ""
    variable: str = ""

    def or_missing(self, *, needed_by: str) -> str:
        """The API key.

        Raises:
            MissingSecretError: No key is set.
            ConfigError: A key is set, but it is not meant for this server.
        """
        if self.value:
            return self.value
        if self.withheld:
            raise ConfigError(f"{needed_by} needs a key, and {self.withheld}")
        raise MissingSecretError(self.variable, needed_by=needed_by)


def find_key(url: str | None, rule: KeyRule, *, configured: SecretStr | None, settings: Settings) -> FoundKey:
    """Find the API key for a server: the configured one, else that of the environment or the user's file, if allowed.

    Args:
        url: Where it is sent; None for the provider's own address.
        rule: Which variable holds the key, and where it may be sent.
        configured: The key from settings or arguments, next to the address; it is sent to whichever address they name.
        settings: Where the variable is looked up.

    Raises:
        ConfigError: The key has characters that are not allowed in a header.
    """
    if configured and configured.get_secret_value():
        return FoundKey(key_for_header(configured.get_secret_value()), variable=rule.variable)
    if not rule.variable or not settings.secret(rule.variable):
        return FoundKey(variable=rule.variable)
    if rule.allows(url):
        return FoundKey(key_for_header(settings.secret(rule.variable)), variable=rule.variable)
    return FoundKey(withheld=_why_not_sent(url or "", rule), variable=rule.variable)


def _why_not_sent(url: str, rule: KeyRule) -> str:
    together = f", or {rule.url_variable} in the environment" if rule.url_variable else ""
    return (
        f"{rule.variable} is not sent to {urlsplit(url).hostname}, an address that was not set together "
        f"with it: set api_key beside the address{together}"
    )


def key_for_header(key: str | None) -> str:
    """An API key without surrounding space, which comes from copying; "" for none.

    Raises:
        ConfigError: It has characters that are not allowed in a header. This is reported here, without the key,
            because an HTTP library would show the whole header.
    """
    stripped = (key or "").strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise ConfigError("the key has characters that no HTTP header can carry: copy it again")
    return stripped


def is_loopback(url: str) -> bool:
    """Whether a URL points to this machine, whatever a name server says."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_at(url: str, hosts: Sequence[str]) -> bool:
    """Whether a URL is at one of the hosts, over https; a leading dot includes all subdomains."""
    parts = urlsplit(url)
    name = (parts.hostname or "").rstrip(".")
    return parts.scheme == "https" and any(name.endswith(host) if host[0] == "." else name == host for host in hosts)


def _same_server(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc.lower()) == (second.scheme, second.netloc.lower())
