"""The pipes of a server that is started, and the requests to one at an address."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield_mcp import stdio
from jackfield_mcp.remote import RemoteServer, _Events
from jackfield_mcp.servers import ServerConfig
from jackfield_mcp.stdio import ServerProcess, _Lines
from jackfield_mcp.wire import MOST_LEVELS, TOO_DEEP, Entries, parse_message, wrap_started_task

from .conftest import PATIENCE_S, until

# --- lines ---


@given(st.binary(max_size=40), st.lists(st.integers(1, 9), min_size=1), st.integers(1, 12))
def test_lines_are_those_of_the_whole_whatever_the_pieces_until_one_is_too_long(
    data: bytes, sizes: list[int], most: int
) -> None:
    lines, found, at = _Lines(most), [], 0
    for size in sizes * len(data):
        if at >= len(data) or lines.is_too_long:
            break
        found += lines.feed(data[at : at + size])
        at += size
    whole = data[:at].split(b"\n")[:-1]
    assert found == whole[: len(found)]
    # A line is measured when a piece ends in it; only a whole one that came in one piece may be longer.
    assert lines.is_too_long or found == whole
    assert not lines.is_too_long or max(map(len, data[:at].split(b"\n"))) > most


def test_a_line_of_just_the_limit_is_a_line() -> None:
    lines = _Lines(3)
    assert lines.feed(b"abc\nab") == [b"abc"]
    assert lines.feed(b"c\n") == [b"abc"]
    assert lines.feed(b"abcd") == []
    assert lines.is_too_long


# --- processes ---

# Says what it sees, prints to its standard error, and notes how it ends.
SERVER = """
import json, os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (open("ended-by", "a").write("SIGTERM "), os._exit(0)))
sys.stderr.write("x" * 9000 + " the-secret the end\\n"); sys.stderr.flush()
seen = {"cwd": os.getcwd(), "env": dict(os.environ), "sid": os.getsid(0), "pid": os.getpid(), "args": sys.argv[1:]}
print(json.dumps({"jsonrpc": "2.0", "method": "seen", "params": seen}), flush=True)
line = sys.stdin.readline()
open("got", "w").write(line)
sys.stdin.read()
open("ended-by", "a").write("EOF ")
THEN
"""


def started(folder: Path, then: str = "", **settings: Any) -> ServerProcess:
    code = SERVER.replace("THEN", then)
    return ServerProcess(ServerConfig(command=sys.executable, args=("-c", code, "a b"), cwd=str(folder), **settings))


def spoken(process: ServerProcess) -> dict[str, Any]:
    """Return the first thing that a server says, after a message was sent to it and it was ended."""

    async def speak() -> dict[str, Any]:
        async with process.streams() as (messages, sending):
            message = await messages.receive()
            note = mcp_types.JSONRPCNotification(jsonrpc="2.0", method="x", params={"a": "ü\n"})
            await sending.send(parse_message(note.model_dump_json().encode()))
            await until(lambda: _has_got(process))
            return dict(message.message.params)

    return asyncio.run(asyncio.wait_for(speak(), PATIENCE_S))


def _has_got(process: ServerProcess) -> bool:
    got = Path(process._server.cwd or "") / "got"
    return got.exists() and got.read_text().endswith("\n")


def test_a_server_gets_its_folder_arguments_and_variables_and_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-yours")
    seen = spoken(started(tmp_path, env={"MINE": "1", "HOME": "/srv"}))
    assert (seen["cwd"], seen["args"], seen["sid"]) == (str(tmp_path), ["a b"], seen["pid"])
    assert (seen["env"]["MINE"], seen["env"]["HOME"], seen["env"]["PATH"]) == ("1", "/srv", os.environ["PATH"])
    assert "OPENAI_API_KEY" not in seen["env"]
    assert json.loads((tmp_path / "got").read_text()) == {"jsonrpc": "2.0", "method": "x", "params": {"a": "ü\n"}}


@pytest.mark.parametrize(
    ("then", "ended_by"),
    [("", ["EOF"]), ("import time; time.sleep(600)", ["EOF", "SIGTERM"])],
    ids=["at the end of its input", "by a signal"],
)
def test_a_server_is_asked_to_end_by_its_input_and_then_by_a_signal(
    tmp_path: Path, then: str, ended_by: list[str]
) -> None:
    # Each step has a third of the time; a server that ends at once needs none of it.
    spoken(started(tmp_path, then, close_timeout_s=0.6 if then else 600))
    assert (tmp_path / "ended-by").read_text().split() == ended_by


def test_the_end_of_what_a_server_printed_is_kept_without_secrets(tmp_path: Path) -> None:
    process = started(tmp_path, env={"KEY": "the-secret"})
    spoken(process)
    output = process.output()
    assert output.endswith("x … the end")
    assert 8000 < len(output) <= 8192


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        ("sys.exit(3)", "exited with code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was terminated by SIGKILL"),
        (
            "sys.stdout.write('x' * 2000); sys.stdout.flush(); sys.stdin.read()",
            "sent a message larger than 1024 bytes",
        ),
    ],
    ids=["exit", "signal", "long"],
)
def test_the_end_of_a_server_is_described(act: str, problem: str) -> None:
    config = ServerConfig(
        command=sys.executable, args=("-c", f"import os, signal, sys; {act}"), max_message_bytes=1024
    )  # fmt: skip
    process = ServerProcess(config)

    async def wait() -> None:
        async with process.streams():
            await process.ended.wait()

    asyncio.run(asyncio.wait_for(wait(), PATIENCE_S))
    assert process.problem == problem


def test_what_is_no_message_is_told_the_first_one_only() -> None:
    code = "import sys; print('\\nhello\\nagain\\n{}', flush=True); sys.exit(1)"
    process = ServerProcess(ServerConfig(command=sys.executable, args=("-c", code)))

    async def wait() -> None:
        async with process.streams():
            await process.ended.wait()

    asyncio.run(asyncio.wait_for(wait(), PATIENCE_S))
    assert process.output() == "It printed a line to stdout that is not a message: 'hello'"


def test_what_a_server_sent_before_it_ended_is_read_before_its_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    process: Any = SimpleNamespace(pid=1, returncode=3, wait=partial(asyncio.sleep, 0))
    monkeypatch.setattr(stdio, "_wait_for_exit", partial(asyncio.sleep, 0))
    assert stdio._DRAIN_S > 0

    async def watch(drain_s: float, *, is_read: bool = False) -> tuple[bool, str]:
        monkeypatch.setattr(stdio, "_DRAIN_S", drain_s)
        server = ServerProcess(ServerConfig(command="server"))
        if is_read:
            server.problem = "sent too much"
            server.ended.set()
        watching = asyncio.ensure_future(server._watch(process))
        await asyncio.wait([watching], timeout=None if not drain_s else 0.01)
        watching.cancel()
        return server.ended.is_set(), server.problem

    assert asyncio.run(watch(3600)) == (False, "")
    assert asyncio.run(watch(0)) == (True, "exited with code 3")
    assert asyncio.run(watch(0, is_read=True)) == (True, "sent too much")


# --- addresses ---


class Address(ThreadingHTTPServer):
    """Answers every request with the same, and notes the headers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        self.status, self.body = 200, b"{}"
        self.headers = {"Content-Type": "application/json"}
        self.seen: list[dict[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Address

    def do_POST(self) -> None:
        self.server.seen.append({name.lower(): value for name, value in self.headers.items()})
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[Address]:
    with Address() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def asked(remote: RemoteServer, url: str, method: str = "POST") -> httpx2.Response:
    async def ask() -> httpx2.Response:
        async with remote._client() as client:
            return await client.request(method, url, content=b"{}")

    return asyncio.run(ask())


def test_a_request_has_the_headers_of_the_settings_and_wants_nothing_compressed(address: Address) -> None:
    remote = RemoteServer(ServerConfig(url=address.url, headers={"Authorization": "Bearer x", "X-Own": "1"}))
    asked(remote, address.url)
    (headers,) = address.seen
    assert (headers["authorization"], headers["x-own"], headers["accept-encoding"]) == ("Bearer x", "1", "identity")


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate"])
def test_a_compressed_answer_is_refused(address: Address, coding: str) -> None:
    address.headers |= {"Content-Encoding": coding}
    with pytest.raises(httpx2.DecodingError, match="compressed response"):
        asked(RemoteServer(ServerConfig(url=address.url)), address.url)
    address.headers |= {"Content-Encoding": "identity"}
    assert asked(RemoteServer(ServerConfig(url=address.url)), address.url).content == b"{}"


def test_an_answer_of_just_the_limit_is_read_and_a_longer_one_is_not(address: Address) -> None:
    remote = RemoteServer(ServerConfig(url=address.url, max_message_bytes=1024))
    address.body = b"x" * 1024
    assert asked(remote, address.url).content == address.body
    address.body += b"x"
    with pytest.raises(httpx2.StreamError, match="the response is larger than 1024 bytes"):
        asked(remote, address.url)


@pytest.mark.parametrize(
    ("method", "status", "noted"), [("POST", 404, 404), ("POST", 400, 400), ("POST", 399, 0), ("GET", 500, 0)]
)
def test_only_the_refusal_of_a_request_of_ours_is_a_problem(
    address: Address, method: str, status: int, noted: int
) -> None:
    address.status = status
    remote = RemoteServer(ServerConfig(url=address.url))
    asked(remote, address.url, method)
    assert (remote.status, remote.problem) == (noted, f"returned HTTP {noted}" if noted else "")


def test_a_message_that_is_nested_too_deeply_is_repaired_with_a_length_that_fits(address: Address) -> None:
    deep = "[" * 2 * MOST_LEVELS + "]" * 2 * MOST_LEVELS
    address.body = f'{{"jsonrpc": "2.0", "id": 1, "result": {{"a": {deep}}}}}'.encode()
    response = asked(RemoteServer(ServerConfig(url=address.url)), address.url)
    assert TOO_DEEP in response.text
    assert response.headers.get("content-length") in (None, str(len(response.content)))


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> Any:
        for piece in self.pieces:
            yield piece


def events(*pieces: bytes, most: int = 100) -> list[bytes]:
    async def read() -> list[bytes]:
        return [piece async for piece in _Events(_Pieces(*pieces), most)]

    return asyncio.run(read())


@given(st.text(alphabet="ab:\r\n", max_size=30), st.integers(1, 7))
def test_events_are_passed_on_as_they_are(text: str, size: int) -> None:
    data = text.encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert b"".join(events(*pieces)) == data


def test_an_event_is_passed_on_once_its_line_has_ended_and_repaired() -> None:
    assert events(b"data: a\nda", b"ta: b\n", b"rest") == [b"data: a\n", b"data: b\n", b"rest"]
    deep = b"[" * 2 * MOST_LEVELS + b"]" * 2 * MOST_LEVELS
    message = b'{"jsonrpc": "2.0", "id": 1, "result": {"a": ' + deep + b"}}"
    (line, rest) = events(b"data: " + message + b"\r\n", most=10_000)
    assert line.startswith(b"data:")
    assert line.endswith(b"}}\r\n")
    assert TOO_DEEP.encode() in line
    assert rest == b""
    # The SDK, which has the same limit, refuses a line that is too long; it need not be kept until it ends.
    assert events(b"data: aaaa", b"aaaa", most=8) == [b"data: aaaa", b"aaaa"]


# --- entries ---


def test_faults_are_named_up_to_a_number_and_a_length() -> None:
    entries = Entries()
    for number in range(120):
        entries.leave_out("tool", f"{number}" + "n" * 300, "f" * 400)
    assert len(entries.left_out) == 100
    assert {(len(name), len(fault)) for name, fault in entries.left_out.items()} == {(207, 300)}


def answer_with(result: dict[str, Any]) -> Any:
    return parse_message(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())


def sifted(result: dict[str, Any]) -> tuple[dict[str, Any], Entries]:
    entries, message = Entries(), answer_with(result)
    entries.sift(message)
    return message.message.result, entries


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def test_of_a_page_so_many_entries_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jackfield_mcp.wire._MOST_ENTRIES", 2)
    result, entries = sifted({"tools": [tool("a"), tool("b")]})
    assert (len(result["tools"]), entries.left_out) == (2, {})
    result, entries = sifted({"tools": [tool("a"), tool("b"), tool("c")]})
    assert [one["name"] for one in result["tools"]] == ["a", "b"]
    assert list(entries.left_out) == ["rest of the tools"]


def test_only_an_answer_to_a_listing_is_a_list() -> None:
    for other in ("content", "contents", "messages"):
        odd = {other: [], "tools": [5], "prompts": "x"}
        assert sifted(odd)[0] == odd
    assert sifted({"tools": [tool("a", outputSchema={"type": "object"}), 5]})[0] == {"tools": [tool("a")]}


def test_a_task_that_was_started_is_a_result_with_its_task() -> None:
    task = {"taskId": "1", "status": "working"}
    with_content = {"task": task, "content": []}
    for result, wrapped in (
        ({"task": task}, {"content": [], "_meta": {"jackfield/started-task": task}}),
        (with_content, with_content),
        ({"task": "x"}, {"task": "x"}),
    ):
        message = answer_with(result)
        wrap_started_task(message)
        assert message.message.result == wrapped
