"""An index follows its files: whatever has happened to them and to it, it holds what a new one would."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError
from jackfield.retrieval import Chunk, Document, Where, chunk_values
from jackfield_documents import DocumentReader, file_signature
from jackfield_knowledge import Built, ChangedIndexError, KnowledgeIndex, Progress, index, index_names

READER = DocumentReader()


class StoppedError(Exception):
    """Ends a build where a test wants it; nobody cures it."""


class Counting(DocumentReader):
    """A reader that counts what it parses, and may stop the build."""

    def __init__(self, *, most: int | None = None) -> None:
        super().__init__(kept_chars=1)
        self.parsed: list[str] = []
        self._most = most

    async def read(self, path: Any) -> Document:
        if self._most is not None and len(self.parsed) >= self._most:
            raise StoppedError
        self.parsed.append(Path(path).name)
        return await super().read(path)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**texts: str) -> None:
    """Write Markdown files into `docs`, long enough ago that a change of them shows in their times."""
    for name, text in texts.items():
        path = Path("docs", f"{name}.md")
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        os.utime(path, (1_600_000_000, 1_600_000_000))


def build(*names: str, index: str = "notes", reader: DocumentReader = READER, **options: Any) -> Built:
    opened = KnowledgeIndex(index)
    try:
        return asyncio.run(opened.build(names, reader=reader, **options))
    finally:
        opened.close()


def add(*names: str) -> Built:
    return asyncio.run(KnowledgeIndex("notes").add(names, reader=READER))


def remove(*names: str) -> Built:
    return asyncio.run(KnowledgeIndex("notes").remove(names, reader=READER))


def held(index: str = "notes") -> tuple[Chunk, ...]:
    return tuple(KnowledgeIndex(index).corpus().chunks)


def texts(index: str = "notes") -> list[str]:
    return [chunk.text for chunk in held(index)]


def test_an_index_holds_the_chunks_of_its_files_with_page_and_headings() -> None:
    write(tides="# Tides\n\n## Spring\n\nHigh water.", moon="# Moon\n\nIt is far.")
    assert build("docs").read == 2
    moon, tides = held()
    assert (Path(tides.source).name, tides.headings, tides.title, tides.index) == ("tides.md", ("Tides",), "Tides", 0)
    assert moon.text == "# Moon\n\nIt is far."
    assert index_names() == ["notes"]
    facts = KnowledgeIndex("notes").facts()
    assert (facts.documents, facts.chunks, facts.tokens) == (2, 2, sum(chunk.tokens for chunk in held()))


def test_only_what_has_changed_is_parsed_again() -> None:
    write(a="one", b="two", c="three")
    build("docs")
    reader = Counting()
    assert build(reader=reader).unchanged == 3
    assert reader.parsed == []
    write(b="2")
    Path("docs/a.md").touch()
    Path("docs/c.md").unlink()
    built = build(reader=reader)
    assert (reader.parsed, built.read, built.unchanged, built.removed) == (["b.md"], 1, 1, 1)
    assert texts() == ["one", "2"]


def test_a_change_that_shows_in_nothing_but_the_content_is_seen() -> None:
    Path("docs/a.md").write_text("one")
    build("docs")
    before = Path("docs/a.md").stat()
    Path("docs/a.md").write_text("two")
    os.utime("docs/a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    build()
    assert texts() == ["two"]


def test_a_file_system_with_a_coarse_clock_does_not_hide_a_quick_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    def coarse(path: str) -> tuple[int, ...]:
        modified, changed, *rest = file_signature(path)
        tick = 2 * 10**9  # as FAT's
        return (modified // tick * tick, changed // tick * tick, *rest)

    monkeypatch.setattr(index, "file_signature", coarse)
    signatures = set()
    for number in range(10, 20):
        Path("docs/a.md").write_text(str(number))
        signatures.add(coarse("docs/a.md"))
        build("docs")
        assert texts() == [str(number)]
    assert len(signatures) < 10, "some rewrites did not show in the times"


def test_other_sizes_cut_everything_anew_and_stay() -> None:
    write(a="First sentence here. " * 40)
    assert build("docs").outdated == 0
    assert build(size_tokens=50, overlap_chars=0).outdated == 1
    cut = texts()
    assert len(cut) > 2
    write(b="other")
    assert build().outdated == 0
    assert texts()[: len(cut)] == cut


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_used() -> None:
    write(a="one")
    Path("bad.json").write_text("{ not json")
    Path("docs/b.pdf").write_bytes(b"%PDF-1.7 broken")
    built = build("docs", "bad.json")
    assert {Path(path).name: reason.partition(" ")[0] for path, reason in built.failed.items()} == {
        "b.pdf": "b.pdf",
        "bad.json": "bad.json",
    } or {Path(path).name for path in built.failed} == {"b.pdf"}
    assert "one" in texts()
    generation = KnowledgeIndex("notes").facts().generation
    assert build().failed == built.failed
    assert KnowledgeIndex("notes").facts().generation == generation  # nothing has changed


def test_a_file_that_becomes_readable_comes_in() -> None:
    Path("docs/a.md").write_bytes(b"\0\xff\xfe" * 9)
    write(b="two")
    build("docs")
    write(a="one")
    assert build().failed == {}
    assert texts() == ["one", "two"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such names")
def test_texts_titles_and_names_of_any_bytes_come_back_as_they_are() -> None:
    name = os.fsdecode(b"docs/\xff\n" + b"n" * 240 + b".md")
    Path(name).write_text("# T\u2028\n\nand more", encoding="utf-8")
    build("docs")
    assert build("docs").failed == {}
    (chunk,) = held()
    assert os.fsencode(chunk.source).endswith(b"n.md")
    expected = asyncio.run(READER.read(str(Path(name).absolute())))
    assert (chunk.title, chunk.source) == (expected.title, expected.source)


# --- names ---


def test_what_is_wrong_with_a_name_is_said_before_anything_changes() -> None:
    write(a="one")
    with pytest.raises(ConfigError, match=r"no file or folder has this name or matches this pattern: .*gone"):
        build("docs", "gone")
    with pytest.raises(ConfigError, match="only files, folders, patterns and URLs can"):
        build("index:other")
    with pytest.raises(ConfigError, match="not a valid index name"):
        KnowledgeIndex("../notes" if os.sep != "/" else "no tes")
    assert not KnowledgeIndex("notes").exists


def test_an_index_that_is_not_there_names_those_that_are() -> None:
    write(a="one")
    build("docs")
    with pytest.raises(
        ConfigError,
        match=r"no index named 'note'; available: notes\. To create it, run: jackfield index build note FILES",
    ):
        KnowledgeIndex("note").facts()
    with pytest.raises(ConfigError, match="no index named 'other'"):
        build(index="other")


def test_an_index_may_have_a_path_but_not_that_of_somebody_elses_folder() -> None:
    write(a="one")
    build("docs", index="./here.index")
    assert texts("./here.index") == ["one"]
    assert index_names() == []
    with pytest.raises(ConfigError, match="contains other files"):
        build("docs", index="./docs")
    assert [path.name for path in Path("docs").iterdir()] == ["a.md"]


# --- adding, removing, and a rebuild ---

FILES = ("a", "b", "sub/c", "sub/d", "sub/deep/e")
PLACES = ("docs", "docs/sub", "docs/sub/deep", "docs/*.md", "docs/**/[ce].md", *(f"docs/{name}.md" for name in FILES))
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(FILES), st.sampled_from(["one", "two", "# H\n\nthree " * 30])),
        st.tuples(st.just("delete"), st.sampled_from(FILES)),
        st.tuples(st.just("add"), st.sampled_from(PLACES)),
        st.tuples(st.just("remove"), st.sampled_from(PLACES)),
        st.tuples(st.just("stop"), st.integers(0, 3)),
    ),
    max_size=9,
)


def is_meant(file: str, place: str) -> bool:
    """A second way to say which files a place stands for."""
    name = f"docs/{file}.md"
    if place == "docs/*.md":
        return "/" not in file
    if place == "docs/**/[ce].md":
        return file[-1] in "ce"
    return name == place or name.startswith(place + "/")


def written(file: str, text: str) -> None:
    path = Path(f"docs/{file}.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@given(operations=OPERATIONS)
def test_adding_and_removing_equals_a_rebuild(tmp_path_factory: Any, operations: list[tuple[Any, ...]]) -> None:
    folder = tmp_path_factory.mktemp("case")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        patch.chdir(folder)
        written("a", "one")
        build("docs/a.md")
        last = dict.fromkeys(FILES, False) | {"a": True}
        for operation in operations:
            match operation:
                case "write", file, text:
                    written(file, text)
                case "delete", file:
                    Path(f"docs/{file}.md").unlink(missing_ok=True)
                case "add", place:
                    try:
                        add(place)
                    except ConfigError:  # there is nothing of that name, and nothing changes
                        continue
                    last.update({file: True for file in FILES if is_meant(file, place)})
                case "remove", place:
                    try:
                        remove(place)
                    except ConfigError:  # nothing in the index has that name, and nothing changes
                        continue
                    last.update({file: False for file in FILES if is_meant(file, place)})
                case "stop", number:
                    with pytest.raises(StoppedError) if stops(number) else pytest.MonkeyPatch.context():
                        build(reader=Counting(most=number))
        build()
        there = [f"docs/{file}.md" for file in FILES if last[file] and Path(f"docs/{file}.md").exists()]
        assert sorted(one.location for one in KnowledgeIndex("notes").documents()) == sorted(
            str(Path(name).absolute()) for name in there
        )
        if there:
            build(*there, index="fresh")
            assert held() == held("fresh")
            assert KnowledgeIndex("notes").facts().content == KnowledgeIndex("fresh").facts().content


def stops(number: int) -> bool:
    """Whether a build that may parse so many files will be stopped."""
    dry = Counting()
    shutil.copytree(KnowledgeIndex("notes").folder, "dry.index", dirs_exist_ok=True)
    build(index="./dry.index", reader=dry)
    shutil.rmtree("dry.index")
    return len(dry.parsed) > number


def test_a_build_that_was_stopped_leaves_the_old_index_and_the_next_goes_on() -> None:
    write(a="one", b="two")
    build("docs")
    write(a="1", **{f"c{number}": str(number) for number in range(8)})
    Path("docs/b.md").unlink()
    with pytest.raises(StoppedError):
        build(reader=Counting(most=4))
    assert texts() == ["one", "two"]
    reader = Counting()
    build(reader=reader)
    assert 5 <= len(reader.parsed) < 9  # what was being read when it stopped, beside the four, is read again
    assert texts() == ["1", *map(str, range(8))]


def test_files_that_only_a_stopped_build_has_seen_change_nothing() -> None:
    write(a="one")
    build("docs")
    before = KnowledgeIndex("notes").facts()
    write(**{f"c{number}": str(number) for number in range(8)})

    def stop(progress: Progress) -> None:
        if progress.done == 5:
            raise StoppedError

    with pytest.raises(StoppedError):
        build(on_progress=stop)
    for path in Path("docs").glob("c*.md"):
        path.unlink()
    assert build().removed >= 4
    assert KnowledgeIndex("notes").facts() == before


# --- readers ---


def test_who_has_opened_it_goes_on_reading_what_was_there_for_one_change() -> None:
    write(a="one", b="two")
    build("docs")
    before = KnowledgeIndex("notes").corpus()
    write(a="1")
    build()
    assert [chunk.text for chunk in before.chunks] == ["one", "two"]
    assert texts() == ["1", "two"]
    write(a="I")
    build()
    with pytest.raises(ChangedIndexError):
        list(KnowledgeIndex("notes").corpus().chunks), before.chunks[0]


def test_a_corpus_stays_the_same_until_something_changes() -> None:
    write(a="one")
    build("docs")
    index = KnowledgeIndex("notes")
    corpus = index.corpus()
    build()
    assert index.corpus() is corpus
    write(a="two")
    build()
    assert index.corpus() is not corpus
    assert index.corpus().content_hash != corpus.content_hash


def test_chunks_can_be_counted_sliced_and_looked_up_like_a_tuple() -> None:
    write(**{name: f"text {name}" for name in "abcde"})
    build("docs")
    write(b="text b, and longer")  # it is stored behind the others
    build()
    chunks = KnowledgeIndex("notes").corpus().chunks
    whole = tuple(chunks)
    assert chunks.ids() == [chunk.id for chunk in whole]  # type: ignore[attr-defined]
    assert [chunks[n] for n in range(-5, 5)] == [whole[n] for n in range(-5, 5)]
    assert chunks[1:4] == whole[1:4]
    assert chunks[::-2] == whole[::-2]
    assert (len(chunks), chunks[4] in chunks) == (5, True)
    with pytest.raises(IndexError):
        chunks[5]


# --- files that are not whole, or not ours ---


def damage(name: str) -> Callable[[Callable[[Path], None]], None]:
    def decorate(work: Callable[[Path], None]) -> None:
        DAMAGES[name] = work

    return decorate


DAMAGES: dict[str, Callable[[Path], None]] = {}


@damage("cut short")
def _(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:5000])


@damage("cut in half")
def _(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@damage("without its last page")
def _(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4096])


@damage("something else")
def _(file: Path) -> None:
    file.write_bytes(b"It was a dark and stormy night. " * 300)


@damage("of a newer version")
def _(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")


@damage("of another program")
def _(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA application_id = 7")


@pytest.mark.parametrize("name", DAMAGES)
def test_a_file_that_cannot_be_used_is_refused_and_left_as_it_is(name: str) -> None:
    write(a="one " * 3000)
    build("docs")
    file = KnowledgeIndex("notes").folder / "index.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # all of it in the one file
    connection.close()
    DAMAGES[name](file)
    before = file.read_bytes()
    wording = {
        "of a newer version": "it has version 99.*Delete the folder .* and rebuild the index",
        "of another program": "database of another program",
    }
    with pytest.raises(ConfigError, match=rf"index 'notes' cannot be used.*{wording.get(name, '')}") as raised:
        list(KnowledgeIndex("notes").corpus().chunks)
    assert ("Delete the folder" in str(raised.value)) == (name == "of a newer version")
    with pytest.raises(ConfigError, match="index 'notes' cannot be used"):
        build("docs")
    assert file.read_bytes() == before


def test_a_lock_that_is_another_programs_file_is_refused_and_left_as_it_is() -> None:
    write(a="one")
    build("docs")
    lock = KnowledgeIndex("notes").folder / "building.sqlite"
    for file in lock.parent.glob("building.sqlite*"):
        file.unlink()
    lock.write_text("a diary " * 500)
    with pytest.raises(ConfigError, match="index 'notes' cannot be used"):
        build("docs")
    assert lock.read_text() == "a diary " * 500


class FailingDrive(sqlite3.Connection):
    """A connection to a file on a drive that fails when a transaction begins."""

    def execute(self, sql: str, /, *values: Any) -> sqlite3.Cursor:
        if sql == "BEGIN IMMEDIATE":
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *values)


def test_a_lock_that_cannot_be_taken_is_not_said_to_be_another_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a="one")
    build("docs")

    def connect(path: Path, *, connect: Callable[..., sqlite3.Connection] = sqlite3.connect, **options: Any) -> object:
        fails = path.name == "building.sqlite"
        return connect(path, factory=FailingDrive if fails else sqlite3.Connection, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(ConfigError, match=r"index 'notes' cannot be used \(disk I/O error\)"):
        build("docs")


def test_a_full_disk_is_no_reason_to_delete_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a="one")
    build("docs")
    before = texts()

    def connect(
        path: Path, *, connect: Callable[..., sqlite3.Connection] = sqlite3.connect, **options: Any
    ) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.execute("PRAGMA max_page_count = 1")  # it cannot grow
        return connection

    write(b="two " * 10_000)
    with monkeypatch.context() as full:
        full.setattr(sqlite3, "connect", connect)
        with pytest.raises(ConfigError, match=r"free some disk space; its content is kept$"):
            build("docs")
    assert texts() == before
    assert build("docs").read == 1


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_what_is_in_it_is_for_its_user_alone() -> None:
    write(a="one")
    build("docs")
    folder = KnowledgeIndex("notes").folder
    modes: Mapping[str, int] = {path.name: path.stat().st_mode & 0o077 for path in [folder, *folder.iterdir()]}
    assert set(modes.values()) == {0}


# --- files and processes that get in the way ---


class Hindered(DocumentReader):
    """A reader that does something to a file just before it is read."""

    def __init__(self, hinder: Callable[[Path], object]) -> None:
        super().__init__()
        self._hinder = hinder

    async def read(self, path: Any) -> Document:
        if Path(path).name == "b.md":
            self._hinder(Path(path))
        return await super().read(path)


@pytest.mark.parametrize(
    ("hinder", "reason"),
    [
        (Path.unlink, "b.md does not exist"),
        (lambda path: path.write_text("other"), "b.md changed while it was being read: rebuild the index"),
        (lambda path: path.write_text(""), "b.md is empty"),
    ],
)
def test_a_file_that_vanishes_or_changes_while_it_is_read_is_named_and_comes_in_next_time(
    hinder: Callable[[Path], object], reason: str
) -> None:
    write(a="one", b="two", c="three")
    built = build("docs", reader=Hindered(hinder))
    assert list(built.failed.values()) == [next(iter(built.failed.values()))]
    assert reason in next(iter(built.failed.values()))
    assert texts() == ["one", "three"]
    write(b="2")
    assert build().failed == {}
    assert texts() == ["one", "2", "three"]


def test_an_index_that_another_process_holds_is_an_error_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a="one")
    build("docs")
    monkeypatch.setattr("jackfield_knowledge.store._PATIENCE_S", 0.05)
    write(a="two")
    with contextlib.closing(
        sqlite3.connect(KnowledgeIndex("notes").folder / "index.sqlite", isolation_level=None)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        assert texts() == ["one"]  # reading goes on
        with pytest.raises(ConfigError, match="index 'notes' is in use by another process: try again"):
            build()
    build()
    assert texts() == ["two"]


# --- what it is for ---


def test_an_index_knows_which_searchers_it_was_built_for(home: Path) -> None:
    write(a="Tides.")
    build("docs")
    assert KnowledgeIndex("notes").searchers() == {}
    wanted = {"keyword_search": {}, "vector_search": {"embedding_model": "openai:m", "embedder_settings": {"a": [1]}}}
    build("docs", searchers=wanted)
    build()
    add("docs")
    assert KnowledgeIndex("notes").searchers() == wanted
    assert KnowledgeIndex("notes").facts().documents == 1
    build("docs", searchers={})
    assert KnowledgeIndex("notes").searchers() == {}


@pytest.mark.parametrize("wrong", [{"api_key": "sk-secret"}, {"deep": [{"password": "sk-secret"}]}, {"path": Path()}])
def test_no_secret_is_kept_and_nothing_that_is_not_json(home: Path, wrong: dict[str, Any]) -> None:
    write(a="Tides.")
    with pytest.raises(ConfigError, match=r"searcher 'vector_search': (an index|its settings cannot)") as raised:
        build("docs", searchers={"vector_search": wrong})
    assert "sk-secret" not in str(raised.value)
    assert not KnowledgeIndex("notes").exists


# --- metadata ---


def selected(where: dict[str, Any]) -> list[str]:
    corpus = KnowledgeIndex("notes").corpus()
    chunks = [corpus.chunks[number] for number in corpus.select(Where.parse(where)).numbers]
    assert chunks == [chunk for chunk in corpus.chunks if Where.parse(where).matches(chunk_values(chunk))]
    return sorted({Path(chunk.source).stem for chunk in chunks})


def test_values_that_people_give_outlive_changes_of_the_files() -> None:
    write(a="# One\n\none", b="# Two\n\ntwo")
    build("docs")
    index = KnowledgeIndex("notes")
    assert asyncio.run(index.set_metadata({"year": 2024}, where={"name": "a.*"})) == 1
    assert asyncio.run(index.set_metadata({"old": True}, where={"year": {"gte": 2024}})) == 1
    assert (selected({"year": 2024}), selected({"old": True}), selected({"year": {"not": 2024}})) == (
        ["a"],
        ["a"],
        ["b"],
    )
    write(a="# One\n\none and more")
    assert build().read == 1
    assert selected({"year": 2024, "heading": "one"}) == ["a"]
    asyncio.run(index.set_metadata({"year": 2025}, where={"name": "a.*"}))
    assert (selected({"year": 2025}), selected({"year": 2024})) == (["a"], [])


def test_a_filter_takes_documents_out_for_good() -> None:
    write(a="# One\n\none", b="# Two\n\ntwo")
    build("docs")
    asyncio.run(KnowledgeIndex("notes").remove(where={"title": "One"}, reader=READER))
    build()
    assert [Path(one.location).stem for one in KnowledgeIndex("notes").documents()] == ["b"]


@pytest.mark.parametrize("where", [{"yaer": 1}, {"title": 1}, {"page": 3}, {"heading": "x"}])
def test_documents_are_selected_by_values_of_whole_documents(where: dict[str, Any]) -> None:
    write(a="# One\n\none")
    build("docs")
    with pytest.raises(ConfigError, match="where"):
        KnowledgeIndex("notes").select(where)
