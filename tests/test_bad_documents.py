"""A folder with whatever can be wrong with files: each is named with its reason, and the others are used."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import docx
import pytest
from reportlab.pdfgen.canvas import Canvas

from jackfield import create_agent
from jackfield.cli.main import main
from jackfield.events import PluginEvent
from jackfield.plugins import default_host
from jackfield.retrieval import make_searcher, shown_path
from jackfield.testing import ScriptedModel, answer
from jackfield_documents import DocumentReader, expand, why_nothing_reads
from jackfield_knowledge import Built, KnowledgeIndex

GOOD = "The mill opens at nine."
SECRET = "what no document may read"
ENCRYPTED_OFFICE = (
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1500) + "EncryptedPackage".encode("utf-16-le") + bytes(500)
)


def pdf(*, password: str | None = None) -> bytes:
    data = io.BytesIO()
    canvas = Canvas(data, encrypt=password)
    canvas.drawString(72, 700, GOOD)
    canvas.save()
    return data.getvalue()


def word() -> bytes:
    data = io.BytesIO()
    document = docx.Document()
    document.add_paragraph(GOOD)
    document.save(data)
    return data.getvalue()


def with_entities(data: bytes, secret: Path) -> bytes:
    """A Word file that asks for a file of the machine, and for more text than there is memory."""
    many = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    declared = f'<!DOCTYPE d [<!ENTITY file SYSTEM "{secret.as_uri()}"><!ENTITY e0 "tea">{many}]>'
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "word/document.xml":
                at = content.index(b"?>") + 2
                content = content[:at] + declared.encode() + content[at:].replace(GOOD.encode(), b"&file;&e9;")
            new.writestr(name, content)
    return changed.getvalue()


# The bytes of a file that cannot be read, and the reason that is given.
BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "encrypted.pdf": (lambda: pdf(password="open sesame"), "is encrypted: a password is required"),
    "encrypted.docx": (lambda: ENCRYPTED_OFFICE, "is encrypted: save it without a password"),
    "encrypted.xlsx": (lambda: ENCRYPTED_OFFICE, "is encrypted: save it without a password"),
    "cut.pdf": (lambda: pdf()[:600], "truncated|corrupted"),
    "cut.docx": (lambda: word()[:-400], "is corrupted or truncated"),
    "really a pdf.docx": (pdf, "the extension may be wrong"),
    "really a pdf.txt": (pdf, "is a PDF file, not text: rename it to .pdf"),
    "really a pdf.md": (pdf, "is a PDF file, not text: rename it to .pdf"),
    "really a pdf.html": (pdf, "is a PDF file, not text: rename it to .pdf"),
    "really a pdf.csv": (pdf, "is a PDF file, not text: rename it to .pdf"),
    "really a word file.txt": (word, "binary data"),
    "really a word file.pdf": (word, "is not a PDF"),
    "really a word file.epub": (word, "is not an e-book"),
    "blank.md": (lambda: b" \n\t\n", "only whitespace"),
    "columns.csv": (lambda: b"a," * 1_000_000 + b"a\n", "1000001 columns"),
    "columns.tsv": (lambda: b"a\t" * 1_000_000 + b"a\n", "1000001 columns"),
    "never closed.html": (lambda: b"<div>" * 100_000 + b"tea", "nested too deeply or never closed"),
    "never closed either.html": (lambda: b"<!-- tea " * 20_000, "contains no text"),
    "line\nfeed.json": (lambda: b"{", "is not valid JSON"),
}
GOOD_NAMES = (
    "plain.md",
    "line\nfeed.md",
    os.fsdecode(b"not utf-8 \xff.md"),
    "two..dots.md",
    "n" * 252 + ".md",
    "[pattern]*?.md",
    "-option.md",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder; whatever a system does not allow is missing."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "docs"
    (folder / "inside").mkdir(parents=True)
    for number, name in enumerate(GOOD_NAMES):
        (folder / name).write_text(f"{GOOD} Its number is {number}.")
    for name, (data, _) in BAD.items():
        (folder / name).write_bytes(data())
    (tmp_path / "secret.txt").write_text(SECRET)
    (folder / "entities.docx").write_bytes(with_entities(word(), tmp_path / "secret.txt"))
    with (folder / "huge.txt").open("wb") as file:
        file.truncate(2**30)  # it takes no room
    (folder / "empty.pdf").touch()
    (folder / "inside" / "circle").symlink_to(folder)
    (folder / "inside" / "nowhere.md").symlink_to("nothing")
    (folder / "itself.md").symlink_to("itself.md")
    os.mkfifo(folder / "pipe.md")
    monkeypatch.chdir(folder)  # the path of a socket must be short
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind("socket.md")
    (folder / "closed.md").write_text(GOOD)
    (folder / "closed.md").chmod(0)
    return folder


EXPECTED = {
    **{name: reason for name, (_, reason) in BAD.items()},
    "entities.docx": "document type|its XML cannot be parsed",
    "huge.txt": "100 MiB",
}
SKIPPED = {
    "empty.pdf": "empty",
    "circle": "a link to a folder",
    "nowhere.md": "no such file or directory",
    "itself.md": "too many levels of symbolic links",
    "pipe.md": "not a regular file",
    "socket.md": "not a regular file",
}


def build(folder: Path, index: KnowledgeIndex) -> Built:
    return asyncio.run(
        index.build([f"{folder}/inside/../"], reader=DocumentReader(), why_not=why_nothing_reads(default_host()))
    )


def test_every_bad_file_is_named_with_its_reason_and_all_others_are_found(folder: Path) -> None:
    index = KnowledgeIndex("bad")
    built = build(folder, index)
    failed = {Path(path).name: reason for path, reason in built.failed.items()}
    skipped = {Path(one.path).name: one.reason for one in built.skipped}
    may_read_all = skipped.pop("closed.md", None) is None  # root reads whatever it likes
    assert skipped == SKIPPED
    assert failed.keys() == EXPECTED.keys()
    for name, reason in EXPECTED.items():
        assert failed[name].startswith(shown_path(name)[:100]), "the error begins with the file's name"
        assert any(part in failed[name] for part in reason.split("|")), failed[name]
        assert "\n" not in failed[name]

    corpus = index.corpus()
    texts = [chunk.text for chunk in corpus.chunks]
    assert len(texts) == len(GOOD_NAMES) + may_read_all
    assert SECRET not in " ".join(texts)
    hits = asyncio.run(make_searcher("keyword_search", {}, host=default_host()).search("mill number", corpus, limit=99))
    assert {Path(hit.chunk.source).name for hit in hits} >= set(GOOD_NAMES)

    again = build(folder, index)
    assert (again.failed, again.read, again.removed) == (built.failed, 0, 0)
    assert index.corpus() == corpus
    index.close()


def test_an_agent_uses_the_good_files_of_a_bad_folder_and_says_which_it_could_not(folder: Path) -> None:
    agent = create_agent("assistant", llm=ScriptedModel([answer("At nine.")]), files=[str(folder)])
    told = [
        error
        for event in agent.stream("When does the mill open?")
        if isinstance(event, PluginEvent)
        for error in event.data["errors"]
    ]
    for name in EXPECTED:
        assert any(error.startswith(shown_path(name)[:100]) for error in told), name


def test_the_command_says_of_each_bad_file_why_it_is_not_found(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "build", "bad", str(folder)]) == 0
    assert f"{len(EXPECTED)} failed" in capsys.readouterr().out
    assert main(["index", "info", "bad"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in EXPECTED:
        assert len([line for line in lines if line.startswith("    ") and line.count(shown_path(name)[:100]) == 2]) == 1


def test_names_with_two_dots_lead_where_they_say_and_no_further(folder: Path) -> None:
    found = expand([f"{folder}/inside/../plain.md", f"{folder}/../../../../../../../../nowhere.md"])
    assert [Path(path).name for path in found.files] == ["plain.md"]
    assert len(found.missing) == 1
