"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_html.plugin import parsers
from jackfield_testkit.suites import ParserSuite, PluginSuite

PAGE = """<!DOCTYPE html><html lang="en"><head><title>Tea</title></head><body>
<nav><ul><li><a href="/">Home</a></li></ul></nav>
<main><h1>Tea</h1><p>Green tea is <b>brewed</b> with <a href="/water">hot water</a>.</p>
<ul><li>one</li><li>two</li></ul>
<table><tr><th>sort</th><th>water</th></tr><tr><td>black</td><td>boiling</td></tr></table>
<pre><code>print("tea")</code></pre></main><footer>The end</footer></body></html>"""


class TestPlugin(PluginSuite):
    dist = "jackfield-html"


class TestHtml(ParserSuite):
    component = "jackfield-html/html"
    samples: ClassVar = {
        "tea.html": (PAGE.encode(), "Green tea is brewed with [hot water](/water)."),
        "中文.htm": ('<meta charset="gb2312"><h1>标题</h1><p>数据分析是一门学问。'.encode("gb18030"), "数据分析"),
        "strict.xhtml": (
            b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><p>Tea<br/>time</p></html>',
            "Tea",
        ),
        "broken.html": (
            b"<p>one<p>two<table><tr><td>a<td>b<tr><td>c<td>d</table><b>tail",
            ("one", "two", "| c | d |", "tail"),
        ),
    }
    unreadable: ClassVar = {
        "picture.html": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
        "white.html": b" \n\t ",
        "script.html": b"<html><body><div id=app></div><script>render('all of it')</script></body></html>",
        "never closed.html": b"<div>" * 100_000 + b"text",
        "always bold.html": b"<b>" * 20_000 + b"text",
    }
    hostile: ClassVar = {
        "divs.html": b"<div>" * 400_000,
        "attributes.html": b"<a " + b"b=c " * 300_000 + b">text",
        "comments.html": b"<!--" * 300_000,
        "doctypes.html": b"<!DOCTYPE" * 200_000,
        "spans.html": b"<table>" + b"<tr><td rowspan=1000 colspan=1000>x<td>y" * 5000,
        "menus.html": b'<div class="menu"><a>x' * 2000 + b"text",
        "tables.html": b"<table><tr><td>x<td>y<tr><td>z<td>" * 600,
        "lists.html": b"<ul><li>x" * 900 + b"<br>y" * 20_000,
        "entities.html": b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><p>&b;'
        + b"&b;" * 100_000,
    }

    @staticmethod
    def make_file(count: int) -> bytes:
        return b"<p>A paragraph of <b>some</b> words.<table><tr><td>a<td>b<tr><td>c<td>d</table>" * (40 * count)


def test_a_page_is_recognised_by_each_media_type_of_html() -> None:
    (spec,) = parsers()
    assert set(spec.media_types) == {"text/html", "application/xhtml+xml"}


def test_files_are_recognised_by_each_of_these_extensions() -> None:
    assert {spec.name: " ".join(spec.extensions) for spec in parsers()} == {
        "html": "html htm xhtml xht",
    }
