"""Ask a model by the Responses API: the openai SDK's settings, and below its typed layer plain bytes."""

from __future__ import annotations

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
from jackfield_backend.keys import FoundKey
from jackfield_backend.refusals import Secrets
from jackfield_chat_completions.errors import error_of_response
from jackfield_http import PATIENCE, HTTPClient, header_pairs, json_bytes, request_id_of
from jackfield_openai.responses.answer import AnswerReader
from jackfield_openai.responses.config import ResponsesConfig
from jackfield_openai.responses.wire import reads_files, request_body
from jackfield_openai.sdk import KEY_VARIABLE, given_url, key_of, sdk_settings

DEFAULT_TIMEOUT_S = 120.0
MAX_ERROR_BYTES = 65_536
PATH = "/responses"


@dataclass(frozen=True, slots=True)
class _Server:
    """Where requests go, and with what."""

    url: str
    http: HTTPClient
    key: FoundKey
    headers: Mapping[str, str] = field(repr=False)


class OpenAIResponses(BaseChatModel):
    """A model at OpenAI, or at any server that has the Responses API.

    One instance keeps its connections, per event loop, and opens as many as there are calls at once.
    """

    backend: ClassVar[str] = "openai_responses"
    config_class: ClassVar[type[LLMConfig]] = ResponsesConfig
    config: ResponsesConfig

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
            files=self.config.files,
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
        return name_of_server(self.backend, given_url(self.config))

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Ask once, always for a stream; a server that answers with one JSON object is understood, too."""
        # In a thread: importing the SDK takes most of a second, in which the event loop has others to serve.
        server = self._opened
        if server is None:
            server = await sync.shared_in_worker(self._server)
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
                    variable=KEY_VARIABLE,
                    withheld=server.key.withheld,
                )
            reader = AnswerReader(
                self.backend,
                server=request.server,
                key=secrets,
                variable=KEY_VARIABLE,
                request_id=request_id_of(response.headers),
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
        if reads_files(request, self.config):
            return json_bytes(await sync.in_worker(request_body, request, self.config))
        return json_bytes(request_body(request, self.config))

    # --- what the first call does ---

    def _server(self) -> _Server:
        with LocalsForgotten(), self._lock:  # a key is among them
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> _Server:
        address = given_url(self.config)
        key = key_of(address, self.config, self.host, self.backend)
        base_url, headers = sdk_settings(
            key, address, organization=self.config.organization, project=self.config.project
        )
        url = base_url + PATH
        return _Server(url=url, http=HTTPClient(url, backend=self.backend), key=key, headers=headers)
