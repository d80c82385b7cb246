"""A query is a text, or the JSON of a model that makes keywords."""

from __future__ import annotations

import pytest

from jackfield_documents import DocumentReader
from jackfield_documents.queries import texts_of


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("low tide", ["low tide"]),
        ('{"keywords_en": ["low", "tide"], "text": "When?"}', ["low", "tide", "When?"]),
        ('{"text": "When?", "keywords_zh": ["潮汐"], "keywords_en": "tide"}', ["潮汐", "tide", "When?"]),
        ('```json\n{"text": "When?"}\n```', ["When?"]),
        (' {"text": "When?"}', ["When?"]),
        ('{"city": "Bonn"}', ['{"city": "Bonn"}']),
        ('{"text": 5, "keywords_en": ["low", 7, null]}', ["low"]),
        ("{low tide", ["{low tide"]),
        ("[1, 2]", ["[1, 2]"]),
    ],
    ids=["text", "keywords", "languages", "fenced", "a space", "other JSON", "no texts", "a brace", "a list"],
)
def test_a_query_is_read_as_keywords_only_if_it_has_any(query: str, texts: list[str]) -> None:
    assert sorted(texts_of(query)) == sorted(texts)


def test_a_reader_without_parsers_says_so() -> None:
    text = DocumentReader()._explain_missing_parser("/srv/docs/a.qqq", [])
    assert text.startswith(
        "a.qqq cannot be read: no parser for '.qqq' files is installed; installed parsers read: nothing"
    )
    assert "no parser for files of this type is installed" in DocumentReader()._explain_missing_parser(
        "/srv/docs/a", []
    )
