from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield_documents import DocumentReader
from jackfield_office.legacy import LegacyConfig, LegacyParser

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
WORD = OLE + "WordDocument".encode("utf-16-le") + bytes(500)

needs_libreoffice = pytest.mark.skipif(not shutil.which("soffice"), reason="LibreOffice is not installed")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04", "is a newer file with an old extension"),
        (b"just a text", "is not what its name says"),
        (OLE + "Workbook".encode("utf-16-le"), r"cannot be read: it is a spreadsheet: rename it to \.xls"),
        (OLE, "cannot be read: it is encrypted, or of another program"),
    ],
)
def test_what_is_no_old_word_or_powerpoint_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^a\.doc {reason}"):
        LegacyParser().parse(data, source="a.doc")


def test_without_libreoffice_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DocParserError, match=r"^a\.doc cannot be read: .* need LibreOffice, which is not installed"):
        LegacyParser().parse(WORD, source="a.doc")


def program(folder: Path, script: str) -> str:
    path = folder / "office"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_an_office_that_never_ends_is_ended(tmp_path: Path) -> None:
    soffice = program(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 1000")
    with pytest.raises(DocParserError, match=r"^a\.doc cannot be read: LibreOffice takes more than 1 s"):
        LegacyParser(LegacyConfig(soffice=soffice, timeout_s=1)).parse(WORD, source="a.doc")
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize("script", ["exit 0", "exit 1", "kill -9 $$"])
def test_an_office_that_makes_nothing_is_an_error(tmp_path: Path, script: str) -> None:
    with pytest.raises(DocParserError, match=r"^a\.doc is damaged or encrypted: LibreOffice cannot read it"):
        LegacyParser(LegacyConfig(soffice=program(tmp_path, script))).parse(WORD, source="a.doc")


def test_an_office_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DocParserError, match=r"^a\.doc (cannot be read|is damaged)"):
        LegacyParser(LegacyConfig(soffice="/no/such/office")).parse(WORD, source="a.doc")


def turned(data: bytes, old: str, new: str, folder: Path) -> Path:
    """A file in another format, by LibreOffice itself."""
    (folder / f"file.{old}").write_bytes(data)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = ["soffice", "--headless", profile, "--convert-to", new, "--outdir", str(folder), f"{folder}/file.{old}"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder / f"file.{new}"


@needs_libreoffice
@pytest.mark.slow
def test_a_word_file_of_before_2007_is_read_in_a_process_with_limits(files: Any, tmp_path: Path) -> None:
    def write(document: Any) -> None:
        document.add_heading("Tea", 1)
        document.add_paragraph("Green tea.")
        table = document.add_table(2, 2)
        for place, text in enumerate(("a|b", "c", "d", "e")):
            table.cell(*divmod(place, 2)).text = text
        document.add_paragraph("end")

    document = asyncio.run(DocumentReader().read(turned(files.word(write), "docx", "doc", tmp_path)))
    assert [(block.kind, block.text) for block in document.blocks] == [
        ("heading", "Tea"),
        ("paragraph", "Green tea."),
        ("table", "| a\\|b | c |\n|---|---|\n| d | e |"),
        ("paragraph", "end"),
    ]


@needs_libreoffice
@pytest.mark.slow
def test_slides_of_before_2007_are_read(files: Any, tmp_path: Path) -> None:
    def write(presentation: Any) -> None:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = "Tea"
        slide.notes_slide.notes_text_frame.text = "Pour slowly."

    data = turned(files.slides(write), "pptx", "ppt", tmp_path).read_bytes()
    document = LegacyParser().parse(data, source="x.ppt")
    assert [(block.page, block.text) for block in document.blocks] == [(1, "Tea"), (1, "Notes: Pour slowly.")]
