"""Plugin hooks for search with tantivy."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Provide the tantivy searcher."""
    return [
        SearcherSpec(
            name="tantivy_search",
            target="jackfield_tantivy_search.searcher:TantivySearcher",
            config="jackfield_tantivy_search.searcher:TantivyConfig",
            summary="BM25 over words and phrases for millions of chunks; the index of a kept corpus stays on disk.",
            effects=frozenset({"files"}),
        )
    ]
