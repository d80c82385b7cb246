"""Parser for emails in Internet format (RFC 5322 and MIME), and for web pages saved as such (MHTML)."""

from __future__ import annotations

import email.errors
import email.header
import mimetypes
from email.message import Message
from email.parser import BytesParser
from typing import ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser
from jackfield_documents import codec_of
from jackfield_mail.mails import Mail, document_of, html_blocks, plain_blocks

_SHOWN = ("From", "Reply-To", "To", "Cc", "Bcc", "Date")
_TYPICAL = frozenset(("from", "to", "subject", "date", "message-id", "received", "mime-version", "return-path"))
_MAX_HEADER_CHARS = 10_000


class EmlParser(Parser):
    """Parses an email: the subject as a heading, then the headers, the text, and any attached emails.

    If the text comes in several formats, the best one is used, usually HTML. Other attachments are left to their own
    parsers. Unreadable text parts are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "eml"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse an email into blocks and parts.

        Raises:
            DocParserError: The file is empty, not an email, or nested too deeply.
        """
        if not data.strip():
            raise DocParserError(f"{source} is empty")
        try:
            message = BytesParser().parsebytes(data)
            if _TYPICAL.isdisjoint(name.lower() for name in message):
                raise DocParserError(f"{source} is not an email: it has no mail headers")
            return document_of(_read(message, source), source=source)
        except RecursionError:
            raise DocParserError(f"{source} cannot be read: its parts are nested too deeply") from None


def _read(message: Message, source: str) -> Mail:
    headers: dict[str, str] = {}
    for name, value in message.raw_items():
        headers.setdefault(name.lower(), _decode_header(str(value)))
    shown = [(name, headers[name.lower()]) for name in _SHOWN if headers.get(name.lower())]
    mail = Mail(headers.get("subject", ""), shown)
    mail.blocks += _read_part(message, mail, source)
    return mail


def _read_part(part: Message, mail: Mail, source: str) -> list[Block]:
    """Return the blocks of a MIME part, and add attachments to the email."""
    kind = part.get_content_type()
    if not part.is_multipart():
        return _read_single(part, kind, mail, source)
    children: list[Message] = part.get_payload()  # type: ignore[assignment]
    if kind == "message/delivery-status":
        lines = (f"{name}: {_decode_header(str(value))}" for child in children for name, value in child.raw_items())
        text = "\n".join(lines)
        return [Block(text)] if text.strip() else []
    if part.get_content_maintype() == "message":
        mail.mails += [_read(child, source) for child in children]
        return []
    if kind == "multipart/alternative":
        for child in reversed(children):  # the best is the last
            if blocks := _read_part(child, mail, source):
                return blocks
        return []
    return [block for child in children for block in _read_part(child, mail, source)]


def _read_single(part: Message, kind: str, mail: Mail, source: str) -> list[Block]:
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)  # noqa: S101 - it has no parts
    name = _file_name(part)
    is_attached = part.get_content_disposition() == "attachment" or name
    if is_attached or kind not in ("text/plain", "text/html"):
        if data:
            mail.attach(name, data, extension=mimetypes.guess_extension(kind) or "")
        return []
    charset = part.get_param("charset")
    codec = codec_of(charset) if isinstance(charset, str) else None
    try:
        return (html_blocks if kind == "text/html" else plain_blocks)(data, codec, source=source)
    except DocParserError:  # the rest is worth reading
        mail.unread.append(f"a text in {kind.removeprefix('text/')}")
        return []


def _file_name(part: Message) -> str:
    for header, parameter in (("content-disposition", "filename"), ("content-type", "name")):
        value = part.get_param(parameter, header=header)
        if isinstance(value, tuple):  # RFC 2231: the encoding, the language, and bytes as Latin-1
            codec = codec_of(value[0] or "utf-8") or "latin-1"
            return str(value[2]).encode("latin-1", "replace").decode(codec, "replace")
        if value:
            return _decode_header(value)
    return ""


def _decode_header(value: str) -> str:
    """Return a header on a single line, with encoded words (RFC 2047) decoded."""
    value = value[:_MAX_HEADER_CHARS].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        pieces = email.header.decode_header(value)
    except (email.errors.HeaderParseError, ValueError):
        pieces = [(value, None)]
    text = ""
    for piece, charset in pieces:
        if isinstance(piece, str):
            text += piece
        elif charset is None:  # text between encoded words
            text += piece.decode("raw-unicode-escape", "replace")
        else:
            text += piece.decode(codec_of(charset) or "utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
