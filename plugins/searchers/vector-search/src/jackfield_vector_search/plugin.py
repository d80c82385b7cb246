"""Plugin hooks for vector search."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Provide the vector searcher."""
    return [
        SearcherSpec(
            name="vector_search",
            target="jackfield_vector_search.searcher:VectorSearcher",
            config="jackfield_vector_search.searcher:VectorConfig",
            summary="Finds chunks whose vectors are near the query's; any embedder, exact, cached by content.",
            effects=frozenset({"network", "files"}),
        )
    ]
