"""The components of this package."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Search by words, at scale."""
    return [
        SearcherSpec(
            name="tantivy_search",
            target="jackfield_tantivy_search.searcher:TantivySearcher",
            config="jackfield_tantivy_search.searcher:TantivyConfig",
            summary="BM25 over words and phrases for millions of chunks; the index of a kept corpus stays on disk.",
            effects=frozenset({"files"}),
        )
    ]
