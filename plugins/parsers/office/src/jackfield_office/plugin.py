"""Plugin hooks for the office parsers."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook

_OPEN_XML = "application/vnd.openxmlformats-officedocument"


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parsers for office files, spreadsheets and CSV."""
    return [
        ParserSpec(
            name="docx",
            target="jackfield_office.word:DocxParser",
            summary="Word files: headings, paragraphs, lists, tables and notes, in document order.",
            extensions=("docx", "docm", "dotx"),
            pictures="jackfield_office.pictures:DocxPictures",
            media_types=(f"{_OPEN_XML}.wordprocessingml.document",),
        ),
        ParserSpec(
            name="pptx",
            target="jackfield_office.slides:PptxParser",
            summary="PowerPoint files by slide: titles as headings, text, lists, tables and the speaker's notes.",
            extensions=("pptx", "pptm", "ppsx"),
            pictures="jackfield_office.pictures:PptxPictures",
            media_types=(f"{_OPEN_XML}.presentationml.presentation",),
        ),
        ParserSpec(
            name="xlsx",
            target="jackfield_office.sheets:SpreadsheetParser",
            config="jackfield_office.sheets:SpreadsheetConfig",
            summary="Excel files, old and new, as one table per sheet.",
            extensions=("xlsx", "xlsm", "xls"),
            media_types=(f"{_OPEN_XML}.spreadsheetml.sheet", "application/vnd.ms-excel"),
        ),
        ParserSpec(
            name="csv",
            target="jackfield_office.separated:CsvParser",
            config="jackfield_office.separated:CsvConfig",
            summary="CSV and TSV files as a table, in any encoding and with any separator.",
            extensions=("csv", "tsv", "tab"),
            media_types=("text/csv", "text/tab-separated-values"),
        ),
        ParserSpec(
            name="doc",
            target="jackfield_office.legacy:LegacyParser",
            config="jackfield_office.legacy:LegacyConfig",
            summary="Word and PowerPoint files from before 2007, through LibreOffice if installed.",
            extensions=("doc", "dot", "ppt", "pps"),
            media_types=("application/msword", "application/vnd.ms-powerpoint"),
            effects=frozenset({"files", "processes"}),
        ),
    ]
