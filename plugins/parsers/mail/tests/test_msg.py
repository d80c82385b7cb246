from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_mail.compressed_rtf import decompress
from jackfield_mail.msg import MsgParser

SUBJECT, BODY, HTML, RTF, SENDER, SMTP, TO = 0x0037, 0x1000, 0x1013, 0x1009, 0x0C1A, 0x5D01, 0x0E04
# The example of [MS-OXRTFCP], section 4.1.1.
COMPRESSED = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
)


def parse(data: bytes) -> Document:
    return MsgParser().parse(data, source="x.msg")


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def test_a_message_is_its_subject_its_headers_and_its_text(ole: Any, message: Any) -> None:
    properties = {SUBJECT: "Tea", SENDER: "Ada", SMTP: "ada@example.org", TO: "Bo; Cy", BODY: "one\r\n\r\ntwo"}
    document = parse(ole(message(properties, values={0x0039: 133_485_408_000_000_000})))
    assert texts(document) == [
        "Tea",
        "From: Ada <ada@example.org>\nTo: Bo; Cy\nDate: 2024-01-01 00:00 UTC",
        "one",
        "two",
    ]
    assert document.title == "Tea"


@pytest.mark.parametrize(
    ("values", "date"),
    [
        ({}, ""),
        ({0x0039: 133_485_408_000_000_000, 0x0E06: 133_486_272_000_000_000}, "\nDate: 2024-01-01 00:00 UTC"),
        ({0x0E06: 133_486_272_000_000_000}, "\nDate: 2024-01-02 00:00 UTC"),
        ({0x0039: 0, 0x0E06: 2**63}, ""),
    ],
)
def test_a_message_without_a_time_of_submission_has_that_of_delivery(
    ole: Any, message: Any, values: dict[int, int], date: str
) -> None:
    assert texts(parse(ole(message({SUBJECT: "a", TO: "Bo"}, values=values))))[1] == f"To: Bo{date}"


def test_attachments_keep_their_order(ole: Any, message: Any) -> None:
    attachments = [{"__substg1.0_37010102": b"x" * size} for size in range(1, 9)]
    parts = parse(ole(message({SUBJECT: "a", BODY: "b"}, *attachments))).parts
    assert [len(part.data) for part in parts] == list(range(1, 9))


@pytest.mark.parametrize("html", ["<h1>Größe</h1>", "<h1>Größe</h1>".encode("cp1252")])
def test_html_comes_before_plain_text(ole: Any, message: Any, html: str | bytes) -> None:
    document = parse(ole(message({SUBJECT: "a", BODY: "plain", HTML: html}, values={0x3FDE: 1252})))
    assert texts(document) == ["a", "Größe"]


@pytest.mark.parametrize(("page", "encoding"), [(936, "gbk"), (1251, "cp1251"), (65001, "utf-8"), (0, "gb18030")])
def test_texts_in_a_code_page_are_decoded(ole: Any, message: Any, page: int, encoding: str) -> None:
    text = "Привет, мир" if encoding == "cp1251" else "数据分析是一门学问"
    tree = {**message({}, values={0x3FFD: page}), "__substg1.0_0037001E": text.encode(encoding)}
    assert parse(ole(tree)).title == text


def test_attachments_are_parts_and_attached_messages_are_read(ole: Any, message: Any) -> None:
    inner = message({SUBJECT: "Inner", BODY: "inner text"}, header_bytes=24)
    name = "größe.md".encode("utf-16-le")
    attachments = (
        {"__substg1.0_37010102": b"x" * 5000, "__substg1.0_3707001F": name},
        {"__substg1.0_3701000D": inner},
        {"__substg1.0_37010102": b"y"},
    )
    document = parse(ole(message({SUBJECT: "Outer", BODY: "text"}, *attachments)))
    assert texts(document) == ["Outer", "text", "Inner", "inner text"]
    assert [(part.name, len(part.data)) for part in document.parts] == [("größe.md", 5000), ("attachment 2", 1)]


def test_an_attached_message_has_its_own_time_and_code_page(ole: Any, message: Any) -> None:
    values = {0x3FFD: 1251, 0x0039: 133_485_408_000_000_000}
    inner = message({TO: "Bo"}, values=values, header_bytes=24)
    inner["__substg1.0_0037001E"] = "Привет".encode("cp1251")
    document = parse(ole(message({SUBJECT: "Outer"}, {"__substg1.0_3701000D": inner})))
    assert texts(document) == ["Outer", "Привет", "To: Bo\nDate: 2024-01-01 00:00 UTC"]


def test_a_text_in_rtf_only_is_a_part(ole: Any, message: Any) -> None:
    document = parse(ole(message({SUBJECT: "a", RTF: COMPRESSED})))
    assert [(part.name, part.data) for part in document.parts] == [
        ("message.rtf", b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n")
    ]
    assert parse(ole(message({SUBJECT: "a", BODY: "b", RTF: COMPRESSED}))).parts == ()


def test_rtf_that_repeats_itself_is_expanded() -> None:
    """The example of [MS-OXRTFCP], section 4.1.2, whose reference overlaps what it writes."""
    data = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")
    assert decompress(data) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"


def test_rtf_that_was_not_compressed_is_kept() -> None:
    for more in (b"", b" and other bytes"):
        assert decompress(struct.pack("<II4sI", 17 + len(more), 5, b"MELA", 0) + b"{\\rtf" + more) == b"{\\rtf"


def test_rtf_repeats_text_across_the_end_of_the_window() -> None:
    text = bytes(range(65, 91)) * 160
    written, offset, length = 3904, 4090, 12  # in a window of 4096 bytes, of which 207 are there before
    literals = b"".join(b"\0" + text[place : place + 8] for place in range(0, written, 8))
    repeated = text[offset - 207 :][:length]
    reference = ((offset << 4) + length - 2).to_bytes(2, "big")
    content = literals + b"\x01" + reference + b"z"
    expected = text[:written] + repeated + b"z"
    assert decompress(struct.pack("<II4sI", 12 + len(content), len(expected), b"LZFu", 0) + content) == expected


def test_bytes_after_the_stated_size_are_not_of_the_text() -> None:
    content = b"\0abc"  # a control byte for eight tokens, of which each is a letter; nothing marks the end
    for size_bytes, text in ((16, b"abc"), (15, b"ab"), (19, b"abcdef"), (0, b"")):
        assert decompress(struct.pack("<II4sI", size_bytes, 3, b"LZFu", 0) + content + b"def") == text


@pytest.mark.parametrize("data", [b"", b"x" * 20])
def test_other_data_is_not_compressed_rtf(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"too short|of another kind"):
        decompress(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "is empty"), (b"text", "is not an Outlook message"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is corrupted")],
)
def test_an_error_names_the_file_and_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.msg {reason}"):
        parse(data)


@pytest.mark.parametrize(
    ("piece", "end"), [(b"\xff", 512), (b"\xff" * 8, None), (b"\xff\xff\xff\x7f", None), (b"\0" * 4, None)]
)
def test_a_message_with_a_damaged_field_is_read_or_is_an_error_of_the_parser(
    ole: Any, message: Any, piece: bytes, end: int | None
) -> None:
    attachment = {"__substg1.0_37010102": b"x" * 20, "__substg1.0_3707001F": "a.txt".encode("utf-16-le")}
    data = ole(message({SUBJECT: "Tea", TO: "Bo", BODY: "one", RTF: COMPRESSED}, attachment))
    for start in range(0, end or len(data), len(piece)):
        damaged = data[:start] + piece + data[start + len(piece) :]
        with contextlib.suppress(DocParserError):
            assert isinstance(parse(damaged), Document)


def test_another_ole_file_is_refused(ole: Any) -> None:
    with pytest.raises(DocParserError, match=r"^x\.msg is not an Outlook message"):
        parse(ole({"WordDocument": b"a"}))
