"""Pages as images, with the lines of a passage on them."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image

from jackfield.errors import DocParserError
from jackfield.retrieval import PageImage
from jackfield_documents import DocumentReader
from jackfield_pdf.parser import PdfParser

MakePdf = Callable[..., bytes]
LINES = [
    "The mill grinds wheat when the tide is out.",
    "Its wheel has a dia-",
    "meter of twenty feet, and turns slowly.",
]
PASSAGE = "The mill grinds wheat when the tide is out. Its wheel has a diameter of twenty feet, and turns slowly."


def draw(data: bytes, passage: str, page: int = 1) -> PageImage:
    return PdfParser().draw_page(data, page=page, passage=passage, source="mill.pdf")


def ink(image: PageImage) -> set[tuple[int, int]]:
    """Return the dark pixels of an image."""
    pixels = Image.open(io.BytesIO(image.png)).convert("L")
    assert pixels.size == (image.width, image.height)
    return {(place % image.width, place // image.width) for place, value in enumerate(pixels.tobytes()) if value < 100}


def inside(image: PageImage, pixel: tuple[int, int]) -> bool:
    x, y = pixel[0] / image.width, pixel[1] / image.height
    return any(
        left - 0.01 <= x <= right + 0.01 and top - 0.005 <= y <= bottom + 0.005
        for left, top, right, bottom in image.boxes
    )


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_the_boxes_cover_the_lines_of_the_passage_on_pages_of_any_rotation(lay_out: MakePdf, rotation: int) -> None:
    document = pypdfium2.PdfDocument(lay_out(LINES))
    document[0].set_rotation(rotation)
    document[0].set_cropbox(20, 20, 590, 790)
    file = io.BytesIO()
    document.save(file)
    image = draw(file.getvalue(), PASSAGE)
    dark = ink(image)
    assert len(dark) > 1000
    assert len(image.boxes) <= len(LINES), "one for each line, not for each letter"
    assert all(inside(image, pixel) for pixel in dark)
    covered = sum((right - left) * (bottom - top) for left, top, right, bottom in image.boxes)
    assert covered < 0.1


def test_only_the_passage_is_in_boxes(lay_out: MakePdf) -> None:
    image = draw(lay_out(["Some other line about boats.", *LINES, "And one more line about rivers."]), PASSAGE)
    rows = {y for _, y in ink(image)}
    outside = {y for x, y in ink(image) if not inside(image, (x, y))}
    assert len(image.boxes) == 3
    assert outside
    assert min(outside) == min(rows)
    assert max(outside) == max(rows)


def test_a_passage_that_continues_is_drawn_where_more_of_it_is(lay_out: MakePdf) -> None:
    data = lay_out([*["filler"] * 30, LINES[0]], LINES[1:], ["Nothing of it."])
    assert draw(data, PASSAGE).page == 2
    assert draw(data, LINES[0]).page == 1


def test_tables_ligatures_and_chinese_are_found(typeset: MakePdf) -> None:
    data = typeset(("zh", "潮汐磨坊建于一六二九年，至今仍在工作。"), [["Port", "Low water"], ["Dover", "06:02"]])
    assert len(draw(data, "磨坊建于一六二九年").boxes) == 1
    assert len(draw(data, "| Port | Low water |\n|---|---|\n| Dover | 06:02 |").boxes) >= 2


def test_a_passage_is_found_in_capitals_and_with_other_letters_than_the_page_has(lay_out: MakePdf) -> None:
    data = lay_out(["The mill finds its flow at noon."], ["of no importance"])
    assert len(draw(data, "THE MILL \ufb01NDS its \ufb02ow at \uff4eoon").boxes) == 1


def test_parts_of_a_passage_are_found_before_and_after_its_longest(lay_out: MakePdf) -> None:
    first, last = "Sixteen letters at least.", "And so many letters at the end."
    data = lay_out([first, "of no importance", LINES[0], "nor this", last])
    assert len(draw(data, f"{first} zzz {LINES[0]} zzz {last}").boxes) == 3


def test_of_pages_that_show_as_much_of_a_passage_the_first_is_drawn(lay_out: MakePdf) -> None:
    one, other = "aaaa bbbb cccc dddd eeee", "ffff gggg hhhh iiii jjjj"
    assert draw(lay_out([one], [other]), f"{one} {other}").page == 1
    assert draw(lay_out([other], [one]), f"{one} {other}").page == 1


def test_a_page_without_the_passage_has_no_boxes(lay_out: MakePdf) -> None:
    data = lay_out(LINES)
    for passage in ("", "…", "Quarterly figures of the harbour office of Rotterdam."):
        image = draw(data, passage)
        assert (image.boxes, image.has_text) == ((), True)
        assert image.png.startswith(b"\x89PNG")


@pytest.mark.parametrize("size", [(14400, 14400), (14400, 3), (3, 14400), (1, 1)])
def test_the_image_is_small_however_large_the_page_is(size: tuple[float, float]) -> None:
    document = pypdfium2.PdfDocument.new()
    document.new_page(*size)
    file = io.BytesIO()
    document.save(file)
    image = draw(file.getvalue(), "text")
    assert not image.has_text
    assert 0 < image.width <= 1201
    assert image.width * image.height <= 2_010_000


@pytest.mark.parametrize("page", [-1, 0, 2])
def test_a_page_that_does_not_exist_is_refused(lay_out: MakePdf, page: int) -> None:
    with pytest.raises(DocParserError, match=r"mill\.pdf has no page .*: the page count is 1"):
        draw(lay_out(LINES), PASSAGE, page)


def test_pages_are_drawn_in_a_process_of_their_own(lay_out: MakePdf, tmp_path: Path) -> None:
    (tmp_path / "mill.pdf").write_bytes(lay_out(LINES))
    (tmp_path / "mill.txt").write_text("text")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\n" + bytes(1000))

    async def main() -> None:
        reader = DocumentReader()
        image = await reader.draw_page(tmp_path / "mill.pdf", page=1, passage=PASSAGE)
        assert image == draw(lay_out(LINES), PASSAGE)
        for name in ("mill.txt", "broken.pdf", "absent.pdf"):
            with pytest.raises(DocParserError, match=name):
                await reader.draw_page(tmp_path / name, page=1, passage=PASSAGE)

    asyncio.run(main())


def test_pages_of_files_inside_others_are_drawn(lay_out: MakePdf, tmp_path: Path) -> None:
    pytest.importorskip("jackfield_archive")
    pytest.importorskip("jackfield_mail")
    other, mail = lay_out(["Nothing of the kind."]), EmailMessage()
    mail.set_content("Scans.")
    for content in (other, lay_out(LINES)):
        mail.add_attachment(content, "application", "pdf", filename="mill.pdf")
    mail.add_attachment("text", filename="note.txt")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("in/scans.eml", bytes(mail))

    async def drawn(part: str) -> PageImage:
        return await DocumentReader().draw_page(tmp_path / "all.zip", page=1, passage=PASSAGE, part=part)

    assert asyncio.run(drawn("in/scans.eml › mill (2).pdf")) == draw(lay_out(LINES), PASSAGE)
    assert asyncio.run(drawn("in/scans.eml › mill.pdf")) == draw(other, PASSAGE)
    for part, reason in {
        "": "all.zip has no pages",
        "in/scans.eml › note.txt": "note.txt has no pages",
        "in/scans.eml › b.pdf": "scans.eml contains no file b.pdf",
        "in/scans.eml › note.txt › x": "note.txt contains no file x",
        " › ".join(["in/scans.eml"] * 4): "contains no file",
    }.items():
        with pytest.raises(DocParserError, match=reason):
            asyncio.run(drawn(part))
