"""Fetch URLs, only from public servers unless others are allowed."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from urllib.parse import urljoin, urlsplit

import httpcore2

from jackfield.errors import ToolServiceError
from jackfield_fetch.rules import MAX_URL_CHARS, FetchConfig, address_of, request_url, shown

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KNOWN_AS = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_GZIP = 16 + zlib.MAX_WBITS  # zlib's flag for gzip headers
_MAX_MEMBERS = 10_000
_MAX_HEAD_BYTES = 256 * 1024
_MAX_LINES = 128  # lines from a server that are read before other tasks get a turn
UNPACKED_AT_ONCE = 2**20

CheckURL: TypeAlias = Callable[[str], Awaitable[None]]
"""Raises a `ToolServiceError` if a URL may not be fetched."""


class FetchError(ToolServiceError):
    """A URL could not be fetched. The message gives the reason, and the URL without its query.

    `code` is the HTTP status of an unsuccessful response, as text, or None if there was no response.
    """


@dataclass(frozen=True, slots=True)
class Fetched:
    """A server's response.

    Attributes:
        url: The final URL, after redirects.
        media_type: The lowercase media type, such as `text/html`, or '' if the server sends none.
        charset: The charset declared by the server, or '' if there is none.
        etag, last_modified: Validators for a later conditional request, or '' if the server sends none.
        content: The decompressed body.
    """

    url: str
    media_type: str
    charset: str
    etag: str
    last_modified: str
    content: bytes


class Fetcher:
    """Fetches over HTTP and HTTPS. An instance is not tied to an event loop and keeps no connections open.

    Each server's addresses, including those of redirect targets, are resolved once and checked, and connections are
    made only to a checked address. A name that later resolves to another address has no effect. Proxies from the
    environment are not used, because they would resolve the name themselves.

    Args:
        cfg: The settings of `FetchConfig`.
        settings: Individual settings by name.
    """

    def __init__(self, cfg: FetchConfig | Mapping[str, object] | None = None, **settings: Any) -> None:
        given = cfg.model_dump(exclude_unset=True) if isinstance(cfg, FetchConfig) else dict(cfg or {})
        self.config = FetchConfig.parse({**given, **settings}, what="fetch_cfg")

    async def fetch(self, url: str, *, known: Fetched | None = None, check: CheckURL | None = None) -> Fetched:
        """Fetch a URL's content.

        Args:
            url: An `http:` or `https:` URL.
            known: An earlier result, returned again if the server reports no change.
            check: Awaited with each URL before a request is sent to it: `url` itself and every redirect target. An
                error raised by `check` ends the fetch.

        Raises:
            FetchError: The URL may not be fetched, the server fails or refuses, or a limit is exceeded.
        """
        seconds = self.config.timeout_s
        try:
            async with asyncio.timeout(seconds):
                return await self._followed(url, known, check)
        except TimeoutError:
            raise FetchError(f"{shown(url)} did not arrive within {seconds:g} seconds: try again later") from None
        except httpcore2.TimeoutException as error:
            raise FetchError(f"{shown(url)} cannot be fetched: the server does not respond") from error
        except httpcore2.ProtocolError as error:
            raise FetchError(f"{shown(url)} cannot be fetched: the server does not speak HTTP") from error
        except (httpcore2.NetworkError, OSError) as error:
            raise FetchError(f"{shown(url)} cannot be fetched: {_reason(error)}") from error

    async def _followed(self, url: str, known: Fetched | None, check: CheckURL | None) -> Fetched:
        here = url
        for _ in range(self.config.max_redirects + 1):
            _target(here)  # only a valid address can be checked
            if check is not None:
                await check(here)
            # Validators are sent only to the page's own server, and "not modified" is believed only from it.
            found = await self._once(here, known if known and known.url == here else None)
            if isinstance(found, Fetched):
                return found
            _target(found)
            if urlsplit(here).scheme == "https" and urlsplit(found).scheme == "http":
                raise FetchError(
                    f"{shown(url)} redirects from https to http: fetch {shown(found)} directly if you trust it"
                )
            here = found
        raise FetchError(f"{shown(url)} redirects more than {self.config.max_redirects} times")

    async def _once(self, url: str, known: Fetched | None) -> Fetched | str:
        """Return one server's response, or the URL it redirects to."""
        target = _target(url)
        async with AsyncExitStack() as stack:
            network = _Guarded(self.config, shown(url))
            pool = httpcore2.AsyncConnectionPool(network_backend=network)
            await stack.enter_async_context(pool)
            answer = await stack.enter_async_context(pool.stream("GET", target, headers=self._headers(target, known)))
            network.head_is_complete()
            headers = _read_headers(answer.headers)
            if answer.status in _REDIRECTS and headers.get("location"):
                return _redirect(url, headers["location"])
            if answer.status == 304 and known:
                return known
            if answer.status != 200:
                raise FetchError(
                    f"{shown(url)} cannot be fetched: the server responded with HTTP {answer.status}",
                    code=str(answer.status),
                )
            return _fetched(url, headers, await self._body(url, headers, answer.aiter_stream()))

    def _headers(self, target: str, known: Fetched | None) -> list[tuple[bytes, bytes]]:
        # httpcore2 would omit the brackets of an IPv6 address.
        named = {"host": urlsplit(target).netloc}
        named |= {"user-agent": self.config.user_agent, "accept": "*/*", "accept-encoding": "gzip"}
        if known:
            named |= {"if-none-match": known.etag, "if-modified-since": known.last_modified}
        return [(name.encode(), value.encode("latin-1")) for name, value in named.items() if value]

    async def _body(self, url: str, headers: Mapping[str, str], pieces: AsyncIterator[bytes]) -> bytes:
        most = self.config.max_bytes
        unpack = _unpacker(url, headers)
        too_large = FetchError(f"{shown(url)} is larger than {most / 2**20:.3g} MiB: raise max_bytes to fetch it")
        if _stated_length(headers) > most:
            raise too_large
        body = bytearray()
        async for piece in pieces:
            try:
                for part in unpack.feed(piece):
                    body += part
                    if len(body) > most:  # the rest of a bomb is never unpacked
                        raise too_large
                    if len(part) == UNPACKED_AT_ONCE:
                        await asyncio.sleep(0)  # decompression holds the GIL, so other tasks get a turn
            except zlib.error as error:
                raise FetchError(f"{shown(url)} cannot be fetched: the data is corrupted ({error})") from error
        if not unpack.may_end:
            raise FetchError(f"{shown(url)} cannot be fetched: the response is truncated")
        return bytes(body)


def _target(url: str) -> str:
    try:
        return request_url(url)
    except ValueError as error:
        raise FetchError(f"{shown(url)} cannot be fetched: {error}") from None


def _redirect(url: str, location: str) -> str:
    try:
        return urljoin(url, location[: MAX_URL_CHARS + 1])
    except ValueError:
        raise FetchError(f"{shown(url)} cannot be fetched: it redirects to an invalid URL") from None


def _read_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


def _stated_length(headers: Mapping[str, str]) -> int:
    """Return the declared length of a body, or 0 if there is none."""
    length = headers.get("content-length", "")
    return int(length[:20]) if length.isdecimal() else 0


class _Unpacking(Protocol):
    """Decompresses a body incrementally. `may_end` is True if the body may be complete."""

    @property
    def may_end(self) -> bool: ...

    def feed(self, piece: bytes) -> Iterator[bytes]: ...


class _NotPacked:
    """Passes an uncompressed body through unchanged."""

    may_end = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        yield piece


class _Gzip:
    """Decompresses all members of a gzip body (RFC 1952), in parts of at most `UNPACKED_AT_ONCE` bytes.

    Raises `zlib.error` for damaged members, too many members, or trailing data.
    """

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._members = 1

    @property
    def may_end(self) -> bool:
        return self._member.eof

    def feed(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            if self._member.eof:
                self._members += 1
                if self._members > _MAX_MEMBERS:
                    raise zlib.error(f"more than {_MAX_MEMBERS:,} gzip members")
                self._member = zlib.decompressobj(_GZIP)
            yield self._member.decompress(piece, UNPACKED_AT_ONCE)
            piece = self._member.unused_data if self._member.eof else self._member.unconsumed_tail


def _unpacker(url: str, headers: Mapping[str, str]) -> _Unpacking:
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in ("gzip", "x-gzip", "identity", ""):
        raise FetchError(f"{shown(url)} cannot be fetched: unrequested content encoding {coding[:20]!r}")
    return _Gzip() if coding.endswith("gzip") else _NotPacked()


def _fetched(url: str, headers: Mapping[str, str], content: bytes) -> Fetched:
    stated = headers.get("content-type", "")
    charset = _KNOWN_AS.search(stated)
    return Fetched(
        url=url,
        media_type=stated.partition(";")[0].strip().lower(),
        charset=charset[1] if charset else "",
        etag=headers.get("etag", ""),
        last_modified=headers.get("last-modified", ""),
        content=content,
    )


class _Guarded(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses that have been checked."""

    def __init__(self, config: FetchConfig, url: str) -> None:
        self._config = config
        self._url = url
        self._plain = httpcore2.AnyIOBackend()
        self._head_bytes = 0
        self._has_head = False

    def head_is_complete(self) -> None:
        """Stop counting, because the response headers have arrived."""
        self._has_head = True

    def count(self, size_bytes: int) -> None:
        """Count the bytes up to the end of the headers, including interim responses (`100 Continue`).

        Raises:
            RemoteProtocolError: The limit is exceeded.
        """
        if not self._has_head:
            self._head_bytes += size_bytes
            if self._head_bytes > _MAX_HEAD_BYTES:
                raise httpcore2.RemoteProtocolError("the headers never end")

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve a host and connect to the first of its addresses that answers.

        Raises:
            FetchError: One of the host's addresses is not allowed. A hostile name server may have listed it to redirect
                the request.
        """
        failure: Exception = OSError("the host name has no address")
        for address in await self._addresses(host.strip("[]"), port):
            try:
                stream = await self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
                return _Paced(stream, self)
            except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError) as error:
                failure = error
        raise failure

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise FetchError(f"{self._url} cannot be fetched: unknown host") from error
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        if not all(self._config.allows(host, address_of(one)) for one in addresses):
            raise FetchError(
                f"{self._url} cannot be fetched: the server is in a private network; the operator can add it to "
                f"the fetch setting 'allow'"
            )
        return addresses


class _Paced(httpcore2.AsyncNetworkStream):
    """A connection that returns a few lines per read, so that other tasks get a turn in between.

    A server may send a megabyte in one-byte chunks, or `100 Continue` forever, and each of those costs far more than
    its bytes.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream, network: _Guarded) -> None:
        self._stream = stream
        self._network = network
        self._rest = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - the library's
        await asyncio.sleep(0)  # a TLS read does not wait for data that has already arrived
        data = self._rest or await self._stream.read(max_bytes, timeout)
        end = _end_of_lines(data, _MAX_LINES)
        self._rest = data[end:]
        self._network.count(end)
        return data[:end]

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the library's
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's
    ) -> httpcore2.AsyncNetworkStream:
        return _Paced(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._network)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _end_of_lines(data: bytes, most: int) -> int:
    """Return the end of the first `most` HTTP lines, or of all data if there are fewer."""
    if data.count(b"\r\n") <= most:
        return len(data)
    end = 0
    for _ in range(most):
        end = data.index(b"\r\n", end) + 2
    return end


def _reason(error: Exception) -> str:
    """Return the reason for a failure in our own words: library messages are often empty, or name addresses."""
    chain: list[BaseException] = [error]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(cause)
    return next((text for is_it, text in _REASONS if any(map(is_it, chain))), "the connection broke")


_REASONS: tuple[tuple[Callable[[BaseException], bool], str], ...] = (
    (lambda error: isinstance(error, ConnectionRefusedError), "nothing listens there"),
    (lambda error: "certificate" in str(error).lower(), "the server's certificate is not valid"),
    (lambda error: "ssl" in type(error).__module__, "the server supports no common TLS version or cipher"),
)
