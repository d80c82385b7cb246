"""Number passages for a model, then check the marks and quotations in its answer against them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from jackfield.citations import CITATIONS, Citation
from jackfield.messages import basename_of
from jackfield.plurals import format_count
from jackfield.results import WARNINGS
from jackfield.retrieval import Chunk, shown_path
from jackfield_documents import headings_in_part, is_url, passages

_PREFIXES = ("", "P", "Q", "K")
_CODE = re.compile(
    r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)|(?<!`)(`+)(?!`)[^\n]+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL
)
_QUOTE = re.compile(
    r"^((?:>[^\n]*(?:\n|\Z))+)|“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』|\"([^\"\n]+)\"",
    re.MULTILINE,
)
_PARAGRAPH = re.compile(r"(?:^>[^\n]*(?:\n|\Z))+|[^\n]+", re.MULTILINE)
_ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:…|\.{3})\s*\]|…+|\.{3,})\s*")
_PAGE_LINE = re.compile(r"^\[page: \d+\]$", re.MULTILINE)
_SAME = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-", "—": "-"})
_IGNORED = frozenset("*`>\u00ad")
_PUNCTUATION = ".,;:!?。，、；：！？'\""
_MOST_REPORTED = 50
_QUOTED_CHARS = 200
_MIN_WORDS, _MIN_CHARS, _MIN_WIDE = 3, 12, 6  # shorter quotations may be terms or figures of speech


@dataclass(frozen=True, slots=True)
class Numbered:
    """A numbered passage.

    Attributes:
        mark: The number as the model writes it, without brackets.
        location: The file name or URL.
        text: The passage's text.
        page: The page on which the passage begins, or None if unknown.
        headings: The headings above the passage.
        joined: The passage merged with its neighbours if they are shown as well, otherwise ''.
        part: The path within an archive or container file, or ''.
    """

    mark: str
    location: str
    text: str
    page: int | None = None
    headings: tuple[str, ...] = ()
    joined: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking an answer's marks.

    Attributes:
        citations: The passages that the answer cites.
        dropped: Incorrect marks, counted by mark and reason.
    """

    citations: tuple[Citation, ...] = ()
    dropped: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def report(self) -> dict[str, object]:
        """Return the payload of the event that reports the check."""
        reported = dict(islice(self.dropped.items(), _MOST_REPORTED))
        lines = [f"citation [{mark}] in the answer is invalid: {reason}" for mark, reason in reported]
        if more := len(self.dropped) - len(reported):
            lines.append(f"{format_count(more, 'more invalid citation')} in the answer")
        data: dict[str, object] = {
            CITATIONS: [citation.to_dict() for citation in self.citations],
            "dropped": [{"mark": mark, "reason": why, "times": times} for (mark, why), times in reported.items()],
            WARNINGS: lines,
        }
        return {**data, "note": "; ".join(lines)} if lines else data


def number_chunks(chunks: Sequence[Chunk]) -> tuple[list[Mapping[str, Any]], list[Numbered]]:
    """Return the chunks as passages grouped by source, with a mark before each chunk, and the numbered chunks."""
    prefix = _prefix(chunk.text for chunk in chunks)
    marks = {chunk.id: f"{prefix}{number}" for number, chunk in enumerate(chunks, start=1)}
    shown: list[Mapping[str, Any]] = [*passages(chunks, mark=lambda chunk: f"[{marks[chunk.id]}]")]
    numbered = []
    for position, chunk in enumerate(chunks):
        beside = [
            other
            for other in chunks[max(0, position - 1) : position + 2]
            if (other.source, other.part) == (chunk.source, chunk.part) and abs(other.index - chunk.index) <= 1
        ]
        joined = passages(beside)[0]["text"][0] if len(beside) > 1 else ""
        location = chunk.source if is_url(chunk.source) else basename_of(chunk.source)
        place = (chunk.page, headings_in_part(chunk), joined, chunk.part)
        numbered.append(Numbered(marks[chunk.id], shown_path(location), chunk.text, *place))
    return shown, numbered


def number_texts(entries: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Numbered]]:
    """Return the `{"url", "text": […]}` entries with a mark before each text, and the numbered texts."""
    prefix = _prefix(str(text) for entry in entries for text in entry["text"])
    numbered: list[Numbered] = []
    shown: list[Mapping[str, Any]] = []
    for entry in entries:
        location = str(entry["url"])
        texts = []
        for text in map(str, entry["text"]):
            mark = f"{prefix}{len(numbered) + 1}"
            name = location if is_url(location) else basename_of(location)
            numbered.append(Numbered(mark, name, text, part=str(entry.get("part", ""))))
            texts.append(f"[{mark}]\n{text}")
        shown.append({**entry, "text": texts})
    return shown, numbered


def _prefix(texts: Iterable[str]) -> str:
    """Return the first mark prefix that no text already uses, since papers number their own references as `[1]`."""
    joined = "\n".join(texts)
    for prefix in _PREFIXES:
        if not re.search(rf"\[{prefix}\d{{1,3}}\]", joined):
            return prefix
    return _PREFIXES[-1]


@dataclass(frozen=True, slots=True)
class _Quote:
    """A quotation in an answer.

    Attributes:
        text: The quoted text.
        may_be_missing: True if the quotation need not appear in a passage: a short one may be a term, and a block quote
            may be a remark.
    """

    text: str
    may_be_missing: bool


@dataclass(slots=True)
class _Group:
    """A group of adjacent marks and the quotations they support."""

    start: int
    end: int
    marks: list[tuple[str, int, int]]
    quotes: list[_Quote] = field(default_factory=list)


def check_marks(answer: str, numbered: Sequence[Numbered], *, question: str = "") -> Checked:
    """Check the marks in an answer against the passages.

    Each quotation belongs to the next mark in its paragraph, or to the last one if no mark follows, and must appear in
    a passage that the mark names. White space, letter case, emphasis and quotation-mark style are ignored, and `…`
    matches omitted text. A short quotation may be a term, so it is not required to appear in a passage.

    Args:
        answer: The answer's text.
        numbered: The passages shown to the model.
        question: The question's text, which an answer may also quote.
    """
    by_mark = {passage.mark: passage for passage in numbered}
    if not by_mark:
        return Checked()
    prefix = re.match(r"\D*", numbered[0].mark)
    folds = _Folds()
    asked = folds[question].text
    uses: dict[tuple[str, str, int, int, str], list[tuple[int, int]]] = {}
    dropped: Counter[tuple[str, str]] = Counter()
    for group in _groups(answer, prefix[0] if prefix else ""):
        known = [(by_mark[mark], start, end) for mark, start, end in group.marks if mark in by_mark]
        dropped.update((mark, "no passage has this number") for mark, _, _ in group.marks if mark not in by_mark)
        evidence, missing = _evidence(group.quotes, [passage for passage, _, _ in known], asked, folds)
        if missing:
            shown = missing if len(missing) <= _QUOTED_CHARS else f"{missing[:_QUOTED_CHARS]}…"
            reason = f"the passage does not say “{shown}”"
            dropped.update((passage.mark, reason) for passage, _, _ in known)
            continue
        for passage, start, end in known:
            for text, quote_start, quote_end in evidence.get(passage.mark) or [(passage.text, 0, 0)]:
                quote = text[quote_start:quote_end]
                ends = (quote_start, quote_end) if quote else (0, len(text))
                uses.setdefault((passage.mark, text, *ends, quote), []).append((start, end))
    citations = [
        Citation(
            mark=mark,
            location=by_mark[mark].location,
            part=by_mark[mark].part,
            page=by_mark[mark].page,
            headings=by_mark[mark].headings,
            passage=text,
            start=start,
            end=end,
            quote=quote,
            answer_ranges=tuple(dict.fromkeys(ranges)),
        )
        for (mark, text, start, end, quote), ranges in uses.items()
    ]
    return Checked(tuple(citations), dropped)


def _groups(answer: str, prefix: str) -> Iterator[_Group]:
    """Yield the groups of marks in an answer, each with its quotations, ignoring code."""
    text = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), answer)
    one = rf"{prefix}\d{{1,3}}"
    mark = re.compile(rf"[\[【]\s*({one}(?:\s*[,，、;；–-]\s*{one})*)\s*[\]】](?!\()")
    for paragraph in _PARAGRAPH.finditer(text):
        groups: list[_Group] = []
        for found in mark.finditer(text, *paragraph.span()):
            marks = [(number, *found.span()) for number in _numbers(found[1], prefix)]
            if groups and not text[groups[-1].end : found.start()].strip():
                groups[-1].marks += marks
                groups[-1].end = found.end()
            else:
                groups.append(_Group(*found.span(), marks))
        if not groups:
            continue
        later = 0
        for quoted in _QUOTE.finditer(text, *paragraph.span()):
            while later < len(groups) - 1 and groups[later].start < quoted.end():
                later += 1
            group = groups[later]
            quote = next(part for part in quoted.groups() if part is not None)
            is_block = quoted[0].startswith(">")
            group.quotes.append(_Quote(mark.sub("", quote).strip(), is_block or not _is_verbatim(quote)))
        yield from groups


def _numbers(listed: str, prefix: str) -> Iterator[str]:
    """Yield each mark in a list such as `1, 3-5`."""
    for first, last in re.findall(rf"{prefix}(\d+)(?:\s*[–-]\s*{prefix}(\d+))?", listed):
        for number in range(int(first), int(last or first) + 1):
            yield f"{prefix}{number}"


def _evidence(
    quotes: Iterable[_Quote], named: Sequence[Numbered], asked: str, folds: _Folds
) -> tuple[dict[str, list[tuple[str, int, int]]], str]:
    """Locate each quotation in the passages.

    Returns:
        The quoted ranges by mark, and ''; or no ranges, and the first required quotation that no passage contains.
    """
    evidence: dict[str, list[tuple[str, int, int]]] = {}
    for quote in quotes:
        is_in_one = False
        for passage in named:
            for text in (passage.text, passage.joined):
                ends = find_quote(quote.text, folds[text])
                if ends is not None:
                    evidence.setdefault(passage.mark, []).append((text, *ends))
                    is_in_one = True
                    break
        if not (is_in_one or quote.may_be_missing) and Folded.of(quote.text).text not in asked:
            return {}, quote.text
    return evidence, ""


def _is_verbatim(quote: str) -> bool:
    """Return True if a quotation is too long to be just a term."""
    wide = sum("\u3400" <= char <= "\u9fff" for char in quote)
    return wide >= _MIN_WIDE or (len(quote) >= _MIN_CHARS and len(quote.split()) >= _MIN_WORDS)


def find_quote(quote: str, folded: Folded) -> tuple[int, int] | None:
    """Find a quotation, whose fragments around `…` must occur in order.

    Returns:
        The start and end offsets in the original text, or None if the quotation does not occur.
    """
    start = end = -1
    for part in _ELLIPSIS.split(quote):
        wanted = Folded.of(part).text.strip(_PUNCTUATION)
        if not wanted:
            continue
        at = folded.text.find(wanted, max(end, 0))
        if at < 0:
            return None
        start = at if start < 0 else start
        end = at + len(wanted)
    return (folded.offsets[start], folded.offsets[end - 1] + 1) if start >= 0 else None


@dataclass(frozen=True, slots=True)
class Folded:
    """Text normalised for comparison, without white space, emphasis and letter case.

    Attributes:
        text: The normalised text.
        offsets: The offset of each of its characters in the original text.
    """

    text: str
    offsets: Sequence[int]

    @classmethod
    def of(cls, text: str) -> Folded:
        chars: list[str] = []
        offsets: list[int] = []
        # A page line is not part of the document.
        for offset, char in enumerate(_PAGE_LINE.sub(lambda line: " " * len(line[0]), text)):
            if char.isspace() or char in _IGNORED:
                continue
            for part in unicodedata.normalize("NFKC", char).casefold().translate(_SAME):
                chars.append(part)
                offsets.append(offset)
        return cls("".join(chars), offsets)


class _Folds(dict[str, Folded]):
    """Cache of folded texts."""

    def __missing__(self, text: str) -> Folded:
        self[text] = folded = Folded.of(text)
        return folded
