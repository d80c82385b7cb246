"""Determine which settings are secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAMED_LIKE_SECRETS = re.compile(
    r"(^|[_-])(key|token|secret|password|passwd|credentials?|authorization|cookie|headers|dsn)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that must never be written or printed.

    Attributes:
        name: The secret's setting or variable, for placeholders and warnings.
        value: The secret itself.
        is_named: True if a setting declares the value to be a secret; see `weakness_of`.
        warns: True to warn the user if the secret is too weak to hide.
    """

    name: str
    value: str = field(repr=False)
    is_named: bool = True
    warns: bool = True


def is_secret(name: object, value: object) -> bool:
    """Return True if a setting's name is typical of secrets or its value is an address with credentials."""
    if isinstance(value, str) and "://" in value:
        return not shows_no_user(value)
    return value is not None and bool(NAMED_LIKE_SECRETS.search(str(name)))


def shows_no_user(address: str) -> bool:
    """Return True if an address contains neither a user name nor a password."""
    authority, _, path = address.partition("://")[2].partition("/")
    _, colon, port = authority.rpartition(":")
    # A password may contain a slash. The part before it is then not a port.
    return "@" not in authority and not ("@" in path and colon and not port.isdigit())
