"""The sections of the manual, fetched as Debian packages and extracted from their HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from jackfield.retrieval import Block, Corpus, Document
from jackfield_documents import corpus_of
from quality.debian import fetch_package

VERSION = "2.100"
PACKAGES = {"en": "debian-reference-en", "zh": "debian-reference-zh-cn"}
_IN_FILE_NAMES = {"en": "en", "zh": "zh-cn"}
_HEADING = re.compile("h[1-6]")
CHAPTERS = 12


@dataclass(slots=True)
class Section:
    """A section of the manual.

    Attributes:
        id: The section's anchor, which is the same in both languages.
        title: The heading, including the number.
        text: The text up to the next heading.
        chapter: The number of the chapter.
    """

    id: str
    title: str
    text: str
    chapter: int


def read_corpus(language: str) -> Corpus:
    """Return the manual in chunks of the usual size. The `source` of a chunk is the id of its section.

    Raises:
        NoManualError: The manual cannot be fetched.
    """
    documents = [
        Document(one.id, (Block(one.title, "heading", level=1), Block(one.text)), content_hash=f"{language}{one.id}")
        for one in read_sections(language)
        if one.text
    ]
    return corpus_of(documents, size_tokens=500, overlap_chars=150)


def read_sections(language: str) -> list[Section]:
    """Return the sections in order, fetching the manual on first use.

    Raises:
        NoManualError: The manual cannot be fetched.
    """
    sections = []
    for chapter, path in enumerate(chapter_files(language), start=1):
        parser = _SectionParser(chapter)
        parser.feed(path.read_text(encoding="utf-8"))
        sections += list(parser.sections())
    return sections


def chapter_files(language: str) -> list[Path]:
    """Return the chapters' HTML files in order, fetching the manual on first use.

    Raises:
        NoManualError: The manual cannot be fetched.
    """
    folder = fetch_package(PACKAGES[language], VERSION) / "usr/share/debian-reference"
    return [folder / f"ch{chapter:02}.{_IN_FILE_NAMES[language]}.html" for chapter in range(1, CHAPTERS + 1)]


@dataclass(slots=True)
class _Open:
    id: str
    title: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)


class _SectionParser(HTMLParser):
    """Collects the text below each heading that has an anchor."""

    def __init__(self, chapter: int) -> None:
        super().__init__(convert_charrefs=True)
        self._chapter = chapter
        self._sections: list[_Open] = []
        self._is_heading = False
        self._is_skipped = False

    def sections(self) -> Iterator[Section]:
        """Yield the sections that were read."""
        for section in self._sections:
            title = " ".join("".join(section.title).split())
            lines = (" ".join(line.split()) for line in "".join(section.text).splitlines())
            yield Section(section.id, title, "\n".join(line for line in lines if line), self._chapter)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_skipped = self._is_skipped or tag in {"style", "script", "title"}
        anchor = dict(attrs).get("id")
        if _HEADING.fullmatch(tag):
            self._is_heading = True
        elif self._is_heading and tag == "a" and anchor:
            self._sections.append(_Open(anchor))
        elif self._sections and tag in {"p", "li", "tr", "pre", "dt", "dd"}:
            self._sections[-1].text.append("\n")
        elif self._sections and tag == "td":
            self._sections[-1].text.append(" | ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"style", "script", "title"}:
            self._is_skipped = False
        if _HEADING.fullmatch(tag):
            self._is_heading = False

    def handle_data(self, data: str) -> None:
        if self._sections and not self._is_skipped:
            section = self._sections[-1]
            (section.title if self._is_heading else section.text).append(data)
