"""Searchers, the corpora that they search, and how documents are named in what is shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield import sync
from jackfield.errors import BrokenPluginError, DocParserError, PluginNotFoundError
from jackfield.retrieval import (
    Chunk,
    Corpus,
    Document,
    Hit,
    Parser,
    Searcher,
    Where,
    make_embedder,
    make_searcher,
    shown_path,
    unread_parts,
)
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


def test_an_embedder_has_the_settings_of_the_users_file_except_those_that_are_passed(site: Any) -> None:
    light = (
        "from jackfield.plugins import EmbedderSpec, hook\n@hook.embedders\n"
        "def all(): return [EmbedderSpec(name='e', target='acme_heavy:Made', config='acme_heavy:Own')]"
    )
    heavy = (
        "from jackfield.config import Config\nfrom jackfield.retrieval import Embedder\n"
        "class Own(Config):\n    model: str\n    size: int = 1\n"
        "class Made(Embedder):\n    config_class, space = Own, ''\n"
        "    async def embed(self, texts, *, purpose='document'): ..."
    )
    site.add("acme", {"embedder.e": "acme_light"}, modules={"acme_light": light, "acme_heavy": heavy})
    host = site.host(options={"embedder.acme/e": {"model": "file", "size": 3}, "server.e": {"size": 4}})
    assert make_embedder("e", {"model": "passed"}, host=host).cfg == {"model": "passed", "size": 3}
    with pytest.raises(PluginNotFoundError):
        make_embedder("gone", {}, host=host)


def test_a_searcher_with_the_name_of_one_of_ours_is_handed_no_key(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    entries = dict.fromkeys(("searcher.asking", "searcher.hybrid_search"), "acme_light")
    site.add("acme-search", entries, modules={"acme_light": LIGHT, "acme_search": HEAVY})
    seen = {
        name: make_searcher(name, host=site.host()).host.settings.secret("OPENAI_API_KEY")  # type: ignore[attr-defined]
        for name in ("asking", "acme-search/hybrid_search")
    }
    assert seen == {"asking": "sk-1", "acme-search/hybrid_search": None}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("class S: pass\ndef make(cfg): return 5", "searcher 's' is not a subclass of jackfield.retrieval.Searcher"),
        (
            "from jackfield.retrieval import Searcher\nclass S(Searcher):\n    async def search(self, query, corpus, "
            "*, limit): return []\ndef make(cfg): return S()",
            "searcher 's' would ignore filters: its `search` method needs a parameter `where`; update the plugin",
        ),
        (
            "from jackfield.retrieval import Searcher\nclass S(Searcher):\n    async def search(self, query, corpus, "
            "*, limit, where=None): return []\ndef make(cfg, host):\n    s = S()\n"
            "    s.given = (cfg, host)\n    return s",
            "",
        ),
    ],
    ids=["no searcher", "no filter", "a searcher"],
)
def test_a_searcher_is_made_with_its_settings_and_the_host(site: Any, body: str, said: str) -> None:
    source = "from jackfield.plugins import SearcherSpec, hook\n@hook.searchers\ndef s(): return [SearcherSpec("
    source += "name='s', target='acme_heavy:make')]"
    site.add("acme", {"searcher.s": "acme_light"}, modules={"acme_light": source, "acme_heavy": body})
    host = site.host()
    if said:
        with pytest.raises(BrokenPluginError) as caught:
            make_searcher("s", host=host)
        assert str(caught.value) == said
    else:
        made: Any = make_searcher("acme/s", {"a": 1}, host=host)
        assert made.given == ({"a": 1}, host)


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


# --- corpora ---


def corpus(*ids: str) -> Corpus:
    return Corpus(tuple(Chunk(one, "a.txt", f"text {one}", number, 1) for number, one in enumerate(ids)))


def chunk(number: int, **more: Any) -> Chunk:
    return Chunk(id=f"c{number}", source=f"{number}.md", text="t", index=number, tokens=1, **more)


def test_a_corpus_has_another_hash_when_a_chunk_or_the_order_is_another() -> None:
    every = [corpus(), corpus("a"), corpus("a", "b"), corpus("b", "a"), corpus("ab"), corpus("a\0b"), corpus("\ud83d")]
    assert len({one.content_hash for one in every[:5]}) == 5
    assert corpus("a", "b").content_hash == every[2].content_hash
    assert every[6].content_hash != every[0].content_hash, "an id of half a character counts as well"


def test_the_selections_of_the_last_filters_are_kept() -> None:
    corpus = Corpus(tuple(chunk(number, metadata={"n": number}) for number in range(12)))
    filters = [Where.parse({"n": {"lt": number}}).check(corpus.metadata_kinds) for number in range(1, 11)]
    first = corpus.select(filters[0])
    assert (list(first.numbers), first.total, len(first), 0 in first, 1 in first) == ([0], 12, 1, True, False)
    for where in filters[1:8]:
        corpus.select(where)
    assert corpus.select(filters[0]) is first
    for where in filters[1:9]:
        corpus.select(where)
    assert corpus.select(filters[0]) is not first
    assert corpus.select(Where.parse({"n": 3})).numbers == [3]
    assert (corpus.number_of(chunk(5)), corpus.number_of(chunk(99))) == (5, None)
    assert corpus.content_hash != Corpus(corpus.chunks[1:]).content_hash
    assert corpus.content_hash == Corpus(corpus.chunks).content_hash


# --- searchers that prepare nothing ---


class Noting(Searcher):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Corpus, int]] = []

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        assert query
        self.asked.append((corpus, limit))
        return []


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


class Finds(Searcher):
    def __init__(self, cfg: Any = None) -> None:
        super().__init__()
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Where | None = None) -> list[Hit]:
        self.asked.append((query, limit))
        return []


def test_a_searcher_is_prepared_by_one_search() -> None:
    searcher, told = Finds(), []
    corpus = Corpus((chunk(1), chunk(2)))
    asyncio.run(searcher.prepare(corpus))
    asyncio.run(searcher.prepare(corpus, on_progress=lambda done, total: told.append((done, total))))
    assert (searcher.asked, told) == ([(".", 1), (".", 1)], [(2, 2)])


# --- documents ---


@given(st.text(st.characters(), max_size=20))
@example("a\x1b[31m\ud83d.txt")
def test_a_path_is_shown_in_characters_that_can_be_printed_and_sent(path: str) -> None:
    shown = shown_path(path)
    assert shown.isprintable()
    shown.encode()
    assert shown == path or not (path.isprintable() and path.isascii())


def test_parts_of_a_document_that_could_not_be_read_are_named() -> None:
    document = Document("/srv/a\x1b.pdf", (), "h", metadata={"unread": ["chapter 3", "b.zip"]})
    assert unread_parts(document) == [
        r"a\x1b.pdf: chapter 3 could not be read", r"a\x1b.pdf: b.zip could not be read",
    ]  # fmt: skip
    assert unread_parts(Document("/srv/a.pdf", (), "h")) == []
    assert shown_path("é\ud800\n") == "é\\\\ud800\\n" or shown_path("é\ud800\n") == "é\\ud800\\n"

    class Plain(Parser):
        def parse(self, data: bytes, *, source: str) -> Document:
            return Document(source, (), "h")

    with pytest.raises(DocParserError, match=r"^a has no pages that can be rendered$"):
        Plain().draw_page(b"", page=1, passage="", source="a")
