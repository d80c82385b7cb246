"""Parser for Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jackfield.retrieval import Block, BlockKind, Document, Parser
from jackfield_documents import decode
from jackfield_text.plain import TextParser

if TYPE_CHECKING:
    from markdown_it.token import Token

_MAX_BYTES = 8 * 2**20
_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(.*?)\n(?:---|\.\.\.)[^\S\n]*(?:\n|$)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[^\S\n]*+(\S[^\n]*+)$", re.MULTILINE)
_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}


class MarkdownParser(Parser):
    """Parses Markdown: CommonMark with pipe tables. Blocks keep their inline markup, which models read well.

    Files larger than 8 MiB are data dumps rather than documents. They are read as plain text, which is a hundred times
    faster.
    """

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a Markdown file into blocks. Front matter becomes a code block.

        Raises:
            DocParserError: The file is empty, binary, or in an unknown encoding.
        """
        if len(data) > _MAX_BYTES:
            return TextParser().parse(data, source=source)
        decoded = decode(data, source=source)
        blocks = tuple(markdown_blocks(decoded.text))
        return Document(
            source,
            blocks,
            content_hash="",
            title=_title(decoded.text, blocks),
            metadata={"encoding": decoded.encoding},
        )


def markdown_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a Markdown text. Front matter becomes a code block."""
    front = _FRONT_MATTER.match(text)
    if front:
        yield Block(front[1].strip("\n"), kind="code")
        text = text[front.end() :]
    lines = text.split("\n")
    done = 0
    for token in _top_level(text):
        first, last = token.map or (done, done)
        # Link definitions have no token, but may contain searched text.
        yield from _paragraph(lines[done:first])
        yield from _block(token, lines[first:last])
        done = max(done, last)
    yield from _paragraph(lines[done:])


def _top_level(text: str) -> list[Token]:
    from markdown_it import MarkdownIt

    # Only blocks are parsed, because the inline rules are most of the work and can be made slow on purpose.
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    return [token for token in parser.parse(text) if token.level == 0 and token.nesting >= 0 and token.map]


def _block(token: Token, lines: Sequence[str]) -> Iterator[Block]:
    if token.type == "hr":
        return
    kind = _KINDS.get(token.type, "paragraph")
    if kind == "heading":
        yield from _heading(lines, level=int(token.tag[1:]))
    elif token.type == "fence":
        # With its info string, which names the language; without the fences, which chunks may cut apart.
        yield from _text(token.content.strip("\n"), "code")
    else:
        yield from _text("\n".join(lines).strip("\n"), kind)


def _heading(lines: Sequence[str], *, level: int) -> Iterator[Block]:
    if lines[0].lstrip().startswith("#"):
        text = re.sub(r"(?:^|\s)#+\s*$", "", lines[0].strip().lstrip("#").strip()).rstrip()
    else:
        text = " ".join(line.strip() for line in lines[:-1] if line.strip())  # underlined
    if text:
        yield Block(text, kind="heading", level=level)


def _paragraph(lines: Sequence[str]) -> Iterator[Block]:
    yield from _text("\n".join(lines).strip("\n"), "paragraph")


def _text(text: str, kind: BlockKind) -> Iterator[Block]:
    if text.strip():
        yield Block(text, kind=kind)


def _title(text: str, blocks: Sequence[Block]) -> str:
    front = _FRONT_MATTER.match(text)
    named = _FRONT_TITLE.search(front[1]) if front else None
    if named:
        return _unquoted(named[1].rstrip())
    headings = [block for block in blocks if block.kind == "heading"]
    return min(headings, key=lambda block: block.level).text if headings else ""


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] and text[0] in "'\"" else text
