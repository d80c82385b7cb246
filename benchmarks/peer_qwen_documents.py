"""Qwen-Agent on the same files, in its own environment: a name comes in, and how long its file took goes out."""

from __future__ import annotations

import sys
import tempfile
import time

from qwen_agent.tools.simple_doc_parser import SimpleDocParser


def parse_ms(path: str) -> float:
    """What parsing a file takes whose text is not kept from before."""
    with tempfile.TemporaryDirectory() as cache:
        tool = SimpleDocParser({"path": cache})
        started = time.process_time()
        tool.call({"url": path})
        return (time.process_time() - started) * 1000


def main() -> None:
    """Parse the file of a folder whose name comes in, until nothing comes any more."""
    for line in sys.stdin:
        print(f"took_ms {parse_ms(f'{sys.argv[1]}/{line.strip()}')}", flush=True)


if __name__ == "__main__":
    main()
