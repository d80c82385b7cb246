"""Block the parsing of a document until the test ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from jackfield.errors import DocParserError
from jackfield.plugins import ParserSpec, PluginHost, hook
from jackfield.retrieval import Document, Parser

SUFFIX = "jackfieldslow"


class SlowFile:
    """A document whose parsing does not finish before `slow_file` exits.

    Attributes:
        path: The file's path.
        begun: Set once a parser reads the file.
    """

    def __init__(self, folder: Path) -> None:
        self.key = uuid4().hex
        self.path = folder / f"{self.key}.{SUFFIX}"
        self.path.write_text(self.key)
        self.begun = threading.Event()
        self.is_over = threading.Event()


_files: dict[str, SlowFile] = {}


class SlowParser(Parser):
    """Parser that blocks until the test ends."""

    def parse(self, data: bytes, *, source: str) -> Document:
        """Wait, then fail."""
        file = _files.get(data.decode())
        if file is not None:
            file.begun.set()
            file.is_over.wait()
        raise DocParserError(f"{source} is only for a test")


class _Plugin:
    @hook.parsers
    def parsers(self) -> list[ParserSpec]:
        target = f"{SlowParser.__module__}:{SlowParser.__name__}"
        return [ParserSpec(name="slow", target=target, extensions=(SUFFIX,), in_process_bytes=100)]


@contextmanager
def slow_file(folder: Path, host: PluginHost) -> Iterator[SlowFile]:
    """Create a document in a folder, and register its parser in a host until the block exits."""
    file = SlowFile(folder)
    _files[file.key] = file
    name = host.register(_Plugin(), name=f"slow-{file.key}")
    try:
        yield file
    finally:
        file.is_over.set()
        host.unregister(name)
        del _files[file.key]
