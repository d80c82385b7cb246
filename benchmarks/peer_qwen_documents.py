"""Qwen-Agent on the same files, in its own environment: prints one figure for each, in milliseconds, as JSON."""

from __future__ import annotations

import json
import statistics
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
    """Measure the files of a folder that the arguments name by their extensions."""
    folder, *kinds = sys.argv[1:]
    figures = {}
    for kind in kinds:
        rounds = 1 if kind == "xlsx" else 4
        samples = [parse_ms(f"{folder}/file.{kind}") for _ in range(rounds)]
        figures[kind] = statistics.median(samples[1:] or samples)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
