"""Headers, texts, attachments and properties of mails, each alone, at its limit and in its order."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jackfield.errors import DocParserError
from jackfield.retrieval import Document
from jackfield_mail.compressed_rtf import _INITIAL, decompress
from jackfield_mail.eml import EmlParser
from jackfield_mail.msg import MsgParser
from jackfield_mail.plugin import parsers


def eml(text: str | bytes) -> Document:
    return EmlParser().parse(text.encode() if isinstance(text, str) else text, source="x.eml")


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def parts(document: Document) -> list[tuple[str, bytes]]:
    return [(part.name, part.data) for part in document.parts]


def multipart(kind: str, *entities: str) -> str:
    """A body of several parts, each with its headers."""
    boundary = f"b{len(''.join(entities))}"
    inner = "".join(f"--{boundary}\n{entity}\n" for entity in entities)
    return f"Content-Type: multipart/{kind}; boundary={boundary}\n\n{inner}--{boundary}--\n"


PLAIN, HTML = "Content-Type: text/plain\n\nplain", "Content-Type: text/html\n\n<p>html"
PICTURE = "Content-Type: image/png; name=a.png\n\npng"


def test_the_headers_come_in_the_usual_order_under_the_usual_names() -> None:
    document = eml("date: d\nBCC: b\ncc: c\nTo: t\nreply-to: r\nX-Other: x\nFrom: f\nSubject:\nMessage-ID: i\n\ntext")
    assert texts(document) == [
        "(no subject)", "From: f\nReply-To: r\nTo: t\nCc: c\nBcc: b\nDate: d", "text"
    ]  # fmt: skip
    assert document.title == ""
    assert document.metadata == {"from": "f", "reply-to": "r", "to": "t", "cc": "c", "bcc": "b", "date": "d"}


def test_an_empty_header_is_not_shown_and_those_of_a_delivery_report_are_decoded() -> None:
    report = "Content-Type: message/delivery-status\n\nStatus: =?utf-8?q?caf=C3=A9?=\n\nAction: failed\n"
    document = eml(f"To: t\nCc:\nReply-To: \n{multipart('report', report)}")
    assert texts(document) == ["(no subject)", "To: t", "Status: café\nAction: failed"]


def test_a_mail_of_any_kind_inside_of_another_is_below_it() -> None:
    for kind in ("rfc822", "global"):
        inner = f"Content-Type: message/{kind}\n\nSubject: inner\n\ntext"
        document = eml(f"Subject: outer\n{multipart('mixed', PLAIN, inner)}")
        assert texts(document) == ["outer", "plain", "inner", "text"]


@pytest.mark.parametrize(
    ("headers", "body", "shown"),
    [
        ("text/plain; charset*=us-ascii''iso-8859-1", b"caf\xc3\xa9", "café"),
        ("text/plain; charset=utf-8", b"caf\xe9 x", "caf\ufffd x"),
        ("text/html; charset=utf-8", b"<p>caf\xe9 x", "caf\ufffd x"),
    ],
)
def test_a_text_with_a_broken_or_unusual_encoding_is_read(headers: str, body: bytes, shown: str) -> None:
    document = eml(b"Subject: s\nContent-Type: " + headers.encode() + b"\n\n" + body)
    assert texts(document) == ["s", shown]


def test_an_empty_text_is_not_one_that_cannot_be_read() -> None:
    for kind in ("plain", "html"):
        document = eml(f"Subject: s\n{multipart('mixed', f'Content-Type: text/{kind}', PLAIN)}")
        assert (texts(document), "unread" in document.metadata) == (["s", "plain"], False)


@pytest.mark.parametrize(
    "name", ["From", "To", "Subject", "Date", "Message-ID", "Received", "MIME-Version", "Return-Path", "RECEIVED"]
)
def test_one_typical_header_makes_a_mail(name: str) -> None:
    assert texts(eml(f"{name}: a\n\ntext"))[-1] == "text"


@pytest.mark.parametrize(
    ("data", "reason"), [(b" \n\t", "is empty"), (b"Content-Type: text/plain\n\na", "is not an email")]
)
def test_what_is_not_a_mail_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocParserError, match=rf"^x\.eml {reason}"):
        eml(data)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (multipart("mixed", PLAIN, HTML), ["plain", "html"]),
        (multipart("alternative", PLAIN, HTML), ["html"]),
        (multipart("alternative", HTML, PLAIN), ["plain"]),
        (
            multipart("alternative", PLAIN, "Content-Type: text/html\n\n<br>", "Content-Type: text/calendar\n\nx"),
            ["plain"],
        ),
        (multipart("alternative", "Content-Type: text/plain\n\n "), []),
        (multipart("alternative", PLAIN, multipart("related", HTML, PICTURE)), ["html"]),
        (multipart("mixed", multipart("alternative", PLAIN, HTML), PLAIN), ["html", "plain"]),
        (multipart("mixed", "Content-Type: message/delivery-status\n\n\n"), []),
        (multipart("mixed", "Content-Type: text/html\n\n<h2>A</h2>b"), ["A", "b"]),
    ],
)
def test_the_best_alternative_is_read_and_of_other_kinds_each_part(body: str, expected: list[str]) -> None:
    assert texts(eml(f"Subject: s\n{body}"))[1:] == expected


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ("Content-Type: text/plain; name=a.txt", "a.txt"),
        ("Content-Type: text/plain\nContent-Disposition: attachment", "attachment 1.txt"),
        ("Content-Type: text/html\nContent-Disposition: attachment; filename=a.htm", "a.htm"),
        ("Content-Type: image/png; name=a.png\nContent-Disposition: inline; filename=b.png", "b.png"),
        ("Content-Type: image/png", "attachment 1.png"),
        ("Content-Type: application/x-unheard-of", "attachment 1"),
        ('Content-Type: image/png; name="=?utf-8?q?=C3=A4?= =?utf-8?q?b.png?="', "äb.png"),
        ("Content-Type: image/png; name*=''%C3%A4.png", "ä.png"),
        ("Content-Type: image/png; name*=iso-8859-15'de'%A4.png", "€.png"),
        ("Content-Type: image/png; name*0=a; name*1=b.png", "ab.png"),
        (r'Content-Type: image/png; name="C:\\x\\a.png "', "a.png"),
        ('Content-Type: image/png; name="a/"', "attachment 1.png"),
    ],
)
def test_a_part_with_a_name_or_of_another_kind_is_attached(headers: str, name: str) -> None:
    document = eml(f"Subject: s\n{multipart('mixed', f'{headers}{chr(10)}{chr(10)}data', PLAIN)}")
    assert parts(document) == [(name, b"data")]
    assert texts(document) == ["s", "plain"]


def test_a_named_inline_text_is_attached_and_an_empty_attachment_is_left_out() -> None:
    empty = "Content-Type: image/png; name=a.png\n\n"
    inline = "Content-Type: text/plain\nContent-Disposition: inline\n\nshown"
    document = eml(f"Subject: s\n{multipart('mixed', empty, inline, PICTURE)}")
    assert (texts(document), parts(document)) == (["s", "shown"], [("a.png", b"png")])
    blank = "Content-Type: application/x-a; name=a.bin\n\n \t"
    assert parts(eml(f"Subject: s\n{multipart('mixed', blank)}")) == [("a.bin", b" \t")]


@pytest.mark.parametrize(
    ("encoding", "data"),
    [("base64", "ZGF0YQ=="), ("quoted-printable", "d=61ta"), ("7bit", "data"), ("x-unknown", "data")],
)
def test_an_attachment_is_decoded(encoding: str, data: str) -> None:
    body = f"Content-Type: image/png; name=a.png\nContent-Transfer-Encoding: {encoding}\n\n{data}"
    assert parts(eml(f"Subject: s\n{multipart('mixed', body)}")) == [("a.png", b"data")]


def test_mails_in_mails_are_below_and_their_attachments_behind_those_of_the_outer_one() -> None:
    broken = "Content-Type: text/html\n\n" + "<div>" * 5000
    deepest = "Content-Type: message/rfc822\n\nSubject: Third\n" + multipart(
        "mixed", PICTURE, "Content-Type: text/html\n\n<h1>C"
    )
    inner = "Content-Type: message/rfc822\n\nSubject: Second\nTo: b\n" + multipart("mixed", broken, deepest, PICTURE)
    document = eml(
        f"Subject: First\nTo: a\n{multipart('mixed', inner, 'Content-Type: text/html' + chr(10) * 2 + '<h2>A', broken)}"
    )
    assert [(block.text, block.level) for block in document.blocks] == [
        ("First", 1), ("To: a", 0), ("A", 3), ("Second", 2), ("To: b", 0), ("Third", 3), ("C", 4)
    ]  # fmt: skip
    assert document.metadata == {"to": "a", "unread": ["a text in html", "a text in html"]}
    assert document.title == "First"
    other = multipart("mixed", inner, "Content-Type: image/png; name=outer.png\n\nx")
    assert [name for name, _ in parts(eml(f"Subject: First\n{other}"))] == ["outer.png", "a.png", "a.png"]


def test_a_text_that_is_not_one_is_named() -> None:
    body = "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nAAECAwQFBgcICQ==\n"
    document = eml(f"Subject: s\n{multipart('mixed', body, PLAIN)}")
    assert (texts(document), document.metadata) == (["s", "plain"], {"unread": ["a text in plain"]})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a\r\n \t\r\n\r\nb", ["a", "b"]),
        ("a\rb", ["a\nb"]),
        ("a\r\r b ", ["a", " b"]),
        ("\n\n  a\n   b\n\n\n", ["  a\n   b"]),
        ("a\0b", ["ab"]),
        ("a  \n\nb", ["a", "b"]),
    ],
)
def test_blank_lines_part_paragraphs_and_indentation_stays(body: str, expected: list[str]) -> None:
    assert texts(eml(f"Subject: s\nContent-Type: text/plain; charset=utf-8\n\n{body}"))[1:] == expected


@pytest.mark.parametrize(
    ("header", "subject"),
    [
        ("a" * 10_001, "a" * 10_000),
        ("=?utf-8?q?=C3=A4?= b =?utf-8?q?c?=", "ä b c"),
        ("=?UTF-8?Q?a_b?=", "a b"),
        ("a \x00\x07 b\u200bc", "a b c"),
        ("=?utf-8?b?////?=", "\ufffd" * 3),
        ("=?utf-8?b?=", "=?utf-8?b?="),
        ("=?utf-8?b?a?=", None),
    ],
)
def test_a_header_is_one_line_of_what_can_be_shown(header: str, subject: str | None) -> None:
    title = eml(f"To: x\nSubject: {header}\n\ntext").title
    assert title == subject or subject is None


# --- messages of Outlook ----------------------------------------------------------------------------------------------

SUBJECT, BODY, HTML_BODY, RTF, NAME, ADDRESS, SMTP = 0x0037, 0x1000, 0x1013, 0x1009, 0x0C1A, 0x0C1F, 0x5D01
TO, CC, CODE_PAGE, INTERNET = 0x0E04, 0x0E03, 0x3FFD, 0x3FDE


def msg(data: bytes) -> Document:
    return MsgParser().parse(data, source="x.msg")


@pytest.mark.parametrize(
    ("sender", "shown"),
    [
        ({NAME: "Ada"}, "From: Ada"),
        ({SMTP: "a@b"}, "From: a@b"),
        ({ADDRESS: "a@b"}, "From: a@b"),
        ({NAME: "Ada", ADDRESS: "a@b"}, "From: Ada <a@b>"),
        ({NAME: "Ada", ADDRESS: "/O=EXCHANGE/CN=ADA"}, "From: Ada"),
        ({NAME: "Ada", ADDRESS: "x@y", SMTP: "a@b"}, "From: Ada <a@b>"),
        ({NAME: "a@b", SMTP: "a@b"}, "From: a@b"),
        ({CC: "Cy", TO: "Bo"}, "To: Bo\nCc: Cy"),
        ({TO: "Bo\0"}, "To: Bo"),
    ],
)
def test_the_sender_has_a_name_and_an_address(ole: Any, message: Any, sender: dict[int, str], shown: str) -> None:
    document = msg(ole(message({SUBJECT: "s", BODY: "b", **sender})))
    assert texts(document) == ["s", shown, "b"]


@pytest.mark.parametrize(
    ("properties", "expected", "attached"),
    [
        ({HTML_BODY: "<p>html", BODY: "plain"}, ["html"], []),
        ({HTML_BODY: b"<p>html", BODY: "plain"}, ["html"], []),
        ({HTML_BODY: "<br>", BODY: "plain"}, ["plain"], []),
        ({HTML_BODY: "<br>", BODY: " ", RTF: b"rtf"}, [], ["message.rtf"]),
        ({BODY: "plain", RTF: b"rtf"}, ["plain"], []),
        ({HTML_BODY: "<p>html", RTF: b"rtf"}, ["html"], []),
    ],
)
def test_the_text_is_html_else_plain_else_rtf(
    ole: Any, message: Any, properties: dict[int, Any], expected: list[str], attached: list[str]
) -> None:
    if RTF in properties:
        properties = {**properties, RTF: struct.pack("<II4sI", 17, 5, b"MELA", 0) + b"{\\rtf"}
    document = msg(ole(message({SUBJECT: "s", **properties})))
    assert texts(document)[1:] == expected
    assert [part.name for part in document.parts] == attached


def test_html_that_is_not_text_and_damaged_rtf_are_named_and_the_rest_is_read(ole: Any, message: Any) -> None:
    attachment = {"__substg1.0_37010102": b"data", "__substg1.0_3704001F": "a.bin".encode("utf-16-le")}
    document = msg(ole(message({SUBJECT: "s", HTML_BODY: "<div>" * 5000, RTF: b"x" * 20}, attachment)))
    assert texts(document) == ["s"]
    assert document.metadata == {"unread": ["its text in HTML", "its text in RTF"]}
    assert parts(document) == [("a.bin", b"data")]


@pytest.mark.parametrize(
    ("number", "codec", "shown"),
    [
        (65001, "utf-8", "ä"), (936, "gbk", "大"), (54936, "gb18030", "大"), (932, "shift_jis", "大"),
        (949, "cp949", "한"), (950, "big5", "大"), (20866, "koi8-r", "я"), (51932, "euc-jp", "大"),
        (50220, "iso-2022-jp", "大"), (28591, "latin-1", "ä"), (28592, "iso-8859-2", "ř"),
        (28605, "iso-8859-15", "€"), (1252, "cp1252", "ä"), (1250, "cp1250", "ř"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("identifier", [CODE_PAGE, INTERNET])
def test_a_message_names_a_code_page(
    ole: Any, message: Any, identifier: int, number: int, codec: str, shown: str
) -> None:
    tree = {**message({}, values={identifier: number}), "__substg1.0_0037001E": shown.encode(codec) + b"\0"}
    assert msg(ole(tree)).title == shown


def test_the_code_page_of_a_message_comes_before_that_of_its_html(ole: Any, message: Any) -> None:
    tree = message({HTML_BODY: "ř".encode("cp1250")}, values={CODE_PAGE: 1251, INTERNET: 1250})
    document = msg(ole({**tree, "__substg1.0_0037001E": "я".encode("cp1251")}))
    assert texts(document) == ["я", "ř"]


def test_a_text_without_a_code_page_is_decoded_by_its_bytes(ole: Any, message: Any) -> None:
    for raw, shown in ((b"gr\xc3\xb6\xc3\x9fe", "größe"), (b"a\x01\x02\x03\x04", "a\x01\x02\x03\x04")):
        assert msg(ole({**message({}), "__substg1.0_0037001E": raw})).title == shown
    both = {**message({SUBJECT: "wide"}), "__substg1.0_0037001E": b"narrow"}
    assert msg(ole(both)).title == "wide"


def nested(message: Any, depth: int) -> Any:
    tree = message({SUBJECT: str(depth)}, header_bytes=24)
    for level in range(depth - 1, -1, -1):
        tree = message({SUBJECT: str(level)}, {"__substg1.0_3701000D": tree}, header_bytes=24 if level else 32)
    return tree


def test_messages_are_nested_up_to_a_depth(ole: Any, message: Any) -> None:
    whole, cut = msg(ole(nested(message, 10))), msg(ole(nested(message, 11)))
    assert texts(whole) == [str(level) for level in range(11)]
    assert texts(cut) == texts(whole)
    assert "unread" not in whole.metadata
    assert cut.metadata["unread"] == ["the attachment 1"]


@pytest.mark.parametrize("before", [0, 1, 2])
def test_the_number_of_an_attachment_counts_attachments_only(ole: Any, message: Any, before: int) -> None:
    too_deep = {"__substg1.0_3701000D": message({SUBJECT: "too deep"}, header_bytes=24)}
    file, empty = {"__substg1.0_37010102": b"data"}, {"__substg1.0_37010102": b""}
    rtf = struct.pack("<II4sI", 17, 5, b"MELA", 0) + b"{\\rtf"
    tree = message({SUBJECT: "10", RTF: rtf}, *[file, empty][:before], too_deep, too_deep, header_bytes=24)
    for level in range(9, -1, -1):
        tree = message({SUBJECT: str(level)}, {"__substg1.0_3701000D": tree}, header_bytes=24 if level else 32)
    document = msg(ole(tree))
    assert document.metadata["unread"] == [f"the attachment {before + 1}", f"the attachment {before + 2}"]
    assert [part.name for part in document.parts] == ["message.rtf", "attachment 2"][: 1 + (before > 0)]


def test_an_attachment_that_cannot_be_read_is_named_by_its_number(ole: Any, message: Any) -> None:
    good = {"__substg1.0_37010102": b"a"}
    long = {**good, "__substg1.0_3704001F": "s".encode("utf-16-le"), "__substg1.0_3707001F": "long".encode("utf-16-le")}
    bad = {"__substg1.0_3701000D": {"__properties_version1.0": b""}, "__substg1.0_37010102": b""}
    document = msg(ole(message({SUBJECT: "s"}, good, {}, long)))
    assert parts(document) == [("attachment 1", b"a"), ("long", b"a")]
    assert texts(msg(ole(message({SUBJECT: "s"}, bad)))) == ["s", "(no subject)"]


def test_streams_may_be_read_up_to_four_times_the_length_of_the_file_and_one_mebibyte(
    ole: Any, message: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jackfield_mail.msg import _Spare

    limits, begin = list[int](), _Spare.__init__
    monkeypatch.setattr(_Spare, "__init__", lambda self, limit: limits.append(limit) or begin(self, limit))
    data = ole(message({SUBJECT: "s"}))
    msg(data)
    assert limits == [4 * len(data) + 2**20]
    spare = _Spare(10)
    spare.spend(4)
    spare.spend(6)
    with pytest.raises(ValueError, match="its streams overlap"):
        spare.spend(1)


# --- compressed RTF ---------------------------------------------------------------------------------------------------


def compress(text: bytes) -> bytes:
    """Compress as Outlook does: the longest earlier piece in the last 4096 bytes, else the byte itself."""
    history = _INITIAL + text
    write, tokens = len(_INITIAL), []
    while write < len(history):
        start = max(0, write - 4096 + 20)
        length = 0
        for size in range(min(17, len(history) - write), 1, -1):
            at = history.find(history[write : write + size], start, write + size - 1)
            if at >= 0:
                length = size
                break
        if length:
            tokens.append(((at % 4096) << 4 | length - 2).to_bytes(2, "big"))
        else:
            tokens.append(history[write : write + 1])
        write += max(1, length)
    tokens.append(((write % 4096) << 4).to_bytes(2, "big"))
    content = b""
    for place in range(0, len(tokens), 8):
        eight = tokens[place : place + 8]
        content += bytes([sum(1 << bit for bit, token in enumerate(eight) if len(token) == 2)]) + b"".join(eight)
    return struct.pack("<II4sI", len(content) + 12, len(text), b"LZFu", 0) + content


@given(st.binary(max_size=300), st.integers(1, 30))
@example(b"{\\rtf1\\ansi hello} ", 1)
@example(bytes(range(256)), 20)
@example(b"\\par \\pard\\plain\\f0 tea ", 300)
def test_what_is_compressed_is_expanded_again(piece: bytes, times: int) -> None:
    text = piece * times
    assert decompress(compress(text)) == text
    assert decompress(compress(text) + b"and more") == text


def test_rtf_that_was_cut_off_is_read_up_to_there() -> None:
    text = bytes(range(40, 90))
    data = compress(text)
    for length in range(16, len(data)):
        assert text.startswith(decompress(data[:length]))
    assert decompress(data[:-2]) == text


@pytest.mark.parametrize(("length", "error"), [(0, "too short"), (15, "too short"), (16, "of another kind")])
def test_rtf_has_a_header(length: int, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        decompress(bytes(length))


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "eml": "eml mht mhtml",
        "msg": "msg oft",
    }


def test_files_are_recognised_by_each_of_these_media_types() -> None:
    assert {spec.name: list(spec.media_types) for spec in parsers()} == {
        "eml": [
            "message/rfc822",
            "multipart/related",
        ],
        "msg": [
            "application/vnd.ms-outlook",
        ],
    }
