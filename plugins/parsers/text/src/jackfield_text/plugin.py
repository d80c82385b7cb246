"""Plugin hooks for the text parsers."""

from __future__ import annotations

from jackfield.plugins import ParserSpec, hook

_CODE = (
    "py pyi js mjs ts tsx jsx java kt scala c h cc cpp hpp cs go rs rb php pl lua r swift sh bash zsh ps1 bat "
    "sql css scss toml ini cfg conf properties yaml yml tex diff patch"
)

# With the pages of POSIX, Perl, OpenSSL and X11.
_MANUAL = "1 2 3 4 5 6 7 8 9 1p 3p 3pm 1ssl 3ssl 5ssl 7ssl 1x 3x man mdoc"


_SMALL = 262_144  # bytes; the work of the first three is linear for any file


@hook.parsers
def parsers() -> list[ParserSpec]:
    """Provide the parsers for plain text, Markdown, JSON, notebooks and manual pages."""
    return [
        ParserSpec(
            name="text",
            target="jackfield_text.plain:TextParser",
            summary="Plain text in any common encoding; blank lines end paragraphs, and form feeds end pages.",
            extensions=("txt", "text", "log", "rst", *_CODE.split()),
            in_process_bytes=_SMALL,
            media_types=("text/plain",),
        ),
        ParserSpec(
            name="markdown",
            target="jackfield_text.markdown:MarkdownParser",
            summary="Markdown (CommonMark with tables): headings with levels, lists, tables and code kept whole.",
            extensions=("md", "markdown", "mdown", "mkd"),
            in_process_bytes=_SMALL,
            media_types=("text/markdown",),
        ),
        ParserSpec(
            name="json",
            target="jackfield_text.json_values:JsonParser",
            config="jackfield_text.json_values:JsonConfig",
            summary="JSON and JSON Lines, as one line per value with its path.",
            extensions=("json", "jsonl", "ndjson"),
            in_process_bytes=_SMALL,
            media_types=("application/json", "application/x-ndjson", "application/jsonl"),
        ),
        ParserSpec(
            name="notebook",
            target="jackfield_text.notebook:NotebookParser",
            summary="Jupyter notebooks by cell: text in Markdown, code, and outputs as text.",
            extensions=("ipynb",),
            media_types=("application/x-ipynb+json",),
        ),
        ParserSpec(
            name="man",
            target="jackfield_text.man:ManParser",
            summary="Unix manual pages (man and mdoc): sections, options as lists, examples as code, tables.",
            extensions=(*_MANUAL.split(),),
            media_types=("text/troff", "application/x-troff-man"),
        ),
    ]
