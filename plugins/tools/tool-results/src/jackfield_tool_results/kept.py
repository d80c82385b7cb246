"""The `kept_results` toolset: keep results that are too long for a model, and let the model read them in parts."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from pydantic import Field

from jackfield import sync, tool
from jackfield.errors import ToolServiceError
from jackfield.messages import ContentItem
from jackfield.plurals import format_count
from jackfield.tools import BaseTool, Safety, ToolContext, ToolEntry, ToolResult, cut_text
from jackfield_tool_results.wrapping import WrappedTool, WrappingConfig, WrappingToolset

RESOURCE = "jackfield-tool-results.kept"
MAX_KEPT_CHARS = 50_000_000
"""The limit for all results of a run. The oldest are dropped first."""
MAX_LINE_CHARS = 1000
PART_CHARS = 20_000
"""The maximum number of characters to read at once."""


class KeptResultsConfig(WrappingConfig):
    """Settings for keeping results: which tools, and from what length."""

    max_chars: int = Field(
        default=20_000, ge=200, description="Longer results are stored, and the model gets their beginning"
    )


class KeptResults(WrappingToolset):
    """Keeps long results for the rest of the run, and adds a `read_result` tool to read and search them."""

    config_class = KeptResultsConfig
    config: KeptResultsConfig
    name = "kept_results"

    def applies_to(self, safety: Safety) -> bool:  # noqa: ARG002 - of the contract
        """Return True, because any tool may return a long result."""
        return True

    def wrapped(self, tool: BaseTool) -> WrappedTool:
        """Wrap a tool so that its long results are kept."""
        return _KeptTool(tool, self.config.max_chars)

    def fixed_tools(self) -> Sequence[ToolEntry]:
        """Return the wrapped tools and `read_result`."""
        return [*super().fixed_tools(), read_result]


class _KeptTool(WrappedTool):
    def __init__(self, inner: BaseTool, max_chars: int) -> None:
        super().__init__(inner)
        self._max_chars = max_chars

    async def around(self, arguments: Mapping[str, object], context: ToolContext) -> ToolResult:
        result = await self.call_inner(arguments, context)
        content = result.content
        items = [ContentItem(text=content)] if isinstance(content, str) else content
        text = "\n".join(item.text for item in items if item.text is not None)
        if len(text) <= self._max_chars:
            return result
        kept = await _kept(context)
        # In a thread, because megabytes of JSON take long.
        name, lines = await sync.in_worker(kept.keep, text)
        beginning = await sync.in_worker(cut_text, text, self._max_chars)
        size = f"{len(text):,} characters in {format_count(lines, 'line')}"
        note = (
            f"[Truncated. The whole result has {size} and is stored as {name!r}: "
            f"call read_result(result={name!r}, from_line=1) to read it, or add search='…' to find lines.]"
        )
        media = [item for item in items if item.text is None]
        shown = [ContentItem(text=beginning), *media, ContentItem(text=note)]
        return ToolResult(shown, {**result.metadata, "kept_as": name, "characters": len(text)})


@tool(read_only=True, idempotent=True, file_access=False)
async def read_result(result: str, context: ToolContext, from_line: int = 1, lines: int = 200, search: str = "") -> str:
    """Read a part of a result that was too long to be shown, or find lines in it.

    Args:
        result: The name under which it is kept.
        from_line: The first line to read, counted from 1.
        lines: The number of lines to read.
        search: Instead of reading, list the lines from from_line on that have this text, in either case.
    """
    kept = (await _kept(context)).lines_of(result)
    if from_line < 1 or lines < 1:
        raise ToolServiceError("from_line and lines must be at least 1")
    numbered_lines = _lines_with(search.casefold(), kept, from_line)
    if not numbered_lines:
        if search:
            raise ToolServiceError(f"No line from {from_line} on contains {search!r}")
        raise ToolServiceError(f"{result!r} has only {format_count(len(kept), 'line')}")
    part = _fitting(numbered_lines[:lines])
    left = len(numbered_lines) - len(part)
    if left:
        noun = "more matching line" if search else "more line"
        part.append(f"[{format_count(left, noun)}, starting at line {numbered_lines[len(part)][0]}]")
    return "\n".join(part)


def _lines_with(text: str, lines: Sequence[str], first: int) -> list[tuple[int, str]]:
    """Return the numbered lines from `first` on that contain a text, ignoring case. '' matches every line."""
    numbered = enumerate(lines[first - 1 :], first)
    return [(number, line) for number, line in numbered if not text or text in line.casefold()]


def _fitting(numbered_lines: Sequence[tuple[int, str]]) -> list[str]:
    """Return the leading lines that fit into one part, but at least one."""
    numbered = [f"{number}: {line}" for number, line in numbered_lines]
    sizes = itertools.accumulate(len(line) + 1 for line in numbered)
    return [line for line, size in zip(numbered, sizes, strict=True) if size <= PART_CHARS] or numbered[:1]


async def _kept(context: ToolContext) -> _Kept:
    async def opened() -> _Kept:
        return _Kept()

    return await context.resources.get(RESOURCE, opened)


class _Kept:
    """The kept results of a run."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}
        self._count = 0
        self._lock = threading.Lock()  # several calls of a turn may give long results

    def keep(self, text: str) -> tuple[str, int]:
        """Store a text. Return its name and its number of lines."""
        lines = _lines_of(text)
        with self._lock:
            self._count += 1
            name = f"result_{self._count}"
            self._lines[name], self._sizes[name] = lines, len(text)
            while len(self._sizes) > 1 and sum(self._sizes.values()) > MAX_KEPT_CHARS:
                oldest = next(iter(self._sizes))
                del self._lines[oldest], self._sizes[oldest]
        return name, len(lines)

    def lines_of(self, name: str) -> list[str]:
        """Return the lines of a kept result.

        Raises:
            ToolServiceError: No result has this name.
        """
        if name not in self._lines:
            there = ", ".join(self._lines) or "none"
            raise ToolServiceError(f"No stored result named {name!r}; available: {there}. Call the tool again.")
        return self._lines[name]

    def close(self) -> None:
        """Drop all results at the end of the run."""
        self._lines.clear()
        self._sizes.clear()


def _lines_of(text: str) -> list[str]:
    """Split a text into lines of readable length. JSON on a single line is reformatted first."""
    lines = text.split("\n")
    if max(map(len, lines)) > MAX_LINE_CHARS and text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):  # it only looks like JSON, or is nested too deeply
            lines = json.dumps(json.loads(text), indent=1, ensure_ascii=False).split("\n")
    return [
        line[start : start + MAX_LINE_CHARS] for line in lines for start in range(0, max(1, len(line)), MAX_LINE_CHARS)
    ]
