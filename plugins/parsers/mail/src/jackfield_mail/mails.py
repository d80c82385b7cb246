"""Build a document from an email: a heading, the most relevant headers, the text and attached emails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from jackfield.retrieval import Block, Document, Part
from jackfield_documents import decode
from jackfield_markup import blocks_of, decode_html, html_tree

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_MAX_NAME_CHARS = 200


@dataclass(slots=True)
class Mail:
    """An email.

    Attributes:
        subject: The subject, or '' if there is none.
        headers: Names and values of the headers to show.
        blocks: The blocks of the text.
        mails: Attached emails.
        parts: Other attachments.
        unread: Parts that could not be read.
    """

    subject: str = ""
    headers: Sequence[tuple[str, str]] = ()
    blocks: list[Block] = field(default_factory=list)
    mails: list[Mail] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def attach(self, name: str, data: bytes, *, extension: str = "") -> None:
        """Add an attachment. Any folders in its name are dropped."""
        name = re.split(r"[/\\]", name)[-1].strip()[-_MAX_NAME_CHARS:]
        self.parts.append(Part(name or f"attachment {len(self.parts) + 1}{extension}", data))


def document_of(mail: Mail, *, source: str) -> Document:
    """Build the document for an email, including all nested emails."""
    mails = list(_all(mail))
    unread = [entry for one in mails for entry in one.unread]
    metadata: dict[str, object] = {name.lower(): value for name, value in mail.headers}
    return Document(
        source,
        tuple(_blocks(mail, 1)),
        content_hash="",
        title=mail.subject,
        metadata={**metadata, **({"unread": unread} if unread else {})},
        parts=tuple(part for one in mails for part in one.parts),
    )


def html_blocks(data: bytes, codec: str | None, *, source: str) -> list[Block]:
    """Return the blocks of an HTML text.

    Raises:
        DocParserError: The data is not text, or the page is nested too deeply.
    """
    if not data.strip():
        return []
    text = data.decode(codec, "replace") if codec else decode_html(data, source=source).text
    return list(blocks_of(html_tree(text, source=source))) if text.strip() else []


def plain_blocks(data: bytes, codec: str | None, *, source: str) -> list[Block]:
    """Return the paragraphs of a plain text.

    Raises:
        DocParserError: The data is not text, or its encoding is unknown.
    """
    if not data.strip():
        return []
    text = data.decode(codec, "replace") if codec else decode(data, source=source).text
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return [Block(paragraph.strip("\n").rstrip()) for paragraph in _BLANK_LINES.split(text) if paragraph.strip()]


def _blocks(mail: Mail, level: int) -> Iterator[Block]:
    yield Block(mail.subject or "(no subject)", kind="heading", level=level)
    if mail.headers:
        yield Block("\n".join(f"{name}: {value}" for name, value in mail.headers))
    for block in mail.blocks:
        yield replace(block, level=block.level + level) if block.kind == "heading" else block
    for attached in mail.mails:
        yield from _blocks(attached, level + 1)


def _all(mail: Mail) -> Iterator[Mail]:
    yield mail
    for attached in mail.mails:
        yield from _all(attached)
