"""Ask peers the questions about the manual, with the same passages and vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from jackfield.plugins import PluginHost
from jackfield.retrieval import Chunk, Corpus, Embedder
from quality.manual.measuring import FETCHED, Case, figures_by_group, sections_of
from quality.manual.texts import read_sections
from quality.manual.wholes import Whole, mean_shares
from quality.measures import Figures, Share
from quality.peers import Job, rank_with_peers

_DIGITS = 6  # of a vector's numbers, which are sent to the peers as JSON


def measure_peers(
    corpora: Mapping[str, Corpus], cases: Sequence[Case], wholes: Sequence[Whole], host: PluginHost
) -> dict[str, Mapping[str, Figures | Share]]:
    """Return each peer's figures for each group of cases and for questions about whole documents.

    Raises:
        CannotInstallError: The peers or the model's weights cannot be installed here.
    """
    asked = {language: [case.text for case in cases if case.manual == language] for language in corpora}
    chapters = {language: {one.id: one.chapter for one in read_sections(language)} for language in corpora}
    searched = [
        [
            chunk
            for chunk in corpora[whole.language].chunks
            if whole.chapter in {0, chapters[whole.language][chunk.source]}
        ]
        for whole in wholes
    ]
    passages = [chunk.text for corpus in corpora.values() for chunk in corpus.chunks]
    texts = [*passages, *(case.text for case in cases), *(whole.text for whole in wholes)]
    vectors = _vectors_of(texts, host)
    jobs = [_job(corpora[language].chunks, asked[language], vectors, depth=FETCHED) for language in corpora]
    jobs += [
        _job(chunks, [whole.text], vectors, depth=len(chunks)) for whole, chunks in zip(wholes, searched, strict=True)
    ]
    chunks = {chunk.id: chunk for corpus in corpora.values() for chunk in corpus.chunks}
    measured: dict[str, Mapping[str, Figures | Share]] = {}
    for peer, rankings in rank_with_peers(jobs).items():
        ranked = [[[chunks[id_] for id_ in ids] for ids in of_job] for of_job in rankings]
        by_manual = {language: iter(of_job) for language, of_job in zip(corpora, ranked, strict=False)}
        figures = figures_by_group(cases, [sections_of(next(by_manual[case.manual])) for case in cases])
        shown = [
            _text_within(of_job[0], whole.max_tokens)
            for whole, of_job in zip(wholes, ranked[len(corpora) :], strict=True)
        ]
        measured[peer] = {**figures, **mean_shares(wholes, shown)}
    return measured


def _vectors_of(texts: Sequence[str], host: PluginHost) -> dict[str, list[float]]:
    embedder = host.make(host.find("embedder", "multilingual"), {}, Embedder)
    different = list(dict.fromkeys(texts))
    vectors = asyncio.run(embedder.embed(different)).vectors
    return {
        text: [round(number, _DIGITS) for number in vector] for text, vector in zip(different, vectors, strict=True)
    }


def _job(chunks: Sequence[Chunk], texts: Sequence[str], vectors: Mapping[str, list[float]], *, depth: int) -> Job:
    passages = [
        {"id": chunk.id, "document": chunk.source, "text": chunk.text, "vector": vectors[chunk.text]}
        for chunk in chunks
    ]
    return {
        "passages": passages,
        "queries": [{"text": text, "vector": vectors[text]} for text in texts],
        "depth": depth,
    }


def _text_within(chunks: Sequence[Chunk], max_tokens: int) -> str:
    texts: list[str] = []
    for chunk in chunks:
        max_tokens -= chunk.tokens
        if max_tokens < 0:
            break
        texts.append(chunk.text)
    return "\n".join(texts)
