"""Files are read again after Tesseract or a language is installed; other files are not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield_documents import DocumentReader
from jackfield_ocr.tesseract import describe_installation


@pytest.mark.parametrize(("name", "is_read_by_ocr"), [("a.png", True), ("a.txt", False)])
def test_the_fingerprint_changes_with_tesseract(
    tmp_path: Path, tesseract: Callable[..., str], name: str, is_read_by_ocr: bool
) -> None:
    file = tmp_path / name
    file.write_text("text")
    reader = DocumentReader(parser_cfg={"ocr": {"tesseract": str(tmp_path / "tesseract")}})
    before, all_before = asyncio.run(reader.fingerprint(file)), reader.parsers()
    tesseract()
    assert (asyncio.run(reader.fingerprint(file)) != before) == is_read_by_ocr
    assert reader.parsers() != all_before


def test_a_language_that_is_installed_later_changes_the_installation(tmp_path: Path) -> None:
    folder = tmp_path / "tessdata"
    folder.mkdir()
    program = tmp_path / "tesseract"
    program.write_text(f"#!/bin/sh\necho 'List of available languages in \"{folder}/\" (0):'\n")
    program.chmod(0o755)
    before = describe_installation({"tesseract": str(program)})
    (folder / "chi_sim.traineddata").write_bytes(b"data")
    assert describe_installation({"tesseract": str(program)}) != before
