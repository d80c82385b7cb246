"""A searcher is made by its name, with its settings, and with the host if it asks for others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield import sync
from jackfield.errors import BrokenPluginError, PluginNotFoundError
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher, Where, make_searcher, shown_path
from tests.support.site import site

__all__ = ["site"]

LIGHT = """
from jackfield.plugins import SearcherSpec, hook

@hook.searchers
def searchers():
    return [SearcherSpec(name=name, target=f"acme_search:{target}") for name, target in
            (("plain", "Plain"), ("asking", "Asking"), ("none", "dict"), ("hybrid_search", "Asking"))]
"""
HEAVY = """
from jackfield.retrieval import Searcher
dict = dict

class Plain(Searcher):
    async def search(self, query, corpus, *, limit, where=None):
        return []

class Asking(Plain):
    def __init__(self, cfg=None, *, host=None):
        super().__init__(cfg)
        self.host = host
"""


def test_a_searcher_gets_its_settings_and_the_host_if_it_takes_one(site: Any) -> None:
    entries = {f"searcher.{name}": "acme_light" for name in ("plain", "asking", "none")}
    site.add("acme-search", entries, modules={"acme_light": LIGHT, "acme_search": HEAVY})
    host = site.host()
    assert make_searcher("plain", {"depth": 3}, host=host).cfg == {"depth": 3}
    asking = make_searcher("acme-search/asking", host=host)
    assert (asking.cfg, asking.host) == ({}, host)  # type: ignore[attr-defined]
    with pytest.raises(BrokenPluginError, match="not a subclass of"):
        make_searcher("none", host=host)
    with pytest.raises(PluginNotFoundError):
        make_searcher("gone", host=host)


def test_a_searcher_with_the_name_of_one_of_ours_is_handed_no_key(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    entries = dict.fromkeys(("searcher.asking", "searcher.hybrid_search"), "acme_light")
    site.add("acme-search", entries, modules={"acme_light": LIGHT, "acme_search": HEAVY})
    seen = {
        name: make_searcher(name, host=site.host()).host.settings.secret("OPENAI_API_KEY")  # type: ignore[attr-defined]
        for name in ("asking", "acme-search/hybrid_search")
    }
    assert seen == {"asking": "sk-1", "acme-search/hybrid_search": None}


class Noting(Searcher):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Corpus, int]] = []

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        assert query
        self.asked.append((corpus, limit))
        return []


def corpus(*ids: str) -> Corpus:
    return Corpus(tuple(Chunk(one, "a.txt", f"text {one}", number, 1) for number, one in enumerate(ids)))


def test_a_searcher_that_prepares_nothing_is_asked_a_question_and_then_all_is_ready() -> None:
    searcher, three = Noting(), corpus("a", "b", "c")
    reports: list[tuple[int, int]] = []

    def report(ready: int, total: int) -> None:
        assert searcher.asked, "nothing is ready before it was asked"
        reports.append((ready, total))

    sync.run(searcher.prepare(three, on_progress=report))
    assert (searcher.asked, reports) == ([(three, 1)], [(3, 3)])
    sync.run(searcher.prepare(three))
    assert len(searcher.asked) == 2


def test_a_corpus_has_another_hash_when_a_chunk_or_the_order_is_another() -> None:
    every = [corpus(), corpus("a"), corpus("a", "b"), corpus("b", "a"), corpus("ab"), corpus("a\0b"), corpus("\ud83d")]
    assert len({one.content_hash for one in every[:5]}) == 5
    assert corpus("a", "b").content_hash == every[2].content_hash
    assert every[6].content_hash != every[0].content_hash, "an id of half a character counts as well"


@given(st.text(st.characters(), max_size=20))
@example("a\x1b[31m\ud83d.txt")
def test_a_path_is_shown_in_characters_that_can_be_printed_and_sent(path: str) -> None:
    shown = shown_path(path)
    assert shown.isprintable()
    shown.encode()
    assert shown == path or not (path.isprintable() and path.isascii())


IGNORING = """
from jackfield.retrieval import Searcher

class Plain(Searcher):
    async def search(self, query, corpus, *, limit):
        return []

Asking = Plain
"""


def test_a_searcher_that_would_ignore_filters_is_refused(site: Any) -> None:
    site.add("acme-search", {"searcher.plain": "acme_light"}, modules={"acme_light": LIGHT, "acme_search": IGNORING})
    with pytest.raises(BrokenPluginError, match="would ignore filters"):
        make_searcher("plain", host=site.host())
