"""Rank with bm25s, LlamaIndex and Haystack using their defaults, in a separate environment. JSON in, JSON out.

A job consists of passages (id, text and vector), queries (text and vector) and a depth. The vectors are supplied, so
that all programs rank with the same model.
"""

from __future__ import annotations

import json
import sys

import bm25s
from haystack import Document
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from llama_index.core import MockEmbedding, QueryBundle, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.retrievers.bm25 import BM25Retriever


def rank_with_bm25s(job):
    """Rank with `bm25s.BM25()`, using its own tokenizer and method."""
    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize([one["text"] for one in job["passages"]], show_progress=False), show_progress=False)
    rankings = []
    for query in job["queries"]:
        tokens = bm25s.tokenize([query["text"]], show_progress=False)
        numbers, scores = retriever.retrieve(tokens, k=_depth(job), show_progress=False)
        pairs = zip(numbers[0], scores[0], strict=True)
        rankings.append([job["passages"][number]["id"] for number, score in pairs if score > 0])
    return rankings


def rank_with_llamaindex_bm25(job):
    """Rank with `BM25Retriever.from_defaults`."""
    retriever = BM25Retriever.from_defaults(nodes=_nodes(job), similarity_top_k=_depth(job))
    return [[node.node_id for node in retriever.retrieve(query["text"]) if node.score > 0] for query in job["queries"]]


def rank_with_llamaindex_vectors(job):
    """Rank with `VectorStoreIndex`."""
    index = VectorStoreIndex(_nodes(job), embed_model=MockEmbedding(embed_dim=len(job["passages"][0]["vector"])))
    retriever = index.as_retriever(similarity_top_k=_depth(job))
    bundles = (QueryBundle(query["text"], embedding=query["vector"]) for query in job["queries"])
    return [[node.node_id for node in retriever.retrieve(bundle)] for bundle in bundles]


def rank_with_haystack_bm25(job):
    """Rank with `InMemoryBM25Retriever`."""
    retriever = InMemoryBM25Retriever(_store(job), top_k=_depth(job))
    found = (retriever.run(query=query["text"])["documents"] for query in job["queries"])
    return [[document.id for document in documents if document.score > 0] for documents in found]


def rank_with_haystack_vectors(job):
    """Rank with `InMemoryEmbeddingRetriever`."""
    retriever = InMemoryEmbeddingRetriever(_store(job), top_k=_depth(job))
    found = (retriever.run(query_embedding=query["vector"])["documents"] for query in job["queries"])
    return [[document.id for document in documents] for documents in found]


RANKERS = {
    "bm25s": rank_with_bm25s,
    "LlamaIndex BM25": rank_with_llamaindex_bm25,
    "LlamaIndex vectors": rank_with_llamaindex_vectors,
    "Haystack BM25": rank_with_haystack_bm25,
    "Haystack vectors": rank_with_haystack_vectors,
}


def _depth(job):
    return min(job["depth"], len(job["passages"]))


def _nodes(job):
    return [TextNode(id_=one["id"], text=one["text"], embedding=one["vector"]) for one in job["passages"]]


def _store(job):
    store = InMemoryDocumentStore()
    store.write_documents(
        [Document(id=one["id"], content=one["text"], embedding=one["vector"]) for one in job["passages"]]
    )
    return store


if __name__ == "__main__":
    jobs = json.load(sys.stdin)
    print(json.dumps({name: [rank(job) for job in jobs] for name, rank in RANKERS.items()}))
