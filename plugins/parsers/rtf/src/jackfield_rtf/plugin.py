"""Plugin hooks for the RTF parser."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parser for the Rich Text Format."""
    return [
        ParserSpec(
            name="rtf",
            target="jackfield_rtf.parser:RtfParser",
            summary="Rich Text Format: headings, paragraphs, lists, tables, notes and links, in any code page.",
            extensions=("rtf",),
            media_types=("application/rtf", "text/rtf"),
            magic=(b"{\\rtf",),
        )
    ]
