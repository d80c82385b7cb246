"""Qwen-Agent's searchers on the same passages and questions, in its own environment. JSON in, JSON out."""

from __future__ import annotations

import json
import sys

from qwen_agent.tools import TOOL_REGISTRY
from qwen_agent.tools.doc_parser import Chunk, Record

NAMES = ("keyword_search", "front_page_search", "hybrid_search")  # vector_search needs a service and its key


def main() -> None:
    """Rank all passages for each question with each searcher."""
    given = json.load(sys.stdin)
    records = []
    for document, passages in given["documents"].items():
        chunks = [
            Chunk(text, {"source": document, "chunk_id": number, "title": document}, max(1, len(text) // 3))
            for number, (_, text) in enumerate(passages)
        ]
        records.append(Record(document, chunks, document))
    found = {}
    for name in NAMES:
        searcher = TOOL_REGISTRY[name]({})
        found[name] = []
        for question in given["questions"]:
            ranked = searcher.sort_by_scores(query=question, docs=records)
            # It lists all passages; those that have nothing of the question have a score of zero.
            kept = [(source, number) for source, number, score in ranked if score > 0][: given["depth"]]
            found[name].append([given["documents"][source][number][0] for source, number in kept])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
