"""PDFium's functions, called without the declarations of pypdfium2."""

from __future__ import annotations

import ctypes

import pypdfium2.raw as pdfium
import pytest
from pypdfium2 import PdfDocument, PdfPage

from jackfield_pdf.calls import address, function


@pytest.fixture
def page() -> PdfPage:
    """A page with three rectangles."""
    page = PdfDocument.new().new_page(300, 200)
    for _ in range(3):
        pdfium.FPDFPage_InsertObject(page, pdfium.FPDFPageObj_CreateNewRect(10, 20, 30, 40))
    return page


def test_a_function_answers_as_the_declared_one_does(page: PdfPage) -> None:
    assert function("FPDFPage_CountObjects")(address(page.raw)) == pdfium.FPDFPage_CountObjects(page) == 3


def test_a_pointer_in_an_answer_is_its_address(page: PdfPage) -> None:
    last = function("FPDFPage_GetObject")(address(page.raw), 2)
    assert last == address(pdfium.FPDFPage_GetObject(page, 2))
    assert function("FPDFPageObj_GetType")(last) == pdfium.FPDF_PAGEOBJ_PATH


def test_an_answer_is_written_to_an_address(page: PdfPage) -> None:
    edges = (ctypes.c_float * 4)()
    first = ctypes.addressof(edges)
    rectangle = function("FPDFPage_GetObject")(address(page.raw), 0)
    assert function("FPDFPageObj_GetBounds")(rectangle, *(first + 4 * edge for edge in range(4)))
    assert list(edges) == [10, 20, 40, 60]
