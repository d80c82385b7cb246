"""Parse queries, which are plain text or keywords in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jackfield.jsontext import loads_lenient

_KEYS = ("keywords_zh", "keywords_en", "text")


def texts_of(query: str) -> list[str]:
    """Return the texts to search for.

    A query is plain text, or JSON from a model that generates keywords: an object with any of `keywords_zh`,
    `keywords_en` (lists of words or phrases) and `text`. A word in both the keywords and the text counts twice.
    """
    keywords = _keywords(query)
    if keywords.keys().isdisjoint(_KEYS):
        return [query]
    return [text for key in _KEYS for text in _strings(keywords.get(key))]


def _keywords(query: str) -> Mapping[object, object]:
    """Parse a query as a JSON object, or return an empty one for plain text."""
    if not query.lstrip().startswith(("{", "```")):
        return {}
    try:
        value = loads_lenient(query)
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return [value]
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
