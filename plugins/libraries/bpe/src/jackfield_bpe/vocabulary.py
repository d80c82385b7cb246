"""Read vocabularies in tiktoken format: one token per line, as its Base64-encoded bytes, a space, and its rank."""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jackfield.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A vocabulary file's tokens.

    Attributes:
        ranks: The rank of each token, which is also its id. Lower ranks are merged first.
        sha256: The file's hash, in hex.
    """

    ranks: Mapping[bytes, int]
    sha256: str


def read_vocabulary(path: Path | str, *, sha256: str = "") -> Vocabulary:
    """Read a vocabulary file in tiktoken format. Unlike tiktoken's own reader, this one caches no copy of the file.

    Args:
        path: The file.
        sha256: The expected hash, in hex. '' accepts any.

    Raises:
        ConfigError: The file cannot be read, is not a vocabulary, or has another hash; the message names the file.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"vocabulary {str(path)!r} cannot be read: {error.strerror or error}") from error
    return vocabulary_of(data, str(path), sha256=sha256)


def vocabulary_of(data: bytes, origin: str, *, sha256: str = "") -> Vocabulary:
    """Parse a vocabulary file's bytes.

    Args:
        data: The file's bytes, in tiktoken format.
        origin: The bytes' origin, for errors.
        sha256: The expected hash, in hex. '' accepts any.

    Raises:
        ConfigError: The bytes are not a vocabulary, or have another hash.
    """
    found = hashlib.sha256(data).hexdigest()
    if sha256 and found != sha256.lower():
        raise ConfigError(
            f"vocabulary {origin!r} has the wrong SHA-256: expected {sha256[:12]}…, got "
            f"{found[:12]}…; delete the file and download it again"
        )
    return Vocabulary(_ranks(data, origin), found)


def _ranks(data: bytes, origin: str) -> dict[bytes, int]:
    try:
        ranks = {binascii.a2b_base64(token): int(rank) for token, rank in map(bytes.split, _lines(data))}
    except ValueError as error:
        raise ConfigError(
            f"{origin!r} is not a vocabulary in tiktoken's format, in which each line has a Base64-encoded token, a "
            f"space and its rank: {error}"
        ) from error
    _check_whole(ranks, origin)
    return ranks


def _check_whole(ranks: Mapping[bytes, int], origin: str) -> None:
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        # tiktoken would panic at the first text with such a byte.
        raise ConfigError(f"vocabulary {origin!r} is incomplete: it has no token for {len(missing)} of the 256 bytes")
    if len(set(ranks.values())) < len(ranks):
        raise ConfigError(f"vocabulary {origin!r} is corrupted: several tokens share one rank")


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.splitlines() if line]
