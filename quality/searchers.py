"""The measured searchers and their settings, each under a name of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from jackfield.errors import PluginNotFoundError
from jackfield.plugins import PluginHost
from jackfield.retrieval import Corpus, Searcher, make_searcher
from jackfield_documents import fuse, weights_of
from quality.judged import JudgedSet
from quality.measures import DEPTH
from quality.weights import english_settings, model_folder

FUSED_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Setup:
    """Searchers that are queried together. If there are several, their rankings are fused as in an agent.

    Attributes:
        name: The name in the table and in the floors file.
        searchers: The settings of each searcher, by name.
    """

    name: str
    searchers: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)


def _nothing() -> Mapping[str, Any]:
    return {}


def _local_vectors() -> Mapping[str, Any]:
    return {"embedding_model": f"transformers:{model_folder()}"}


def _local_vectors_in_8_bits() -> Mapping[str, Any]:
    return {**_local_vectors(), "embedder_settings": {"precision": "int8"}}


def _both() -> Mapping[str, Any]:
    return {"searchers": ["keyword_search", {"name": "vector_search", **_local_vectors()}]}


def _english() -> Mapping[str, Any]:
    return {"searchers": ["keyword_search", {"name": "vector_search", **english_settings()}]}


SETUPS: Sequence[Setup] = (
    Setup("keyword_search", {"keyword_search": _nothing}),
    Setup("keyword_search, bigrams", {"keyword_search": lambda: {"chinese": "bigrams"}}),
    Setup("vector_search, all-MiniLM-L6-v2", {"vector_search": _local_vectors}),
    Setup("vector_search, all-MiniLM-L6-v2, int8", {"vector_search": _local_vectors_in_8_bits}),
    Setup("keyword_search + vector_search", {"keyword_search": _nothing, "vector_search": _local_vectors}),
    Setup("hybrid_search", {"hybrid_search": _both}),
    Setup("vector_search, bge-small-en-v1.5", {"vector_search": english_settings}),
    Setup("hybrid_search, bge-small-en-v1.5", {"hybrid_search": _english}),
    Setup("tantivy_search", {"tantivy_search": _nothing}),
)


class NotInstalledError(Exception):
    """A searcher or one of its requirements is not installed."""


def rankings(setup: Setup, judged: JudgedSet, host: PluginHost) -> list[list[str]]:
    """Return the ids of the passages found for each question, best first.

    Raises:
        NotInstalledError: A searcher is not installed.
        CannotInstallError: The model's weights cannot be fetched.
    """
    corpus = judged.corpus
    made: dict[str, Searcher] = {}
    for name, settings in setup.searchers.items():
        try:
            made[name] = make_searcher(name, settings(), host=host)
        except PluginNotFoundError as error:
            raise NotInstalledError(str(error).partition("\n")[0]) from error

    async def search() -> list[list[str]]:
        async with AsyncExitStack() as stack:
            for searcher in made.values():
                if close := getattr(searcher, "aclose", None):  # some searchers have nothing to close
                    stack.push_async_callback(close)
            return [await _found(made, question.text, corpus) for question in judged.questions]

    return asyncio.run(search())


async def _found(searchers: Mapping[str, Searcher], text: str, corpus: Corpus) -> list[str]:
    if len(searchers) == 1:
        (searcher,) = searchers.values()
        hits = await searcher.search(text, corpus, limit=DEPTH)
    else:
        rankings = {name: await one.search(text, corpus, limit=FUSED_DEPTH) for name, one in searchers.items()}
        hits = fuse(rankings, weights=weights_of({}, rankings))
    return [hit.chunk.id for hit in hits[:DEPTH]]
