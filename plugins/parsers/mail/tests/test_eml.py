from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from jackfield import sync
from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_documents import DocumentReader
from jackfield_mail.eml import EmlParser


def parse(data: Any) -> Document:
    return EmlParser().parse(bytes(data), source="x.eml")


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def mail(text: str = "text", subject: str = "Tea") -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = subject, "Ada <ada@example.org>", "Bo <bo@example.org>"
    made.set_content(text)
    return made


def test_a_mail_is_its_subject_its_headers_and_its_text() -> None:
    document = parse(mail("one\ntwo\n\nthree"))
    assert [(block.kind, block.text, block.level) for block in document.blocks] == [
        ("heading", "Tea", 1),
        ("paragraph", "From: Ada <ada@example.org>\nTo: Bo <bo@example.org>", 0),
        ("paragraph", "one\ntwo", 0),
        ("paragraph", "three", 0),
    ]
    assert document.title == "Tea"
    assert document.metadata == {"from": "Ada <ada@example.org>", "to": "Bo <bo@example.org>"}


def test_of_alternatives_the_html_is_read_and_its_headings_are_below_the_subject() -> None:
    made = mail("plain")
    made.add_alternative("<h1>One</h1><table><tr><th>a<th>b<tr><td>1<td>2</table>", subtype="html")
    blocks = parse(made).blocks[2:]
    assert [(block.text, block.level) for block in blocks] == [("One", 2), ("| a | b |\n|---|---|\n| 1 | 2 |", 0)]


def test_html_without_text_gives_way_to_the_plain_text() -> None:
    made = mail("plain")
    made.add_alternative("<img src=a>", subtype="html")
    assert texts(parse(made))[2:] == ["plain"]
    made = mail("plain")
    made.add_alternative("<div>" * 5000, subtype="html")
    document = parse(made)
    assert texts(document)[2:] == ["plain"]
    assert document.metadata["unread"] == ["a text in html"]


def test_attachments_are_left_to_their_parsers(tmp_path: Path) -> None:
    made = mail()
    made.add_attachment("# One\n\ntwo", subtype="markdown", filename="../größe.md")
    made.add_attachment(b"\0\1", maintype="video", subtype="mp4")
    (tmp_path / "x.eml").write_bytes(bytes(made))
    assert [(part.name, part.data) for part in parse(made).parts] == [
        ("größe.md", b"# One\n\ntwo\n"),
        ("attachment 2.mp4", b"\0\1"),
    ]
    document = sync.run(DocumentReader().read(tmp_path / "x.eml"))
    assert texts(document)[2:] == [
        "text",
        "größe.md",
        "One",
        "two",
        "(Not read, because no installed parser reads files of this type: attachment 2.mp4)",
    ]


def test_a_mail_in_a_mail_is_below_it() -> None:
    made = mail()
    inner = mail("inner text", "Inner")
    inner.add_attachment(b"a", maintype="application", subtype="x-a", filename="a.bin")
    made.add_attachment(inner)
    document = parse(made)
    assert [(block.text, block.level) for block in document.blocks if block.kind == "heading"] == [
        ("Tea", 1),
        ("Inner", 2),
    ]
    assert [part.name for part in document.parts] == ["a.bin"]


@pytest.mark.parametrize(
    ("header", "subject"),
    [
        ("=?utf-8?b?R3LDvMOfZQ==?= =?iso-8859-1?q?_K=F6ln?=", "Grüße Köln"),
        ("=?gb2312?B?0rvXxQ==?=", "一着"),
        ("Größe =?utf-8?q?caf=C3=A9?= 数据", "Größe café 数据"),
        ("=?unknown?q?a=C3=A4?=", "aä"),
        ("=?utf-8?b?!!!!?= a", None),
        ("a\n b", "a b"),
        ("\udcc3\udca4", "ä"),
        ("a\x1b[31m\u202eb", "a [31m b"),
    ],
)
def test_a_header_is_decoded(header: str, subject: str | None) -> None:
    data = f"Subject: {header}\n\ntext".encode("utf-8", "surrogateescape")
    title = EmlParser().parse(data, source="x.eml").title
    assert title == subject or subject is None


def test_the_first_of_headers_with_one_name_counts() -> None:
    document = parse(b"Subject: first\nsubject: second\nFrom: a@b\nFROM: c@d\n\ntext")
    assert texts(document) == ["first", "From: a@b", "text"]
    assert document.metadata == {"from": "a@b"}


@pytest.mark.parametrize(
    "name", ["../a.md", "/etc/a.md", r"..\a.md", r"C:\Users\x/a.md", r"x\..\a.md ", "x" * 400 + "/a.md"]
)
def test_an_attachment_has_the_last_part_of_its_name(name: str) -> None:
    made = mail()
    made.add_attachment("text", filename=name)
    assert [part.name for part in parse(made).parts] == ["a.md"]


def test_the_name_of_an_attachment_keeps_its_extension_however_long_it_is() -> None:
    made = mail()
    made.add_attachment("text", filename="x" * 500 + ".md")
    (part,) = parse(made).parts
    assert (len(part.name), part.name[-4:]) == (200, "x.md")


@pytest.mark.parametrize(
    "parameter",
    ["filename*=utf-8''gr%C3%B6%C3%9Fe.md", 'filename="=?utf-8?q?gr=C3=B6=C3=9Fe.md?="', "filename*=x-y''gr%F6%DFe.md"],
)
def test_names_of_attachments_are_decoded(parameter: str) -> None:
    data = f"Subject: a\nContent-Disposition: attachment; {parameter}\n\ntext".encode()
    assert [part.name for part in parse(data).parts] == ["größe.md"]


@pytest.mark.parametrize(
    ("charset", "encoding"), [("gb2312", "gb18030"), ("", "utf-8"), ("x-unknown", "cp1252"), ("iso-8859-1", "cp1252")]
)
def test_a_text_is_decoded_as_browsers_would(charset: str, encoding: str) -> None:
    text = "数据分析是一门学问。" if encoding == "gb18030" else "Größe – Köln"
    data = f"Subject: a\nContent-Type: text/plain; charset={charset}\n\n".encode() + text.encode(encoding)
    assert texts(parse(data))[-1] == text


def test_a_report_says_what_was_not_delivered() -> None:
    status = "Content-Type: message/delivery-status\n\nFinal-Recipient: a@b\n\nStatus: 5.1.1\n"
    data = (
        "Subject: Undelivered\nContent-Type: multipart/report; boundary=b\n\n"
        f"--b\nContent-Type: text/plain\n\nSorry.\n--b\n{status}\n--b--\n"
    )
    assert texts(parse(data.encode()))[1:] == ["Sorry.", "Final-Recipient: a@b\nStatus: 5.1.1"]


@pytest.mark.parametrize(("data", "reason"), [(b"", "is empty"), (b"a: b\n\ntext", "is not an email")])
def test_an_error_names_the_file_and_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.eml {reason}"):
        parse(data)
