"""The components of this distribution."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Return the searcher of beginnings."""
    return [
        SearcherSpec(
            name="front_page_search",
            target="jackfield_front_page_search.searcher:FrontPageSearcher",
            config="jackfield_front_page_search.searcher:FrontPageConfig",
            summary="Finds the beginnings of documents for any query: titles, authors, abstracts.",
        )
    ]
