"""Plugin hooks for the EPUB parser."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parser for e-books."""
    return [
        ParserSpec(
            name="epub",
            target="jackfield_epub.parser:EpubParser",
            summary="E-books in EPUB: chapters in order, with headings, lists, tables, code and links.",
            extensions=("epub",),
            media_types=("application/epub+zip",),
        )
    ]
