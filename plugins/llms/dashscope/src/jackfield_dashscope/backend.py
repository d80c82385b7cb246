"""Ask a model at DashScope: the SDK's settings and request, and below its typed layer plain bytes.

The SDK says where the server is, how one is let in and what a request for a stream has. Nothing of it is set for the
whole process: two models with two keys do not meet.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, MissingSecretError
from jackfield.events import ModelEvent
from jackfield.messages import ContentItem
from jackfield.models import BaseChatModel
from jackfield.plugins.host import PluginHost
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield_dashscope.answer import AnswerReader
from jackfield_dashscope.config import DashScopeConfig, Endpoint
from jackfield_dashscope.errors import error_of_response, translated
from jackfield_dashscope.families import (
    UNKNOWN_AUDIO,
    UNKNOWN_TEXT,
    UNKNOWN_VISION,
    Family,
    facts_of,
    family_of,
)
from jackfield_dashscope.media import is_local
from jackfield_dashscope.wire import Dialect, dialect_of, request_bytes

if TYPE_CHECKING:  # it loads the HTTP stack, which the first call does
    from jackfield_dashscope.transport import Connections

KEY_VARIABLE = "DASHSCOPE_API_KEY"
URL_VARIABLE = "DASHSCOPE_HTTP_URL"  # Qwen-Agent's; the SDK's own are the SDK's business
DEFAULT_TIMEOUT_S = 120.0
MAX_ERROR_BYTES = 65_536

HeaderPairs = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class _Server:
    """Where requests go, and with what; `address` is for errors."""

    address: str
    urls: Mapping[Endpoint, str]
    dialects: Mapping[Endpoint, Dialect]
    ssl_context: ssl.SSLContext
    key: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    def headers_for(self, body: bytes, extra: Mapping[str, str]) -> HeaderPairs:
        """The headers of a request; `extra` wins."""
        # Addresses in the provider's own store are looked up only for who asks for it.
        resolve = {"x-dashscope-ossresourceresolve": "enable"} if b'"oss://' in body else {}
        headers = {**self.headers, **resolve, **{name.lower(): value for name, value in extra.items()}}
        return [(name.encode(), value.encode()) for name, value in headers.items()]


class QwenChat(BaseChatModel):
    """A model at DashScope; one that is not known is taken for one of text.

    One instance keeps its connections, per event loop, and opens as many as there are calls at once.
    """

    backend: ClassVar[str] = "qwen_dashscope"
    config_class: ClassVar[type[LLMConfig]] = DashScopeConfig
    unknown: ClassVar[Family] = UNKNOWN_TEXT
    config: DashScopeConfig

    def __init__(
        self,
        config: LLMConfig | Mapping[str, object],
        *,
        processors: Sequence[Processor] | None = None,
        host: PluginHost | None = None,
    ) -> None:
        super().__init__(config, processors=processors, host=host)
        family = family_of(self.config.model, self.unknown)
        self._facts = facts_of(family, self.config)
        self._endpoint: Endpoint = self.config.endpoint or family.endpoint
        self._lock = threading.Lock()
        self._opened: _Server | None = None
        self._connections: dict[asyncio.AbstractEventLoop, Connections] = {}

    @property
    def facts(self) -> ModelFacts:
        """As configured, else as known of the model's family."""
        return self._facts

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Ask once, always for a stream; a server that answers with one JSON object is understood, too."""
        # In a thread: importing the SDK takes most of a second, in which the event loop has others to serve.
        server = self._opened
        if server is None:
            server = await sync.in_worker(self._server)
        media = _media_in(request)
        endpoint = "multimodal" if media and self.config.endpoint is None else self._endpoint
        body = await _body(request, server.dialects[endpoint], media)
        headers = server.headers_for(body, request.config.extra_headers)
        timeout_s = request.config.request_timeout or DEFAULT_TIMEOUT_S
        connections = self._connections_here(server)
        with translated(self.backend, server.address, timeout_s=timeout_s):
            async with connections.post(server.urls[endpoint], body, headers, timeout_s=timeout_s) as response:
                if response.status >= 300:
                    refusal = await response.read(limit=MAX_ERROR_BYTES)
                    raise error_of_response(response.status, response.headers, refusal, self.backend, key=server.key)
                request_id = response.headers.get("x-request-id")
                reader = AnswerReader(self.backend, request.model, key=server.key, request_id=request_id)
                if response.headers.get("content-type", "").startswith("application/json"):
                    for event in reader.whole(await response.read()):
                        yield event
                async for piece in response.pieces:
                    for event in reader.feed(piece):
                        yield event
                    if reader.complete:
                        break
                for event in reader.feed(await response.rest()):
                    yield event
                for event in reader.finish():
                    yield event

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones, with the key as it is then."""
        with self._lock:
            connections, self._connections, self._opened = self._connections, {}, None
        here = connections.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.aclose()
        # Those of other loops close themselves there, as soon as nobody refers to them.

    def _connections_here(self, server: _Server) -> Connections:
        loop = asyncio.get_running_loop()
        connections = self._connections.get(loop)
        if connections is None:
            from jackfield_dashscope.transport import Connections

            connections = Connections(server.ssl_context)
            with self._lock:
                living = {known: kept for known, kept in self._connections.items() if not known.is_closed()}
                self._connections = {**living, loop: connections}
        return connections

    # --- what the first call does ---

    def _server(self) -> _Server:
        with self._lock:
            if self._opened is None:
                self._opened = _open(self.config, self._key(), _given_url(self.config))
            return self._opened

    def _key(self) -> str:
        configured = self.config.api_key.get_secret_value() if self.config.api_key else None
        key = (configured or self.host.settings.secret(KEY_VARIABLE) or "").strip()
        if not key:
            raise MissingSecretError(KEY_VARIABLE, needed_by=f"backend {self.backend}")
        if not (key.isascii() and key.isprintable()):
            # Said here, because an HTTP library would show the header, key and all.
            raise ConfigError("the key has characters that no HTTP header can carry: copy it again")
        return key


class QwenVLChat(QwenChat):
    """The same, but that a model that is not known is taken for one that sees."""

    backend: ClassVar[str] = "qwenvl_dashscope"
    unknown: ClassVar[Family] = UNKNOWN_VISION


class QwenAudioChat(QwenChat):
    """The same, but that a model that is not known is taken for one that hears."""

    backend: ClassVar[str] = "qwenaudio_dashscope"
    unknown: ClassVar[Family] = UNKNOWN_AUDIO


def _given_url(config: DashScopeConfig) -> str | None:
    """The base URL that the configuration, else the environment gives; None for the SDK's.

    Raises:
        ConfigError: It is none, or that of another protocol.
    """
    if config.model_server not in (None, "", "dashscope") and not config.server_url:
        raise ConfigError("model_server must be 'dashscope' or begin with http:// or https://")
    url = config.base_http_api_url or config.server_url or os.environ.get(URL_VARIABLE)
    if not url:
        return None
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"base_url must begin with http:// or https://, not {url.partition(':')[0]!r}")
    if "/compatible-mode/" in url:
        raise ConfigError(
            "base_url is that of DashScope's OpenAI-compatible mode: use the backend openai for it, "
            "or the address of DashScope's own protocol, which ends in /api/v1"
        )
    return url


def _open(config: DashScopeConfig, key: str, base_url: str | None) -> _Server:
    import dashscope
    import httpx

    try:
        client = dashscope.AsyncClient(
            api_key=key,
            base_url=base_url,
            workspace=config.workspace,
            region=config.region,
            protocol="native",
            max_retries=0,
            # It sends nothing; with one of its own, the SDK would load certificates for it.
            http_client=httpx.AsyncClient(transport=httpx.AsyncBaseTransport(), trust_env=False),
        )
        base = str(httpx.URL(client.config.base_url)).rstrip("/")
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError(f"the settings of DashScope do not fit: {error}") from error
    blank = client.protocol.build_chat_request(model=config.model, messages=[], stream=True)
    parts = urlsplit(base)
    paths: dict[Endpoint, str] = {"text": blank.path, "multimodal": client.protocol.MULTIMODAL_PATH or blank.path}
    return _Server(
        address=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        urls={endpoint: base + path for endpoint, path in paths.items()},
        dialects={
            endpoint: dialect_of(config, blank.body["parameters"], in_parts=endpoint == "multimodal")
            for endpoint in paths
        },
        ssl_context=_ssl_context(base),
        key=key,
        headers=_headers(key, client.config.workspace, blank.headers),
    )


def _headers(key: str, workspace: str | None, of_a_stream: Mapping[str, str]) -> dict[str, str]:
    headers = {
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",  # what arrives is read as it is
        **{name.lower(): value for name, value in of_a_stream.items()},
    }
    # The SDK also sends an id of the process and the like: nobody asked for that.
    return {**headers, "x-dashscope-workspace": workspace} if workspace else headers


def _ssl_context(url: str) -> ssl.SSLContext:
    import httpx

    if any(address.startswith("https:") for address in (url, *getproxies().values())):
        return httpx.create_ssl_context()
    # Loading certificates takes long. Without them it trusts nobody, should TLS come up after all.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _media_in(request: ChatRequest) -> list[ContentItem]:
    contents = (message.content for message in request.messages if not isinstance(message.content, str))
    return [item for content in contents for item in content if item.is_media_content()]


async def _body(request: ChatRequest, dialect: Dialect, media: Sequence[ContentItem]) -> bytes:
    if any(map(is_local, media)):
        return await sync.in_worker(request_bytes, request, dialect)
    return request_bytes(request, dialect)
