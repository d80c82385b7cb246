"""Mathematics with code: the model reasons in words, and writes what must be computed as a block of Python.

JACKFIELD_MODEL=openai:Qwen/Qwen2.5-Math-7B-Instruct python tir_math.py "What is the sum of the primes below 100?"
"""

from __future__ import annotations

import os
import sys

from jackfield import create_agent

MODEL = os.environ.get("JACKFIELD_MODEL", "openai:gpt-4.1-mini")


def main(problem: str = "What is the sum of all primes below 100?") -> None:
    """Solve it; each block is a call of the code interpreter, in its sandbox."""
    for message in create_agent("tir_math", llm=MODEL).ask(problem).messages:
        if not message.function_call:
            print(message.content)


if __name__ == "__main__":
    main(*sys.argv[1:])
