from __future__ import annotations

from typing import Any

from jackfield.retrieval import Document
from jackfield_opendocument.slides import OdpParser


def parse(data: bytes) -> Document:
    return OdpParser().parse(data, source="x.odp")


def frame(text: str, kind: str = "") -> str:
    role = f' presentation:class="{kind}"' if kind else ""
    return f"<draw:frame{role}><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"


def slide(*parts: str) -> str:
    return f"<draw:page>{''.join(parts)}</draw:page>"


def test_a_slide_is_its_title_its_text_and_its_notes(file: Any) -> None:
    notes = f"<presentation:notes>{frame('1', 'page-number')}{frame('Say hello.', 'notes')}</presentation:notes>"
    table = (
        "<draw:frame><table:table><table:table-row><table:table-cell><text:p>c</text:p></table:table-cell>"
        "</table:table-row></table:table></draw:frame>"
    )
    shape = "<draw:g><draw:custom-shape><text:p>d</text:p></draw:custom-shape></draw:g>"
    first = slide(notes, frame("b", "outline"), frame("A", "title"), table, shape, frame("x", "footer"))
    document = parse(file("odp", first + slide() + slide(frame("e"))))
    assert [(block.kind, block.text, block.page) for block in document.blocks] == [
        ("heading", "A", 1),
        ("paragraph", "b", 1),
        ("table", "| c |\n|---|", 1),
        ("paragraph", "d", 1),
        ("paragraph", "Notes: Say hello.", 1),
        ("heading", "Slide 3", 3),
        ("paragraph", "e", 3),
    ]
    assert (document.title, document.metadata) == ("A", {"slides": 3})


def test_the_first_title_of_a_slide_is_its_heading_and_others_are_text(file: Any) -> None:
    document = parse(file("odp", slide(frame("A", "title"), frame("b"), frame("C", "title"))))
    assert [(block.kind, block.text) for block in document.blocks] == [
        ("heading", "A"),
        ("paragraph", "b"),
        ("paragraph", "C"),
    ]
