"""Recognise questions about whole documents, and choose chunks that represent them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from jackfield.messages import basename_of
from jackfield.retrieval import Chunk
from jackfield.tokenizers import TokenCounter
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents.budget import share_tokens, take_within
from jackfield_documents.stopwords import ABOUT_DOCUMENTS, FILLERS, STOP_WORDS

_FRONT_PARTS = 3  # the beginning takes one part in so many of a document's tokens
_MAX_LEVELS = 9

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[^\W_{_HAN}]+")
_INTENT = re.compile(
    r"\bsummar(?:y|ies|i[sz]\w+)\b|\boverview\b|\boutline\b|\bsynopsis\b|\bgist\b|\btl;?dr\b"
    r"|\b(?:main|key|most important|central) (?:points?|ideas?|findings?|takeaways?|messages?|topics?|contents?)\b"
    r"|\bwhat (?:is|are|does|do)\b(?P<topic>.{0,60})\b(?:about|say|says|contain|contains|cover|covers)\s*\W*$"
    r"|总结|概括|概述|归纳|摘要|综述|大意|梗概|要点|主要内容|主要观点|[讲说写]了(?:些)?什么|[讲说]的是什么",
    re.IGNORECASE,
)
_ENTIRETY = re.compile(
    r"\b(?:whole|entire|complete|full)\s+(?:document|text|file|paper|book|report|manual|thing|pdf)s?\b"
    r"|整个|整篇|整本|整份|全文|全书|通篇",
    re.IGNORECASE,
)
_IS_HAN = re.compile(f"[{_HAN}]+")
_NO_TOPICS = frozenset((*STOP_WORDS, *ABOUT_DOCUMENTS, *FILLERS))
_CHINESE_NO_TOPICS = re.compile(
    "|".join(sorted((word for word in _NO_TOPICS if _IS_HAN.fullmatch(word)), key=len, reverse=True))
)


def asks_for_whole(question: str, *, names: Iterable[str] = ()) -> bool:
    """Return True if a question is about whole documents, such as "Summarise this report" or "总结全文".

    A question that names a topic ("Summarise the rules for time stamps") asks for a part, unless it explicitly refers
    to the entire document.

    Args:
        question: The question.
        names: The documents' names, which do not count as topics.
    """
    if not _INTENT.search(question):
        return False
    if _ENTIRETY.search(question):
        return True
    ignored = _NO_TOPICS | {word.lower() for name in names for word in _WORD.findall(basename_of(name))}
    rest = _INTENT.sub(lambda match: match["topic"] or " ", question)
    words = [word for word in _WORD.findall(rest) if word.lower() not in ignored and not word.isdigit()]
    # A single character is not a topic.
    characters = re.findall(f"[{_HAN}]", _CHINESE_NO_TOPICS.sub(" ", rest))
    return not words and len(characters) < 2


def overview(chunks: Iterable[Chunk], *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> list[Chunk]:
    """Return chunks that represent each document: its beginning, and evenly spaced parts up to its end.

    Documents share the tokens equally, and surplus tokens go to longer ones. Chunks keep the given order.
    """
    by_source: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        by_source[chunk.source].append(chunk)
    sizes = {source: sum(chunk.tokens for chunk in of_one) for source, of_one in by_source.items()}
    shares = share_tokens(sizes, max_tokens)
    chosen: list[Chunk] = []
    for source, of_one in by_source.items():
        order = _representative_order(of_one, shares[source])
        chosen += take_within(order, shares[source], count_tokens)
    return chosen


def outline_of(chunks: Sequence[Chunk], *, max_tokens: int, count_tokens: TokenCounter = estimate_tokens) -> str:
    """Return a document's headings as indented lines, with as many levels as fit; '' if it has none or too many."""
    paths = list(dict.fromkeys(path for chunk in chunks for path in _prefixes(chunk.headings)))
    for levels in range(_MAX_LEVELS, 0, -1):
        lines = ["  " * (len(path) - 1) + "- " + path[-1] for path in paths if len(path) <= levels]
        text = "\n".join(lines)
        if count_tokens(text) <= max_tokens:
            return text
    return ""


def _representative_order(chunks: Sequence[Chunk], max_tokens: int) -> list[Chunk]:
    """Return the first chunks, and about as many evenly spaced chunks of the rest as will fit."""
    front, used = 0, 0
    while front < len(chunks) and used + chunks[front].tokens <= max_tokens / _FRONT_PARTS:
        used += chunks[front].tokens
        front += 1
    rest = chunks[max(1, front) :]
    mean = sum(chunk.tokens for chunk in rest) / len(rest) if rest else 1
    count = min(len(rest), max(1, int((max_tokens - used) / max(1, mean))))
    numbers = {round((number + 1) * len(rest) / count) - 1 for number in range(count)} if rest else set()
    return [*chunks[: max(1, front)], *(rest[number] for number in sorted(numbers))]


def _prefixes(headings: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [headings[:length] for length in range(1, len(headings) + 1)]
