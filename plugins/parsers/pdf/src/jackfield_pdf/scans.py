"""Copy scanned pages into separate files for a parser with OCR."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

SCAN = "page.pdf-scan"
"""The name of such a file. Its extension selects a parser with OCR instead of this one."""

_SPARE_BYTES = 8 * 2**20
# PDFium writes the time and random numbers, but the same file must always give the same parts.
_RANDOM = re.compile(rb"(?<=/ID\[<)[0-9A-F]+><[0-9A-F]+(?=>\])|(?<=/CreationDate\(D:)\d+")
_HEAD_BYTES, _TAIL_BYTES = 1024, 256


def copy_pages(document: Any, numbers: Sequence[int], size_bytes: int) -> dict[int, bytes]:
    """Return pages as single-page PDFs by page number. The caller must hold the PDFium lock.

    Copying stops when the copies exceed about twice the file size, because all pages may share one large picture.

    Args:
        document: The file.
        numbers: The page numbers, counted from 1.
        size_bytes: The size of the file.
    """
    import pypdfium2

    copies: dict[int, bytes] = {}
    remaining = 2 * size_bytes + _SPARE_BYTES
    for number in numbers:
        copy = pypdfium2.PdfDocument.new()
        try:
            copy.import_pages(document, [number - 1])
            file = io.BytesIO()
            copy.save(file)
        except pypdfium2.PdfiumError:
            continue
        finally:
            copy.close()
        data = file.getvalue()
        remaining -= len(data)
        if remaining < 0:
            break
        head, rest = data[:_HEAD_BYTES], data[_HEAD_BYTES:]
        copies[number] = _without_random(head) + rest[:-_TAIL_BYTES] + _without_random(rest[-_TAIL_BYTES:])
    return copies


def _without_random(data: bytes) -> bytes:
    return _RANDOM.sub(lambda match: re.sub(rb"[0-9A-F]", b"0", match[0]), data)
