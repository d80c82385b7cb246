"""Contract tests for parsers."""

# ruff: noqa: S101 - these are tests: they assert

from __future__ import annotations

import codecs
import random
import re
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest

from jackfield import sync
from jackfield.errors import DocParserError
from jackfield.plugins import ParserSpec, PluginHost, Row, Settings
from jackfield.retrieval import Block, BlockKind, Document, Parser
from jackfield_documents import DocumentReader, ParserLimits
from jackfield_testkit.effects import undeclared, unexpected_reads, watching
from jackfield_testkit.installed import plain_host
from jackfield_testkit.streams import FEW, GROWTH, MANY, CountedBytes, given_up_after, work_of
from jackfield_testkit.suites.base import Suite
from jackfield_testkit.suites.threads import at_once

Expected = str | Sequence[str]
"""A text in a file, or several in order of occurrence."""
Samples = Mapping[str, tuple[bytes, Expected]]

_KINDS = get_args(BlockKind)
_CUTS = 24  # how many prefixes of each sample are tried
_DAMAGES = 40
_MOST_MEMORY = 64 * 2**20  # bytes, for a small damaged file
_BYTES_PER_BYTE = 400
_REPEATED = (
    "> ",
    "- ",
    "[",
    "[a]: ",
    '{"a":',
    '["',
    "|a|b|\n|-|-|\n",
    "`",
    "<a\n",
    "a ",
    "\n",
    " \n",
    "\\",
    "&#",
    "1,",
    "a",
)
_DECLARATIONS = (
    b"<!DOCTYPE html><meta charset=CODEC><p>text</p>",
    b'<html><head><meta http-equiv="Content-Type" content="text/html; charset=CODEC"></head><p>text</p></html>',
    b'<?xml version="1.0" encoding="CODEC"?><a>text</a>',
    b"# -*- coding: CODEC -*-\ntext\n",
    b'@charset "CODEC";\ntext\n',
    b"Content-Type: text/plain; charset=CODEC\n\ntext\n",
    b"=?CODEC?q?text?=\n",
)
_TIGHT = ParserLimits(cpu_s=2, wall_s=60, memory_bytes=96 * 2**20, answer_bytes=16 * 2**20)
_EXTENSION = re.compile(r"[a-z0-9][a-z0-9+_-]*")
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*")


class ParserSuite(Suite):
    """Contract of parsers: read their own formats, and reject all others with one error.

    ```python
    class TestAcme(ParserSuite):
        component = "jackfield-acme/acme"
        samples = {"letter.acme": (b"Dear reader,\\n\\nit rains.", ("Dear reader", "rains"))}
    ```

    Attributes:
        component: The parser to test, as `distribution/name`, or only the name if it is unique.
        config: The parser's settings.
        samples: Small files by name, with their content and one or more texts that occur in them, in order. At least
            one file must have two texts in different blocks, if the format has more than one block.
        one_block: The reason why a document always has a single block, for formats where this is the case.
        unreadable: Files by name that must be rejected, such as encrypted ones, ones in another format, or ones without
            text.
        hostile: Files by name that are designed to exhaust a machine, such as a form that refers to itself or a
            decompression bomb.
        make_file: Creates a file with n parts of equal length. Memory must grow no faster than the file's length.
        giving_up_s: The CPU time, in seconds, after which a test with the longest file parsed in-process gives up.
            Linear work needs only a small part of it.
    """

    component: ClassVar[str]
    config: ClassVar[Mapping[str, Any]] = {}
    samples: ClassVar[Samples] = {}
    one_block: ClassVar[str] = ""
    unreadable: ClassVar[Mapping[str, bytes]] = {}
    hostile: ClassVar[Mapping[str, bytes]] = {}
    make_file: ClassVar[Callable[[int], bytes] | None] = None
    giving_up_s: ClassVar[float] = 20.0

    def make_parser(self) -> Parser:
        """Create a parser to test. Override this if yours needs more than `config`."""
        made = plain_host().load("parser", self.component)(dict(self.config))
        assert isinstance(made, Parser), f"{self.component} is not a jackfield.retrieval.Parser"
        return made

    # --- reading ---

    def test_its_samples_are_read(self) -> None:
        assert self.samples, "no samples: set samples = {'name.ext': (content, 'text that the file contains')}"
        for name, (data, expected) in self.samples.items():
            document = self.make_parser().parse(data, source=name)
            assert document.source == name
            text = "\n".join(block.text for block in document.blocks)
            for part in _parts(expected):
                assert part in text, f"{name}: {part!r} is not in {text[:2000]!r}"

    def test_blocks_stand_in_the_order_of_the_file(self) -> None:
        if self.one_block:
            pytest.skip(f"the parser's documents have a single block: {self.one_block}")
        several = {name: parts for name, (_, expected) in self.samples.items() if len(parts := _parts(expected)) > 1}
        assert several, (
            "at least one sample needs texts from two blocks, in order: (content, ('the first', 'the last'))"
        )
        most = 0
        for name, parts in several.items():
            blocks = [block.text for block in self.make_parser().parse(self.samples[name][0], source=name).blocks]
            places = [next((n for n, text in enumerate(blocks) if part in text), -1) for part in parts]
            assert places == sorted(places), (
                f"{name}: expected {parts} in ascending blocks, found them in blocks {places}"
            )
            most = max(most, len(set(places)))
        assert most > 1, f"all texts of a sample are in the same block: use texts from two blocks, got {several}"

    def test_blocks_are_whole_and_stand_in_reading_order(self) -> None:
        for name, document in self._documents():
            assert isinstance(document.blocks, tuple)
            assert [fault for block in document.blocks for fault in _faults_of(block)] == [], name

    def test_pages_count_from_one_and_never_go_back(self) -> None:
        for name, document in self._documents():
            pages = [block.page for block in document.blocks]
            numbers = [page for page in pages if page is not None]
            assert len(numbers) in (0, len(pages)), f"{name}: either all blocks must have a page or none"
            assert numbers == sorted(numbers), f"{name}: {numbers}"
            assert all(number >= 1 for number in numbers), f"{name}: {numbers}"

    def test_files_in_a_file_are_left_to_others_only_if_declared(self) -> None:
        for name, document in self._documents():
            assert self._spec().has_parts or document.parts == (), f"{name}: set has_parts=True in the descriptor"
            assert [part for part in document.parts if type(part.data) is not bytes] == []

    def test_the_same_bytes_give_the_same_document(self) -> None:
        parser = self.make_parser()
        for name, (data, _) in self.samples.items():
            first = parser.parse(data, source=name)
            assert parser.parse(data, source=name) == first
            assert self.make_parser().parse(data, source=name) == first
            assert parser.parse(data, source="other").blocks == first.blocks

    def test_several_threads_read_with_one_parser(self) -> None:
        parser = self.make_parser()
        alone = dict(self._documents())
        names = [name for name in self.samples for _ in range(8)][:32]
        came = at_once(len(names), lambda number: parser.parse(self.samples[names[number]][0], source=names[number]))
        assert [(name, read) for name, read in zip(names, came, strict=True) if read != alone[name]] == []

    # --- refusals ---

    def test_an_empty_file_is_refused(self) -> None:
        with pytest.raises(DocParserError) as caught:
            self.make_parser().parse(b"", source="empty file.bin")
        assert "empty file.bin" in str(caught.value), "the error must name the file, because callers may pass several"

    def test_what_it_cannot_read_is_refused_by_name(self) -> None:
        for name, data in self.unreadable.items():
            with pytest.raises(DocParserError) as caught:
                self.make_parser().parse(data, source=name)
            assert name in str(caught.value)

    def test_a_file_that_was_cut_off_is_read_or_refused(self) -> None:
        parser = self.make_parser()
        for name, (data, _) in self.samples.items():
            for length in sorted({len(data) * part // _CUTS for part in range(_CUTS)} | {len(data) - 1}):
                _read_or_refused(parser, data[:length], f"cut {name}")

    def test_a_damaged_file_is_read_or_refused(self) -> None:
        parser = self.make_parser()
        for number, (name, (data, _)) in enumerate(self.samples.items()):
            for damaged in _damaged(data, seed=number):
                _read_or_refused(parser, damaged, f"damaged {name}")
            expected = self.make_parser().parse(data, source=name)
            assert parser.parse(data, source=name) == expected, "damaged files change how it reads the next file"

    def test_random_bytes_are_read_or_refused(self) -> None:
        parser = self.make_parser()
        dice = random.Random(3)  # noqa: S311 - the same bytes in every run
        spec = self._spec()
        for beginning in (b"", b"\0" * 500, *spec.magic):
            for length in (1, 7, 64, 1000, 20_000):
                _read_or_refused(parser, beginning + dice.randbytes(length), "random.bin")

    def test_a_file_cannot_name_a_codec_of_python(self) -> None:
        """Some Python codecs (`punycode`) are quadratic. `jackfield_documents.codec_of` accepts only web codecs."""
        parser, asked = self.make_parser(), []

        def note(name: str) -> None:
            if name.startswith("x_named"):
                asked.append(name)

        codecs.register(note)
        try:
            for number, form in enumerate(_DECLARATIONS):
                declared = form.replace(b"CODEC", b"x-named-%d" % number)  # failures are not cached, so each one is new
                _read_or_refused(parser, declared, "declared.bin")
                for name, (data, _) in self.samples.items():
                    _read_or_refused(parser, declared + data, name)
        finally:
            codecs.unregister(note)
        assert asked == [], "the parser passes an encoding name from a file to Python"

    # --- cost and side effects ---

    def test_memory_is_bounded_by_the_length_of_the_file(self) -> None:
        parser = self.make_parser()
        for name, (data, _) in self.samples.items():
            _read_or_refused(parser, data, name)  # imports for the first file do not count
            for damaged in (data, *_damaged(data, seed=99))[::4]:
                peak = _peak_bytes(lambda damaged=damaged, name=name: _read_or_refused(parser, damaged, name))  # type: ignore[misc]
                assert peak <= _MOST_MEMORY + _BYTES_PER_BYTE * len(damaged), f"{name} takes {peak} bytes"

    def test_memory_grows_no_faster_than_the_file(self) -> None:
        make_file = type(self).make_file
        if make_file is None:
            pytest.skip("no make_file, which creates files of any length")
        parser = self.make_parser()
        parser.parse(make_file(2), source="x")
        short, long = (
            _peak_bytes(lambda count=count: parser.parse(make_file(count), source="x"))  # type: ignore[misc]
            for count in (10, 40)
        )
        assert long <= 8 * short + 2**20, f"10 parts take {short} bytes, but 40 take {long}"

    def test_a_hostile_file_costs_an_error_and_nothing_else(self, tmp_path: Path) -> None:
        reader = self._reader(_TIGHT)
        good, (data, _) = next(iter(self.samples.items()))
        (tmp_path / good).write_bytes(data)
        for name, hostile in self.hostile.items():
            (tmp_path / name).write_bytes(hostile)
            reading = sync.run(reader.read_all([tmp_path / name]))
            assert [error for error in reading.errors.values() if name not in str(error)] == []
            assert sum(len(block.text) for document in reading.documents for block in document.blocks) <= _MOST_MEMORY
            assert sync.run(self._reader().read(tmp_path / good)).blocks, f"after {name}, no other file can be read"

    @pytest.mark.parametrize("piece", _REPEATED)
    def test_what_is_parsed_without_a_process_of_its_own_is_linear(self, piece: str) -> None:
        if not self._spec().in_process_bytes:
            pytest.skip("all files are parsed in a process with limits")
        parser = self.make_parser()
        begun = [b"", *(data[: len(data) // 2] for data, _ in list(self.samples.values())[:2])]

        def file(beginning: bytes, size: int) -> bytes:
            return beginning + (piece * size)[:size].encode()

        def work(beginning: bytes, size: int) -> float:
            count = [0]
            data = CountedBytes(file(beginning, size), count)
            return work_of(lambda: _read_or_refused(parser, data, "long.bin"), count) / len(data)

        for beginning in begun:
            work(beginning, 10)  # the first call may import or create things
            short, long = work(beginning, 2 * FEW), work(beginning, 2 * MANY)
            assert long <= GROWTH * short + 40, (
                f"{piece!r} takes {short:.0f} steps per byte, but {long:.0f} when there are 8 times as many"
            )
        # The steps of a regular expression cannot be counted, so the longest prefix is measured instead.
        with given_up_after(self.giving_up_s):
            _read_or_refused(parser, file(begun[-1], self._spec().in_process_bytes), "long.bin")

    def test_it_does_what_it_declares_and_nothing_else(self) -> None:
        with watching() as effects:
            parser = self.make_parser()
            for name, (data, _) in self.samples.items():
                parser.parse(data, source=name)
        effects_stated = self._spec().effects
        assert undeclared(effects, effects_stated) == [], (
            "undeclared effects: add them to `effects` of the descriptor, or remove them"
        )
        if "files" not in effects_stated:
            assert unexpected_reads(effects) == [], "the parser opens files, but must read only `data`"

    # --- selection by file ---

    def test_its_descriptor_says_which_files_it_reads(self) -> None:
        spec = self._spec()
        assert {*spec.extensions, *spec.media_types, *spec.magic}, (
            "the descriptor needs extensions, media_types or magic, or no file reaches the parser"
        )
        assert [text for text in spec.extensions if not _EXTENSION.fullmatch(text)] == [], (
            "extensions must be in lower case, without the dot"
        )
        assert [text for text in spec.media_types if not _MEDIA_TYPE.fullmatch(text)] == []
        assert b"" not in spec.magic, "`magic` must not contain empty bytes, because every file starts with them"
        for name, (data, _) in self.samples.items():
            assert Path(name).suffix.removeprefix(".") in spec.extensions, (
                f"{name} has an extension that the descriptor does not list"
            )
            assert not spec.magic or data.startswith(tuple(spec.magic)), (
                f"{name} does not start with any entry of `magic`"
            )

    def test_files_come_to_it_by_extension_and_by_their_first_bytes(self, tmp_path: Path) -> None:
        reader = self._reader()
        for number, (name, (data, _)) in enumerate(self.samples.items()):
            expected = self.make_parser().parse(data, source=name).blocks
            ways = [name, name.upper()]
            if self._spec().magic:
                ways += [f"nameless{number}", f"{number}.unknown"]
            for way in ways:
                (tmp_path / way).write_bytes(data)
                blocks = sync.run(reader.read(tmp_path / way)).blocks
                own = blocks[: len(expected)] if self._spec().has_parts else blocks
                assert own == expected, f"the content is parsed differently as {way!r}"

    # --- parts ---

    def _reader(self, limits: ParserLimits | None = None) -> DocumentReader:
        row = self._row()
        host = PluginHost(Settings(allow=frozenset({row.distribution})))
        return DocumentReader(host, parser_cfg={row.name: self.config}, limits=limits)

    def _row(self) -> Row:
        return plain_host().find("parser", self.component)

    def _spec(self) -> ParserSpec:
        return plain_host().spec_of(self._row(), ParserSpec)

    def _documents(self) -> Iterator[tuple[str, Document]]:
        for name, (data, _) in self.samples.items():
            yield name, self.make_parser().parse(data, source=name)


def _parts(expected: Expected) -> Sequence[str]:
    return (expected,) if isinstance(expected, str) else expected


def _read_or_refused(parser: Parser, data: bytes, source: str) -> Document | None:
    """Return the document, or None if the file is rejected as required. Any other outcome fails the test."""
    try:
        document = parser.parse(data, source=source)
    except DocParserError as error:
        if source not in str(error):
            pytest.fail(f"the error does not name the file ({source}): {error}")
        return None
    except Exception as error:  # noqa: BLE001 - any other is the failure that is looked for
        pytest.fail(f"{source} raises {type(error).__name__}: {error}. Raise a DocParserError instead: {data[:200]!r}")
    assert isinstance(document, Document)
    return document


def _faults_of(block: object) -> Iterator[str]:
    if not isinstance(block, Block):
        yield f"{block!r:.100} is not a Block"
        return
    if not block.text.strip():
        yield "a block contains no text"
    if block.kind not in _KINDS:
        yield f"{block.kind!r} is not a valid block kind"
    if (block.level >= 1) != (block.kind == "heading"):
        yield f"headings, and only headings, must have a level of at least 1: {block}"


def _damaged(data: bytes, *, seed: int) -> Iterator[bytes]:
    """Yield variants of a file: with some bytes changed, with a part repeated, and with a part missing."""
    dice = random.Random(seed)  # noqa: S311 - the same damages in every run
    for number in range(_DAMAGES):
        start, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
        match number % 4:
            case 2:
                yield data[:start] + data[end:]
            case 3:
                yield data[:end] + data[start:]
            case _:
                yield _changed(data, dice, count=1 + number // 2)


def _changed(data: bytes, dice: random.Random, *, count: int) -> bytes:
    changed = bytearray(data)
    for _ in range(count):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def _peak_bytes(work: Callable[[], object]) -> int:
    """Return the peak memory of Python objects during `work`."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
