"""Plugin hooks for search in PostgreSQL."""

from __future__ import annotations

from jackfield.plugins import SearcherSpec, hook


@hook.searchers
def searchers() -> list[SearcherSpec]:
    """Provide the PostgreSQL searcher."""
    return [
        SearcherSpec(
            name="pgvector_search",
            target="jackfield_pgvector_search.searcher:PgvectorSearcher",
            config="jackfield_pgvector_search.searcher:PgvectorConfig",
            summary="Finds chunks in PostgreSQL: by vectors (pgvector), by words, or by both in one statement.",
            secrets=("PGVECTOR_DSN",),
            effects=frozenset({"network"}),
        )
    ]
