"""Serve web pages on 127.0.0.1 for tests of tools. A test defines how each path answers, including not at all.

```python
with WebServer() as web:
    web.put("/tides", WebAnswer(b"<p>Twice a day.", {"content-type": "text/html"}))
    web.put("/search", lambda request: WebAnswer.json({"said": request.query["q"]}))
    web.put("/flood", WebAnswer(b"x" * 1000, ending="never"))
    ...  # ask web.url
    assert web.requests[0].path == "/tides"
```
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import parse_qsl, urlsplit

_DRIP_S = 0.02


@dataclass(frozen=True, slots=True)
class WebRequest:
    """A recorded request. Header names are in lower case, and `path` excludes the query."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """A scripted answer.

    Attributes:
        body: The body.
        headers: The headers, apart from the content length.
        status: The HTTP status.
        ending: `whole` ends after the body, `never` sends the body over and over, and `drip` sends one byte of it at a
            time with pauses. The last two continue until the client disconnects or the server stops.
    """

    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    ending: Literal["whole", "never", "drip"] = "whole"

    @classmethod
    def json(cls, value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> WebAnswer:
        """Return an answer with a value as JSON."""
        return cls(json.dumps(value).encode(), {"content-type": "application/json", **(headers or {})}, status)


Answering: TypeAlias = WebAnswer | Callable[[WebRequest], WebAnswer]


class WebServer:
    """A web server for tests, used as a context manager. Paths without an answer return 404 for any method.

    Attributes:
        url: The base URL, without a trailing slash.
        requests: The requests received, in order.
    """

    def __init__(self) -> None:
        self._answers: dict[str, Answering] = {}
        self._over = threading.Event()
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.requests: list[WebRequest] = []

    def put(self, path: str, answer: Answering) -> str:
        """Set the answer for a path, or a function that creates it from each request. Return the URL."""
        self._answers[path] = answer
        return self.url + path

    def answer_to(self, request: WebRequest) -> WebAnswer:
        """Return the answer to a request."""
        self.requests.append(request)
        found = self._answers.get(request.path, WebAnswer(b"there is nothing here", status=404))
        return found if isinstance(found, WebAnswer) else found(request)

    def goes_on(self) -> bool:
        """Return True after a short pause if an endless answer should continue."""
        return not self._over.wait(_DRIP_S)

    def __enter__(self) -> Self:
        serve = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        serve.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, web: WebServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.web = web

    def handle_error(self, *_: object) -> None:
        """Ignore errors, because many tests let a client disconnect early."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        """Answer requests with any method."""
        self.raw_requestline = self.rfile.readline(65_537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        request = WebRequest(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body)
        self._send(self.server.web.answer_to(request))

    def _send(self, answer: WebAnswer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.ending == "whole":
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            return
        self.close_connection = True
        self.end_headers()
        sent = 0
        while answer.ending == "never" or self.server.web.goes_on():
            self.wfile.write(answer.body if answer.ending == "never" else answer.body[sent : sent + 1] or b" ")
            sent += 1

    def log_message(self, *_: object) -> None:
        """Log nothing, because `requests` has all requests."""
