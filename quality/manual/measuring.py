"""Ask searchers the questions about the manual, and compute figures for each group."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jackfield.plugins import PluginHost
from jackfield.retrieval import Chunk, Corpus, Searcher, make_searcher
from jackfield_documents import best_within
from jackfield_documents.followups import Exchange, search_text
from quality.debian import CACHE
from quality.judged import ANSWERS, Question
from quality.manual.questions import ManualQuestion, Part
from quality.measures import DEPTH, Figures, means_of
from quality.weights import english_settings

MULTILINGUAL = "multilingual:universal-sentence-encoder-multilingual-3"
FETCHED = 50  # chunks, several of which may belong to one section
_OTHER = {"en": "zh", "zh": "en"}
_NAMES = {"en": "English", "zh": "Chinese"}
_UNRELATED_SEED = 1


@dataclass(frozen=True, slots=True)
class ManualSetup:
    """A searcher and its settings."""

    name: str
    searcher: str
    settings: Callable[[], Mapping[str, Any]]


def _vectors() -> Mapping[str, Any]:
    return {"embedding_model": MULTILINGUAL, "index_path": str(CACHE / "vectors.sqlite")}


def _english() -> Mapping[str, Any]:
    return {**english_settings(), "index_path": str(CACHE / "vectors.sqlite")}


def three_searchers(index_path: str) -> list[str | dict[str, Any]]:
    """Return words, vectors for several languages, and vectors for English."""
    return [
        "keyword_search",
        {"name": "vector_search", "embedding_model": MULTILINGUAL, "index_path": index_path},
        # Its address is another name for the same searcher, so that it can be listed twice.
        {"name": "jackfield-vector-search/vector_search", **english_settings(), "index_path": index_path},
    ]


SETUPS: Sequence[ManualSetup] = (
    ManualSetup("keyword_search", "keyword_search", dict),
    ManualSetup("keyword_search, bigrams", "keyword_search", lambda: {"chinese": "bigrams"}),
    ManualSetup("vector_search, multilingual", "vector_search", _vectors),
    ManualSetup(
        "hybrid_search, multilingual",
        "hybrid_search",
        lambda: {"searchers": ["keyword_search", {"name": "vector_search", **_vectors()}]},
    ),
    ManualSetup(
        "hybrid_search, English",
        "hybrid_search",
        lambda: {"searchers": ["keyword_search", {"name": "vector_search", **_english()}]},
    ),
    ManualSetup(
        "hybrid_search, multilingual and English",
        "hybrid_search",
        lambda: {"searchers": three_searchers(str(CACHE / "vectors.sqlite"))},
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A text to search for in one manual.

    Attributes:
        group: The group of questions that the case belongs to.
        manual: The language of the manual.
        text: The text to search for.
        section: The id of the section that answers the question.
    """

    group: str
    manual: str
    text: str
    section: str


def cases_of(questions: Sequence[ManualQuestion], part: Part) -> list[Case]:
    """Return the cases for one half of the questions.

    Follow-ups are asked with the words of earlier turns and alone. Direct questions are asked alone and after an
    unrelated conversation, which must not hurt the result. Every question is also asked of the manual in the other
    language.
    """
    chosen = [question for question in questions if question.part == part]
    unrelated = random.Random(_UNRELATED_SEED)  # noqa: S311 - any choice will do, as long as it is always the same
    cases = []
    for question in chosen:
        language, text = _NAMES[question.language], search_text(question.text, _exchanges(question))
        case = Case(f"{language}, {question.kind}", question.language, text, question.section)
        cases.append(case)
        cross = f"{language} question, other manual, {question.kind}"
        cases.append(replace(case, group=cross, manual=_OTHER[question.language]))
        if question.kind == "followup":
            cases.append(replace(case, group=f"{language}, followup, asked alone", text=question.text))
        if question.kind == "direct":
            others = [
                one
                for one in chosen
                if one.earlier and one.language == question.language and one.section != question.section
            ]
            text = search_text(question.text, _exchanges(unrelated.choice(others)))
            cases.append(replace(case, group=f"{language}, direct, after another subject", text=text))
    return cases


def measure(
    setup: ManualSetup, corpora: Mapping[str, Corpus], cases: Sequence[Case], host: PluginHost
) -> dict[str, Figures]:
    """Return the figures for each group of cases.

    Raises:
        PluginNotFoundError: The searcher is not installed.
        CannotInstallError: The model's weights cannot be fetched.
    """
    searcher = make_searcher(setup.searcher, setup.settings(), host=host)
    return figures_by_group(cases, asyncio.run(_rank_all(searcher, corpora, cases)))


def figures_by_group(cases: Sequence[Case], rankings: Sequence[Sequence[str]]) -> dict[str, Figures]:
    """Compute each group's figures from the sections found for each case, best first."""
    groups: dict[str, list[tuple[Question, Sequence[str]]]] = {}
    for case, ranking in zip(cases, rankings, strict=True):
        question = Question(case.manual, "direct", case.text, {case.section: ANSWERS})
        groups.setdefault(case.group, []).append((question, ranking))
    return {group: means_of(pairs) for group, pairs in sorted(groups.items())}


def sections_of(chunks: Iterable[Chunk]) -> list[str]:
    """Return the distinct sections of ranked chunks, up to the number that is evaluated."""
    return list(dict.fromkeys(chunk.source for chunk in chunks))[:DEPTH]


def measure_request(
    setup: ManualSetup, corpora: Mapping[str, Corpus], cases: Sequence[Case], host: PluginHost, *, max_tokens: int
) -> dict[str, tuple[int, int]]:
    """Return, for each group, how many answering sections fit into a request of this size, and how many there are.

    Both manuals are searched as one corpus, as if they were an agent's files.
    """
    chunks = (
        replace(chunk, id=f"{language} {chunk.id}", source=f"{language} {chunk.source}")
        for language, corpus in corpora.items()
        for chunk in corpus.chunks
    )
    together = Corpus(tuple(chunks))
    searcher = make_searcher(setup.searcher, setup.settings(), host=host)

    async def count() -> dict[str, tuple[int, int]]:
        counts: dict[str, tuple[int, int]] = {}
        try:
            for case in cases:
                hits = await searcher.search(case.text, together, limit=max(50, max_tokens // 50))
                shown = {chunk.source for chunk in best_within(hits, max_tokens=max_tokens)}
                found, asked = counts.get(case.group, (0, 0))
                counts[case.group] = found + (f"{case.manual} {case.section}" in shown), asked + 1
        finally:
            if close := getattr(searcher, "aclose", None):
                await close()
        return counts

    return asyncio.run(count())


async def _rank_all(searcher: Searcher, corpora: Mapping[str, Corpus], cases: Sequence[Case]) -> list[list[str]]:
    try:
        return [await _sections(searcher, case.text, corpora[case.manual]) for case in cases]
    finally:
        if close := getattr(searcher, "aclose", None):
            await close()


async def _sections(searcher: Searcher, text: str, corpus: Corpus) -> list[str]:
    hits = await searcher.search(text, corpus, limit=FETCHED)
    return sections_of(hit.chunk for hit in hits)


def _exchanges(question: ManualQuestion) -> list[Exchange]:
    turns = question.earlier
    return [Exchange(*turns[start : start + 2]) for start in range(0, len(turns), 2)]
