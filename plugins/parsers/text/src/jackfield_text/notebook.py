"""Parser for Jupyter notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import decode
from jackfield_text.markdown import markdown_blocks

# Colours of tracebacks and progress bars.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_READABLE = ("text/markdown", "text/plain", "text/latex", "text")  # "text" in notebooks of version 3
_NOT_DATA = ("output_type", "metadata", "prompt_number", "execution_count", "transient", "data", "stream", "name")
_LEVELS = {str(level): level for level in range(1, 7)}


class NotebookParser(Parser):
    """Parses Jupyter notebooks (versions 3 and 4) cell by cell. `page` is the cell number.

    Outputs are read as text. An output without text, such as a picture, becomes a line that names its type. Unreadable
    cells are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "notebook"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a notebook into blocks.

        Raises:
            DocParserError: The file is empty, not valid JSON, nested too deeply, not a notebook, or without text.
        """
        decoded = decode(data, source=source)
        notebook = _load(decoded.text, source)
        cells = _cells_of(notebook)
        if cells is None:
            raise DocParserError(f"{source} is not a Jupyter notebook: it contains no list of cells")
        blocks: list[Block] = []
        unread: list[str] = []
        for number, cell in enumerate(cells, start=1):
            try:
                blocks += [replace(block, page=number) for block in _read_cell(cell)]
            except (TypeError, ValueError):
                unread.append(f"cell {number}")
        if not blocks:
            reason = (
                "is corrupted: none of its cells can be read" if unread else "is empty: none of its cells contains text"
            )
            raise DocParserError(f"{source} {reason}")
        stated = notebook.get("metadata")
        metadata = {"encoding": decoded.encoding, "cells": len(cells), "language": _language(stated), "unread": unread}
        return Document(source, tuple(blocks), content_hash="", title=_title(stated, blocks), metadata=metadata)


def _load(text: str, source: str) -> dict[str, Any]:
    try:
        # Numbers stay text: Python refuses to convert very long ones.
        notebook = json.loads(text, strict=False, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError:
        raise DocParserError(f"{source} cannot be read: its JSON is nested too deeply") from None
    except ValueError as error:
        raise DocParserError(f"{source} is corrupted: it is not valid JSON ({error})") from error
    if not isinstance(notebook, dict):
        raise DocParserError(f"{source} is not a Jupyter notebook: its JSON is not an object")
    return notebook


def _cells_of(notebook: Mapping[str, Any]) -> list[Any] | None:
    """Return the cells of a notebook, or None if they are not in a list."""
    cells = notebook.get("cells")
    worksheets = notebook.get("worksheets")
    if cells is None and isinstance(worksheets, list):  # version 3
        cells = []
        for sheet in worksheets:
            of_sheet = sheet.get("cells") if isinstance(sheet, dict) else None
            cells += of_sheet if isinstance(of_sheet, list) else [None]
    return cells if isinstance(cells, list) else None


def _read_cell(cell: Any) -> Iterator[Block]:
    """Yield the blocks of a cell.

    Raises:
        TypeError, ValueError: The cell does not conform to the format.
    """
    if not isinstance(cell, dict):
        raise TypeError(type(cell).__name__)
    kind = cell.get("cell_type")
    text = _text_of(cell.get("input" if "input" in cell else "source", ""))
    match kind:
        case "markdown":
            yield from markdown_blocks(text)
        case "heading":  # version 3
            if heading := " ".join(text.split()):
                yield Block(heading, kind="heading", level=_LEVELS.get(str(cell.get("level")), 1))
        case "code":
            if text.strip():
                yield Block(text.strip("\n").rstrip(), kind="code")
            yield from _read_outputs(cell.get("outputs", []))
        case "raw" | "html":
            if text.strip():
                yield Block(text.strip())
        case _:
            raise ValueError(kind)


def _read_outputs(outputs: Any) -> Iterator[Block]:
    if not isinstance(outputs, list):
        raise TypeError(type(outputs).__name__)
    for output in outputs:
        yield from _read_output(output)


def _read_output(output: Any) -> Iterator[Block]:
    """Yield the text of an output, or a line with its types if it has no text."""
    if not isinstance(output, dict):
        raise TypeError(type(output).__name__)
    data = output.get("data", output)  # version 3 has no "data"
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
    elif isinstance(data, dict):
        text = next((_text_of(data[kind]) for kind in _READABLE if kind in data), "")
    else:
        raise TypeError(type(data).__name__)
    if text := _ESCAPES.sub("", text).strip("\n").rstrip():
        yield Block(f"Output:\n{text}", kind="code")
    elif types := [str(kind)[:80] for kind in data if kind not in (*_NOT_DATA, *_READABLE)]:
        yield Block(f"(Non-text output: {', '.join(types)})")


def _text_of(value: Any) -> str:
    """Return a text, which notebooks store as a string or a list of lines."""
    if isinstance(value, list):
        if not all(isinstance(line, str) for line in value):
            raise TypeError("a list with items other than strings")
        return "".join(value)
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value


def _language(stated: Any) -> str:
    for key in ("language_info", "kernelspec"):
        entry = stated.get(key) if isinstance(stated, dict) else None
        name = entry.get("name" if key == "language_info" else "language") if isinstance(entry, dict) else None
        if isinstance(name, str):
            return name
    return ""


def _title(stated: Any, blocks: list[Block]) -> str:
    title = stated.get("title") if isinstance(stated, dict) else None
    if isinstance(title, str) and title:
        return title
    headings = [block for block in blocks if block.kind == "heading"]
    return min(headings, key=lambda block: block.level).text if headings else ""
