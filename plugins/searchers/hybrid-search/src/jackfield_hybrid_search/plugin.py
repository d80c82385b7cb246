"""The components of this distribution."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Offer `hybrid_search`, which merges the results of several searchers."""
    return [
        SearcherSpec(
            name="hybrid_search",
            target="jackfield_hybrid_search.searcher:HybridSearcher",
            config="jackfield_hybrid_search.searcher:HybridConfig",
            summary="Merges the hits of several searchers by scores or ranks; a reranker can order them last.",
            required_by={"searchers": "searcher"},
        )
    ]
