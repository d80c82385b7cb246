"""The base class for backends over HTTP."""

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
        request: The chat request.
        server: The server that received the request.
        failures: Builds the request's errors.
        patience_s: The number of seconds for which the server may send only comments.
    """

    request: ChatRequest
    server: ServerT
    failures: Failures
    patience_s: float


@dataclass(frozen=True, slots=True)
class ModelPage:
    """A page of a model list.

    Attributes:
        names: The models' names.
        next_url: The next page's URL, or None after the last page.
    """

    names: Sequence[str]
    next_url: str | None = None


class HTTPBackend(BaseChatModel, Generic[ServerT]):
    """A model behind an HTTP API.

    Subclasses set `backend` and `key_rule`, and define four synchronous methods: `server` (address and credentials),
    `post` (the request as bytes), `reader` (bytes to events) and `refusal` (an error). Each instance keeps its own
    connections per event loop, and opens as many as there are concurrent calls.
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
        """Return the server's address and credentials. Called in a worker thread on first use, and again after closing.

        Raises:
            ConfigError: The address is missing or invalid.
            MissingSecretError: The server requires an API key, and there is none.
        """

    @abstractmethod
    def post(self, request: ChatRequest, server: ServerT, /) -> Post:
        """Build the request, always for a streamed response. Runs in a worker thread if local files must be read."""

    @abstractmethod
    def reader(self, exchange: Exchange[ServerT]) -> AnswerReader:
        """Return the reader that turns the response to one request into events."""

    @abstractmethod
    def refusal(self, failures: Failures, status: int, body: bytes) -> ModelServiceError:
        """Return the error for a response with a non-2xx status; see `Failures.refused`."""

    def adjust_server(
        self,
        request: ChatRequest,  # noqa: ARG002 - for backends that know another way
        server: ServerT,  # noqa: ARG002
        status: int,  # noqa: ARG002
        body: bytes,  # noqa: ARG002
    ) -> ServerT | None:
        """Return the server with adjusted parameters if it refused one, else None. Later requests use them as well."""
        return None

    def resume(
        self,
        request: ChatRequest,  # noqa: ARG002 - for backends whose servers pause
        reader: AnswerReader,  # noqa: ARG002
    ) -> ChatRequest | None:
        """Return the request for the rest of a paused answer, or None if the answer is complete.

        The reader of a paused answer yields no `ModelFinished`.
        """
        return None

    def read_facts(self) -> ModelFacts:
        """Return the model's capabilities, from the settings that share their names. Called once."""
        return facts_of_config(self.config)

    # --- for subclasses and callers ---

    @property
    def facts(self) -> ModelFacts:
        """The model's capabilities; see `read_facts`."""
        return self._facts

    @property
    def server_name(self) -> str:
        """The server's name, as in `BaseChatModel`, except that the address may also come from the environment."""
        return name_of_server(self.backend, self.configured_url())

    def configured_url(self) -> str | None:
        """Return the base URL from the configuration or the environment, or None to use the provider's own.

        Raises:
            ConfigError: The URL is invalid.
        """
        return configured_url(self.config.server_url, self.key_rule, setting=self.url_setting)

    def find_key(self, url: str | None, rule: KeyRule | None = None, *, needed: bool = False) -> FoundKey:
        """Find the key for a server: the configured one, or one that the rule allows to be sent there.

        Args:
            url: The server's address. None means the provider's own.
            rule: The rule to use instead of `key_rule`.
            needed: True if the server requires a key.

        Raises:
            MissingSecretError: The server requires a key, and none is set.
            ConfigError: The server requires a key, but the key that is set is not meant for it; or the key cannot be
                sent in a header.
        """
        key = find_key(url, rule or self.key_rule, configured=self.config.api_key, settings=self.host.settings)
        if needed:
            key.or_missing(needed_by=f"backend {self.backend}")
        return key

    async def fetch_model_ids(
        self, url_of: Callable[[ServerT], str], read_page: Callable[[Any, str], ModelPage] | None = None
    ) -> list[str]:
        """Fetch all pages of a model list and return the names without duplicates, with the usual timeout and retries.

        Args:
            url_of: Returns the URL of a server's model list.
            read_page: Parses a page's JSON, given its URL. Defaults to `read_model_page`. May raise LookupError,
                TypeError or ValueError if the page has another format.

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
            raise failures.unreadable(reply.body, advice="it provides no list of models") from None

    async def stream(self, request: ChatRequest) -> AsyncIterator[ModelEvent]:
        """Send one streaming request. A response that is a single JSON object is accepted as well."""
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
        """Close the idle connections. The next call opens new ones, and looks up the key again."""
        await super().aclose()
        await self.access.aclose()

    async def _post(self, request: ChatRequest, server: ServerT) -> Post:
        if reads_files(request):
            return await sync.in_worker(self.post, request, server)
        return self.post(request, server)

    def _adjust_or_raise(
        self, request: ChatRequest, opened: Opened[ServerT], failures: Failures, status: int, body: bytes
    ) -> Opened[ServerT]:
        """Return the server with adjusted parameters after a refusal.

        Raises:
            ModelServiceError: The backend has no other parameters to offer.
        """
        server = self.adjust_server(request, opened.server, status, body)
        if server is None:
            raise self.refusal(failures, status, body)
        return self.access.change(opened, server)


def read_model_page(value: Any, url: str) -> ModelPage:
    """Parse a page of the form `{"data": [{"id": …}, …]}`. If `has_more` is set, `after_id` requests the next page.

    Raises:
        LookupError, TypeError, ValueError: The page has another format.
    """
    names = [str(entry["id"]) for entry in value["data"]]
    return ModelPage(names, with_query(url, after_id=names[-1]) if value.get("has_more") and names else None)


def with_query(url: str, **parameters: object) -> str:
    """Return a URL with these query parameters added or replaced."""
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **parameters}
    return urlunsplit(parts._replace(query=urlencode(query)))


def facts_of_config(config: LLMConfig) -> ModelFacts:
    """Return the facts that a configuration has settings for. All others have their defaults."""
    return ModelFacts(**{name: getattr(config, name) for name in _FACTS if name in type(config).model_fields})


def reads_files(request: ChatRequest) -> bool:
    """Return True if sending the request requires reading local files."""
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
