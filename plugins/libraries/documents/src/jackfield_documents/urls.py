"""Fetch and cache documents at URLs, with `jackfield-fetch` if installed."""

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
"""The number of seconds after which a cached page is revalidated."""
_CACHE_BYTES = 50_000_000
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# Media types that servers send for files of unknown type.
_UNSPECIFIC_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "text/plain"})

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_url(path: str) -> bool:
    """Return True if a path is a URL."""
    return _URL.match(path) is not None


@dataclass(frozen=True, slots=True)
class Page:
    """A URL's content.

    Attributes:
        name: A file name: the URL's last component, with an extension that fits the media type.
        data: The bytes as sent by the server.
        codec: The text's encoding as declared by the server, or '' if none is declared or the text has a byte order
            mark.
    """

    name: str
    data: bytes
    codec: str = ""


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    fetched_s: float
    page: Fetched


class Pages:
    """Fetches and caches pages. An instance may be shared by several event loops.

    Args:
        settings: Settings of `jackfield_fetch.FetchConfig`.
        max_bytes: The maximum page size, unless `settings` contains it.
        check: Awaited with each URL before the request, including redirects.
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None,
        max_bytes: int,
        check: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._check = check
        self._settings = {"max_bytes": max_bytes, **(settings or {})}
        self._lazy_fetcher: Fetcher | None = None
        self._cache: dict[str, _CacheEntry] = {}

    async def get(self, url: str) -> Page:
        """Return the page at a URL. A stale page is revalidated, and sent again only if it has changed.

        Raises:
            DocParserError: The page cannot be fetched, or `jackfield-fetch` is not installed.
        """
        entry = self._cache.get(url)
        if entry is None or time.monotonic() - entry.fetched_s > FRESH_S:
            try:
                page = await self._fetcher.fetch(url, known=entry.page if entry else None, check=self._check)
            except ToolServiceError as error:
                raise DocParserError(str(error)) from error
            entry = _CacheEntry(time.monotonic(), page)
            self._store(url, entry)
        if not entry.page.content:
            raise DocParserError(f"{basename_of(url)} is empty")
        return Page(_file_name(entry.page), entry.page.content, _codec_of(entry.page))

    def _store(self, url: str, entry: _CacheEntry) -> None:
        self._cache.pop(url, None)
        self._cache[url] = entry
        size = sum(len(cached.page.content) for cached in self._cache.values())
        for oldest in list(self._cache)[:-1]:
            if size <= _CACHE_BYTES:
                break
            size -= len(self._cache.pop(oldest).page.content)

    @property
    def _fetcher(self) -> Fetcher:
        if self._lazy_fetcher is None:
            try:
                from jackfield_fetch import Fetcher
            except ModuleNotFoundError as error:
                if error.name != "jackfield_fetch":
                    raise
                raise DocParserError("no installed package fetches URLs: pip install jackfield-fetch") from None
            self._lazy_fetcher = Fetcher(self._settings)
        return self._lazy_fetcher


def _file_name(page: Fetched) -> str:
    path = urlsplit(page.url).path
    name = basename_of(path) if path.strip("/") else "index"
    if page.media_type in _UNSPECIFIC_TYPES or mimetypes.guess_type(name)[0] == page.media_type:
        return name
    return name + (mimetypes.guess_extension(page.media_type) or "")


def _codec_of(page: Fetched) -> str:
    """Return the encoding declared by the server, which overrides any in the text, or '' if there is none."""
    is_text = page.media_type.startswith("text/") or page.media_type.endswith(("+xml", "/xml"))
    if not is_text or page.content.startswith(_MARKS):
        return ""
    return codec_of(page.charset) or ""
