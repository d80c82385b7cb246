"""Ask a model by Chat Completions: the openai SDK's settings, and below its typed layer plain bytes.

The SDK says where the server is and how one is let in, its environment variables included. Requests and answers do not
go through its pydantic models, which cost more than everything else together.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import ConfigError, MissingSecretError
from jackfield.events import ModelEvent
from jackfield.models import BaseChatModel
from jackfield.plugins.host import PluginHost
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield_openai.answer import AnswerReader
from jackfield_openai.config import OpenAIConfig
from jackfield_openai.errors import error_of_response, translated
from jackfield_openai.media import is_local
from jackfield_openai.wire import Dialect, request_bytes

if TYPE_CHECKING:  # they load the HTTP stack, which the first call does
    from jackfield_openai.transport import Connections, Route

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
NO_KEY = "EMPTY"  # what servers without keys are sent, by custom
OPENAI_HOST = "api.openai.com"
DEFAULT_TIMEOUT_S = 120.0
MAX_ERROR_BYTES = 65_536

HeaderPairs = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class _Server:
    """Where requests go, and with what; `address` is for errors."""

    address: str
    route: Route
    dialect: Dialect
    key: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    def headers_with(self, extra: Mapping[str, str]) -> HeaderPairs:
        """The headers of a request; `extra` wins."""
        headers = {**self.headers, **{name.lower(): value for name, value in extra.items()}}
        return [(name.encode(), value.encode()) for name, value in headers.items()]


class OpenAIChat(BaseChatModel):
    """A model at OpenAI, or at any server that speaks Chat Completions.

    One instance keeps its connections, per event loop, and opens as many as there are calls at once.
    """

    backend: ClassVar[str] = "openai"
    config_class: ClassVar[type[LLMConfig]] = OpenAIConfig
    config: OpenAIConfig

    def __init__(
        self,
        config: LLMConfig | Mapping[str, object],
        *,
        processors: Sequence[Processor] | None = None,
        host: PluginHost | None = None,
    ) -> None:
        super().__init__(config, processors=processors, host=host)
        self._facts = ModelFacts(
            context_tokens=self.config.context_tokens,
            native_tools=self.config.native_tools,
            images=self.config.images,
            audio=self.config.audio,
            video=self.config.video,
            json_schema=self.config.json_schema,
            reasoning=self.config.reasoning,
        )
        self._lock = threading.Lock()
        self._opened: _Server | None = None
        self._connections: dict[asyncio.AbstractEventLoop, Connections] = {}

    @property
    def facts(self) -> ModelFacts:
        """As configured."""
        return self._facts

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Ask once, always for a stream; a server that answers with one JSON object is understood, too."""
        # In a thread: importing the SDK takes most of a second, in which the event loop has others to serve.
        server = self._opened
        if server is None:
            server = await sync.in_worker(self._server)
        body = await _body(request, server.dialect)
        headers = server.headers_with(request.config.extra_headers)
        timeout_s = request.config.request_timeout or DEFAULT_TIMEOUT_S
        with translated(self.backend, server.address, timeout_s=timeout_s):
            async with self._connections_here(server).post(body, headers, timeout_s=timeout_s) as response:
                if response.status >= 300:
                    refusal = await response.read(limit=MAX_ERROR_BYTES)
                    raise error_of_response(response.status, response.headers, refusal, self.backend, key=server.key)
                reader = AnswerReader(self.backend, key=server.key, request_id=response.headers.get("x-request-id"))
                if response.headers.get("content-type", "").startswith("application/json"):
                    for event in reader.whole(await response.read()):
                        yield event
                async for piece in response.pieces:
                    for event in reader.feed(piece):
                        yield event
                    if reader.done:
                        break
                for event in reader.finish():
                    yield event
                await response.drain()

    async def aclose(self) -> None:
        """Close the idle connections; the next call opens new ones, with the key as it is then."""
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
            from jackfield_openai.transport import Connections

            connections = Connections(server.route)
            with self._lock:
                living = {known: kept for known, kept in self._connections.items() if not known.is_closed()}
                self._connections = {**living, loop: connections}
        return connections

    # --- what the first call does ---

    def _server(self) -> _Server:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> _Server:
        given_url = self.config.server_url or os.environ.get(URL_VARIABLE)
        if given_url and not given_url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url must begin with http:// or https://, not {given_url.partition(':')[0]!r}")
        key = self._key(needed=not given_url)
        base_url, headers = _sdk_settings(self.config, key, given_url)
        from jackfield_openai.transport import Route

        parts = urlsplit(base_url)
        at_openai = parts.hostname == OPENAI_HOST
        return _Server(
            address=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
            route=Route.to(base_url.rstrip("/") + "/chat/completions"),
            dialect=Dialect(
                send_reasoning=self.config.send_reasoning,
                stream_usage=self.config.stream_usage,
                max_tokens_key=self.config.max_tokens_key or ("max_completion_tokens" if at_openai else "max_tokens"),
            ),
            key=key,
            headers=headers,
        )

    def _key(self, *, needed: bool) -> str:
        configured = self.config.api_key.get_secret_value() if self.config.api_key else None
        key = (configured or self.host.settings.secret(KEY_VARIABLE) or "").strip()
        if not key and needed:
            raise MissingSecretError(KEY_VARIABLE, needed_by=f"backend {self.backend}")
        if not (key.isascii() and key.isprintable()):
            # Said here, because an HTTP library would show the header, key and all.
            raise ConfigError("the key has characters that no HTTP header can carry: copy it again")
        return key or NO_KEY


def _sdk_settings(config: OpenAIConfig, key: str, base_url: str | None) -> tuple[str, dict[str, str]]:
    """The base URL and the headers that the SDK would use; names in lower case."""
    import httpx2
    import openai

    client = openai.AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        organization=config.organization,
        project=config.project,
        max_retries=0,
        # It sends nothing; with one of its own, the SDK would load certificates for it.
        http_client=httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport(), trust_env=False),
    )
    headers = {
        name.lower(): value
        for name, value in {**client.default_headers, **client.auth_headers}.items()
        if isinstance(value, str)  # the others are the SDK's marks for headers left out
    }
    # The SDK also describes the machine (system, architecture, Python): nobody asked for that.
    return str(client.base_url), {k: v for k, v in headers.items() if not k.startswith("x-stainless-")}


async def _body(request: ChatRequest, dialect: Dialect) -> bytes:
    reads_files = any(
        is_local(item)
        for message in request.messages
        if not isinstance(message.content, str)
        for item in message.content
    )
    if reads_files:
        return await sync.in_worker(request_bytes, request, dialect)
    return request_bytes(request, dialect)
