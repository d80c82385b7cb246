"""Documents at URLs, from a real server on loopback, which has to be allowed."""

from __future__ import annotations

import asyncio
import builtins
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

import jackfield_documents.urls
from jackfield.errors import DocParserError, ToolServiceError
from jackfield.plugins import default_host
from jackfield.retrieval import Document
from jackfield_documents import DocumentReader, RAGConfig, is_url
from jackfield_documents.urls import _codec_of

PAGE = "<html><head><title>Tides</title></head><body><p>High water comes twice a day.</p></body></html>"


class Web(ThreadingHTTPServer):
    """Gives what a test has put at a path: its type and its bytes; `asked` has a line for each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        known = self.headers.get("If-None-Match", "")
        self.server.asked.append(f"{self.path} {known}".strip())
        media_type, data = self.server.pages.get(self.path.partition("?")[0], ("", b""))
        tag = f'"{hash(data)}"'
        self.send_response(404 if not media_type else 304 if known == tag else 200)
        self.send_header("Content-Type", media_type)
        self.send_header("ETag", tag)
        self.end_headers()
        if known != tag:
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: what was asked is in `asked`."""


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def reader() -> DocumentReader:
    return DocumentReader(fetch_cfg={"allow": ["127.0.0.1"]})


def read(reader: DocumentReader, url: str) -> Document:
    return asyncio.run(reader.read(url))


def text_of(document: Document) -> str:
    return "\n".join(block.text for block in document.blocks)


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/", "text/html"),
        ("/tides", "text/html; charset=utf-8"),
        ("/tides.html", "text/plain"),
        ("/tides.php", "text/html"),
        ("/tides.html", "application/octet-stream"),
        ("/a/tides.pdf", "text/html"),  # a page that says why there is no such file
    ],
)
def test_the_server_says_what_it_is_and_else_the_name(
    web: Web, reader: DocumentReader, path: str, media_type: str
) -> None:
    web.pages[path] = (media_type, PAGE.encode())
    document = read(reader, f"{web.url}{path}?page=1")
    assert (document.title, text_of(document)) == ("Tides", "High water comes twice a day.")
    assert document.source == f"{web.url}{path}?page=1"


@pytest.mark.parametrize("says", ["<meta charset=iso-8859-1>", ""])
def test_the_encoding_of_the_server_counts_before_that_of_the_page(web: Web, reader: DocumentReader, says: str) -> None:
    web.pages["/"] = ("text/html; charset=gb18030", f"{says}<p>潮水一天涨两次。</p>".encode("gb18030"))
    assert text_of(read(reader, f"{web.url}/")) == "潮水一天涨两次。"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_counts_before_the_encoding_of_the_server(
    web: Web, reader: DocumentReader, encoding: str
) -> None:
    web.pages["/"] = ("text/html; charset=gb18030", "<p>潮水一天涨两次。</p>".encode(encoding))
    assert text_of(read(reader, f"{web.url}/")) == "潮水一天涨两次。"


@pytest.mark.parametrize("charset", ["no-such", "rot13", "hex"])
def test_an_encoding_that_is_none_is_left_to_the_parser(web: Web, reader: DocumentReader, charset: str) -> None:
    web.pages["/a.txt"] = (f"text/plain; charset={charset}", "Über".encode())
    assert text_of(read(reader, f"{web.url}/a.txt")) == "Über"


def test_a_page_is_asked_for_again_when_it_is_not_fresh_and_sent_when_it_has_changed(
    web: Web, reader: DocumentReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.pages["/a.txt"] = ("text/plain", b"first")
    first = read(reader, f"{web.url}/a.txt")
    read(reader, f"{web.url}/a.txt")
    assert len(web.asked) == 1
    monkeypatch.setattr(jackfield_documents.urls, "FRESH_S", -1.0)
    assert read(reader, f"{web.url}/a.txt") == first
    assert len(web.asked) == 2
    assert web.asked[1].startswith("/a.txt ")  # if it has changed
    web.pages["/a.txt"] = ("text/plain", b"second")
    assert text_of(read(reader, f"{web.url}/a.txt")) == "second"


def test_of_kept_pages_those_asked_for_last_stay_up_to_a_size(
    web: Web, reader: DocumentReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        web.pages[f"/{name}.txt"] = ("text/plain", name.encode() * 10)
    monkeypatch.setattr(jackfield_documents.urls, "_CACHE_BYTES", 20)
    for name in "ab":
        read(reader, f"{web.url}/{name}.txt")
    with monkeypatch.context() as stale:
        stale.setattr(jackfield_documents.urls, "FRESH_S", -1.0)
        read(reader, f"{web.url}/a.txt")
    for name in "cab":
        read(reader, f"{web.url}/{name}.txt")
    assert [line[1] for line in web.asked] == ["a", "b", "a", "c", "b"], "b was dropped for c"
    web.asked.clear()
    monkeypatch.setattr(jackfield_documents.urls, "_CACHE_BYTES", 5)
    web.pages["/large.txt"] = ("text/plain", b"larger")
    for _ in range(2):
        read(reader, f"{web.url}/large.txt")
    assert len(web.asked) == 1, "the last one stays, however large it is"


def test_one_page_that_cannot_be_read_does_not_stop_the_others(web: Web, reader: DocumentReader) -> None:
    web.pages["/a.txt"] = ("text/plain", b"here")
    web.pages["/b.txt"] = ("text/plain", b"")
    web.pages["/c.pdf"] = ("application/pdf", b"%PDF-1.7 and no more")
    reading = asyncio.run(
        reader.read_all([f"{web.url}/{name}?key=SECRET" for name in ("a.txt", "b.txt", "c.pdf", "gone.html")])
    )
    assert [text_of(document) for document in reading.documents] == ["here"]
    said = [str(error) for error in reading.errors.values()]
    assert "SECRET" not in "".join(said)
    assert said[0] == "b.txt is empty"
    assert said[1].startswith("c.pdf ")
    assert said[2].endswith("/gone.html cannot be fetched: the server responded with HTTP 404")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/a.pdf", "file:///a.pdf", "ftp://host/a.pdf", "http://[::1/"])
def test_what_nobody_allowed_is_not_fetched(url: str) -> None:
    with pytest.raises(DocParserError, match="cannot be fetched"):
        read(DocumentReader(), url)


def test_a_page_is_limited_as_a_file_is(web: Web) -> None:
    web.pages["/a.txt"] = ("text/plain", b"x" * 1001)
    for limits in ({"max_bytes": 1000}, {"max_bytes": 2000, "fetch_cfg": {"max_bytes": 1000}}):
        settings: dict[str, Any] = {**limits, "fetch_cfg": {"allow": ["127.0.0.1"], **limits.get("fetch_cfg", {})}}
        with pytest.raises(DocParserError, match="raise max_bytes"):
            read(DocumentReader(**settings), f"{web.url}/a.txt")


def test_the_reader_of_a_configuration_fetches_what_the_configuration_allows(web: Web) -> None:
    web.pages["/a.txt"] = ("text/plain", b"here")
    config = RAGConfig.parse({"fetch_cfg": {"allow": ["127.0.0.1"]}})
    assert text_of(read(config.reader(default_host()), f"{web.url}/a.txt")) == "here"


def test_a_url_is_checked_before_it_is_asked_for(web: Web) -> None:
    async def check(url: str) -> None:
        raise ToolServiceError(f"not this one: {url}")

    reader = DocumentReader(fetch_cfg={"allow": ["127.0.0.1"]}, check_url=check)
    with pytest.raises(DocParserError, match=f"not this one: {web.url}/a"):
        read(reader, f"{web.url}/a.txt")
    assert web.asked == []


@pytest.mark.parametrize(
    ("media_type", "codec"),
    [
        ("text/csv", "gb18030"),
        ("application/xhtml+xml", "gb18030"),
        ("application/xml", "gb18030"),
        ("application/json", ""),
        ("application/xml-dtd", ""),
    ],
)
def test_only_a_text_has_an_encoding(media_type: str, codec: str) -> None:
    page: Any = SimpleNamespace(media_type=media_type, content=b"x", charset="gbk")
    assert _codec_of(page) == codec


@pytest.mark.parametrize(
    ("missing", "error", "text"),
    [
        ("jackfield_fetch", DocParserError, "pip install jackfield-fetch"),
        ("needed_by_fetch", ModuleNotFoundError, "needed_by_fetch"),
    ],
)
def test_the_error_names_the_module_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, missing: str, error: type[Exception], text: str
) -> None:
    plain = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "jackfield_fetch":
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return plain(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(error, match=text):
        read(DocumentReader(), "https://example.com/")


def test_pages_have_a_fingerprint_as_files_have(web: Web, reader: DocumentReader) -> None:
    web.pages["/a.txt"] = web.pages["/b.txt"] = ("text/plain", b"same")
    first, second = (asyncio.run(reader.fingerprint(f"{web.url}/{name}.txt")) for name in "ab")
    assert first == second
    marks = {first}
    for path, charset in (("/c.txt", "iso-8859-2"), ("/d.txt", "windows-1251")):
        web.pages[path] = (f"text/plain; charset={charset}", b"same")
        marks.add(asyncio.run(reader.fingerprint(f"{web.url}{path}")))
    assert len(marks) == 3, "the same bytes in another encoding are another text"
    assert is_url(f"{web.url}/a.txt")
    assert not is_url("c:/a.txt")
