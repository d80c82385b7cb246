"""A searcher that does all as it should, and searchers that do one thing otherwise."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from jackfield.errors import ConfigError
from jackfield.plugins import default_host
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where


class Honest(Searcher):
    """Counts shared words, letters of Chinese each being one."""

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self.indexes: dict[str, list[Counter[str]]] = {}

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        if limit < 1:
            return []
        ranked = await asyncio.to_thread(lambda: self.ranked(self.words(query), self.index(corpus)))
        if where:
            ranked = [(score, number) for score, number in ranked if number in corpus.select(where)]
        return [
            Hit(corpus.chunks[number], score, {"honest": rank})
            for rank, (score, number) in enumerate(ranked[:limit], start=1)
        ]

    def index(self, corpus: Corpus) -> list[Counter[str]]:
        if corpus.content_hash not in self.indexes:
            self.indexes[corpus.content_hash] = [Counter(self.words(chunk.text)) for chunk in corpus.chunks]
        return self.indexes[corpus.content_hash]

    def words(self, text: str) -> list[str]:
        spaced = "".join(f" {char} " if "\u4e00" <= char <= "\u9fff" else char for char in text.lower())
        return [word.rstrip(".") for word in spaced.split()]

    def ranked(self, words: list[str], index: list[Counter[str]]) -> list[tuple[float, int]]:
        scores = [(float(sum(min(counts[word], 1) for word in words)), n) for n, counts in enumerate(index)]
        return sorted((pair for pair in scores if pair[0] > 0), key=lambda pair: (-pair[0], pair[1]))


class ForgetsItsHost(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        try:
            default_host()
        except AssertionError:
            return []
        return await super().search(query, corpus, limit=limit, where=where)


class FindsNothing(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        return []


class NoChinese(Honest):
    def words(self, text: str) -> list[str]:
        return [word.strip(".,") for word in text.lower().split()]


class ChokesOnNothing(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        assert corpus.chunks[0]
        return await super().search(query, corpus, limit=limit, where=where)


class AlwaysOne(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        return await super().search(query, corpus, limit=max(limit, 1), where=where) if corpus.chunks else []


class Generous(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        return await super().search(query, corpus, limit=limit + 3, where=where) if limit > 0 else []


class MakesChunks(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=limit, where=where)
        return [Hit(Chunk(h.chunk.id, "x", h.chunk.text, h.chunk.index, 1), h.score) for h in hits]


class GivesTwice(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=limit, where=where)
        return [*hits[:1], *hits][: max(0, limit)]


class ScoresByTheLimit(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=limit, where=where)
        return [Hit(hit.chunk, hit.score / limit, hit.ranks) for hit in hits]


class WorstFirst(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        return (await super().search(query, corpus, limit=limit, where=where))[::-1]


class NoNumber(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        return [Hit(hit.chunk, float("nan")) for hit in await super().search(query, corpus, limit=limit, where=where)]


class TiesBackwards(Honest):
    def ranked(self, words: list[str], index: list[Counter[str]]) -> list[tuple[float, int]]:
        return sorted(super().ranked(words, index), reverse=True)


class CountsFromZero(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=limit, where=where)
        return [Hit(hit.chunk, hit.score, {"x": rank}) for rank, hit in enumerate(hits)]


class TellsByText(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=limit, where=where)
        return list({hit.chunk.text: hit for hit in hits}.values())


class CountsFromTen(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=limit, where=where)
        return [Hit(hit.chunk, hit.score, {"x": 10 + rank}) for rank, hit in enumerate(hits)]


class RemembersOddQueries(Honest):
    """Finds less once it was asked something without a word."""

    def words(self, text: str) -> list[str]:
        found = super().words(text)
        self.is_shy = getattr(self, "is_shy", False) or not found
        return found[:1] if self.is_shy else found


class NeedsWords(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        if not query.strip():
            raise ValueError("no query")
        return await super().search(query, corpus, limit=limit, where=where)


class NeedsWholeCharacters(Honest):
    def words(self, text: str) -> list[str]:
        return super().words(text.encode().decode())


class ReadsShortChunks(Honest):
    def index(self, corpus: Corpus) -> list[Counter[str]]:
        return [Counter(self.words(chunk.text[:3000])[: 10**6 // len(chunk.text)]) for chunk in corpus.chunks]


class Throws(Honest):
    def ranked(self, words: list[str], index: list[Counter[str]]) -> list[tuple[float, int]]:
        found = super().ranked(words, index)
        random.shuffle(found)
        return found


class KeepsTheFirst(Honest):
    def index(self, corpus: Corpus) -> list[Counter[str]]:
        self.indexes.setdefault("first", [Counter(self.words(chunk.text)) for chunk in corpus.chunks])
        return self.indexes["first"][: len(corpus.chunks)]


class IndexesAgain(Honest):
    def index(self, corpus: Corpus) -> list[Counter[str]]:
        return [Counter(self.words(chunk.text)) for chunk in corpus.chunks]


class PreparesNothing(Honest):
    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        pass


class TakesTheBeginningForAll(Honest):
    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        if corpus.content_hash not in self.indexes:
            index = self.indexes[corpus.content_hash] = [Counter[str]() for _ in corpus.chunks]
            await asyncio.sleep(0)
            index[:] = [Counter(self.words(chunk.text)) for chunk in corpus.chunks]


class CountsDown(Honest):
    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        for left in (len(corpus.chunks), 0):
            if on_progress:
                on_progress(left, len(corpus.chunks))


class ClosesForGood(Honest):
    is_closed = False

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        if self.is_closed:
            raise RuntimeError("closed")
        return await super().search(query, corpus, limit=limit, where=where)

    async def aclose(self) -> None:
        self.is_closed = True


class NeverReady(Honest):
    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        if on_progress:
            on_progress(len(corpus.chunks) - 1, len(corpus.chunks))


class CountsTooFar(Honest):
    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        for done in (len(corpus.chunks), len(corpus.chunks) + 1):
            if on_progress:
                on_progress(done, len(corpus.chunks))


class MixesCalls(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        self.query = query
        await asyncio.sleep(0)
        return await super().search(self.query, corpus, limit=limit)


class KeepsItsLoop(Honest):
    loop: Any = None

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("attached to a different loop")
        return await super().search(query, corpus, limit=limit, where=where)


class Connects(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        with socket.socket() as connection:
            connection.connect_ex(("127.0.0.1", 9))
        return await super().search(query, corpus, limit=limit, where=where)


class HoldsUpTheLoop(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        sum(range(30_000_000))  # some tenths of a second
        return await super().search(query, corpus, limit=limit, where=where)


class AlwaysFinds(Honest):
    def ranked(self, words: list[str], index: list[Counter[str]]) -> list[tuple[float, int]]:
        found = super().ranked(words, index)
        left = sorted({*range(len(index))} - {number for _, number in found})
        return [*found, *((0.0, number) for number in left)]


class IgnoresFilters(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        return await super().search(query, corpus, limit=limit)


class FiltersTooMuch(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=limit, where=where)
        return hits[1:] if where else hits


class KeepsTheFilter(Honest):
    kept: Where | None = None

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        self.kept = where or self.kept
        return await super().search(query, corpus, limit=limit, where=self.kept)


class FiltersTheBestOnly(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=limit)
        selected = corpus.select(where).numbers if where else range(len(corpus.chunks))
        return [hit for hit in hits if any(hit.chunk is corpus.chunks[number] for number in selected)]


class FindsNothingForWrongFilters(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        try:
            return await super().search(query, corpus, limit=limit, where=where)
        except ConfigError:
            return []


class CountsBackwards(Honest):
    """Takes a limit below zero for a slice."""

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        hits = await super().search(query, corpus, limit=len(corpus.chunks), where=where)
        return hits[:limit]


class OverlooksTheBestOfFew(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        if 0 < limit < 6:
            return (await super().search(query, corpus, limit=limit + 1, where=where))[1:]
        return await super().search(query, corpus, limit=limit, where=where)


class KnowsNoExceptions(Honest):
    """Ignores a filter that excludes some parts."""

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        is_exception = "b.pdf" in repr(where)
        return await super().search(query, corpus, limit=limit, where=None if is_exception else where)


class RemembersSets(Honest):
    """Gives the hits of an earlier search in the same chunks, in whatever order they stood."""

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        key = repr((query, limit, where, sorted(chunk.id for chunk in corpus.chunks)))
        self.found = getattr(self, "found", {})
        if key not in self.found:
            self.found[key] = await super().search(query, corpus, limit=limit, where=where)
        return self.found[key]


class PreparesOnce(Honest):
    is_prepared = False

    async def prepare(self, corpus: Corpus, *, on_progress: Callable[[int, int], None] | None = None) -> None:
        if self.is_prepared:
            raise RuntimeError("it is being prepared")
        self.is_prepared = True
        await super().prepare(corpus, on_progress=on_progress)


class GrowsOnly(Honest):
    """Keeps the index of the largest corpus for all."""

    def index(self, corpus: Corpus) -> list[Counter[str]]:
        known = self.indexes.get("largest", [])
        if len(known) < len(corpus.chunks):
            known = self.indexes["largest"] = [Counter(self.words(chunk.text)) for chunk in corpus.chunks]
        return known[: len(corpus.chunks)]


class ClosesWhatItUsed(ClosesForGood):
    """Cannot be used again once it has searched and was closed."""

    async def aclose(self) -> None:
        self.is_closed = bool(self.indexes)


class StaysBusy(Honest):
    is_busy = False

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        if self.is_busy:
            return []
        self.is_busy = True
        hits = await super().search(query, corpus, limit=limit, where=where)
        self.is_busy = False
        return hits


class GoesOn(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        try:
            return await super().search(query, corpus, limit=limit, where=where)
        except asyncio.CancelledError:
            await asyncio.sleep(3600)
            raise


# --- searchers that are wrong from end to end, so that each fails many laws, at all of their assertions ---


class FindsOtherThings(Honest):
    """Finds nine chunks of its own, other ones with each search."""

    searches = 0

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        self.searches += 1
        chunks = [Chunk(f"c{number}", "other.md", f"other {id(self)}", number, tokens=2) for number in range(9)]
        return [Hit(chunk, float(self.searches), {}) for chunk in chunks]


class GivesTuples(Honest):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> Any:
        return tuple(await super().search(query, corpus, limit=limit, where=where))
