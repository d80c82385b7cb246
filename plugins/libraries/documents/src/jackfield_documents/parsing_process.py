"""The main program of a parsing subprocess, which runs one job after another, each within limits.

A job is a JSON header and the file's bytes; an answer is JSON in frames. Neither side unpickles anything, because a
process that has parsed a hostile file deserves no more trust than the file.
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
from jackfield.retrieval import Document, PageImage, Parser
from jackfield_documents.encodings import as_marked_utf8

IDLE_S = 60.0
_BLOCKS_PER_FRAME = 256
_STATM = Path("/proc/self/statm")


def write_frame(stream: BinaryIO, data: bytes) -> None:
    """Write a frame: its length in eight bytes, followed by its content."""
    stream.write(len(data).to_bytes(8, "big"))
    stream.write(data)
    stream.flush()


def read_frame(stream: BinaryIO, *, most: int) -> bytes:
    """Read a frame.

    Raises:
        EOFError: The other side closed the stream.
        OverflowError: The frame is longer than `most` bytes.
    """
    size = int.from_bytes(_read_exactly(stream, 8), "big")
    if size > most:
        raise OverflowError
    return _read_exactly(stream, size)


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def serve() -> None:
    """Run jobs until the host exits or sends none for a minute."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the host handles Ctrl-C
    _disable_core_dumps()
    jobs, answers = _claim_pipes()
    inbox: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, inbox), daemon=True).start()
    parsers: dict[str, Parser] = {}
    write_frame(answers, b"")  # tells the host that the process is ready
    while True:
        try:
            header, data = inbox.get(timeout=IDLE_S)
        except queue.Empty:
            os._exit(0)
        for frame in _answer(json.loads(header), data, parsers):
            write_frame(answers, frame)


def _claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes to the host, and redirect stdin and stdout so that a parser's output does not mix with it."""
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    return jobs, answers


def _receive(jobs: BinaryIO, inbox: queue.SimpleQueue[tuple[bytes, bytes]]) -> None:
    """Receive jobs in a thread, which also notices during parsing that the host has exited."""
    try:
        while True:
            inbox.put((read_frame(jobs, most=sys.maxsize), read_frame(jobs, most=sys.maxsize)))
    finally:
        os._exit(0)


def _answer(job: Mapping[str, Any], data: bytes, parsers: dict[str, Parser]) -> Iterator[bytes]:
    os.environ.update(job["environment"])
    try:
        parser = _parser(job, parsers)
    except Exception as error:  # noqa: BLE001 - the host imports the parser as well and reports the error
        yield json.dumps({"unavailable": type(error).__name__}).encode()
        return
    try:
        with _limits(memory_bytes=job["memory_bytes"], cpu_s=job["cpu_s"]):
            if job["draw"]:
                page, passage = job["draw"]
                image = parser.draw_page(data, page=page, passage=passage, source=job["source"])
                yield from _image_frames(image)
                return
            if job["codec"]:
                data = as_marked_utf8(data, job["codec"])
            yield from list(_frames(parser.parse(data, source=job["source"])))
    except DocParserError as error:
        yield json.dumps({"error": str(error)}).encode()
    except Exception as error:  # noqa: BLE001 - a third-party library may raise anything on a damaged file
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
    """Encode a document as frames of limited size, so that the host can do other work in between."""
    for start in range(0, len(document.blocks), _BLOCKS_PER_FRAME):
        blocks = document.blocks[start : start + _BLOCKS_PER_FRAME]
        rows = [(block.text, block.kind, block.page, block.level) for block in blocks]
        yield json.dumps({"blocks": rows}).encode()
    for part in document.parts:
        yield json.dumps({"part": part.name, "page": part.page}).encode()
        yield part.data
    yield json.dumps({"title": document.title, "metadata": dict(document.metadata)}, default=str).encode()


def _image_frames(image: PageImage) -> Iterator[bytes]:
    size = [image.width, image.height]
    head = {"page": image.page, "size": size, "boxes": image.boxes, "has_text": image.has_text}
    yield json.dumps(head).encode()
    yield image.png


# --- limits -----------------------------------------------------------------------------------------------------------


@contextmanager
def _limits(*, memory_bytes: int, cpu_s: float) -> Iterator[None]:
    """Limit memory and CPU time beyond the process's current use. Windows has no limits, macOS only CPU time."""
    try:
        import resource
    except ImportError:
        yield
        return
    limits = {resource.RLIMIT_CPU: int(sum(os.times()[:2]) + cpu_s) + 1}
    if _STATM.exists():
        used_bytes = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        limits[resource.RLIMIT_AS] = used_bytes + memory_bytes
    previous = {kind: resource.getrlimit(kind) for kind in limits}
    for kind, limit in limits.items():
        soft, hard = previous[kind]
        resource.setrlimit(kind, (limit if soft == resource.RLIM_INFINITY else min(limit, soft), hard))
    try:
        yield
    finally:
        for kind, soft_and_hard in previous.items():
            resource.setrlimit(kind, soft_and_hard)


def _disable_core_dumps() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
