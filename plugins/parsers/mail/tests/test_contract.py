"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from email.message import EmailMessage
from typing import Any, ClassVar

import pytest

from jackfield_testkit.suites import ParserSuite, PluginSuite


def mail(text: str = "Green tea.\n\nBrew it.", html: str = "", **headers: str) -> EmailMessage:
    made = EmailMessage()
    for name, value in ({"Subject": "Tea, 绿茶", "From": "Ada <ada@example.org>"} | headers).items():
        made[name] = value
    made.set_content(text)
    if html:
        made.add_alternative(html, subtype="html")
    return made


def with_attachment() -> bytes:
    made = mail()
    made.add_attachment(b"\0\1\2", maintype="application", subtype="octet-stream", filename="a.bin")
    return bytes(made)


NESTED = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(5000))


class TestPlugin(PluginSuite):
    dist = "jackfield-mail"


class TestEml(ParserSuite):
    component = "jackfield-mail/eml"
    samples: ClassVar = {
        "tea.eml": (bytes(mail()), ("Tea, 绿茶", "From: Ada <ada@example.org>", "Green tea.", "Brew it.")),
        "page.mht": (bytes(mail(html="<h1>One</h1><p>two")), ("One", "two")),
        "big5.eml": (
            b"Subject: =?big5?q?=B4=FA=B8=D5?=\nContent-Type: text/plain; charset=big5\n\n" + "測試".encode("big5"),
            "測試",
        ),
    }
    unreadable: ClassVar = {
        "text.eml": b"just a text\n\nwithout headers",
        "white.eml": b" \n ",
        "picture.eml": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
        "other.eml": b"Title: a note\n\ntext",
    }
    hostile: ClassVar = {
        "nested.eml": b"Subject: a\n" + NESTED.encode(),
        "parts.eml": b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 20_000,
        "headers.eml": b"Subject: a\n" + b"X: y\n" * 40_000,
        "words.eml": b"Subject: " + b"=?utf-8?q?a?=" * 20_000 + b"\n\ntext",
        "parameters.eml": b"Subject: a\nContent-Type: text/plain" + b";a=b" * 10_000 + b"\n\ntext",
        "html.eml": b"Subject: a\nContent-Type: text/html\n\n" + b"<div>" * 40_000,
        "base64.eml": b"Subject: a\nContent-Transfer-Encoding: base64\n\n" + b"=" * 400_000,
    }

    @staticmethod
    def make_file(count: int) -> bytes:
        return bytes(mail("A paragraph of some words.\n\n" * (100 * count)))


class TestMsg(ParserSuite):
    component = "jackfield-mail/msg"

    @pytest.fixture(autouse=True)
    def _give(self, ole: Any, message: Any) -> None:
        tea = ole(message({0x0037: "Tea", 0x0C1A: "Ada", 0x1000: "Green tea.\r\n\r\nBrew it."}))
        page = ole(message({0x0037: "标题", 0x1013: "<p>数据分析".encode()}, values={0x3FDE: 65001}))
        self.samples = {
            "tea.msg": (tea, ("Tea", "From: Ada", "Green tea.", "Brew it.")),
            "页.msg": (page, ("标题", "数据分析")),
        }
        self.unreadable = {
            "text.msg": b"just a text",
            "other.msg": ole({"WordDocument": b"a"}),
            "cut.msg": tea[:1000],
        }
        shared = {f"__attach_version1.0_#{number:08X}": {} for number in range(500)}
        inner: Any = message({0x0037: "deepest"}, header_bytes=24)
        for number in range(40):
            attached = {"__substg1.0_3701000D": inner}
            inner = message({0x0037: str(number)}, attached, header_bytes=24)
        self.hostile = {
            "many.msg": ole({**message({0x0037: "a"}), **shared}),
            "deep.msg": ole({**inner, "__properties_version1.0": bytes(32)}),
            "html.msg": ole(message({0x0037: "a", 0x1013: b"<div>" * 40_000})),
        }
