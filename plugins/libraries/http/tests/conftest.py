"""What these tests share: servers on 127.0.0.1, and clients that ask them."""

from __future__ import annotations

import contextlib
import http.server
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from jackfield import sync
from jackfield_http import HTTPClient
from jackfield_testkit.server import FakeOpenAI

Answering = Callable[..., AbstractContextManager[str]]
MakeClient = Callable[..., HTTPClient]


class _Echo(http.server.BaseHTTPRequestHandler):
    """Answers a POST with its body, a GET with its path, and both with 201."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        assert "content-length" not in self.headers
        self._answer(self.path.encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(201)
        self.send_header("X-Mine", self.headers.get("x-mine", ""))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if "/closing" in self.path:  # as llama.cpp does, without having announced it
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No proxies of the developer."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A server that answers as told."""
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def answering() -> Answering:
    """Starts a server that echoes; gives its URL. Keywords are attributes of its handler."""

    @contextlib.contextmanager
    def start(context: ssl.SSLContext | None = None, *, address: str = "127.0.0.1", **handler: object) -> Iterator[str]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        server_class = type("Server", (http.server.ThreadingHTTPServer,), {"address_family": family})
        with server_class((address, 0), type("Echo", (_Echo,), handler)) as server:
            server.daemon_threads = True
            server.block_on_close = False
            if context is not None:
                server.socket = context.wrap_socket(server.socket, server_side=True)
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                host = f"[{address}]" if ":" in address else "localhost"
                yield f"{'https' if context else 'http'}://{host}:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()

    return start


@pytest.fixture
def echo(answering: Answering) -> Iterator[str]:
    """The URL of a server that echoes."""
    with answering() as url:
        yield url


@pytest.fixture
def tls_echo(answering: Answering, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a server with a certificate of its own making, and the certificate."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl command to make a certificate with")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    options = ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", *options, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with answering(context) as url:
        yield url, certificate


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    """Makes clients, and closes them."""
    clients: list[HTTPClient] = []

    def make(url: str) -> HTTPClient:
        clients.append(HTTPClient(url, backend="acme"))
        return clients[-1]

    yield make
    for client in clients:
        sync.run(client.aclose())
