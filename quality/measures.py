"""Measures that compare a ranking with grades."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from quality.judged import Question

DEPTH = 10
"""The number of hits to evaluate."""

Ranking = Sequence[str]


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over a group of questions.

    Attributes:
        questions: The number of questions.
        recall: The share of the answers among the first five, of at most five answers.
        mrr: One divided by the rank of the first answer, or 0 if none is among the first ten.
        ndcg: The discounted gain of the first ten, relative to the best possible one.
    """

    questions: int
    recall: float
    mrr: float
    ndcg: float


@dataclass(frozen=True, slots=True)
class Share:
    """The share, from 0 to 1, of a group of questions whose answer reaches the model."""

    questions: int
    share: float


def recall_at_5(ranking: Ranking, question: Question) -> float:
    """Return the share of the answers among the first five, of at most five answers."""
    return len(question.answers & set(ranking[:5])) / min(5, len(question.answers))


def reciprocal_rank(ranking: Ranking, question: Question) -> float:
    """Return one divided by the rank of the first answer, or 0 if there is none."""
    places = (place for place, id_ in enumerate(ranking[:DEPTH], start=1) if id_ in question.answers)
    return 1 / next(places, math.inf)


def ndcg_at_10(ranking: Ranking, question: Question) -> float:
    """Return the normalized discounted gain of the first ten.

    Source: Järvelin & Kekäläinen, TOIS 2002, with the gain 2^grade - 1.
    """
    best = _discounted(sorted(question.grades.values(), reverse=True))
    return _discounted([question.grades.get(id_, 0) for id_ in ranking]) / best


def _discounted(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades[:DEPTH], start=1))


GROUPS: Mapping[str, Callable[[Question], bool]] = {
    "all": lambda _: True,
    "English": lambda question: question.language == "en",
    "Chinese": lambda question: question.language == "zh",
    "English paraphrases": lambda question: question.language == "en" and question.kind == "paraphrase",
    "Chinese paraphrases": lambda question: question.language == "zh" and question.kind == "paraphrase",
}


def figures_of(rankings: Iterable[tuple[Question, Ranking]]) -> dict[str, Figures]:
    """Return the figures for each group of questions, ignoring questions without an answer."""
    answered = [(question, ranking) for question, ranking in rankings if question.answers]
    return {
        name: means_of([pair for pair in answered if belongs(pair[0])])
        for name, belongs in GROUPS.items()
        if any(belongs(question) for question, _ in answered)
    }


def means_of(pairs: Sequence[tuple[Question, Ranking]]) -> Figures:
    """Return the means over some questions, each of which has an answer."""

    def mean(measure: Callable[[Ranking, Question], float]) -> float:
        return fmean(measure(ranking, question) for question, ranking in pairs)

    return Figures(len(pairs), mean(recall_at_5), mean(reciprocal_rank), mean(ndcg_at_10))
