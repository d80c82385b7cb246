"""Several processes at one index: readers beside a writer, and writers that are killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jackfield.errors import ConfigError
from jackfield_documents import DocumentReader
from jackfield_knowledge import Built, KnowledgeIndex

FILES = 40

# Builds an index, and says after each file how far it is; between two files it waits for a line.
BUILDER = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run of tests in the background ignores it
from jackfield_documents import DocumentReader
from jackfield_knowledge import KnowledgeIndex

def on_progress(progress):
    print(progress.done, flush=True)
    sys.stdin.readline()

asyncio.run(KnowledgeIndex("notes").build(sys.argv[1:], reader=DocumentReader(), on_progress=on_progress))
print("built", flush=True)
"""
# Answers each line with what it finds in the index: which version each chunk is of.
READER = """
import json, sys
from jackfield_knowledge import ChangedIndexError, KnowledgeIndex

index = KnowledgeIndex("notes")
print("ready", flush=True)
for line in sys.stdin:
    try:
        found = [chunk.text.split()[-1] for chunk in index.corpus().chunks]
    except ChangedIndexError:
        found = "changed"
    print(json.dumps(found), flush=True)
"""


class Process:
    """A program that talks by lines."""

    def __init__(self, program: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def hear(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def ask(self) -> str:
        self.go_on()
        return self.hear()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Process] = []

    def begin(program: str, *arguments: str) -> Process:
        started.append(Process(program, *arguments))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


def write(docs: Path, version: str) -> None:
    for number in range(FILES):
        path = docs / f"{number:02}.md"
        path.write_text(f"This is version {version}")
        os.utime(path, (1_600_000_000, 1_600_000_000))


def build(*names: str) -> Built:
    index = KnowledgeIndex("notes")
    try:
        return asyncio.run(index.build(names, reader=DocumentReader()))
    finally:
        index.close()


def versions() -> list[str]:
    index = KnowledgeIndex("notes")
    try:
        return [chunk.text.split()[-1] for chunk in index.corpus().chunks]
    finally:
        index.close()


def test_a_killed_build_leaves_the_old_index_whole_and_the_next_goes_on(docs: Path, start: Start) -> None:
    write(docs, "1")
    build("docs")
    write(docs, "2")
    builder = start(BUILDER)
    for _ in range(15):
        builder.hear()
        builder.go_on()
    builder.kill()
    assert versions() == ["1"] * FILES
    built = build()
    assert versions() == ["2"] * FILES
    assert built.read <= FILES - 15
    assert built.read + built.unchanged == FILES


def test_a_killed_first_build_leaves_an_empty_index_and_the_next_goes_on(docs: Path, start: Start) -> None:
    write(docs, "1")
    builder = start(BUILDER, "docs")
    for _ in range(10):
        builder.hear()
        builder.go_on()
    builder.kill()
    assert versions() == []
    assert build().read <= FILES - 10  # of the names that the killed one was given
    assert versions() == ["1"] * FILES


def test_two_read_while_one_writes_and_see_the_old_or_the_new_and_nothing_between(docs: Path, start: Start) -> None:
    write(docs, "1")
    build("docs")
    readers = [start(READER), start(READER)]
    assert [reader.hear() for reader in readers] == ["ready", "ready"]
    write(docs, "2")
    builder = start(BUILDER)
    seen: list[list[str]] = []
    while builder.hear() != "built":
        seen += [json.loads(reader.ask()) for reader in readers]
        builder.go_on()
    assert seen == [["1"] * FILES] * (2 * FILES)
    assert [json.loads(reader.ask()) for reader in readers] == [["2"] * FILES] * 2


def test_of_two_that_build_the_second_is_refused_until_the_first_has_ended(docs: Path, start: Start) -> None:
    write(docs, "1")
    builder = start(BUILDER, "docs")
    builder.hear()
    with pytest.raises(ConfigError, match="index 'notes' is being built by another process"):
        build("docs")
    builder.kill()
    build("docs")
    assert versions() == ["1"] * FILES


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_loses_nothing(docs: Path, start: Start) -> None:
    write(docs, "1")
    builder = start(BUILDER, "docs")
    for _ in range(10):
        builder.hear()
        builder.go_on()
    os.kill(builder._process.pid, signal.SIGINT)
    builder._process.communicate()
    assert builder._process.returncode != 0
    assert build().read <= FILES - 10
