"""Find the characteristic words of texts by TF-IDF over passages."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

import rjieba

from jackfield.normal_forms import normalize
from jackfield_documents.analyzer import Analyzer
from jackfield_documents.stopwords import STOP_WORDS

_HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_TOKEN = re.compile(rf"[{_HAN}]+|[^\W\d_{_HAN}][^\W_{_HAN}]*(?:['’-][^\W_{_HAN}]+)*")
_IS_HAN = re.compile(rf"[{_HAN}]+")
_SHORTEST = 2


def vocabulary(texts: Iterable[str], *, most: int, query: str = "") -> list[str]:
    """Return the most characteristic words of the texts, best first, each in its most frequent spelling.

    A word scores higher the more often it occurs and the fewer passages contain it. Inflected forms of an English word
    count as one word. Numbers, single letters and stop words (`the`, `的`) are ignored.

    Args:
        texts: Passages of the documents. Words that appear in every passage score low.
        most: The maximum number of words.
        query: Restricts the result to words in the query's script (Chinese or not), if there are any.
    """
    counts, passages, forms, size = _count_terms(texts)
    same_script = [term for term in counts if _is_chinese(term) == _is_chinese(query)] if query.strip() else []
    scores = {term: counts[term] * math.log(1 + size / passages[term]) for term in same_script or counts}
    best = sorted(scores, key=lambda term: (-scores[term], term))[:most]
    return [forms[term].most_common(1)[0][0] for term in best]


def _count_terms(texts: Iterable[str]) -> tuple[Counter[str], Counter[str], dict[str, Counter[str]], int]:
    """Return, per term, its occurrences, its passages and its spellings, plus the total number of passages."""
    counts: Counter[str] = Counter()
    passages: Counter[str] = Counter()
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    term_of = _Terms()
    size = 0
    for text in texts:
        size += 1
        words = Counter(_words(text))
        terms: Counter[str] = Counter()
        for word, count in words.items():
            term = term_of[word]
            if term:
                terms[term] += count
                forms[term][word] += count
        counts.update(terms)
        passages.update(terms.keys())
    return counts, passages, forms, size


def _words(text: str) -> Iterator[str]:
    if not text.isascii():
        text = normalize("NFKC", text)
    for match in _TOKEN.finditer(text):
        token = match[0]
        if _IS_HAN.match(token):
            yield from rjieba.cut(token, True)
        else:
            yield token


class _Terms(dict[str, str]):
    """Maps a word to the term under which it is counted, or to '' if the word is ignored."""

    def __init__(self) -> None:
        self._stemmed: Callable[[str], list[str]] = Analyzer().terms_of_word

    def __missing__(self, word: str) -> str:
        plain = word.lower().replace("’", "'")
        if len(word) < _SHORTEST or plain in STOP_WORDS:
            term = ""
        elif _IS_HAN.match(word):
            term = word
        else:
            term = next(iter(self._stemmed(plain)), "")
        self[word] = term
        return term


def _is_chinese(text: str) -> bool:
    return bool(_IS_HAN.search(text))
