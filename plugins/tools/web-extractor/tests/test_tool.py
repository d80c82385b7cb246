"""Which pages are read, and what a model gets of them: from a real server on loopback, which has to be allowed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield import FnCallAgent
from jackfield.errors import ConfigError, DocParserError, ToolArgumentError, ToolServiceError
from jackfield.retrieval import Block, Document
from jackfield.testing import ScriptedModel, answer, calls
from jackfield_web_extractor import tool
from jackfield_web_extractor.tool import WebExtractor, _parts, _texts

ALLOWED = {"fetch_cfg": {"allow": ["127.0.0.1"]}}
PAGE = b"<title>Tides</title><main><h2>Sea</h2><p>High <a href='/low?a=1&amp;b=2'>water</a>.</p></main><p>"


class Web(ThreadingHTTPServer):
    """Gives what a test has put at a path, with its status; `asked` has the paths."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, tuple[int, str, bytes]] = {"/": (200, "text/html", PAGE)}
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, media_type, data = self.server.pages.get(self.path, (404, "text/plain", b"none"))
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        if status == 302:
            self.send_header("Location", data.decode())
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: what was asked is in `asked`."""


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def read(web: Web, path: str = "/", tool: WebExtractor | None = None, **arguments: Any) -> Any:
    made = tool or WebExtractor(ALLOWED)
    return asyncio.run(made.call({"url": web.url + path, **arguments}))


def test_a_page_is_its_title_its_text_and_links_that_lead_somewhere(web: Web) -> None:
    result = read(web)
    assert result.content == f"# Tides\n\n## Sea\n\nHigh [water]({web.url}/low?a=1&b=2)."
    assert result.metadata == {"sources": [f"{web.url}/"], "title": "Tides", "parts": 1}


def test_an_agent_reads_a_page(web: Web) -> None:
    model = ScriptedModel([calls(("web_extractor", {"url": f"{web.url}/"})), answer("Twice.")])
    agent = FnCallAgent([{"name": "web_extractor", **ALLOWED}], model)
    *_, result, last = agent.run_nonstream([{"role": "user", "content": "How often?"}])
    assert "High [water]" in result["content"]
    assert last["content"] == "Twice."


def test_a_long_page_comes_in_parts_that_are_all_of_it(web: Web) -> None:
    text = "".join(f"<p>Paragraph {number} of many.</p>" for number in range(200))
    web.pages["/long"] = (200, "text/html", text.encode())
    tool = WebExtractor(ALLOWED, part_chars=1000)
    first = read(web, "/long", tool)
    parts = [read(web, "/long", tool, part=number + 1).content for number in range(first.metadata["parts"])]
    notes = [f"This is part {number} of {len(parts)}" for number in range(1, len(parts) + 1)]
    assert [part.rpartition("\n\n")[2].partition(":")[0].rstrip(".") for part in parts] == notes
    assert "call again with part=2." in parts[0]
    assert parts[-1].endswith(f"This is part {len(parts)} of {len(parts)}.")
    whole = "\n\n".join(part.rpartition("\n\n")[0] for part in parts)
    assert whole == "\n\n".join(f"Paragraph {number} of many." for number in range(200))
    with pytest.raises(
        ToolArgumentError, match=rf"no part {len(parts) + 1} of .*: parts are numbered from 1 to {len(parts)}"
    ):
        read(web, "/long", tool, part=len(parts) + 1)


@pytest.mark.parametrize(
    ("lengths", "parts"), [([10, 8], [20]), ([10, 9], [10, 9]), ([20, 1], [20, 1]), ([45, 3], [20, 20, 10])]
)
def test_a_part_is_filled_up_to_the_limit(lengths: list[int], parts: list[int]) -> None:
    assert [len(part) for part in _parts(["x" * length for length in lengths], 20)] == parts


@given(st.lists(st.text(min_size=1), min_size=1), st.integers(1, 40))
def test_parts_lose_nothing_and_are_never_too_long(texts: list[str], most: int) -> None:
    parts = _parts(texts, most)
    assert all(0 < len(part) <= most for part in parts)
    assert "".join("".join(parts).split("\n")) == "".join("".join(texts).split("\n"))
    assert all(any(text in part for part in parts) for text in texts if len(text) <= most), "only longer ones are cut"


# --- what is left alone -----------------------------------------------------------------------------------------------


def test_what_a_server_asks_programs_to_leave_is_left(web: Web) -> None:
    web.pages["/robots.txt"] = (
        200,
        "text/plain",
        b"User-agent: *\nDisallow: /private\nAllow: /private/open$\nDisallow: /*?x",
    )
    web.pages["/private/x"] = web.pages["/private/open"] = web.pages["/"]
    tool = WebExtractor(ALLOWED)
    assert "High" in read(web, tool=tool).content
    assert "High" in read(web, "/private/open", tool).content
    with pytest.raises(ToolServiceError, match=r"robots\.txt disallows it"):
        read(web, "/private/x", tool)
    with pytest.raises(ToolServiceError, match=r"robots\.txt disallows it"):
        read(web, "/?x=1", tool)
    assert web.asked.count("/robots.txt") == 1
    assert "/private/x" not in web.asked
    assert "High" in read(web, "/private/x", WebExtractor(ALLOWED, obey_robots=False)).content


@pytest.mark.parametrize("status", [500, 503])
def test_nothing_is_read_where_nobody_knows_what_a_server_asks(web: Web, status: int) -> None:
    web.pages["/robots.txt"] = (status, "text/plain", b"")
    with pytest.raises(ToolServiceError, match=f"HTTP {status}"):
        read(web)
    assert web.asked == ["/robots.txt"]


def test_only_the_servers_that_are_named_are_read(web: Web) -> None:
    tool = WebExtractor(ALLOWED, hosts=["example.com", ".Example.org."])
    for url in (f"{web.url}/", "https://notexample.com/", "https://example.com.evil.test/"):
        with pytest.raises(ToolServiceError, match=r"only pages on example\.com, example\.org are allowed"):
            asyncio.run(tool.call({"url": url}))
    assert web.asked == []
    assert "High" in read(web, tool=WebExtractor(ALLOWED, hosts=["127.0.0.1"])).content
    assert "High" in read(web, tool=WebExtractor(ALLOWED, hosts=["example.com", "127.0.0.1"])).content


def test_rules_that_are_not_utf_8_hold(web: Web) -> None:
    web.pages["/robots.txt"] = (200, "text/plain", "# für alle\nUser-agent: *\nDisallow: /\n".encode("latin-1"))
    with pytest.raises(ToolServiceError, match=r"robots\.txt disallows it"):
        read(web)


def test_a_part_has_at_least_a_thousand_characters() -> None:
    assert WebExtractor(part_chars=1000).config.part_chars == 1000
    with pytest.raises(ConfigError, match="part_chars"):
        WebExtractor(part_chars=999)


def test_no_page_and_no_redirect_leads_into_a_private_network(web: Web) -> None:
    with pytest.raises(ToolServiceError, match="private network"):
        read(web, tool=WebExtractor())
    assert web.asked == []
    web.pages["/"] = (302, "", f"http://127.0.0.2:{web.server_port}/".encode())
    with pytest.raises(ToolServiceError, match="private network"):
        read(web)


@pytest.mark.parametrize("url", ["tides.html", "", "  ", "/etc/passwd"])
def test_a_path_is_never_read(url: str) -> None:
    with pytest.raises(ToolArgumentError, match="is not a URL: it must start with https:// or http://"):
        asyncio.run(WebExtractor().call({"url": url}))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.com/x"])
def test_only_the_web_is_read(url: str) -> None:
    with pytest.raises(ToolServiceError, match="only http and https URLs can be fetched"):
        asyncio.run(WebExtractor().call({"url": url}))


def test_a_page_without_text_and_one_that_nothing_reads(web: Web) -> None:
    web.pages["/empty"] = (200, "text/html", b"<main><img src=x></main>")
    web.pages["/x.bin"] = (200, "application/x-nothing", b"\0\1\2")
    for path, says in (("/empty", "contains no text"), ("/x.bin", "no parser")):
        with pytest.raises(ToolServiceError, match=says):
            read(web, path)


def test_a_page_of_which_a_parser_reads_nothing_is_an_error() -> None:
    with pytest.raises(DocParserError, match=r"^https://x\.example/ contains no text$"):
        _texts(Document("x", (), content_hash=""), "https://x.example/")


@pytest.mark.parametrize(("level", "marks"), [(1, "#"), (6, "######"), (7, "######")])
def test_a_heading_has_as_many_marks_as_markdown_knows(level: int, marks: str) -> None:
    blocks = (Block("Sea", "heading", level=level), Block("[a](b)", "code"), Block("[a](b)", "paragraph"))
    texts = _texts(Document("x", blocks, content_hash=""), "https://x.example/c")
    assert texts == [f"{marks} Sea", "[a](b)", "[a](https://x.example/b)"]


def test_settings_are_checked_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match=r"web_extractor: fetch_cfg"):
        WebExtractor(fetch_cfg={"alow": []})


# --- redirects --------------------------------------------------------------------------------------------------------


def test_a_redirect_leads_only_to_servers_that_may_be_read(web: Web) -> None:
    with Web() as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        web.pages["/away"] = (302, "text/plain", f"{other.url}/".encode())
        tool = WebExtractor(ALLOWED, hosts=[f"127.0.0.1:{web.server_port}"])
        with pytest.raises(ToolServiceError, match=r"cannot be read: only pages on 127\.0\.0\.1"):
            read(web, "/away", tool)
        assert other.asked == []
        other.shutdown()


def test_a_redirect_leads_to_no_page_that_its_server_excludes(web: Web) -> None:
    with Web() as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        other.pages["/robots.txt"] = (200, "text/plain", b"User-agent: *\nDisallow: /private\n")
        other.pages["/private"] = other.pages["/"]
        web.pages["/away"] = (302, "text/plain", f"{other.url}/private".encode())
        web.pages["/open"] = (302, "text/plain", f"{other.url}/".encode())
        with pytest.raises(ToolServiceError, match=r"robots\.txt disallows it"):
            read(web, "/away")
        assert other.asked == ["/robots.txt"]
        assert "High" in read(web, "/open").content
        other.shutdown()


def test_the_rules_of_a_server_are_not_fetched_from_one_that_may_not_be_read(web: Web) -> None:
    with Web() as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        web.pages["/robots.txt"] = (302, "text/plain", f"{other.url}/robots.txt".encode())
        with pytest.raises(ToolServiceError, match="only pages on"):
            read(web, tool=WebExtractor(ALLOWED, hosts=[f"127.0.0.1:{web.server_port}"]))
        assert other.asked == []
        other.shutdown()


@pytest.mark.parametrize(
    ("hosts", "is_read"),
    [(["127.0.0.1"], True), (["127.0.0.1:{port}"], True), (["127.0.0.1:1"], False), (["a"], False)],
)
def test_a_name_with_a_port_means_that_port_only(web: Web, hosts: list[str], is_read: bool) -> None:
    tool = WebExtractor(ALLOWED, hosts=[host.format(port=web.server_port) for host in hosts])
    if is_read:
        assert "High" in read(web, tool=tool).content
    else:
        with pytest.raises(ToolServiceError, match="only pages on"):
            read(web, tool=tool)
        assert web.asked == []


@pytest.mark.parametrize("hosts", [["LocalHost"], [".localhost."], ["example.com", "localhost"]])
def test_hosts_and_urls_may_have_capitals_dots_and_spaces_around_them(web: Web, hosts: list[str]) -> None:
    one = WebExtractor({"fetch_cfg": {"allow": ["127.0.0.1", "localhost"]}}, hosts=hosts)
    result = asyncio.run(one.call({"url": f" http://localhost:{web.server_port}/\n"}))
    assert "High" in str(result.content)


@pytest.mark.parametrize("url", ["http://[", "http://127.0.0.1:x/", "http://127.0.0.1:99999/", "http://" + "a" * 9000])
def test_a_url_that_cannot_be_read_is_an_error_for_the_model(url: str) -> None:
    for settings in ({}, {"hosts": ["example.com"]}):
        with pytest.raises(ToolServiceError):
            asyncio.run(WebExtractor(ALLOWED, **settings).call({"url": url}))


def test_links_that_cannot_be_read_stay_as_they_are(web: Web) -> None:
    long = "http://" + "a\u0301\u0316" * 5000
    links = f"<a href='http://[x'>this</a> and <a href='{long}'>that</a> and <a href='/c'>more</a>"
    web.pages["/"] = (200, "text/html; charset=utf-8", f"<main><p>See {links} (or/this).</p></main>".encode())
    content = read(web).content
    assert "[this](http://[x)" in content
    assert f"[more]({web.url}/c) (or/this)." in content


# --- the rules of servers ---------------------------------------------------------------------------------------------


def test_the_rules_for_our_name_are_ours(web: Web) -> None:
    rules = b"User-agent: *\nDisallow: /\n\nUser-agent: jackfield-fetch\nDisallow: /private\n"
    web.pages["/robots.txt"] = (200, "text/plain", rules)
    assert "High" in read(web).content
    with pytest.raises(ToolServiceError, match="disallows it"):
        read(web, tool=WebExtractor({"fetch_cfg": {"allow": ["127.0.0.1"], "user_agent": "tides/1"}}))


@pytest.mark.parametrize("status", [401, 403, 404, 410, 499])
def test_a_server_that_has_no_rules_for_us_is_read(web: Web, status: int) -> None:
    web.pages["/robots.txt"] = (status, "text/plain", b"User-agent: *\nDisallow: /\n")
    assert "High" in read(web).content


def test_nothing_is_read_of_a_server_that_does_not_answer() -> None:
    with Web() as web:
        url = web.url
    with pytest.raises(ToolServiceError, match=r"robots\.txt cannot be fetched"):
        asyncio.run(WebExtractor(ALLOWED).call({"url": f"{url}/"}))


def test_rules_are_asked_for_again_after_an_hour(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(tool.time, "monotonic", lambda: now)
    one = WebExtractor(ALLOWED)
    for seconds in (0, 3600, 1):
        now += seconds
        asyncio.run(one._check_robots(f"{web.url}/x"))
    assert web.asked.count("/robots.txt") == 2


def test_a_page_that_is_kept_is_given_only_as_long_as_its_server_allows_it(web: Web) -> None:
    one = WebExtractor(ALLOWED)
    assert "High" in read(web, tool=one).content
    assert "High" in read(web, tool=one).content
    assert web.asked.count("/") == 1, "it is kept"
    web.pages["/robots.txt"] = (200, "text/plain", b"User-agent: *\nDisallow: /\n")
    one._rules.clear()  # as after an hour
    with pytest.raises(ToolServiceError, match="disallows it"):
        read(web, tool=one)


def test_the_rules_of_so_many_servers_are_known(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "_MAX_SERVERS", 1)
    one = WebExtractor({"fetch_cfg": {"allow": ["127.0.0.1", "localhost"]}})
    first, second = f"{web.url}/", f"http://LOCALHOST:{web.server_port}/"
    for url in (first, first, second, second.lower(), second, first):
        asyncio.run(one._check_robots(url))
    assert web.asked.count("/robots.txt") == 3


def test_rules_that_are_endless_are_not_read_and_neither_are_pages(web: Web) -> None:
    web.pages["/robots.txt"] = (200, "text/plain", b"#" * (500 * 1024))
    assert "High" in read(web).content
    web.pages["/robots.txt"] = (200, "text/plain", b"#" * (500 * 1024 + 1))
    with pytest.raises(ToolServiceError, match="is larger than"):
        read(web)


@pytest.mark.parametrize(
    ("url", "name", "is_below"),
    [
        ("https://example.com/", "example.com", True), ("https://a.b.example.com/", "example.com", True),
        ("https://EXAMPLE.com./", "example.com", True), ("https://notexample.com/", "example.com", False),
        ("https://example.com.evil.test/", "example.com", False), ("https://example.com/", "a.example.com", False),
        ("https://example.com/", "example.com:443", True), ("http://example.com/", "example.com:443", False),
        ("http://example.com/", "example.com:80", True), ("https://example.com:8080/", "example.com:8080", True),
        ("https://a.example.com:8080/", "example.com:8080", True), ("https://example.com/", "example.com:44", False),
        ("https://user@example.com/", "user", False), ("https://example.com@evil.test/", "example.com", False),
        ("https://[::1]/", "::1", True),
        ("https://[::1]/", "[::1]", True),
        ("https://[::1]:8080/", "[::1]:8080", True),
        ("https://[::1]:8081/", "[::1]:8080", False),
        ("https://[2606::1]/", "::1", False),
    ],
)  # fmt: skip
def test_a_server_is_the_named_one_or_below_it(url: str, name: str, is_below: bool) -> None:
    assert tool._is_below(*tool._server_of(url), name) is is_below


def test_the_settings_have_the_defaults_of_the_readme() -> None:
    config = WebExtractor().config
    assert (config.part_chars, config.hosts, config.obey_robots, dict(config.fetch_cfg)) == (20_000, (), True, {})


def test_the_title_stands_before_the_first_part_only(web: Web) -> None:
    text = "".join(f"<p>Paragraph {number} of many.</p>" for number in range(100))
    web.pages["/long"] = (200, "text/html", f"<title>Tides</title><main>{text}</main>".encode())
    one = WebExtractor(ALLOWED, part_chars=1000)
    assert read(web, "/long", one).content.startswith("# Tides\n\nParagraph 0")
    assert "Tides" not in read(web, "/long", one, part=2).content
