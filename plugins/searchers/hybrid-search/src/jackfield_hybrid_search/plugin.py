"""Plugin hooks for hybrid search."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Provide `hybrid_search`, which fuses the results of several searchers."""
    return [
        SearcherSpec(
            name="hybrid_search",
            target="jackfield_hybrid_search.searcher:HybridSearcher",
            config="jackfield_hybrid_search.searcher:HybridConfig",
            summary="Merges the hits of several searchers by scores or ranks; a reranker can order them last.",
            required_by={"searchers": "searcher"},
        )
    ]
