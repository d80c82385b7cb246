"""A tokenizer reads its vocabulary once, when it is first asked, whoever asks."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest
import tiktoken

from jackfield.errors import ConfigError
from jackfield_bpe import BPETokenizer, SafeEncoding, read_vocabulary


class Small(BPETokenizer):
    """Counts how often it loads."""

    name = "small"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.loads = 0

    def load(self) -> SafeEncoding:
        self.loads += 1
        ranks = dict(read_vocabulary(self.path).ranks)
        return SafeEncoding(tiktoken.Encoding("small", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={}))


def test_it_counts_cuts_encodes_and_decodes_as_its_encoding(vocabulary_file: Path) -> None:
    small = Small(vocabulary_file)
    text = "the weather, the weather"
    assert small.count(text) == len(small.encode(text)) == small.encoding.count(text)
    assert small.decode(small.encode(text)) == text
    for most in (1, 2, 3):
        assert small.cut(text, most) == small.encoding.cut(text, most)
        assert 0 < len(small.cut(text, most)) < len(text)
    assert small.loads == 1


def test_nothing_is_read_before_there_is_something_to_count(vocabulary_file: Path) -> None:
    small = Small(vocabulary_file)
    assert (small.count(""), small.cut("tea", 0)) == (0, "")
    assert small.loads == 0


def test_threads_that_ask_at_the_same_time_wait_for_one_vocabulary(vocabulary_file: Path) -> None:
    small = Small(vocabulary_file)
    start = threading.Barrier(4)
    counted: list[int] = []

    def count() -> None:
        start.wait()
        counted.append(small.count("weather"))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counted) == 4
    assert len(set(counted)) == 1
    assert small.loads == 1


def test_a_vocabulary_that_comes_later_is_read_then(vocabulary_file: Path, tmp_path: Path) -> None:
    small = Small(tmp_path / "later.tiktoken")
    with pytest.raises(ConfigError):
        small.count("tea")
    small.path.write_bytes(vocabulary_file.read_bytes())
    assert small.count("tea") > 0


def test_it_can_be_pickled_before_and_after_its_first_call(vocabulary_file: Path) -> None:
    small = Small(vocabulary_file)
    pickled = pickle.dumps(small)
    again = pickle.loads(pickled)
    assert again.count("weather") == small.count("weather")
    assert len(pickle.dumps(small)) == len(pickled), "the vocabulary stays here"
    assert pickle.loads(pickle.dumps(small)).count("weather") == small.count("weather")
