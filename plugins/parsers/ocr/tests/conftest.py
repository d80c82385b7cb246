"""A program in the place of Tesseract, which need not be installed where tests run."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

# As Tesseract 5.3 writes it: level, page, block, paragraph, line, word, box, confidence, text.
TABLE = """level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext
1\t1\t0\t0\t0\t0\t0\t0\t900\t300\t-1\t
5\t1\t1\t1\t1\t1\t1\t1\t9\t9\t96.1\tOpening
5\t1\t1\t1\t1\t2\t1\t1\t9\t9\t95.2\ttimes
5\t1\t1\t2\t1\t1\t1\t1\t9\t9\t90.0\tNine
5\t1\t2\t1\t1\t1\t1\t1\t9\t9\t12.5\t~;
"""


def stub(folder: Path, *, script: str = "", table: str = TABLE, languages: str = "eng\nosd") -> str:
    """Write a program that answers as Tesseract does."""
    (folder / "table.tsv").write_text(table)
    program = folder / "tesseract"
    listing = f'if [ "$1" = --list-langs ]; then printf "List:\\n{languages}\\n"; exit 0; fi'
    program.write_text(f'#!/bin/sh\n{listing}\n{script}\ncat "{folder}/table.tsv"\n')
    program.chmod(0o755)
    return str(program)


@cache
def picture_of(*lines: str, kind: str = "PNG", size: tuple[int, int] = (900, 300)) -> bytes:
    image = Image.new("L", size, "white")
    for number, line in enumerate(lines):
        ImageDraw.Draw(image).text((40, 30 + 120 * number), line, fill="black", font_size=56)
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


@pytest.fixture
def tesseract(tmp_path: Path) -> Callable[..., str]:
    """Write a stub into the test's folder."""
    return lambda **settings: stub(tmp_path, **settings)


@pytest.fixture
def picture() -> Callable[..., bytes]:
    """Draw lines of text."""
    return picture_of
