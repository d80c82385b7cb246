"""Ask a model at DashScope: the SDK's settings and request, and below its typed layer plain bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import ClassVar

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.events import ModelEvent
from jackfield.messages import ContentItem
from jackfield.models import BaseChatModel
from jackfield.plugins.host import PluginHost
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield.tracebacks import LocalsForgotten
from jackfield_dashscope.answer import AnswerReader
from jackfield_dashscope.config import DashScopeConfig, Endpoint
from jackfield_dashscope.errors import error_of_response
from jackfield_dashscope.families import (
    UNKNOWN_AUDIO,
    UNKNOWN_TEXT,
    UNKNOWN_VISION,
    Family,
    facts_of,
    family_of,
)
from jackfield_dashscope.media import is_local
from jackfield_dashscope.server import Access, Server
from jackfield_dashscope.wire import dialect_of, request_bytes
from jackfield_http import PATIENCE, HeaderPairs, request_id_of

DEFAULT_TIMEOUT_S = 120.0
MAX_ERROR_BYTES = 65_536


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
        with LocalsForgotten():  # a key may be among them
            super().__init__(config, processors=processors, host=host)
        family = family_of(self.config.model, self.unknown)
        self._facts = facts_of(family, self.config)
        self._endpoint: Endpoint = self.config.endpoint or family.endpoint
        self._access = Access(
            self.config, name=f"backend {self.backend}", backend=self.backend, settings=lambda: self.host.settings
        )

    @property
    def facts(self) -> ModelFacts:
        """As configured, else as known of the model's family."""
        return self._facts

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Ask once, always for a stream; a server that answers with one JSON object is understood, too."""
        server = await self._access.server()
        media = _media_in(request)
        endpoint = "multimodal" if media and self.config.endpoint is None else self._endpoint
        body = await self._body(request, server, endpoint, media)
        timeout_s = request.config.request_timeout or DEFAULT_TIMEOUT_S
        url = server.base + server.paths[endpoint]
        secrets = server.secrets_with(request.config.extra_headers)
        async with server.http.post(url, body, _headers(request, server, body), timeout_s=timeout_s) as response:
            if response.status >= 300:
                refusal = await response.read(limit=MAX_ERROR_BYTES)
                raise error_of_response(response.status, response.headers, refusal, self.backend, key=secrets)
            reader = AnswerReader(
                self.backend,
                request.model,
                key=secrets,
                request_id=request_id_of(response.headers),
                patience_s=request.config.event_timeout or timeout_s * PATIENCE,
            )
            if response.headers.get("content-type", "").startswith("application/json"):
                for event in reader.whole(await server.http.body_of(response)):
                    yield event
            async for piece in response.pieces:
                for event in reader.feed(piece):
                    yield event
                if reader.complete:
                    break
            if not reader.done:
                for event in reader.feed(await response.rest()):
                    yield event
            response.release()
            for event in reader.finish():
                yield event

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones, with the key as it is then."""
        await super().aclose()
        await self._access.aclose()

    async def _body(
        self, request: ChatRequest, server: Server, endpoint: Endpoint, media: Sequence[ContentItem]
    ) -> bytes:
        parameters, _ = server.of_a_stream
        dialect = dialect_of(self.config, parameters, in_parts=endpoint == "multimodal")
        if any(map(is_local, media)):
            return await sync.in_worker(request_bytes, request, dialect)
        return request_bytes(request, dialect)


class QwenVLChat(QwenChat):
    """The same, but that a model that is not known is taken for one that sees."""

    backend: ClassVar[str] = "qwenvl_dashscope"
    unknown: ClassVar[Family] = UNKNOWN_VISION


class QwenAudioChat(QwenChat):
    """The same, but that a model that is not known is taken for one that hears."""

    backend: ClassVar[str] = "qwenaudio_dashscope"
    unknown: ClassVar[Family] = UNKNOWN_AUDIO


def _headers(request: ChatRequest, server: Server, body: bytes) -> HeaderPairs:
    _, of_a_stream = server.of_a_stream
    # Addresses in the provider's own store are looked up only for who asks for it.
    resolve = {"x-dashscope-ossresourceresolve": "enable"} if b'"oss://' in body else {}
    return server.headers_for(of_a_stream, resolve, extra=request.config.extra_headers)


def _media_in(request: ChatRequest) -> list[ContentItem]:
    contents = (message.content for message in request.messages if not isinstance(message.content, str))
    return [item for content in contents for item in content if item.is_media_content()]
