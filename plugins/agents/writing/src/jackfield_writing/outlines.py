"""Find the sections in a model's outline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import dedent

# A Roman number needs its dot, because "Introduction", "Data" and "Conclusion" begin like one.
_TOP = re.compile(
    r"(?:[IVXLCDM]+\s*[.)．、:：]|[一二三四五六七八九十百]+\s*[、.．:：]|第\s*[一二三四五六七八九十百\d]+\s*[章节節部分篇]+"
    r"|\d+\s*[.)．、:：](?!\d))\s*\S"
)
_HEADING = re.compile(r"(#{1,6})\s")
_BOLD = re.compile(r"(?:[-*•]\s+)?\*\*[^*]+\*\*\s*$")
_POINT = re.compile(r"[-*•]\s")
_MARKS = re.compile(r"^[#>*\s]*\**")


def sections_of(outline: str) -> list[str]:
    """Return the headings of an outline's sections, including their Roman, Arabic or Chinese (`第一章`) numbers.

    Only lines numbered in the same style as the first one are sections. Without numbers, the sections are the Markdown
    headings below the title, else the bold lines, else all lines that are neither indented nor bullet points.
    """
    given = dedent(outline).splitlines()
    lines = [line for line in given if line.strip() and not (_is_fence(line) or _is_indented(line))]
    texts = [_plain(line) for line in lines]
    numbered = list(filter(_TOP.match, texts))
    if numbered:
        kind = _kind(numbered[0])
        return [text for text in numbered if _kind(text) == kind]
    if len(lines) > 1 and lines[0].rstrip(" *").endswith((":", "：")):
        lines = lines[1:]  # "Here is the outline:"
    return [text for line in _unnumbered_sections(lines) if (text := _plain(line).lstrip("-•* "))]


def _unnumbered_sections(lines: Sequence[str]) -> list[str]:
    depths = [len(heading[1]) for line in lines if (heading := _HEADING.match(line))]
    if depths:
        depth = min(depths)
        if depths.count(depth) == 1 and len(depths) > 1:  # the title
            depth = min(other for other in depths if other > depth)
        return [line for line in lines if (heading := _HEADING.match(line)) and len(heading[1]) == depth]
    bold = [line for line in lines if _BOLD.match(line)]
    if len(bold) > 1:
        return bold
    plain = [line for line in lines if not _POINT.match(line)]
    return plain or list(lines)


def _is_fence(line: str) -> bool:
    return line.strip().startswith("```")


def _plain(line: str) -> str:
    return _MARKS.sub("", line).rstrip("* ").strip()


def _is_indented(line: str) -> bool:
    indent = line[: len(line) - len(line.lstrip())]
    return len(indent) > 1 or indent in ("\t", "　")


def _kind(text: str) -> str:
    if text[0] in "IVXLCDM":
        return "roman"
    return "arabic" if text[0].isdigit() else "chapter" if text[0] == "第" else "chinese"
