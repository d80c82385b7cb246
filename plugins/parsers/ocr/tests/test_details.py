"""Pages, pictures, Tesseract's table and its installation: each branch alone and at its limit."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image

from jackfield.errors import DocParserError
from jackfield_ocr import pictures
from jackfield_ocr.parser import OcrParser
from jackfield_ocr.pictures import Limits, pictures_of
from jackfield_ocr.tesseract import _paragraphs, describe_installation

posix = pytest.mark.skipif(os.name != "posix", reason="the stub is a shell script")


def shapes(data: bytes, *, dpi: int = 100, max_pixels: int = 1_000_000) -> list[tuple[tuple[int, int], int]]:
    """Return the size and the resolution of each page."""
    return [(page.image.size, page.dpi) for page in pictures_of(data, "a.png", Limits(dpi, max_pixels))]


def pdf_of(*sizes: tuple[int, int]) -> bytes:
    document = pypdfium2.PdfDocument.new()
    for size in sizes:
        document.new_page(*size)
    file = io.BytesIO()
    document.save(file)
    document.close()
    return file.getvalue()


def picture_of(size: tuple[int, int], kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    Image.new("L", size, "white").save(file, kind, **options)
    return file.getvalue()


def test_each_page_of_a_pdf_is_drawn_as_large_as_the_limits_allow() -> None:
    data = pdf_of((72, 144), (144, 72))
    assert shapes(data) == [((100, 200), 100), ((200, 100), 100)]
    assert shapes(data, max_pixels=5000) == [((50, 100), 50), ((100, 50), 50)]


def test_a_picture_is_turned_and_scaled_down_together_with_its_resolution() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    data = picture_of((200, 100), "JPEG", exif=exif, dpi=(300, 300))
    assert shapes(data) == [((100, 200), 300)]
    assert shapes(data, max_pixels=5000) == [((50, 100), 150)]


def test_a_picture_has_as_many_pixels_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_DECODED_PIXELS", 100)
    assert shapes(picture_of((20, 5), "PNG")) == [((20, 5), 0)]
    with pytest.raises(DocParserError, match=r"^a\.png is too large for OCR \(20 × 6 pixels\): scale it down"):
        shapes(picture_of((20, 6), "PNG"))


def table_of(*words: tuple[int, int, int, object, str], level: str = "5") -> str:
    """Return a table with the block, paragraph, line, confidence and text of each word."""
    return "\n".join(
        f"{level}\t1\t{block}\t{paragraph}\t{line}\t1\t0\t0\t0\t0\t{confidence}\t{text}"
        for block, paragraph, line, confidence, text in words
    )


@pytest.mark.parametrize(
    ("table", "paragraphs"),
    [
        (table_of((1, 1, 1, 90, "a"), (2, 1, 1, 80, "b"), (2, 2, 1, 70, "c")), [("a", 90), ("b", 80), ("c", 70)]),
        (table_of((1, 1, 1, 90, "a"), (1, 1, 1, 0, " "), (1, 1, 1, "x", "b"), (1, 1, 1, 60, " c ")), [("a c", 75)]),
        (table_of((1, 1, 1, 90, "a"), level="4"), []),
        ("5\t1\t1", []),
        *[
            (table_of((1, 1, 1, 90, first), (1, 1, 2, 90, second)), [(joined, 90)])
            for first, second, joined in [
                ("infor-", "mation", "information"),
                ("infor-", "Mation", "infor- Mation"),
                ("1-", "a", "1- a"),
                ("-", "a", "- a"),
            ]
        ],
    ],
)
def test_words_are_joined_to_paragraphs(table: str, paragraphs: list[tuple[str, float]]) -> None:
    assert list(_paragraphs(table)) == paragraphs


@posix
def test_a_program_that_fails_is_an_error_and_leaves_nothing_open(tesseract: Callable[..., str]) -> None:
    parser = OcrParser({"tesseract": tesseract(script="exit 3")})
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(8):
        with pytest.raises(DocParserError, match=r"^a\.png cannot be read: Tesseract exited with 3"):
            parser.parse(picture_of((20, 20), "PNG"), source="a.png")
    assert len(list(Path("/dev/fd").iterdir())) < before + 8  # other threads may have opened some


@posix
def test_an_update_of_the_program_or_of_a_language_changes_the_installation(tmp_path: Path) -> None:
    program, language = tmp_path / "tesseract", tmp_path / "eng.traineddata"
    program.write_text(f"#!/bin/sh\necho 'List of available languages in \"{tmp_path}/\" (1):'\n")
    program.chmod(0o755)
    seen = [describe_installation({"tesseract": str(tmp_path / "none")})]
    assert seen == [""]
    for content in (b"data", b"more data"):
        language.write_bytes(content)
        seen.append(describe_installation({"tesseract": str(program)}))
    os.utime(program, ns=(1, 1))
    seen.append(describe_installation({"tesseract": str(program)}))
    assert len(set(seen)) == 4
