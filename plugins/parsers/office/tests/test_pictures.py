"""Pictures of Word and PowerPoint files."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from pptx.util import Emu

from jackfield.errors import DocParserError
from jackfield_office.pictures import DocxPictures, PicturesConfig, PptxPictures


def png(seed: int, *, size: int = 3000) -> bytes:
    """A picture of one dot, and a comment that makes it exactly this long."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    dots, end = chunk(b"IDAT", zlib.compress(bytes((0, seed)))), chunk(b"IEND", b"")
    comment = chunk(b"tEXt", b"x" * (size - len(head + dots + end) - 12))
    return head + comment + dots + end


def add(*pictures: bytes) -> Callable[[Any], None]:
    def write(document: Any) -> None:
        for picture in pictures:
            document.add_picture(io.BytesIO(picture))

    return write


def relation(key: str, target: str, *, kind: str = "image", mode: str = "") -> Callable[[bytes], bytes]:
    entry = f'<Relationship Id="{key}" Type="http://x/{kind}" Target="{target}"{mode}/></Relationships>'.encode()
    return lambda old: old.replace(b"</Relationships>", entry)


def test_the_pictures_of_a_word_file_come_in_order_each_once_without_pages(files: Any) -> None:
    document = DocxPictures().parse(files.word(add(png(1), png(2), png(1))), source="x.docx")
    assert [(part.data, part.page) for part in document.parts] == [(png(1), None), (png(2), None)]
    assert [part.name.rpartition(".")[2] for part in document.parts] == ["png", "png"]
    assert document.blocks == ()


@pytest.mark.parametrize(("size", "count"), [(1999, 0), (2000, 1)])
def test_pictures_as_small_as_icons_are_left_out(files: Any, size: int, count: int) -> None:
    assert len(DocxPictures().parse(files.word(add(png(1, size=size))), source="x.docx").parts) == count


@pytest.mark.parametrize(("settings", "count"), [({}, 10), ({"max_pictures": 1}, 1), ({"max_pictures": 11}, 11)])
def test_at_most_so_many_pictures_are_given(files: Any, settings: dict[str, int], count: int) -> None:
    data = files.word(add(*(png(seed) for seed in range(12))))
    parts = DocxPictures(PicturesConfig(**settings)).parse(data, source="x.docx").parts
    assert [part.data for part in parts] == [png(seed) for seed in range(count)]


@pytest.mark.parametrize(
    ("magic", "extension"),
    [(b"\x89PNG", "png"), (b"\xff\xd8\xff\xe0", "jpg"), (b"GIF89a", "gif"), (b"\xd7\xcd\xc6\x9a", ""), (b"<svg", "")],
)
def test_the_first_bytes_of_a_picture_decide_whatever_its_name_says(files: Any, magic: bytes, extension: str) -> None:
    data = files.changed(
        files.body("<w:p/>"),
        {
            "word/_rels/document.xml.rels": relation("rId99", "media/a.bin"),
            "word/media/a.bin": lambda _: magic + bytes(3000),
        },
    )
    parts = DocxPictures().parse(data, source="x.docx").parts
    assert [part.name for part in parts] == ([f"picture 1.{extension}"] if extension else [])


def test_pictures_elsewhere_missing_or_damaged_are_left_out_and_the_rest_is_given(files: Any) -> None:
    def refer(old: bytes) -> bytes:
        for key, target, settings in (
            ("a", "media/gone.png", {}),
            ("b", "https://e.org/a.png", {"mode": ' TargetMode="External"'}),
            ("c", "media/other.png", {"kind": "oleObject"}),
            ("d", "media/good.png", {}),
        ):
            old = relation(key, target, **settings)(old)
        return old

    parts = {"word/_rels/document.xml.rels": refer, "word/media/good.png": lambda _: png(2)}
    parts["word/media/other.png"] = lambda _: png(3)
    data = bytearray(files.changed(files.word(add(png(1))), parts))
    at = data.index(b"word/media/image1.png") + len(b"word/media/image1.png")
    data[at : at + 8] = b"\xff" * 8  # it cannot be unpacked
    assert [part.data for part in DocxPictures().parse(bytes(data), source="x.docx").parts] == [png(2)]


def test_a_picture_of_several_slides_has_the_number_of_the_first(files: Any) -> None:
    def write(presentation: Any) -> None:
        for pictures in ([], [1], [1, 2], [2, 3]):
            slide = presentation.slides.add_slide(presentation.slide_layouts[6])
            for seed in pictures:
                slide.shapes.add_picture(io.BytesIO(png(seed)), Emu(0), Emu(0))
        entries = presentation.slides._sldIdLst
        entries.insert(0, entries[3])  # the last slide is shown first

    parts = PptxPictures().parse(files.slides(write), source="x.pptx").parts
    assert [(part.data, part.page) for part in parts] == [(png(2), 1), (png(3), 1), (png(1), 3)]
    few = PptxPictures(PicturesConfig(max_pictures=2)).parse(files.slides(write), source="x.pptx")
    assert (few.parts, few.blocks) == (parts[:2], ())


def test_a_slide_that_is_missing_costs_its_pictures_only(files: Any) -> None:
    def write(presentation: Any) -> None:
        for seed in (1, 2):
            slide = presentation.slides.add_slide(presentation.slide_layouts[6])
            slide.shapes.add_picture(io.BytesIO(png(seed)), Emu(0), Emu(0))

    def lose(old: bytes) -> bytes:
        return old.replace(b'Target="slides/slide1.xml"', b'Target="slides/gone.xml"')

    data = files.changed(files.slides(write), {"ppt/_rels/presentation.xml.rels": lose})
    parts = PptxPictures().parse(data, source="x.pptx").parts
    assert [(part.data, part.page) for part in parts] == [(png(2), 2)]


@pytest.mark.parametrize(("parser", "name"), [(DocxPictures, "x.docx"), (PptxPictures, "x.pptx")])
def test_a_file_of_another_kind_has_no_pictures(files: Any, parser: Any, name: str) -> None:
    other = files.slides(lambda _: None) if parser is DocxPictures else files.word(lambda _: None)
    with pytest.raises(DocParserError, match=rf"^{name} is not a {name[2:]} file"):
        parser().parse(other, source=name)
