"""A small vocabulary, made of a text by merging its commonest pairs."""

from __future__ import annotations

import base64
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import regex
import tiktoken

from jackfield_bpe import SafeEncoding

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CORPUS = (
    "The weather in the mountains changes within an hour, and whoever climbs them takes a coat along. "
    "I don't know whether they're there; the others weren't. def weigh(self, what):\n    return self.what[0]\n\n"
    "天气在山里一小时之内就会变化，所以爬山的人总是带着外套。天气，天气！ 1234 5678 3.14  two   three    four\n"
) * 3


def merged(corpus: str, merges: int) -> dict[bytes, int]:
    """The bytes, and the commonest pairs of pieces."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    words = [[bytes([byte]) for byte in word.encode()] for word in regex.findall(PATTERN, corpus)]
    for _ in range(merges):
        pairs = Counter(pair for word in words for pair in pairwise(word))
        if not pairs:
            break
        first, second = pairs.most_common(1)[0][0]
        ranks[first + second] = len(ranks)
        words = [_merged_in(word, first, second) for word in words]
    return ranks


def _merged_in(word: list[bytes], first: bytes, second: bytes) -> list[bytes]:
    made: list[bytes] = []
    for token in word:
        if made and made[-1] == first and token == second:
            made[-1] = first + second
        else:
            made.append(token)
    return made


@pytest.fixture(scope="session")
def ranks() -> dict[bytes, int]:
    """The vocabulary."""
    made = merged(CORPUS, 250)
    made.setdefault(b" " * 2, len(made))
    made.setdefault(b" " * 4, len(made))
    return made


@pytest.fixture(scope="session")
def encoding(ranks: dict[bytes, int]) -> tiktoken.Encoding:
    """What tiktoken makes of it, with one control token."""
    return tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={"<|im_end|>": len(ranks)})


@pytest.fixture(scope="session")
def safe(encoding: tiktoken.Encoding) -> SafeEncoding:
    """The same, for any text."""
    return SafeEncoding(encoding)


@pytest.fixture(scope="session")
def vocabulary_file(ranks: dict[bytes, int], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vocabulary as a file of tiktoken's form."""
    path = tmp_path_factory.mktemp("vocabulary") / "small.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    return path
