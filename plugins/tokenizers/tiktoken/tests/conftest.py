"""A small vocabulary in a file, and a machine on which tiktoken has kept nothing."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

WORDS = ("the", "weather", "in", "mountains", "changes", "within", "an", "hour", "climbs", "天气", "在", "山里", "变化")


@pytest.fixture(scope="session")
def vocabulary() -> bytes:
    """A file in tiktoken's form: the bytes, and what words are made from."""
    tokens = dict.fromkeys(bytes([byte]) for byte in range(256))
    for word in WORDS:
        for text in (word.encode(), b" " + word.encode()):
            tokens |= dict.fromkeys(text[:end] for end in range(2, len(text) + 1))
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    return b"".join(lines)


@pytest.fixture(scope="session")
def settings(vocabulary: bytes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings of a tokenizer that reads it."""
    path = tmp_path_factory.mktemp("vocabulary") / "small.tiktoken"
    path.write_bytes(vocabulary)
    return {"path": str(path), "sha256": hashlib.sha256(vocabulary).hexdigest()}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of tiktoken's cache; it is not there yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    return folder
