"""Ask a model by the Messages protocol, below any SDK."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.events import ModelEvent
from jackfield.models import BaseChatModel
from jackfield.models.base import name_of_server
from jackfield.plugins.host import PluginHost
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield.tracebacks import LocalsForgotten
from jackfield_anthropic.answer import AnswerReader
from jackfield_anthropic.config import AnthropicConfig
from jackfield_anthropic.errors import KEY_VARIABLE, error_of_response
from jackfield_anthropic.wire import reads_files, request_body
from jackfield_backend.keys import FoundKey, KeyRule, find_key, is_at
from jackfield_backend.refusals import Secrets
from jackfield_http import PATIENCE, HTTPClient, checked_url, header_pairs, json_bytes

DEFAULT_TIMEOUT_S = 120.0
MAX_ERROR_BYTES = 65_536
URL_VARIABLE = "ANTHROPIC_BASE_URL"
ANTHROPIC_URL = "https://api.anthropic.com"
HOSTS = ("api.anthropic.com",)
KEY_RULE = KeyRule(KEY_VARIABLE, HOSTS, URL_VARIABLE)


@dataclass(frozen=True, slots=True)
class _Server:
    """Where requests go, and with what."""

    url: str
    http: HTTPClient
    key: FoundKey
    headers: Mapping[str, str] = field(repr=False)


class AnthropicChat(BaseChatModel):
    """A model at Anthropic, or at any server that speaks its protocol.

    One instance keeps its connections, per event loop, and opens as many as there are calls at once.
    """

    backend: ClassVar[str] = "anthropic"
    config_class: ClassVar[type[LLMConfig]] = AnthropicConfig
    config: AnthropicConfig

    def __init__(
        self,
        config: LLMConfig | Mapping[str, object],
        *,
        processors: Sequence[Processor] | None = None,
        host: PluginHost | None = None,
    ) -> None:
        with LocalsForgotten():  # a key may be among them
            super().__init__(config, processors=processors, host=host)
        self._facts = ModelFacts(
            context_tokens=self.config.context_tokens,
            tokenizer=self.config.tokenizer,
            native_tools=self.config.native_tools,
            images=self.config.images,
            json_schema=self.config.json_schema,
            reasoning=self.config.reasoning,
        )
        self._lock = threading.Lock()
        self._opened: _Server | None = None

    @property
    def facts(self) -> ModelFacts:
        """As configured."""
        return self._facts

    @property
    def server_name(self) -> str:
        """See `BaseChatModel`; the environment may say where it is, too."""
        return name_of_server(self.backend, _given_url(self.config))

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Ask once, always for a stream; a server that answers with one JSON object is understood, too."""
        server = self._server()
        body = await self._body(request)
        headers = header_pairs(server.headers, extra=request.config.extra_headers)
        secrets = Secrets(server.key.value, headers={**server.headers, **request.config.extra_headers})
        timeout_s = request.config.request_timeout or DEFAULT_TIMEOUT_S
        async with server.http.post(server.url, body, headers, timeout_s=timeout_s) as response:
            if response.status >= 300:
                refusal = await response.read(limit=MAX_ERROR_BYTES)
                raise error_of_response(
                    response.status,
                    response.headers,
                    refusal,
                    self.backend,
                    key=secrets,
                    withheld=server.key.withheld,
                )
            reader = AnswerReader(
                self.backend,
                server=request.server,
                model=request.model,
                key=secrets,
                request_id=response.headers.get("request-id") or response.headers.get("x-request-id"),
                patience_s=request.config.event_timeout or timeout_s * PATIENCE,
            )
            if response.headers.get("content-type", "").startswith("application/json"):
                for event in reader.whole(await server.http.body_of(response)):
                    yield event
            async for piece in response.pieces:
                for event in reader.feed(piece):
                    yield event
                if reader.done:
                    break
            response.release()
            for event in reader.finish():
                yield event

    async def aclose(self) -> None:
        """Close the idle connections; the next call opens new ones, with the key as it is then."""
        await super().aclose()
        with self._lock:
            server, self._opened = self._opened, None
        if server is not None:
            await server.http.aclose()

    async def _body(self, request: ChatRequest) -> bytes:
        if reads_files(request):
            return json_bytes(await sync.in_worker(request_body, request, self.config))
        return json_bytes(request_body(request, self.config))

    # --- what the first call does ---

    def _server(self) -> _Server:
        with LocalsForgotten(), self._lock:  # a key is among them
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> _Server:
        address = _given_url(self.config)
        key = find_key(address, KEY_RULE, configured=self.config.api_key, settings=self.host.settings)
        if address is None or is_at(address, HOSTS):
            key.or_missing(KEY_VARIABLE, needed_by=f"backend {self.backend}")
        headers = {
            "content-type": "application/json",
            "accept-encoding": "identity",  # what arrives is read as it is
            "anthropic-version": self.config.version,
        }
        if key.value:
            headers["x-api-key"] = key.value
        if self.config.beta:
            headers["anthropic-beta"] = ",".join(self.config.beta)
        base = (address or ANTHROPIC_URL).rstrip("/")
        # Addresses are given with the version, as for other backends, and without, as for Anthropic's own libraries.
        url = f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"
        return _Server(url=url, http=HTTPClient(url, backend=self.backend), key=key, headers=headers)


def _given_url(config: LLMConfig) -> str | None:
    """The base URL that the configuration, else the environment gives; None for Anthropic's.

    Raises:
        ConfigError: It is none.
    """
    with LocalsForgotten():  # one that is refused may have a password in it
        url = config.server_url or os.environ.get(URL_VARIABLE)
        return checked_url(url) if url else None
