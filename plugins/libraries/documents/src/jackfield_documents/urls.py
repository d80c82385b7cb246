"""Documents at URLs: fetched by `jackfield-fetch` where it is installed, and kept for a while."""

from __future__ import annotations

import codecs
import mimetypes
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jackfield.errors import DocParserError, ToolServiceError
from jackfield.messages import basename_of
from jackfield_documents.encodings import codec_of

if TYPE_CHECKING:
    from jackfield_fetch import Fetched, Fetcher

FRESH_S = 300.0
"""Seconds for which a page is not asked for again."""
_KEPT_BYTES = 50_000_000
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# What servers say of a file when they do not know.
_SAYS_NOTHING = frozenset({"", "application/octet-stream", "binary/octet-stream", "text/plain"})

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_url(path: str) -> bool:
    """Whether a path is a URL."""
    return _URL.match(path) is not None


@dataclass(frozen=True, slots=True)
class Page:
    """What a URL gave.

    Attributes:
        name: Such a file's name: the last part of the URL, with an extension that says of which type it is.
        data: The bytes, as the server sent them.
        codec: The encoding of a text that the server names; '' if it names none, or the bytes begin with a mark.
    """

    name: str
    data: bytes
    codec: str = ""


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float
    page: Fetched


class Pages:
    """Gets what URLs name. It may be used by several event loops.

    Args:
        settings: Those of `jackfield_fetch.FetchConfig`.
        max_bytes: The largest page, unless the settings say it.
        check: Awaited with each URL before its server is asked, those of redirects included.
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None,
        max_bytes: int,
        check: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._check = check
        self._settings = {"max_bytes": max_bytes, **(settings or {})}
        self._made: Fetcher | None = None
        self._seen: dict[str, _Seen] = {}

    async def get(self, url: str) -> Page:
        """The page of a URL; one that is not fresh is asked for again, and sent only if it has changed.

        Raises:
            DocParserError: It cannot be fetched, or nothing here fetches URLs.
        """
        seen = self._seen.get(url)
        if seen is None or time.monotonic() - seen.at > FRESH_S:
            try:
                page = await self._fetcher.fetch(url, known=seen.page if seen else None, check=self._check)
            except ToolServiceError as error:
                raise DocParserError(str(error)) from error
            seen = _Seen(time.monotonic(), page)
            self._keep(url, seen)
        if not seen.page.content:
            raise DocParserError(f"{basename_of(url)} is empty")
        return Page(_file_name(seen.page), seen.page.content, _codec_of(seen.page))

    def _keep(self, url: str, seen: _Seen) -> None:
        self._seen.pop(url, None)
        self._seen[url] = seen
        size = sum(len(one.page.content) for one in self._seen.values())
        for oldest in list(self._seen)[:-1]:
            if size <= _KEPT_BYTES:
                break
            size -= len(self._seen.pop(oldest).page.content)

    @property
    def _fetcher(self) -> Fetcher:
        if self._made is None:
            try:
                from jackfield_fetch import Fetcher
            except ModuleNotFoundError as error:
                if error.name != "jackfield_fetch":
                    raise
                raise DocParserError("nothing here fetches URLs: pip install jackfield-fetch") from None
            self._made = Fetcher(self._settings)
        return self._made


def _file_name(page: Fetched) -> str:
    path = urlsplit(page.url).path
    name = basename_of(path) if path.strip("/") else "index"
    if page.media_type in _SAYS_NOTHING or mimetypes.guess_type(name)[0] == page.media_type:
        return name
    return name + (mimetypes.guess_extension(page.media_type) or "")


def _codec_of(page: Fetched) -> str:
    """The encoding in which any parser is to read a text, whatever the text says of itself. Nothing is decoded here."""
    is_text = page.media_type.startswith("text/") or page.media_type.endswith(("+xml", "/xml"))
    if not is_text or page.content.startswith(_MARKS):
        return ""
    return codec_of(page.charset) or ""
