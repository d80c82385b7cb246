"""Fetching from real servers of this machine, which have to be allowed, and everything that must not be fetched."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.errors import ConfigError, ToolServiceError
from jackfield_fetch import FetchConfig, Fetched, Fetcher, FetchError, fetcher, is_public, shown
from jackfield_fetch.fetcher import UNPACKED_AT_ONCE, _Gzip
from jackfield_fetch.rules import address_of, request_url

Answer = Callable[[str], bytes | Iterator[bytes]]
LOCAL = ("127.0.0.1",)


class Server:
    """Answers each request with bytes that a test chooses by the request's text; counts the requests."""

    def __init__(self, host: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> None:
        self.answer: Answer = lambda _: written("hello")
        self.requests: list[str] = []
        self.keeps_open = False
        """Leave it to the client to close a connection; `left` is set once it has."""
        self.left = threading.Event()
        self._tls = tls
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        if self._tls is not None:
            try:
                connection = self._tls.wrap_socket(connection, server_side=True)
            except OSError:
                return  # the client did not trust it
        with connection:
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                piece = connection.recv(65536)
                if not piece:
                    return
                request += piece
                if request[0] == 0x16:  # the first byte of TLS
                    connection.sendall(b"what?")
                    return
            self.requests.append(request.decode())
            answer = self.answer(request.decode())
            try:
                for piece in [answer] if isinstance(answer, bytes) else answer:
                    connection.sendall(piece)
            except OSError:
                return  # it was left
            if self.keeps_open and connection.recv(1) == b"":
                self.left.set()

    def close(self) -> None:
        self._listener.close()


def written(body: str | bytes, status: str = "200 OK", **headers: str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = {"content-length": str(len(data)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + data


def drip(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        time.sleep(0.01)
        yield b"x"


def endless(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    yield from itertools.repeat(b"x" * 100_000)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def fetch(url: str, known: Fetched | None = None, **settings: Any) -> Fetched:
    return asyncio.run(Fetcher({"allow": LOCAL, **settings}).fetch(url, known=known))


# --- what is fetched --------------------------------------------------------------------------------------------------


def test_what_a_server_gives_is_there_with_its_facts(server: Server) -> None:
    said = "Text/HTML; Charset='gb18030'"
    server.answer = lambda _: written("hello", content_type=said, etag='"1"', last_modified="Mon, 1 Jan 2026")
    found = fetch(f"{server.url}/a b/页?q=ü c#part")
    assert (found.content, found.media_type, found.charset) == (b"hello", "text/html", "gb18030")
    assert (found.etag, found.last_modified) == ('"1"', "Mon, 1 Jan 2026")
    assert server.requests[0].startswith("GET /a%20b/%E9%A1%B5?q=%C3%BC%20c HTTP/1.1\r\n")


def test_what_has_not_changed_is_not_sent_again(server: Server) -> None:
    server.answer = lambda asked: (
        written("", "304 Not Modified") if 'if-none-match: "1"' in asked.lower() else written("hello", etag='"1"')
    )
    first = fetch(server.url)
    assert fetch(server.url, first) is first
    assert len(server.requests) == 2


def test_a_body_may_be_packed(server: Server) -> None:
    server.answer = lambda _: written(gzip.compress(b"hello" * 1000), content_encoding="gzip")
    assert fetch(server.url).content == b"hello" * 1000


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_each_kind_of_redirect_is_followed(server: Server, status: int) -> None:
    server.answer = lambda asked: (
        written("there") if asked.startswith("GET /b") else written("", f"{status} Elsewhere", location="/b")
    )
    assert fetch(f"{server.url}/a").content == b"there"


def test_a_packed_body_has_a_limited_number_of_members(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "_MAX_MEMBERS", 3)
    server.answer = lambda asked: written(gzip.compress(b"x") * int(asked[5]), content_encoding="gzip")
    assert fetch(f"{server.url}/3").content == b"xxx"
    with pytest.raises(FetchError, match="is corrupted"):
        fetch(f"{server.url}/4")


def test_redirects_are_followed_and_the_last_address_is_told(server: Server) -> None:
    def answer(asked: str) -> bytes:
        return written("there") if asked.startswith("GET /b") else written("", "302 Found", location="b?x=1")

    server.answer = answer
    found = fetch(f"{server.url}/a")
    assert (found.content, found.url) == (b"there", f"{server.url}/b?x=1")


# --- where nobody may be led ------------------------------------------------------------------------------------------

PRIVATE = [
    "127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "0", "localhost", "localhost.", "LOCALHOST",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
    "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255",
    "[fe80::1]", "[fd00::1]", "[fec0::1]", "[ff02::1]",
]  # fmt: skip


@pytest.mark.parametrize("host", PRIVATE)
def test_private_addresses_are_refused_however_they_are_written(server: Server, host: str) -> None:
    with pytest.raises(FetchError, match="cannot be fetched"):
        asyncio.run(Fetcher().fetch(f"http://{host}:{server.port}/latest"))
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "gopher://127.0.0.1/", "ftp://example.com/", "data:text/plain,x", "//127.0.0.1/", "",
        "http://", "http:///x", "http://[::1", "http://example.com:99999/", "http://user:secret@127.0.0.1/",
        "http://127.0.0.1\\@example.com/", "http://127.0.0.1/a\r\nX: y", "http://127.0.0.1/\t", "http://a..b/",
        "http://user@127.0.0.1/", "http://127.0.0.1/a\\b",
    ],
)  # fmt: skip
def test_what_cannot_be_fetched_is_said_before_anybody_is_asked(server: Server, url: str) -> None:
    with pytest.raises(FetchError, match="cannot be fetched") as caught:
        fetch(url.replace("127.0.0.1", f"127.0.0.1:{server.port}"))
    assert "secret" not in str(caught.value)
    assert server.requests == []


@pytest.mark.parametrize(
    "there", ["http://127.0.0.2:{port}/", "http://0x7f000002:{port}/", "//[::1]:{port}/x", "file:///x"]
)
def test_a_redirect_leads_nowhere_that_is_not_allowed(server: Server, there: str) -> None:
    server.answer = lambda _: written("", "301 Moved", location=there.format(port=server.port))
    with pytest.raises(FetchError, match="cannot be fetched"):
        fetch(server.url)
    assert len(server.requests) == 1


def test_a_redirect_from_https_to_http_is_refused() -> None:
    class Lead(Fetcher):
        async def _once(self, url: str, known: Fetched | None) -> str:
            return "http://other.example/x?key=1"

    with pytest.raises(FetchError, match=r"from https to http: fetch http://other.example/x directly"):
        asyncio.run(Lead().fetch("https://example.com/"))


def test_a_name_is_looked_up_once_and_what_was_checked_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that stands for a public address first and for a private one then: rebinding."""
    answers = iter(["93.184.216.34", "127.0.0.1"])
    connected: list[str] = []

    def look_up(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), 80))]

    async def connect(_: Any, host: str, *__: Any) -> Any:
        connected.append(host)
        raise httpcore2.ConnectError("nothing there")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    with pytest.raises(FetchError):
        asyncio.run(Fetcher().fetch("http://rebind.example/"))
    assert connected == ["93.184.216.34"]


def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)) for host in ("93.184.216.34", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(FetchError, match="private network; the operator can add it"):
        asyncio.run(Fetcher().fetch("http://mixed.example/"))


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_as_public_as_by_itself(address: Any) -> None:
    number = int(address)
    forms = [f"::ffff:{address}", f"64:ff9b::{address}", str(ip_address((0x2002 << 112) | (number << 80)))]
    assert {is_public(ip_address(form)) for form in forms} == {is_public(address)}


def test_a_proxy_of_the_environment_is_not_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert fetch(server.url).content == b"hello"


# --- what is allowed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allow", ["localhost", "Localhost.", "127.0.0.0/8", "127.1.2.3/8"])
def test_a_host_or_a_network_can_be_allowed(server: Server, allow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert asyncio.run(Fetcher(allow=[allow]).fetch(f"http://localhost:{server.port}/")).content == b"hello"
    assert asyncio.run(Fetcher(allow=[allow]).fetch(f"http://localhost.:{server.port}/")).content == b"hello"


def test_an_address_that_contains_another_is_allowed_by_its_own_network() -> None:
    inside = ip_address("2002:7f00:1::1")
    assert FetchConfig(allow=("2002:7f00:1::/48",)).allows("a.example", inside)
    assert FetchConfig(allow=("127.0.0.0/8",)).allows("a.example", inside)
    assert not FetchConfig(allow=("10.0.0.0/8",)).allows("a.example", inside)
    assert address_of("fe80::1%eth0") == ip_address("fe80::1")


@pytest.mark.parametrize(
    ("url", "requested"),
    [
        ("http://a.example", "http://a.example/"),
        ("http://a.example:0?b", "http://a.example:0/?b"),
        ("https://a.example/b[c]?d[]=?e#f", "https://a.example/b%5Bc%5D?d[]=?e"),
        ("HTTP://A.example/ä b", "http://a.example/%C3%A4%20b"),
    ],
)
def test_a_url_is_requested_in_ascii_and_with_its_port(url: str, requested: str) -> None:
    assert request_url(url) == requested


@pytest.mark.parametrize("allow", ["http://x", "a/b", "*.example", "", "x:80", "10.0.0.0/99"])
def test_what_is_no_server_cannot_be_allowed(allow: str) -> None:
    with pytest.raises(ConfigError, match=r"such as intranet\.example or 10\.0\.0\.0/8"):
        Fetcher(allow=[allow])


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["said", "sent", "packed"])
def test_a_body_that_is_too_large_ends_the_fetch(server: Server, how: str) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    answers: dict[str, Answer] = {
        "said": lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n",
        "sent": endless,
        "packed": lambda _: written(bomb, content_encoding="gzip"),
    }
    server.answer = answers[how]
    with pytest.raises(FetchError, match=r"is larger than 0.954 MiB: raise max_bytes"):
        fetch(server.url, max_bytes=1_000_000)


def test_a_body_of_just_the_limit_is_fetched(server: Server) -> None:
    server.answer = lambda _: written(gzip.compress(b"x" * 1000), content_encoding="gzip")
    assert len(fetch(server.url, max_bytes=1000).content) == 1000


def test_a_server_that_sends_a_byte_now_and_then_is_left(server: Server) -> None:
    server.answer = drip
    with pytest.raises(FetchError, match=r"did not arrive within 0.5 seconds"):
        fetch(server.url, timeout_s=0.5)


def test_a_circle_of_redirects_ends(server: Server) -> None:
    server.answer = lambda _: written("", "302 Found", location="/again")
    with pytest.raises(FetchError, match="redirects more than 5 times"):
        fetch(server.url)
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (written("no", "404 Not Found"), "HTTP 404"),
        (written("no", "500 Oops"), "HTTP 500"),
        (written("", "302 Found"), "HTTP 302"),
        (written("", "304 Not Modified"), "HTTP 304"),
        (written("x", content_encoding="br"), "unrequested content encoding 'br'"),
        (written(b"no gzip", content_encoding="gzip"), "is corrupted"),
        (written(gzip.compress(b"hello" * 99)[:-9], content_encoding="gzip"), "is truncated"),
        (b"SSH-2.0-OpenSSH_9\r\n", "does not speak HTTP"),
        (b"", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", "does not speak HTTP"),
    ],
)
def test_what_is_not_an_answer_is_an_error_that_names_the_url_without_its_query(
    server: Server, answer: bytes, reason: str
) -> None:
    server.answer = lambda _: answer
    with pytest.raises(ToolServiceError, match=reason) as caught:
        fetch(f"{server.url}/page?key=SECRET")
    assert f"{server.url}/page cannot be fetched" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_a_server_that_is_not_there_and_one_without_tls(server: Server) -> None:
    with pytest.raises(FetchError, match="supports no common TLS version"):
        fetch(server.url.replace("http:", "https:"))
    server.close()
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with pytest.raises(FetchError, match="nothing listens there"):
        fetch(f"http://127.0.0.1:{port}/")


def test_a_name_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(FetchError, match="unknown host"):
        asyncio.run(Fetcher().fetch("http://nothing.example/"))


@given(st.text())
def test_any_text_is_fetched_or_refused_with_words(text: str) -> None:
    assert len(shown(text)) <= 200
    assert shown(text).isprintable()


# --- every hop --------------------------------------------------------------------------------------------------------


def test_each_address_is_checked_before_its_server_is_asked(server: Server) -> None:
    server.answer = lambda asked: written("", "302 Found", location="/b") if "GET /a " in asked else written("there")
    checked: list[tuple[str, int]] = []

    async def check(url: str) -> None:
        checked.append((url, len(server.requests)))

    found = asyncio.run(Fetcher(allow=LOCAL).fetch(f"{server.url}/a", check=check))
    assert found.content == b"there"
    assert checked == [(f"{server.url}/a", 0), (f"{server.url}/b", 1)]


def test_a_check_ends_the_fetch_at_the_redirect_it_refuses(server: Server) -> None:
    server.answer = lambda _: written("", "302 Found", location="/b")

    async def check(url: str) -> None:
        if url.endswith("/b"):
            raise ToolServiceError("not this one")

    with pytest.raises(ToolServiceError, match="not this one"):
        asyncio.run(Fetcher(allow=LOCAL).fetch(f"{server.url}/a", check=check))
    assert len(server.requests) == 1


def test_what_is_known_of_a_page_is_not_told_to_another_address_and_not_believed_from_it(server: Server) -> None:
    def answer(asked: str) -> bytes:
        if "GET /a " in asked:
            return written("", "302 Found", location="/b")
        return written("", "304 Not Modified") if "if-none-match" in asked.lower() else written("new")

    known = Fetched(f"{server.url}/a", "text/plain", "", '"1"', "", b"old")
    server.answer = answer
    assert fetch(f"{server.url}/a", known).content == b"new"
    server.answer = lambda asked: (
        written("", "302 Found", location="/b") if "GET /a " in asked else written("", "304 Not Modified")
    )
    with pytest.raises(FetchError, match="HTTP 304"):
        fetch(f"{server.url}/a", known)


@pytest.mark.parametrize(
    "location",
    [
        "http://[",
        "http://[::1",
        "//[x]/",
        "http://a:99999/",
        "http://a:b/",
        "http://" + "a" * 9000,
        "x" * 9000,
        "HERE/" + "x" * 9000,
    ],
)
def test_a_redirect_to_an_address_that_cannot_be_read_is_an_error_of_ours(server: Server, location: str) -> None:
    location = location.replace("HERE", server.url)
    server.answer = lambda _: written("", "302 Found", location=location)
    with pytest.raises(FetchError, match="cannot be fetched"):
        fetch(server.url)
    assert len(server.requests) == 1


@given(st.binary(max_size=40))
def test_any_redirect_is_followed_or_an_error_of_ours(location: bytes) -> None:
    from jackfield_fetch.fetcher import _redirect, _target

    with contextlib.suppress(FetchError):
        _target(_redirect("http://a.test/b", location.decode("latin-1")))


@pytest.mark.timeout(20)
def test_a_url_of_a_megabyte_of_marks_is_refused_at_once() -> None:
    url = "http://" + "a\u0301\u0316" * 300_000
    assert len(shown(url)) <= 200
    with pytest.raises(FetchError, match="longer than 8,192 characters"):
        asyncio.run(Fetcher().fetch(url))


# --- packed bodies ----------------------------------------------------------------------------------------------------


def test_all_members_of_a_packed_body_are_read(server: Server) -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two ") + gzip.compress(b"three")
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"
    for pieces in ([packed], [packed[:30], packed[30:31], packed[31:]]):
        server.answer = lambda _, pieces=pieces: iter([head, *pieces])  # type: ignore[misc]
        assert fetch(server.url).content == b"one two three"


@pytest.mark.parametrize("rest", [b"\0\0\0", b"garbage", gzip.compress(b"x")[:9], b"\x1f"])
def test_what_stands_behind_a_packed_body_is_an_error(server: Server, rest: bytes) -> None:
    server.answer = lambda _: written(gzip.compress(b"hello") + rest, content_encoding="gzip")
    with pytest.raises(FetchError, match=r"is corrupted|is truncated"):
        fetch(server.url)


def test_the_limit_holds_for_all_members_together(server: Server) -> None:
    server.answer = lambda _: written(gzip.compress(b"x" * 600) * 2, content_encoding="gzip")
    with pytest.raises(FetchError, match="is larger than"):
        fetch(server.url, max_bytes=1000)
    assert len(fetch(server.url, max_bytes=1200).content) == 1200


def test_members_without_content_do_not_go_on_for_ever(server: Server) -> None:
    server.answer = lambda _: written(gzip.compress(b"") * 11_000, content_encoding="gzip")
    with pytest.raises(FetchError, match="more than 10,000 gzip members"):
        fetch(server.url)


# --- others have their turn -------------------------------------------------------------------------------------------


class _Between:
    """The most that a fetch does between two turns of another task: lines that are read, bytes that are unpacked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines = self.most_lines = self.unpacked = self.most_unpacked = 0
        end_of_lines, feed = fetcher._end_of_lines, _Gzip.feed

        def read(data: bytes, most: int) -> int:
            end = end_of_lines(data, most)
            self.lines += data[:end].count(b"\r\n")
            self.most_lines = max(self.most_lines, self.lines)
            return end

        def unpack(unpacking: _Gzip, piece: bytes) -> Iterator[bytes]:
            for part in feed(unpacking, piece):
                self.unpacked += len(part)
                self.most_unpacked = max(self.most_unpacked, self.unpacked)
                yield part

        monkeypatch.setattr(fetcher, "_end_of_lines", read)
        monkeypatch.setattr(_Gzip, "feed", unpack)

    def fetch(self, fetcher: Fetcher, url: str) -> BaseException | None:
        """Fetch while another task has its turns; how it ended."""

        async def beside() -> BaseException | None:
            task = asyncio.ensure_future(fetcher.fetch(url))
            while not task.done():
                await asyncio.sleep(0)
                self.lines = self.unpacked = 0
            return task.exception()

        return asyncio.run(beside())


def test_a_body_of_tiny_chunks_gives_others_their_turn(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answer = lambda _: (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"
    )
    between = _Between(monkeypatch)
    assert between.fetch(Fetcher(allow=LOCAL), server.url) is None
    assert 0 < between.most_lines <= 128


def test_interim_answers_without_end_are_an_error_and_give_others_their_turn(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = lambda _: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000)
    between = _Between(monkeypatch)
    assert "does not speak HTTP" in str(between.fetch(Fetcher(allow=LOCAL), server.url))
    assert 0 < between.most_lines <= 128


def test_a_bomb_gives_others_their_turn_while_it_is_unpacked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answer = lambda _: written(gzip.compress(b"\0" * 15_000_000), content_encoding="gzip")
    between = _Between(monkeypatch)
    assert between.fetch(Fetcher(allow=LOCAL), server.url) is None
    assert UNPACKED_AT_ONCE == 2**20, "some milliseconds of unpacking"
    assert 0 < between.most_unpacked <= UNPACKED_AT_ONCE + 1  # the last part of a piece may have nothing in it


@pytest.mark.parametrize("at_once", [1, 100, 10_000_000])
def test_a_packed_body_is_unpacked_in_parts_of_bounded_size(at_once: int) -> None:
    content = b"\0" * (3 * UNPACKED_AT_ONCE + 1) + b"end"
    packed = gzip.compress(content)
    unpack = _Gzip()
    pieces = [packed[start : start + at_once] for start in range(0, len(packed), at_once)]
    parts = [part for piece in pieces for part in unpack.feed(piece)]
    assert b"".join(parts) == content
    assert max(map(len, parts)) <= UNPACKED_AT_ONCE


def test_headers_of_a_usual_size_are_read(server: Server) -> None:
    server.answer = lambda _: b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + written("hello", x_long="a" * 50_000)
    assert fetch(server.url).content == b"hello"


@pytest.mark.parametrize(("interim", "is_read"), [(10_400, True), (10_500, False)])
def test_interim_answers_and_headers_have_256_kib_altogether(server: Server, interim: int, is_read: bool) -> None:
    server.answer = lambda _: b"HTTP/1.1 100 Continue\r\n\r\n" * interim + written("hello")
    if is_read:
        assert fetch(server.url).content == b"hello"
    else:
        with pytest.raises(FetchError, match="does not speak HTTP"):
            fetch(server.url)


def test_a_body_that_is_longer_than_all_headers_may_be_is_fetched_whole(server: Server) -> None:
    server.answer = lambda _: written(b"x" * 1_000_000)
    assert len(fetch(server.url).content) == 1_000_000


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_a_request_has_these_headers_and_no_others(server: Server) -> None:
    fetch(server.url, user_agent="tides/2")
    fetch(f"{server.url}/", Fetched(f"{server.url}/", "", "", '"1"', "Mon, 1 Jan 2026", b""))
    fetch(f"{server.url}/", Fetched(f"{server.url}/", "", "", "", "", b""))
    sent = [sorted(line.lower() for line in asked.rstrip().split("\r\n")[1:]) for asked in server.requests]
    plain = [f"host: 127.0.0.1:{server.port}", "accept: */*", "accept-encoding: gzip"]
    ours = "user-agent: jackfield-fetch/0.1"
    assert sent == [
        sorted([*plain, "user-agent: tides/2"]),
        sorted([*plain, ours, 'if-none-match: "1"', "if-modified-since: mon, 1 jan 2026"]),
        sorted([*plain, ours]),
    ]


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", " GZIP "])
def test_each_name_of_gzip_is_known(server: Server, coding: str) -> None:
    server.answer = lambda _: written(gzip.compress(b"hello"), content_encoding=coding)
    assert fetch(server.url).content == b"hello"


@pytest.mark.parametrize("coding", ["identity", ""])
def test_a_body_that_is_not_said_to_be_packed_is_taken_as_it_is(server: Server, coding: str) -> None:
    server.answer = lambda _: written(gzip.compress(b"hello", mtime=0), content_encoding=coding)
    assert fetch(server.url).content == gzip.compress(b"hello", mtime=0)


def test_an_error_has_the_status_of_an_answer_and_none_without_one(server: Server) -> None:
    for answer, code in ((written("no", "404 Not Found"), "404"), (written("no", "503 Busy"), "503"), (b"what?", None)):
        server.answer = lambda _, answer=answer: answer
        with pytest.raises(FetchError) as caught:
            fetch(server.url)
        assert caught.value.code == code


# --- limits, to the byte ----------------------------------------------------------------------------------------------


def test_a_body_whose_stated_length_is_just_the_limit_is_fetched(server: Server) -> None:
    server.answer = lambda _: written("x" * 1000)
    assert len(fetch(server.url, max_bytes=1000).content) == 1000
    with pytest.raises(FetchError, match="larger than"):
        fetch(server.url, max_bytes=999)


def test_an_address_of_just_the_limit_is_fetched(server: Server) -> None:
    longest = f"{server.url}/".ljust(8192, "x")
    assert fetch(longest).content == b"hello"
    with pytest.raises(FetchError, match="longer than 8,192 characters"):
        fetch(f"{longest}x")
    assert len(server.requests) == 1


@pytest.mark.parametrize("most", [0, 2])
def test_just_as_many_redirects_as_the_limit_are_followed(server: Server, most: int) -> None:
    def answer(asked: str) -> bytes:
        left = int(asked[5])
        return written("there") if left == 0 else written("", "302 Found", location=f"/{left - 1}")

    server.answer = answer
    assert fetch(f"{server.url}/{most}", max_redirects=most).content == b"there"
    with pytest.raises(FetchError, match=f"more than {most} times"):
        fetch(f"{server.url}/{most + 1}", max_redirects=most)


def test_the_limits_without_settings_are_those_of_the_readme() -> None:
    config = Fetcher().config
    assert (config.allow, config.max_bytes, config.timeout_s) == ((), 20 * 2**20, 30)
    assert (config.max_redirects, config.user_agent) == (5, "jackfield-fetch/0.1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_bytes", 0), ("timeout_s", 0), ("max_redirects", -1)),
        *(("user_agent", ""), ("user_agent", "a\nb: c"), ("user_agent", "dünn")),
    ],
)
def test_a_limit_that_forbids_everything_is_an_error_of_the_settings(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        Fetcher({name: value})


def test_a_setting_by_name_goes_before_the_same_one_of_a_config() -> None:
    config = Fetcher(FetchConfig(max_bytes=10, timeout_s=2), max_bytes=20).config
    assert (config.max_bytes, config.timeout_s, config.max_redirects) == (20, 2, 5)


# --- the addresses of a server ----------------------------------------------------------------------------------------


def resolve(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> list[tuple[str, int, Any]]:
    """Have every name stand for these addresses; return the list of lookups."""
    lookups: list[tuple[str, int, Any]] = []

    async def look_up(_: Any, host: str, port: int, **more: Any) -> list[Any]:
        lookups.append((host, port, more.get("type")))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in hosts]

    # Not `socket.getaddrinfo`, which the connection to an address calls as well.
    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", look_up)
    return lookups


def connect_to(monkeypatch: pytest.MonkeyPatch, *answering: str) -> list[str]:
    """Have only these addresses take connections, and break them at once; return the addresses that were tried."""
    tried: list[str] = []

    async def connect(_: Any, host: str, *__: Any) -> Any:
        tried.append(host)
        raise OSError("broken") if host in answering else httpcore2.ConnectTimeout("no answer")

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    return tried


def test_the_addresses_of_a_server_are_tried_in_order_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups = resolve(monkeypatch, "93.184.216.34", "93.184.216.34", "1.1.1.1")
    tried = connect_to(monkeypatch)
    with pytest.raises(FetchError, match="the server does not respond"):
        asyncio.run(Fetcher().fetch("http://many.example/"))
    assert tried == ["93.184.216.34", "1.1.1.1"]
    assert lookups == [("many.example", 80, socket.SOCK_STREAM)]


def test_the_first_address_that_answers_is_taken(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, tried = httpcore2.AnyIOBackend.connect_tcp, []

    async def noted(backend: Any, host: str, port: int, *more: Any) -> Any:
        tried.append((host, port))
        if host == "1.1.1.1":
            raise httpcore2.ConnectError("nothing there")
        return await connect(backend, "127.0.0.1", server.port, *more)

    resolve(monkeypatch, "1.1.1.1", "8.8.8.8", "9.9.9.9")
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", noted)
    assert asyncio.run(Fetcher().fetch("http://many.example/")).content == b"hello"
    assert tried == [("1.1.1.1", 80), ("8.8.8.8", 80)]


def test_a_name_without_any_address_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch)
    with pytest.raises(FetchError, match="the connection broke"):
        asyncio.run(Fetcher().fetch("http://none.example/"))


def test_a_host_that_is_allowed_allows_no_other_host_of_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "10.1.2.3")
    tried = connect_to(monkeypatch, "10.1.2.3")
    for host, is_asked in (("intranet.example", True), ("other.example", False), ("not-intranet.example", False)):
        with pytest.raises(FetchError, match="the connection broke" if is_asked else "in a private network"):
            asyncio.run(Fetcher(allow=["intranet.example"]).fetch(f"http://{host}/"))
    assert tried == ["10.1.2.3"]


@pytest.mark.parametrize(
    ("host", "looked_up"), [("BÜCHER.example", "xn--bcher-kva.example"), ("[2606:4700::1111]", "2606:4700::1111")]
)
def test_a_host_is_looked_up_as_the_internet_writes_it(
    monkeypatch: pytest.MonkeyPatch, host: str, looked_up: str
) -> None:
    lookups = resolve(monkeypatch, "93.184.216.34")
    connect_to(monkeypatch)
    with pytest.raises(FetchError, match="does not respond"):
        asyncio.run(Fetcher().fetch(f"http://{host}:81/"))
    assert lookups == [(looked_up, 81, socket.SOCK_STREAM)]


def test_a_server_of_ipv6_is_asked_if_it_is_allowed() -> None:
    try:
        server = Server("::1")
    except OSError:
        pytest.skip("no IPv6 on this machine")
    try:
        assert asyncio.run(Fetcher(allow=["::1"]).fetch(f"http://[::1]:{server.port}/")).content == b"hello"
        assert f"\r\nhost: [::1]:{server.port}\r\n" in server.requests[0].lower()
    finally:
        server.close()


def test_an_address_that_cannot_be_fetched_is_not_checked(server: Server) -> None:
    server.answer = lambda _: written("", "302 Found", location="http://user:secret@127.0.0.1/")
    checked: list[str] = []

    async def check(url: str) -> None:
        checked.append(url)

    for url in ("file:///etc/passwd", f"{server.url}/a"):
        with pytest.raises(FetchError, match="cannot be fetched") as caught:
            asyncio.run(Fetcher(allow=LOCAL).fetch(url, check=check))
        assert "secret" not in str(caught.value)
    assert checked == [f"{server.url}/a"]


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://user:secret@a.example:8080/b?key=secret#part", "https://a.example:8080/b"),
        ("http://a.example", "http://a.example"),
        ("http://a:secret@b@c.example/", "http://c.example/"),
        ("a.pdf?key=secret", "a.pdf"),
        ("http://[", "an invalid URL"),
        ("http://a.example/\x00\u202e", "http://a.example/??"),
        ("http://a.example/" + "x" * 300, "http://a.example/" + "x" * 183),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url: str, text: str) -> None:
    assert shown(url) == text


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of its own making for `localhost`, with its key in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl command to make a certificate with")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    options = ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command = [openssl, "req", "-x509", *kind, *options, "-keyout", str(path), "-out", str(path.with_name("c.pem"))]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_name("c.pem").read_text())
    return path


@pytest.fixture
def tls_server(certificate: Path) -> Iterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    made = Server(tls=context)
    yield made
    made.close()


def test_a_server_whose_certificate_is_not_trusted_is_asked_nothing(tls_server: Server) -> None:
    with pytest.raises(FetchError, match="the server's certificate is not valid"):
        fetch(f"https://localhost:{tls_server.port}/?key=secret", allow=["localhost"])
    assert tls_server.requests == []


def test_a_certificate_is_good_for_the_hosts_that_it_names(
    tls_server: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert fetch(f"https://localhost:{tls_server.port}/", allow=["localhost"]).content == b"hello"
    with pytest.raises(FetchError, match="the server's certificate is not valid"):
        fetch(f"https://127.0.0.1:{tls_server.port}/")
    assert len(tls_server.requests) == 1


def test_a_server_with_tls_does_not_lead_to_one_without(
    tls_server: Server, server: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    both = ["localhost", "127.0.0.1"]
    tls_server.answer = lambda _: written("", "302 Found", location=f"{server.url}/?key=secret")
    with pytest.raises(FetchError, match=f"from https to http: fetch {server.url}/ directly if you trust it"):
        fetch(f"https://localhost:{tls_server.port}/", allow=both)
    assert server.requests == []
    server.answer = lambda _: written("", "302 Found", location=f"https://localhost:{tls_server.port}/")
    with pytest.raises(FetchError, match="from https to http"):  # though it began with http
        fetch(server.url, allow=both)
    assert len(server.requests) == 1
    tls_server.answer = lambda _: written("there")
    assert fetch(server.url, allow=both).content == b"there"


def test_interim_answers_and_tiny_chunks_are_bounded_behind_tls_as_well(
    tls_server: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    between, url = _Between(monkeypatch), f"https://localhost:{tls_server.port}/"
    fetcher = Fetcher(allow=["localhost"])
    tls_server.answer = lambda _: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000)
    assert "does not speak HTTP" in str(between.fetch(fetcher, url))
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 2000 + b"0\r\n\r\n"
    tls_server.answer = lambda _: chunked
    assert between.fetch(fetcher, url) is None
    assert 0 < between.most_lines <= 128


# --- the end ----------------------------------------------------------------------------------------------------------


def test_no_connection_is_kept(server: Server) -> None:
    server.keeps_open = True
    assert fetch(server.url).content == b"hello"
    assert server.left.wait(60)
