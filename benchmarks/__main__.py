"""`python -m benchmarks`: measure, and print one line a figure."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from benchmarks import (
    agents_together,
    calls,
    compaction,
    documents,
    folder,
    knowledge,
    many,
    mcp_tools,
    observing,
    records,
    sandbox,
    search,
    served_peers,
    server,
    serving,
    start,
    streams,
    terminal,
    web_page,
)
from benchmarks.measure import Row


def main() -> None:
    """Run the selected rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--backend", default="openai", choices=server.BACKENDS, help="which of ours is measured")
    options = parser.parse_args()
    qwen_python = os.environ.get("QWEN_PYTHON")
    with server.running(options.backend) as servers:
        rows: dict[str, Callable[[], list[Row]]] = {
            "import": lambda: start.import_cost(qwen_python),
            "first": lambda: start.first_answer(servers),
            "terminal": lambda: terminal.commands(servers),
            "list": start.listing_cost,
            "doctor": start.doctor_cost,
            "call": lambda: calls.one_call(servers, qwen_python),
            "stream": lambda: calls.streaming(servers),
            "turns": lambda: calls.turns(servers, qwen_python),
            "history": lambda: calls.history(servers),
            "parallel": lambda: many.parallel_tools(servers, qwen_python),
            "runs": lambda: many.concurrent_runs(servers),
            "compaction": lambda: compaction.checking(servers),
            "together": agents_together.together,
            "records": lambda: records.recorded(servers),
            "resume": records.resuming,
            "serving": serving.served,
            "streams": streams.streams,
            "served": served_peers.beside_peers,
            "serve": lambda: start.serving_start(os.environ.get("FASTAPI_PYTHON")),
            "observers": lambda: observing.observed(servers),
            "parse": lambda: documents.parsing(qwen_python),
            "given": lambda: documents.given_documents(qwen_python, os.environ.get("DOCUMENTS")),
            "chunk": documents.chunking,
            "folder": folder.reading_a_folder,
            "index": knowledge.kept_index,
            "search": search.by_words,
            "sandbox": sandbox.sandboxes,
            "page": lambda: web_page.page(os.environ.get("QWEN_PAGE_PYTHON")),
            "mcp": mcp_tools.a_call,
            "mcp-agent": mcp_tools.ten_known_servers,
        }
        wanted = options.only.split(",") if options.only else list(rows)
        print(f"{'figure':44} {'ours':>16}  {'beside':34} {'ratio':>6}  target")
        for name in wanted:
            measured = rows[name]()
            if not measured:
                print(f"{name}: not measured; set the variables that benchmarks/README.md names for it", flush=True)
            for row in measured:
                ratio = "" if row.ratio is None else f"{row.ratio:.{2 if row.ratio >= 0.1 else 3}f}"
                print(f"{row.name:44} {row.ours:>16}  {row.peer:34} {ratio:>6}  {row.target}", flush=True)


if __name__ == "__main__":
    main()
