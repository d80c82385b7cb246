"""A parser that does all as it should, and parsers that do one thing otherwise.

The format: `ZOO:`, the name of its parser and `:`, then pages parted by form feeds, paragraphs parted
by blank lines, and `end` on the last line.
"""

from __future__ import annotations

import contextlib
import random
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from jackfield.errors import DocParserError
from jackfield.retrieval import Block, Document, Parser, Part


class Honest(Parser):
    stated: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def mark(cls) -> bytes:
        """What its files begin with: the parsers of one distribution must not be for the same files."""
        return f"ZOO:{cls.__name__}:".encode()

    def parse(self, data: bytes, *, source: str) -> Document:
        self.check(data, source)
        try:
            text = data[len(self.mark()) : -4].decode()
        except UnicodeDecodeError as error:
            raise DocParserError(f"{source} is damaged") from error
        blocks = tuple(self.blocks(text))
        if not blocks:
            raise DocParserError(f"{source} has no text")
        return Document(source, blocks, content_hash="")

    def check(self, data: bytes, source: str) -> None:
        if not data.startswith(self.mark()) or not data.endswith(b"\nend"):
            raise DocParserError(f"{source} is no file of the zoo, or not all of it")

    def blocks(self, text: str) -> list[Block]:
        return [
            Block(part.strip(), page=page)
            for page, paragraphs in enumerate(text.split("\f"), start=1)
            for part in paragraphs.split("\n\n")
            if part.strip()
        ]


class LosesTheEnd(Honest):
    def blocks(self, text: str) -> list[Block]:
        return super().blocks(text)[:1]


class IsTiredAfterDamage(Honest):
    is_tired = False

    def check(self, data: bytes, source: str) -> None:
        try:
            super().check(data, source)
        except DocParserError:
            self.is_tired = True
            raise

    def blocks(self, text: str) -> list[Block]:
        return super().blocks(text)[: 1 if self.is_tired else None]


class RenamesSources(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        return Document("file", super().parse(data, source=source).blocks, content_hash="")


class WritesPoems(Honest):
    def blocks(self, text: str) -> list[Block]:
        kind: Any = "poem"
        return [Block(block.text, kind, page=block.page) for block in super().blocks(text)]


class NumbersSomePages(Honest):
    def blocks(self, text: str) -> list[Block]:
        first, *rest = super().blocks(text)
        return [Block(first.text), *rest]


class SignsBlocks(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        document = super().parse(data, source=source)
        signed = tuple(Block(f"{block.text} ({source})", page=block.page) for block in document.blocks)
        return Document(source, signed, content_hash="")


class GivesBlanks(Honest):
    def blocks(self, text: str) -> list[Block]:
        return [*super().blocks(text), Block(" ", page=9)]


class LevelsAll(Honest):
    def blocks(self, text: str) -> list[Block]:
        return [Block(block.text, page=block.page, level=1) for block in super().blocks(text)]


class CountsFromZero(Honest):
    def blocks(self, text: str) -> list[Block]:
        return [Block(block.text, page=(block.page or 0) - 1) for block in super().blocks(text)]


class GoesBack(Honest):
    def blocks(self, text: str) -> list[Block]:
        return super().blocks(text)[::-1]


class Throws(Honest):
    def blocks(self, text: str) -> list[Block]:
        return [Block(f"{block.text} {random.random()}", page=block.page) for block in super().blocks(text)]


class MixesThreads(Honest):
    def check(self, data: bytes, source: str) -> None:
        super().check(data, source)
        self.source = source
        time.sleep(0.01)

    def parse(self, data: bytes, *, source: str) -> Document:
        document = super().parse(data, source=source)
        return Document(self.source, document.blocks, content_hash="")


class ReadsNothing(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        return super().parse(data, source=source) if data else Document(source, (), content_hash="")


class HidesNamesOfNothing(Honest):
    def check(self, data: bytes, source: str) -> None:
        super().check(data, source if data else "the file")


class HidesNames(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        return super().parse(data, source="the file")


class HandsOverParts(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        return replace(super().parse(data, source=source), parts=(Part("lion.txt", b"A lion."),))


class ReadsAll(Honest):
    def check(self, data: bytes, source: str) -> None:
        if not data:
            raise DocParserError(f"{source} is empty")


class ChokesOnCuts(Honest):
    def check(self, data: bytes, source: str) -> None:
        if data and not data.endswith(b"end"):
            raise IndexError("string index out of range")
        super().check(data, source)


class ChokesOnDamage(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        if data.startswith(self.mark()) and data.endswith(b"\nend"):
            data.decode()
        return super().parse(data, source=source)


class ChokesOnNoise(Honest):
    def check(self, data: bytes, source: str) -> None:
        if len(data) > 10_000:
            raise MemoryError
        super().check(data, source)


class TrustsNames(Honest):
    """Decodes by whatever encoding a file names."""

    def check(self, data: bytes, source: str) -> None:
        named = re.search(rb"(?:charset|coding|encoding)[=:] ?[\"']?([\w-]+)", data)
        if named:
            with contextlib.suppress(LookupError, ValueError):
                data.decode(named[1].decode())
        super().check(data, source)


class Inflates(Honest):
    def check(self, data: bytes, source: str) -> None:
        super().check(data, source)
        bytearray(100 * 2**20)


class GrowsFaster(Honest):
    def blocks(self, text: str) -> list[Block]:
        bytearray(len(text) ** 2 // 8)
        return super().blocks(text)


class Unpacks(Honest):
    def blocks(self, text: str) -> list[Block]:
        return super().blocks("lion " * 2**24 if text.endswith("times.") else text)


class CountsQuotes(Honest):
    """Looks through all that is left, for each level of a quotation."""

    def check(self, data: bytes, source: str) -> None:
        left = data
        while left.startswith(b"> "):
            left = left[2:]
            left.split()
        super().check(data, source)


class CountsLevels(Honest):
    """Looks at each level of a quotation once for each level above it."""

    def check(self, data: bytes, source: str) -> None:
        levels = 0
        for start in range(0, len(data), 2):
            if data[start : start + 2] == b"> ":
                levels += sum(1 for _ in range(start))
        super().check(data, source)


class Backtracks(Honest):
    """An expression that begins anew at each level and reads to the end each time."""

    def check(self, data: bytes, source: str) -> None:
        re.search(rb"(?:> )+!", data)
        super().check(data, source)


class Writes(Honest):
    def check(self, data: bytes, source: str) -> None:
        super().check(data, source)
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)


class DotsExtensions(Honest):
    stated: ClassVar = {"extensions": (".DotsExtensions",), "magic": ()}


class ShoutsTypes(Honest):
    stated: ClassVar = {"media_types": ("TEXT/ZOO",)}


class BeginsWithNothing(Honest):
    stated: ClassVar = {"magic": (b"",)}


class BeginsWithAnother(Honest):
    stated: ClassVar = {"magic": (b"ANOTHER:",)}


class IsForNoFile(Honest):
    stated: ClassVar = {"extensions": (), "magic": ()}


class ForgetsExtensions(Honest):
    stated: ClassVar = {"extensions": ("zoo",)}


class LooksAtNames(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        document = super().parse(data, source=source)
        if not source.endswith(".looksatnames"):
            return Document(source, document.blocks[:1], content_hash="")
        return document


class ReversesBlocks(Honest):
    def blocks(self, text: str) -> list[Block]:
        blocks = super().blocks(text)
        texts = [block.text for block in blocks][::-1]
        return [Block(text, page=block.page) for text, block in zip(texts, blocks, strict=True)]


class ReadsTheHost(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        Path("/etc/hostname").read_bytes()
        return super().parse(data, source=source)


class IsNoParser:
    """Something that reads files, of no class of the core."""

    stated: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        self.cfg = cfg

    @classmethod
    def mark(cls) -> bytes:
        return b"ZOO:IsNoParser:"

    def parse(self, data: bytes, *, source: str) -> Document:
        raise DocParserError(f"{source} is empty")


class GivesLists(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        blocks: Any = [*super().parse(data, source=source).blocks]
        return Document(source, blocks, content_hash="")


class GivesLookalikes(Honest):
    """Its blocks have all attributes of a block, and are none."""

    def blocks(self, text: str) -> list[Block]:
        facts = {"kind": "paragraph", "page": 1, "level": 0}
        return cast("list[Block]", [SimpleNamespace(text=block.text, **facts) for block in super().blocks(text)])


class HasHeadingsOfNoLevel(Honest):
    def blocks(self, text: str) -> list[Block]:
        return [Block(block.text, "heading", page=block.page) for block in super().blocks(text)]


class HandsOverViews(Honest):
    stated: ClassVar = {"has_parts": True}

    def parse(self, data: bytes, *, source: str) -> Document:
        view: Any = memoryview(b"A lion.")
        return replace(super().parse(data, source=source), parts=(Part("lion.txt", view),))


class CountsParsers(Honest):
    """Each one of them reads otherwise."""

    made = 0

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(cfg)
        CountsParsers.made += 1
        self._number = self.made

    def blocks(self, text: str) -> list[Block]:
        return [replace(block, text=f"{block.text} {self._number}") for block in super().blocks(text)]


class HidesNamesOfBombs(Honest):
    def check(self, data: bytes, source: str) -> None:
        super().check(data, "the file" if b"hundred million" in data else source)
        if b"hundred million" in data:
            raise DocParserError("the file is too large")


class IsTiredAfterABomb(Honest):
    is_tired = False

    def parse(self, data: bytes, *, source: str) -> Document:
        if b"hundred million" in data:
            IsTiredAfterABomb.is_tired = True
        document = super().parse(data, source=source)
        return replace(document, blocks=()) if self.is_tired else document


class GivesNothingForDamage(Honest):
    def parse(self, data: bytes, *, source: str) -> Document:
        nothing: Any = None
        return super().parse(data, source=source) if data.endswith(b"\nend") else nothing


class HasProcesses(Honest):
    stated: ClassVar = {"in_process_bytes": 0}


class ReadsAgain(Honest):
    """Reads all that comes before, for each byte."""

    def check(self, data: bytes, source: str) -> None:
        for end in range(0, len(data), 8):
            sum(1 for _ in data[:end])
        super().check(data, source)
