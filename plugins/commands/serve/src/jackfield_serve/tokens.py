"""Authenticate clients by tokens, each of which belongs to an owner of runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from jackfield.errors import ConfigError

_MIN_CHARS = 16
_TOKEN = re.compile(r"[!-~]+")  # the characters that RFC 6750 allows in a header, without spaces
_OWNER = re.compile(r"[A-Za-z0-9._@-]{1,64}")


class Tokens:
    """The valid tokens. Each belongs to an owner, who can see only their own runs.

    Args:
        tokens: Pairs of owner and token. If the owner is '', the token gets an owner of its own.

    Raises:
        ConfigError: A token is too short, contains invalid characters or is listed twice, or an owner's name is
            invalid. The message does not reveal the token.
    """

    def __init__(self, tokens: Iterable[tuple[str, str]]) -> None:
        self._owners: dict[bytes, str] = {}
        for number, (owner, token) in enumerate(tokens, start=1):
            if len(token) < _MIN_CHARS or not _TOKEN.fullmatch(token):
                raise ConfigError(
                    f"token {number} must consist of at least {_MIN_CHARS} ASCII characters without spaces; to "
                    "generate a "
                    'token, run: python -c "import secrets; print(secrets.token_urlsafe(32))"'
                )
            if owner and not _OWNER.fullmatch(owner):
                raise ConfigError(
                    f"the owner of token {number} must be 1 to 64 characters long and contain only letters, digits and "
                    "'._@-'"
                )
            digest = hashlib.sha256(token.encode()).digest()
            if digest in self._owners:
                raise ConfigError(f"token {number} is listed twice: give each owner a separate token")
            self._owners[digest] = owner or f"token-{digest.hex()[:16]}"
        if not self._owners:
            raise ConfigError("no tokens found: write one token per line")

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read a file with one token per line, optionally preceded by its owner's name and a space.

        Lines that start with `#` are comments.

        Raises:
            ConfigError: The file cannot be read, or contains an invalid token.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ConfigError(f"cannot read token file {str(path)!r}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"token file {str(path)!r} is not valid UTF-8") from None
        words = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if any(len(entry) > 2 for entry in words):
            raise ConfigError(f"token file {str(path)!r}: each line must contain only an owner and a token")
        try:
            return cls(("", entry[0]) if len(entry) == 1 else (entry[0], entry[1]) for entry in words)
        except ConfigError as error:
            raise ConfigError(f"token file {str(path)!r}: {error}") from None

    def owner_of(self, authorization: str) -> str | None:
        """Return the owner of the token in an `Authorization` header, or None if it contains no valid token."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        # Looked up by digest, so that timing reveals nothing about the tokens.
        return self._owners.get(hashlib.sha256(token.strip().encode("utf-8", "replace")).digest())

    def __repr__(self) -> str:
        return f"<Tokens: {len(self._owners)}>"
