"""Read embedded files, such as attachments and scanned pages, and add them to the document."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from jackfield.errors import DocParserError
from jackfield.messages import basename_of, name_in_file
from jackfield.plugins import install_hint
from jackfield.retrieval import Block, Document, Part, shown_path
from jackfield_documents.parsing import processes_at_once

MAX_DEPTH = 3  # such as an archive in a mail in an archive
MAX_FILES = 1000
MAX_BYTES = 200 * 2**20
_MAX_NAME_CHARS = 200
_SHOWN_NAMES = 50


class NoParserError(DocParserError):
    """No installed parser reads the file."""


@dataclass(slots=True)
class _Use:
    """The budget used so far by a file's embedded files, at all levels."""

    files: int = 0
    size_bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class PartBudget:
    """Limits for a file's embedded files, at all levels.

    Attributes:
        wall_s: Wall-clock time in seconds from creation, after which no further file is started.
        depth: The nesting level, from 1.
    """

    wall_s: float
    depth: int = 1
    _use: _Use = field(default_factory=_Use)
    _start: float = field(default_factory=time.monotonic)

    def deeper(self) -> PartBudget:
        """Return the same budget for the next nesting level."""
        return replace(self, depth=self.depth + 1)

    def spend(self, part: Part, name: str) -> None:
        """Charge a file to the budget.

        Raises:
            DocParserError: A limit is exceeded; the message names the file and the limit.
        """
        with self._use.lock:
            self._use.files += 1
            self._use.size_bytes += len(part.data)
        if self.depth > MAX_DEPTH:
            reason = f"nested more than {MAX_DEPTH} levels deep"
        elif self._use.files > MAX_FILES:
            reason = f"only the first {MAX_FILES:,} files are read"
        elif self._use.size_bytes > MAX_BYTES:
            reason = f"only the first {MAX_BYTES / 2**20:.0f} MiB are read"
        elif time.monotonic() - self._start > self.wall_s:
            reason = f"reading the files before it took more than {self.wall_s:.0f} s"
        else:
            return
        raise DocParserError(f"{name} was not read: {reason}")


def with_parts(document: Document, read: Callable[[Part], Document], budget: PartBudget) -> Document:
    """Add the blocks of a document's parts, each part below a heading with its name, or in place of its page.

    Each block names its part as `part_names` does, and has the part's own page number. A part that cannot be read is
    named in a block and in `metadata["unread"]`. Parts without an installed parser are listed at the end.

    Args:
        document: The document.
        read: Reads a part.
        budget: The limits for the parts.

    Raises:
        DocParserError: All pages of the document are parts, and none can be read; the message names the document.
    """
    document = _with_pages(document, read, budget)
    blocks = list(document.blocks)
    unread = list(document.metadata.get("unread", ()))
    without_parser: list[str] = []
    for part, name in zip(document.parts, part_names(document.parts), strict=True):
        try:
            budget.spend(part, name)
            inner = read(part)
        except NoParserError:
            without_parser.append(name)
            continue
        except DocParserError as error:
            blocks += [Block(name, kind="heading", level=1, part=name), Block(f"({error})", part=name)]
            unread.append(name)
            continue
        blocks += _below(name, inner)
        unread += [f"{entry} of {name}" for entry in inner.metadata.get("unread", ())]
    if without_parser:
        more = f" and {len(without_parser) - _SHOWN_NAMES:,} more" if len(without_parser) > _SHOWN_NAMES else ""
        names = ", ".join(without_parser[:_SHOWN_NAMES])
        blocks.append(Block(f"(Not read, because no installed parser reads files of this type: {names}{more})"))
    metadata = {**document.metadata, **({"unread": unread} if unread else {})}
    return replace(document, blocks=tuple(blocks), metadata=metadata, parts=())


def part_names(parts: Sequence[Part]) -> list[str]:
    """Return a unique name for each part, for people, models and citations: `scan (2).pdf`."""
    shown = [shown_path(part.name)[:_MAX_NAME_CHARS] for part in parts]
    taken = set(shown)
    numbers: Counter[str] = Counter()
    names: list[str] = []
    for name in shown:
        numbers[name] += 1
        unique = name
        while numbers[name] > 1 and unique in taken:
            stem, extension = os.path.splitext(name)  # noqa: PTH122 - a name need not be a path
            unique = f"{stem} ({numbers[name]}){extension}"
            numbers[name] += unique in taken
        taken.add(unique)
        names.append(unique)
    return names


def _with_pages(document: Document, read: Callable[[Part], Document], budget: PartBudget) -> Document:
    """Return a document with the blocks of all parts that are pages. Other parts remain."""
    pages = {part.page: part for part in document.parts if part.page is not None}
    rest = tuple(part for part in document.parts if part.page is None)
    if not pages:
        return document
    name = shown_path(basename_of(document.source))[:_MAX_NAME_CHARS]

    def attempt(part: Part) -> Document | DocParserError:
        try:
            budget.spend(part, name)
            return read(part)
        except DocParserError as error:
            return error

    with ThreadPoolExecutor(processes_at_once()) as threads:
        results = dict(zip(pages, threads.map(attempt, pages.values()), strict=True))
    errors = {page: result for page, result in results.items() if isinstance(result, DocParserError)}
    others = [block for block in document.blocks if block.page not in pages]
    if len(errors) == len(pages) and not others:
        raise _no_text_error(name, list(errors.values()))
    if any(isinstance(error, NoParserError) for error in errors.values()):
        return replace(document, parts=rest)  # the document has a note about its pages
    blocks = others + [
        replace(block, page=page)
        for page, result in results.items()
        if isinstance(result, Document)
        for block in result.blocks
    ]
    for pages_alike in _runs([(page, str(error)) for page, error in errors.items()]):
        blocks.append(Block(f"[No text on {_page_range(pages_alike)}: {errors[pages_alike[0]]}]", page=pages_alike[0]))
    blocks.sort(key=lambda block: block.page or 0)
    metadata = dict(document.metadata)
    if errors:
        metadata["unread"] = [*metadata.get("unread", ()), *(f"page {page}" for page in errors)]
        metadata["unread_pages"] = list(errors)
    return replace(document, blocks=tuple(blocks), metadata=metadata, parts=rest)


def _no_text_error(name: str, errors: Sequence[DocParserError]) -> DocParserError:
    if isinstance(errors[0], NoParserError):
        count = "its only page is an image" if len(errors) == 1 else f"{len(errors)} pages are images"
        install = install_hint("parser", "ocr")
        return DocParserError(f"{name} has no text layer: {count}, and no parser with OCR is installed{install}")
    return errors[0]


def _runs(reasons: Sequence[tuple[int, str]]) -> list[list[int]]:
    """Group consecutive pages with the same reason."""
    runs: list[list[int]] = []
    previous = ""
    for page, reason in reasons:
        if runs and runs[-1][-1] == page - 1 and reason == previous:
            runs[-1].append(page)
        else:
            runs.append([page])
        previous = reason
    return runs


def _page_range(pages: Sequence[int]) -> str:
    return f"page {pages[0]}" if len(pages) == 1 else f"pages {pages[0]}-{pages[-1]}"


def _below(name: str, document: Document) -> Iterator[Block]:
    first = next((block.page for block in document.blocks if block.page is not None and not block.part), None)
    yield Block(name, kind="heading", page=first, level=1, part=name)
    for block in document.blocks:
        level = block.level + 1 if block.kind == "heading" else block.level
        yield replace(block, level=level, part=name_in_file(name, block.part))
