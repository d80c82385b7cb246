"""The base class of backends over HTTP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Generic
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from jackfield import sync
from jackfield.config import LLMConfig
from jackfield.errors import ModelServiceError
from jackfield.events import ModelEvent
from jackfield.media import is_local, path_of
from jackfield.models import BaseChatModel, name_of_server, retry_request
from jackfield.plugins import Plugins
from jackfield.processors import Processor
from jackfield.request import ChatRequest, ModelFacts
from jackfield.secrets import ForgetLocals
from jackfield_http.answers import AnswerReader
from jackfield_http.client import HTTPClient
from jackfield_http.failures import Failures
from jackfield_http.jsonbytes import json_value
from jackfield_http.keys import FoundKey, KeyRule, find_key
from jackfield_http.server import Access, Opened, Post, ServerT, configured_url
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
        request: The request to the model.
        server: The server that was asked.
        failures: The errors of this request.
        patience_s: The number of seconds for which the server may send comments without an event.
    """

    request: ChatRequest
    server: ServerT
    failures: Failures
    patience_s: float


@dataclass(frozen=True, slots=True)
class ModelPage:
    """A page of a list of models.

    Attributes:
        names: The names of models.
        next_url: The URL of the next page; None after the last.
    """

    names: Sequence[str]
    next_url: str | None = None


class HTTPBackend(BaseChatModel, Generic[ServerT]):
    """A model behind an API over HTTP.

    A backend sets `backend` and `key_rule` and defines four methods without `async`: `server` (the address and the
    credentials), `post` (the request as bytes), `reader` (bytes as events) and `refusal` (an error). One instance keeps
    its connections, per event loop, and opens as many as there are calls at once.
    """

    key_rule: ClassVar[KeyRule] = KeyRule("")
    url_setting: ClassVar[str] = "base_url"  # the setting that holds the address, for errors

    def __init__(
        self,
        config: LLMConfig | Mapping[str, object],
        *,
        processors: Sequence[Processor] | None = None,
        host: Plugins | None = None,
    ) -> None:
        with ForgetLocals():  # they may include a key
            super().__init__(config, processors=processors, host=host)
        self._facts = self.read_facts()
        self.access: Access[ServerT] = Access(self.server, backend=self.backend)

    # --- defined by a backend ---

    @abstractmethod
    def server(self) -> ServerT:
        """The server's address and credentials. The first call runs it, in a worker thread.

        Raises:
            ConfigError: The address is missing or not valid.
            MissingSecretError: The server needs an API key, but there is none.
        """

    @abstractmethod
    def post(self, request: ChatRequest, server: ServerT, /) -> Post:
        """Build the request, which always asks for a stream. Runs in a worker thread if it reads local files."""

    @abstractmethod
    def reader(self, exchange: Exchange[ServerT]) -> AnswerReader:
        """Return the reader that turns the answer to one request into events."""

    @abstractmethod
    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """Return the error for a response with a status other than 2xx; see `Failures.refused`."""

    def adjust_server(
        self,
        request: ChatRequest,  # noqa: ARG002 - for backends that know another way
        server: ServerT,  # noqa: ARG002
        status: int,  # noqa: ARG002
        body: bytes,  # noqa: ARG002
    ) -> ServerT | None:
        """Return the server with other parameters if it refused one, else None. Later requests use them as well."""
        return None

    def resume(
        self,
        request: ChatRequest,  # noqa: ARG002 - for backends whose servers pause
        reader: AnswerReader,  # noqa: ARG002
    ) -> ChatRequest | None:
        """Return the request for the rest of an answer that the server paused; None if the answer is complete.

        The reader of a paused answer yields no `ModelFinished`.
        """
        return None

    def read_facts(self) -> ModelFacts:
        """Return the model's abilities, from the settings that are named like facts. Called once."""
        return facts_of_config(self.config)

    # --- for subclasses and callers ---

    @property
    def facts(self) -> ModelFacts:
        """The model's abilities; see `read_facts`."""
        return self._facts

    @property
    def server_name(self) -> str:
        """The server's name, as in `BaseChatModel`; its address may also come from the environment."""
        return name_of_server(self.backend, self.configured_url())

    def configured_url(self) -> str | None:
        """Return the base URL of the configuration, else of the environment; None for the provider's own.

        Raises:
            ConfigError: The URL is not valid.
        """
        return configured_url(self.config.server_url, self.key_rule, setting=self.url_setting)

    def find_key(self, url: str | None, rule: KeyRule | None = None, *, needed: bool = False) -> FoundKey:
        """Find the key for a server: the configured one, or one that the rule allows to be sent there.

        Args:
            url: The server's address; None for the provider's own.
            rule: Replaces `key_rule`.
            needed: True if the server requires a key.

        Raises:
            MissingSecretError: The server requires a key, and none is set.
            ConfigError: The server requires a key, and the one that is set is not meant for it; or the key cannot be
                sent in a header.
        """
        key = find_key(url, rule or self.key_rule, configured=self.config.api_key, settings=self.host.settings)
        if needed:
            key.or_missing(needed_by=f"backend {self.backend}")
        return key

    async def fetch_model_ids(
        self, url_of: Callable[[ServerT], str], read_page: Callable[[Any, str], ModelPage] | None = None
    ) -> list[str]:
        """Return the names in a list of models, page by page, each once, with the time-out and retries of requests.

        Args:
            url_of: Returns the URL of the list at a server.
            read_page: Reads the JSON of a page, given its URL; `read_model_page` if None. It may raise LookupError,
                TypeError or ValueError for anything else.

        Raises:
            ModelServiceError: The server did not answer, or has no such list.
        """
        opened = await self.access.open()
        names: dict[str, None] = {}
        url: str | None = url_of(opened.server)
        while url is not None:
            fetch = partial(self._fetch_page, opened, url, read_page or read_model_page)
            page = await retry_request(fetch, max_retries=self.config.generate_cfg.max_retries)
            known = len(names)
            names.update(dict.fromkeys(page.names))
            # A server that repeats a page would keep the client busy forever.
            url = page.next_url if len(names) > known else None
        return list(names)

    async def _fetch_page(
        self, opened: Opened[ServerT], url: str, read_page: Callable[[Any, str], ModelPage]
    ) -> ModelPage:
        options = self.config.generate_cfg
        post = Post(b"", url, {"accept": "application/json"}, "GET")
        timeout_s = options.request_timeout or DEFAULT_TIMEOUT_S
        reply = await opened.exchange(post, extra=options.extra_headers, timeout_s=timeout_s)
        failures = opened.failures(self.backend, reply.headers, extra=options.extra_headers)
        if reply.status >= 300:
            raise self.refusal(failures, reply.status, reply.body)
        try:
            return read_page(json_value(reply.body), url)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise failures.unreadable(reply.body, advice="it has no list of models") from None

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Send one request, for a stream. An answer that is one JSON object is accepted as well."""
        opened = await self.access.open()
        timeout_s = request.config.request_timeout or DEFAULT_TIMEOUT_S
        while True:
            post = await self._post(request, opened.server)
            # No variable for the extra headers, because this frame appears in tracebacks, and they may hold a key.
            async with opened.post(post, extra=request.config.extra_headers, timeout_s=timeout_s) as response:
                failures = opened.failures(self.backend, response.headers, extra=request.config.extra_headers)
                if response.status >= 300:
                    refusal = await response.read(limit=MAX_REFUSAL_BYTES)
                    opened = self._adjust_or_raise(request, opened, failures, response.status, refusal)
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
                rest = self.resume(request, reader)
                if rest is None:
                    return
                request = rest

    async def aclose(self) -> None:
        """Close the idle connections; the next call opens new ones, and looks up the key again."""
        await super().aclose()
        await self.access.aclose()

    async def _post(self, request: ChatRequest, server: ServerT) -> Post:
        if reads_files(request):
            return await sync.in_worker(self.post, request, server)
        return self.post(request, server)

    def _adjust_or_raise(
        self, request: ChatRequest, opened: Opened[ServerT], failures: Failures, status: int, body: bytes
    ) -> Opened[ServerT]:
        """Return the server with other parameters after a refusal.

        Raises:
            ModelServiceError: The backend knows no other parameters.
        """
        server = self.adjust_server(request, opened.server, status, body)
        if server is None:
            raise self.refusal(failures, status, body)
        return self.access.change(opened, server)


def read_model_page(value: Any, url: str) -> ModelPage:
    """Read a page of the form `{"data": [{"id": …}, …]}`; with `has_more`, the next one is `after_id` the last id.

    Raises:
        LookupError, TypeError, ValueError: The page has another form.
    """
    names = [str(entry["id"]) for entry in value["data"]]
    return ModelPage(names, with_query(url, after_id=names[-1]) if value.get("has_more") and names else None)


def with_query(url: str, **parameters: object) -> str:
    """Return a URL with these parameters of its query added or replaced."""
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **parameters}
    return urlunsplit(parts._replace(query=urlencode(query)))


def facts_of_config(config: LLMConfig) -> ModelFacts:
    """Return the facts that a configuration has settings for; the others have their defaults."""
    return ModelFacts(**{name: getattr(config, name) for name in _FACTS if name in type(config).model_fields})


def reads_files(request: ChatRequest) -> bool:
    """Return True if sending a request means reading local files."""
    for message in request.messages:
        if isinstance(message.content, str):
            continue
        for item in message.content:
            if is_local(item) or (item.file is not None and path_of(item.file) is not None):
                return True
    return False


async def _whole(reader: AnswerReader, response: Response, client: HTTPClient) -> Sequence[ModelEvent]:
    if not response.headers.get("content-type", "").startswith("application/json"):
        return ()
    return reader.whole(await client.body_of(response))


async def _end(reader: AnswerReader, response: Response) -> Iterable[ModelEvent]:
    """Return the last events, and release the connection without waiting for the server to end its response."""
    rest = await response.rest() if reader.enough and not reader.done else b""
    response.release()
    return chain(reader.feed(rest), reader.finish()) if rest else reader.finish()
