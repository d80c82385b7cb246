"""The base class of backends over HTTP: one request, its answer as events, and everything around them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Generic

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import ModelServiceError
from jackfield.events import ModelEvent
from jackfield.media import is_local, path_of
from jackfield.messages import ContentItem
from jackfield.models import BaseChatModel, name_of_server
from jackfield.plugins import Plugins
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield.secrets import ForgetLocals
from jackfield_http.answers import AnswerReader
from jackfield_http.client import HTTPClient
from jackfield_http.failures import Failures
from jackfield_http.keys import FoundKey, KeyRule, find_key
from jackfield_http.server import Access, Opened, Post, ServerT, given_url
from jackfield_http.sse import PATIENCE

if TYPE_CHECKING:  # it loads the HTTP stack, which the first request does
    from jackfield_http.transport import Response

DEFAULT_TIMEOUT_S = 120.0
MAX_REFUSAL_BYTES = 65_536
_FACTS = tuple(fact.name for fact in fields(ModelFacts))


@dataclass(frozen=True, slots=True)
class Exchange(Generic[ServerT]):
    """A request that a server has begun to answer.

    Attributes:
        request: What was asked.
        server: The server that was asked.
        failures: The errors of this request.
        patience_s: How many seconds the server may send comments without an event.
    """

    request: ChatRequest
    server: ServerT
    failures: Failures
    patience_s: float


class HTTPBackend(BaseChatModel, Generic[ServerT]):
    """A model behind an API over HTTP.

    A backend sets `backend` and `key_rule` and defines four methods without `async`: `server` (the address and the
    credentials), `post` (the request as bytes), `reader` (bytes as events) and `refusal` (an error). One instance keeps
    its connections, per event loop, and opens as many as there are calls at once.
    """

    key_rule: ClassVar[KeyRule] = KeyRule("")
    url_setting: ClassVar[str] = "base_url"  # what the address is called, for errors

    def __init__(
        self,
        config: LLMConfig | Mapping[str, object],
        *,
        processors: Sequence[Processor] | None = None,
        host: Plugins | None = None,
    ) -> None:
        with ForgetLocals():  # a key may be among them
            super().__init__(config, processors=processors, host=host)
        self._facts = self.stated_facts()
        self._access: Access[ServerT] = Access(self.server, backend=self.backend)

    # --- what a backend writes ---

    @abstractmethod
    def server(self) -> ServerT:
        """The server's address and credentials. The first call runs it, in a worker thread.

        Raises:
            ConfigError: The configuration has no address, or HTTP cannot reach it.
            MissingSecretError: The server needs an API key, but there is none.
        """

    @abstractmethod
    def post(self, request: ChatRequest, server: ServerT, /) -> Post:
        """What is sent: always asked for as a stream. In a worker thread where files of this machine are to be read."""

    @abstractmethod
    def reader(self, exchange: Exchange[ServerT]) -> AnswerReader:
        """What makes events of the answer to one request."""

    @abstractmethod
    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """The error that a response with another status than 2xx means; see `Failures.refused`."""

    def otherwise(
        self,
        request: ChatRequest,  # noqa: ARG002 - for backends that know another way
        server: ServerT,  # noqa: ARG002
        status: int,  # noqa: ARG002
        body: bytes,  # noqa: ARG002
    ) -> ServerT | None:
        """The same server with other words, where that is what it refused; this request and later ones use them."""
        return None

    def stated_facts(self) -> ModelFacts:
        """What the model can do, asked once: by the settings of `config_class` that are called as facts are."""
        return facts_in(self.config)

    # --- what it has ---

    @property
    def facts(self) -> ModelFacts:
        """As `stated_facts` says."""
        return self._facts

    @property
    def server_name(self) -> str:
        """See `BaseChatModel`; the environment may say where it is, too."""
        return name_of_server(self.backend, self.given_url())

    def given_url(self) -> str | None:
        """The base URL that the configuration, else the environment gives; None for the provider's own.

        Raises:
            ConfigError: HTTP cannot reach it.
        """
        return given_url(self.config.server_url, self.key_rule, setting=self.url_setting)

    def find_key(self, url: str | None, rule: KeyRule | None = None, *, needed: bool = False) -> FoundKey:
        """The key for a server: the configured one, else the one that the rule lets go there.

        Args:
            url: Where it is to go; None for the provider's own address.
            rule: In place of `key_rule`.
            needed: Whether the server lets in nobody without one.

        Raises:
            MissingSecretError: There is none, and it is needed.
            ConfigError: The same, and there is one that is not for this server; or no header can carry it.
        """
        found = find_key(url, rule or self.key_rule, configured=self.config.api_key, settings=self.host.settings)
        if needed:
            found.or_missing(needed_by=f"backend {self.backend}")
        return found

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Ask once, always for a stream; a server that answers with one JSON object is understood, too."""
        opened = await self._access.opened()
        timeout_s = request.config.request_timeout or DEFAULT_TIMEOUT_S
        while True:
            post = await self._post(request, opened.server)
            # No variable for the extra headers: a key may be among them, and this frame stands in tracebacks.
            async with opened.post(post, extra=request.config.extra_headers, timeout_s=timeout_s) as response:
                failures = opened.failures(self.backend, response.headers, extra=request.config.extra_headers)
                if response.status >= 300:
                    refusal = await response.read(limit=MAX_REFUSAL_BYTES)
                    opened = self._changed(request, opened, failures, response.status, refusal)
                    continue
                patience_s = request.config.event_timeout or timeout_s * PATIENCE
                reader = self.reader(Exchange(request, opened.server, failures, patience_s))
                for event in await _whole(reader, response, opened.client):
                    yield event
                async for piece in response.pieces:
                    for event in reader.feed(piece):
                        yield event
                    if reader.done or reader.enough:
                        break
                for event in await _end(reader, response):
                    yield event
                return

    async def aclose(self) -> None:
        """Close the idle connections; the next call opens new ones, with the key as it is then."""
        await super().aclose()
        await self._access.aclose()

    async def _post(self, request: ChatRequest, server: ServerT) -> Post:
        if reads_files(request):
            return await sync.in_worker(self.post, request, server)
        return self.post(request, server)

    def _changed(
        self, request: ChatRequest, opened: Opened[ServerT], failures: Failures, status: int, body: bytes
    ) -> Opened[ServerT]:
        """The same server, asked otherwise, after a refusal.

        Raises:
            ModelServiceError: There is no other way.
        """
        server = self.otherwise(request, opened.server, status, body)
        if server is None:
            raise self.refusal(failures, status, body)
        return self._access.change(opened, server)


def facts_in(config: LLMConfig) -> ModelFacts:
    """The facts that a configuration has settings for; the others are as by default."""
    return ModelFacts(**{name: getattr(config, name) for name in _FACTS if name in type(config).model_fields})


def reads_files(request: ChatRequest) -> bool:
    """Whether sending a request means reading files of this machine."""
    contents = (message.content for message in request.messages if not isinstance(message.content, str))
    return any(map(_is_a_file_here, chain.from_iterable(contents)))


def _is_a_file_here(item: ContentItem) -> bool:
    return is_local(item) or (item.file is not None and path_of(item.file) is not None)


async def _whole(reader: AnswerReader, response: Response, client: HTTPClient) -> Sequence[ModelEvent]:
    if not response.headers.get("content-type", "").startswith("application/json"):
        return ()
    return reader.whole(await client.body_of(response))


async def _end(reader: AnswerReader, response: Response) -> Iterable[ModelEvent]:
    """The last events; the connection can be used again, and nobody waits for the server to end its response."""
    rest = await response.rest() if reader.enough and not reader.done else b""
    response.release()
    return chain(reader.feed(rest), reader.finish()) if rest else reader.finish()
