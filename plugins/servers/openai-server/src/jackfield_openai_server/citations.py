"""Present an answer's citations and sources as annotations."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from jackfield.citations import Citation
from jackfield.messages import basename_of
from jackfield.results import Source
from jackfield_openai_server.items import TextItem


def annotations_of(item: TextItem, *, offset: int = 0) -> list[dict[str, Any]]:
    """Return an annotation for each citation mark, or the sources of the text if it has no citations.

    Files are cited by name, so the server's directories are not exposed.

    Args:
        item: The text.
        offset: The number of characters that precede the text in what the client receives.
    """
    if item.citations:
        annotations = [
            _annotation(offset + start, offset + end, str(citation), citation.location, _page_in(citation))
            for citation in item.citations
            for start, end in citation.answer_ranges
        ]
        return sorted(annotations, key=lambda annotation: (annotation["start_index"], annotation["end_index"]))
    end = offset + len(item.text)
    return [_annotation(end, end, str(source), source.location, _page_in(source)) for source in item.sources]


def _page_in(place: Citation | Source) -> int | None:
    """Return the page, or None for a file within a container, whose page is named in the title."""
    return None if place.part else place.page


def _annotation(start: int, end: int, title: str, location: str, page: int | None) -> dict[str, Any]:
    url = location if location.startswith(("http://", "https://")) else _file_address(location, page)
    return {"type": "url_citation", "start_index": start, "end_index": end, "title": title, "url": url}


def _file_address(location: str, page: int | None) -> str:
    return f"file:{quote(basename_of(location))}" + ("" if page is None else f"#page={page}")
