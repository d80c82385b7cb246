"""Plugin hooks for front-page search."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Provide the front-page searcher."""
    return [
        SearcherSpec(
            name="front_page_search",
            target="jackfield_front_page_search.searcher:FrontPageSearcher",
            config="jackfield_front_page_search.searcher:FrontPageConfig",
            summary="Finds the beginnings of documents for any query: titles, authors, abstracts.",
        )
    ]
