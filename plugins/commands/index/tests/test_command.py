"""`jackfield index` as people and scripts use it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.cli.main import main
from jackfield.errors import ConfigError
from jackfield_documents import DocumentReader
from jackfield_index import command
from jackfield_index.plugin import commands
from jackfield_knowledge import KnowledgeIndex
from jackfield_knowledge.store import Draft, Store
from jackfield_testkit.embeddings import embeddings, embeddings_of, texts_in
from jackfield_testkit.forks import shared_forks
from jackfield_testkit.replies import Reply, error
from jackfield_testkit.server import FakeOpenAI, RecordedRequest
from tests.support.command_line import bare_environment

IMPORTED = "import jackfield.cli.main, jackfield_index.command, jackfield_knowledge, jackfield_vector_search.searcher"
# Builds an index; after 20 files it waits until Ctrl-C has cancelled the build, so that it can never be through before.
WAITS_AFTER_20 = """
import os, signal, sys, threading
from jackfield import sync
from jackfield.cli.main import main
from jackfield_index.progress import ProgressLine

signal.signal(signal.SIGINT, signal.default_int_handler)  # a run of tests in the background ignores it
is_stopped, stop = threading.Event(), sync._Call.stop

def stop_and_say(call):
    stop(call)
    is_stopped.set()

def wait_after_20(line, progress):
    if progress.done == 20:
        print(os.getpid(), flush=True)
        is_stopped.wait(60)

sync._Call.stop, ProgressLine.__call__ = stop_and_say, wait_after_20
sys.exit(main(["index", "build", sys.argv[1], "docs"]))
"""

ONE_VECTOR_AT_ONCE = """
import os, signal, sys
from jackfield.cli.main import main
from jackfield_vector_search import searcher

signal.signal(signal.SIGINT, signal.default_int_handler)  # a run of tests in the background ignores it
searcher._AT_ONCE = 1
print(os.getpid(), flush=True)
sys.exit(main(["index", "build", "notes", "docs", *sys.argv[1:]]))
"""


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two documents in `docs`, below the working directory."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tides.md").write_text("# Tides\n\n## Spring\n\nHigh water comes twice a day.\n")
    (folder / "house.txt").write_text("First page.\fInvoices are paid within thirty days.\n")
    (folder / "film.raw").write_text("?")
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What is printed, errors included."""
    assert main(["index", *arguments]) == code
    printed = capsys.readouterr()
    return printed.out + printed.err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["index", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_index_is_built_brought_up_to_date_searched_and_listed(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "list") == "There is no index yet. To build one, run: jackfield index build NAME FILES\n"
    assert "notes: 2 read, 0 unchanged" in run(capsys, "build", "notes", "docs")
    assert "notes: 0 read, 2 unchanged" in run(capsys, "build", "notes")
    found = run(capsys, "search", "notes", "when", "is", "high", "water")
    assert found.startswith("1. docs/tides.md, Tides  (keyword_search 1)\n   # Tides ## Spring High water")
    assert run(capsys, "list") == "notes: 2 documents, 2 chunks\n"
    assert run(capsys, "search", "notes", "zebra") == "nothing found\n"


@pytest.mark.parametrize("command", [("search", "notes", "water"), ("info", "notes")], ids=["search", "info"])
def test_an_outdated_index_is_named_with_the_command_that_updates_it(
    docs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    run(capsys, "build", "notes", "docs")
    for is_outdated in (False, True):
        assert main(["index", *command]) == 0
        told = capsys.readouterr().err
        assert ("index 'notes' is outdated" in told) == ("jackfield index build notes" in told) == is_outdated
        monkeypatch.setattr("jackfield_knowledge.index.CUT_VERSION", "x")


def test_info_says_what_came_in_and_went_out_and_what_each_file_gave(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "bad.pdf").write_bytes(b"%PDF-1.7 broken")
    built = run(capsys, "build", "notes", "docs")
    assert "1 failed, 1 skipped" in built
    assert "jackfield: docs/bad.pdf: bad.pdf " in built
    run(capsys, "remove", "notes", "docs/house.txt")
    told = run(capsys, "info", "notes")
    assert f"  + {docs}\n  - {docs / 'house.txt'}\n" in told
    assert "docs/bad.pdf: bad.pdf" in told
    assert "docs/tides.md: 1 chunk" in told
    assert "docs/house.txt: " not in told


def test_the_json_of_an_index_has_all_that_is_known_of_it(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (docs / "bad.pdf").write_bytes(b"%PDF-1.7 broken")
    (docs / "tides.md").write_text("# Tides\n\n" + "High water comes twice a day. " * 4)
    words = ["docs", "docs/../docs/house.txt", "--type", "keyword", "--chunk-size", "8", "--chunk-overlap", "0"]
    built = as_json(capsys, "build", "notes", *words)
    run(capsys, "remove", "notes", "docs/house.txt")
    index = KnowledgeIndex("notes")
    facts = index.facts()
    assert facts.tokens > facts.chunks > facts.documents == facts.generation == 2
    reason = built["failed"][str(docs / "bad.pdf")]
    assert reason.startswith("bad.pdf ")
    known = {"name": "notes", "folder": str(index.folder), "documents": 2, "chunks": facts.chunks, "generation": 2}
    assert as_json(capsys, "list") == [known]
    assert as_json(capsys, "info", "notes") == known | {
        "chunk_size": 8,
        "chunk_overlap": 0,
        "tokens": facts.tokens,
        "names": [{"name": str(docs), "adds": True}, {"name": str(docs / "house.txt"), "adds": False}],
        "searchers": {"keyword_search": {}},
        "files": [
            {"location": str(docs / "bad.pdf"), "title": "", "chunks": 0, "error": reason},
            {"location": str(docs / "tides.md"), "title": "Tides", "chunks": facts.chunks, "error": ""},
        ],
    }
    (docs / "house.txt").unlink()
    (docs / "tides.md").write_text("# Tides")
    run(capsys, "add", "notes", "docs/*.pdf")
    (docs / "bad.pdf").unlink()
    again = as_json(capsys, "build", "notes")
    (skipped,) = again.pop("skipped").items()
    assert skipped == (str(docs / "film.raw"), "no installed package can read .raw files")
    assert again == known | {
        "documents": 1, "chunks": 1, "generation": 4, "read": 0, "outdated": 0, "unchanged": 1, "removed": 1,
        "failed": {}, "missing": [str(docs / "*.pdf")],
    }  # fmt: skip


def test_everything_comes_as_json(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = as_json(capsys, "build", "notes", "docs/house.txt", "--chunk-size", "300", "--chunk-overlap", "0")
    assert (built["read"], built["documents"]) == (1, 1)
    assert as_json(capsys, "add", "notes", "docs")["skipped"] == {
        str(docs / "film.raw"): "no installed package can read .raw files"
    }
    (hit,) = as_json(capsys, "search", "notes", "invoices", "--limit", "1")
    assert (hit["location"], hit["page"], hit["ranks"]) == (str(docs / "house.txt"), 1, {"keyword_search": 1})
    information = as_json(capsys, "info", "notes")
    assert (information["chunk_size"], information["chunk_overlap"], len(information["files"])) == (300, 0, 2)
    assert [one["name"] for one in as_json(capsys, "list")] == ["notes"]
    assert as_json(capsys, "remove", "notes", "docs/*.txt")["removed"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("info", "nothing"),
            "available: none. To create it, run: jackfield index build nothing FILES",
        ),
        (("search", "nothing", "x"), "no index named 'nothing'"),
        (("build", "nothing"), "no index named 'nothing'"),
        (("build", "notes", "gone.md"), "no file or folder has this name or matches this pattern:"),
        (("build", "notes", "index:other"), "only files, folders, patterns and URLs can"),
        (("build", "no tes", "docs"), "'no tes' is not a valid index name"),
        (("build", "./docs", "docs"), "contains other files"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    docs: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    printed = run(capsys, *arguments, code=1)
    assert says in printed
    assert printed.count("\n") == 1


def test_an_index_that_cannot_be_used_is_listed_with_the_reason(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "build", "notes", "docs")
    for file in KnowledgeIndex("notes").folder.iterdir():
        file.unlink()
    (KnowledgeIndex("notes").folder / "index.sqlite").write_bytes(b"not a database " * 100)
    listed = run(capsys, "list")
    assert "index 'notes' cannot be used" in listed
    facts = {"name": "notes", "folder": str(KnowledgeIndex("notes").folder), "error": listed.strip()}
    assert as_json(capsys, "list") == [facts]


def test_names_and_texts_give_a_terminal_no_orders(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.name != "posix":
        pytest.skip("names of POSIX")
    Path(os.fsdecode(b"docs/\x1b[2J\xff\n.md")).write_text("# \x9b2J\n\nwater \x9b31m and more")
    Path("docs/\x1b.pdf").write_bytes(b"%PDF-1.7 broken")
    words = [["build", "notes", "docs"], ["search", "notes", "water"], ["info", "notes"], ["set", "notes", "a=\x1b[2J"]]
    printed = "".join(run(capsys, *each) for each in words)
    assert not {"\x1b", "\x9b"} & set(printed)
    assert "\\x1b[2J" in printed


def test_json_has_every_name_as_it_is(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.name != "posix":
        pytest.skip("names of POSIX")
    files = {os.fsdecode(str(docs / name).encode(errors="surrogateescape")) for name in ("\x1b\udcff\n.md", "水.md")}
    for file in files:
        Path(file).write_text("Otters swim.")
    run(capsys, "build", "notes", "docs", "--type", "keyword")
    printed = run(capsys, "search", "notes", "otters", "--json")
    assert printed.isascii()  # a stream may refuse other characters
    assert {hit["location"] for hit in json.loads(printed)} == files
    assert files < {file["location"] for file in as_json(capsys, "info", "notes")["files"]}


def test_an_index_without_searchers_is_described_without_them(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sync.run(KnowledgeIndex("notes").build(["docs"], reader=DocumentReader()))
    assert run(capsys, "info", "notes").splitlines()[1:3] == [
        f"in {KnowledgeIndex('notes').folder}",
        f"  + {docs}",
    ]


def test_without_an_installed_searcher_an_index_is_built_but_not_searched(docs: Path) -> None:
    python = bare_environment(docs.with_name("bare"), ["jackfield", "jackfield-index", "jackfield-text"])

    def run_bare(*words: str) -> tuple[int, str, str]:
        done = subprocess.run([python, "-m", "jackfield", "index", *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    code, printed, told = run_bare("build", "notes", "docs")
    assert (code, printed.partition(",")[0], told) == (0, "notes: 2 read", "")
    for words in (["build", "notes", "--type", "keyword"], ["search", "notes", "water"]):
        code, printed, told = run_bare(*words)
        assert (code, printed) == (1, "")
        assert "pip install jackfield-keyword-search" in told
    assert run_bare("info", "notes")[1].startswith("notes: 2 documents, 2 chunks")


def test_words_are_indexed_when_it_is_built(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "build", "notes", "docs")
    assert any(file.name.startswith("keyword_search-") for file in KnowledgeIndex("notes").folder.iterdir())


def test_progress_goes_to_a_terminal_and_nowhere_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["index", "build", "notes", "docs"]) == 0
    assert capsys.readouterr().err == ""
    if os.name != "posix":
        return
    main_end, its_end = os.openpty()
    with os.fdopen(its_end, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        assert main(["index", "build", "again", "docs"]) == 0
        os.write(its_end, b"\0")  # after which there is nothing more
    shown = "".join(iter(lambda: os.read(main_end, 1).decode(errors="replace"), "\0"))
    os.close(main_end)
    assert "of 2 files" in shown
    assert shown.endswith("\r\x1b[K")


def started(folder: Path, program: str, *words: str) -> tuple[subprocess.Popen[str], int]:
    """Start a program, a fork where that is possible; with its process id, once it has printed that."""
    command = [sys.executable, "-c", program]
    if forks := shared_forks(IMPORTED):
        forks.write_command(folder / "program", program)
        command = [str(folder / "program")]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["notes", "./notes"])
def test_ctrl_c_ends_with_130_and_the_next_build_goes_on_without_asking(
    name: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(60):
        (docs / f"{number}.md").write_text(f"# Number {number}\n\nSome text about water.")
    process, pid = started(tmp_path, WAITS_AFTER_20, name)
    os.kill(pid, signal.SIGINT)
    _, said = process.communicate()
    index = KnowledgeIndex(name)
    stored = len(Draft(index._store._used).documents())
    index.close()
    assert process.returncode == 130
    assert "stopped. The documents and vectors so far are kept" in said
    assert 20 <= stored < 62
    assert f"{62 - stored} read" in run(capsys, "build", name)


def test_several_searchers_say_where_each_had_a_hit(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "build", "notes", "docs")
    with FakeOpenAI() as server, pytest.MonkeyPatch.context() as patch:
        server.respond(lambda request: embeddings(request, [[1.0, len(t) % 7] for t in texts_in(request)], tokens=1))
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "sk-test")
        options = ("--embedding-model", "openai:m")
        hits = as_json(capsys, "search", "notes", "high", "water", *options)
        again = as_json(capsys, "search", "notes", "high", "water", *options)
    assert hits[0]["ranks"].keys() == {"keyword_search", "vector_search"}
    assert again == hits
    assert sum("tides" in str(texts_in(request)).lower() for request in server.requests) == 1  # it was kept


# --- what is made when it is built ---

VECTORS = ("--searcher", "keyword_search", "--searcher", "vector_search", "--embedding-model", "openai:m")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    """A server of embeddings, which is where the environment says."""
    with FakeOpenAI() as server:
        server.respond(embeddings_of)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        yield server


def embedded(server: FakeOpenAI) -> list[str]:
    return sorted(text.rpartition("\n")[2] for request in server.requests for text in texts_in(request))


def test_vectors_are_made_while_it_is_built_and_only_of_what_is_new(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "build", "notes", "docs", *VECTORS)
    assert len(embedded(server)) == 2
    server.requests.clear()
    (hit, *_) = as_json(capsys, "search", "notes", "invoices")  # as it was built
    assert hit["ranks"].keys() == {"keyword_search", "vector_search"}
    assert embedded(server) == ["invoices"]
    server.requests.clear()
    (docs / "new.md").write_text("Penguins huddle.")
    run(capsys, "add", "notes", "docs/new.md")
    assert embedded(server) == ["Penguins huddle."]
    assert "for keyword_search, vector_search" in run(capsys, "info", "notes")


def test_a_searcher_that_asks_others_is_prepared_with_them(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = {"name": "vector_search", "embedding_model": "openai:m"}
    hybrid = {"name": "hybrid_search", "searchers": ["keyword_search", vectors], "weights": {"keyword_search": 2}}
    run(capsys, "build", "notes", "docs", "--searcher", json.dumps(hybrid))
    assert len(embedded(server)) == 2
    names = {file.name.partition("-")[0] for file in KnowledgeIndex("notes").folder.iterdir()}
    assert {"keyword_search", "vectors.sqlite"} <= names
    server.requests.clear()
    (hit, *_) = as_json(capsys, "search", "notes", "invoices")
    assert hit["ranks"].keys() == {"keyword_search", "vector_search", "hybrid_search"}
    assert embedded(server) == ["invoices"]


def test_an_agent_file_says_how_to_read_and_search(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("agent.json").write_text(
        json.dumps(
            {
                "agent": "assistant",
                "rag_cfg": {
                    "retrieval_type": "hybrid",
                    "embedding_model": "openai:m",
                    "chunk_size": 77,
                    "chunk_overlap": 7,
                    "parser_for": {"raw": "text"},
                },
            }
        )
    )
    built = as_json(capsys, "build", "notes", "docs", "--agent", "agent.json")
    assert (built["read"], built["skipped"]) == (3, {})
    information = as_json(capsys, "info", "notes")
    assert (information["chunk_size"], information["chunk_overlap"]) == (77, 7)
    assert information["searchers"] == {"keyword_search": {}, "vector_search": {"embedding_model": "openai:m"}}
    assert len(embedded(server)) == 3


@pytest.mark.parametrize("action", ["build", "add", "remove", "watch"])
def test_an_agent_file_says_how_each_command_reads(
    docs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    Path("agent.json").write_text(json.dumps({"agent": "assistant", "rag_cfg": {"parser_for": {"raw": "text"}}}))
    run(capsys, "build", "notes", "docs")
    watching(monkeypatch, lambda: None)
    words = {"build": ["docs"], "add": ["docs"], "remove": ["docs/house.txt"], "watch": ["--interval", "5"]}
    run(capsys, action, "notes", *words[action], "--agent", "agent.json")
    names = {Path(file["location"]).name for file in as_json(capsys, "info", "notes")["files"]}
    assert names == {"film.raw", "tides.md"} | ({"house.txt"} if action != "remove" else set())


def test_other_searchers_take_the_place_of_those_an_index_was_built_for(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "build", "notes", "docs", *VECTORS)
    run(capsys, "build", "notes", "docs")
    assert as_json(capsys, "info", "notes")["searchers"].keys() == {"keyword_search", "vector_search"}
    server.requests.clear()
    (hit, *_) = as_json(capsys, "search", "notes", "invoices", "--type", "keyword")
    assert (hit["ranks"].keys(), embedded(server)) == ({"keyword_search"}, [])
    (docs / "new.md").write_text("Penguins huddle.")
    run(capsys, "build", "notes", "--type", "keyword")
    assert (as_json(capsys, "info", "notes")["searchers"], embedded(server)) == ({"keyword_search": {}}, [])


def test_an_agent_file_says_which_documents_are_searched_unless_the_options_do(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "more.md").write_text("Invoices and water.")
    run(capsys, "build", "notes", "docs")
    Path("agent.json").write_text(json.dumps({"agent": "assistant", "rag_cfg": {"where": {"name": "more.md"}}}))

    def found(*options: str) -> list[str]:
        hits = as_json(capsys, "search", "notes", "water", "invoices", "--agent", "agent.json", *options)
        return sorted(Path(hit["location"]).name for hit in hits)

    assert found() == ["more.md"]
    assert found("--where", "name=t*") == ["tides.md"]
    assert len(as_json(capsys, "search", "notes", "water", "invoices", "--limit", "2")) == 2


def test_a_service_that_is_away_leaves_the_index_whole_and_the_next_build_goes_on(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    server.respond(lambda request: embeddings(request, [[float("nan")] * 2 for _ in texts_in(request)], tokens=1))
    said = run(capsys, "build", "notes", "docs", *VECTORS, code=1)
    assert "jackfield: vector_search: " in said
    assert "The finished part is kept: build again" in said
    assert "notes: 2 read" in said
    assert run(capsys, "search", "notes", "high", "water", "--type", "keyword").startswith("1. docs/tides.md")
    server.respond(embeddings_of)
    run(capsys, "build", "notes")
    server.requests.clear()
    run(capsys, "build", "notes")
    assert embedded(server) == []


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_while_vectors_are_made_loses_none_that_were_kept(
    tmp_path: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    second = threading.Event()

    def never_the_second(request: RecordedRequest) -> Reply:
        if len(server.requests) < 2:
            return embeddings_of(request)
        second.set()
        return replace(embeddings_of(request), delay_s=600)

    server.respond(never_the_second)
    process, pid = started(tmp_path, ONE_VECTOR_AT_ONCE, *VECTORS)
    assert second.wait(60)
    os.kill(pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped. The documents and vectors so far are kept" in said
    server.respond(embeddings_of)
    server.requests.clear()
    assert "notes: 0 read, 2 unchanged" in run(capsys, "build", "notes")
    assert len(embedded(server)) == 1


def test_a_searcher_that_fails_keeps_no_other_from_being_prepared(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    server.respond(lambda _: error(400, "no \x1b[2J"))
    said = run(capsys, "build", "notes", "docs", "--type", "hybrid", "--embedding-model", "openai:m", code=1)
    assert said.count("The finished part is kept: build again") == 1
    assert "\x1b" not in said
    first = ("--searcher", "vector_search", "--searcher", "keyword_search", "--embedding-model", "openai:m")
    run(capsys, "build", "again", "docs", *first, code=1)
    for name in ("notes", "again"):
        assert any(file.name.startswith("keyword_search-") for file in KnowledgeIndex(name).folder.iterdir())


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("action", ["build", "search"])
def test_no_command_leaves_a_connection_behind(
    action: str, fails: bool, docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "build", "notes", "docs", *VECTORS)
    (docs / "new.md").write_text("Penguins huddle.")
    asked = len(server.requests)
    if fails:
        server.respond(lambda _: error(401, "no"))
    words = ["build", "notes"] if action == "build" else ["search", "notes", "water"]
    run(capsys, *words, code=1 if fails and action == "build" else 0)
    assert len(server.requests) > asked
    assert server.wait_until(lambda server: not server.open_connections, timeout_s=60)


def test_a_search_goes_on_without_a_service_and_says_so(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "build", "notes", "docs", *VECTORS)
    server.respond(lambda _: error(401, "no"))
    said = run(capsys, "search", "notes", "high", "water")
    assert "jackfield: vector_search failed and was skipped: " in said
    assert "1. docs/tides.md" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--searcher", "no_such"), "no searcher 'no_such' is installed"),
        (("--searcher", "vector_search"), "vector_search: embedding_model"),
        (("--searcher", '{"k1": 2}'), "--searcher: missing 'name'"),
        (("--searcher", '{"name": '), "--searcher: invalid JSON"),
        (("--searcher", '{"name": "keyword_search", "k2": 2}'), "unknown setting 'k2'; known: b, chinese, k1"),
        (("--searcher", "keyword_search", "--embedding-model", "openai:m"), "--embedding-model requires vector search"),
        (("--type", "keyword", "--embedding-model", "openai:m"), "embedding_model requires vector search"),
        (
            (
                "--searcher",
                '{"name": "vector_search", "embedding_model": "openai:m", "embedder_settings": {"api_key": "k"}}',
            ),
            "an index must not store secrets",
        ),
        (("--agent", "gone.yaml"), "gone.yaml"),
    ],
)
def test_a_wrong_searcher_is_said_before_a_file_is_read(
    docs: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    assert says in run(capsys, "build", "notes", "docs", *arguments, code=1)
    assert not KnowledgeIndex("notes").exists


def test_progress_of_vectors_is_shown(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "bad.pdf").write_bytes(b"%PDF-1.7 broken")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("jackfield_index.progress._PAUSE_S", 0)
    assert main(["index", "build", "notes", "docs", *VECTORS]) == 0
    shown = capsys.readouterr().err
    assert "2 of 2 chunks  vector_search" in shown
    assert shown.index("vector_search: indexing") < shown.index("2 of 2 chunks  vector_search")
    assert "\r\x1b[Kjackfield: docs/bad.pdf: " in shown  # on a line of its own
    assert shown.endswith("\r\x1b[K")


def test_an_index_from_elsewhere_needs_consent_for_what_its_searchers_can_cause(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeOpenAI() as server:
        server.respond(embeddings_of)
        embedder = {"base_url": server.url}
        settings = {"name": "vector_search", "embedding_model": "openai:m", "embedder_settings": embedder}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_API_KEY", "sk-test")
            run(capsys, "build", "./mine", "docs", "--searcher", json.dumps(settings))
            run(capsys, "search", "./mine", "tides")
            run(capsys, "build", "./mine")
            shutil.copytree("mine", "cloned")
            asked = len(server.requests)
            for words in (("search", "./cloned", "tides"), ("build", "./cloned"), ("add", "./cloned", "docs")):
                refused = run(capsys, *words, code=1)
                assert f"sends data to the server {server.url}" in refused
                assert "To allow this, pass --trust" in refused
            assert len(server.requests) == asked
            run(capsys, "search", "./cloned", "tides", "--trust")
            assert len(server.requests) > asked


@pytest.mark.parametrize("words", [("build", "notes"), ("add", "notes", "docs"), ("search", "notes", "tides")])
def test_an_agent_file_needs_consent_for_the_server_it_names(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    run(capsys, "build", "notes", "docs")
    vectors = {"embedding_model": "openai:m", "embedder_settings": {"base_url": server.url}}
    Path("agent.json").write_text(
        json.dumps({"agent": "assistant", "rag_cfg": {"retrieval_type": "vector", **vectors}})
    )
    refused = run(capsys, *words, "--agent", "agent.json", code=1)
    assert f"sends data to the server {server.url}" in refused
    assert "To allow this, run: jackfield trust agent.json, or pass --trust" in refused
    assert server.requests == []
    run(capsys, *words, "--agent", "agent.json", "--trust")


@pytest.mark.parametrize("cloned", ["./cloned", "sub/cloned", "../{}/cloned", "{}"])
def test_an_index_from_elsewhere_needs_consent_to_read_its_files_again(
    docs: Path, capsys: pytest.CaptureFixture[str], cloned: str
) -> None:
    cloned = str(docs.with_name("cloned")) if cloned == "{}" else cloned.format(docs.parent.name)
    run(capsys, "build", "./mine", "docs")
    run(capsys, "remove", "./mine", "docs/house.txt")
    shutil.copytree("mine", cloned)
    run(capsys, "search", cloned, "tides")  # its documents are texts
    refused = run(capsys, "build", cloned, code=1)
    assert f"uses a file outside its folder: {docs}" in refused
    assert "house.txt" not in refused  # it would not be read
    run(capsys, "build", cloned, "--trust")
    run(capsys, "build", cloned)


def test_an_index_whose_build_was_interrupted_is_the_users_own(
    docs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(*_: Any, **__: Any) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command, "_prepare", interrupted)
        assert "stopped. The documents" in run(capsys, "build", "./mine", "docs", code=130)
    run(capsys, "build", "./mine")


# --- filters ---


def test_values_are_set_and_filter_searches_and_removals(tmp_path: Path, capsys: Any) -> None:
    for folder in ("reports", "notes"):
        for number in (1, 2):
            path = tmp_path / "texts" / folder / f"{number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {folder} {number}\n\nThe otter swims.\n")
    assert main(["index", "build", "a", str(tmp_path / "texts")]) == 0
    assert main(["index", "set", "a", "year=2024", "team=sales", "--where", "path=reports/*"]) == 0
    assert "set year=2024, team=sales on 2 documents" in capsys.readouterr().out

    def found(*where: str) -> list[str]:
        options = [part for condition in where for part in ("--where", condition)]
        assert main(["index", "search", "a", "otter", "--json", *options]) == 0
        hits = json.loads(capsys.readouterr().out)
        return sorted("/".join(Path(hit["location"]).parts[-2:]) for hit in hits)

    assert found("year>=2024", "name!=1.md") == ["reports/2.md"]
    assert found("name=1.md", "name=2.md", "path=notes/*") == ["notes/1.md", "notes/2.md"]
    for wrong in ("yaer=1", "year", "year=x"):
        assert main(["index", "search", "a", "otter", "--where", wrong]) == 1
        assert "where" in capsys.readouterr().err
    assert main(["index", "remove", "a", "--where", "team=sales"]) == 0
    assert main(["index", "build", "a"]) == 0
    capsys.readouterr()
    assert found() == ["notes/1.md", "notes/2.md"]
    assert main(["index", "remove", "a"]) == 1


def test_values_are_set_for_all_documents_unless_some_are_selected(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "build", "notes", "docs")
    assert run(capsys, "set", "notes", "year=2024") == "notes: set year=2024 on 2 documents\n"
    assert as_json(capsys, "set", "notes", "team=sales", "--where", "name=tides.md") == {"documents": 1}
    assert len(as_json(capsys, "search", "notes", "invoices", "--where", "year=2024")) == 1
    assert as_json(capsys, "search", "notes", "invoices", "--where", "team=sales") == []
    assert "must have the form KEY=VALUE" in run(capsys, "set", "notes", "year", code=1)


def test_removing_needs_files_or_a_filter(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "build", "notes", "docs")
    assert run(capsys, "remove", "notes", code=1).endswith("specify the files to remove, or select them with --where\n")
    assert as_json(capsys, "info", "notes")["documents"] == 2


def test_a_removal_without_a_document_and_a_name_without_files_are_reported(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "build", "notes", "docs")
    told = run(capsys, "remove", "notes", "docs/house.txt", "docs/tide.md", code=1)
    assert told == "jackfield: index 'notes' does not contain docs/tide.md; did you mean 'docs/tides.md'?\n"
    assert len(as_json(capsys, "info", "notes")["names"]) == 1, "nothing is recorded"
    told = run(capsys, "remove", "notes", "--where", "name=hous.txt")
    assert told.endswith("\njackfield: the index contains no matching documents, so none were removed\n")
    for fitting in (["remove", "notes", "docs/house.txt"], ["build", "notes"]):
        assert "jackfield: " not in run(capsys, *fitting)
    docs.rename(docs.with_name("elsewhere"))
    assert "\njackfield: docs no longer exists or matches nothing, so " in run(capsys, "build", "notes")


def test_of_several_searchers_no_more_hits_come_than_are_asked_for(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "more.md").write_text("Invoices and water.")
    run(capsys, "build", "notes", "docs", *VECTORS)
    assert len(as_json(capsys, "search", "notes", "water", "--limit", "1")) == 1
    assert len(as_json(capsys, "search", "notes", "water", "--limit", "2")) == 2


def test_several_searchers_rank_together_by_their_weights_whatever_the_limit(
    tmp_path: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = {
        "Water, water, water": [1.0, 0.0],
        "Water and air": [0.3, 1.0],
        "The sea": [0.0, 1.0],
        "A mill, a wheel, a brook, and little water": [1.0, 0.0],
    }

    def vectors_of(request: RecordedRequest) -> Reply:
        known = [next((v for words, v in vectors.items() if words in text), [0.0, 1.0]) for text in texts_in(request)]
        return embeddings(request, known, tokens=1)

    server.respond(vectors_of)
    seas = tmp_path / "seas"
    seas.mkdir()
    for number, text in enumerate(vectors):
        (seas / f"{number}.md").write_text(f"{text}.")
    run(capsys, "build", "seas", str(seas), *VECTORS)

    def found(weights: Mapping[str, float], limit: int) -> list[str]:
        rag = {"retrieval_type": "hybrid", "embedding_model": "openai:m", "searcher_weights": weights}
        Path("agent.json").write_text(json.dumps({"agent": "assistant", "rag_cfg": rag}))
        hits = as_json(capsys, "search", "seas", "water", "--agent", "agent.json", "--limit", str(limit))
        return [Path(hit["location"]).name for hit in hits]

    both = found({}, 3)
    assert both[0] == "1.md", "the second of each searcher is the first of both"
    assert [found({}, limit) for limit in (1, 2)] == [both[:1], both[:2]]
    assert found({"keyword_search": 20}, 1) == ["0.md"]
    assert found({"vector_search": 20}, 1) == ["2.md"]


def test_an_agent_file_says_how_rankings_are_merged(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "more.md").write_text("Invoices and water.")
    run(capsys, "build", "notes", "docs", *VECTORS)
    for k in (1, 60):
        merging = {"retrieval_type": "hybrid", "embedding_model": "openai:m", "fusion": "ranks", "fusion_k": k}
        Path("agent.json").write_text(
            json.dumps({"agent": "assistant", "rag_cfg": {**merging, "searcher_weights": {"vector_search": 1}}})
        )
        hits = as_json(capsys, "search", "notes", "water", "--agent", "agent.json")
        assert len(hits) == 3
        for hit in hits:
            assert hit["score"] == pytest.approx(sum(1 / (k + rank) for rank in hit["ranks"].values()))


def test_the_hits_of_a_search_are_numbered_and_all_indexes_listed(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "more.md").write_text("Invoices and water.")
    for name in ("second", "first"):
        run(capsys, "build", name, "docs", "--type", "keyword")
    found = run(capsys, "search", "first", "water", "invoices").splitlines()
    assert [line.partition(" ")[0] for line in found[::2]] == ["1.", "2.", "3."]
    assert [line.split(":")[0] for line in run(capsys, "list").splitlines()] == ["first", "second"]


def test_documents_that_other_settings_read_otherwise_are_counted(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "build", "notes", "docs")
    (docs / "new.md").write_text("# New")
    said = run(capsys, "build", "notes", "--chunk-size", "300")
    assert said.startswith("notes: 3 read (2 because parsers or settings changed), 0 unchanged, ")
    assert "it contains 3 documents, 3 chunks" in said
    assert as_json(capsys, "info", "notes")["chunk_size"] == 300
    built = as_json(capsys, "build", "notes")
    names = {"read", "outdated", "unchanged", "removed", "failed", "skipped", "missing"}
    assert names <= built.keys()
    assert {"name", "folder", "documents", "chunks", "generation"} <= built.keys()


def test_its_descriptor_states_its_effects_and_actions(capsys: pytest.CaptureFixture[str]) -> None:
    (spec,) = commands()
    assert spec.effects == {"files", "network"}
    with pytest.raises(SystemExit):
        main(["index", "--help"])
    assert re.findall(r"^    ([a-z]+) ", capsys.readouterr().out, re.MULTILINE) == list(spec.actions)


# --- watching ---


def watching(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]) -> list[bool]:
    """Have `watch` take these steps, and build after each; gives what each build returned."""
    built: list[bool] = []

    async def watch(index: KnowledgeIndex, build: Callable[[], Any], **options: Any) -> None:
        assert options["interval_s"] == 5.0
        assert options["why_not"]("/srv/film.zzz") == "no installed package can read .zzz files"
        for step in steps:
            step()
            built.append(await build())

    monkeypatch.setattr(command, "watch", watch)
    return built


def test_a_watched_index_tells_what_changed_and_nothing_else(
    docs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        (docs / "new.md").write_text("# New")

    def damage() -> None:
        (docs / "bad.pdf").write_bytes(b"%PDF-1.7 broken")

    built = watching(monkeypatch, lambda: None, change, (docs / "tides.md").unlink, damage)
    said = run(capsys, "watch", "./mine", "docs", "--interval", "5")
    assert built == [True] * 4
    reports = [line for line in said.splitlines() if line.startswith("./mine: ")]
    assert [line.partition(";")[0].removeprefix("./mine: ") for line in reports] == [
        "2 read, 0 unchanged, 0 removed, 0 failed, 1 skipped",
        "1 read, 2 unchanged, 0 removed, 0 failed, 1 skipped",
        "0 read, 2 unchanged, 1 removed, 0 failed, 1 skipped",
        "0 read, 2 unchanged, 0 removed, 1 failed, 1 skipped",
    ]


def test_a_watched_index_says_that_a_service_is_away_and_is_built_again(
    docs: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        (docs / "new.md").write_text("Penguins huddle.")
        server.respond(lambda _: error(401, "no"))

    run(capsys, "build", "notes", "docs", *VECTORS)
    server.requests.clear()
    built = watching(monkeypatch, change, lambda: None, lambda: server.respond(embeddings_of))
    said = run(capsys, "watch", "notes", "--interval", "5")
    assert built == [False, False, True]
    assert said.count("jackfield: vector_search: ") == 2
    assert [line.partition(",")[0] for line in said.splitlines() if line.startswith("notes: ")] == [
        "notes: 1 read",
        "notes: 0 read",
    ]
    assert embedded(server)[-1] == "Penguins huddle."
    server.respond(lambda _: error(401, "no"))
    (docs / "newer.md").write_text("Otters swim.")
    assert "vector_search: " in run(capsys, "build", "notes", code=1)
    assert run(capsys, "watch", "notes", "docs", "--interval", "5", code=1).count("vector_search: ") == 1


def test_an_index_from_elsewhere_that_was_watched_is_the_users_own(
    docs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "build", "./mine", "docs")
    shutil.copytree("mine", "cloned")
    watching(monkeypatch)
    assert "uses a file outside its folder" in run(capsys, "watch", "./cloned", "--interval", "5", code=1)
    run(capsys, "watch", "./cloned", "--interval", "5", "--trust")
    run(capsys, "build", "./cloned")


def test_without_files_an_index_is_watched_as_it_is(
    docs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "build", "notes", "docs")
    watching(monkeypatch)
    assert run(capsys, "watch", "notes", "--interval", "5") == ""
    assert "no index named 'gone'" in run(capsys, "watch", "gone", "--interval", "5", code=1)


@pytest.mark.parametrize("is_building", [True, False], ids=["in a build", "between builds"])
def test_ctrl_c_ends_watching_with_0_unless_a_build_is_going_on(
    is_building: bool, docs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "build", "notes", "docs")

    async def interrupted(_: KnowledgeIndex, work: Any, *__: Any) -> Any:
        work.close()
        raise KeyboardInterrupt

    def interrupt() -> None:
        if is_building:
            monkeypatch.setattr(command, "_build_and_prepare", interrupted)
        else:
            raise KeyboardInterrupt

    watching(monkeypatch, interrupt)
    said = run(capsys, "watch", "notes", "--interval", "5", code=130 if is_building else 0)
    assert ("stopped. The documents and vectors so far are kept" in said) is is_building


def test_ctrl_c_after_a_build_that_another_process_prevented_ends_watching_with_0(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "build", "notes", "docs")

    async def watch(index: KnowledgeIndex, build: Callable[[], Any], **_: Any) -> None:
        with Store(index.folder, "notes").building(), pytest.raises(ConfigError, match="built by another process"):
            await build()
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "watch", watch)
    assert "stopped" not in run(capsys, "watch", "notes", "--interval", "5")


def test_a_watched_index_follows_files_until_ctrl_c(docs: Path) -> None:
    program = (
        "import signal, sys; from jackfield.cli.main import main;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "sys.exit(main(['index', 'watch', 'notes', 'docs', '--interval', '0.1']))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout is not None
            assert "2 read" in watching.stdout.readline()
            (docs / "new.md").write_text("# New\n\nAn otter swims.\n")
            assert "1 read, 2 unchanged" in watching.stdout.readline()
            (docs / "new.md").rename(docs / "newer.md")
            assert "1 read, 2 unchanged, 1 removed" in watching.stdout.readline()
        finally:
            watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 0
    with pytest.raises(SystemExit):
        main(["index", "watch", "notes", "--interval", "0"])


def test_a_build_that_another_process_prevents_is_reported_once_per_outage(
    docs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "build", "notes", "docs")

    async def watch(index: KnowledgeIndex, build: Callable[[], Any], **_: Any) -> None:
        for _ in range(2):
            with Store(index.folder, "notes").building():
                for _ in range(3):
                    with pytest.raises(ConfigError, match="built by another process"):
                        await build()
            assert await build()

    monkeypatch.setattr(command, "watch", watch)
    said = run(capsys, "watch", "notes", "--interval", "5")
    line = "jackfield: index 'notes' is being built by another process: wait until that process has finished. "
    assert said == f"{line}The watch continues and tries again\n" * 2
