"""Plugin hooks for keyword search."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Provide the keyword searcher."""
    return [
        SearcherSpec(
            name="keyword_search",
            target="jackfield_keyword_search.searcher:KeywordSearcher",
            config="jackfield_keyword_search.searcher:KeywordConfig",
            summary="BM25 over words, English ones by their stem, Chinese ones segmented; kept beside indexes on disk.",
            effects=frozenset({"files"}),
        )
    ]
