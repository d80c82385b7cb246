"""Plugin hooks for the OpenDocument parsers."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook

_TYPE = "application/vnd.oasis.opendocument"


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parsers for text documents, spreadsheets and presentations."""
    return [
        ParserSpec(
            name="odt",
            target="jackfield_opendocument.texts:OdtParser",
            summary="OpenDocument texts: headings, paragraphs, lists, tables, notes and comments, in document order.",
            extensions=("odt", "ott", "fodt"),
            media_types=(f"{_TYPE}.text", f"{_TYPE}.text-template", f"{_TYPE}.text-flat-xml"),
        ),
        ParserSpec(
            name="ods",
            target="jackfield_opendocument.sheets:OdsParser",
            summary="OpenDocument spreadsheets as one table per sheet, with comments and charts.",
            extensions=("ods", "ots", "fods"),
            media_types=(f"{_TYPE}.spreadsheet", f"{_TYPE}.spreadsheet-template", f"{_TYPE}.spreadsheet-flat-xml"),
        ),
        ParserSpec(
            name="odp",
            target="jackfield_opendocument.slides:OdpParser",
            summary="OpenDocument presentations by slide: titles as headings, text, lists, tables, charts and notes.",
            extensions=("odp", "otp", "fodp"),
            media_types=(f"{_TYPE}.presentation", f"{_TYPE}.presentation-template", f"{_TYPE}.presentation-flat-xml"),
        ),
    ]
