"""Build the SQL statements for a search, one for each ranking method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from jackfield_pgvector_search.tables import Side

_DEPTH = 100
"""Hits of each ranking to fuse."""
_CANDIDATES = 400
"""The number of candidates to score fully: the chunks that have most in common with the query."""
_K1, _B = 1.5, 0.75
_RRF = 60  # as `jackfield_documents.fuse`
_LONGEST_TERM = 500  # characters; PostgreSQL takes 2046 bytes
_MOST_POSITIONS = 255
_SELECTED = "WHERE p.place = ANY(CAST(:places AS bigint[]))"


def ranking(schema: str, words: Side | None, vectors: Side | None, *, is_filtered: bool = False) -> str | None:
    """Return the statement that ranks by words, by vectors or by both, or None if neither is given.

    A filtered statement takes the positions of the selected chunks as the array `places`.
    """
    if words and vectors:
        return fused(schema, words, vectors, is_filtered=is_filtered)
    if words:
        return by_words(schema, words, is_filtered=is_filtered)
    return nearest(schema, vectors, is_filtered=is_filtered) if vectors else None


def nearest(schema: str, vectors: Side, *, is_filtered: bool = False) -> str:
    """Return a statement for positions and cosines.

    The parameters are `vector`, `corpus`, `limit`, and `least`, the lowest cosine (-2 for any).
    """
    return f"""
        SELECT place, score, NULL, place_in_ranking FROM (
            SELECT place, score, row_number() OVER (ORDER BY distance, place) AS place_in_ranking
            FROM ({_nearest(schema, vectors, "CAST(:limit AS integer)", is_filtered)}) AS nearest
        ) AS ranked WHERE score >= CAST(:least AS double precision) ORDER BY place_in_ranking
    """  # noqa: S608 - of checked names and numbers


def by_words(schema: str, words: Side, *, is_filtered: bool = False) -> str:
    """Return a statement for positions and BM25 scores.

    The parameters are `terms`, `queries`, `times`, `corpus`, `chunks`, `mean_length` and `limit`.
    """
    return f"""
        WITH {_by_words(schema, words, "CAST(:limit AS integer)", is_filtered)}
        SELECT place, score, rank, NULL FROM by_words ORDER BY rank
    """  # noqa: S608


def fused(schema: str, words: Side, vectors: Side, *, is_filtered: bool = False) -> str:
    """Return a statement that fuses both rankings by reciprocal rank, with the parameters of both."""
    depth = f"greatest({_DEPTH}, CAST(:limit AS integer))"
    return f"""
        WITH {_by_words(schema, words, depth, is_filtered)},
        by_vectors AS (
            SELECT place, row_number() OVER (ORDER BY distance, place) AS rank
            FROM ({_nearest(schema, vectors, depth, is_filtered)}) AS nearest
            WHERE score >= CAST(:least AS double precision)
        )
        SELECT place, coalesce(1.0::float8 / ({_RRF} + w.rank), 0) + coalesce(1.0::float8 / ({_RRF} + v.rank), 0) AS s,
            w.rank, v.rank
        FROM by_words AS w FULL JOIN by_vectors AS v USING (place)
        ORDER BY s DESC, place LIMIT CAST(:limit AS integer)
    """  # noqa: S608


def known_terms(schema: str, words: Side) -> str:
    """Return a statement for those of the `terms` that occur in `corpus`. `queries` has a tsquery for each term."""
    return f"""
        SELECT term FROM unnest(CAST(:terms AS text[]), CAST(:queries AS text[])) AS t (term, query) WHERE EXISTS (
            SELECT FROM {schema}.jackfield_words_{words.number} AS w
            JOIN {schema}.jackfield_places AS p ON p.chunk = w.chunk AND p.corpus = CAST(:corpus AS bigint)
            WHERE w.words @@ CAST(query AS tsquery)
        )
    """  # noqa: S608


def _nearest(schema: str, vectors: Side, limit: str, is_filtered: bool) -> str:
    near = f"v.embedding <=> CAST(:vector AS vector({vectors.dimension}))"
    # A vector of length 0 is near to nothing, because its distance is not a number.
    return f"""
        SELECT p.place, {near} AS distance, coalesce(1 - nullif({near}, 'NaN'), 0) AS score
        FROM {schema}.jackfield_vectors_{vectors.number} AS v
        JOIN {schema}.jackfield_places AS p ON p.chunk = v.chunk AND p.corpus = CAST(:corpus AS bigint)
        {_SELECTED if is_filtered else ""}
        ORDER BY {near}, p.place LIMIT {limit}
    """  # noqa: S608


def _by_words(schema: str, words: Side, limit: str, is_filtered: bool) -> str:
    """Return common table expressions for BM25. PostgreSQL's own ranking does not favour rare words.

    Candidates are chosen first, as if each word occurred once per chunk, without reading the chunks' words. Occurrences
    are counted only for the candidates.
    """
    table = f"{schema}.jackfield_words_{words.number}"
    return f"""
        asked AS MATERIALIZED (
            SELECT term, CAST(query AS tsquery) AS query, times
            FROM unnest(CAST(:terms AS text[]), CAST(:queries AS text[]), CAST(:times AS double precision[]))
            AS t (term, query, times)
        ),
        found AS MATERIALIZED (
            SELECT a.term, a.times, w.chunk, p.place, w.length FROM asked AS a
            JOIN {table} AS w ON w.words @@ a.query
            JOIN {schema}.jackfield_places AS p ON p.chunk = w.chunk AND p.corpus = CAST(:corpus AS bigint)
        ),
        weights AS MATERIALIZED (
            SELECT term, times * ln(
                1 + (CAST(:chunks AS double precision) - count(*) + 0.5) / (count(*) + 0.5)
            ) AS weight
            FROM found GROUP BY term, times
        ),
        candidates AS MATERIALIZED (
            SELECT place, chunk, length FROM found AS p JOIN weights USING (term)
            {_SELECTED if is_filtered else ""}
            GROUP BY place, chunk, length
            ORDER BY CAST(sum(weight) / (
                1 + {_K1} * (1 - {_B} + {_B} * length / CAST(:mean_length AS double precision))
            ) AS real) DESC, place
            LIMIT greatest({_CANDIDATES}, CAST(:limit AS integer))
        ),
        scored AS (
            SELECT c.place, round(CAST(sum(weights.weight * n.count * {_K1 + 1} / (
                n.count + {_K1} * (1 - {_B} + {_B} * c.length / CAST(:mean_length AS double precision))
            )) AS numeric), 9) AS score
            FROM candidates AS c JOIN {table} AS w USING (chunk)
            CROSS JOIN LATERAL unnest(w.words) AS u (term, positions, labels) JOIN weights USING (term)
            CROSS JOIN LATERAL (SELECT CAST(cardinality(u.positions) AS double precision) AS count) AS n
            GROUP BY c.place
        ),
        by_words AS (
            SELECT place, CAST(score AS double precision) AS score,
                row_number() OVER (ORDER BY scored.score DESC, place) AS rank
            FROM scored ORDER BY rank LIMIT {limit}
        )
    """  # noqa: S608


def term_of(word: str) -> str:
    """Convert a word to a term that PostgreSQL accepts: at most 2046 bytes, without NUL and lone surrogates."""
    return word[:_LONGEST_TERM].replace("\0", "").encode("utf-8", "replace").decode()


def query_of(term: str) -> str:
    """Quote a term as a tsquery that matches exactly this term."""
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def vector_text(numbers: Sequence[float]) -> str:
    """Format a vector for pgvector. Nine digits preserve a 32-bit float."""
    return f"[{','.join(format(number, '.9g') for number in numbers)}]"


def words_text(terms: Iterable[str]) -> str:
    """Format terms as a tsvector, with as many positions per term as it has occurrences, up to PostgreSQL's limit."""
    counts = Counter(terms)
    return " ".join(f"{query_of(term)}:{_positions(count)}" for term, count in counts.items())


def _positions(count: int) -> str:
    return ",".join(map(str, range(1, min(count, _MOST_POSITIONS) + 1)))
