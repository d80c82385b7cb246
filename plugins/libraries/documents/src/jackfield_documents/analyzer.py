"""Split texts into search terms, in the same way for indexes and queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from threading import Lock
from typing import Literal

from jackfield.normal_forms import normalize
from jackfield.retrieval import Chunk
from jackfield_documents.stopwords import ABOUT_DOCUMENTS, STOP_WORDS

Chinese = Literal["words", "bigrams"]

_HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_KANA_HANGUL = r"\u3040-\u30ff\uac00-\ud7af"
_OTHER = rf"[^\W_{_HAN}{_KANA_HANGUL}]"
_TOKEN = re.compile(
    rf"(?P<han>[{_HAN}]+)"
    rf"|(?P<syllables>[{_KANA_HANGUL}]+)"
    r"|(?P<number>\d+(?:\.\d+)+)"
    r"|(?P<initials>(?:[^\W\d_]\.){2,}[^\W\d_]?)(?!\w)"
    rf"|(?P<word>{_OTHER}+(?:'{_OTHER}+)*)"
)
_IS_HAN = re.compile(rf"[{_HAN}]+")
_ABOUT_DOCUMENTS_IN_CHINESE = re.compile("|".join(word for word in ABOUT_DOCUMENTS if _IS_HAN.fullmatch(word)))
_HUMP = re.compile("[a-z][A-Z]")
_BETWEEN_HUMPS = re.compile("[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_KNOWN_WORDS = 50_000
_PAGE_LINE = re.compile(r"^\[page: \d+\]$", re.MULTILINE)


class Analyzer:
    """Splits text into lowercase search terms, with English words stemmed and stop words removed.

    A number with dots is one term, and `U.S.A.` becomes `usa`. `snake_case` and `well-known` yield two terms each, and
    `camelCase` yields three: the whole word and its two parts. Chinese text yields words, the words inside them and
    single characters, or single characters and pairs. Japanese and Korean syllables yield pairs.

    Args:
        chinese: The method for Chinese text: `words` uses a dictionary, `bigrams` needs none.
    """

    def __init__(self, chinese: Chinese = "words") -> None:
        import snowballstemmer

        # A stemmer stores the current word, and parallel searches share an analyzer.
        self._stemmer_lock = Lock()
        self._stem: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord
        # A few words make up most of a text, and the same analyzer processes texts and queries.
        self._terms_of_known_word = lru_cache(_KNOWN_WORDS)(self._split_word)
        self._has_words = chinese == "words"
        self._split_han = _load_han_splitter() if self._has_words else _split_to_characters_and_pairs
        self._split_token: Mapping[str | None, Callable[[str], list[str]]] = {
            "han": lambda text: [word for word in self._split_han(text) if word not in STOP_WORDS],
            "syllables": _split_to_pairs,
            "number": lambda text: [text],
            "initials": lambda text: self.terms_of_word(text.replace(".", "")),
        }
        self._ignored_in_queries = frozenset(
            term for word in ABOUT_DOCUMENTS for term in ([word] if _IS_HAN.fullmatch(word) else self.terms(word))
        )

    def terms_of_query(self, text: str) -> list[str]:
        """Split a query into terms, leaving out words that refer to the document itself, as in "summarize this paper".

        Such words do not single out a part of a document. The index retains them, because documents may contain them.
        """
        # Characters and pairs hide these words, so they are removed first.
        if not self._has_words:
            text = _ABOUT_DOCUMENTS_IN_CHINESE.sub(" ", text)
        elif _ABOUT_DOCUMENTS_IN_CHINESE.search(text):
            text = _IS_HAN.sub(self._remove_ignored_words, text)
        return [term for term in self.terms(text) if term not in self._ignored_in_queries]

    def _remove_ignored_words(self, run: re.Match[str]) -> str:
        # Searching for the words alone could cut a longer one in two.
        import rjieba

        return "".join(" " if word in self._ignored_in_queries else word for word in rjieba.cut(run[0], True))

    def terms(self, text: str) -> list[str]:
        """Split a text into terms, in order and including duplicates."""
        if not text.isascii():
            text = normalize("NFKC", text).replace("’", "'")
        terms: list[str] = []
        for match in _TOKEN.finditer(text):
            split = self._split_token.get(match.lastgroup)
            terms += self._terms_of_known_word(match[0]) if split is None else split(match[0])
        return terms

    def terms_of_word(self, word: str) -> list[str]:
        """Return a word's term in a list, or [] for a stop word. A camel-case name also yields its parts."""
        return [*self._terms_of_known_word(word)]

    def _split_word(self, word: str) -> tuple[str, ...]:
        parts = _BETWEEN_HUMPS.findall(word) if word.isascii() and _HUMP.search(word) else []
        return tuple(term for part in (word, *parts) for term in self._term_of(part.lower()))

    def _term_of(self, word: str) -> list[str]:
        if word in STOP_WORDS:
            return []
        stem = word
        # The stemmer is for English; it would mutilate numbers and the words of other languages.
        if word.isascii() and not word.isdigit():
            with self._stemmer_lock:
                stem = self._stem(word)
        return [] if stem in STOP_WORDS else [stem]


def parts_of(term: str, known: Callable[[str], bool]) -> list[str]:
    """Return the longest known parts of an unknown Chinese term, or [] for other languages.

    Segmentation depends on context, so one word in a question may be two words in a document.
    """
    if len(term) < 2 or not _IS_HAN.fullmatch(term):
        return []
    for length in range(len(term) - 1, 0, -1):
        substrings = (term[start : start + length] for start in range(len(term) - length + 1))
        if parts := [part for part in substrings if known(part)]:
            return parts
    return []


def searched_texts(chunk: Chunk) -> tuple[str, ...]:
    """Return a chunk's texts to index: the text without page lines, the headings and the title."""
    text = _PAGE_LINE.sub("", chunk.text) if "[page: " in chunk.text else chunk.text
    return (text, *chunk.headings, chunk.title)


def _load_han_splitter() -> Callable[[str], list[str]]:
    import rjieba

    def split(text: str) -> list[str]:
        # Single characters find synonyms that share one, and words that are segmented differently in question and text.
        return [*rjieba.cut_for_search(text, True), *text]

    return split


def _split_to_pairs(text: str) -> list[str]:
    return [text[i : i + 2] for i in range(len(text) - 1)] or [text]


def _split_to_characters_and_pairs(text: str) -> list[str]:
    return [*text, *_split_to_pairs(text)] if len(text) > 1 else [text]
