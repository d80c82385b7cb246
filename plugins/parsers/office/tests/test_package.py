"""Relations between the parts of office files, and the strict form of the standard."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from docx.oxml.ns import nsdecls
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Emu

from jackfield.errors import DocParserError
from jackfield_office.drawings import drawings_of
from jackfield_office.package import Package
from jackfield_office.plugin import parsers
from jackfield_office.slides import PptxParser
from jackfield_office.word import DocxParser

SIZE = (Emu(0), Emu(0), Emu(900_000), Emu(900_000))
C = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'


def packed(parts: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return made.getvalue()


def relations(*entries: tuple[str, str, str]) -> bytes:
    inner = "".join(f'<Relationship Id="{key}" Type="http://x/{kind}" Target="{to}"/>' for key, kind, to in entries)
    return f'<Relationships xmlns="urn:r">{inner}</Relationships>'.encode()


TEA = f"<w:document {nsdecls('w')}><w:body><w:p><w:r><w:t>Tea</w:t></w:r></w:p></w:body></w:document>".encode()


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("word/document.xml", "word/document.xml"),
        ("/word/document.xml", "word/document.xml"),
        ("./word/../word/document.xml", "word/document.xml"),
        ("word/main%20part.xml", "word/main part.xml"),
        ("../word/a.xml", "word/a.xml"),
    ],
)
def test_the_main_part_is_the_one_that_the_file_names(target: str, name: str) -> None:
    entries = [("a", "other", "word/b.xml"), ("b", "officeDocument", "word/gone.xml"), ("c", "officeDocument", target)]
    data = packed({"_rels/.rels": relations(*entries), "word/b.xml": b"<a/>", name: TEA})
    assert DocxParser().parse(data, source="x.docx").blocks[0].text == "Tea"


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [("a", "other", "word/document.xml")],
        [("a", "officeDocument", "document.xml")],
        [("a", "officeDocument", "xl/document.xml")],
        [("a", "officeDocument", "word/gone.xml")],
    ],
)
def test_a_file_without_such_a_part_is_of_another_kind(entries: list[tuple[str, str, str]]) -> None:
    parts = {"_rels/.rels": relations(*entries), "word/document.xml": TEA, "xl/document.xml": TEA, "document.xml": TEA}
    with pytest.raises(DocParserError, match=r"^x\.docx is not a docx file: its extension may be wrong"):
        DocxParser().parse(packed(parts), source="x.docx")


def test_parts_are_looked_for_beside_those_that_name_them() -> None:
    note = "<w:footnote w:id='1'><w:p><w:r><w:t>n</w:t></w:r></w:p></w:footnote>"
    notes = f"<w:footnotes {nsdecls('w')}>{note}</w:footnotes>"
    chart = f"<c:chartSpace {C} {A}><c:chart><c:title><a:t>Cups</a:t></c:title></c:chart></c:chartSpace>"
    data = packed(
        {
            "_rels/.rels": relations(("a", "officeDocument", "word/sub/document.xml")),
            "word/sub/document.xml": TEA,
            "word/footnotes.xml": notes.replace(">n<", ">wrong<").encode(),
            "word/sub/footnotes.xml": notes.encode(),
            "word/sub/_rels/document.xml.rels": relations(("a", "chart", "../charts/chart.xml")),
            "word/charts/chart.xml": chart.encode(),
        }
    )
    document = DocxParser().parse(data, source="x.docx")
    assert [block.text for block in document.blocks] == ["Tea", "Chart: Cups", "[^1]: n"]
    assert document.metadata == {}


def test_what_a_file_says_of_itself_is_named_as_ours_and_without_empty_values() -> None:
    core = "<c><title> All\n about  tea </title><creator>Ann</creator><subject> </subject><keywords>a, b</keywords></c>"
    data = packed(
        {
            "_rels/.rels": relations(("a", "officeDocument", "word/a.xml")),
            "word/a.xml": TEA,
            "docProps/core.xml": core.replace(
                "</c>", "<created>1</created><modified>2</modified><x>y</x></c>"
            ).encode(),
        }
    )
    document = DocxParser().parse(data, source="x.docx")
    assert document.title == "All about tea"
    assert document.metadata == {"author": "Ann", "keywords": "a, b", "created": "1", "modified": "2"}
    damaged = packed(
        {"_rels/.rels": relations(("a", "officeDocument", "word/a.xml")), "word/a.xml": TEA, "docProps/core.xml": b"<"}
    )
    document = DocxParser().parse(damaged, source="x.docx")
    assert (document.title, document.metadata) == ("", {"unread": ["its title and author"]})


def test_a_damaged_list_of_parts_is_named_once(files: Any) -> None:
    data = files.changed(
        files.body('<w:p><w:hyperlink r:id="rId1"><w:r><w:t>a</w:t></w:r></w:hyperlink></w:p>'),
        {"word/_rels/document.xml.rels": lambda _: b"<"},
    )
    document = DocxParser().parse(data, source="x.docx")
    assert document.blocks[0].text == "a"
    assert document.metadata["unread"] == ["the list of the parts of document.xml"]


def strict(data: bytes) -> bytes:
    """An office file with the names of the strict form in all of its parts."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    usual = b"http://schemas.openxmlformats.org/"
    for name, part in parts.items():
        for kind in (b"wordprocessingml", b"presentationml", b"drawingml", b"officeDocument"):
            part = part.replace(usual + kind + b"/2006/", b"http://purl.oclc.org/ooxml/" + kind + b"/")  # noqa: PLW2901
        parts[name] = part
    return packed(parts)


def test_slides_charts_tables_and_links_are_read_in_the_strict_form_as_well(files: Any) -> None:
    def write(presentation: Any) -> None:
        data = CategoryChartData()
        data.categories = ["tea"]
        data.add_series("2025", (1,))
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = "Tea"
        slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *SIZE, data)
        slide.shapes.add_table(1, 2, *SIZE).table.cell(0, 1).text = "b"
        run = slide.shapes.add_textbox(*SIZE).text_frame.paragraphs[0].add_run()
        run.text, run.hyperlink.address = "page", "https://e.org/"
        slide.notes_slide.notes_text_frame.text = "Slowly."

    data = files.slides(write)
    usual, other = (PptxParser().parse(one, source="x.pptx") for one in (data, strict(data)))
    assert other.blocks == usual.blocks
    assert [block.text for block in other.blocks] == [
        "Tea", "| b |\n|---|", "[page](https://e.org/)", "Chart", "|  | 2025 |\n|---|---|\n| tea | 1 |",
        "Notes: Slowly.",
    ]  # fmt: skip


def chart(inner: str, *, kind: str = "chart") -> list[tuple[str, str]]:
    """The blocks of a part that refers to a drawing."""
    parts = {
        "_rels/.rels": relations(("a", "officeDocument", "word/a.xml")),
        "word/_rels/a.xml.rels": relations(("a", kind, "b.xml")),
        "word/a.xml": TEA,
        "word/b.xml": f"<c:chartSpace {C} {A}>{inner}</c:chartSpace>".encode(),
    }
    package = Package(packed(parts), source="x", kind="docx", main="word/")
    return [(block.kind, block.text) for block in drawings_of(package, package.main)]


def points(tag: str, values: dict[int, str]) -> str:
    inner = "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in values.items())
    return f"<c:{tag}><c:numRef><c:numCache>{inner}</c:numCache></c:numRef></c:{tag}>"


def series(name: str, *parts: str) -> str:
    return f"<c:ser><c:tx><c:strRef><c:v>{name}</c:v></c:strRef></c:tx>{''.join(parts)}</c:ser>"


def titled(tag: str, *words: str) -> str:
    return f"<c:{tag}><c:title>{''.join(f'<a:t>{word}</a:t>' for word in words)}</c:title></c:{tag}>"


LEVELS = (
    "<c:cat><c:multiLvlStrRef><c:multiLvlStrCache><c:lvl><c:pt idx='0'><c:v>May</c:v></c:pt></c:lvl>"
    "<c:lvl><c:pt idx='0'><c:v>2026</c:v></c:pt></c:lvl></c:multiLvlStrCache></c:multiLvlStrRef></c:cat>"
)


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("", ["Chart"]),
        (titled("chart", " Cups ", "a\n day"), ["Chart: Cups a day"]),
        ("<c:chart><c:title><c:v>of a cell</c:v></c:title></c:chart>", ["Chart: of a cell"]),
        (titled("valAx", "y") + titled("catAx", "x") + "<c:serAx/>" + titled("dateAx", "t"), ["Chart (y, x, t)"]),
        (titled("chart", "Cups") + titled("serAx", "z"), ["Chart: Cups (z)"]),
        (series("s", points("val", {})), ["Chart"]),
        (
            series("s", points("cat", {0: "a", 2: "c"}), points("val", {0: "1", 1: "2"})),
            ["Chart", "|  | s |\n|---|---|\n| a | 1 |\n| c |  |\n|  | 2 |"],
        ),
        (
            # Labels that a later series adds are used, and those of the first count.
            series("s", points("cat", {0: "a"}), points("val", {0: "1"}))
            + series("t", points("cat", {0: "x", 1: "b"}), points("val", {0: "2", 1: "3"})),
            ["Chart", "|  | s | t |\n|---|---|---|\n| a | 1 | 2 |\n| b |  | 3 |"],
        ),
        (
            "<c:ser>" + LEVELS + points("val", {0: "1"}) + "</c:ser>" + series("t", points("val", {0: "2"})),
            ["Chart", "|  |  | t |\n|---|---|---|\n| May | 1 | 2 |"],
        ),
        (
            series("s", points("xVal", {0: "1"}), points("yVal", {0: "2"}), points("bubbleSize", {0: "9"}))
            + series("t", points("val", {0: "3"})) + series("u", points("xVal", {})),
            ["Chart", "|  | s |\n|---|---|\n| 1 | 2 |", "| t |\n|---|\n| 3 |"],
        ),
    ],
)  # fmt: skip
def test_a_chart_is_its_titles_and_the_values_at_their_labels(inner: str, expected: list[str]) -> None:
    blocks = chart(inner)
    assert [text for _, text in blocks] == expected
    assert [kind for kind, _ in blocks] == ["paragraph", *["table"] * (len(expected) - 1)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("diagramData", [("list", "- one\n- two")]),
        ("chartEx", [("paragraph", "Chart: one, two (unsupported kind of data)")]),
        ("image", []),
    ],
)
def test_the_texts_of_a_diagram_are_a_list_in_their_order(kind: str, expected: list[tuple[str, str]]) -> None:
    paragraphs = "<a:p><a:r><a:t>on</a:t></a:r><a:r><a:t>e </a:t></a:r></a:p><a:p/><a:p><a:t>two</a:t></a:p>"
    assert chart(paragraphs, kind=kind) == expected


def test_a_diagram_without_text_is_left_out() -> None:
    assert chart("<a:p/>", kind="diagramData") == []


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "docx": "docx docm dotx",
        "pptx": "pptx pptm ppsx",
        "xlsx": "xlsx xlsm xls",
        "csv": "csv tsv tab",
        "doc": "doc dot ppt pps",
    }


def test_files_are_recognised_by_each_of_these_media_types() -> None:
    assert {spec.name: list(spec.media_types) for spec in parsers()} == {
        "docx": [
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ],
        "pptx": [
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        ],
        "xlsx": [
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.ms-excel",
        ],
        "csv": [
            "text/csv",
            "text/tab-separated-values",
        ],
        "doc": [
            "application/msword",
            "application/vnd.ms-powerpoint",
        ],
    }
