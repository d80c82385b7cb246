"""An index on disk follows its corpus, for any number of processes, and is made again when it is not whole."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.retrieval import Chunk, Corpus, Where
from jackfield_documents import Shelf
from jackfield_tantivy_search import kept
from jackfield_tantivy_search.index import DamagedIndexError, WordIndex
from jackfield_tantivy_search.searcher import TantivySearcher

Found = Callable[..., list[str]]
CorpusOf = Callable[..., Corpus]
OnDisk = Callable[..., Corpus]


class Unread(Sequence[Chunk]):
    """Chunks of which only some may be read."""

    def __init__(self, chunks: Sequence[Chunk], *readable: int) -> None:
        self._chunks = chunks
        self._readable = readable

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, place: int) -> Chunk:  # type: ignore[override]
        assert place in self._readable, f"chunk {place} was read"
        return self._chunks[place]

    def ids(self) -> list[str]:
        return [chunk.id for chunk in self._chunks]


def files(folder: Path, end: str = "") -> list[Path]:
    return sorted(path for path in folder.rglob(f"*{end}") if path.is_file())


def unread(corpus: Corpus, *readable: int) -> Corpus:
    """The same corpus, of which only some chunks may be read."""
    shelf = corpus.shelf  # type: ignore[attr-defined]
    return type(corpus)(Unread(corpus.chunks, *readable), shelf)  # type: ignore[arg-type,call-arg]


def test_an_index_is_built_once_for_all_processes(on_disk: OnDisk, found: Found, tmp_path: Path) -> None:
    corpus = on_disk(tmp_path, "high tide", "flood")
    assert found(corpus, "tide") == ["high tide"]
    assert found(unread(corpus, 0), "tide") == ["high tide"]


def test_only_new_chunks_are_read(on_disk: OnDisk, found: Found, tmp_path: Path) -> None:
    found(on_disk(tmp_path, "high tide", "flood", "low tide"), "tide")
    changed = on_disk(tmp_path, "high tide", "neap tide", "low tide")
    assert found(unread(changed, 1), "neap", limit=1) == ["neap tide"]
    assert found(changed, "tide flood") == ["high tide", "neap tide", "low tide"]
    assert len(files(tmp_path, ".npy")) == 1


TEXTS = [f"{word} {other} w{number}" for number, (word, other) in enumerate(zip("abcd" * 5, "efghi" * 4, strict=True))]
SUBSETS = st.lists(st.integers(0, len(TEXTS) - 1), unique=True, min_size=1)


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(SUBSETS, min_size=2, max_size=4))
def test_an_index_that_followed_finds_what_a_new_one_does(
    on_disk: OnDisk,
    in_memory: CorpusOf,
    found: Found,
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[list[int]],
) -> None:
    folder = tmp_path_factory.mktemp("shelf")
    for numbers in contents:
        texts = [TEXTS[number] for number in numbers]
        for query in ("w1 w2 w3", " ".join(TEXTS)):
            # Scores differ in what is gone, so the order may; which are found may not.
            assert set(found(on_disk(folder, *texts), query, 50)) == set(found(in_memory(*texts), query, 50))


def test_equal_chunks_come_in_document_order_although_some_came_in_later(on_disk: OnDisk, tmp_path: Path) -> None:
    late = [f"tide {number}" for number in range(40, 80)]
    early = [f"tide {number}" for number in range(10, 40)]
    for texts in (late, [*early, *late]):
        corpus = on_disk(tmp_path, *texts)
        hits = asyncio.run(TantivySearcher().search("tide", corpus, limit=5))
        assert [hit.chunk.text for hit in hits] == texts[:5]


def test_an_index_of_which_half_is_gone_is_made_anew(on_disk: OnDisk, found: Found, tmp_path: Path) -> None:
    texts = [f"tide {number}" for number in range(10)]
    found(on_disk(tmp_path, *texts), "tide")
    assert len(found(unread(on_disk(tmp_path, *texts[3:]), *range(7)), "tide")) == 7
    with pytest.raises(AssertionError, match="was read"):
        found(
            unread(on_disk(tmp_path, *texts[4:])), "zebra"
        )  # of which there are no hits to read; three and one are more than half of six
    assert len(found(on_disk(tmp_path, *texts[4:]), "tide")) == 6
    assert len(found(unread(on_disk(tmp_path, *texts[6:]), *range(4)), "tide")) == 4, "made anew, it counts from 0"


def test_what_is_gone_takes_no_place_of_what_is_there(on_disk: OnDisk, found: Found, tmp_path: Path) -> None:
    gone = [f"tide tide tide g{number}" for number in range(10)]
    kept = [f"tide and many other words k{number}" for number in range(25)]
    found(on_disk(tmp_path, *gone, *kept), "tide")
    assert found(unread(on_disk(tmp_path, *kept), 0), "tide", 1) == kept[:1]


def test_settings_do_not_share_an_index(on_disk: OnDisk, found: Found, tmp_path: Path) -> None:
    corpus = on_disk(tmp_path, "超时长")
    assert found(corpus, "时长") == found(corpus, "时长", chinese="bigrams") == ["超时长"]
    assert len(list(tmp_path.iterdir())) == 2
    if os.name == "posix":
        assert {folder.stat().st_mode & 0o777 for folder in tmp_path.iterdir()} == {0o700}


@pytest.mark.parametrize("package", ["jackfield-tantivy-search", "jackfield-documents", "tantivy"])
def test_an_index_of_another_version_is_made_again(
    on_disk: OnDisk, found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    corpus, true = on_disk(tmp_path, "high tide"), metadata.version
    with monkeypatch.context() as other:
        other.setattr(metadata, "version", lambda name: "9" if name == package else true(name))
        found(corpus, "tide")
    with pytest.raises(AssertionError, match="was read"):
        found(unread(corpus), "tide")
    assert found(corpus, "tide") == ["high tide"]


def test_an_index_is_made_before_the_first_search_where_that_is_asked_for(
    on_disk: OnDisk, found: Found, tmp_path: Path
) -> None:
    corpus, said = on_disk(tmp_path, *(f"tide {number}" for number in range(2500))), []
    asyncio.run(TantivySearcher().prepare(corpus, on_progress=lambda *figures: said.append(figures)))
    assert said == [(0, 2500), (1000, 2500), (2000, 2500), (2500, 2500)]
    assert found(unread(corpus, 7), "tide 7", 1) == ["tide 7"]


# --- what is not whole ---


@pytest.fixture(scope="module")
def whole(on_disk: OnDisk, found: Found, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    found(on_disk(folder, "high tide", "flood"), "tide")
    return folder


@pytest.mark.parametrize("damage", ["empty", "cut short", "gone"])
def test_an_index_with_a_damaged_file_is_made_again(
    on_disk: OnDisk, found: Found, whole: Path, tmp_path: Path, damage: str
) -> None:
    for number, path in enumerate(path for path in files(whole) if path.stat().st_size):
        folder = shutil.copytree(whole, tmp_path / str(number))
        damaged = folder / path.relative_to(whole)
        match damage:
            case "gone":
                damaged.unlink()
            case "empty":
                damaged.write_bytes(b"")
            case _:
                damaged.write_bytes(damaged.read_bytes()[:-1])
        assert found(on_disk(folder, "high tide", "flood"), "tide") == ["high tide"], damaged.name


def test_an_index_with_a_file_overwritten_inside_is_made_again(on_disk: OnDisk, found: Found, tmp_path: Path) -> None:
    texts = [f"tide {number}" for number in range(300)]
    before = found(on_disk(tmp_path, *texts), "tide 7")
    (terms,) = files(tmp_path, ".term")
    content = terms.read_bytes()
    terms.unlink()  # its bytes stay for whoever has it open
    terms.write_bytes(content[:-400] + bytes(200) + content[-200:])
    assert found(on_disk(tmp_path, *texts), "tide 7") == before


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(
    on_disk: OnDisk, found: Found, tmp_path: Path
) -> None:
    (tmp_path / "shelf").write_text("a file")
    with pytest.raises(ConfigError, match=r"cannot store an index in .*shelf"):
        found(on_disk(tmp_path / "shelf", "high tide"), "tide")


def test_a_disk_that_fails_is_an_error_and_what_was_there_stays(
    on_disk: OnDisk, found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = on_disk(tmp_path, "high tide", "flood"), on_disk(tmp_path, "high tide", "flood", "low tide")
    found(old, "tide")

    def full(*_: object) -> None:
        raise ValueError("An IO error occurred: 'No space left on device'")  # as tantivy says it

    with monkeypatch.context() as patch:
        patch.setattr("jackfield_tantivy_search.kept.add", full)
        with pytest.raises(ConfigError, match=r"tantivy_search: cannot store an index in .*No space left"):
            found(new, "tide")
    assert found(unread(old, 0), "tide") == ["high tide"]
    assert found(new, "tide") == ["high tide", "low tide"]


def test_an_index_that_cannot_be_changed_is_made_again(
    on_disk: OnDisk, found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(on_disk(tmp_path, "high tide", "flood"), "tide")
    add, times = kept.add, list[bool]()

    def fail_once(*arguments: Any) -> None:
        times.append(True)
        if len(times) == 1:
            raise ValueError("An IO error occurred")  # as tantivy says it
        add(*arguments)

    monkeypatch.setattr(kept, "add", fail_once)
    assert found(on_disk(tmp_path, "high tide", "flood", "low tide"), "tide") == ["high tide", "low tide"]


def test_a_damaged_index_is_made_again_for_a_search_of_some_documents(
    on_disk: OnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ("high tide", "low tide")
    chunks = tuple(Chunk(text, f"{text[:3]}.md", text, number, 1) for number, text in enumerate(texts))
    corpus = type(on_disk(tmp_path))(chunks, Shelf(tmp_path, Corpus(chunks).content_hash))  # type: ignore[call-arg]
    search, times = WordIndex.search, list[bool]()

    def damaged_once(self: WordIndex, *arguments: Any) -> Any:
        times.append(True)
        if len(times) == 1:
            raise DamagedIndexError("torn")
        return search(self, *arguments)

    monkeypatch.setattr(WordIndex, "search", damaged_once)
    where = Where.parse({"path": "low.md"})
    hits = asyncio.run(TantivySearcher().search("tide", corpus, limit=5, where=where))
    assert [hit.chunk.text for hit in hits] == ["low tide"]


def test_a_lock_file_of_another_program_is_an_error_with_its_folder(
    on_disk: OnDisk, found: Found, tmp_path: Path
) -> None:
    corpus = on_disk(tmp_path, "high tide")
    found(corpus, "tide")
    (folder,) = tmp_path.iterdir()
    shutil.rmtree(folder / "index")
    (folder / "lock.sqlite").unlink()
    with sqlite3.connect(folder / "lock.sqlite") as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    with pytest.raises(ConfigError, match="cannot store an index in"):
        found(corpus, "tide")


# --- several processes ---

PROGRAM = """
import asyncio, sys
from pathlib import Path
from jackfield.retrieval import Chunk, Corpus
from jackfield_documents import Shelf
from jackfield_tantivy_search.searcher import TantivySearcher

class Slow(tuple):  # says when a chunk is read, and waits for a line
    def __iter__(self):
        for chunk in tuple.__iter__(self):
            if chunk.text == "wait":
                print("waiting", flush=True)
                sys.stdin.readline()
            yield chunk

    def ids(self):
        return [chunk.id for chunk in tuple.__iter__(self)]

folder, mode, *texts = sys.argv[1:]
chunks = tuple(Chunk(text, "x.md", text, number, 1) for number, text in enumerate(texts))
corpus = Corpus(Slow(chunks))
vars(corpus)["content_hash"] = Corpus(chunks).content_hash
vars(corpus)["shelf"] = Shelf(Path(folder), corpus.content_hash)
searcher = TantivySearcher()
def search():
    print([hit.chunk.text for hit in asyncio.run(searcher.search("tide", corpus, limit=9))], flush=True)
search()
if mode == "reader":
    for line in sys.stdin:
        search()
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def begin(mode: str, *texts: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), mode, *texts]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_process_reads_on_while_another_follows_the_corpus(
    on_disk: OnDisk, found: Found, start: Start, tmp_path: Path
) -> None:
    reader = start("reader", "high tide", "low tide")
    assert hear(reader) == "['high tide', 'low tide']"
    for texts in (("low tide", "neap tide"), ("neap tide", "flood", "spring tide"), ("tide",)):
        assert found(on_disk(tmp_path, *texts), "tide") == [text for text in texts if "tide" in text]
        go_on(reader)
        assert hear(reader) == "['high tide', 'low tide']"


def test_a_killed_build_leaves_the_index_as_it_was(on_disk: OnDisk, found: Found, start: Start, tmp_path: Path) -> None:
    old = on_disk(tmp_path, "high tide", "flood")
    found(old, "tide")
    builder = start("builder", "a tide", "b tide", "wait")  # most of it is new, so it reads them all
    assert hear(builder) == "waiting"
    builder.kill()
    builder.communicate()
    assert found(unread(old, 0), "tide") == ["high tide"]
    assert found(on_disk(tmp_path, "a tide", "b tide", "wait"), "tide") == ["a tide", "b tide"]


def test_two_processes_that_need_an_index_at_once_make_it_once(start: Start) -> None:
    texts = ("high tide", "wait")
    first = start("builder", *texts)
    assert hear(first) == "waiting"
    second = start("builder", *texts)
    go_on(first)
    assert hear(first) == "['high tide']"
    assert hear(second) == "['high tide']", "it waited for the first, and read nothing itself"


def test_searches_of_one_process_follow_a_corpus_that_changes(on_disk: OnDisk, tmp_path: Path) -> None:
    searcher = TantivySearcher()
    corpora = [on_disk(tmp_path, *(f"tide {number}" for number in range(end))) for end in (1, 5, 3)]

    async def search() -> list[int]:
        hits = await asyncio.gather(*(searcher.search("tide", corpus, limit=9) for corpus in corpora * 3))
        return [len(found) for found in hits]

    assert asyncio.run(search()) == [1, 5, 3] * 3
