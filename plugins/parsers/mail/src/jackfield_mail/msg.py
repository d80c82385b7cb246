"""Parser for Outlook messages, which store properties in the streams of an OLE file ([MS-OXMSG])."""

from __future__ import annotations

import datetime
import io
import struct
from typing import TYPE_CHECKING, ClassVar

from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_documents import codec_of, decode
from jackfield_mail.compressed_rtf import decompress
from jackfield_mail.mails import Mail, document_of, html_blocks, plain_blocks

if TYPE_CHECKING:
    from olefile import OleFileIO

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PROPERTIES = "__properties_version1.0"
_HEADER_TOP, _HEADER_EMBEDDED, _HEADER_ATTACHMENT = 32, 24, 8  # bytes before the properties
# Properties ([MS-OXPROPS]).
_SUBJECT, _BODY, _HTML, _RTF = 0x0037, 0x1000, 0x1013, 0x1009
_SENDER_NAME, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_DISPLAY_TO, _DISPLAY_CC, _SUBMITTED, _DELIVERED = 0x0E04, 0x0E03, 0x0039, 0x0E06
_CODE_PAGE, _INTERNET_CODE_PAGE = 0x3FFD, 0x3FDE
_FILE_NAME, _SHORT_FILE_NAME, _DATA = 0x3707, 0x3704, 0x3701
_LABELS = {
    65001: "utf-8", 936: "gbk", 54936: "gb18030", 932: "shift_jis", 949: "euc-kr", 950: "big5", 20866: "koi8-r",
    51932: "euc-jp", 50220: "iso-2022-jp", 28591: "iso-8859-1", 28592: "iso-8859-2", 28605: "iso-8859-15",
}  # fmt: skip
_EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)
_MOST_DEPTH = 10
# olefile trusts its input, and may raise any of these for a malformed file.
_FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, struct.error, RecursionError)


class MsgParser(Parser):
    """Parses an Outlook message: the subject as a heading, then the headers, the text, and any attached messages.

    Other attachments are left to their own parsers, and so is a message text that exists only as RTF. Unreadable parts
    are listed in `metadata["unread"]`.
    """

    name: ClassVar[str] = "msg"

    def parse(self, data: bytes, *, source: str) -> Document:
        """Parse a message into blocks and parts.

        Raises:
            DocParserError: The file is empty, damaged, or not an Outlook message.
        """
        if not data:
            raise DocParserError(f"{source} is empty")
        if not data.startswith(_OLE):
            raise DocParserError(f"{source} is not an Outlook message: its extension may be wrong")
        from olefile import OleFileIO

        try:
            with OleFileIO(io.BytesIO(data)) as ole:
                if not ole.exists(_PROPERTIES):
                    raise DocParserError(f"{source} is not an Outlook message: its extension may be wrong")
                mail = _Storage(ole, _Spare(4 * len(data) + 2**20), (), _HEADER_TOP).read_mail(source)
        except _FAULTS as error:
            raise DocParserError(f"{source} is corrupted: its properties cannot be read") from error
        return document_of(mail, source=source)


class _Spare:
    """A budget of bytes to read, because the streams of a malicious file may share their content."""

    def __init__(self, size_bytes: int) -> None:
        self._bytes = size_bytes

    def spend(self, size_bytes: int) -> None:
        self._bytes -= size_bytes
        if self._bytes < 0:
            raise ValueError("its streams overlap")


class _Storage:
    """A message or attachment in the file, with its properties.

    Args:
        ole: The file.
        spare: The budget of bytes to read.
        path: The names of the storages that lead to this one.
        header_bytes: The number of bytes before the properties.
    """

    def __init__(self, ole: OleFileIO, spare: _Spare, path: tuple[str, ...], header_bytes: int) -> None:
        self._ole = ole
        self._spare = spare
        self._path = path
        entries = self._stream(_PROPERTIES)[header_bytes:]
        self._values = {
            identifier: value
            for _, identifier, _, value in struct.iter_unpack("<HHI8s", entries[: len(entries) // 16 * 16])
        }

    def read_mail(self, source: str) -> Mail:
        """Read this storage as a message."""
        name, smtp, address = (self._text(of) for of in (_SENDER_NAME, _SENDER_SMTP, _SENDER_ADDRESS))
        address = smtp or (address if "@" in address else "")
        sender = f"{name} <{address}>" if address and name and address != name else name or address
        headers = (
            ("From", sender),
            ("To", self._text(_DISPLAY_TO)),
            ("Cc", self._text(_DISPLAY_CC)),
            ("Date", self._time(_SUBMITTED) or self._time(_DELIVERED)),
        )
        mail = Mail(self._text(_SUBJECT), [(name, value) for name, value in headers if value])
        self._read_body(mail, source)
        for number, storage in enumerate(self._attachments(), start=1):
            try:
                storage.attach_to(mail, source)
            except (*_FAULTS, DocParserError):  # the others are worth reading
                mail.unread.append(f"the attachment {number}")
        return mail

    def attach_to(self, mail: Mail, source: str) -> None:
        """Add this attachment to an email."""
        inner = (*self._path, f"__substg1.0_{_DATA:04X}000D")
        if self._ole.exists([*inner, _PROPERTIES]):
            if len(inner) > 2 * _MOST_DEPTH:
                raise ValueError("messages in messages")
            mail.mails.append(_Storage(self._ole, self._spare, inner, _HEADER_EMBEDDED).read_mail(source))
        elif data := self._binary(_DATA):
            mail.attach(self._text(_FILE_NAME) or self._text(_SHORT_FILE_NAME), data)

    def _read_body(self, mail: Mail, source: str) -> None:
        html, rtf = self._binary(_HTML), self._binary(_RTF)
        codec = self._codec(_INTERNET_CODE_PAGE)
        if not html and (text := self._text(_HTML)):
            html, codec = text.encode("utf-8", "replace"), "utf-8"
        try:
            mail.blocks += html_blocks(html, codec, source=source) if html else []
        except DocParserError:
            mail.unread.append("its text in HTML")
        if not mail.blocks:
            mail.blocks += plain_blocks(self._text(_BODY).encode("utf-8", "replace"), "utf-8", source=source)
        if not mail.blocks and rtf:
            try:
                mail.attach("message.rtf", decompress(rtf))
            except ValueError:  # its attachments are worth reading
                mail.unread.append("its text in RTF")

    def _attachments(self) -> list[_Storage]:
        depth = len(self._path)
        names = {
            tuple(entry[: depth + 1])
            for entry in self._ole.listdir(streams=True, storages=False)
            if tuple(entry[:depth]) == self._path and len(entry) > depth + 1 and entry[depth].startswith("__attach")
        }
        return [_Storage(self._ole, self._spare, name, _HEADER_ATTACHMENT) for name in sorted(names)]

    def _stream(self, name: str) -> bytes:
        """Return the content of a stream in this storage, or b'' if it is missing."""
        path = [*self._path, name]
        if not self._ole.exists(path) or self._ole.get_type(path) != 2:
            return b""
        self._spare.spend(self._ole.get_size(path))
        return bytes(self._ole.openstream(path).read())

    def _binary(self, identifier: int) -> bytes:
        return self._stream(f"__substg1.0_{identifier:04X}0102")

    def _text(self, identifier: int) -> str:
        wide = self._stream(f"__substg1.0_{identifier:04X}001F")
        if wide:
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        narrow = self._stream(f"__substg1.0_{identifier:04X}001E").rstrip(b"\0")
        if not narrow:
            return ""
        if codec := self._codec(_CODE_PAGE) or self._codec(_INTERNET_CODE_PAGE):
            return narrow.decode(codec, "replace")
        try:
            return decode(narrow, source="").text
        except DocParserError:
            return narrow.decode("cp1252", "replace")

    def _codec(self, identifier: int) -> str | None:
        number = int.from_bytes(self._values.get(identifier, b"")[:4], "little")
        return codec_of(_LABELS.get(number, f"windows-{number}")) if number else None

    def _time(self, identifier: int) -> str:
        ticks = int.from_bytes(self._values.get(identifier, b""), "little")  # 100 ns since 1601
        try:
            time = _EPOCH + datetime.timedelta(microseconds=ticks // 10)
        except OverflowError:
            return ""
        return time.strftime("%Y-%m-%d %H:%M UTC") if ticks else ""
