"""Turn texts into terms, in the same way for the index and for queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
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
_PAGE_LINE = re.compile(r"^\[page: \d+\]$", re.MULTILINE)


class Analyzer:
    """Turns texts into terms: lower case, without stop words, English words by their stem.

    Numbers with dots are one term, `U.S.A.` is `usa`, `snake_case` and `well-known` are two words each, `camelCase` is
    one and the two that it consists of. Chinese is cut into words and the words inside them, or into single characters
    and pairs; Japanese and Korean syllables into pairs.

    Args:
        chinese: `words`, with a dictionary, or `bigrams`.
    """

    def __init__(self, chinese: Chinese = "words") -> None:
        import snowballstemmer

        # A stemmer keeps the word it works on in itself, and searches that run at once share an analyzer.
        self._stemming = Lock()
        self._stem: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord
        self._has_words = chinese == "words"
        self._cut_han: Callable[[str], Iterable[str]] = _han_words() if self._has_words else _characters_and_pairs
        self._terms_of: Mapping[str | None, Callable[[str], list[str]]] = {
            "han": self._terms_of_han,
            "syllables": _pairs,
            "number": lambda text: [text],
            "initials": self._terms_of_initials,
        }
        self._not_asked_for = frozenset(
            term for word in ABOUT_DOCUMENTS for term in ([word] if _IS_HAN.fullmatch(word) else self.terms(word))
        )

    def terms_of_query(self, text: str) -> list[str]:
        """The terms to search for, without words that refer to a document itself, as in "summarize this paper".

        Such words do not say which part is meant. Documents may contain them, so the index has them.
        """
        # Where Chinese is not cut into words, these are found as they stand; where it is, one may be a part of another.
        asked = text if self._has_words else _ABOUT_DOCUMENTS_IN_CHINESE.sub(" ", text)
        return [term for term in self.terms(asked) if term not in self._not_asked_for]

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order, each as often as it occurs."""
        if not text.isascii():
            text = normalize("NFKC", text).replace("’", "'")
        found: list[str] = []
        for match in _TOKEN.finditer(text):
            found += self._terms_of.get(match.lastgroup, self.terms_of_word)(match[0])
        return found

    def _terms_of_han(self, text: str) -> list[str]:
        return [word for word in self._cut_han(text) if word not in STOP_WORDS]

    def _terms_of_initials(self, text: str) -> list[str]:
        return self.terms_of_word(text.replace(".", ""))

    def terms_of_word(self, word: str) -> list[str]:
        """The term of one word, as a list; [] for a stop word. Of a name in camel case, also those of its parts."""
        parts = _BETWEEN_HUMPS.findall(word) if word.isascii() and _HUMP.search(word) else []
        return [term for one in (word, *parts) for term in self._term_of(one.lower())]

    def _term_of(self, word: str) -> list[str]:
        if word in STOP_WORDS:
            return []
        stem = word
        # The stemmer is for English: it would take letters off other languages' words, and off numbers.
        if word.isascii() and not word.isdigit():
            with self._stemming:
                stem = self._stem(word)
        return [] if stem in STOP_WORDS else [stem]


def parts_of(term: str, known: Callable[[str], bool]) -> list[str]:
    """The longest parts of a Chinese term that are known, for a term that is not; [] for other languages.

    Segmentation depends on what stands around a word, so a question's word may be two words in the text.
    """
    if len(term) < 2 or not _IS_HAN.fullmatch(term):
        return []
    by_length = (list(filter(known, _pieces(term, length))) for length in range(len(term) - 1, 0, -1))
    return next(filter(None, by_length), [])


def _pieces(term: str, length: int) -> Iterator[str]:
    return (term[start : start + length] for start in range(len(term) - length + 1))


def searched_texts(chunk: Chunk) -> tuple[str, ...]:
    """What a chunk is found by: its text without the lines that name its pages, and what it stands under."""
    return (_without_page_lines(chunk.text), *chunk.headings, chunk.title)


def _without_page_lines(text: str) -> str:
    return _PAGE_LINE.sub("", text) if "[page: " in text else text


def _han_words() -> Callable[[str], Iterable[str]]:
    import rjieba

    def cut(text: str) -> Iterable[str]:
        words: list[str] = rjieba.cut_for_search(text, True)
        return words

    return cut


def _pairs(text: str) -> list[str]:
    return [text[i : i + 2] for i in range(len(text) - 1)] or [text]


def _characters_and_pairs(text: str) -> list[str]:
    return [*text, *_pairs(text)] if len(text) > 1 else [text]
