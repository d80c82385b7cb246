"""What runs in a process that parses files: one job after the other, each within limits.

A job is a header in JSON and the bytes of a file; an answer is JSON in frames. Nothing is unpickled on either side:
a process that has parsed a hostile file is trusted no more than the file.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from jackfield.errors import DocParserError
from jackfield.retrieval import Document, Parser
from jackfield_documents.encodings import as_marked_utf8

IDLE_S = 60.0
_BLOCKS_PER_FRAME = 256
_STATM = Path("/proc/self/statm")


def write_frame(stream: BinaryIO, data: bytes) -> None:
    """Write a frame: its length in eight bytes, then its content."""
    stream.write(len(data).to_bytes(8, "big"))
    stream.write(data)
    stream.flush()


def read_frame(stream: BinaryIO, *, most: int) -> bytes:
    """Read a frame.

    Raises:
        EOFError: The other side has ended.
        OverflowError: It has more than `most` bytes.
    """
    size = int.from_bytes(_exactly(stream, 8), "big")
    if size > most:
        raise OverflowError
    return _exactly(stream, size)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def serve() -> None:
    """Do jobs until the other side ends, or asks for nothing for a minute."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's
    _no_core_files()
    jobs, answers = _own_streams()
    inbox: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, inbox), daemon=True).start()
    parsers: dict[str, Parser] = {}
    write_frame(answers, b"")  # it is ready
    while True:
        try:
            header, data = inbox.get(timeout=IDLE_S)
        except queue.Empty:
            os._exit(0)
        for frame in _answer(json.loads(header), data, parsers):
            write_frame(answers, frame)


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the host. What a parser prints must not get between the frames."""
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    return jobs, answers


def _receive(jobs: BinaryIO, inbox: queue.SimpleQueue[tuple[bytes, bytes]]) -> None:
    """Take jobs. In a thread of its own, so that the end of the host is seen while a file is parsed."""
    try:
        while True:
            inbox.put((read_frame(jobs, most=sys.maxsize), read_frame(jobs, most=sys.maxsize)))
    finally:
        os._exit(0)


def _answer(job: Mapping[str, Any], data: bytes, parsers: dict[str, Parser]) -> Iterator[bytes]:
    os.environ.update(job["environment"])
    try:
        parser = _parser(job, parsers)
    except Exception as error:  # noqa: BLE001 - the host imports it as well, and says what is wrong
        yield json.dumps({"unavailable": type(error).__name__}).encode()
        return
    try:
        with _limits(memory_bytes=job["memory_bytes"], cpu_s=job["cpu_s"]):
            if job["codec"]:
                data = as_marked_utf8(data, job["codec"])
            yield from list(_frames(parser.parse(data, source=job["source"])))
    except DocParserError as error:
        yield json.dumps({"error": str(error)}).encode()
    except Exception as error:  # noqa: BLE001 - a library inside a parser may raise anything at a damaged file
        yield json.dumps({"failed": type(error).__name__}).encode()
    finally:
        for name in job["environment"]:
            os.environ.pop(name, None)


def _parser(job: Mapping[str, Any], parsers: dict[str, Parser]) -> Parser:
    key = json.dumps((job["target"], job["settings"]))
    if key not in parsers:
        import importlib

        module, _, name = job["target"].partition(":")
        parsers[key] = getattr(importlib.import_module(module), name)(job["settings"])
    return parsers[key]


def _frames(document: Document) -> Iterator[bytes]:
    """In parts, so that the host, which reads them between other work, is not held up by a long one."""
    for start in range(0, len(document.blocks), _BLOCKS_PER_FRAME):
        blocks = document.blocks[start : start + _BLOCKS_PER_FRAME]
        rows = [(block.text, block.kind, block.page, block.level) for block in blocks]
        yield json.dumps({"blocks": rows}).encode()
    yield json.dumps({"title": document.title, "metadata": dict(document.metadata)}, default=str).encode()


# --- limits -----------------------------------------------------------------------------------------------------------


@contextmanager
def _limits(*, memory_bytes: int, cpu_s: float) -> Iterator[None]:
    """Limits on what comes on top of what the process has taken so far. Windows has none; macOS has that on time."""
    try:
        import resource
    except ImportError:
        yield
        return
    wanted = {resource.RLIMIT_CPU: int(sum(os.times()[:2]) + cpu_s) + 1}
    if _STATM.exists():
        taken = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        wanted[resource.RLIMIT_AS] = taken + memory_bytes
    before = {kind: resource.getrlimit(kind) for kind in wanted}
    for kind, most in wanted.items():
        soft, hard = before[kind]
        resource.setrlimit(kind, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
    try:
        yield
    finally:
        for kind, limit in before.items():
            resource.setrlimit(kind, limit)


def _no_core_files() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
