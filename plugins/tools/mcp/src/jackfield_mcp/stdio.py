"""Run a server as a child process, talk to it over its pipes, and end it along with everything it started.

Unlike the SDK's transport, this one limits the size of messages, skips output that is not part of the protocol, retains
the end of stderr, and leaves no process behind when the interpreter exits. It also avoids quadratic copying: for a
single 100 MB line, the SDK's transport copies 80 GB.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from jackfield import sync
from jackfield_confine.strays import end_marked
from jackfield_mcp.servers import ServerConfig
from jackfield_mcp.wire import Entries, SiftedStream, parse_message

_log = logging.getLogger(__name__)

_STEPS = 3  # steps of shutdown: closing stdin, SIGTERM, SIGKILL; each has its share of `close_timeout_s`
_EXIT_CODE_S = 1.0  # for a server that closed its standard output to exit
_DRAIN_S = 0.5  # for reading the output that a server sent before it ended
_AT_EXIT_S = 0.5
_READ_BYTES = 2**18
_KEPT_BYTES = 8192  # of standard error
_MARK = "JACKFIELD_MCP_SERVER"  # in the environment of a server and of everything it starts, daemons included


class _Started(NamedTuple):
    """The origin of a running server: the id of the process that started it, and the mark in its environment."""

    parent: int
    mark: str


_processes: dict[int, _Started] = {}  # together with the server's process group

Streams = tuple[SiftedStream, MemoryObjectSendStream[SessionMessage]]


class ServerProcess:
    """A connected server process.

    Attributes:
        problem: The reason why the server is unreachable, or '' while it can be reached.
        ended: Set as soon as the server is unreachable.
        entries: Filters malformed entries out of the server's lists.
    """

    def __init__(self, server: ServerConfig) -> None:
        self._server = server
        self.entries = Entries()
        self.problem = ""
        self.ended = asyncio.Event()
        self._stderr = b""
        self._passed_over = ""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """Start the process, and open the message streams.

        Raises:
            OSError: The process cannot be started.
        """
        mark = uuid.uuid4().hex
        process = await asyncio.create_subprocess_exec(
            self._server.command,
            *self._server.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | self._server.env | {_MARK: mark},
            cwd=self._server.cwd,
            start_new_session=True,  # a process group of its own, so that all of it can be ended
        )
        _remember(process.pid, mark)
        try:
            # No buffer in between, so a server that floods waits until its messages are handled.
            received, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            sending, to_send = anyio.create_memory_object_stream[SessionMessage](0)
            async with asyncio.TaskGroup() as tasks, received, messages, sending, to_send:
                started = [
                    tasks.create_task(self._read(process, received)),
                    tasks.create_task(self._write(process, to_send)),
                    tasks.create_task(self._keep_stderr(process)),
                    tasks.create_task(self._watch(process)),
                ]
                try:
                    yield SiftedStream(messages, self.entries), sending
                finally:
                    for task in started:
                        task.cancel()
        finally:
            await _end(process, self._server.close_timeout_s / _STEPS, is_gone=bool(self.problem))

    async def _read(
        self, process: asyncio.subprocess.Process, received: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        assert process.stdout  # noqa: S101 - a pipe was asked for
        lines = _Lines(self._server.max_message_bytes)
        try:
            async with received:
                while not lines.is_too_long and (piece := await process.stdout.read(_READ_BYTES)):
                    for line in lines.feed(piece):
                        message = self._message(line)
                        if message is not None:
                            await received.send(message)
                self.problem = (
                    f"sent a message larger than {self._server.max_message_bytes} bytes"
                    if lines.is_too_long
                    else await self._describe_end(process)
                )
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.problem = "was closed"  # the session has ended
        finally:
            self.ended.set()

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Detect the end of the server, even if a process it started holds the pipes open."""
        await _wait_for_exit(process.pid)
        await asyncio.sleep(_DRAIN_S)
        if not self.ended.is_set():
            self.problem = await self._describe_end(process)
            self.ended.set()

    def _message(self, line: bytes) -> SessionMessage | None:
        message = parse_message(line)
        if message is None and line.strip():
            self._passed_over = self._passed_over or line[:200].decode(errors="replace").strip()
            _log.debug("%s printed a line to stdout that is not a message: %.200r", self._server.command, line)
        return message

    async def _describe_end(self, process: asyncio.subprocess.Process) -> str:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _EXIT_CODE_S)
        code = process.returncode
        if code is None:
            return "closed its standard output"
        return f"was terminated by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    async def _write(
        self, process: asyncio.subprocess.Process, to_send: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        assert process.stdin  # noqa: S101 - a pipe was asked for
        async with to_send:
            async for message in to_send:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    process.stdin.write(text.encode() + b"\n")
                    await process.stdin.drain()
                except (OSError, RuntimeError):  # it has ended, which the reader notices as well
                    return

    async def _keep_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr  # noqa: S101 - a pipe was asked for
        while piece := await process.stderr.read(_READ_BYTES):
            self._stderr = (self._stderr + piece)[-_KEPT_BYTES:]

    def output(self) -> str:
        """Return the end of the server's stderr, and a sample of stdout that is not part of the protocol."""
        texts = [self._stderr.decode(errors="replace").strip()]
        if self._passed_over:
            texts.append(f"It printed a line to stdout that is not a message: {self._passed_over!r}")
        return self._server.without_secrets("\n".join(filter(None, texts)))


async def _wait_for_exit(pid: int) -> None:
    if not hasattr(os, "pidfd_open"):
        await asyncio.Event().wait()  # its end is then detected by the end of its output
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:  # it has ended already
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


class _Lines:
    """Splits chunks of bytes into lines, looking at each byte only once."""

    def __init__(self, most: int) -> None:
        self.is_too_long = False
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that a chunk completes."""
        first, newline, rest = piece.partition(b"\n")
        self._pieces.append(first)
        self._size += len(first)
        self.is_too_long = self._size > self._most
        if not newline or self.is_too_long:
            return []
        *lines, last = rest.split(b"\n")
        lines.insert(0, b"".join(self._pieces))
        self._pieces, self._size = [last], len(last)
        return lines


async def _end(process: asyncio.subprocess.Process, patience_s: float, *, is_gone: bool) -> None:
    """End a server as the protocol requires: close stdin, then send SIGTERM, then SIGKILL."""
    try:
        if process.stdin is not None:
            process.stdin.close()
        for ask, limit in ((None, 0.0 if is_gone else patience_s), (signal.SIGTERM, patience_s)):
            if ask is not None:
                _signal(process.pid, ask)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await process.wait()
                    return
    finally:
        # A cancelled wait ends here as well.
        _signal(process.pid, signal.SIGKILL)
        started = _processes.pop(process.pid)
        transport: Any = process._transport  # type: ignore[attr-defined]  # a descendant may hold its pipes open
        transport.close()
        # Also kill processes that left the group, such as daemons. This completes even if nothing waits for it.
        strays = sync.in_background(partial(end_marked, _MARK, started.mark))
        await asyncio.wrap_future(strays)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _remember(group: int, mark: str) -> None:
    if not _processes:
        atexit.unregister(_end_all)
        atexit.register(_end_all)
    _processes[group] = _Started(os.getpid(), mark)


def _end_all() -> None:
    """End running servers at interpreter exit, after their event loops have stopped."""
    # A forked child's servers belong to its parent.
    own = {group: started.mark for group, started in _processes.items() if started.parent == os.getpid()}
    for group in own:
        _signal(group, signal.SIGTERM)
    deadline = time.monotonic() + _AT_EXIT_S
    while any(map(_is_there, own)) and time.monotonic() < deadline:
        time.sleep(0.01)
    for group, mark in own.items():
        _signal(group, signal.SIGKILL)
        end_marked(_MARK, mark)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
