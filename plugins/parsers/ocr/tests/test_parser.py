from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from jackfield import sync
from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_documents import DocumentReader
from jackfield_ocr.parser import NOTE, OcrParser
from jackfield_ocr.pictures import Limits, pictures_of

Stub = Callable[..., str]
Draw = Callable[..., bytes]
HEAD = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
posix = pytest.mark.skipif(os.name != "posix", reason="the stub is a shell script")
needs_tesseract = pytest.mark.skipif(not shutil.which("tesseract"), reason="Tesseract is not installed")
pytestmark = posix


def read(data: bytes, program: str, **settings: Any) -> Document:
    return OcrParser({"tesseract": program, **settings}).parse(data, source="a.png")


def texts(document: Document) -> list[tuple[int | None, str]]:
    return [(block.page, block.text) for block in document.blocks]


def pdf_of(draw: Draw, *pages: str) -> bytes:
    """A PDF whose pages have text, or show a picture of their text if it begins with `scan:`."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4, invariant=True)
    for page in pages:
        if page.startswith("scan:"):
            image = Image.open(io.BytesIO(draw(page.removeprefix("scan:"))))
            canvas.drawImage(ImageReader(image), 40, 500, 500, 170)
        elif page:
            canvas.drawString(72, 700, page)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


# --- pictures ---


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_in_a_picture_is_white(mode: str) -> None:
    image = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (0, 0, 10, 10))
    file = io.BytesIO()
    image.convert(mode).save(file, "PNG")
    (picture,) = pictures_of(file.getvalue(), "a.png", Limits(dpi=200, max_pixels=10_000))
    assert [picture.image.getpixel(place) for place in ((5, 5), (15, 15))] == [0, 255]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "BMP"])
@pytest.mark.parametrize(("stated", "dpi"), [(71, 0), (72, 0), (73, 73), (300, 300), (1200, 1200), (1201, 0)])
def test_a_resolution_is_believed_above_72(kind: str, stated: int, dpi: int) -> None:
    file = io.BytesIO()
    Image.new("L", (20, 20)).save(file, kind, dpi=(stated, stated))
    (picture,) = pictures_of(file.getvalue(), "a.png", Limits(dpi=200, max_pixels=10_000))
    assert picture.dpi == dpi


# --- what Tesseract says ---


def test_paragraphs_follow_a_note_and_noise_is_left_out(tesseract: Stub, picture: Draw) -> None:
    document = read(picture("x"), tesseract())
    assert texts(document) == [(1, NOTE), (1, "Opening times"), (1, "Nine")]
    assert document.metadata["ocr"] == "eng"
    assert texts(read(picture("x"), tesseract(), min_confidence=0))[-1] == (1, "~;")


@pytest.mark.parametrize(("least", "kept"), [(90.0, 3), (90.1, 2), (96, 0)])
def test_a_paragraph_of_just_the_least_confidence_is_kept(
    tesseract: Stub, picture: Draw, least: float, kept: int
) -> None:
    if not kept:
        with pytest.raises(DocParserError, match="contains no text that OCR can recognize"):
            read(picture("x"), tesseract(), min_confidence=least)
        return
    assert len(texts(read(picture("x"), tesseract(), min_confidence=least))) == kept


@pytest.mark.parametrize(
    ("installed", "wanted", "chosen"),
    [
        ("chi_sim\neng\nosd", [], "eng+chi_sim"),
        ("chi_sim\nosd", [], "chi_sim"),
        ("chi_sim\neng", ["chi_sim", "eng"], "chi_sim+eng"),
        ("eng\nscript/Latin", ["script/Latin"], "script/Latin"),
        ("eng\n-c x=1", ["-c x=1"], ""),
        ("eng\na+b", ["a+b"], ""),
    ],
)
def test_languages_are_chosen_in_their_order_and_only_by_a_name(
    tesseract: Stub, picture: Draw, tmp_path: Path, installed: str, wanted: list[str], chosen: str
) -> None:
    program = tesseract(languages=installed, script=f'echo "$OMP_THREAD_LIMIT" "$@" > {tmp_path}/words')
    if not chosen:
        with pytest.raises(DocParserError, match="Tesseract has no data for the language"):
            read(picture("x"), program, languages=wanted)
        return
    assert read(picture("x"), program, languages=wanted).metadata["ocr"] == chosen
    threads, _, _, option, languages, *_ = (tmp_path / "words").read_text().split()
    assert (threads, option, languages) == ("1", "-l", chosen)


def test_lines_are_joined_as_their_language_needs(tesseract: Stub, picture: Draw) -> None:
    rows = [("1", "a-1 infor-"), ("2", "mation"), ("3", "of"), ("4", "可 绝对"), ("5", "信任")]
    table = "\n".join([HEAD, *(f"5\t1\t1\t1\t{line}\t1\t0\t0\t0\t0\t90\t{text}" for line, text in rows)])
    assert texts(read(picture("x"), tesseract(table=table)))[-1] == (1, "a-1 information of 可绝对信任")


def test_a_picture_without_text_is_refused(tesseract: Stub, picture: Draw) -> None:
    with pytest.raises(DocParserError, match=r"^a.png contains no text that OCR can recognize \(eng\)"):
        read(picture(), tesseract(table=""))


# --- limits ---


def test_pictures_are_scaled_down_and_their_pixels_are_all_that_tesseract_gets(
    tesseract: Stub, picture: Draw, tmp_path: Path
) -> None:
    program = tesseract(script=f'head -c 15 "$1" > {tmp_path}/head; echo "$@" > {tmp_path}/words')
    read(picture("x", size=(900, 300)), program, max_pixels=30_000)
    assert (tmp_path / "head").read_bytes().startswith(b"P5 300 100 255\n")
    assert (tmp_path / "words").read_text().split()[1:] == ["stdout", "-l", "eng", "--psm", "3", "tsv"]


def test_a_tiff_has_pages_up_to_a_limit(tesseract: Stub) -> None:
    file = io.BytesIO()
    frames = [Image.new("L", (100, 100), 255) for _ in range(4)]
    frames[0].save(file, "TIFF", save_all=True, append_images=frames[1:])
    document = read(file.getvalue(), tesseract(), max_pages=2)
    assert [page for page, text in texts(document) if text == NOTE] == [1, 2]
    assert document.metadata["unread"] == ["the rest after page 2"]


def test_a_page_that_takes_too_long_is_given_up_with_its_program(
    tesseract: Stub, picture: Draw, tmp_path: Path
) -> None:
    program = tesseract(script=f"echo $$ > {tmp_path}/pid; exec sleep 600")
    with pytest.raises(DocParserError, match=r"^a.png cannot be read: OCR of a page timed out after 1 s"):
        read(picture("x"), program, timeout_s=1)
    assert _ends(int((tmp_path / "pid").read_text()))


def test_tesseract_ends_with_the_process_that_started_it(tesseract: Stub, picture: Draw, tmp_path: Path) -> None:
    program = tesseract(script=f"echo $$ > {tmp_path}/pid; exec sleep 600")
    (tmp_path / "a.png").write_bytes(picture("x"))
    code = (
        "import sys, pathlib; from jackfield_ocr.parser import OcrParser; "
        "OcrParser({'tesseract': sys.argv[1]}).parse(pathlib.Path(sys.argv[2]).read_bytes(), source='a')"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, program, str(tmp_path / "a.png")])
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert parent.poll() is None
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    assert _ends(int((tmp_path / "pid").read_text()))


def _ends(pid: int) -> bool:
    for _ in range(1000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


# --- what is missing ---


def test_without_tesseract_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, picture: Draw) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DocParserError, match=r"^a.png cannot be read: OCR needs Tesseract.*apt install tesseract-ocr"):
        read(picture("x"), "")


def test_without_a_language_the_error_says_what_to_install(tesseract: Stub, picture: Draw, tmp_path: Path) -> None:
    with pytest.raises(DocParserError, match=r"language 'chi_sim' \(installed: eng, osd\).*tesseract-ocr-chi-sim"):
        read(picture("x"), tesseract(), languages=["eng", "chi_sim"])
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(DocParserError, match=r"no data for the language '--x'"):
        read(picture("x"), tesseract(languages="--x"), languages=["--x"])


# --- pages of PDFs ---


def read_pdf(folder: Path, data: bytes, program: str) -> Document:
    (folder / "a.pdf").write_bytes(data)
    return sync.run(DocumentReader(parser_cfg={"ocr": {"tesseract": program}}).read(folder / "a.pdf"))


def test_pages_without_text_are_read_in_their_places(tesseract: Stub, picture: Draw, tmp_path: Path) -> None:
    document = read_pdf(tmp_path, pdf_of(picture, "One", "scan:x", "scan:y", "", "Five"), tesseract())
    assert texts(document) == [
        (1, "One"),
        *[(page, text) for page in (2, 3) for text in (NOTE, "Opening times", "Nine")],
        (5, "Five"),
    ]
    assert document.metadata["unread"] == []
    assert document.metadata["scanned_pages"] == [2, 3]


def test_a_scan_is_read_and_its_text_is_no_heading(tesseract: Stub, picture: Draw, tmp_path: Path) -> None:
    document = read_pdf(tmp_path, pdf_of(picture, "scan:x"), tesseract())
    assert {block.kind for block in document.blocks} == {"paragraph"}
    assert document.source.endswith("a.pdf")


def test_pages_that_cannot_be_read_are_named_with_the_reason(tesseract: Stub, picture: Draw, tmp_path: Path) -> None:
    document = read_pdf(
        tmp_path, pdf_of(picture, "One", "scan:x", "scan:y", "Four", "scan:z"), tesseract(script="exit 3")
    )
    assert texts(document) == [
        (1, "One"),
        (2, "[No text on pages 2-3: a.pdf cannot be read: Tesseract exited with 3]"),
        (4, "Four"),
        (5, "[No text on page 5: a.pdf cannot be read: Tesseract exited with 3]"),
    ]
    assert document.metadata["unread"] == ["page 2", "page 3", "page 5"]
    with pytest.raises(DocParserError, match=r"^a.pdf cannot be read: Tesseract exited with 3$"):
        read_pdf(tmp_path, pdf_of(picture, "scan:x", "scan:y"), tesseract(script="exit 3"))


@needs_tesseract
def test_tesseract_itself_reads_a_page(tmp_path: Path, picture: Draw) -> None:
    document = read_pdf(tmp_path, pdf_of(picture, "scan:Opening hours 9 to 17"), "")
    assert texts(document) == [(1, NOTE), (1, "Opening hours 9 to 17")]
