"""Build the search text for a conversation's question: recognise follow-ups, and add words from earlier turns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from jackfield_documents.stopwords import STOP_WORDS

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[^\W_{_HAN}]+(?:['-][^\W_{_HAN}]+)*")
_HAN_RUN = re.compile(f"[{_HAN}]+")
_CHINESE_STOP_WORDS = re.compile(
    "|".join(sorted((word for word in STOP_WORDS if _HAN_RUN.fullmatch(word)), key=len, reverse=True))
)
_OPENINGS = re.compile(
    r"\s*(?:and|but|or|so|then|also|what about|how about|what if|why not|why so)\b"
    r"|\s*(?:那|还有|另外|然后|而且|但|所以)",
    re.IGNORECASE,
)
_ENDINGS = re.compile(r"(?:\bthen|\binstead|呢)\W*$", re.IGNORECASE)
# "that" is mostly a conjunction, and "there is" refers to nothing.
_PRONOUNS = re.compile(
    r"\b(?:it|its|they|them|theirs?|he|him|his|she|hers?|this|these|those|former|latter)\b"
    r"|\b(?:is|are|was|were|does|do|did|of|for|about|with|to|in|on|by|like|after|before|from|than|can)\s+that\b|\bthat\W*$"
    r"|(?<!is )(?<!are )(?<!was )(?<!were )\bthere\b|\bones\b|\b(?:the|which|that|other)\s+(?:\w+\s+)?one\b"
    r"|[它他她其此该]|这|那|前者|后者|第[一二三四五]个",
    re.IGNORECASE,
)
_HARDLY_A_WORD = 0.5
_FEW_WORDS = 2
_SEVERAL_WORDS = 5
_HAN_PER_WORD = 2
_MOST_EXCHANGES = 3
_ANSWER_CHARS = 200


class Dependence(IntEnum):
    """The degree to which a question depends on earlier turns."""

    NONE = 0
    SOME = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer in a conversation."""

    question: str
    answer: str = ""


def dependence(question: str) -> Dependence:
    """Return how much a question depends on earlier turns, judged by its wording.

    `FULL`: the question opens as a continuation ("And …", "那…呢？"), refers to something by a pronoun, or has hardly
    any content words. `SOME`: the question is short, or has a pronoun that may refer to a part of the question itself.
    """
    words = _count_words(question)
    refers = bool(_PRONOUNS.search(question))
    continues = bool(_OPENINGS.match(question) or _ENDINGS.search(question))
    if words <= _HARDLY_A_WORD or (words <= _SEVERAL_WORDS and (refers or continues)):
        return Dependence.FULL
    return Dependence.SOME if words <= _FEW_WORDS or refers or continues else Dependence.NONE


def search_text(question: str, earlier: Sequence[Exchange]) -> str:
    """Return the text to search for: the question, with text from earlier turns if it depends on them.

    Args:
        question: The last question.
        earlier: The earlier turns, oldest first.

    Returns:
        The question alone if it is independent. Otherwise, the last exchange comes before the question, along with any
        exchanges that one depends on in turn: at most three, with only the first 200 characters of each answer. A
        partly dependent question is repeated, so that its own words count more.
    """
    how = dependence(question)
    if how is Dependence.NONE or not earlier:
        return question
    context: list[str] = []
    for exchange in reversed(earlier[-_MOST_EXCHANGES:]):
        context[:0] = [exchange.question, exchange.answer[:_ANSWER_CHARS]]
        if dependence(exchange.question) is not Dependence.FULL:
            break
    repeated = [question] if how is Dependence.FULL else [question, question]
    return "\n".join(part.strip() for part in (*context, *repeated) if part.strip())


def _count_words(text: str) -> float:
    """Count a text's content words. In Chinese, two characters count as one word."""
    words = {word.lower() for word in _WORD.findall(text)} - STOP_WORDS
    han = sum(len(part) for run in _HAN_RUN.findall(text) for part in _CHINESE_STOP_WORDS.split(run))
    return len(words) + han / _HAN_PER_WORD
