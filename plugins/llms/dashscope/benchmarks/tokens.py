"""What counting costs: CPU on texts of a megabyte, beside tiktoken itself on the same vocabulary.

Run it as `python plugins/llms/dashscope/benchmarks/tokens.py`.
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from jackfield_dashscope.tokenizer import QwenTokenizer

ROUNDS = 9
SIZE = 1_000_000
LINES = {
    "English": "The quick brown fox doesn't jump over 12 lazy dogs, nor did it in 1999.\n",
    "Chinese": "绿茶要用八十度的水冲泡，而长城建于明朝，全长两万多公里。\n",
    "code": "    def count(self, text: str) -> int:  # how many\n        return len(self.encode(text))\n",
}


def cpu_ms(work: Callable[[], object]) -> float:
    """The CPU of one call, in milliseconds."""
    started = time.process_time_ns()
    work()
    return (time.process_time_ns() - started) / 1e6


def main() -> None:
    """Print the figures."""
    tokenizer = QwenTokenizer()
    print(f"reading the vocabulary: {cpu_ms(lambda: tokenizer.encoding):.0f} ms")
    plain = tokenizer.encoding.encoding
    for name, line in LINES.items():
        text = line * (SIZE // len(line.encode()))
        works = {
            "tiktoken": lambda: plain.encode_ordinary(text),  # noqa: B023 - called at once
            "encode": lambda: tokenizer.encode(text),  # noqa: B023
            "count": lambda: tokenizer.count(text),  # noqa: B023
            "cut to 1000": lambda: tokenizer.cut(text, 1000),  # noqa: B023
        }
        taken: dict[str, list[float]] = {who: [] for who in works}
        for _ in range(ROUNDS):
            for who, work in works.items():
                taken[who].append(cpu_ms(work))
        medians = {who: statistics.median(costs) for who, costs in taken.items()}
        shares = ", ".join(f"{who} {cost:.1f} ms ({cost / medians['tiktoken']:.2f})" for who, cost in medians.items())
        print(f"{name}: {shares}")


if __name__ == "__main__":
    main()
