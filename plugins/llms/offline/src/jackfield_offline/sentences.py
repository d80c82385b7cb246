"""Split passages into English or Chinese sentences, and find those that match given words, without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jackfield.normal_forms import normalize
from jackfield_offline.knowledge import Passage

_LINE = re.compile(r"[^\n]*\n?")
# The beginning of a line that does not continue the text before it. Headings, fences and empty lines have no content.
_MARK = re.compile(
    r"\s*(?:(?P<row>\|)|(?P<none>#|```|~~~|\Z))|(?P<item>[ \t]*(?:[-*+•>][ \t]+|\d{1,3}[.)、][ \t]*(?=\D)))"
)
_NO_CONTENT = re.compile(r"[\s|:\-=_*`~#.]*$")
_END = re.compile(r"[。！？!?]+[\"”’」』）)]*|\.[\"”’)]*(?=\s+[^\s\da-z]|\s+\d+\s|\s*$)")
_TOKEN = re.compile(r"(?P<cjk>[\u3400-\u9fff]+)|(?P<word>[^\W_\u3400-\u9fff]+)")

# Words that say nothing about the topic of a question.
_STOP_WORDS = frozenset(
    """
    a an and any are as at be been but by can could did do does each every for from give had has have how i if in
    into is it its list many me more most much my no not of on one or our please say should show so some such tell
    than that the their them then there these they this those to us was we were what when where which who whom
    whose why will with would you your
    """.split()  # noqa: SIM905 - a list of quoted words would be harder to read
)
_STOP_CHINESE = re.compile(
    "什么|多少|怎么|怎样|如何|哪些|哪个|哪里|是否|为什么|为何|请问|可以|一个|一次|每次|每个|我们|你们|他们|这个|那个|根据|"
    "[的是了吗呢吧啊在和与及或有也就都被把请个我你他它这那之为]"
)

_K1, _B = 1.2, 0.5  # BM25's usual values, with less weight on length: sentences are all short


@dataclass(frozen=True, slots=True)
class Sentence:
    """A verbatim sentence and its passage."""

    text: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class Match:
    """A matching sentence. `coverage` is the fraction of the query's words it contains, above 0 and up to 1."""

    sentence: Sentence
    score: float
    coverage: float
    matched: frozenset[str]


@dataclass(frozen=True, slots=True)
class Term:
    """A word or a pair of adjacent Chinese characters, with its position in the text."""

    text: str
    start: int
    end: int


def split_sentences(passage: Passage) -> list[Sentence]:
    """Return the sentences, list items and table rows in a passage, without headings and empty ones."""
    sentences = []
    for start, end in _blocks(passage.text):
        position = start
        for match in _END.finditer(passage.text, start, end):
            sentences.append(passage.text[position : match.end()].strip())
            position = match.end()
        sentences.append(passage.text[position:end].strip())
    return [Sentence(text, passage) for text in sentences if not _NO_CONTENT.match(text)]


def terms(text: str) -> Iterator[Term]:
    """Yield the terms of a text in order: words in lower case and singular, and pairs of Chinese characters."""
    for match in _TOKEN.finditer(text):
        if match["cjk"]:
            yield from _chinese_terms(match["cjk"], match.start())
        else:
            word = _base_form(normalize("NFKC", match["word"]).casefold())
            if word not in _STOP_WORDS:
                yield Term(word, match.start(), match.end())


class Library:
    """A searchable collection of sentences, cheap to build at about a microsecond per character."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self.sentences: Sequence[Sentence] = _sentences_of(passages)
        self._terms = [Counter(_about(sentence)) for sentence in self.sentences]
        self._frequency = Counter(term for counted in self._terms for term in counted)
        lengths = [counted.total() for counted in self._terms]
        self._mean_length = max(1.0, sum(lengths) / max(1, len(lengths)))

    def find(self, words: str) -> list[Match]:
        """Return the sentences that contain any of the words, best first; ties keep document order."""
        wanted = {term.text for term in terms(words)}
        if not wanted:
            return []
        matches = []
        for sentence, counted in zip(self.sentences, self._terms, strict=True):
            matched = frozenset(wanted & counted.keys())
            if matched:
                score = sum(self._weight(term, counted) for term in matched)
                coverage = len(matched) / len(wanted)
                matches.append(Match(sentence, score * coverage, coverage, matched))
        return sorted(matches, key=lambda match: -match.score)

    def _weight(self, term: str, counted: Counter[str]) -> float:
        """Return a term's BM25 weight in a sentence."""
        total, having = len(self.sentences), self._frequency[term]
        rarity = math.log(1 + (total - having + 0.5) / (having + 0.5))
        length = 1 - _B + _B * counted.total() / self._mean_length
        return rarity * counted[term] * (_K1 + 1) / (counted[term] + _K1 * length)


def _sentences_of(passages: Iterable[Passage]) -> tuple[Sentence, ...]:
    """Split passages into sentences, without the duplicates within a source that overlapping chunks cause."""
    unique: dict[tuple[str, str], Sentence] = {}
    for passage in passages:
        for sentence in split_sentences(passage):
            unique.setdefault((sentence.text, passage.source), sentence)
    return tuple(unique.values())


def _about(sentence: Sentence) -> Iterator[str]:
    yield from (term.text for term in terms(sentence.text))
    if sentence.passage.from_tool:
        yield from (term.text for term in terms(sentence.passage.source))


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each paragraph, list item and table row in a text, excluding markers."""
    begun: list[tuple[int, int | None]] = []  # the start of each line that begins a block, and of its content, if any
    is_open = False
    for line in _LINE.finditer(text):
        start, mark = line.start(), _MARK.match(line[0])
        if mark:
            begun.append((start, None if mark["none"] is not None else start + len(mark["item"] or "")))
        elif not is_open:
            begun.append((start, start))
        is_open = not mark or mark["item"] is not None
    for (_, block), (end, _) in pairwise(begun):
        if block is not None:
            yield block, end


def _chinese_terms(run: str, offset: int) -> Iterator[Term]:
    position = 0
    for stop in [*_STOP_CHINESE.finditer(run), None]:
        end = stop.start() if stop else len(run)
        if end - position == 1:
            yield Term(run[position], offset + position, offset + end)
        for start in range(position, end - 1):
            yield Term(run[start : start + 2], offset + start, offset + start + 2)
        position = stop.end() if stop else end


def _base_form(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
