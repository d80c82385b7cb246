"""Run Qwen-Agent's searchers on the same passages and questions, in their own environment. JSON in, JSON out."""

from __future__ import annotations

import json
import sys

from qwen_agent.tools import TOOL_REGISTRY
from qwen_agent.tools.doc_parser import Chunk, Record

NAMES = ("keyword_search", "front_page_search", "hybrid_search")  # vector_search needs a service and an API key


def rank(name, job):
    """Rank all passages in a job for each of its questions."""
    records = []
    for document, passages in job["documents"].items():
        chunks = [
            Chunk(text, {"source": document, "chunk_id": number, "title": document}, max(1, len(text) // 3))
            for number, (_, text) in enumerate(passages)
        ]
        records.append(Record(document, chunks, document))
    searcher = TOOL_REGISTRY[name]({})
    rankings = []
    for question in job["questions"]:
        ranked = searcher.sort_by_scores(query=question, docs=records)
        # All passages are listed; those that have nothing in common with the question score zero.
        kept = [(source, number) for source, number, score in ranked if score > 0][: job["depth"]]
        rankings.append([job["documents"][source][number][0] for source, number in kept])
    return rankings


if __name__ == "__main__":
    jobs = json.load(sys.stdin)
    print(json.dumps({name: [rank(name, job) for job in jobs] for name in NAMES}))
