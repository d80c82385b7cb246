from __future__ import annotations

from typing import Any

import pytest
from pptx.util import Emu

from jackfield_office.slides import PptxParser

SIZE = (Emu(0), Emu(0), Emu(900_000), Emu(900_000))


def blocks(data: bytes) -> list[tuple[int | None, str, str]]:
    return [(block.page, block.kind, block.text) for block in PptxParser().parse(data, source="x.pptx").blocks]


def test_a_slide_is_a_page_with_title_list_and_notes(files: Any) -> None:
    def write(presentation: Any) -> None:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = "Tea\vtime"
        frame = slide.placeholders[1].text_frame
        frame.text = "one"
        frame.add_paragraph().text = "two"
        frame.paragraphs[1].level = 1
        slide.notes_slide.notes_text_frame.text = "Pour slowly.\nThen wait."

    assert blocks(files.slides(write)) == [
        (1, "heading", "Tea time"),
        (1, "list", "- one\n  - two"),
        (1, "paragraph", "Notes: Pour slowly.\nThen wait."),
    ]


def test_a_slide_without_a_title_does_not_stand_below_the_one_before(files: Any) -> None:
    def write(presentation: Any) -> None:
        presentation.slides.add_slide(presentation.slide_layouts[5]).shapes.title.text = "Tea"
        presentation.slides.add_slide(presentation.slide_layouts[6])
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        slide.shapes.add_textbox(*SIZE).text_frame.text = "box"

    assert blocks(files.slides(write)) == [(1, "heading", "Tea"), (3, "heading", "Slide 3"), (3, "paragraph", "box")]


def test_date_footer_and_number_of_a_slide_are_left_out(files: Any) -> None:
    def write(presentation: Any) -> None:
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        for kind in ("dt", "ftr", "hdr", "sldNum", "other"):
            box = slide.shapes.add_textbox(*SIZE)
            box.text_frame.text = kind
            box.element.nvSpPr.nvPr.get_or_add_ph().set("type", kind)

    assert blocks(files.slides(write)) == [(1, "heading", "Slide 1"), (1, "paragraph", "other")]


def test_what_is_drawn_in_two_ways_is_read_once(files: Any) -> None:
    def write(presentation: Any) -> None:
        presentation.slides.add_slide(presentation.slide_layouts[6])

    shape = "<p:sp><p:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp>"
    both = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f'<mc:Choice Requires="x">{shape.format("new")}</mc:Choice><mc:Fallback>{shape.format("old")}</mc:Fallback>'
        "</mc:AlternateContent></p:spTree>"
    ).encode()
    change = {"ppt/slides/slide1.xml": lambda old: old.replace(b"</p:spTree>", both)}
    assert blocks(files.changed(files.slides(write), change)) == [(1, "heading", "Slide 1"), (1, "paragraph", "new")]


def test_tables_groups_and_links_are_read_in_order(files: Any) -> None:
    def write(presentation: Any) -> None:
        shapes = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
        table = shapes.add_table(2, 3, *SIZE).table
        for place, cell in enumerate(cell for row in table.rows for cell in row.cells):
            cell.text = f"{place}|"
        table.cell(0, 0).merge(table.cell(1, 0))
        table.cell(0, 1).merge(table.cell(0, 2))
        group = shapes.add_group_shape()
        group.shapes.add_textbox(*SIZE).text_frame.text = "in a group"
        run = shapes.add_textbox(*SIZE).text_frame.paragraphs[0].add_run()
        run.text, run.hyperlink.address = "page", "https://e.org/"

    page = [text for _, _, text in blocks(files.slides(write))]
    assert page[1:] == [
        "| 0\\|<br>3\\| | 1\\|<br>2\\| |  |\n|---|---|---|\n| 0\\|<br>3\\| | 4\\| | 5\\| |",
        "in a group",
        "[page](https://e.org/)",
    ]


@pytest.mark.parametrize(("first", "last"), [(0, 1), (1, 2), (1, 3), (0, 3)])
def test_a_merged_cell_is_repeated_in_the_rows_that_it_spans_and_no_others(files: Any, first: int, last: int) -> None:
    def write(presentation: Any) -> None:
        shapes = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
        table = shapes.add_table(4, 2, *SIZE).table
        for number, row in enumerate(table.rows):
            row.cells[0].text = "" if first < number <= last else f"a{number}"
            row.cells[1].text = f"b{number}"
        table.cell(first, 0).merge(table.cell(last, 0))

    merged = [first if first < number <= last else number for number in range(4)]
    table = blocks(files.slides(write))[-1][2]
    assert table.replace("|---|---|\n", "") == "\n".join(f"| a{n} | b{i} |" for i, n in enumerate(merged))


def test_the_title_is_that_of_the_file_else_of_the_first_slide(files: Any) -> None:
    def write(presentation: Any) -> None:
        presentation.slides.add_slide(presentation.slide_layouts[0]).shapes.title.text = "Tea"

    def name(presentation: Any) -> None:
        presentation.core_properties.title = "All about tea"
        write(presentation)

    assert PptxParser().parse(files.slides(write), source="x.pptx").title == "Tea"
    document = PptxParser().parse(files.slides(name), source="x.pptx")
    assert (document.title, document.metadata["slides"]) == ("All about tea", 1)
