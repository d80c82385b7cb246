"""The contracts of search have moved to the library `jackfield-search-parts`; their names are fetched from there."""

from __future__ import annotations

from jackfield._lazy import fetching

__getattr__, _ = fetching(
    __name__,
    {},
    moved={
        **dict.fromkeys(("Block", "BlockKind", "Document", "Parser", "shown_path"), "jackfield_search_parts.documents"),
        **dict.fromkeys(("Chunk", "Corpus", "Hit", "Searcher", "make_searcher"), "jackfield_search_parts.searching"),
        **dict.fromkeys(("Embedded", "Embedder", "Purpose", "Vector"), "jackfield_search_parts.embedding"),
    },
)
