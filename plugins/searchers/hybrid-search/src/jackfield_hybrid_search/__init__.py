"""Combine several searchers by fusing their rankings, with optional reranking."""
