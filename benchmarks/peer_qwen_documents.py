"""Parse the same files with Qwen-Agent in its own environment, reading file names and writing times."""

from __future__ import annotations

import sys
import tempfile
import time

from qwen_agent.tools.simple_doc_parser import SimpleDocParser


def parse_ms(path: str) -> float:
    """Return the time to parse a file whose text is not cached, in milliseconds."""
    with tempfile.TemporaryDirectory() as cache:
        tool = SimpleDocParser({"path": cache})
        started = time.process_time()
        tool.call({"url": path})
        return (time.process_time() - started) * 1000


def main() -> None:
    """Parse each file whose name is read from standard input, until the input ends."""
    for line in sys.stdin:
        print(f"took_ms {parse_ms(f'{sys.argv[1]}/{line.strip()}')}", flush=True)


if __name__ == "__main__":
    main()
