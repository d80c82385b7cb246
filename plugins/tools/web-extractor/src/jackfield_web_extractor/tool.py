"""The `web_extractor` tool: read the text of web pages that a model may access."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from protego import Protego
from pydantic import Field

from jackfield.config import Config
from jackfield.errors import DocParserError, ToolArgumentError, ToolServiceError
from jackfield.plugins import default_host
from jackfield.retrieval import Document
from jackfield.tools import BaseTool, ToolResult, says_if_not_awaited
from jackfield_documents import DocumentReader, is_url
from jackfield_fetch import MAX_URL_CHARS, FetchConfig, Fetcher, FetchError, shown
from jackfield_web_extractor.plugin import tools

_LINK = re.compile(r"(?<=\]\()[^()\s]+(?=\))")
_KNOWN_S = 3600.0  # after which a server's rules are requested again
_MAX_SERVERS = 256
_MAX_RULES = 500 * 1024  # bytes, as in RFC 9309
_PORTS = {"http": 80, "https": 443}
_REFUSED = 500  # statuses from here on are server failures, so the rules are unknown


class WebExtractorConfig(Config):
    """Settings for the pages that may be read and the size of a part."""

    part_chars: int = Field(default=20_000, ge=1000, description="Maximum number of characters in a part")
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts that may be read, including their subdomains (example.com), or a single port "
        "(example.com:8080); all if empty",
    )
    obey_robots: bool = Field(default=True, description="Do not read pages that a server's robots.txt excludes")
    fetch_cfg: Mapping[str, Any] = Field(
        default_factory=dict, description="Settings of jackfield-fetch for fetching pages, such as `allow`"
    )


class WebExtractor(BaseTool):
    """Reads web pages and online documents: HTML, and any format with an installed parser.

    Servers in private networks are off limits unless `fetch_cfg` allows them, even after redirects.
    """

    name = "web_extractor"
    description = tools()[0].description
    parameters = tools()[0].parameters
    effects = tools()[0].effects
    read_only = True
    idempotent = True
    cacheable = True

    config_class = WebExtractorConfig
    config: WebExtractorConfig

    def __init__(self, cfg: WebExtractorConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        super().__init__(cfg, **settings)
        self._fetching = FetchConfig.parse(self.config.fetch_cfg, what=f"{self.name}: fetch_cfg")
        self._made: DocumentReader | None = None
        self._rules: dict[str, tuple[float, Protego]] = {}

    @says_if_not_awaited
    async def call(self, params: str | Mapping[str, Any], **_: object) -> ToolResult:
        """Read a page, or one part of a long page.

        Returns:
            The text, preceded by the title in the first part. If there are several parts, a final line gives the
            number.

        Raises:
            ToolArgumentError: The address is not a URL, or the part number is out of range.
            ToolServiceError: The page may not be read, cannot be fetched, or has a type without a parser.
        """
        arguments = self.parse_arguments(params)
        url, part = arguments["url"].strip(), arguments.get("part", 1)
        if not is_url(url):
            raise ToolArgumentError(f"{url[:100]!r} is not a URL: it must start with https:// or http://")
        await self._check(url)  # here as well, because a cached page is not fetched again
        document = await self._reader.read(url)
        parts = _parts(_texts(document, url), self.config.part_chars)
        if part > len(parts):
            raise ToolArgumentError(f"no part {part} of {shown(url)}: parts are numbered from 1 to {len(parts)}")
        text = _format_part(parts, part, document.title)
        return ToolResult(text, {"sources": [url], "title": document.title, "parts": len(parts)})

    async def _check(self, url: str) -> None:
        """Check that a page may be read. Called for redirects as well.

        Raises:
            ToolServiceError: The settings or the server's robots.txt forbid it.
        """
        await self._check_host(url)
        if self.config.obey_robots:
            await self._check_robots(url)

    async def _check_host(self, url: str) -> None:
        host, port = _server_of(url)
        allowed = [name.lower().strip(".") for name in self.config.hosts]
        if allowed and not any(_is_below(host, port, name) for name in allowed):
            raise ToolServiceError(f"{shown(url)} cannot be read: only pages on {', '.join(allowed)} are allowed")

    async def _check_robots(self, url: str) -> None:
        parts = urlsplit(url)
        server = f"{parts.scheme}://{parts.netloc.lower()}"
        rules = self._rules.get(server)
        if rules is None or time.monotonic() - rules[0] > _KNOWN_S:
            rules = self._rules[server] = (time.monotonic(), await self._robots(server))
            while len(self._rules) > _MAX_SERVERS:
                del self._rules[next(iter(self._rules))]
        if not rules[1].can_fetch(url, self._fetching.user_agent):
            raise ToolServiceError(f"{shown(url)} cannot be read: the server's robots.txt disallows it")

    async def _robots(self, server: str) -> Protego:
        """Return a server's robots.txt rules (RFC 9309). Without a robots.txt, everything is allowed.

        Raises:
            FetchError: The server failed, so its rules are unknown.
        """
        fetcher = Fetcher(self._fetching, max_bytes=_MAX_RULES)
        try:
            found = await fetcher.fetch(f"{server}/robots.txt", check=self._check_host)
        except FetchError as error:
            if error.code is None or int(error.code) >= _REFUSED:
                raise
            return Protego.parse("")
        return Protego.parse(found.content.decode(errors="replace"))

    @property
    def _reader(self) -> DocumentReader:
        if self._made is None:
            self._made = DocumentReader(
                self.host or default_host(), fetch_cfg=self._fetching.model_dump(), check_url=self._check
            )
        return self._made


def _server_of(url: str) -> tuple[str, int | None]:
    """Return the host and port of a URL.

    Raises:
        ToolServiceError: The URL is malformed.
    """
    try:
        parts = urlsplit(url[:MAX_URL_CHARS])
        return (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        raise ToolServiceError("invalid URL: check the host and the port") from None


def _is_below(host: str, port: int | None, name: str) -> bool:
    """Return True if the host is the named domain or a subdomain. If the name includes a port, the port must match."""
    domain, colon, named_port = name.rpartition(":")
    is_ipv6 = ":" in domain and not domain.endswith("]")  # without a port
    if colon and named_port.isdecimal() and not is_ipv6:
        return port == int(named_port[:6]) and _is_below(host, port, domain)
    return f".{host}".endswith(f".{name.strip('[]')}")


def _resolve_link(url: str, link: str) -> str:
    """Resolve a link relative to its page. Links that cannot be parsed are returned unchanged."""
    if len(link) > MAX_URL_CHARS:
        return link
    try:
        return urljoin(url, link)
    except ValueError:
        return link


def _texts(document: Document, url: str) -> list[str]:
    """Return the blocks of a page as Markdown with absolute links."""
    texts = []
    for block in document.blocks:
        text = f"{'#' * min(block.level, 6)} {block.text}" if block.kind == "heading" else block.text
        texts.append(_LINK.sub(lambda found: _resolve_link(url, found[0]), text) if block.kind != "code" else text)
    if not texts:
        raise DocParserError(f"{shown(url)} contains no text")
    return texts


def _parts(texts: Iterable[str], most: int) -> list[str]:
    """Join blocks into parts of limited size, splitting blocks that are too long."""
    parts = [""]
    for text in texts:
        if parts[-1] and len(parts[-1]) + 2 + len(text) > most:
            parts.append("")
        parts[-1] += f"\n\n{text}" if parts[-1] else text
        while len(parts[-1]) > most:
            parts[-1:] = [parts[-1][:most], parts[-1][most:]]
    return parts


def _format_part(parts: Sequence[str], number: int, title: str) -> str:
    """Format a part of a page. The first part starts with the title; the part number is added if there are several."""
    heading = f"# {title}\n\n" if title and number == 1 else ""
    note = ""
    if len(parts) > 1:
        next_part = "." if number == len(parts) else f": to read the next part, call again with part={number + 1}."
        note = f"\n\nThis is part {number} of {len(parts)}{next_part}"
    return heading + parts[number - 1] + note
