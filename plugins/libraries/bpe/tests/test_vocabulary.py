"""A vocabulary is read as it is, or the error says which file is wrong, and how."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import tiktoken.load

from jackfield.errors import ConfigError
from jackfield_bpe import read_vocabulary, vocabulary_of

BYTES = [bytes([byte]) for byte in range(256)]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    """Writes a file."""

    def write(data: bytes) -> Path:
        path = tmp_path / "some.tiktoken"
        path.write_bytes(data)
        return path

    return write


def lines(tokens: list[bytes]) -> bytes:
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


def test_a_file_is_read_as_tiktoken_reads_it(vocabulary_file: Path, ranks: dict[bytes, int], tmp_path: Path) -> None:
    read = read_vocabulary(vocabulary_file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
        assert read.ranks == ranks == tiktoken.load.load_tiktoken_bpe(str(vocabulary_file))
    assert read_vocabulary(vocabulary_file, sha256=read.sha256) == read
    assert read_vocabulary(vocabulary_file, sha256=read.sha256.upper()) == read


def test_empty_lines_say_nothing(write: Callable[[bytes], Path]) -> None:
    assert len(read_vocabulary(write(b"\n" + lines(BYTES).replace(b"\n", b"\r\n") + b"\n\n")).ranks) == 256


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.tiktoken' cannot be read: No such file"):
        read_vocabulary(tmp_path / "gone.tiktoken")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_vocabulary(tmp_path)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "no token for 256 of the 256 bytes"),
        (lines(BYTES[:-2]), "no token for 2 of the 256 bytes"),
        (lines(BYTES[1:]), "no token for 1 of the 256 bytes"),
        (lines([*BYTES, b"te"]).replace(b" 256", b" 7"), "several tokens share one rank"),
        (b"<html>not found</html>", "not a vocabulary in tiktoken's format"),
        (lines(BYTES) + b"dGVh two\n", "not a vocabulary in tiktoken's format"),
        (lines(BYTES) + b"dGVh\n", "not a vocabulary in tiktoken's format"),
        (lines(BYTES) + b"dGVh 256 1\n", "not a vocabulary in tiktoken's format"),
        (lines(BYTES) + b"d 256\n", "not a vocabulary in tiktoken's format"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused(write: Callable[[bytes], Path], data: bytes, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        read_vocabulary(write(data))
    assert "some.tiktoken" in str(caught.value)


def test_another_vocabulary_than_the_one_that_is_meant_is_refused(write: Callable[[bytes], Path]) -> None:
    data = lines(BYTES)
    with pytest.raises(ConfigError) as caught:
        vocabulary_of(data, "some.tiktoken", sha256="0123456789abcdef" * 4)
    assert str(caught.value) == (
        "vocabulary 'some.tiktoken' has the wrong SHA-256: expected 0123456789ab…, got "
        f"{hashlib.sha256(data).hexdigest()[:12]}…; delete the file and download it again"
    )
    with pytest.raises(ConfigError, match=r"some\.tiktoken' has the wrong SHA-256"):
        read_vocabulary(write(data), sha256="0" * 64)
