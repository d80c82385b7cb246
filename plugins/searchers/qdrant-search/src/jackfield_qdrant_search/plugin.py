"""Plugin hooks for search in Qdrant."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Provide the Qdrant searcher."""
    return [
        SearcherSpec(
            name="qdrant_search",
            target="jackfield_qdrant_search.searcher:QdrantSearcher",
            config="jackfield_qdrant_search.searcher:QdrantConfig",
            summary="Finds chunks by meaning in a Qdrant server; any embedder, and only new chunks are embedded.",
            secrets=("QDRANT_API_KEY",),
            effects=frozenset({"files", "network"}),  # files in the local mode
        )
    ]
