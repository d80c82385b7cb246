"""Texts as the words that they are searched by, the same for every searcher that knows words.

- `analyzer`: texts as terms: English stems, Chinese words, no stop words.
- `query`: which texts a query asks for.
- `stopwords`: the words that are left out.
"""

from __future__ import annotations

from jackfield_words.analyzer import Analyzer, Chinese, parts_of, searched_texts
from jackfield_words.query import texts_of

__all__ = ["Analyzer", "Chinese", "parts_of", "searched_texts", "texts_of"]
