"""Citations, which link the marks in an answer to the cited passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jackfield.messages import basename_of, name_in_file

CITATIONS = "citations"
"""Key under which a `PluginEvent`'s `data` lists the citations of an answer; see `Citation.to_dict`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A passage that an answer cites, verified against the passages that the model was shown.

    Attributes:
        mark: The passage's mark, without brackets: `1` for `[1]` in the answer.
        location: The file name or URL.
        part: The file inside that file, such as 'a.pdf' or 'scans.zip › a.pdf', or '' if there is none.
        page: The page on which the passage starts, counted from 1, or None.
        headings: The headings above the passage in the file or part, outermost first.
        passage: The passage's text.
        start, end: The range of `passage` that the answer quotes, or the entire passage if the answer quotes nothing.
        quote: The quoted text, or '' if the answer quotes nothing.
        answer_ranges: The ranges of the mark in the answer's text, in order, including brackets.
    """

    mark: str
    location: str
    part: str = ""
    page: int | None = None
    headings: tuple[str, ...] = ()
    passage: str = ""
    start: int = 0
    end: int = 0
    quote: str = ""
    answer_ranges: tuple[tuple[int, int], ...] = ()

    @property
    def place(self) -> str:
        """The file, part, page and headings in one line."""
        name = name_in_file(basename_of(self.location), self.part)
        page = "" if self.page is None else f"page {self.page}"
        return ", ".join(text for text in (name, page, " › ".join(self.headings)) if text)

    def __str__(self) -> str:
        quote = " ".join(self.quote.split())
        return f"[{self.mark}] {self.place}: “{quote}”" if quote else f"[{self.mark}] {self.place}"

    def to_dict(self) -> dict[str, Any]:
        """Return the citation as JSON-compatible values. `citations_in` can read them."""
        part = {"part": self.part} if self.part else {}
        page = {} if self.page is None else {"page": self.page}
        return {
            "mark": self.mark,
            "location": self.location,
            **part,
            **page,
            "headings": list(self.headings),
            "passage": self.passage,
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
            "answer_ranges": [list(ends) for ends in self.answer_ranges],
        }

    def is_in(self, text: str) -> bool:
        """Return True if the text contains the mark at every range in `answer_ranges`."""
        return bool(self.answer_ranges) and all(
            0 <= start < end <= len(text) and self.mark in text[start:end] for start, end in self.answer_ranges
        )


def citations_in(data: Mapping[str, object]) -> list[Citation]:
    """Return the citations that a plugin lists under `citations`. Malformed entries are skipped."""
    listed = data.get(CITATIONS)
    citations: list[Citation] = []
    for entry in listed if isinstance(listed, list | tuple) else ():
        match entry:
            case {"mark": str(mark), "location": str(location), "answer_ranges": [*ranges]}:
                page, start, end = entry.get("page"), entry.get("start"), entry.get("end")
                headings, part = entry.get("headings"), entry.get("part")
                citations.append(
                    Citation(
                        mark=mark,
                        location=location,
                        part=part if isinstance(part, str) else "",
                        page=page if isinstance(page, int) else None,
                        headings=tuple(str(text) for text in headings) if isinstance(headings, list | tuple) else (),
                        passage=str(entry.get("passage", "")),
                        start=start if isinstance(start, int) else 0,
                        end=end if isinstance(end, int) else 0,
                        quote=str(entry.get("quote", "")),
                        answer_ranges=tuple(
                            (ends[0], ends[1])
                            for ends in ranges
                            if isinstance(ends, list | tuple)
                            and len(ends) == 2
                            and all(isinstance(n, int) for n in ends)
                        ),
                    )
                )
    return citations
