from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from nbformat import v4

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_text.notebook import NotebookParser


def notebook(*cells: Any, **metadata: object) -> bytes:
    return nbformat.writes(v4.new_notebook(cells=list(cells), metadata=metadata)).encode()


def code(text: str, *outputs: Any) -> Any:
    return v4.new_code_cell(text, outputs=list(outputs))


def parse(data: bytes) -> Document:
    return NotebookParser().parse(data, source="x.ipynb")


def blocks(data: bytes) -> list[tuple[str, str, int | None]]:
    return [(block.kind, block.text, block.page) for block in parse(data).blocks]


def test_blocks_have_the_number_of_their_cell() -> None:
    data = notebook(
        v4.new_markdown_cell("# One\n\n| a | b |\n|---|---|\n| 1 | 2 |"), code(""), code("x"), v4.new_raw_cell("raw")
    )
    assert blocks(data) == [
        ("heading", "One", 1),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |", 1),
        ("code", "x", 3),
        ("paragraph", "raw", 4),
    ]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (v4.new_output("stream", text="a\nb\n"), "Output:\na\nb"),
        (v4.new_output("execute_result", {"text/plain": "4", "text/html": "<b>4</b>"}), "Output:\n4"),
        (v4.new_output("display_data", {"text/plain": "<obj>", "text/markdown": "**a**"}), "Output:\n**a**"),
        (v4.new_output("display_data", {"image/png": "iVBOR"}), "(Non-text output: image/png)"),
        (v4.new_output("error", ename="KeyError", evalue="'a'", traceback=["t"]), "Output:\nKeyError: 'a'"),
        (v4.new_output("stream", text="\x1b[31mred\x1b[0m"), "Output:\nred"),
    ],
)
def test_an_output_is_text_or_named(output: Any, text: str) -> None:
    assert [block.text for block in parse(notebook(code("x", output))).blocks] == ["x", text]


def test_an_output_without_anything_is_left_out() -> None:
    assert blocks(notebook(code("x", v4.new_output("stream", text="\n")))) == [("code", "x", 1)]


@pytest.mark.parametrize(
    "broken",
    [
        1,
        None,
        {"cell_type": "strange", "source": "a"},
        {"cell_type": "code", "source": {"a": 1}},
        {"cell_type": "markdown", "source": ["a", None]},
        {"cell_type": "code", "source": "a", "outputs": 1},
        {"cell_type": "code", "source": "a", "outputs": [1]},
        {"cell_type": "code", "source": "a", "outputs": [{"data": 1}]},
    ],
)
def test_a_broken_cell_is_named_and_the_others_are_read(broken: object) -> None:
    written = json.loads(notebook(v4.new_markdown_cell("before"), v4.new_markdown_cell("after")))
    written["cells"].insert(1, broken)
    document = parse(json.dumps(written).encode())
    assert [(block.text, block.page) for block in document.blocks] == [("before", 1), ("after", 3)]
    assert document.metadata["unread"] == ["cell 2"]


def test_a_number_of_any_length_is_no_damage() -> None:
    for number in ("9" * 5000, "1e99999", "NaN"):
        data = notebook(code("x")).replace(b'"execution_count": null', f'"execution_count": {number}'.encode())
        assert number.encode() in data
        assert blocks(data) == [("code", "x", 1)]


def test_title_and_language_come_from_the_metadata() -> None:
    cells = [v4.new_markdown_cell("## Two\n\n# One")]
    assert parse(notebook(*cells)).title == "One"
    document = parse(notebook(*cells, title="Tea", language_info={"name": "julia"}))
    assert (document.title, document.metadata["language"]) == ("Tea", "julia")
    assert (
        parse(notebook(*cells, kernelspec={"name": "k", "display_name": "K", "language": "R"})).metadata["language"]
        == "R"
    )


def test_an_error_names_the_file_and_the_reason() -> None:
    for data, reason in ((b"[]", "is not a Jupyter notebook"), (notebook(), "is empty"), (b"{", "is corrupted")):
        with pytest.raises(DocParserError, match=rf"^x\.ipynb {reason}"):
            parse(data)
