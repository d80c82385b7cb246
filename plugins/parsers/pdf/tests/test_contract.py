"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

import io
import zlib
from typing import ClassVar

from reportlab.pdfgen.canvas import Canvas

from jackfield_testkit.suites import ParserSuite, PluginSuite


def pdf_of(*pages: str, password: str | None = None) -> bytes:
    """A PDF with one paragraph on each page."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=True, encrypt=password)
    for page in pages:
        for number, line in enumerate(page.split("\n")):
            canvas.drawString(72, 740 - 14 * number, line)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def table_of(rows: int) -> bytes:
    """A PDF with an outline, a heading, a table with rules, and rows beside each other without."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=True)
    canvas.bookmarkHorizontal("tea", 0, 760)
    canvas.addOutlineEntry("Tea", "tea")
    canvas.drawString(72, 760, "Tea")
    for row in range(rows + 1):
        canvas.line(72, 740 - 20 * row, 272, 740 - 20 * row)
        for column in range(2 if row < rows else 0):
            canvas.drawString(76 + 100 * column, 725 - 20 * row, f"cell {row} {column}")
            canvas.drawString(76 + 200 * column, 300 - 14 * row, f"open {row} {column}")
    for column in range(3):
        canvas.line(72 + 100 * column, 740, 72 + 100 * column, 740 - 20 * rows)
    canvas.showPage()
    canvas.save()
    return file.getvalue()


def written(*objects: bytes) -> bytes:
    """A PDF of these objects, of which the first is its catalogue."""
    out = b"%PDF-1.7\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer <</Size %d /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table) + end


def stream(entries: bytes, body: bytes) -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (entries, len(body), body)


TEXT = b"BT /F 12 Tf 50 700 Td (hello world) Tj ET "


def page(content: bytes, *forms: bytes, pages: bytes = b"/Kids[3 0 R]/Count 1") -> bytes:
    """A PDF with one page, which knows its forms as X."""
    resources = b"/Font<</F 5 0 R>>" + (b"/XObject<</X 6 0 R>>" if forms else b"")
    return written(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages%s>>" % pages,
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<<%s>>/Contents 4 0 R>>" % resources,
        content,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *forms,
    )


def form(body: bytes, inner: bytes) -> bytes:
    resources = b"<</Font<</F 5 0 R>>/XObject<<%s>>>>" % inner
    return stream(b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources" + resources, body)


def packed(body: bytes, *, times: int = 1) -> bytes:
    for _ in range(times):
        body = zlib.compress(body, 1)
    return stream(b"/Filter[%s]" % (b"/FlateDecode" * times), body)


HOSTILE = {
    "pages in a circle.pdf": page(stream(b"", TEXT), pages=b"/Kids[2 0 R 3 0 R]/Count 5"),
    "billions of pages.pdf": page(stream(b"", TEXT), pages=b"/Kids[3 0 R]/Count 2147483647"),
    "a form in itself.pdf": page(stream(b"", b"/X Do " + TEXT), form(b"/X Do /Y Do " + TEXT, b"/X 6 0 R/Y 6 0 R")),
    "ten to the twelfth.pdf": page(
        stream(b"", b"/X Do " * 10), *(form(b"/X Do " * 10, b"/X %d 0 R" % number) for number in range(7, 18)),
        form(TEXT, b""),
    ),
    "packed three times.pdf": page(packed(TEXT + b" " * 20_000_000, times=3)),
    "states.pdf": page(packed(b"q " * 600_000 + TEXT)),
    "much text.pdf": page(packed(b"BT /F 12 Tf " + b"(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj " * 25_000 + b"ET")),
    "a net.pdf": page(
        packed(
            b"".join(b"%d 0 m %d 800 l S 0 %d m 600 %d l S " % (n, n, n, n) for n in range(0, 600, 2))
            + b"".join(b"BT /F 1 Tf %d %d Td (x) Tj ET " % (n % 600, n // 75) for n in range(0, 60_000, 12))
        )
    ),
    "forms with lines.pdf": page(
        stream(b"", TEXT + b"BT /F 12 Tf 300 700 Td (beside) Tj ET " + b"/X Do " * 50),
        form(b"/X Do " * 50, b"/X 7 0 R"),
        form(b"0 0 m 9 0 l S 0 0 m 0 9 l S " * 100, b""),
    ),
    "sizes.pdf": page(stream(b"", b"".join(b"BT /F %d Tf %d 700 Td (x) Tj ET " % (9**n, n) for n in range(90)))),
    "brackets.pdf": page(stream(b"", b"[" * 100_000 + TEXT)),
}  # fmt: skip


class TestPlugin(PluginSuite):
    dist = "jackfield-pdf"


class TestPdf(ParserSuite):
    component = "jackfield-pdf/pdf"
    samples: ClassVar = {
        "tea.pdf": (pdf_of("Green tea is brewed\nwith hot water."), "Green tea is brewed with hot water."),
        "pages.pdf": (
            pdf_of("The first page.", "The second page.", "", "The last page."),
            ("The first", "The second", "The last"),
        ),
        "table.pdf": (table_of(3), "| cell 2 0 | cell 2 1 |"),
    }
    unreadable: ClassVar = {
        "locked.pdf": pdf_of("secret", password="open sesame"),
        "scan.pdf": pdf_of("", ""),
        "text.pdf": b"just a text",
    }
    hostile: ClassVar = HOSTILE

    @staticmethod
    def make_file(count: int) -> bytes:
        return pdf_of(*(f"This is page {number}." for number in range(count)))
