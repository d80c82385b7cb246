"""What a safe encoding costs beside tiktoken's own, in ratios; each is the median of pairs of runs.

python benchmarks/counting.py some.tiktoken
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import tiktoken

from jackfield_bpe import SafeEncoding, read_vocabulary

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ENGLISH = "The weather in the mountains changes within an hour, and whoever climbs them takes a coat along. "
CHINESE = "天气在山里一小时之内就会变化，所以爬山的人总是带着外套。"


def cpu_s(work: Callable[[], object]) -> float:
    """The CPU time of one run."""
    started = time.process_time()
    work()
    return time.process_time() - started


def ratio(mine: Callable[[], object], theirs: Callable[[], object], pairs: int = 15) -> float:
    """How much longer the first takes."""
    return statistics.median(cpu_s(mine) / cpu_s(theirs) for _ in range(pairs))


def main(path: str) -> None:
    """Measure, and print."""
    ranks = dict(read_vocabulary(path).ranks)
    encoding = tiktoken.Encoding("measured", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    safe = SafeEncoding(encoding, normal_form="NFC")
    for name, sentence in (("English", ENGLISH), ("Chinese", CHINESE)):
        for size in (1000, 90_000, 1_000_000):
            text = sentence * (size // len(sentence))
            repeats = range(1_000_000 // size)
            found = ratio(
                lambda text=text, repeats=repeats: [safe.encode(text) for _ in repeats],  # type: ignore[misc]
                lambda text=text, repeats=repeats: [encoding.encode_ordinary(text) for _ in repeats],  # type: ignore[misc]
            )
            print(f"{name}, {size:>9,} characters: encode takes {found:.3f} x tiktoken's encode_ordinary")
        text = sentence * (1_000_000 // len(sentence))
        found = ratio(lambda text=text: safe.cut(text, 2000), lambda text=text: encoding.encode_ordinary(text))  # type: ignore[misc]
        print(f"{name}: cut of a million characters to 2,000 tokens takes {found:.4f} x encoding them")


if __name__ == "__main__":
    main(sys.argv[1])
