"""`jackfield index` as people and scripts use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jackfield.cli.main import main
from jackfield_knowledge import KnowledgeIndex
from jackfield_knowledge.store import Draft
from jackfield_testkit.embeddings import embeddings, texts_in
from jackfield_testkit.server import FakeOpenAI

JACKFIELD = (sys.executable, "-m", "jackfield", "index")


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two documents in `docs`, below the working directory."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
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
    assert run(capsys, "list") == "There is no index yet. Make one: jackfield index build NAME FILES\n"
    assert "notes: 2 read, 0 unchanged" in run(capsys, "build", "notes", "docs")
    assert "notes: 0 read, 2 unchanged" in run(capsys, "build", "notes")
    found = run(capsys, "search", "notes", "when", "is", "high", "water")
    assert found.startswith("1. docs/tides.md, Tides  (keyword_search 1)\n   # Tides ## Spring High water")
    assert run(capsys, "list") == "notes: 2 documents, 2 chunks\n"
    assert run(capsys, "search", "notes", "zebra") == "nothing found\n"


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
    assert "docs/tides.md: 1 chunks" in told
    assert "docs/house.txt: " not in told


def test_everything_comes_as_json(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = as_json(capsys, "build", "notes", "docs/house.txt", "--chunk-size", "300", "--chunk-overlap", "0")
    assert (built["read"], built["documents"]) == (1, 1)
    assert as_json(capsys, "add", "notes", "docs")["skipped"] == {
        str(docs / "film.raw"): "no installed package reads .raw files"
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
            "there are: none. Make it: jackfield index build nothing FILES",
        ),
        (("search", "nothing", "x"), "there is no index 'nothing'"),
        (("build", "nothing"), "there is no index 'nothing'"),
        (("build", "notes", "gone.md"), "there is no file or folder"),
        (("build", "notes", "index:other"), "only files, folders, patterns and URLs can"),
        (("build", "no tes", "docs"), "'no tes' is not a valid name of an index"),
        (("build", "./docs", "docs"), "a folder with other files"),
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
    assert "index 'notes' cannot be used" in run(capsys, "list")


def test_names_and_texts_give_a_terminal_no_orders(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.name != "posix":
        pytest.skip("names of POSIX")
    Path(os.fsdecode(b"docs/\x1b[2J\xff\n.md")).write_text("# \x9b2J\n\nwater \x9b31m and more")
    printed = (
        run(capsys, "build", "notes", "docs") + run(capsys, "search", "notes", "water") + run(capsys, "info", "notes")
    )
    assert not {"\x1b", "\x9b"} & set(printed)
    assert "\\x1b[2J" in printed


def test_words_are_indexed_when_it_is_built(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "build", "notes", "docs")
    assert any(file.name.startswith("keyword_search-") for file in KnowledgeIndex("notes").folder.iterdir())


def test_progress_goes_to_a_terminal_and_nowhere_else(docs: Path) -> None:
    done = subprocess.run([*JACKFIELD, "build", "notes", "docs"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    if os.name != "posix":
        return
    main_end, its_end = os.openpty()
    subprocess.run([*JACKFIELD, "build", "again", "docs"], stdout=subprocess.DEVNULL, stderr=its_end, check=True)
    os.close(its_end)
    shown = os.read(main_end, 1 << 16).decode()
    os.close(main_end)
    assert "of 2 files" in shown
    assert shown.endswith("\r\x1b[K")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_with_130_and_the_next_build_goes_on(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(40):
        (docs / f"{number}.md").write_text(f"# Number {number}\n\n" + "Some text about water. " * 400)
    # A run of tests in the background ignores the signal, and so do its children. The process sends it to itself:
    # nobody else knows how far it is.
    program = """
import os, signal, sys
from jackfield.cli.main import main
from jackfield_knowledge.store import Draft

def put(draft, *document, stored=[], store=Draft.put):
    store(draft, *document)
    stored.append(document)
    if len(stored) == 10:
        os.kill(os.getpid(), signal.SIGINT)

Draft.put = put
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(["index", "build", "notes", "docs"]))
"""
    process = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=False)
    said = process.stderr
    index = KnowledgeIndex("notes")
    stored = len(Draft(index._store._used).documents())
    index.close()
    assert process.returncode == 130
    assert "stopped. What was read is kept" in said
    assert 10 <= stored < 42
    assert f"{42 - stored} read" in run(capsys, "build", "notes")


def test_several_searchers_say_where_each_had_a_hit(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "build", "notes", "docs")
    with FakeOpenAI() as server, pytest.MonkeyPatch.context() as patch:
        server.respond(lambda request: embeddings(request, [[1.0, len(t) % 7] for t in texts_in(request)], tokens=1))
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "sk-test")
        options = ("--type", "hybrid", "--embedding-model", "openai:m")
        hits = as_json(capsys, "search", "notes", "high", "water", *options)
        again = as_json(capsys, "search", "notes", "high", "water", *options)
    assert hits[0]["ranks"].keys() == {"keyword_search", "vector_search"}
    assert again == hits
    assert sum("tides" in str(texts_in(request)).lower() for request in server.requests) == 1  # it was kept
