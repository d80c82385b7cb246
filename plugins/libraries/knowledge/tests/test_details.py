"""Counts, names and rules of an index: each at its boundary, and none lost or doubled by a second change."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from email.message import EmailMessage
from importlib.metadata import version
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackfield.errors import ConfigError, DocParserError
from jackfield.plugins import Row, default_host
from jackfield.retrieval import Corpus, Document, Where, chunk_values
from jackfield_documents import DocumentReader, chunk_document, file_signature
from jackfield_knowledge import Built, ChangedIndexError, KnowledgeIndex, Progress, index_names
from jackfield_knowledge.store import Step

READER = DocumentReader()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**texts: str) -> None:
    """Write Markdown files into `docs`, long enough ago that a change of them shows in their times."""
    for name, text in texts.items():
        path = Path("docs", f"{name}.md")
        path.write_text(text, encoding="utf-8")
        os.utime(path, (1_600_000_000, 1_600_000_000))


@pytest.fixture
def notes() -> KnowledgeIndex:
    return KnowledgeIndex("notes")


def build(index: KnowledgeIndex, *names: str, reader: DocumentReader = READER, **options: Any) -> Built:
    return asyncio.run(index.build(names, reader=reader, **options))


def located(index: KnowledgeIndex) -> list[str]:
    return [Path(one.location).name for one in index.documents()]


# --- counts ---


def test_a_build_counts_each_file_once(notes: KnowledgeIndex) -> None:
    write(a="one", b="two", c="three")
    Path("docs/bad.pdf").write_bytes(b"%PDF-1.7 broken")
    seen: list[Progress] = []
    first = build(notes, "docs", on_progress=seen.append)
    assert (first.read, first.unchanged, first.removed, len(first.failed)) == (3, 0, 0, 1)
    assert sorted((one.done, one.total) for one in seen) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert sorted((Path(one.location).name, one.is_new) for one in seen) == [
        ("a.md", True),
        ("b.md", True),
        ("bad.pdf", False),
        ("c.md", True),
    ]
    seen.clear()
    write(b="2")
    Path("docs/bad.pdf").unlink()
    second = build(notes, on_progress=seen.append)
    assert (second.read, second.unchanged, second.removed, second.failed) == (1, 2, 1, {})


def test_files_that_have_not_changed_are_counted_at_once(
    notes: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_knowledge.index.is_settled", lambda _: True)
    write(a="one", b="two", c="three")
    build(notes, "docs")
    write(b="2, and longer")
    seen: list[Progress] = []
    build(notes, on_progress=seen.append)
    assert [(one.done, one.total, Path(one.location).name) for one in seen] == [(3, 3, "b.md")]


class Noting(DocumentReader):
    """Notes the files whose content it looks at."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at: list[str] = []

    async def fingerprint(self, path: Any) -> Any:
        self.looked_at.append(Path(path).name)
        return await super().fingerprint(path)


class WithOthers(Noting):
    """A reader with another set of parsers."""

    def parsers(self) -> str:
        return "others"


def test_other_parsers_look_at_each_file_again(notes: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_knowledge.index.is_settled", lambda _: True)
    write(a="one")
    build(notes, "docs")
    looks = []
    for reader in (Noting(), WithOthers(), WithOthers(), Noting()):
        build(notes, reader=reader)
        looks.append(len(reader.looked_at))
    assert looks == [0, 1, 0, 1]


def test_other_parsers_read_only_documents_again_that_have_files_in_them(notes: KnowledgeIndex) -> None:
    mail = EmailMessage()
    mail["Subject"] = "Tea"
    mail.set_content("Green tea is brewed with hot water.")
    Path("docs/plain.eml").write_bytes(bytes(mail))
    mail.add_attachment("A pot has one spout.", filename="pot.txt")
    Path("docs/attached.eml").write_bytes(bytes(mail))
    assert build(notes, "docs").read == 2
    again = build(notes, reader=WithOthers())
    assert (again.read, again.outdated, again.unchanged) == (1, 1, 1)
    assert build(notes, reader=WithOthers()).read == 0


def why_outdated(index: KnowledgeIndex, **versions: str) -> str:
    """Ask with these versions of parsers in place of the installed ones."""

    def rows(kind: str) -> list[Row]:
        real = default_host().policy.rows(kind)
        return [
            row._replace(version=versions.get(row.distribution.removeprefix("jackfield-"), row.version)) for row in real
        ]

    host: Any = SimpleNamespace(policy=SimpleNamespace(rows=rows))
    return index.why_outdated(host)


def test_an_index_is_outdated_if_a_build_would_read_unchanged_files_again(
    notes: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(a="one")
    Path("docs/bad.pdf").write_bytes(b"%PDF-1.7 broken")
    build(notes, "docs")
    assert why_outdated(notes) == ""
    assert why_outdated(notes, pdf="9.9") == "", "no document was read by it"
    host: Any = SimpleNamespace(policy=SimpleNamespace(rows=lambda _: []))
    assert notes.why_outdated(host) == "", "a parser that is no longer installed does not count"
    now = version("jackfield-text")
    told = (
        "index 'notes' is outdated: jackfield-text/markdown {} is now 9.9. "
        "To update it, run: jackfield index build notes"
    )
    assert why_outdated(notes, text="9.9") == told.format(now)
    monkeypatch.setattr("jackfield_knowledge.index.CUT_VERSION", "x")
    assert "texts are now split differently" in why_outdated(notes)
    assert build(notes).outdated == 1
    assert why_outdated(notes) == ""


@pytest.mark.parametrize("changed", ["size_tokens", "overlap_chars", "library", "cut"])
@pytest.mark.parametrize("has_settled", [True, False])
def test_another_way_to_split_texts_reads_everything_again(
    notes: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch, changed: str, has_settled: bool
) -> None:
    monkeypatch.setattr("jackfield_knowledge.index.is_settled", lambda _: has_settled)
    write(a="one", b="two")
    build(notes, "docs")
    sizes: dict[str, Any] = {changed: 77} if changed in ("size_tokens", "overlap_chars") else {}
    if changed == "library":
        versions = {"jackfield-documents": "9.9"}
        monkeypatch.setattr(
            "jackfield_knowledge.index.metadata.version", lambda name: versions.get(name) or version(name)
        )
    elif changed == "cut":
        monkeypatch.setattr("jackfield_knowledge.index.CUT_VERSION", "x")
    assert bool(why_outdated(notes)) is not bool(sizes), "only a build knows the new sizes"
    assert [(built.read, built.outdated) for built in (build(notes, **sizes), build(notes))] == [(2, 2), (0, 0)]
    assert why_outdated(notes) == ""


class StoppedError(Exception):
    """Ends a build."""


class Stopping(DocumentReader):
    """Ends the build at the first file, and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0

    async def read(self, path: Any) -> Document:
        self.begun += 1
        if self.begun == 1:
            raise StoppedError
        return await super().read(path)


def test_once_a_build_has_failed_no_further_file_is_begun(notes: KnowledgeIndex) -> None:
    write(**{f"note{number}": str(number) for number in range(200)})
    reader = Stopping()
    with pytest.raises(StoppedError):
        build(notes, "docs", reader=reader)
    assert reader.begun < 200


def test_a_file_that_was_only_touched_is_looked_at_once(notes: KnowledgeIndex) -> None:
    write(a="one")
    build(notes, "docs")
    os.utime("docs/a.md", (1_500_000_000, 1_500_000_000))
    reader = Noting()
    # The time of the change of the inode is new, so the file is looked at until that has settled.
    build(notes, reader=reader)
    assert reader.looked_at == ["a.md"]
    assert notes.documents()[0].parsers == reader.parsers()


def test_with_other_parsers_a_file_that_is_unchanged_is_looked_at_once(notes: KnowledgeIndex) -> None:
    write(a="one")
    build(notes, "docs")
    reader = WithOthers()
    build(notes, reader=reader)
    assert [one.parsers for one in notes.documents()] == [reader.parsers()]


class Late(DocumentReader):
    """The file changes after each look at its content."""

    async def fingerprint(self, path: Any) -> Any:
        mark = await super().fingerprint(path)
        write(a="two, and longer")
        return mark


def test_a_file_that_changes_right_after_a_look_is_looked_at_again(
    notes: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jackfield_knowledge.index.is_settled", lambda _: True)
    write(a="one")
    build(notes, "docs")
    os.utime("docs/a.md", (1_500_000_000, 1_500_000_000))
    assert build(notes, reader=Late()).unchanged == 1
    assert build(notes).read == 1
    assert [chunk.text for chunk in notes.corpus().chunks] == ["two, and longer"]


class Failing(DocumentReader):
    """Reads nothing, and says why."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    async def read(self, path: Any) -> Document:
        raise DocParserError(self._reason)


def test_a_file_whose_error_changes_has_the_new_one(notes: KnowledgeIndex) -> None:
    write(a="one")
    for reason in ("locked", "locked", "torn"):
        built = build(notes, "docs", reader=Failing(reason))
        assert list(built.failed.values()) == [reason]
        assert [one.error for one in notes.documents()] == [reason]


# --- names ---


@pytest.mark.parametrize(
    ("names", "files"),
    [((), "bc"), (["docs/a.md"], "a"), (["docs/b.md"], "b"), (["docs"], "abc"), (["docs/[ac].md", "docs/c.md"], "ac")],
)
def test_a_build_of_names_holds_exactly_their_files(notes: KnowledgeIndex, names: list[str], files: str) -> None:
    write(a="one", b="two", c="three")
    build(notes, "docs")
    asyncio.run(notes.remove(["docs/a.md"], reader=READER))
    build(notes, *names)
    assert located(notes) == [f"{name}.md" for name in files]
    if names:
        assert notes.names() == [Step(os.path.abspath(name), True) for name in names]  # noqa: PTH100 - as they are named


def test_a_name_is_kept_once_and_absolute(notes: KnowledgeIndex, home: Path) -> None:
    write(a="one")
    build(notes, "docs", "./docs", "~/docs", str(home / "docs"))
    assert notes.names() == [Step(str(home / "docs"), True)]


def test_names_that_decide_nothing_are_forgotten(notes: KnowledgeIndex, home: Path) -> None:
    write(a="one", b="two")
    build(notes, "docs")
    asyncio.run(notes.remove(["docs/a.md"], reader=READER))
    assert notes.names() == [Step(str(home / "docs"), True), Step(str(home / "docs/a.md"), False)]
    asyncio.run(notes.add(["docs/a.md"], reader=READER))
    assert notes.names()[1:] == [Step(str(home / "docs/a.md"), True)]
    asyncio.run(notes.remove(["docs"], reader=READER))
    assert (notes.names(), notes.documents()) == ([], [])


@pytest.mark.parametrize(
    "name", ["docs", "docs/*.md", "docs/a.md", "docs/deleted.md", "docs/new.md", "docs/removed.md"]
)
def test_a_name_in_the_index_can_be_removed(notes: KnowledgeIndex, name: str) -> None:
    write(a="one", deleted="two", removed="three")
    build(notes, "docs")
    asyncio.run(notes.remove(["docs/removed.md"], reader=READER))
    Path("docs/deleted.md").unlink()
    write(new="four")
    asyncio.run(notes.remove([name], reader=READER))
    assert Path(name).name not in located(notes)


@pytest.mark.parametrize("name", ["doc", "docs/*.txt", "docs/aa.md", "elsewhere/a.md", "docs2/b.md"])
def test_a_name_that_is_not_in_the_index_is_not_recorded(notes: KnowledgeIndex, home: Path, name: str) -> None:
    write(a="one")
    (home / "docs2").mkdir()
    (home / "docs2/b.md").write_text("two")
    build(notes, "docs")
    with pytest.raises(ConfigError, match=rf"^index 'notes' does not contain {re.escape(name)}; .*docs/a\.md"):
        asyncio.run(notes.remove(["docs/a.md", name], reader=READER))
    assert notes.names() == [Step(str(home / "docs"), True)]
    assert located(notes) == ["a.md"]


def test_a_folder_is_no_folder_whose_name_begins_like_it(notes: KnowledgeIndex, home: Path) -> None:
    write(a="one")
    (home / "docs2").mkdir()
    (home / "docs2/b.md").write_text("two")
    build(notes, "docs", "docs2")
    asyncio.run(notes.remove(["docs"], reader=READER))
    assert located(notes) == ["b.md"]


def test_a_file_that_folders_leave_out_comes_in_by_its_name_and_goes_out_by_its_folder(notes: KnowledgeIndex) -> None:
    write(a="one", draft="two", other="three")

    def why_not(path: str) -> str:
        return "a draft" if Path(path).stem in ("draft", "other") else ""

    built = build(notes, "docs", "docs/draft.md", why_not=why_not)
    assert located(notes) == ["a.md", "draft.md"]
    assert [Path(one.path).name for one in built.skipped] == ["other.md"]
    asyncio.run(notes.remove(["docs/*.md"], reader=READER, why_not=why_not))
    assert located(notes) == []


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [("a" * 100, True), ("a" * 101, False), ("9a.b-c_d", True), ("", False), (".a", False), ("-a", False),
     ("_a", False), ("ä", False), ("a b", False), ("a\n", False)],
)  # fmt: skip
def test_a_name_has_at_most_a_hundred_letters_digits_and_signs(name: str, is_valid: bool) -> None:
    if is_valid:
        assert KnowledgeIndex(name).folder.name == name
        return
    with pytest.raises(ConfigError, match="not a valid index name"):
        KnowledgeIndex(name)


def test_only_folders_with_an_index_are_listed(notes: KnowledgeIndex) -> None:
    assert index_names() == []
    write(a="one")
    build(KnowledgeIndex("other"), "docs")
    build(notes, "docs")
    (notes.folder.parent / "empty").mkdir()
    (notes.folder.parent / "file").touch()
    assert index_names() == ["notes", "other"]


def test_nothing_is_added_if_one_of_the_names_stands_for_nothing(notes: KnowledgeIndex) -> None:
    write(a="one", b="two")
    build(notes, "docs/a.md")
    before = notes.names()
    with pytest.raises(ConfigError, match="no file or folder has this name or matches this pattern:"):
        asyncio.run(notes.add(["docs/b.md", "docs/gone.md"], reader=READER))
    assert (notes.names(), located(notes)) == (before, ["a.md"])


def test_names_and_a_filter_take_out_what_either_selects(notes: KnowledgeIndex) -> None:
    write(a="one", b="two", c="three")
    build(notes, "docs")
    asyncio.run(notes.remove(["docs/a.md"], where={"name": "b.md"}, reader=READER))
    assert located(notes) == ["c.md"]


def test_a_folder_with_the_lock_of_a_build_that_was_killed_becomes_an_index(notes: KnowledgeIndex) -> None:
    write(a="one")
    notes.folder.mkdir(parents=True)
    (notes.folder / "building.sqlite").touch()
    assert build(notes, "docs").read == 1


# --- sizes, rules and values ---


@pytest.mark.parametrize(
    "where",
    [
        {"title": "Tides"},
        {"title": {"not": "Tides"}},
        {"name": "b.md"},
        {"author": "Ada"},
        {"heading": "Spring"},
        {"title": "Tides", "heading": "Spring"},
        {"author": {"not": "Ada"}, "heading": "Spring"},
    ],
)
def test_a_filter_selects_the_same_chunks_on_disk_as_in_memory(notes: KnowledgeIndex, where: dict[str, Any]) -> None:
    text = "---\ntitle: {}\n---\n\n# Spring\n\nHigh water.\n\n# Neap\n\nLow water.\n"
    write(a=text.format("Tides"), b=text.format("Moons"), c=text.format("Tides"))
    build(notes, "docs", size_tokens=8, overlap_chars=0)
    for name, author in (("a.md", "Ada"), ("b.md", "Ada"), ("c.md", "Bob")):
        set_values(notes, {"author": author}, name=name)
    corpus, parsed = notes.corpus(), Where.parse(where)
    chunks = list(corpus.chunks)
    selected = [number for number, chunk in enumerate(chunks) if parsed.matches(chunk_values(chunk))]
    assert corpus.numbers_of(parsed) == selected
    assert 0 < len(selected) < len(chunks)


def test_chunks_are_filtered_by_keys_of_documents_that_have_chunks_only(notes: KnowledgeIndex) -> None:
    write(a="one", b="two")
    build(notes, "docs")
    set_values(notes, {"team": "tides"}, name="a.md")
    assert "team" in notes.corpus().metadata_kinds
    write(a="locked")
    build(notes, reader=Failing("locked"))
    assert "team" not in notes.corpus().metadata_kinds


@pytest.mark.parametrize("overlap", [0, 1])
def test_sizes_stay_until_others_are_named(notes: KnowledgeIndex, overlap: int) -> None:
    write(a="one")
    build(notes, "docs")
    assert (notes.facts().size_tokens, notes.facts().overlap_chars) == (500, 150)
    build(notes, overlap_chars=overlap)
    build(notes, size_tokens=50)
    assert (notes.facts().size_tokens, notes.facts().overlap_chars) == (50, overlap)


def test_a_chunk_comes_back_with_all_that_it_had(notes: KnowledgeIndex, home: Path) -> None:
    write(a="# Head\n\n" + "First sentence here. " * 60)
    build(notes, "docs", size_tokens=50, overlap_chars=60)
    document = asyncio.run(READER.read(str(home / "docs/a.md")))
    expected = chunk_document(document, size_tokens=50, overlap_chars=60)
    names = ("id", "text", "index", "tokens", "page", "headings", "title", "overlap", "joint", "source")
    chunks = list(notes.corpus().chunks)
    assert [[getattr(one, name) for name in names] for one in chunks] == [
        [getattr(one, name) for name in names] for one in expected
    ]
    assert any(one.overlap for one in chunks)


def values(index: KnowledgeIndex) -> list[dict[str, Any]]:
    rules = index.facts().metadata_rules
    return [dict(one.values(rules)) for one in index.documents()]


def set_values(index: KnowledgeIndex, given: dict[str, Any], **where: Any) -> int:
    return asyncio.run(index.set_metadata(given, where=where))


def test_an_open_index_has_new_values_at_once_and_the_indexes_of_searchers_stay(notes: KnowledgeIndex) -> None:
    write(a="one", b="two")
    build(notes, "docs")
    before = notes.corpus()
    assert notes.corpus() is before
    set_values(notes, {"day": date(2024, 2, 29)}, name="a.md")
    after = notes.corpus()
    assert [dict(chunk.metadata).get("day") for chunk in after.chunks] == ["2024-02-29", None]
    assert [chunk.metadata.get("day") for chunk in before.chunks] == [None, None]
    assert (after.content_hash, after.shelf.content) == (before.content_hash, before.content_hash)
    assert (after == before, hash(after), after == Corpus(tuple(after.chunks))) == (True, hash(before), False)
    set_values(notes, {"kind": "leap"}, day=date(2024, 2, 29))
    assert [chunk.metadata.get("kind") for chunk in notes.corpus().chunks] == ["leap", None]


def test_a_chunk_has_its_number_and_one_of_elsewhere_has_none(notes: KnowledgeIndex) -> None:
    write(a="First sentence here. " * 40, b="", c="Second sentence here. " * 40)
    build(notes, "docs", size_tokens=50, overlap_chars=0)
    corpus = notes.corpus()
    chunks = list(corpus.chunks)
    assert [corpus.number_of(chunk) for chunk in chunks] == list(range(len(chunks)))
    assert {corpus.count_chunks(chunk.source) for chunk in chunks} == {len(chunks) // 2}
    last = chunks[len(chunks) // 2 - 1]
    assert corpus.number_of(replace(last, index=last.index + 1)) is None, "it is the first one of the next document"
    assert corpus.number_of(replace(last, source="/srv/x.md")) is None
    assert (corpus.count_chunks("/srv/x.md"), corpus.count_chunks(str(Path("docs/b.md").absolute()))) == (0, 0)


def test_a_new_title_or_another_error_is_another_content(notes: KnowledgeIndex) -> None:
    contents = set()
    for text in ("---\ntitle: One\n---\n\nSame.", "---\ntitle: Two\n---\n\nSame."):
        write(a=text)
        build(notes, "docs")
        contents.add(notes.facts().content)
    assert {chunk.title for chunk in notes.corpus().chunks} == {"Two"}
    for reason in ("locked", "torn"):
        write(a=reason)
        build(notes, "docs", reader=Failing(reason))
        contents.add(notes.facts().content)
    assert len(contents) == 4


def test_a_reader_of_two_generations_back_is_refused_however_it_reads(notes: KnowledgeIndex) -> None:
    write(a="one")
    build(notes, "docs")
    first = notes.corpus()
    for number in (1, 2):
        assert (first.chunks.ids(), len(first.chunks.documents)) == ([next(iter(first.chunks)).id], 1)  # type: ignore[attr-defined]
        write(a="one", **{f"other{number}": "two"})
        build(notes)
        vars(first.chunks).pop("documents", None)
    for read in (first.chunks.ids, lambda: first.chunks.documents):  # type: ignore[attr-defined]
        with pytest.raises(ChangedIndexError, match="has changed twice since it was opened: reopen it"):
            read()


@pytest.mark.parametrize(
    "read",
    [
        lambda corpus: corpus.chunks[0],
        lambda corpus: list(corpus.chunks),
        lambda corpus: corpus.numbers_of(Where.parse({"heading": "One"})),
    ],
    ids=["one", "all", "positions"],
)
def test_a_reader_gets_no_chunks_of_another_generation(notes: KnowledgeIndex, read: Callable[[Any], object]) -> None:
    write(a="# One", b="# Two")
    build(notes, "docs")
    corpus = notes.corpus()
    before = read(corpus)
    write(a="# 1")
    build(notes)
    assert read(corpus) == before
    write(a="# I")
    build(notes)
    with pytest.raises(ChangedIndexError):
        read(corpus)


def test_later_values_win_and_earlier_ones_of_other_keys_stay(notes: KnowledgeIndex) -> None:
    write(a="one", b="two")
    build(notes, "docs")
    where = {"name": "a.md"}
    assert set_values(notes, {"team": "tides", "year": 1999}, **where) == 1
    assert set_values(notes, {"team": ["moon", "sun"]}, **where) == 1
    assert values(notes)[0]["team"] == ("moon", "sun")
    assert values(notes)[0]["year"] == 1999
    assert "team" not in values(notes)[1]
    assert set_values(notes, {"team": "x", "year": 1}, **where) == 1
    assert len(notes.facts().metadata_rules) == 1, "rules that decide nothing are forgotten"


def test_a_filter_that_does_not_fit_the_documents_is_refused(notes: KnowledgeIndex) -> None:
    write(a="one")
    build(notes, "docs")
    for of_a_part in ({"page": 1}, {"heading": "x"}, {"name": "a.md", "page": 1}):
        with pytest.raises(ConfigError, match="page and heading select parts of documents"):
            notes.select(of_a_part)
    set_values(notes, {"year": 1999}, name="a.md")
    with pytest.raises(ConfigError, match="year"):
        notes.select({"year": {">=": "a word"}})


def test_a_fingerprint_follows_files_and_outlives_one_that_is_gone(
    notes: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(a="one", b="two")
    build(notes, "docs")
    first = notes.fingerprint()
    assert notes.fingerprint() == first
    write(a="other")
    second = notes.fingerprint()
    assert second != first

    def gone(path: str) -> Any:
        Path(path).unlink(missing_ok=True)
        return file_signature(path)

    with monkeypatch.context() as patch:
        patch.setattr("jackfield_knowledge.index.file_signature", gone)
        third = notes.fingerprint()
    assert third not in (first, second)
    assert notes.fingerprint() == third, "a file that goes during a look counts like one that went before it"


def test_a_fingerprint_does_not_depend_on_the_order_of_names(notes: KnowledgeIndex) -> None:
    write(a="one", b="two", c="three")
    fingerprints = set()
    for order in permutations(["docs/a.md", "docs/b.md", "docs/c.md"]):
        build(notes, *order)
        fingerprints.add(notes.fingerprint())
    assert len(fingerprints) == 1


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_folder_of_an_index_is_its_users_alone(notes: KnowledgeIndex) -> None:
    write(a="one")
    before = os.umask(0)
    try:
        build(notes, "docs")
    finally:
        os.umask(before)
    assert notes.folder.stat().st_mode & 0o077 == 0


def test_an_index_that_was_never_filled_does_not_exist_and_can_be_built(notes: KnowledgeIndex) -> None:
    write(a="one")
    notes.folder.mkdir(parents=True)
    (notes.folder / "index.sqlite").touch()
    assert not notes.exists
    with pytest.raises(ConfigError, match="no index named 'notes'"):
        notes.facts()


def test_names_that_stand_for_nothing_any_more_are_reported_by_each_build(notes: KnowledgeIndex) -> None:
    write(a="one", b="two")
    assert build(notes, "docs/a.md", "docs/b.md").missing == ()
    Path("docs/a.md").unlink()
    for _ in range(2):
        built = build(notes)
        assert [Path(name).name for name in built.missing] == ["a.md"]
    assert located(notes) == ["b.md"]
    write(a="back")
    assert build(notes).missing == ()
