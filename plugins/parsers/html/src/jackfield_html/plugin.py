"""Plugin hooks for the HTML parser."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parser for HTML files."""
    return [
        ParserSpec(
            name="html",
            target="jackfield_html.parser:HtmlParser",
            config="jackfield_html.parser:HtmlConfig",
            summary="HTML: the main text with headings, lists, tables, code and links, without menus and footers.",
            extensions=("html", "htm", "xhtml", "xht"),
            media_types=("text/html", "application/xhtml+xml"),
        )
    ]
