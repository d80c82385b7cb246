"""Which links and images pass, however they are written."""

from __future__ import annotations

import pytest

from jackfield_guardrail.links import LinkFinder
from jackfield_guardrail.scanning import Scanner, Watch

HOSTS = ["good.example", "*.sub.example", "localhost:8000"]

PASS = [
    "https://good.example",
    "see https://good.example.",
    'in "https://good.example", and (https://good.example/a), and `https://good.example`',
    "**https://good.example**",
    "请看https://good.example。然后，用（https://good.example）查看https://good.example/x，好",
    "<b>https://good.example</b> https://good.example<br>",
    "https://good.example/a/b?q=1#x HTTPS://GOOD.EXAMPLE/",
    "https://good.example:8443/x",
    "seehttps://good.example/x and xhttp://good.example",
    "https://a.sub.example https://a.b.sub.example/x",
    "http://localhost:8000/x",
    '![a](https://good.example/a.png "title") [b](<https://good.example/a b>)',
    "[a](/relative/path) [b](#part) [c](page.html) [d]() [e](../x?y=//z)",
    "[a]: https://good.example/a\n[^1]: Note: this is one.",
    '<img src="https://good.example/a.png"> <a href=https://good.example/>x</a> <img src="data:image/png;base64,AAAA">',
    "background:url(https://good.example/a.png) url('/b.png')",
    "write to [us](mailto:team@good.example) or [us](mailto:team@GOOD.example)",
    "www is a word, a // b, x = y //comment, 10:30, note: see",
    "//good.example/x (//good.example)",
    "[x](tel:+4930123) C:\\folder a[0](b)",
    'data="some long text that is no address at all and goes on and on' + " and on" * 500 + '"',
    "https://good.example/" + "a" * 5000,
    "[a](https:///good.example/x) [b](https:/good.example/x) [c](https:good.example/x)",
    "https://good.example.:8443/x https://a.sub.example./x",
    '<img src="DATA:IMAGE/PNG;base64,AAAA">',
    *(f"[{text}](https://good.example/" + "\\_" * 1500 + ")" for text in ("a", "ab")),
]

NOT_PASS = [
    "https://evil.example",
    "HTTPS://EVIL.EXAMPLE/x",
    "https://good.example.evil.example/",
    "https://evil.example/good.example",
    "https://evilgood.example",
    "https://good.example@evil.example/",
    "https://good.example:x@evil.example/",
    "https://me@a.sub.example/",
    "![a](https://good.example:evil/a.png)",
    "https://good.example%2eevil.example@evil.example",
    "https://sub.example/",
    "http://localhost:9000/",
    "http://localhost/",
    "www.evil.example",
    "![a](https://evil.example/a.png)",
    "![a](  \n https://evil.example/a.png)",
    "![a](<https://evil.example/a b>)",
    "![a](//evil.example/a.png)",
    "![a](\\\\evil.example/a.png)",
    "![a](/\\evil.example/a.png)",
    "![a](https:evil.example/a.png)",
    "![a](https:/evil.example/a.png)",
    "![a](https:///evil.example/a.png)",
    "![a](https:\\\\evil.example/a.png)",
    "![a](https\\://evil.example/a.png)",
    "![a](&#104;ttps://evil.example/a.png)",
    "![a](&#x68;ttps&colon;//evil.example/a.png)",
    "![a](https&#58;&#47;&#47;evil.example/a.png)",
    "![a](&#" + "0" * 300 + "104;ttps:evil.example)",
    "![a](https://good.example'@evil.example/a.png)",
    "![a](https://good.example<@evil.example/a.png)",
    "![a](https://good.example\\)@evil.example/a.png)",
    "![a](https://good.example&#41;@evil.example/a.png)",
    "https://good.example'@evil.example/",
    'https://good.example",x.evil.example/',
    "https://good.example。evil.example/",
    "https://good.example。evil.example",
    "https://good.example。公司/?q=1",
    "https://good.example公司/?q=1",
    "[a][1]\n\n[1]: https://evil.example/x",
    "[a][1]\n\n[1]: //evil.example/x",
    "[a][1]\n\n   [1]: <//evil.example/x>",
    "<img src='https://evil.example/a.png'>",
    '<img src="//evil.example/a.png">',
    "<img src=//evil.example/a.png>",
    '<img src="ht\ntps://evil.example/a.png">',
    '<img src=" \thttps:evil.example/a.png">',
    '<img srcset="/a.png 1x, //evil.example/b.png 2x">',
    '<meta http-equiv="refresh" content="0;url=//evil.example/">',
    '<div style="background:url(//evil.example/a.png)">',
    "<a href='javascript:fetch(1)'>x</a>",
    "[x](javascript:alert(1)) ",
    "[x](vbscript:x)",
    "[x](data:text/html;base64,AAAA)",
    "[x](file:///etc/passwd)",
    "ftp://good.example/x",
    "wss://good.example/x",
    "[us](mailto:spy@evil.example?body=secret)",
    "foo.https://evil.example",
    "https://" + "a" * 3000 + "@evil.example/",
    "![a](" + "a" * 3000 + ")",
    "text ;//evil.example (//evil.example/x)",
    "//evil.example/x",
    "//evil.example![a]()@good.example",
    "https://user@good.example/x",
    "_//evil.example/x",
    "[a //evil.example/ [1]: x",
    "https://good.example>\\evil@evil.example",
    "//<@evil.example/",
    "https://<@evil.example/",
    "//.@evil.example/",
    "//\u00adevil.example/x",
    "https://good.example&sol;x@evil.example",
    "!//evil.example",
    "：//evil.example",
    "https://evilsub.example/x",
    "![a](https://.sub.example/x)",
    "![a](https:me@a.sub.example/x)",
    "![a](https:xxgood.example/a.png)",
    "[a](b) www.evil.example",
    "[a](b)//evil.example/x",
    "WWW.evil.example/x",
    "Www.Evil.example",
    '<img src="/\n/evil.example/a.png">',
    "![a](&#47;/evil.example/a.png)",
    "custom://evil.example/x",
    "[us](mailto:spy@evil.example?cc=team@good.example)",
]


def _stopped(text: str, pieces: int) -> bool:
    scanner = Scanner([Watch("links", LinkFinder(HOSTS), "stop")])
    for start in range(0, len(text), pieces):
        scanner.feed(text[start : start + pieces])
    scanner.finish()
    return bool(scanner.stopped)


@pytest.mark.parametrize("around", ["{}", "{} and more", "some words before it: {} " + "and more " * 30])
@pytest.mark.parametrize("text", PASS)
def test_a_link_to_a_listed_host_or_to_none_passes(text: str, around: str) -> None:
    assert not _stopped(around.format(text), 7)


@pytest.mark.parametrize("around", ["{}", "{} and more", "some words before it: {} " + "and more " * 30])
@pytest.mark.parametrize("text", NOT_PASS)
def test_a_link_to_another_host_does_not_pass_however_it_is_written(text: str, around: str) -> None:
    if around.startswith("some") and "]: " in text:
        around = around.replace(": {}", ":\n{}")
    assert _stopped(around.format(text), 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see ![a](https://evil.example/?q=1) now", "see ![a]([]) now"),
        ("see https://evil.example/?q=1, or", "see [] or"),
        ('<img src="//evil.example/a?b">', '<img src="[]">'),
        ("(https://evil.example)", "([])"),
        ("https://evil.example/1 https://good.example/2", "[] https://good.example/2"),
        ("![a](<https://evil.example/a b>) c", "![a](<[]>) c"),
    ],
)
def test_only_the_address_is_taken_out(text: str, expected: str) -> None:
    scanner = Scanner([Watch("links", LinkFinder(HOSTS), "take", "[]")])
    assert scanner.feed(text) + scanner.finish() == expected


def test_without_hosts_no_link_passes() -> None:
    finder = LinkFinder([])
    assert finder.find("https://good.example/", 0, complete=True)
    assert finder.find("no link", 0, complete=True) is None
