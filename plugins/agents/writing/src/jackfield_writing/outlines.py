"""The sections of an outline, as models write it."""

from __future__ import annotations

import re

# A Roman number needs its dot, so that "Introduction", "Data" and "Conclusion" are words.
_TOP = re.compile(
    r"(?:[IVXLCDM]+\s*[.)．、:：]|[一二三四五六七八九十百]+\s*[、.．:：]|第\s*[一二三四五六七八九十百\d]+\s*[章节節部分篇]+"
    r"|\d+\s*[.)．、:：](?!\d))\s*\S"
)
_MARKS = re.compile(r"^[#>*\s]*\**")


def sections_of(outline: str) -> list[str]:
    """Return the headings of an outline's sections, with their numbers: Roman, Arabic or Chinese ones, `第一章`.

    Of an outline with numbered lines, those of the highest kind count, which is the kind of the first; without numbers,
    each line that is not indented is a section.
    """
    texts = [_plain(line) for line in outline.splitlines() if not (_is_fence(line) or _is_indented(line))]
    numbered = list(filter(_TOP.match, texts))
    if numbered:
        kind = _kind(numbered[0])
        return [text for text in numbered if _kind(text) == kind]
    return list(filter(None, (text.lstrip("-•* ") for text in texts)))


def _is_fence(line: str) -> bool:
    return line.strip().startswith("```")


def _plain(line: str) -> str:
    return _MARKS.sub("", line).rstrip("* ").strip()


def _is_indented(line: str) -> bool:
    return line[:1] in (" ", "\t", "　") and len(line) - len(line.lstrip()) > 1


def _kind(text: str) -> str:
    if text[0] in "IVXLCDM":
        return "roman"
    return "arabic" if text[0].isdigit() else "chapter" if text[0] == "第" else "chinese"
