"""Sources of an answer as annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from jackfield.messages import basename_of
from jackfield.results import Source


def citations_of(sources: Sequence[Source], end: int) -> list[dict[str, Any]]:
    """Return the sources as citations behind a text of `end` characters.

    A file is cited by its name: its folder on the server is not for clients.
    """
    return [
        {
            "type": "url_citation",
            "start_index": end,
            "end_index": end,
            "title": str(source),
            "url": _address_of(source),
        }
        for source in sources
    ]


def _address_of(source: Source) -> str:
    if source.location.startswith(("http://", "https://")):
        return source.location
    page = "" if source.page is None else f"#page={source.page}"
    return f"file:{quote(basename_of(source.location))}{page}"
