"""The retrieval tool: what it finds, and what it refuses to read."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import os
import threading
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jackfield.descriptors import required_by
from jackfield.errors import (
    BrokenPluginError,
    ConfigError,
    DocParserError,
    ModelConnectionError,
    PluginNotFoundError,
    ToolArgumentError,
)
from jackfield.events import PreparationProgress
from jackfield.plugins import EmbedderSpec, PluginHost, SearcherSpec, Settings, default_host, hook
from jackfield.results import WARNINGS, Source, sources_in
from jackfield.retrieval import Chunk, Corpus, Hit, Searcher
from jackfield.tools import ToolContext, Workspace, find_tool
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents import DocumentReader, RAGConfig
from jackfield_knowledge import ChangedIndexError, KnowledgeIndex
from jackfield_openai import plugin as openai
from jackfield_retrieval import retriever
from jackfield_retrieval import tool as tool_module
from jackfield_retrieval.plugin import tools
from jackfield_retrieval.retriever import RetrievalResult, Retriever, Shown, _Knowledge, _merged
from jackfield_retrieval.tool import RetrievalTool
from jackfield_testkit.dashscope import FakeDashScope
from jackfield_testkit.embeddings import embeddings, texts_in
from jackfield_testkit.replies import Reply, error, raw
from jackfield_testkit.server import FakeOpenAI, RecordedRequest

ANIMALS = ("otter", "badger", "heron", "lynx", "marten", "osprey")


@pytest.fixture
def library(tmp_path: Path) -> list[str]:
    """One document for each animal, each of a few hundred tokens; only one says where the animal sleeps."""
    files = []
    for animal in ANIMALS:
        paragraphs = [f"# The {animal}\n"] + [
            f"Note {n} on the habits of this animal in river and wood.\n" for n in range(40)
        ]
        paragraphs.insert(20, f"The {animal} sleeps in a den lined with {animal} grass.\n")
        path = tmp_path / f"{animal}.md"
        path.write_text("\n".join(paragraphs))
        files.append(str(path))
    return files


def ask(tool: RetrievalTool, known: list[str], workspace: Path | None = None, **arguments: Any) -> Any:
    context = ToolContext(files=tuple(known), workspace=Workspace(workspace or "nowhere"))
    return asyncio.run(tool.call(arguments, context=context))


def passages(result: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.JSONDecoder().raw_decode(result.content)[0]
    return found


def test_documents_that_fit_are_given_whole(library: list[str]) -> None:
    found = passages(ask(RetrievalTool(), library[:1], query="anything"))
    assert [entry["url"] for entry in found] == ["otter.md"]
    assert sum("Note" in line for text in found[0]["text"] for line in text.splitlines()) == 40


def test_of_documents_that_do_not_fit_the_best_passages_are_given(library: list[str]) -> None:
    tool = RetrievalTool({"max_ref_token": 150, "chunk_size": 100})
    found = passages(ask(tool, library, query="Where does the lynx sleep?"))
    assert found[0]["url"] == "lynx.md"
    assert "sleeps in a den lined with lynx grass" in " ".join(found[0]["text"])


def test_a_search_for_nothing_gives_the_front_of_each_document(library: list[str]) -> None:
    tool = RetrievalTool({"max_ref_token": 600, "chunk_size": 100})
    found = passages(ask(tool, library, query="  "))
    assert [entry["url"] for entry in found] == [f"{animal}.md" for animal in ANIMALS]
    assert all(entry["text"][0].startswith(f"# The {animal}") for entry, animal in zip(found, ANIMALS, strict=True))


def test_top_k_and_a_threshold_count_even_where_all_would_fit(library: list[str]) -> None:
    best = passages(ask(RetrievalTool({"top_k": 1, "chunk_size": 100}), library, query="Where does the lynx sleep?"))
    assert [(entry["url"], len(entry["text"])) for entry in best] == [("lynx.md", 1)]
    none = RetrievalTool({"score_threshold": 1000.0})
    assert passages(ask(none, library, query="Where does the lynx sleep?")) == []


def test_a_hit_of_exactly_the_threshold_counts(library: list[str]) -> None:
    settings = {"chunk_size": 100, "rag_searchers": ["keyword_search"], "top_k": 20}
    hits = ask(RetrievalTool(settings), library, query="lynx sleeps in the wood").metadata["hits"]
    scores = [hit["score"] for hit in hits]
    assert len(set(scores)) > 1
    for score in set(scores):
        selected = ask(RetrievalTool({**settings, "score_threshold": score}), library, query="lynx sleeps in the wood")
        assert [hit["score"] for hit in selected.metadata["hits"]] == [one for one in scores if one >= score]


def test_a_merged_hit_keeps_the_ranks_of_other_searchers() -> None:
    a, b = (Hit(Chunk(name, "x.md", name, 0, 1), score, {"t": 7}) for name, score in (("a", 1.0), ("b", 2.0)))
    assert [dict(hit.ranks) for hit in _merged("s", [[a], [b]])] == [{"t": 7, "s": 1}, {"t": 7, "s": 2}]


def test_an_overview_is_of_so_many_chunks_altogether_and_of_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retriever, "_MAX_OVERVIEWED", 4)
    first, second = (Corpus(tuple(Chunk(name, "x.md", name, 0, 1) for name in names)) for names in ("ab", "bc"))
    assert [chunk.id for chunk in retriever._all_chunks([first, second], None)] == ["a", "b", "c"]
    monkeypatch.setattr(retriever, "_MAX_OVERVIEWED", 3)
    assert retriever._all_chunks([first, second], None) == []


def test_a_chunk_in_several_corpora_counts_once_with_its_best_score() -> None:
    a, b, c = (Chunk(name, "x.md", name, number, 1) for number, name in enumerate("abc"))
    rankings = [[Hit(a, 3.0, {"s": 1}), Hit(b, 1.0, {"s": 2})], [Hit(b, 2.5, {"s": 1}), Hit(c, 2.0, {"s": 2})]]
    for order in (rankings, rankings[::-1]):
        merged = _merged("s", order)
        assert [(hit.chunk, hit.score, hit.ranks["s"]) for hit in merged] == [(a, 3.0, 1), (b, 2.5, 2), (c, 2.0, 3)]


def test_an_edited_document_is_read_again(library: list[str]) -> None:
    tool = RetrievalTool()
    ask(tool, library[:1], query="x")
    Path(library[0]).write_text("It moved away.")
    assert passages(ask(tool, library[:1], query="x"))[0]["text"] == ["It moved away."]


def test_a_model_may_search_some_of_its_documents_by_name(library: list[str]) -> None:
    found = passages(ask(RetrievalTool(), library, query="x", files=["heron.md", library[0]]))
    assert {entry["url"] for entry in found} == {"heron.md", "otter.md"}


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.md", "%2e%2e/secret.md", "ottter.md", "file:///etc/passwd"])
def test_a_model_cannot_reach_other_files(library: list[str], tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.md").write_text("secret")
    inside = tmp_path / "workspace"
    inside.mkdir()
    with pytest.raises(ToolArgumentError, match=r"no document .* available: otter\.md"):
        ask(RetrievalTool(), library, inside, query="x", files=[name])


def test_a_model_may_read_what_tools_have_put_into_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("All is well.")
    assert passages(ask(RetrievalTool(), [], tmp_path, query="x", files=["report.md"]))[0]["text"] == ["All is well."]


def test_a_model_that_names_no_document_of_its_list_searches_none(library: list[str]) -> None:
    assert passages(ask(RetrievalTool(), library, query="x", files=[])) == []


def test_one_name_for_two_documents_is_said(tmp_path: Path) -> None:
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.md").write_text(folder)
        files.append(str(tmp_path / folder / "x.md"))
    with pytest.raises(ToolArgumentError, match="2 documents are named"):
        ask(RetrievalTool(), files, query="q", files=["x.md"])


@pytest.mark.skipif(os.name != "posix", reason="names of any bytes")
@pytest.mark.parametrize(
    ("name", "shown"), [(b"line\nbreak.txt", r"line\nbreak.txt"), (b"half \xff.txt", r"half \udcff.txt")]
)
def test_a_name_of_any_bytes_is_shown_whole(tmp_path: Path, name: bytes, shown: str) -> None:
    path = f"{tmp_path}/{os.fsdecode(name)}"
    Path(path).write_text("All is well.")
    assert passages(ask(RetrievalTool(), [path], query="x"))[0]["url"] == shown


def test_without_documents_nothing_is_found() -> None:
    assert passages(ask(RetrievalTool(), [], query="x")) == []


def test_a_file_that_cannot_be_read_is_told_of_and_the_others_are_used(library: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "broken.md"
    bad.write_bytes(b"")
    result = ask(RetrievalTool(), [str(bad), library[0]], query="x")
    assert passages(result)[0]["url"] == "otter.md"
    assert "broken.md is empty" in result.content
    assert result.metadata["errors"] == ["broken.md is empty"]


def test_if_no_file_can_be_read_it_says_why() -> None:
    with pytest.raises(DocParserError, match=r"gone\.md does not exist"):
        ask(RetrievalTool(), ["gone.md"], query="x")


def test_wrong_settings_and_missing_searchers_are_named(library: list[str]) -> None:
    with pytest.raises(ConfigError, match="did you mean 'max_ref_token'"):
        RetrievalTool({"max_ref_tokens": 5})
    tool = RetrievalTool({"rag_searchers": ["keyword_serch"], "max_ref_token": 10})
    with pytest.raises(PluginNotFoundError, match="keyword_serch"):
        ask(tool, library, query="x")


def test_it_is_found_by_name_and_its_schema_needs_no_import_of_it() -> None:
    found = find_tool("retrieval", default_host())
    assert found.schema("zh")["description"].startswith("在本次对话")
    assert found.file_access


@pytest.mark.parametrize(
    "settings",
    [
        {},
        *({"retrieval_type": kind} for kind in ("keyword", "vector", "hybrid")),
        {"rag_searchers": ["front_page", {"name": "acme/rank", "depth": 3}]},
        {"retrieval_type": "vector", "rag_searchers": ["front_page"]},
        {"top_k": 3},
        {"score_threshold": 0.5, "rag_searchers": ["front_page"]},
    ],
    ids=str,
)
def test_the_descriptor_says_which_searchers_the_settings_ask_for(settings: dict[str, Any]) -> None:
    (spec,) = tools()
    asked = required_by(spec.required_by, {**settings, "": True})
    assert asked == [f"searcher.{name}" for name in RAGConfig.parse(settings).searchers]


# --- folders, patterns and indexes ---


@pytest.fixture
def notes(library: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnowledgeIndex:
    """The library as an index."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    index = KnowledgeIndex("notes")
    asyncio.run(index.build(library, reader=DocumentReader(), size_tokens=100))
    return index


@pytest.mark.parametrize("name", [".", "*.md", "**/*.md"])
def test_a_folder_and_a_pattern_stand_for_their_files(
    library: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "film.raw").write_text("?")
    tool = RetrievalTool({"max_ref_token": 150, "chunk_size": 100})
    result = ask(tool, [name], query="Where does the lynx sleep?")
    assert passages(result)[0]["url"] == "lynx.md"
    assert result.metadata["documents"] == len(ANIMALS)
    skipped = ["skipped ./film.raw: no installed package can read .raw files"] if name == "." else []
    assert result.metadata["skipped"] == skipped
    assert passages(ask(tool, [name], query="x", files=["lynx.md"]))[0]["url"] == "lynx.md"


def test_an_index_is_searched_and_each_hit_says_where_it_is_from(notes: KnowledgeIndex) -> None:
    tool = RetrievalTool({"max_ref_token": 150})
    result = ask(tool, ["index:notes"], query="Where does the lynx sleep?")
    assert passages(result)[0]["url"] == "lynx.md"
    assert "sleeps in a den lined with lynx grass" in " ".join(passages(result)[0]["text"])
    best = result.metadata["hits"][0]
    assert (best["location"], best["headings"], best["ranks"]) == ("lynx.md", ["The lynx"], {"keyword_search": 1})
    assert sources_in(result.metadata)[0] == Source("lynx.md")


def test_an_outdated_index_is_searched_and_named(notes: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(RetrievalTool(), ["index:notes"], query="lynx").metadata[WARNINGS] == []
    monkeypatch.setattr("jackfield_knowledge.index.CUT_VERSION", "x")
    result = ask(RetrievalTool(), ["index:notes", "index:nothing"], query="lynx")
    assert passages(result)
    *_, outdated = result.metadata[WARNINGS]
    assert "To update it, run: jackfield index build notes" in outdated


class WithModel:
    """A plugin whose embedder includes a model; here, it asks a server all the same."""

    @hook.embedders
    def embedders(self) -> list[EmbedderSpec]:
        """Return the embedder."""
        (spec,) = openai.embedders()
        return [replace(spec, name="small", included_model="m")]


def test_an_embedder_that_includes_its_model_makes_the_search_hybrid(
    library: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two models would leave the choice to the user.
    host = PluginHost(Settings(block=frozenset({"jackfield-multilingual-embedder"})))
    host.register(WithModel())
    with FakeOpenAI() as server:
        server.respond(lambda request: embeddings(request, [[1.0, len(t) % 7] for t in texts_in(request)], tokens=1))
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        tool: Any = find_tool({"name": "retrieval", "top_k": 50}, host)
        found = ask(tool, library, query="Where does the lynx sleep?")
    assert {name for hit in found.metadata["hits"] for name in hit["ranks"]} == {"keyword_search", "vector_search"}


def test_hits_in_pages_say_which(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("\f".join(f"Page on the {animal}. " * 30 for animal in ANIMALS))
    tool = RetrievalTool({"top_k": 1, "chunk_size": 100})
    result = ask(tool, [str(tmp_path / "long.txt")], query="heron")
    assert sources_in(result.metadata) == [Source("long.txt", 3)]


def test_an_index_gives_the_same_as_its_files(library: list[str], notes: KnowledgeIndex) -> None:
    for settings in ({}, {"max_ref_token": 300}, {"top_k": 2}, {"score_threshold": 3.0}):
        tool = RetrievalTool({"chunk_size": 100, **settings})
        for query in ("Where does the otter sleep?", "osprey grass", "nothing of the kind"):
            kept = ask(tool, ["index:notes"], query=query).metadata
            plain = ask(tool, sorted(library), query=query).metadata
            assert kept["hits"] == plain["hits"]
            if plain["hits"] or not settings.get("max_ref_token"):
                assert kept["sources"] == plain["sources"]


def test_files_and_an_index_are_searched_together_and_a_file_in_both_comes_once(
    library: list[str], notes: KnowledgeIndex, tmp_path: Path
) -> None:
    (tmp_path / "new.md").write_text("The wolf sleeps in a den lined with wolf grass. " * 9)
    tool = RetrievalTool({"max_ref_token": 800, "chunk_size": 100})
    found = ask(
        tool, [str(tmp_path / "new.md"), library[0], "index:notes"], query="den lined with otter, wolf or lynx grass"
    )
    assert {"new.md", "otter.md", "lynx.md"} <= {entry["url"] for entry in passages(found)}
    texts = [text for entry in passages(found) for text in entry["text"]]
    assert "\n".join(texts).count("The otter sleeps in a den lined with otter grass") == 1
    assert [hit["ranks"]["keyword_search"] for hit in found.metadata["hits"]] == list(
        range(1, len(found.metadata["hits"]) + 1)
    )


def test_an_index_that_changes_while_it_is_used_is_read_anew(notes: KnowledgeIndex, library: list[str]) -> None:
    tool = RetrievalTool({"max_ref_token": 150})
    ask(tool, ["index:notes"], query="lynx")
    for text in ("It is a wolf.", "It is a vixen."):
        Path(library[3]).write_text(f"{text} " * 50)
        asyncio.run(notes.build(reader=DocumentReader()))
    assert "vixen" in ask(tool, ["index:notes"], query="vixen").content
    assert "lynx.md" not in ask(tool, ["index:notes"], query="den lined with lynx grass").content


@pytest.mark.parametrize("changes", [4, 5])
def test_an_index_that_changes_during_the_search_is_tried_five_times(
    library: list[str], monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    search, tries = Retriever._retrieve, list[None]()

    async def changing(self: Retriever, *arguments: Any) -> RetrievalResult:
        tries.append(None)
        if len(tries) <= changes:
            raise ChangedIndexError
        return await search(self, *arguments)

    monkeypatch.setattr(Retriever, "_retrieve", changing)
    if changes < 5:
        assert passages(ask(RetrievalTool(), library, query="lynx"))
        return
    with pytest.raises(ConfigError, match="is being rebuilt faster than it can be searched: rebuild it less often"):
        ask(RetrievalTool(), library, query="lynx")
    assert len(tries) == 5


def test_an_index_that_is_not_there_is_named_and_the_other_files_are_used(library: list[str]) -> None:
    result = ask(RetrievalTool(), ["index:nothing-of-that-name", library[0]], query="x")
    assert passages(result)[0]["url"] == "otter.md"
    assert "no index named 'nothing-of-that-name'" in result.content
    with pytest.raises(DocParserError, match="no index named"):
        ask(RetrievalTool(), ["index:nothing-of-that-name"], query="x")


def test_a_url_and_a_folder_without_documents_are_named(library: list[str], tmp_path: Path) -> None:
    (tmp_path / "void").mkdir()
    result = ask(RetrievalTool(), ["http://127.0.0.1:9/a.pdf", library[0]], query="x")
    assert "the server is in a private network" in result.content
    with pytest.raises(DocParserError, match="void: a folder without files"):
        ask(RetrievalTool(), [str(tmp_path / "void")], query="x")


def test_a_model_cannot_open_an_index_that_is_not_the_conversations(notes: KnowledgeIndex, library: list[str]) -> None:
    with pytest.raises(ToolArgumentError, match="no document named 'index:notes'"):
        ask(RetrievalTool(), library, query="x", files=["index:notes"])
    assert passages(ask(RetrievalTool(), [*library, "index:notes"], query="x", files=["index:notes"]))


def test_more_files_than_fit_a_conversation_point_to_an_index(tmp_path: Path) -> None:
    for number in range(2001):
        (tmp_path / f"{number}.md").write_text("x")
    with pytest.raises(ConfigError, match=r"more than 2,000 files.* jackfield index build NAME FILES"):
        ask(RetrievalTool(), [str(tmp_path)], query="x")


def test_what_is_embedded_for_an_index_is_kept_beside_it(notes: KnowledgeIndex, library: list[str]) -> None:
    def lengths(request: RecordedRequest) -> Reply:
        return embeddings(request, [[float(len(text)), 1.0] for text in texts_in(request)], tokens=1)

    with FakeOpenAI() as server:
        server.respond(lengths)
        embedder = {"base_url": server.url, "api_key": "sk-test"}
        searcher = {"name": "vector_search", "embedding_model": "openai:m", "embedder_settings": embedder}
        tool = RetrievalTool({"max_ref_token": 150, "rag_searchers": [searcher]})
        ask(tool, ["index:notes"], query="lynx")
        before = sum(map(len, map(texts_in, server.requests)))
        Path(library[3]).write_text("It is a wolf.")
        asyncio.run(notes.build(reader=DocumentReader()))
        ask(tool, ["index:notes"], query="wolf")
        assert sum(map(len, map(texts_in, server.requests))) == before + 2  # the new chunk, and the question
    assert (notes.folder / "vectors.sqlite").exists()


def test_the_progress_of_reading_and_embedding_is_reported(library: list[str]) -> None:
    steps: list[PreparationProgress] = []
    with FakeOpenAI() as server:
        server.respond(lambda request: embeddings(request, [[1.0, 2.0]] * len(texts_in(request)), tokens=1))
        embedder = {"base_url": server.url, "api_key": "sk-test"}
        searcher = {"name": "vector_search", "embedding_model": "openai:m", "embedder_settings": embedder}
        tool = RetrievalTool({"top_k": 1, "rag_searchers": [searcher]})
        asyncio.run(tool.retrieve("lynx", library, report=steps.append))
        assert list(dict.fromkeys(step.step for step in steps)) == [
            "reading files",
            "splitting texts into chunks",
            "indexing for vector_search",
        ]
        reading = [step for step in steps if step.step == "reading files"]
        assert (reading[-1].done, reading[-1].total) == (len(library), len(library))
        assert {step.item for step in reading} == {os.path.basename(path) for path in library}  # noqa: PTH119
        assert steps[-1].done == steps[-1].total > 0
        steps.clear()
        asyncio.run(tool.retrieve("wolf", library, report=steps.append))
        assert "indexing for vector_search" not in {step.step for step in steps}, "it is indexed already"


def test_a_model_that_searches_many_files_reports_each_tenth(tmp_path: Path) -> None:
    paths = []
    for number in range(40):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text(f"Note {number}.")
    reports: list[str] = []
    context = ToolContext(files=tuple(map(str, paths)), report=reports.append)
    asyncio.run(RetrievalTool().call({"query": "note"}, context=context))
    assert len(reports) == 10
    assert reports[-1].startswith("reading files: 40 of 40")


# --- URLs -------------------------------------------------------------------------------------------------------------


def test_a_url_is_a_document_where_it_may_be_fetched(library: list[str]) -> None:
    folder, name = os.path.split(library[0])
    handler = functools.partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{name}"
        found = passages(ask(RetrievalTool({"fetch_cfg": {"allow": ["127.0.0.1"]}}), [url], query="anything"))
        with pytest.raises(DocParserError, match="the server is in a private network"):
            ask(RetrievalTool(), [url], query="anything")
        server.shutdown()
    assert found == passages(ask(RetrievalTool(), library[:1], query="anything"))
    with pytest.raises(ToolArgumentError, match="no document named"):  # a model cannot have others fetched
        ask(RetrievalTool(), library, query="x", files=[url])


# --- several searchers ---

AWAY = {"base_url": "http://127.0.0.1:9/v1", "api_key": "sk-test", "max_retries": 0}
BOTH: dict[str, Any] = {
    "retrieval_type": "hybrid",
    "embedding_model": "openai:m",
    "embedder_settings": AWAY,
    "max_ref_token": 150,
    "chunk_size": 100,
}


def test_a_searcher_whose_service_fails_is_left_out_and_the_result_says_so(library: list[str]) -> None:
    result = ask(RetrievalTool(BOTH), library, query="Where does the lynx sleep?")
    assert passages(result)[0]["url"] == "lynx.md"
    (failure,) = result.metadata["failures"]
    assert failure.startswith("vector_search failed and was skipped: ")
    assert f"the search is incomplete: {failure}" in result.content
    assert all("keyword_search" in hit["ranks"] for hit in result.metadata["hits"])


def test_if_all_searchers_fail_so_does_the_search(library: list[str]) -> None:
    with pytest.raises(ModelConnectionError):
        ask(RetrievalTool({**BOTH, "retrieval_type": "vector"}), library, query="lynx")


class NotAsync(Searcher):
    def search(self, query: str, corpus: Corpus, *, limit: int, where: Any = None) -> Any:
        return []


class NoList(Searcher):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Any = None) -> Any:
        return None


class NoHits(Searcher):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Any = None) -> Any:
        return ["a text"]


class Failing(Searcher):
    async def search(self, query: str, corpus: Corpus, *, limit: int, where: Any = None) -> Any:
        raise ValueError("no such index")


@pytest.mark.parametrize(
    ("searcher", "reason"),
    [
        (NotAsync, r"failed \(TypeError: .* can't be used in 'await' expression\)"),
        (NoList, "must return a list of Hit objects"),
        (NoHits, "must return a list of Hit objects"),
        (Failing, r"failed \(ValueError: no such index\)"),
    ],
)
def test_a_searcher_with_a_fault_is_named(searcher: type[Searcher], reason: str, library: list[str]) -> None:
    class Offers:
        @hook.searchers
        def searchers(self) -> list[SearcherSpec]:
            return [SearcherSpec(name="acme", target=f"{__name__}:{searcher.__name__}")]

    host = PluginHost()
    host.register(Offers(), name="acme")
    tool: Any = find_tool({"name": "retrieval", "rag_searchers": ["acme"], "top_k": 1}, host)
    with pytest.raises(BrokenPluginError, match=f"^searcher 'acme' {reason}"):
        ask(tool, library, query="lynx")


def test_weights_decide_between_searchers_and_0_asks_nobody(library: list[str]) -> None:
    def nearest_to_osprey(request: RecordedRequest) -> Reply:
        vectors = [
            [1.0, 0.0] if "osprey" in text or "lynx sleep?" in text else [0.0, 1.0] for text in texts_in(request)
        ]
        return embeddings(request, vectors, tokens=1)

    with FakeOpenAI() as server:
        server.respond(nearest_to_osprey)
        both = {**BOTH, "embedder_settings": {**AWAY, "base_url": server.url}, "top_k": 1}
        first = {}
        for weights in ({"vector_search": 5}, {"keyword_search": 5}):
            tool = RetrievalTool({**both, "searcher_weights": weights})
            first[next(iter(weights))] = ask(tool, library, query="Where does the lynx sleep?").metadata["hits"][0]
        assert {name: hit["location"] for name, hit in first.items()} == {
            "vector_search": "osprey.md",
            "keyword_search": "lynx.md",
        }
        server.requests.clear()
        ask(RetrievalTool({**both, "searcher_weights": {"vector_search": 0}}), library, query="lynx")
        assert server.requests == []


def test_a_reranker_has_the_last_word_and_if_it_is_away_the_answer_says_so(library: list[str]) -> None:
    def osprey_first(request: RecordedRequest) -> Reply:
        documents = request.native["input"]["documents"]  # type: ignore[attr-defined]
        scores = [{"index": at, "relevance_score": float("osprey" in text)} for at, text in enumerate(documents)]
        return raw(json.dumps({"output": {"results": scores}, "request_id": "1"}).encode())

    with FakeDashScope() as server:
        server.respond(osprey_first)
        rerank = {"name": "dashscope_rerank", "model": "m", "base_url": server.url, "api_key": "sk-test"}
        settings = {"rerank": {**rerank, "max_retries": 0}, "top_k": 1, "chunk_size": 100}
        question = "Where does the lynx or the osprey sleep?"
        best = ask(RetrievalTool(settings), library, query=question)
        assert best.metadata["hits"][0]["location"] == "osprey.md"
        assert best.metadata["hits"][0]["ranks"].keys() == {"keyword_search", "dashscope_rerank", "hybrid_search"}
        assert best.metadata["failures"] == []
        server.respond(lambda _: error(500, "away"))
        other = ask(RetrievalTool(settings), library, query=question)
    assert len(other.metadata["hits"]) == 1
    assert "results were not reranked, because the reranker failed: " in other.content


def test_a_file_type_is_read_by_the_parser_that_the_settings_name(library: list[str], tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.log2").write_text("The wolf sleeps.")
    result = ask(RetrievalTool({"parser_for": {"log2": "text"}}), [str(tmp_path / "notes")], query="wolf")
    assert passages(result)[0]["text"] == ["The wolf sleeps."]
    with pytest.raises(ConfigError, match=r"rag_cfg: parser_for: log2: .*'txet'"):
        ask(RetrievalTool({"parser_for": {"log2": "txet"}}), library, query="wolf")


def test_keywords_are_an_agents_matter() -> None:
    with pytest.raises(ConfigError, match="in the agent's rag_cfg"):
        RetrievalTool({"rag_keygen_strategy": "GenKeyword"})


# --- filters ---


@pytest.fixture
def years(tmp_path: Path) -> list[str]:
    """Return documents of two years, in two folders."""
    files = []
    for folder, year in (("reports", 2023), ("reports", 2024), ("notes", 2024)):
        path = tmp_path / folder / f"{year}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Year {year}\n\n" + f"The {folder} of {year} mention the otter.\n\n" * 30)
        files.append(str(path))
    return files


@pytest.mark.parametrize("max_ref_token", [20_000, 300])
def test_a_filter_keeps_to_its_documents(years: list[str], max_ref_token: int) -> None:
    metadata = {"2023.md": {"year": 2023}, "2024.md": {"year": 2024}}
    tool = RetrievalTool({"metadata": metadata, "max_ref_token": max_ref_token, "parser_page_size": 60})
    shown = passages(ask(tool, years, query="otter", where={"year": 2024, "path": "reports/*"}))
    assert [one["url"] for one in shown] == ["2024.md"]
    assert "The reports of 2024" in shown[0]["text"][0]
    set_before = RetrievalTool({"metadata": metadata, "where": {"path": "notes/*"}, "max_ref_token": max_ref_token})
    assert "The notes of 2024" in passages(ask(set_before, years, query="otter"))[0]["text"][0]
    assert passages(ask(set_before, years, query="otter", where={"year": 2023})) == []


def test_a_filter_selects_in_an_index_and_in_files(years: list[str], tmp_path: Path) -> None:
    index = KnowledgeIndex(str(tmp_path / "index"))
    asyncio.run(index.build(years[:2], reader=RAGConfig().reader(default_host())))
    asyncio.run(index.set_metadata({"team": "sales", "level": 3}, where={"name": "2023.md"}))
    # A key that only the index has, one that only files have, and one with values of two kinds.
    own = {"metadata": {"notes/*": {"topic": "otters", "level": "high"}}}
    tool = RetrievalTool({"max_ref_token": 300, "parser_page_size": 60, **own})
    known = [f"index:{tmp_path / 'index'}", years[2]]
    in_index = ({"team": "sales"}, {"level": 3}, {"level": {"gte": 3}})
    in_files = ({"path": "notes/*"}, {"topic": "otters"}, {"level": "high"})
    for where in (*in_index, *in_files):
        expected = "reports of 2023" if where in in_index else "notes of 2024"
        texts = [text for one in passages(ask(tool, known, query="otter", where=where)) for text in one["text"]]
        assert texts
        assert all(expected in text for text in texts)


def test_neighbours_are_shown_only_if_the_filter_selects_them(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("\f".join(f"Page {number} on the otter. " * 20 for number in range(1, 6)))
    settings = {"max_ref_token": 400, "parser_page_size": 100, "top_k": 1, "neighbours": 1}
    assert "Page 2" in ask(RetrievalTool(settings), [str(path)], query="otter", where={"page": [2, 3]}).content
    (one,) = passages(ask(RetrievalTool(settings), [str(path)], query="otter", where={"page": 3}))
    assert "Page 3" in one["text"][0]
    assert not any(f"Page {number}" in text for text in one["text"] for number in (1, 2, 4, 5))


def test_headings_of_whole_documents_take_at_most_a_quarter_of_the_tokens(tmp_path: Path) -> None:
    files = []
    for name in ("tides", "moon"):
        path = tmp_path / f"{name}.md"
        sections = [f"## Section {n} on {name}\n\n" + f"Text {n} of the sea. " * 20 for n in range(25)]
        path.write_text("\n\n".join(f"# Chapter {n}\n\n" + "\n\n".join(sections[5 * n :][:5]) for n in range(5)))
        files.append(str(path))
    found = asyncio.run(
        RetrievalTool({"max_ref_token": 800, "parser_page_size": 60}).retrieve("Summarize the documents.", files)
    )
    outlines = [estimate_tokens(text) for one in found.outlines for text in one["text"]]
    assert len(outlines) == 2
    assert 0 < max(outlines) <= 100, "chapters, and no sections"
    shown = sum(estimate_tokens(text) for one in found.passages for text in one["text"])
    assert 400 < shown <= 800 - sum(outlines)


def test_a_filter_that_does_not_fit_is_the_models_mistake(years: list[str]) -> None:
    for where in ({"yaer": 2024}, {"name": 3}, {"name": {"like": "x"}}):
        with pytest.raises(ToolArgumentError, match="where"):
            ask(RetrievalTool(), years, query="otter", where=where)
    with pytest.raises(ConfigError, match="rag_cfg"):
        RAGConfig.parse({"where": {"name": None}})
    with pytest.raises(ConfigError, match="cannot be set"):
        RAGConfig.parse({"metadata": {"*.md": {"path": "x"}}})


def test_neighbours_and_sections_are_shown_within_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    sections = [
        f"# Part {part}\n\n" + "\n\n".join(f"Line {part}.{n} says little." for n in range(20)) for part in "abcd"
    ]
    path.write_text("\n\n".join(sections).replace("Line c.10 says", "Line c.10 of the otter says"))
    index = KnowledgeIndex(str(tmp_path / "index"))
    asyncio.run(index.build([str(path)], reader=RAGConfig().reader(default_host()), size_tokens=40, overlap_chars=0))

    def shown(known: str, **settings: Any) -> str:
        config = {"max_ref_token": 400, "parser_page_size": 40, "chunk_overlap": 0, "top_k": 1, **settings}
        return "\n".join(
            text for one in passages(ask(RetrievalTool(config), [known], query="otter")) for text in one["text"]
        )

    for known in (str(path), f"index:{tmp_path / 'index'}"):
        alone, beside, section = shown(known), shown(known, neighbours=1), shown(known, whole_sections=True)
        assert alone in beside
        assert len(beside) > 2 * len(alone)
        assert section.strip() == sections[2].replace("c.10 says", "c.10 of the otter says").strip()
        assert "Line c.10 of the otter" in shown(known, whole_sections=True, max_ref_token=100)


# --- what is said of a result -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("total", "tenths"), [(19, 0), (20, 10), (200, 10), (25, 10)])
def test_a_long_step_is_reported_at_each_tenth_and_a_short_one_is_not(total: int, tenths: int) -> None:
    reports: list[str] = []
    report = tool_module._tenths(reports.append)
    for step in ("reading", "indexing"):
        for done in range(total + 1):
            report(PreparationProgress(step, done, total, "x"))
    assert len(reports) == 2 * tenths
    assert len({*reports}) == len(reports)


def test_of_a_part_of_many_documents_five_are_named() -> None:
    def said(count: int, *, matched: bool = True) -> list[str]:
        shown = tuple(Shown(f"/srv/{number}.md", number, 9, "pages") for number in range(count))
        return list(tool_module._extent_of(RetrievalResult([], shown=shown, matched=matched)))

    five = ", ".join(f"{number} of 9 pages of {number}.md" for number in range(5))
    assert said(0) == []
    assert said(5) == [f"the documents are only shown in part: {five}"]
    assert said(7) == [f"the documents are only shown in part: {five} and parts of 2 more"]
    assert said(0, matched=False) == [
        "nothing in the documents matches the query; the passages are just the beginnings of the documents"
    ]


def test_each_file_and_searcher_that_failed_has_a_line() -> None:
    result = RetrievalResult([], errors=(DocParserError("a is corrupted"),), failures=("vector_search: HTTP 503",))
    assert list(tool_module._problems_in(result)) == [
        "could not be read: a is corrupted", "the search is incomplete: vector_search: HTTP 503"
    ]  # fmt: skip


def chunk(source: str, index: int, **more: Any) -> Chunk:
    return Chunk(f"{source}{index}", source, f"text {index}", index, 1, **more)


PAGES = tuple(chunk("p.pdf", number, page=number // 2 + 1) for number in range(6))
TEXTS = tuple(chunk("t.md", number) for number in range(3))
SCANS = tuple(chunk("z.zip", number, page=number % 2 + 1, part=f"{'ab'[number // 2]}.pdf") for number in range(4))
MIXED = (chunk("m.md", 0, page=1), chunk("m.md", 1))


@pytest.mark.parametrize(
    ("chosen", "documents", "shown"),
    [
        ((*PAGES, *TEXTS), 2, ()),
        ((*PAGES, *TEXTS), 3, [("p.pdf", 3, 3, "pages"), ("t.md", 3, 3, "parts")]),
        ((PAGES[0], PAGES[1], PAGES[2]), 2, [("p.pdf", 2, 3, "pages")]),
        ((TEXTS[1],), 2, [("t.md", 1, 3, "parts")]),
        (PAGES, 1, ()),
        ((*PAGES[:5], dataclasses.replace(PAGES[5], is_cut=True)), 1, [("p.pdf", 3, 3, "pages")]),
        ((chunk("other.md", 0),), 1, ()),
        ((SCANS[0], SCANS[1]), 1, [("z.zip", 2, 4, "pages")]),
        ((MIXED[1],), 1, [("m.md", 1, 2, "parts")]),
    ],
    ids=["whole", "one is missing", "pages", "parts", "one of one", "cut", "of an index", "of parts", "few pages"],
)
def test_the_part_of_each_document_that_is_shown_is_counted(
    chosen: tuple[Chunk, ...], documents: int, shown: Any
) -> None:
    known = _Knowledge(Corpus((*PAGES, *TEXTS, *SCANS, *MIXED)), (), documents, (), (), ())
    assert [dataclasses.astuple(one) for one in retriever._shown(known, chosen)] == [*shown]


def test_a_sample_is_from_all_of_a_corpus() -> None:
    few, many = (Corpus(tuple(chunk("t.md", number) for number in range(count))) for count in (3, 45))
    assert retriever._sample(few).splitlines() == ["text 0", "text 1", "text 2"]
    assert retriever._sample(many).splitlines() == [f"text {number}" for number in range(0, 40, 2)]
    long = Corpus((dataclasses.replace(TEXTS[0], text="x" * 501),))
    assert retriever._sample(long) == "x" * 500


def test_of_very_many_chunks_no_overview_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retriever, "_MAX_OVERVIEWED", 3)
    assert retriever._all_chunks([Corpus(TEXTS)], None) == [*TEXTS]
    assert retriever._all_chunks([Corpus(TEXTS[:2]), Corpus(TEXTS[1:2])], None) == [*TEXTS[:2]]
    assert retriever._all_chunks([Corpus(PAGES[:4])], None) == []


def test_the_facts_for_programs_are_those_of_the_passages_that_are_shown() -> None:
    hits = tuple(
        Hit(one, score, {"s": rank}) for rank, (one, score) in enumerate(((PAGES[2], 2.0), (TEXTS[0], 1.0)), 1)
    )
    entry: Any = {"url": "/srv/p.pdf", "text": ["a", "b"]}
    facts = RetrievalResult([entry], hits, chunks=(PAGES[2],), documents=2, skipped=("s",), unread=("u",)).metadata()
    place = {"location": "p.pdf", "page": 2}
    assert facts == {
        "sources": [place], "passages": 2, "hits": [{**place, "score": 2.0, "ranks": {"s": 1}}], "documents": 2,
        "errors": [], "skipped": ["s"], WARNINGS: ["u"], "failures": [], "matched": True, "shown": [],
    }  # fmt: skip
    assert RetrievalResult([entry]).metadata()["sources"] == ["p.pdf"]
    assert RetrievalResult([entry], matched=False).metadata()["sources"] == []


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = RetrievalTool().config
    assert (config.max_ref_token, config.parser_page_size, config.chunk_overlap) == (20_000, 500, 150)
    assert (config.top_k, config.score_threshold, config.neighbours, config.whole_sections) == (None, None, 0, False)
    assert (config.fusion, config.fusion_k, [*config.searchers]) == ("scores", 60, ["keyword_search"])


def test_passages_of_files_and_indexes_come_by_source_and_in_the_order_of_the_document() -> None:
    indexed = chunk("index.md", 0)
    known = _Knowledge(Corpus((*TEXTS, PAGES[0])), (object(),), 3, (), (), ())  # type: ignore[arg-type]
    hits = [Hit(one, 9.0 - rank, {"s": rank}) for rank, one in enumerate((indexed, TEXTS[2], PAGES[0], TEXTS[0]))]
    chosen = Retriever(RAGConfig(), default_host())._chosen(known, hits, selective=True)
    assert chosen == [TEXTS[0], TEXTS[2], PAGES[0], indexed]


@pytest.mark.parametrize(
    ("settings", "limit"), [({}, 400), ({"top_k": 3}, 3), ({"max_ref_token": 2499}, 50), ({"max_ref_token": 2550}, 51)]
)
def test_as_many_passages_are_asked_for_as_may_be_shown(
    settings: dict[str, Any], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    async def ranking(*_: Any, limit: int, **__: Any) -> list[Hit]:
        asked.append(limit)
        return [Hit(TEXTS[0], 1.0, {"s": 1})] * (limit + 1)

    one = Retriever(RAGConfig.parse(settings), default_host())
    monkeypatch.setattr(one, "_ranking", ranking)
    hits = asyncio.run(one._hits("x", [Corpus(TEXTS)], None, retriever.ignore_progress))
    assert (asked, len(hits)) == ([limit], limit)
    merged: list[dict[str, Any]] = []

    def merge(rankings: Any, **how: Any) -> list[Hit]:
        merged.append(how)
        return []

    monkeypatch.setattr(retriever, "fuse", merge)
    how = {"searcher_weights": {"a": 2}, "fusion_k": 7, "fusion": "ranks", "rag_searchers": ["a", "b"]}
    several = Retriever(RAGConfig.parse(how), default_host())
    monkeypatch.setattr(several, "_ranking", ranking)
    assert asyncio.run(several._hits("x", [Corpus(TEXTS)], None, retriever.ignore_progress)) == []
    assert [(one["k"], one["by"], one["weights"]["a"]) for one in merged] == [(7, "ranks", 2)]
    assert asyncio.run(one._hits("x", [], None, retriever.ignore_progress)) == []
